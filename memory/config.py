"""`from memory.config import MemoryConfig`, as the document writes it."""

from remanence.agents.config import IMConfig, LTMConfig, MemoryConfig, RedisIMConfig, RedisSTMConfig, STMConfig

__all__ = ["IMConfig", "LTMConfig", "MemoryConfig", "RedisIMConfig", "RedisSTMConfig", "STMConfig"]
