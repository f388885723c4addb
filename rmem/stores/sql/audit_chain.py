"""The key that seals a store's audit log, and the head of the log, in a small file beside the store. Cutting or
rewriting the log is detected unless this file is changed as well. A key in RMEM_AUDIT_KEY is not stored beside the
store. Threat model: docs/decisions/0025-audit-chain.md."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

from ...errors import ConfigError
from ...filelocks import lock
from ...private_files import publish

log = logging.getLogger(__name__)
KEY = "RMEM_AUDIT_KEY"
ENDING = ".audit"
_MIN_KEY = 32  # characters
_KEY_LINE = 65  # the key in hex, and the end of the line
_HEAD_LINE = 64


class AuditHead(NamedTuple):
    """The last entry of an audit log that this machine knows."""

    n: int
    seal: str


class AuditChain:
    """The key and the head of one store. Without a place there is no file; the environment may provide a key."""

    def __init__(self, place: Path | None) -> None:
        self.place = place
        self._key: bytes | None = None

    @classmethod
    def beside(cls, store: Path) -> AuditChain:
        """Return the chain of a store's file."""
        return cls(Path(f"{store}{ENDING}"))

    def copy_to(self, store: Path, head: AuditHead | None) -> None:
        """Write the key and the head beside a copy of the store."""
        copy = AuditChain.beside(store)
        content = self._read(0, _KEY_LINE + _HEAD_LINE)
        if content and copy.place is not None:
            with open(os.open(copy.place, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                file.write(content)
            copy.save(head, back=True)

    def key(self, *, make: bool = False) -> bytes | None:
        """Return the key, None if there is none; with `make`, create one."""
        given = os.environ.get(KEY, "")
        if given:
            if len(given) < _MIN_KEY:
                raise ConfigError(f"{KEY} must have at least {_MIN_KEY} characters")
            return given.encode()[:64]
        if self._key is None and self.place is not None:
            self._key = self._read_key()
            if self._key is None and make:
                try:
                    self._make(os.urandom(32).hex())
                    self._key = self._read_key()
                except OSError as error:
                    log.warning("the audit log of %s is sealed without a key: %s", self.place.stem, error)
        return self._key

    def _read_key(self) -> bytes | None:
        line = self._read(0, _KEY_LINE)
        return bytes.fromhex(line.decode("ascii").strip()) or None

    def _make(self, key: str) -> None:
        """Create the file with a key; of two processes, one wins."""
        assert self.place is not None
        draft = self.place.with_name(f"{self.place.name}.{os.urandom(4).hex()}")
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(f"{key:<{_KEY_LINE - 1}}\n{'':<{_HEAD_LINE - 1}}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        publish(draft, self.place)

    def head(self) -> AuditHead | None:
        return _parse(self._read(_KEY_LINE, _HEAD_LINE))

    def save(self, head: AuditHead | None, *, back: bool = False) -> None:
        """Save the head of the log, with `back` even if it is before the saved one. Best effort: an older head proves
        less."""
        if head is None or self.place is None:
            return
        try:
            if not self.place.exists():
                self._make("")  # the environment has the key
            file = os.open(self.place, os.O_RDWR)
            try:
                lock(file, wait=True)  # the later head wins
                os.lseek(file, _KEY_LINE, os.SEEK_SET)
                known = _parse(os.read(file, _HEAD_LINE))
                if back or known is None or known.n < head.n:
                    os.lseek(file, _KEY_LINE, os.SEEK_SET)
                    os.write(file, f"{head.n} {head.seal}".ljust(_HEAD_LINE - 1).encode() + b"\n")
            finally:
                os.close(file)
        except OSError as error:
            log.warning("the head of the audit log was not noted: %s", error)

    def _read(self, start: int, size: int) -> bytes:
        if self.place is None:
            return b""
        try:
            file = os.open(self.place, os.O_RDONLY)
        except OSError:
            return b""
        try:
            os.lseek(file, start, os.SEEK_SET)
            return os.read(file, size)
        finally:
            os.close(file)


def _parse(line: bytes) -> AuditHead | None:
    number, _, seal = line.decode("ascii").strip().partition(" ")
    return AuditHead(int(number), seal) if number else None
