"""Export memories to a file and import them, streaming, with ids, all fields and vectors.

A store with another embedder than that of a file's vectors embeds the texts itself. A file is checked to its end
before its first memory is written, so a bad one changes nothing."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from . import checks
from .errors import (
    EmbedderMismatchError,
    InputError,
    NotFoundError,
    PrivacyError,
    StoreError,
    VectorError,
)
from .filters import Filter
from .memory_files import (
    VERSION,
    Item,
    Reader,
    format_of,
    jsonl_header,
    read_jsonl,
    read_parquet,
    to_jsonl,
    write_jsonl,
    write_parquet,
)
from .models import Embeddings, Memory
from .private_files import opener
from .stores.base import Progress

if TYPE_CHECKING:
    from .brain import Brain
    from .index.filtered_rows import FilteredRows

Vector = npt.NDArray[np.float32]

_BATCH = 1000
_PART = 100  # memories in each piece of a stream
_MAX_REEMBEDDINGS = 3  # of the store by others during one batch, before it fails
_MAX_SHOWN = 5  # bad lines that an error lists
# Export


def export(
    brain: Brain,
    path: str | Path,
    format: str | None = None,
    where: Filter | Mapping[str, Any] | None = None,
    *,
    vectors: bool = True,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Write memories to a file, or to standard output for "-". A file appears complete or not at all.

        export(brain, "memories.jsonl")
        export(brain, "fixes.parquet", where={"type": "error_fix"})

    Sessions follow one another, each in its own order, so that an import gives the same neighbours. The file is not
    encrypted, whatever the store is; memories that cannot be read, because their key is missing or they are damaged,
    are counted as `left_out`.
    """
    chosen = format_of(path, format)
    write = write_jsonl if chosen == "jsonl" else write_parquet
    embedder = brain.store.get_meta("embedder") if vectors else None
    reader = _Reader(brain, where, vectors)

    def memories() -> Iterator[Memory]:
        for batch in reader.batches(_BATCH):
            yield from batch
            if on_progress is not None:
                on_progress(reader.done, len(reader.ids))

    with _sink(path, brain.address) as sink:
        write(sink, {"format": VERSION, "embedder": embedder}, memories())
    left_out = brain.store.unreadable() + reader.damaged
    return {"target": str(path), "format": chosen, "memories": reader.read, "vectors": vectors, "left_out": left_out}


def lines(
    brain: Brain,
    where: Filter | Mapping[str, Any] | None = None,
    *,
    vectors: bool = True,
    after: str | None = None,
) -> Iterator[bytes]:
    """Yield what `export` writes as JSONL, some lines at a time. To resume, give the id of the last memory received as
    `after`: the rest follows, without the header."""
    reader = _Reader(brain, where, vectors)
    if after is not None:
        reader.skip_to(checks.memory_id("after", after))
    return _lines(brain, reader, vectors, header=after is None)


def _lines(brain: Brain, reader: _Reader, vectors: bool, *, header: bool) -> Iterator[bytes]:
    if header:
        yield jsonl_header({"format": VERSION, "embedder": brain.store.get_meta("embedder") if vectors else None})
    for batch in reader.batches(_PART):
        yield b"".join(map(to_jsonl, batch))


class _Reader:
    """Reads the memories that match a filter, session by session. Which ones they are is
    fixed at the start, by their ids: one that is changed meanwhile is read in its new state, and a long export
    keeps no snapshot of the store open."""

    def __init__(self, brain: Brain, where: Filter | Mapping[str, Any] | None, vectors: bool) -> None:
        self._store, self._vectors = brain.store, vectors
        inside = Filter.of(where)

        def ids() -> list[str]:
            found_rows = self._store.filtered_rows(inside)
            return self._store.ids_at(found_rows.seq[_session_by_session(found_rows)].tolist())

        self.ids = self._store.read_transaction(ids)
        self.done = 0  # ids already read
        self.read = 0
        self.damaged = 0

    def skip_to(self, memory_id: str) -> None:
        """Skip all memories up to and including this one."""
        if memory_id not in self.ids:
            raise NotFoundError(memory_id)
        self.ids = self.ids[self.ids.index(memory_id) + 1 :]

    def batches(self, size: int) -> Iterator[list[Memory]]:
        while self.done < len(self.ids):
            keys = self.ids[self.done : self.done + size]
            found = [
                memory or self._read_again(key) for key, memory in zip(keys, self._store.get_many(keys), strict=True)
            ]
            memories = [memory for memory in found if memory is not None]
            if not self._vectors:
                for memory in memories:
                    memory.embeddings = Embeddings()
            self.done += len(keys)
            self.read += len(memories)
            yield memories

    def _read_again(self, key: str) -> Memory | None:
        """Read again a memory that a batch could not read; None if it is gone, or damaged, which is counted."""
        try:
            return self._store.get(key)
        except StoreError:
            self.damaged += 1
            return None


def _session_by_session(found_rows: FilteredRows) -> npt.NDArray[np.int64]:
    """Return the positions ordered by session, each memory after its predecessor."""
    everything = np.arange(found_rows.size)
    previous, following = found_rows.before(everything).tolist(), found_rows.after(everything).tolist()
    order: list[int] = []
    seen = bytearray(found_rows.size)
    firsts = [at for at, before in enumerate(previous) if before < 0]
    for first in [*firsts, *range(found_rows.size)]:  # the range adds rows that no first row leads to
        at = first
        while at >= 0 and not seen[at]:
            seen[at] = 1
            order.append(at)
            at = following[at]
    return np.array(order, np.int64)


@contextmanager
def _sink(path: str | Path, address: str) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path).expanduser()
    if target.resolve() == Path(address.removeprefix("sqlite:///")).expanduser().resolve():
        raise InputError(f"{target} is the store itself; export to another file", field="path")
    try:
        if target.exists() and not target.is_file():  # write directly to a pipe or a device
            with target.open("wb") as sink:
                yield sink
            return
        partial = target.with_name(f"{target.name}.partial")
        try:
            with open(partial, "wb", opener=opener) as sink:
                yield sink
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}", field="path") from error


# Import


def import_(
    brain: Brain,
    path: str | Path | IO[bytes],
    format: str | None = None,
    *,
    vectors: bool = True,
    reader: Reader | None = None,
    on_check: Progress | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Read memories from a file (its name, or opened), or from standard input for "-". Ids are kept: what is there is
    replaced. `reader` reads files that are not ours; see `foreign_files`.

    The whole file is checked first; if a line of it is bad, an InputError names it and nothing is
    written. Vectors are kept if they came from the store's own embedder; other texts are embedded again.
    """
    name = str(path) if isinstance(path, str | Path) else "what was sent"
    read = reader or (read_jsonl if format_of(name, format) == "jsonl" else read_parquet)
    with _source(path) as source:
        total = _check(brain, name, read(source), vectors, on_check)
        source.seek(0)
        return _import_batches(brain, read(source), vectors, total, on_progress)


def _check(brain: Brain, name: str, items: Iterator[Item], vectors: bool, on_check: Progress | None) -> int:
    """Count the memories of a file; InputError if one is bad."""
    complaints: list[str] = []
    count = 0
    dimension = brain.store.stats().dimension
    for item in items:
        wrong = item.wrong
        vector = _usable_vector(brain, item, vectors)
        if vector is not None:
            try:
                dimension = checks.vector("full_vector", vector, dimension=dimension).size
            except VectorError as error:
                wrong = str(error)
        if wrong is None and item.memory is not None:
            try:
                item.memory.check_bounds()
                brain.cleaned(item.memory)
            except (InputError, PrivacyError) as error:
                wrong = str(error)
        if wrong is not None:
            complaints.append(f"{item.where}: {wrong}" if len(complaints) < _MAX_SHOWN else "")
        count += 1
        if on_check is not None and count % _BATCH == 0:
            on_check(count, None)
    if complaints:
        more = f"; and {len(complaints) - _MAX_SHOWN} more" if len(complaints) > _MAX_SHOWN else ""
        listed = "; ".join(complaints[:_MAX_SHOWN])
        raise InputError(f"nothing was imported from {name}: {listed}{more}", field="path")
    return count


def _usable_vector(brain: Brain, item: Item, vectors: bool) -> Vector | None:
    """Return the vector of a memory at unit length if it is of the store's embedder, else None."""
    vector = None if item.memory is None else item.memory.embeddings.full_vector
    if vector is None or not vectors or not vector.any():
        return None
    if (item.embedder or "none") != brain.embedder:
        return None
    norm = float(np.linalg.norm(vector))
    return vector if abs(norm - 1) < 1e-3 else (vector / np.float32(norm)).astype(np.float32)


def _import_batches(
    brain: Brain, items: Iterator[Item], vectors: bool, total: int, on_progress: Progress | None
) -> dict[str, Any]:
    imported = replaced = kept = 0
    while batch := list(islice(items, _BATCH)):
        known = brain.store.get_many([item.memory.memory_id for item in batch if item.memory is not None])
        memories, trusted = _put(brain, batch, vectors)
        _keep_access(brain, memories)
        kept += trusted
        imported += len(memories)
        replaced += sum(memory is not None for memory in known)
        if on_progress is not None:
            on_progress(imported, total)
    return {"imported": imported, "replaced": replaced, "vectors_kept": kept, "embedder": brain.embedder}


def _put(brain: Brain, batch: Sequence[Item], vectors: bool) -> tuple[list[Memory], int]:
    """Store some memories; return how many kept their vectors. If the store is re-embedded meanwhile, prepare all
    again, because the vectors of the file may no longer fit."""
    attempts = 0
    while True:
        embedder = brain.embedder
        memories = []
        for item in batch:
            assert item.memory is not None, "the file was checked"
            memory = item.memory.copied()
            memory.embeddings = Embeddings(full_vector=_usable_vector(brain, item, vectors))
            memories.append(brain.cleaned(memory))
        trusted = sum(memory.embeddings.full_vector is not None for memory in memories)
        try:
            return brain.put(memories), trusted
        except (EmbedderMismatchError, VectorError):
            attempts += 1
            if attempts == _MAX_REEMBEDDINGS or brain.embedder == embedder:
                raise


def _keep_access(brain: Brain, memories: Sequence[Memory]) -> None:
    """Raise the access counts, which a store may keep apart from its memories, to those of the file."""
    wanted = {memory.memory_id: memory.bookkeeping for memory in memories if memory.bookkeeping.retrieval_count}
    if not wanted:
        return
    for memory in brain.store.get_many(list(wanted)):
        if memory is not None:
            imported = wanted[memory.memory_id]
            missing = imported.retrieval_count - memory.bookkeeping.retrieval_count
            brain.store.touch([memory.memory_id] * missing, imported.last_access_time)


@contextmanager
def _source(path: str | Path | IO[bytes]) -> Iterator[IO[bytes]]:
    """Open a file that can be read twice; copy a pipe to a temporary file first."""
    if not isinstance(path, str | Path):
        yield path
        return
    if str(path) == "-":
        opened: IO[bytes] = sys.stdin.buffer
    else:
        try:
            opened = Path(path).expanduser().open("rb")
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}", field="path") from error
    with opened:
        if opened.seekable() and str(path) != "-":
            yield opened
            return
        with tempfile.SpooledTemporaryFile(max_size=64 * 1024 * 1024) as held:
            while part := opened.read(1024 * 1024):
                held.write(part)
            held.seek(0)
            yield cast("IO[bytes]", held)
