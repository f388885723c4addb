"""`from memory.config import MemoryConfig`, as the document writes it.

STMConfig, IMConfig and LTMConfig are here what the document's authors made them: other names of the tiers in Redis and
in SQLite. Tiers in the embedded file are `STMConfig` and `IMConfig` of `rmem.agents`, or a mapping."""

from rmem.agents.config import AutoencoderConfig, MemoryConfig, RedisIMConfig, RedisSTMConfig, SQLiteLTMConfig

from .models import MemoryConfigModel as MemoryConfigModel

STMConfig, IMConfig, LTMConfig = RedisSTMConfig, RedisIMConfig, SQLiteLTMConfig

__all__ = ["AutoencoderConfig", "MemoryConfig", "RedisIMConfig", "RedisSTMConfig", "SQLiteLTMConfig"]
