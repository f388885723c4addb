"""Every error this package raises on purpose, in one tree.

RemanenceError
├── InputError                the caller's argument is wrong; nothing was written (also a ValueError)
│   ├── UnknownFieldError     a field, key or option that does not exist
│   ├── VectorError           wrong dimension, NaN or infinity in a vector
│   └── PrivacyError          a memory holds what the privacy policy refuses
├── NotFoundError             no memory with that id (also a KeyError)
├── ConfigError               settings, addresses and plugins
├── StoreError                a store could not do what was asked
│   ├── StoreClosedError      used after close()
│   ├── StoreBusyError        another process held the write lock for too long
│   │   └── StoreMovedError   these rows are on another server now
│   ├── StoreForkedError      the process was forked while a thread used the file
│   ├── StoreFullError        no space left on the device
│   ├── StoreReadOnlyError    the file or its folder cannot be written
│   ├── StoreCorruptError     the file is damaged, truncated or not ours
│   ├── StoreVersionError     the file was written by a newer version
│   ├── KeyMissingError       a memory is encrypted and there is no key
│   ├── KeyWrongError         the master key is not the one of this store
│   ├── StoreUnreachableError the server of a store does not answer
│   └── ServerError           a Brain on a server: refused, failed or not offered there; `status` says how
├── EmbedderError             an embedder could not load or answer
│   └── EmbedderMismatchError the store holds vectors of another embedder
├── SummariserError           a model that summarises did not answer
├── FactReaderError           a model that reads facts did not answer
├── TableError                what tables and SQL raise; `status` is the answer of the server
│   ├── SqlError              a statement cannot be read, or its values do not fit (also an InputError)
│   │   └── SqlUnsupportedError   a construct that is not offered; the message names it
│   ├── NoSuchTableError      no such table, column or index in this workspace
│   ├── TableExistsError      there is one with that name
│   ├── ConstraintError       a row breaks a key, NOT NULL, CHECK or reference
│   ├── StatementTimeoutError the statement ran longer than it may
│   ├── TooManyRowsError      the answer is longer than it may be
│   └── RemoteError           the server refused or failed; `status` says how
└── MemoryAPIException        what `rmem.agents` raises; has agent_id, tier and recoverable
    ├── MemoryStoreException        a memory could not be stored
    │   └── MemoryStoreInputError
    ├── MemoryRetrievalException    memories could not be read
    │   └── MemoryRetrievalInputError
    ├── MemoryMaintenanceException  memories could not be moved between tiers
    │   └── MemoryMaintenanceInputError
    ├── MemoryConfigException       a configuration is wrong (also a ConfigError)
    │   └── MemoryConfigInputError
    └── MemoryInputError            an argument is wrong (also an InputError, so a ValueError)

Bad input to the agents' API is both at once: a step of -1 raises what `except MemoryStoreException` catches, and
`except MemoryInputError` and `except ValueError` too. Each class that ends in InputError is such a pair;
`MemoryStoreException.caused_by(error)` chooses.

Bad input names the field, what was expected and what came: `step must be a whole number ≥ 0, got True`.
"""

from __future__ import annotations

from typing import ClassVar


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


class PrivacyError(InputError):
    """A memory contains something that the privacy policy refuses. `kind` says what; the value is never shown."""

    def __init__(self, message: str, *, field: str | None = None, kind: str | None = None) -> None:
        super().__init__(message, field=field)
        self.kind = kind


class NotFoundError(RemanenceError, KeyError):
    """No memory, or no fact, has that id."""

    def __init__(self, memory_id: str, what: str = "memory") -> None:
        super().__init__(f"no {what} with id {memory_id!r}")
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


class StoreMovedError(StoreBusyError):
    """These rows are on another server now, or are being brought here; nothing was read or written. Look up again where
    they are."""


class StoreForkedError(StoreError):
    """The process was forked while a thread used the file; the child cannot use it."""


class StoreFullError(StoreError):
    """No space left on the device; the write was rolled back."""


class StoreReadOnlyError(StoreError):
    """The file or its folder cannot be written."""


class StoreCorruptError(StoreError):
    """The file is damaged, truncated or not one of ours."""


class StoreVersionError(StoreError):
    """The file was written by a newer version of Remanence."""


class KeyMissingError(StoreError):
    """A memory is encrypted, and no master key was given."""


class KeyWrongError(StoreError):
    """The master key that was given does not open the keys of this store."""


class StoreUnreachableError(StoreError):
    """The server of a store does not answer. What was being written may or may not have arrived."""


class ServerError(StoreError):
    """The server of a Brain refused, failed, or does not support the call; `status` is its HTTP status."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class EmbedderError(RemanenceError):
    """An embedder could not load or answer."""


class EmbedderMismatchError(EmbedderError):
    """The store holds vectors of another embedder; `rmem reindex` re-embeds them."""


class SummariserError(RemanenceError):
    """A summarising model did not answer, or not with a summary."""


class FactReaderError(RemanenceError):
    """A model that reads facts did not answer, or not with facts."""


class TableError(RemanenceError):
    """Base of the errors of tables and SQL. `status` is the HTTP status of the server."""

    status = 400


class SqlError(TableError, InputError):
    """A statement cannot be read, or its values do not fit its columns. Nothing was written."""


class SqlUnsupportedError(SqlError):
    """A construct that is not supported; the message names it."""


class NoSuchTableError(TableError):
    """No table, column or index of that name in this workspace."""

    status = 404


class TableExistsError(TableError):
    """There is already one of that name."""

    status = 409


class ConstraintError(TableError):
    """A row breaks a key, NOT NULL, a CHECK or a reference; the statement was rolled back."""

    status = 409


class StatementTimeoutError(TableError):
    """The statement ran longer than it may; it was stopped and rolled back."""

    status = 408


class TooManyRowsError(TableError):
    """The answer has more rows than it may; use LIMIT, or stream it."""

    status = 413


class RemoteError(TableError):
    """The server refused or failed."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class MemoryAPIException(RemanenceError):
    """Base of what the agents' API raises. `agent_id`, `tier` and `field` say where, if known; `recoverable` says
    whether the same call can succeed later or a corrected one now. Bad input, a busy or full store and a lost
    connection are recoverable; a damaged or closed store is not.
    """

    _for_bad_input: ClassVar[type[MemoryAPIException] | None] = None

    def __init__(
        self,
        message: str,
        *,
        agent_id: str | None = None,
        tier: str | None = None,
        recoverable: bool = False,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.agent_id = agent_id
        self.tier = tier
        self.recoverable = recoverable
        self.field = field

    @classmethod
    def caused_by(cls, error: Exception, *, agent_id: str | None = None, tier: str | None = None) -> MemoryAPIException:
        """Convert an error to this kind of exception: `raise MemoryStoreException.caused_by(error) from error`."""
        kind = cls._for_bad_input if isinstance(error, InputError) and cls._for_bad_input else cls
        message = str(error) or type(error).__name__
        return kind(
            message,
            agent_id=agent_id,
            tier=tier,
            recoverable=isinstance(error, _RECOVERABLE),
            field=getattr(error, "field", None),
        )


class MemoryStoreException(MemoryAPIException):
    """A state, action or interaction could not be stored."""


class MemoryRetrievalException(MemoryAPIException):
    """Memories could not be read or searched."""


class MemoryMaintenanceException(MemoryAPIException):
    """Memories could not be moved between tiers, compressed or restored."""


class MemoryConfigException(MemoryAPIException, ConfigError):
    """A configuration is wrong: an unknown key, a bad value, an address that leads nowhere."""


class MemoryInputError(MemoryAPIException, InputError):
    """An argument of the agents' API is wrong; nothing was written."""


class MemoryStoreInputError(MemoryStoreException, MemoryInputError):
    """A value that cannot be stored."""


class MemoryRetrievalInputError(MemoryRetrievalException, MemoryInputError):
    """An argument of a search is wrong."""


class MemoryMaintenanceInputError(MemoryMaintenanceException, MemoryInputError):
    """An argument of a maintenance call is wrong."""


class MemoryConfigInputError(MemoryConfigException, MemoryInputError):
    """A key or a value of a configuration is wrong."""


MemoryAPIException._for_bad_input = MemoryInputError
MemoryStoreException._for_bad_input = MemoryStoreInputError
MemoryRetrievalException._for_bad_input = MemoryRetrievalInputError
MemoryMaintenanceException._for_bad_input = MemoryMaintenanceInputError
MemoryConfigException._for_bad_input = MemoryConfigInputError

_RECOVERABLE = (InputError, ConfigError, StoreBusyError, StoreFullError, ConnectionError, TimeoutError)
