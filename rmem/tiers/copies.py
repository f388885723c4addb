"""Where a store's memories are kept a second time: the Redis tiers of its agents. They are noted in the store, so that
whoever erases a person there finds them, in any process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ..errors import StoreUnreachableError
from ..stores.base import HotStore, RecordStore

_NOTE = "redis_tiers"


def register(archive: RecordStore, stores: Sequence[HotStore]) -> None:
    """Note stores that hold copies of an archive's memories from now on."""
    noted = _noted(archive)
    if new := [dict(store.place) for store in stores if dict(store.place) not in noted]:
        archive.note(_NOTE, json.dumps([*noted, *new]))
    archive.copies = tuple(stores)


@contextmanager
def opened(archive: RecordStore) -> Iterator[list[HotStore]]:
    """All stores that hold copies; StoreUnreachableError if one does not answer."""
    at_hand = {json.dumps(dict(store.place)): store for store in archive.copies}
    with ExitStack() as closing:
        found = []
        for place in _noted(archive):
            store = at_hand.get(json.dumps(place))
            found.append(store if store is not None else closing.enter_context(_open(place)))
        for store in found:
            try:
                store.note("embedder")  # any question will do
            except StoreUnreachableError as error:
                raise StoreUnreachableError(
                    f"memories of this store are also in {store!r}, which cannot be asked: {error}. Nothing was "
                    f"changed. If that Redis is gone for good, brain.store.note({_NOTE!r}, '[]') says so"
                ) from error
        yield found


def _open(place: Mapping[str, Any]) -> HotStore:
    from ..stores.redis import RedisRecordStore

    return RedisRecordStore(**place)


def _noted(archive: RecordStore) -> list[dict[str, Any]]:
    return list(json.loads(archive.note(_NOTE) or "[]"))
