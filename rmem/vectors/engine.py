"""The vector engine of a Brain: opens the engine that was given or that the store has recorded, and passes calls on to
it. Without an engine, every method does nothing."""

from __future__ import annotations

import logging
from os import urandom
from typing import TYPE_CHECKING

from .. import checks
from ..errors import ConfigError, RemanenceError, StoreUnreachableError
from ..filters import Filter
from ..forks import Forking, new_lock, watch
from ..stores.base import RecordStore
from ..stores.capabilities import VectorFeed
from . import ACCEPTED, open_vectors

if TYPE_CHECKING:
    from ..index.candidate_source import CandidateSource
    from ..index.filtered_rows import FilteredRows
    from .base import VectorIndex
    from .follower import VectorFollower

log = logging.getLogger(__name__)

_ADDRESS = "vectors"  # metadata of the store
_STORE_ID = "store_id"
_OBJECT = "given: "  # prefix of the recorded name of a VectorIndex that was passed in


class VectorEngine(Forking):
    """`VectorEngine(store, "qdrant://…")`; instead of an address a VectorIndex, "none", or None for the engine that the
    store has recorded."""

    def __init__(self, store: RecordStore, wanted: str | VectorIndex | None) -> None:
        self._store, self._wanted = store, wanted
        self._lock = new_lock()
        self._resolved = False
        self._follower: VectorFollower | None = None
        self._problem: str | None = None
        watch(self)

    def after_fork_in_child(self) -> None:
        """Open the engine anew in a child: connections of most engines do not survive a fork."""
        self._resolved, self._follower = self._wanted == "none", None

    def attach(self) -> None:
        """Open the requested engine, and record it in the store."""
        wanted = self._wanted
        if wanted == "none":
            if self._store.get_meta(_ADDRESS):
                self._store.set_meta(_ADDRESS, "")
            self._resolved = True
            return
        if wanted is not None and not isinstance(wanted, str):
            from .base import VectorIndex

            if not isinstance(wanted, VectorIndex):
                raise checks.refuse("vectors", ACCEPTED, wanted)
        with self._lock:
            self._open(wanted)

    def _open(self, wanted: str | VectorIndex | None) -> None:
        store = self._store
        if wanted is None:
            raise ConfigError(f"vectors must be {ACCEPTED}")
        if not isinstance(store, VectorFeed):
            raise ConfigError(
                f"vectors cannot be given with {store.kind}, which does not list what came and went "
                "(the capability 'vector feed'); SQLite files, PostgreSQL and :memory: do"
            )
        if store.encryption is not None and store.encryption.hides_vectors:
            raise ConfigError(
                "vectors cannot be given with this encryption: an engine would keep in the clear what texts can be "
                "guessed from. Encryption(vectors=True) says that vectors need not be hidden"
            )
        from .follower import VectorFollower

        index = open_vectors(wanted, self._collection()) if isinstance(wanted, str) else wanted
        recorded = wanted if isinstance(wanted, str) else f"{_OBJECT}{index.name}"
        if store.get_meta(_ADDRESS) != recorded:
            store.set_meta(_ADDRESS, recorded)
        self._follower, self._resolved = VectorFollower(store, index), True

    def _collection(self) -> str:
        """Return a collection name unique to this store: two stores use the same numbers."""
        known = self._store.get_meta(_STORE_ID)
        if known is None:
            known = urandom(6).hex()
            self._store.set_meta(_STORE_ID, known)
        return f"rmem_{known}"

    @property
    def follower(self) -> VectorFollower | None:
        """The follower of the engine; None if there is no engine or it cannot be used."""
        if not self._resolved:
            with self._lock:
                if not self._resolved:
                    self._open_recorded()
        return self._follower

    def _open_recorded(self) -> None:
        """Open the engine that the store has recorded; log a warning if it cannot be opened here."""
        self._resolved = True
        recorded = self._store.get_meta(_ADDRESS) if isinstance(self._store, VectorFeed) else None
        if not recorded:
            return
        try:
            if recorded.startswith(_OBJECT):
                raise ConfigError(f"pass it again: Brain(…, vectors={recorded.removeprefix(_OBJECT)})")
            self._open(recorded)
        except RemanenceError as error:
            self._problem = f"the vectors of this store are also at {recorded!r}, which cannot be used here: {error}"
            log.warning("%s", self._problem)

    def catch_up(self) -> bool:
        """Send new rows to the engine; return whether it can be searched."""
        follower = self.follower
        return follower is not None and follower.catch_up()

    def search_in(self, rows: FilteredRows | CandidateSource, where: Filter) -> FilteredRows | CandidateSource:
        """Return the same rows, whose nearest vectors are found by the engine."""
        if self._follower is None:
            return rows
        from .engine_rows import with_engine

        return with_engine(rows, where, self._follower)

    def on_write(self, count: int) -> None:
        """Call after the store has acknowledged a write."""
        if self._follower is not None:
            self._follower.on_write(count)

    def on_removal(self, *, strict: bool = False) -> None:
        """Call after memories were removed from the store; see VectorFollower.on_removal."""
        follower = self.follower
        if follower is not None:
            follower.on_removal(strict=strict)
        elif strict and self._problem is not None:
            raise StoreUnreachableError(
                f"the memories are erased from the store, but not their vectors: {self._problem}. The next Brain that "
                "has the engine removes them"
            )

    def rebuild(self) -> str | None:
        """Empty the engine and fill it; return a description of what it holds, None without an engine."""
        if self._wanted is not None:
            self.attach()
        follower = self.follower
        if follower is None:
            if self._problem is not None:
                log.warning("%s", self._problem)
            return None
        count = follower.rebuild()
        held = "vectors" if count is None else f"{count:,} vectors"
        return f"{follower.index.name} with {held}"

    def examine(self) -> tuple[bool, str] | None:
        """Compare the engine with the store; return (whether they agree, details), None without an engine."""
        follower = self.follower
        if follower is None:
            return None if self._problem is None else (False, self._problem)
        try:
            follower.sync()
            held = follower.index.count()
        except RemanenceError as error:
            return False, str(error)
        known = self._store.stats().vectors
        if held is not None and held != known:
            return (
                False,
                f"{follower.index.name} holds {held:,} vectors, the store {known:,}: rmem reindex fills it anew",
            )
        return True, f"{known:,} at {follower.index.name}"

    def close(self) -> None:
        """Synchronise and close the engine. Closing twice is harmless."""
        with self._lock:
            follower, self._follower = self._follower, None
            self._resolved = True
        if follower is not None:
            follower.close()
