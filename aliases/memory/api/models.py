"""`from memory.api.models import AgentState`."""

from rmem.agents.models import ActionData, ActionResult, AgentState

__all__ = ["ActionData", "ActionResult", "AgentState"]
