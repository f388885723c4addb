"""A checkpointer of LangGraph on a Brain: each checkpoint and each pending write is a memory.

from rmem.integrations.langgraph_checkpoint import BrainSaver
graph = builder.compile(checkpointer=BrainSaver("memories.db"))
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..closing import Closing
from ..errors import InputError
from ..extras import require
from ..filters import Filter
from ..models import Memory
from .common import id_of, in_thread, open_brain

require("langgraph", "rmem.integrations.langgraph_checkpoint")

from langchain_core.runnables import RunnableConfig  # noqa: E402
from langgraph.checkpoint.base import (  # noqa: E402
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    SerializerProtocol,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)

CHECKPOINT, WRITE = "langgraph_checkpoint", "langgraph_write"
"""Types of memories: the state of a thread after a step, and a pending write of a task of the next step."""

_NEWEST = 16  # checkpoints; copies may have been stored after the one with the greatest id


class BrainSaver(Closing, BaseCheckpointSaver[str]):
    """Checkpoints in `brain`, a Brain or its address; sync and async.

    A checkpoint holds the whole state. `prune` keeps the latest of each namespace, and the earlier ones that a
    DeltaChannel needs.
    """

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        agent: str = "langgraph",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self.agent = agent
        self.brain, self._owned = open_brain(brain)

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, or the latest of its thread."""
        thread, namespace, checkpoint_id = _place(config)
        if checkpoint_id:
            memory = self.brain.get(self._id_of(thread, namespace, checkpoint_id))
        else:
            where = self._where(CHECKPOINT, thread=thread, namespace=namespace)
            newest = self.brain.memories(where, order="last step", limit=_NEWEST)
            memory = max(newest, key=_checkpoint_id, default=None)
        return None if memory is None else self._tuple(memory)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, or of all, latest first; `filter` compares with their metadata."""
        place = {} if config is None else {"thread": config["configurable"]["thread_id"]}
        if config is not None and "checkpoint_ns" in config["configurable"]:
            place["namespace"] = config["configurable"]["checkpoint_ns"]
        only = None if config is None else get_checkpoint_id(config)
        end = None if before is None else get_checkpoint_id(before)
        chosen = sorted(self._checkpoints(**place), key=_checkpoint_id, reverse=True)
        for memory in chosen:
            if limit is not None and limit <= 0:
                return
            if (only and _checkpoint_id(memory) != only) or (end and _checkpoint_id(memory) >= end):
                continue
            metadata = self._load(memory.contents["metadata"])
            if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                limit = None if limit is None else limit - 1
                yield self._tuple(memory)

    def _checkpoints(self, **place: str) -> Sequence[Memory]:
        return self.brain.memories(self._where(CHECKPOINT, **place), order="step", limit=None)

    def _writes(self, memory: Memory) -> Sequence[Memory]:
        own = memory.contents
        place = {"thread": own["thread"], "namespace": own["namespace"], "checkpoint": own["checkpoint"]}
        return self.brain.memories(self._where(WRITE, **place), order="step", limit=None)

    def _tuple(self, memory: Memory) -> CheckpointTuple:
        own = memory.contents
        writes = sorted((write.contents for write in self._writes(memory)), key=_write_order)
        parent = own["parent"]
        return CheckpointTuple(
            config=_config(own["thread"], own["namespace"], own["checkpoint"]),
            checkpoint=self._load(own["state"]),
            metadata=self._load(own["metadata"]),
            parent_config=_config(own["thread"], own["namespace"], parent) if parent else None,
            pending_writes=[(write["task"], write["channel"], self._load(write["value"])) for write in writes],
        )

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as the successor of the one that the config names."""
        thread, namespace, parent = _place(config)
        whole = get_checkpoint_metadata(config, metadata)
        own = {
            "thread": thread,
            "namespace": namespace,
            "checkpoint": checkpoint["id"],
            "parent": parent or "",
            "run": str(whole.get("run_id") or ""),
            "state": self._dump(checkpoint),
            "metadata": self._dump(whole),
        }
        self.brain.remember_many([self._checkpoint_memory(own)])
        return _config(thread, namespace, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task. Earlier ones stay, except errors, interrupts and other special channels."""
        thread, namespace, checkpoint_id = _place(config)
        new = [
            {
                "thread": thread,
                "namespace": namespace,
                "checkpoint": checkpoint_id,
                "task": task_id,
                "path": task_path,
                "index": WRITES_IDX_MAP.get(channel, at),
                "channel": channel,
                "value": self._dump(value),
            }
            for at, (channel, value) in enumerate(writes)
        ]
        memories = [self._write_memory(own) for own in new]
        held = self.brain.get_many([memory["id"] for memory in memories])
        kept = [
            memory for memory, own, there in zip(memories, new, held, strict=True) if there is None or own["index"] < 0
        ]
        if kept:
            self.brain.remember_many(kept)

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints and writes of a thread."""
        self.brain.forget(where=self._where(CHECKPOINT, WRITE, thread=thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete all checkpoints and writes of runs."""
        for run in run_ids:
            self._delete(self._checkpoints(run=str(run)))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another."""
        checkpoints = self._checkpoints(thread=source_thread_id)
        writes = [write for memory in checkpoints for write in self._writes(memory)]
        moved = {"thread": target_thread_id}
        copies = [self._checkpoint_memory({**memory.metadata, **moved}) for memory in checkpoints]
        copies += [self._write_memory({**memory.metadata, **moved}) for memory in writes]
        if copies:
            self.brain.remember_many(copies)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads ("delete"), or all that the latest of each namespace does not need."""
        if strategy not in ("keep_latest", "delete"):
            raise InputError(f'strategy must be "keep_latest" or "delete", got {strategy!r}', field="strategy")
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            held = {memory.id: memory for memory in self._checkpoints(thread=thread)}
            namespaces = {memory.contents["namespace"] for memory in held.values()}
            needed: set[str] = set()
            for namespace in namespaces:
                own = [memory for memory in held.values() if memory.contents["namespace"] == namespace]
                needed |= self._needed(max(own, key=_checkpoint_id), held)
            self._delete(memory for key, memory in held.items() if key not in needed)

    def _needed(self, latest: Memory, held: dict[str, Memory]) -> set[str]:
        """Return the ids of the latest checkpoint and of those before it that its delta channels need."""
        needed = {latest.id}
        missing = set(self._load(latest.contents["metadata"]).get("counters_since_delta_snapshot") or {})
        memory: Memory | None = latest
        while missing and memory is not None:
            own = memory.contents
            memory = held.get(self._id_of(own["thread"], own["namespace"], own["parent"]))
            if memory is not None:
                needed.add(memory.id)
                missing -= set(self._load(memory.contents["state"])["channel_values"])
        return needed

    def _delete(self, checkpoints: Iterable[Memory]) -> None:
        for memory in checkpoints:
            for write in self._writes(memory):
                self.brain.forget(write.id)
            self.brain.forget(memory.id)

    # The same for async callers

    aget_tuple = in_thread(get_tuple)
    aput = in_thread(put)
    aput_writes = in_thread(put_writes)
    adelete_thread = in_thread(delete_thread)
    adelete_for_runs = in_thread(delete_for_runs)
    acopy_thread = in_thread(copy_thread)
    aprune = in_thread(prune)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in await asyncio.to_thread(lambda: [*self.list(config, **options)]):
            yield found

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the next version: a text that sorts after the current one."""
        return f"{int((current or '0').partition('.')[0]) + 1:032}"

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()

    # Memories

    def _where(self, *types: str, **place: str) -> Filter:
        return Filter.of({"agent": self.agent, "type": types, "attributes": place})

    def _id_of(self, *place: str) -> str:
        return id_of("langgraph-checkpoint", self.agent, *place)

    def _checkpoint_memory(self, own: dict[str, Any]) -> dict[str, Any]:
        key = self._id_of(own["thread"], own["namespace"], own["checkpoint"])
        text = f"checkpoint {own['checkpoint']}"
        return {"id": key, "agent": self.agent, "type": CHECKPOINT, "text": text, "importance": 0, "metadata": own}

    def _write_memory(self, own: dict[str, Any]) -> dict[str, Any]:
        place = (own["thread"], own["namespace"], own["checkpoint"], own["task"], str(own["index"]))
        text = f"write to {own['channel']}"
        key = self._id_of(*place)
        return {"id": key, "agent": self.agent, "type": WRITE, "text": text, "importance": 0, "metadata": own}

    def _dump(self, value: Any) -> Sequence[str]:
        kind, data = self.serde.dumps_typed(value)
        return [kind, b64encode(data).decode()]

    def _load(self, dumped: Sequence[str]) -> Any:
        return self.serde.loads_typed((dumped[0], b64decode(dumped[1])))


def _place(config: RunnableConfig) -> tuple[str, str, str]:
    own = config["configurable"]
    return str(own["thread_id"]), own.get("checkpoint_ns", ""), get_checkpoint_id(config) or ""


def _config(thread: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}


def _checkpoint_id(memory: Memory) -> str:
    return str(memory.contents["checkpoint"])


def _write_order(own: dict[str, Any]) -> tuple[str, str, int]:
    order: tuple[str, str, int] = writes_sort_key(own["path"], own["task"], own["index"])
    return order
