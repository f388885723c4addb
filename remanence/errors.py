"""Every error this package raises on purpose, in one tree.

RemanenceError
├── InputError                the caller's argument is wrong; nothing was written (also a ValueError)
│   ├── UnknownFieldError     a field, key or option that does not exist
│   └── VectorError           wrong dimension, NaN or infinity in a vector
├── NotFoundError             no memory with that id (also a KeyError)
├── ConfigError               settings, addresses and plugins
├── StoreError                a store could not do what was asked
│   ├── StoreClosedError      used after close()
│   ├── StoreBusyError        another process held the write lock for too long
│   ├── StoreFullError        no space left on the device
│   ├── StoreReadOnlyError    the file or its folder cannot be written
│   ├── StoreCorruptError     the file is damaged, truncated or not ours
│   └── StoreVersionError     the file was written by a newer version
└── EmbedderError             an embedder could not load or answer
    └── EmbedderMismatchError the store holds vectors of another embedder

Bad input names the field, what was expected and what came: `step must be a whole number ≥ 0, got True`.
"""

from __future__ import annotations


class RemanenceError(Exception):
    """Base of all errors raised on purpose by this package."""


class InputError(RemanenceError, ValueError):
    """An argument is wrong. `field` names it. Nothing was written."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class UnknownFieldError(InputError):
    """A field, key or option that does not exist."""


class VectorError(InputError):
    """A vector of the wrong dimension, or one that holds NaN or infinity."""


class NotFoundError(RemanenceError, KeyError):
    """No memory has that id."""

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"no memory with id {memory_id!r}")
        self.memory_id = memory_id

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class ConfigError(RemanenceError):
    """Settings, addresses or plugins are wrong."""


class StoreError(RemanenceError):
    """A store could not do what was asked."""


class StoreClosedError(StoreError):
    """The store was used after close()."""


class StoreBusyError(StoreError):
    """Another process held the write lock for longer than the time-out."""


class StoreFullError(StoreError):
    """No space left on the device; the write was rolled back."""


class StoreReadOnlyError(StoreError):
    """The file or its folder cannot be written."""


class StoreCorruptError(StoreError):
    """The file is damaged, truncated or not one of ours."""


class StoreVersionError(StoreError):
    """The file was written by a newer version of Remanence."""


class EmbedderError(RemanenceError):
    """An embedder could not load or answer."""


class EmbedderMismatchError(EmbedderError):
    """The store holds vectors of another embedder; `rmem reindex` re-embeds them."""
