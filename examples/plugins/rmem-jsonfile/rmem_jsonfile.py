"""A store plugin: memories in one JSON-lines file, a line for each write, read again from the top by whoever opens it.

What serves recall (the index, filters, BM25, vectors) comes from Remanence's in-memory store. This module adds that a
write is on disk before it returns, and that every process sees the writes of the others."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rmem import Memory
from rmem.errors import ConfigError, StoreCorruptError, StoreError
from rmem.feedback import Feedback
from rmem.stores.base import Edit
from rmem.stores.memory import InMemoryRecordStore

SCHEME = "jsonfile://"


class JsonFileStore(InMemoryRecordStore):
    """`JsonFileStore("jsonfile:///memories.jsonl")`; a fourth slash makes the path absolute, as with sqlite."""

    def __init__(self, address: str, *, word_vectors: Any = None, **options: Any) -> None:
        super().__init__(word_vectors)
        path = address.removeprefix(SCHEME).removeprefix("/")
        if not path:
            raise ConfigError(f"{address!r} names no file; write {SCHEME}/relative.jsonl or {SCHEME}//absolute.jsonl")
        self.path = Path(path).expanduser()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._guard = _opened(f"{self.path}.lock")  # a file of its own: the data file may be replaced
        self._file = _opened(self.path)
        self._read = 0  # bytes of the file that are in memory
        self._stale = 0  # memories in the file that a later line replaces
        self._waiting: dict[str, list[float]] = {}  # when memories were recalled, not yet written
        self._depth = 0
        self.refresh()

    # What every process does before it answers: take in the lines that others wrote.

    def refresh(self) -> None:
        super().refresh()
        with self._lock:
            self._follow()

    def _follow(self) -> None:
        if os.fstat(self._file.fileno()).st_ino != os.stat(self.path).st_ino:  # another process tidied it up
            self._file.close()
            self._file = _opened(self.path)
            self._start_anew()
        if os.fstat(self._file.fileno()).st_size == self._read:
            return
        self._file.seek(self._read)
        for line in self._file:
            if not line.endswith(b"\n"):  # still being written
                break
            self._apply(line)
            self._read += len(line)

    def _start_anew(self) -> None:
        self._rows.clear()
        self._seq_of.clear()
        self._original_seq.clear()
        self._next_step.clear()
        self._meta.clear()
        self._feedback.clear()
        self._facts.clear()
        self.index.clear()
        self._read = self._stale = 0

    def _apply(self, line: bytes) -> None:
        try:
            ((what, given),) = json.loads(line).items()
            if what == "put":
                memories = [Memory.from_dict(one) for one in given]
                self._stale += sum(memory.memory_id in self._seq_of for memory in memories)
                super().put(memories)
            elif what == "note":
                super().set_meta(*given)
            elif what == "touch":
                for key, times in given.items():
                    for when in times:
                        super().touch([key], when)
            elif what == "judge":
                super().add_feedback([Feedback(**one) for one in given])
            else:
                raise ValueError(f"no such line: {what!r}")
        except (ValueError, TypeError, AttributeError) as error:
            raise StoreCorruptError(f"{self.path}, byte {self._read}: {error}") from error

    # What a writer does: wait for its turn, catch up, change memory, append one line, wait for the disk.

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            self._open()
            if self._depth == 0:
                fcntl.flock(self._guard, fcntl.LOCK_EX)
            self._depth += 1
            try:
                self._follow()
                self._file.truncate(self._read)  # half a line of a writer that died before its write was acknowledged
                yield
            except OSError as error:
                self._start_anew()  # memory may be ahead of the file now; the file is what counts
                raise StoreError(f"{self.path} cannot be written: {error.strerror or error}") from error
            finally:
                self._depth -= 1
                if self._depth == 0:
                    fcntl.flock(self._guard, fcntl.LOCK_UN)

    def _append(self, what: str, given: Any) -> None:
        line = json.dumps({what: given}, ensure_ascii=False).encode() + b"\n"
        self._file.seek(0, os.SEEK_END)
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._read += len(line)

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        with self._writing():
            given = [memory.memory_id for memory in memories]
            self._stale += sum(key in self._seq_of for key in given)
            before = dict(self._meta)
            kept = super().put(memories)
            for key in self._meta.keys() - before.keys():  # the embedder, with its first vectors
                self._append("note", [key, self._meta[key]])
            if kept:
                self._append("put", [memory.to_dict() for memory in kept])
            if self._stale > len(self._rows):
                self._rewrite()
            return kept

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        with self._writing():
            return super().edit(memory_id, edit)

    def forget_many(self, keys: Sequence[str]) -> int:
        with self._writing():
            gone = super().forget_many(keys)
            if gone:
                self._rewrite()  # so that what is forgotten is no longer in the file
            return gone

    def get_meta(self, key: str) -> str | None:
        self.refresh()
        return super().get_meta(key)

    def set_meta(self, key: str, value: str) -> None:
        with self._writing():
            self._append("note", [key, value])
            super().set_meta(key, value)

    def add_feedback(self, feedback: Sequence[Feedback]) -> None:
        with self._writing():
            super().add_feedback(feedback)
            self._append("judge", [one.to_dict() for one in feedback])

    def feedback(self, since: float | None = None) -> list[Feedback]:
        self.refresh()
        return super().feedback(since)

    def remove_feedback(self, feedback: Sequence[Feedback]) -> None:
        if feedback:
            with self._writing():
                super().remove_feedback(feedback)
                self._rewrite()

    def touch(self, keys: Sequence[str], when: float) -> None:
        """Written with the next close, so that reading never waits for the disk."""
        self.refresh()
        super().touch(keys, when)
        with self._lock:
            for key in keys:
                self._waiting.setdefault(key, []).append(when)

    def _rewrite(self) -> None:
        """The same memories in a new file without what was replaced or forgotten."""
        whole = self.path.with_name(self.path.name + ".new")
        with open(whole, "wb") as file:
            lines: list[Mapping[str, Any]] = [{"note": [key, value]} for key, value in self._meta.items()]
            # In the order of birth, so that a replaced memory keeps its place in the session.
            held = sorted(self._rows.values(), key=lambda memory: self._original_seq[memory.memory_id])
            lines += [{"put": [memory.to_dict()]} for memory in held]
            lines += [{"judge": [one.to_dict()]} for one in self._feedback.values()]
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(whole, self.path)
        self._file.close()
        self._file = _opened(self.path)
        self._read, self._stale = os.fstat(self._file.fileno()).st_size, 0
        self._waiting.clear()  # the counts are in the memories now

    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        self.refresh()
        return super().get_many(keys)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            if self._waiting:
                with self._writing():
                    self._append("touch", self._waiting)
            super().close()
            self._file.close()
            self._guard.close()


def _opened(path: str | Path) -> BinaryIO:
    """A file for reading anywhere and writing at the end, made if there is none."""
    return open(path, "a+b")
