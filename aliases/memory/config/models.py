"""Configurations that check their fields. All of ours do, so these are the same classes under other names."""

from rmem.agents import config

AutoencoderConfigModel = config.AutoencoderConfig
MemoryConfigModel = config.MemoryConfig
RedisIMConfigModel = config.RedisIMConfig
RedisSTMConfigModel = config.RedisSTMConfig
SQLiteLTMConfigModel = config.SQLiteLTMConfig
