"""Export memories to a file and import them: JSONL and Parquet, streaming, with ids, all fields and vectors.

A file names the embedder of its vectors; a store with another one embeds the texts itself. A file is checked to its end
before its first memory is written, so a bad one changes nothing."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

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
from .extras import require
from .filters import Filter
from .models import BOOKKEEPING, FIELDS, VECTORS, Embeddings, Memory
from .private_files import opener
from .stores.base import Progress

if TYPE_CHECKING:
    from .brain import Brain
    from .index.filtered_rows import FilteredRows

Vector = npt.NDArray[np.float32]

FORMATS = ("jsonl", "parquet")
VERSION = 1
_BATCH = 1000
_PART = 100  # memories in each piece of a stream
_MAX_REEMBEDDINGS = 3  # of the store by others during one batch, before it fails
_MAX_SHOWN = 5  # bad lines that an error lists
_EXTENSIONS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


def format_of(path: str | Path, given: str | None = None) -> str:
    """Return the given format, else the one of the file's suffix; JSONL for standard input and output."""
    if given is not None:
        return checks.one_of("format", given, FORMATS)
    if str(path) == "-":
        return "jsonl"
    known = _EXTENSIONS.get(Path(path).suffix.lower())
    if known is None:
        raise InputError(
            f"the name of {path} does not give its format; name the format, such as --format jsonl or --format text",
            field="format",
        )
    return known


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
    write = _write_jsonl if chosen == "jsonl" else _write_parquet
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
        yield _jsonl_header({"format": VERSION, "embedder": brain.store.get_meta("embedder") if vectors else None})
    for batch in reader.batches(_PART):
        yield b"".join(map(_jsonl, batch))


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


def _write_jsonl(sink: IO[bytes], header: Mapping[str, Any], memories: Iterator[Memory]) -> None:
    sink.write(_jsonl_header(header))
    for memory in memories:
        sink.write(_jsonl(memory))


def _jsonl_header(header: Mapping[str, Any]) -> bytes:
    return _json({"remanence": header}).encode("utf-8") + b"\n"


def _jsonl(memory: Memory) -> bytes:
    """Write a memory as a line; removes its vectors."""
    vectors = {name: getattr(memory.embeddings, name) for name in VECTORS}
    memory.embeddings = Embeddings()
    document = memory.to_dict(vectors=False)
    written = ",".join(f'"{name}":{_numbers(vector)}' for name, vector in vectors.items())
    return f'{_json(document)[:-1]},"embeddings":{{{written}}}}}\n'.encode()


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _numbers(vector: Vector | None) -> str:
    """Write a vector as JSON. Nine digits restore every float32 exactly, in half the space and time of the json
    module."""
    return "null" if vector is None else "[" + ",".join(["%.9g"] * vector.size) % tuple(vector.tolist()) + "]"


# Import


class Item(NamedTuple):
    """A memory of a file and the embedder of its vectors, or the problem of its line."""

    where: str
    memory: Memory | None
    embedder: str | None
    wrong: str | None = None


Reader = Callable[[IO[bytes]], Iterator[Item]]


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
    read = reader or (read_jsonl if format_of(name, format) == "jsonl" else _read_parquet)
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
                brain.cleaned(item.memory)
            except PrivacyError as error:
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


def read_jsonl(
    source: IO[bytes], memory_of: Callable[[Mapping[str, Any]], Memory] = Memory.from_dict
) -> Iterator[Item]:
    """Yield one memory per line, built by `memory_of` from the object of the line."""
    embedder: str | None = None
    for number, line in enumerate(source, 1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            document = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            if isinstance(document, dict) and document.keys() == {"remanence"}:
                embedder = _embedder_of_header(document["remanence"])
                continue
            if not isinstance(document, dict):
                raise checks.refuse("a memory", "a JSON object", document)
            yield Item(where, memory_of(document), embedder)
        except UnicodeDecodeError as error:
            yield Item(where, None, None, f"not UTF-8 at byte {error.start}")
        except json.JSONDecodeError as error:
            yield Item(where, None, None, f"not JSON: {error.msg} at character {error.pos + 1}")
        except RecursionError:
            yield Item(where, None, None, "nested too deeply")
        except InputError as error:
            yield Item(where, None, None, str(error))


def _embedder_of_header(header: object) -> str | None:
    """Return the embedder that the header of a file names."""
    if not isinstance(header, dict):
        raise checks.refuse("the header", 'such as {"format": 1, "embedder": …}', header)
    version = checks.whole("format", header.get("format"), low=1)
    if version > VERSION:
        raise InputError(f"format {version} was written by a newer version of Remanence", field="format")
    checks.known_fields("the header", header, ("format", "embedder"))
    return None if header.get("embedder") is None else checks.name("embedder", header["embedder"])


# Parquet


def _pyarrow() -> Any:
    require("parquet", "Parquet")
    import pyarrow
    import pyarrow.parquet

    return pyarrow


def _schema(arrow: Any) -> Any:
    text, number, whole = arrow.string(), arrow.float64(), arrow.int64()
    vector = arrow.list_(arrow.float32())
    kinds = {
        "str": text,
        "float": number,
        "int": whole,
        "tuple[float, ...]": arrow.list_(number),
        "dict[str, str]": arrow.map_(text, text),
        "dict[str, Any]": text,  # as JSON, because its structure is the caller's
    }
    return arrow.schema(
        [
            *(
                arrow.field(field.name, kinds[field.kind], nullable=not field.required)
                for field in (*FIELDS, *BOOKKEEPING)
            ),
            *((name, vector) for name in VECTORS),
        ]
    )


def _write_parquet(sink: IO[bytes], header: Mapping[str, Any], memories: Iterator[Memory]) -> None:
    arrow = _pyarrow()
    schema = _schema(arrow).with_metadata({"remanence": json.dumps(header)})
    with arrow.parquet.ParquetWriter(sink, schema) as writer:
        while batch := list(islice(memories, _BATCH)):
            writer.write_batch(arrow.RecordBatch.from_pylist([_row(memory) for memory in batch], schema))


def _row(memory: Memory) -> dict[str, Any]:
    row = memory.to_dict(vectors=False)
    bookkeeping = row.pop("metadata")
    return {
        **row,
        **bookkeeping,
        "contents": json.dumps(memory.contents, ensure_ascii=False),
        "tags": list(memory.tags.items()),
        **{name: getattr(memory.embeddings, name) for name in VECTORS},
    }


def _read_parquet(source: IO[bytes]) -> Iterator[Item]:
    arrow = _pyarrow()
    try:
        file = arrow.parquet.ParquetFile(source)
        columns, header = file.schema_arrow.names, (file.schema_arrow.metadata or {}).get(b"remanence")
        known = _schema(arrow).names
        checks.known_fields("a Parquet file of memories", columns, known)
        for field in FIELDS:
            if field.required and field.name not in columns:
                raise InputError(f"the column {field.name!r} is missing", field=field.name)
        embedder = None if header is None else _embedder_of_header(json.loads(header))
    except (arrow.ArrowException, OSError, ValueError) as error:  # our own InputError is a ValueError
        yield Item("the file", None, None, " ".join(str(error).split()))
        return
    number = 0
    for batch in file.iter_batches(batch_size=_BATCH):
        for row in batch.to_pylist():
            number += 1
            try:
                yield Item(f"row {number}", Memory.from_dict(_document(row)), embedder)
            except InputError as error:
                yield Item(f"row {number}", None, None, str(error))


def _document(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row of the table for `Memory.from_dict`."""
    given = {key: value for key, value in row.items() if value is not None}
    metadata = {key: given.pop(key) for key in [field.name for field in BOOKKEEPING] if key in given}
    embeddings = {key: given.pop(key) for key in VECTORS if key in given}
    try:
        contents = json.loads(given["contents"]) if "contents" in given else None
    except (TypeError, ValueError):
        raise checks.refuse("contents", "JSON text", given["contents"]) from None
    tags = dict(given.get("tags", ()))
    return {**given, "contents": contents, "tags": tags, "metadata": metadata, "embeddings": embeddings}
