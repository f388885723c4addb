"""A plugin of pytest: BrainChatStore in the place of LlamaIndex's SimpleChatStore."""

from __future__ import annotations

from typing import Any

import llama_index.core.storage.chat_store

from rmem import Brain
from rmem.integrations.llama_index import BrainChatStore


class SimpleChatStore(BrainChatStore):
    def __init__(self, **options: Any) -> None:
        super().__init__(Brain(":memory:"), **options)


llama_index.core.storage.chat_store.SimpleChatStore = SimpleChatStore  # type: ignore[misc, assignment]
