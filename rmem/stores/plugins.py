"""Stores of plugins: `Brain("name://…")` calls the entry point `name` of the group `rmem.stores` with the whole address
and the options of the Brain."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigError, RemanenceError, StoreError
from ..plugins import Plugin, reason
from .base import MemoryStore
from .value_records import keeps_values


def open_plugin(plugin: Plugin, address: str, **options: Any) -> MemoryStore[Any]:
    """Open the store of a plugin at an address; errors name the plugin."""
    make = plugin.load()
    try:
        store = make(address, **options)
    except RemanenceError:
        raise
    except Exception as error:
        raise StoreError(
            f"the store plugin {plugin.name!r} of {plugin.origin} could not open its address: {reason(error)}"
        ) from error
    if not keeps_values(store):
        raise ConfigError(
            f"the store plugin {plugin.name!r} of {plugin.origin} must give a MemoryStore or a RecordStore, "
            f"but gave a {type(store).__name__}"
        )
    opened: MemoryStore[Any] = store
    return opened
