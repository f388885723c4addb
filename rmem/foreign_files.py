"""Read files of other programs as memories: lines of JSON with a text, plain text, Markdown and CSV. Files of our own
are read by `transfer`, which also checks and stores what is read here.

A memory without an id gets one derived from its text, so that importing a file again adds nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from . import checks
from .errors import InputError
from .memory_builder import build_memory_of
from .memory_files import Item, Reader, format_of, read_jsonl
from .models import Memory
from .tables.chunks import chunks, sections
from .tables.files import encoding_of

_EXTENSIONS = {".txt": "text", ".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".tsv": "tsv"}
_TEXT_COLUMNS = ("text", "content", "body", "message", "note")
_PLAIN = ("id", "agent", "type", "session", "actor", "place", "when", "tier")
_JSON = ("importance", "step", "position", "tags", "metadata")
_PARAGRAPHS = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_HEADING = re.compile(r"\A(?: {0,3}#{1,6}[^\n]*|[^\n]+\n {0,3}(?:=+|-+)[ \t]*)(?:\n+|\Z)")  # in front of a section
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n([\w-]+[ \t]*:.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r'"[^"]*"')
_SECTION = 1500  # characters of a Markdown section that fit into one memory


def reader_of(name: str, format: str | None, defaults: Mapping[str, Any], column: str | None = None) -> Reader | None:
    """Return the reader for a file; None for formats of `transfer`. `defaults` are arguments of `remember` that a
    memory of the file can override."""
    chosen = format or _EXTENSIONS.get(Path(name).suffix.lower()) or format_of(name, others=_EXTENSIONS)
    if column is not None and chosen not in ("csv", "tsv"):
        raise InputError("--column goes with CSV and TSV files", field="column")
    source = {} if name == "-" else {"source": Path(name).name}
    if chosen == "text":
        return partial(_read_text, source=source, defaults=defaults)
    if chosen == "markdown":
        return partial(_read_markdown, source=source, defaults=defaults)
    if chosen in ("csv", "tsv"):
        delimiter = None if chosen == "csv" else "\t"
        return partial(_read_table, delimiter=delimiter, column=column, defaults=defaults)
    if chosen == "parquet":
        return None
    return partial(read_jsonl, memory_of=partial(_memory_of_line, defaults=defaults))


def _memory_of_line(document: Mapping[str, Any], defaults: Mapping[str, Any]) -> Memory:
    """Read a line: a memory in our format, or arguments of `remember`."""
    if "memory_id" in document or "text" not in document:
        return Memory.from_dict(document)
    return _memory(document, defaults)


def _memory(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> Memory:
    memory = build_memory_of({**defaults, **fields})
    if not memory.memory_id:
        fields_text = json.dumps({**defaults, **fields}, sort_keys=True, default=str)
        memory.memory_id = f"import-{blake2b(fields_text.encode('utf-8', 'surrogatepass'), digest_size=10).hexdigest()}"
    return memory


def _item(where: str, fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> Item:
    try:
        return Item(where, _memory(fields, defaults), None)
    except InputError as error:
        return Item(where, None, None, str(error))


def _text(source: IO[bytes]) -> str:
    raw = source.read()
    encoding = encoding_of(raw)
    try:
        return raw.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        expected = "UTF-8 text" if encoding == "utf-8" else f"{encoding.upper()} text, as its first bytes say"
        raise InputError(f"the file must be {expected}; byte {error.start} is not", field="path") from None


def _read_text(file: IO[bytes], source: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Item]:
    """Read one memory per paragraph."""
    paragraphs = [part.strip() for part in _PARAGRAPHS.split(_text(file)) if part.strip()]
    for number, paragraph in enumerate(paragraphs, 1):
        yield _item(f"paragraph {number}", {"text": paragraph, "metadata": source}, defaults)


def _read_markdown(file: IO[bytes], source: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Item]:
    """Read one memory per section, with its headings first; split a long section at paragraphs."""
    text = _text(file)
    if front := _FRONT_MATTER.match(text):
        text, source = text[front.end() :], {**source, "front_matter": front[1].strip()}
    for number, section in enumerate(sections(text), 1):
        headings = [heading for heading in section.headings if heading]
        metadata = {**source, **({"headings": headings} if headings else {})}
        body = _HEADING.sub("", section.text, count=1) if headings else section.text
        for piece in chunks(body, _SECTION, 0):
            text = "\n\n".join([" > ".join(headings), piece] if headings else [piece])
            yield _item(f"section {number}", {"text": text, "metadata": metadata}, defaults)


def _read_table(
    file: IO[bytes], delimiter: str | None, column: str | None, defaults: Mapping[str, Any]
) -> Iterator[Item]:
    """Read one memory per row. Columns named like arguments of `remember` set these; all others are metadata."""
    text = _text(file)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter or _delimiter(text))
    try:
        names = [name.strip() for name in next(rows, [])]
        if not names:
            return
        chosen = _text_column(names, column)
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            where = f"line {rows.line_num}"
            if len(row) != len(names):
                yield Item(where, None, None, f"a row must have {len(names)} cells like the first, got {len(row)}")
                continue
            try:
                fields = _fields(dict(zip(names, row, strict=True)), chosen)
            except InputError as error:
                yield Item(where, None, None, str(error))
                continue
            yield _item(where, fields, defaults)
    except csv.Error as error:
        yield Item(f"line {rows.line_num}", None, None, f"not CSV: {error}")


def _delimiter(text: str) -> str:
    """Return what divides the names of the columns: spreadsheets write semicolons where the comma is a decimal sign."""
    heading = _QUOTED.sub("", text.partition("\n")[0])
    return max(",;\t|", key=heading.count)


def _text_column(names: list[str], wanted: str | None) -> str:
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the column {double!r} occurs twice; rename one", field="path")
    candidates = _TEXT_COLUMNS if wanted is None else (wanted,)
    found = next((name for candidate in candidates for name in names if name.lower() == candidate.lower()), None)
    if found is None:
        looked = "text" if wanted is None else wanted
        raise InputError(
            f"no column is called {looked!r}; name the column of the texts with --column, one of: {', '.join(names)}",
            field="column",
        )
    return found


def _fields(cells: dict[str, str], text: str) -> dict[str, Any]:
    """Convert a row to arguments of `remember`, without empty cells."""
    fields: dict[str, Any] = {"text": cells.pop(text)}
    metadata: dict[str, Any] = {}
    for name, cell in cells.items():
        if not cell.strip():
            continue
        if name in _PLAIN:
            fields[name] = cell
        elif name in _JSON:
            fields[name] = _json(name, cell)
        else:
            metadata[name] = cell
    own = fields.get("metadata")
    if own is not None and not isinstance(own, dict):
        raise checks.refuse("metadata", "a JSON object", own)
    return {**fields, "metadata": {**metadata, **(own or {})}}


def _json(name: str, cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        raise checks.refuse(name, "a number or JSON", cell) from None
