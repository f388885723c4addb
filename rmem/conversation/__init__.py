"""The memory of an agent that talks: messages within a token limit, everything else in long-term memory, and recall of
experiences. The façade of the Advanced Memory System Guide; this module lists its public names."""

from __future__ import annotations

from .adapter import AgentMemory
from .enhanced import EnhancedAgentMemory
from .summarisers import ChatSummariser, ExtractiveSummariser

__all__ = ["AgentMemory", "ChatSummariser", "EnhancedAgentMemory", "ExtractiveSummariser"]
