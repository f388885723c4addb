"""Register the Redis tiers that hold copies of a store's memories. The list is kept in the store, so that any process
that erases a person finds them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ..errors import StoreUnreachableError
from ..stores.base import RecordStore
from ..stores.capabilities import HotStore

_KEY = "redis_tiers"


def register(archive: RecordStore, stores: Sequence[HotStore]) -> None:
    """Add Redis stores to the list of those that hold copies of an archive's memories."""
    registered = _registered(archive)
    if new := [dict(store.place) for store in stores if dict(store.place) not in registered]:
        archive.set_meta(_KEY, json.dumps([*registered, *new]))
    archive.copies = tuple(stores)


@contextmanager
def open_copies(archive: RecordStore) -> Iterator[list[HotStore]]:
    """Open all stores that hold copies; StoreUnreachableError if one does not answer."""
    open_stores = {json.dumps(dict(store.place)): store for store in archive.copies}
    with ExitStack() as closing:
        found = []
        for place in _registered(archive):
            store = open_stores.get(json.dumps(place))
            found.append(store if store is not None else closing.enter_context(_open(place)))
        for store in found:
            try:
                store.get_meta("embedder")  # any read shows whether it answers
            except StoreUnreachableError as error:
                raise StoreUnreachableError(
                    f"memories of this store are also in {store!r}, which cannot be reached: {error}. Nothing was "
                    f"changed. If that Redis no longer exists, call brain.store.set_meta({_KEY!r}, '[]')"
                ) from error
        yield found


def _open(place: Mapping[str, Any]) -> HotStore:
    from ..stores.redis import RedisRecordStore

    return RedisRecordStore(**place)


def _registered(archive: RecordStore) -> list[dict[str, Any]]:
    return list(json.loads(archive.get_meta(_KEY) or "[]"))
