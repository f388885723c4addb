"""Files of memories: JSONL and Parquet, written and read memory by memory, with all fields and vectors. The header
names the embedder of the vectors. Which memories are written, and what is done with those read, is in `transfer`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import checks
from .errors import InputError
from .extras import require
from .models import BOOKKEEPING, FIELDS, VECTORS, Embeddings, Memory

Vector = npt.NDArray[np.float32]

FORMATS = ("jsonl", "parquet")
VERSION = 1
_BATCH = 1000  # rows of a Parquet file at a time
_EXTENSIONS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


def format_of(path: str | Path, given: str | None = None, others: Iterable[str] = ()) -> str:
    """Return the given format, else the one of the file's suffix; JSONL for standard input and output. `others` are
    suffixes that the caller knows."""
    if given is not None:
        return checks.one_of("format", given, FORMATS)
    if str(path) == "-":
        return "jsonl"
    known = _EXTENSIONS.get(Path(path).suffix.lower())
    if known is None:
        raise InputError(
            f"the name of {path} must end in one of {', '.join((*_EXTENSIONS, *others))}, or --format name the format",
            field="format",
        )
    return known


class Item(NamedTuple):
    """A memory of a file and the embedder of its vectors, or the problem of its line."""

    where: str
    memory: Memory | None
    embedder: str | None
    wrong: str | None = None


Reader = Callable[[IO[bytes]], Iterator[Item]]


# JSONL


def write_jsonl(sink: IO[bytes], header: Mapping[str, Any], memories: Iterator[Memory]) -> None:
    sink.write(jsonl_header(header))
    for memory in memories:
        sink.write(to_jsonl(memory))


def jsonl_header(header: Mapping[str, Any]) -> bytes:
    return _json({"remanence": header}).encode("utf-8") + b"\n"


def to_jsonl(memory: Memory) -> bytes:
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


def write_parquet(sink: IO[bytes], header: Mapping[str, Any], memories: Iterator[Memory]) -> None:
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


def read_parquet(source: IO[bytes]) -> Iterator[Item]:
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
