"""`from memory.api.types import MemoryEntry`."""

from rmem.agents.types import *  # noqa: F403
from rmem.agents.types import __all__ as __all__
