"""`from memory.api.types import MemoryEntry`."""

from remanence.agents.types import *  # noqa: F403
from remanence.agents.types import __all__ as __all__
