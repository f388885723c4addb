"""`from memory.api.models import AgentState`."""

from remanence.agents.models import ActionData, ActionResult, AgentState

__all__ = ["ActionData", "ActionResult", "AgentState"]
