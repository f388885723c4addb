"""The memory of a conversational agent: messages within a token limit, everything else in long-term memory, and recall
of experiences. It follows the Advanced Memory System Guide; this module lists the public names."""

from __future__ import annotations

from .adapter import AgentMemory
from .enhanced import EnhancedAgentMemory
from .summarisers import ChatSummariser, ExtractiveSummariser

__all__ = ["AgentMemory", "ChatSummariser", "EnhancedAgentMemory", "ExtractiveSummariser"]
