"""The vector engine of a Brain: which one it is, and how the Brain tells and asks it. Without one, every method is a
no-op."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING

from .. import checks
from ..errors import ConfigError, RemanenceError, StoreUnreachableError
from ..filters import Filter
from ..forks import Forking, new_lock, watch
from ..stores.base import RecordStore
from ..stores.capabilities import VectorFeed
from . import KNOWN, open_vectors

if TYPE_CHECKING:
    from ..index.candidate_source import CandidateSource
    from ..index.filtered_rows import FilteredRows
    from .base import VectorIndex
    from .follower import VectorFollower

log = logging.getLogger(__name__)

NOTED = "vectors"
_GIVEN = "given: "
_ID = "store_id"


class VectorEngine(Forking):
    """`VectorEngine(store, "qdrant://…")`, with a VectorIndex, with "none", or with None for the one that the store has
    noted."""

    def __init__(self, store: RecordStore, wanted: str | VectorIndex | None) -> None:
        self._store, self._wanted = store, wanted
        self._lock = new_lock()
        self._looked = False
        self._follower: VectorFollower | None = None
        self._problem: str | None = None
        watch(self)

    def after_fork_in_child(self) -> None:
        """Connections of most engines do not survive a fork. A child opens its own; without one the store answers."""
        self._looked, self._follower = self._wanted == "none", None

    def attach(self) -> None:
        """Use the engine that is wanted, and note it in the store."""
        wanted = self._wanted
        if wanted == "none":
            if self._store.get_meta(NOTED):
                self._store.set_meta(NOTED, "")
            self._looked = True
            return
        if wanted is not None and not isinstance(wanted, str):
            from .base import VectorIndex

            if not isinstance(wanted, VectorIndex):
                raise checks.refuse("vectors", KNOWN, wanted)
        with self._lock:
            self._open(wanted)

    def _open(self, wanted: str | VectorIndex | None) -> None:
        store = self._store
        if wanted is None:
            raise ConfigError(f"vectors must be {KNOWN}")
        if not isinstance(store, VectorFeed):
            raise ConfigError(
                f"vectors cannot be given with {type(store).__name__}, which does not tell what came and went "
                "(the capability 'vector feed'); SQLite files, PostgreSQL and :memory: do"
            )
        if store.encryption is not None and store.encryption.hides_vectors:
            raise ConfigError(
                "vectors cannot be given with this encryption: an engine would keep in the clear what texts can be "
                "guessed from. Encryption(vectors=True) says that vectors need not be hidden"
            )
        from .follower import VectorFollower

        index = open_vectors(wanted, self._collection()) if isinstance(wanted, str) else wanted
        noted = wanted if isinstance(wanted, str) else f"{_GIVEN}{index.name}"
        if store.get_meta(NOTED) != noted:
            store.set_meta(NOTED, noted)
        self._follower, self._looked = VectorFollower(store, index), True

    def _collection(self) -> str:
        """A name that no other store has, where an address names none: numbers of two stores must not meet."""
        known = self._store.get_meta(_ID)
        if known is None:
            known = secrets.token_hex(6)
            self._store.set_meta(_ID, known)
        return f"rmem_{known}"

    @property
    def follower(self) -> VectorFollower | None:
        """The engine beside the store, if there is one and it can be used."""
        if not self._looked:
            with self._lock:
                if not self._looked:
                    self._look()
        return self._follower

    def _look(self) -> None:
        """Open the engine that the store has noted. One that cannot be opened here is no reason to fail."""
        self._looked = True
        noted = self._store.get_meta(NOTED) if isinstance(self._store, VectorFeed) else None
        if not noted:
            return
        try:
            if noted.startswith(_GIVEN):
                raise ConfigError(f"pass it again: Brain(…, vectors={noted.removeprefix(_GIVEN)})")
            self._open(noted)
        except RemanenceError as error:
            self._problem = f"the vectors of this store are also at {noted!r}, which cannot be used here: {error}"
            log.warning("%s", self._problem)

    def catch_up(self) -> bool:
        """Whether the engine may be asked."""
        follower = self.follower
        return follower is not None and follower.catch_up()

    def over(self, rows: FilteredRows | CandidateSource, where: Filter) -> FilteredRows | CandidateSource:
        """Rows whose neighbours the engine looks for."""
        if self._follower is None:
            return rows
        from .rows import with_engine

        return with_engine(rows, where, self._follower)

    def wrote(self, number: int) -> None:
        """Called after a write that was acknowledged by the store."""
        if self._follower is not None:
            self._follower.wrote(number)

    def forgotten(self, *, strict: bool = False) -> None:
        """Called after the store has forgotten something; see VectorFollower.forgotten."""
        follower = self.follower
        if follower is not None:
            follower.forgotten(strict=strict)
        elif strict and self._problem is not None:
            raise StoreUnreachableError(
                f"the memories are erased from the store, but not their vectors: {self._problem}. The next Brain that "
                "has the engine removes them"
            )

    def rebuild(self) -> str | None:
        """Empty the engine and fill it; what it holds then, in words. None without an engine."""
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
        """Whether the engine holds what the store does, and how that is; None without an engine."""
        follower = self.follower
        if follower is None:
            return None if self._problem is None else (False, self._problem)
        try:
            follower.follow()
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
        """Bring the engine up to the store and let it go. Closing twice is harmless."""
        with self._lock:
            follower, self._follower = self._follower, None
            self._looked = True
        if follower is not None:
            follower.close()
