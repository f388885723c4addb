"""Read text, Markdown, JSON lines and PDF files as chunks of text with metadata.

A file that is missing, unreadable, binary or without text is an error that names it, because a file left out silently
would be noticed only much later."""

from __future__ import annotations

import codecs
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..checks import refuse, shown
from ..errors import InputError
from ..extras import require
from .chunks import chunks, sections

MARKDOWN = {".md", ".markdown", ".mdx"}
JSON_LINES = {".jsonl", ".ndjson"}
_TEXT_FIELDS = ("text", "content", "body")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Chunk(NamedTuple):
    """A piece of a file's text, and where it is from."""

    text: str
    metadata: dict[str, Any]


def chunks_of(given: object, size: int, overlap: int) -> list[Chunk]:
    """Return the chunks of a file, in order; its suffix gives the format."""
    if not isinstance(given, str | os.PathLike) or not str(given).strip():
        raise refuse("path", "the path of a file", given)
    path = Path(given).expanduser()
    raw = _bytes(path)
    ending = path.suffix.lower()
    if ending == ".pdf":
        found = _pdf(path, raw, size, overlap)
    elif ending in JSON_LINES:
        found = _json_lines(path, _text(path, raw), size, overlap)
    elif ending in MARKDOWN:
        found = _markdown(_text(path, raw), size, overlap)
    else:
        found = (Chunk(piece, {}) for piece in chunks(_text(path, raw), size, overlap))
    listed = list(found)
    if not listed:
        raise _wrong(path, "holds no text")
    return listed


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except IsADirectoryError:
        raise _wrong(path, "is a folder; name the files in it") from None
    except FileNotFoundError:
        raise _wrong(path, "does not exist") from None
    except (OSError, ValueError) as error:
        raise _wrong(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def encoding_of(raw: bytes) -> str:
    """Return the encoding that a byte order mark names, else UTF-8."""
    return next((name for mark, name in _MARKS if raw.startswith(mark)), "utf-8")


def _text(path: Path, raw: bytes) -> str:
    encoding = encoding_of(raw)
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        if b"\0" in raw[:8192]:
            raise _wrong(path, "is not a text; text, Markdown, JSON lines and PDF are read") from None
        raise _wrong(
            path, f"is not {encoding.upper()} (byte 0x{raw[error.start]:02x} at {error.start}); save it as UTF-8"
        ) from None
    if "\0" in text:
        raise _wrong(path, "is not a text (it holds NUL characters); text, Markdown, JSON lines and PDF are read")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _markdown(text: str, size: int, overlap: int) -> Iterator[Chunk]:
    for section in sections(text):
        known = {"headings": list(section.headings)} if section.headings else {}
        for piece in chunks(section.text, size, overlap):
            yield Chunk(piece, dict(known))


def _json_lines(path: Path, text: str, size: int, overlap: int) -> Iterator[Chunk]:
    """Yield one row per line, or several for a long text. The text is the field text, content or body, else the whole
    line; other fields are metadata."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise _wrong(path, f"has no JSON in line {number} ({error})") from None
        if not isinstance(fields, dict):
            raise _wrong(path, f"must have an object in each line, line {number} is {shown(fields)}")
        name = next((field for field in _TEXT_FIELDS if isinstance(fields.get(field), str)), None)
        body = line if name is None else fields.pop(name)
        for piece in chunks(body, size, overlap):
            yield Chunk(piece, {"line": number, **fields})


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _pdf(path: Path, raw: bytes, size: int, overlap: int) -> Iterator[Chunk]:
    require("pdf", str(path))
    import pypdf
    from pypdf.errors import PyPdfError

    try:
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise _wrong(path, "is encrypted; save it without a password")
        pages = [page.extract_text() for page in reader.pages]
    except PyPdfError as error:
        raise _wrong(path, f"cannot be read as PDF: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        # What pypdf raises where a damaged file leads it astray.
        raise _wrong(path, f"is a damaged PDF ({type(error).__name__}: {error})") from error
    if not any(page.strip() for page in pages):
        raise _wrong(path, "holds no text; a scan must be read by text recognition first")
    for number, page in enumerate(pages, 1):
        # NULs and lone surrogates, which PDFs contain, are accepted by no store.
        for piece in chunks(page.replace("\0", "").encode("utf-8", "replace").decode(), size, overlap):
            yield Chunk(piece, {"page": number})


def _wrong(path: Path, what: str) -> InputError:
    return InputError(f"{path} {what}; nothing was written", field="path")
