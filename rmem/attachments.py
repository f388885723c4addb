"""Images and other blobs in memories. They are stored in the memory itself, so that they are encrypted, exported and
erased with it, but apart from its words: a name such as `[attachment 1: image/png, 12 KB]` takes their place.

Blobs are bytes, data URLs (also inside longer texts), the `data` of a part with a media type, as chat APIs write
images, audio and files, and base64 texts of a thousand characters and more."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any

from .checks import MAX_DEPTH
from .contents import ATTACHMENTS, own_contents

_URL = re.compile(r"data:(?P<media>[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,\s]*)*;base64,(?P<data>[A-Za-z0-9+/_=%-]{16,})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_LONG = 1024  # characters of base64 that count as a blob without a media type beside them
_MEDIA_TYPE_KEYS = ("media_type", "mime_type", "mimeType", "format")
_UNKNOWN = "application/octet-stream"
_MAGIC_BYTES = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
    (b"%PDF", "application/pdf"),
)


def detach(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each blob by its name, and add the blobs under `ATTACHMENTS` if there are any. Does not descend below the
    depth that the check of contents refuses."""
    if not _may_hold(contents, 0):
        return dict(contents)
    work = _BlobCollector()
    apart = {key: work.value(value, 1) for key, value in contents.items()}
    return {**apart, ATTACHMENTS: work.blobs} if work.blobs else apart


def restore(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Reverse `detach`."""
    blobs = contents.get(ATTACHMENTS)
    shown = dict(own_contents(contents))
    return {key: _restore_value(value, blobs) for key, value in shown.items()} if blobs else shown


def _restore_value(value: Any, blobs: Mapping[str, Mapping[str, Any]]) -> Any:
    if isinstance(value, str):
        whole = blobs.get(value)
        if whole is not None and whole["bytes"]:
            return b64decode(whole["data"].partition(",")[2])
        for name, blob in blobs.items():
            if name in value:
                value = value.replace(name, blob["data"])
        return value
    if isinstance(value, dict):
        return {key: _restore_value(inside, blobs) for key, inside in value.items()}
    return [_restore_value(inside, blobs) for inside in value] if isinstance(value, list) else value


_BYTES = (bytes, bytearray, memoryview)


def _may_hold(value: Any, depth: int) -> bool:
    """Whether a value may contain a blob. A quick test, because every memory is checked and hardly any has one."""
    kind = type(value)
    if kind is float or kind is int:
        return False
    if kind is str:
        return len(value) > 16 and ("base64," in value or len(value) >= _LONG)
    if depth > MAX_DEPTH:
        return False
    if kind is dict or isinstance(value, Mapping):
        if "data" in value:
            return True
        value = value.values()
    elif kind is not list and not isinstance(value, list | tuple):
        return isinstance(value, _BYTES)
    for inside in value:  # noqa: SIM110 - a generator takes twice as long
        if _may_hold(inside, depth + 1):
            return True
    return False


class _BlobCollector:
    """Collects the blobs in one walk through contents."""

    def __init__(self) -> None:
        self.blobs: dict[str, dict[str, Any]] = {}
        self._names: dict[tuple[str, bool], str] = {}

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, _BYTES):
            blob = bytes(value)
            return self._name(data_url(blob), _media_of(blob), len(blob), is_bytes=True)
        if depth > MAX_DEPTH:
            return value
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        return [self.value(inside, depth + 1) for inside in value] if isinstance(value, list | tuple) else value

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        data, media = value.get("data"), _stated_media(value)
        named = {}  # before the other members, which would be named without the media type
        if media and isinstance(data, _BYTES):
            blob = bytes(data)
            named["data"] = self._name(data_url(blob), media, len(blob), is_bytes=True)
        elif media and isinstance(data, str) and _BASE64.fullmatch(data):
            named["data"] = self._name(data, media, len(data) * 3 // 4)
        return {key: named[key] if key in named else self.value(member, depth + 1) for key, member in value.items()}

    def _text(self, text: str) -> str:
        if "base64," in text:
            return _URL.sub(
                lambda url: self._name(url[0], url["media"] or _UNKNOWN, len(url["data"]) * 3 // 4),
                text,
            )
        if len(text) >= _LONG and _BASE64.fullmatch(text):
            return self._name(text, _media_of(_first_bytes(text)), len(text) * 3 // 4)
        return text

    def _name(self, data: str, media: str, size: int, *, is_bytes: bool = False) -> str:
        """Return the name of a blob; equal blobs share one."""
        name = self._names.get((data, is_bytes))
        if name is None:
            name = f"[attachment {len(self._names) + 1}: {media}, {_size(size)}]"
            self._names[data, is_bytes] = name
            self.blobs[name] = {"data": data, "bytes": is_bytes}
        return name


def data_url(blob: bytes) -> str:
    return f"data:{_media_of(blob)};base64,{b64encode(blob).decode()}"


def _stated_media(part: Mapping[Any, Any]) -> str | None:
    """Return the media type of a message part whose `data` is a blob; None if it states none."""
    for key in _MEDIA_TYPE_KEYS:
        if isinstance(part.get(key), str):
            return str(part[key])
    return _UNKNOWN if part.get("type") == "base64" else None


def _media_of(beginning: bytes) -> str:
    return next((media for sign, media in _MAGIC_BYTES if beginning.startswith(sign)), _UNKNOWN)


def _first_bytes(text: str) -> bytes:
    try:
        return b64decode(text[:12])
    except Error:
        return b""


def _size(size: int) -> str:
    # Few digits: the privacy policy could take a long number for a telephone number.
    return f"{size} bytes" if size < 1000 else f"{size / 1000:.0f} KB" if size < 1e6 else f"{size / 1e6:.1f} MB"
