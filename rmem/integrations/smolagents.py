"""smolagents on a Brain: memory tools, and a callback that stores the steps of an agent.

from rmem.integrations.smolagents import BrainSteps, memory_tools
agent = CodeAgent(tools=memory_tools("memories.db"), model=model, step_callbacks=BrainSteps("memories.db").callbacks())
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..extras import require
from .tools import memory_functions
from .turns import Turn, Turns

require("smolagents", "rmem.integrations.smolagents")

from smolagents import Tool  # noqa: E402
from smolagents.memory import ActionStep, FinalAnswerStep, MemoryStep, PlanningStep, TaskStep  # noqa: E402

STEP = "smolagents_step"
"""The type of memories that are steps of an agent."""

_WORDS = ("task", "plan", "model_output", "code_action", "observations", "output", "action_output")


class _MemoryTool(Tool):
    output_type = "string"
    skip_forward_signature_validation = True  # `forward` is set below

    def __init__(self, function: Callable[[str], str], argument: str) -> None:
        about, _, described = (function.__doc__ or "").partition("Args:")
        self.name = function.__name__
        self.description = " ".join(about.split())
        self.inputs = {argument: {"type": "string", "description": described.partition(":")[2].strip()}}
        self.forward = function
        super().__init__()


def memory_tools(
    brain: Brain | str | Path | None = None, *, user: str = "default", agent: str = "smolagents", k: int = 5
) -> list[Tool]:
    """Make the tools `remember` and `recall` for one user."""
    remember, recall = memory_functions(brain, user=user, agent=agent, k=k)
    return [_MemoryTool(remember, "text"), _MemoryTool(recall, "question")]


class BrainSteps:
    """The steps of the runs of one session, as memories in `brain`, a Brain or its address.

    Give `callbacks()` to an agent as step_callbacks. `steps()` returns the steps, as smolagents' `step.dict()`;
    `recall` finds earlier steps by their words.
    """

    def __init__(
        self, brain: Brain | str | Path | None = None, *, session: str = "default", agent: str = "smolagents"
    ) -> None:
        self.session = session
        self._turns = Turns(brain, STEP, agent=agent)
        self.brain = self._turns.brain

    def callbacks(self) -> dict[type[MemoryStep], Callable[..., None]]:
        """Return the callbacks for every kind of step."""
        return dict.fromkeys((TaskStep, ActionStep, PlanningStep, FinalAnswerStep), self.keep)

    def keep(self, step: MemoryStep, agent: Any = None) -> None:
        """Store a step, without images and without the messages that were sent to the model."""
        value = {key: field for key, field in step.dict().items() if key not in ("model_input_messages", "task_images")}
        value.pop("observations_images", None)
        plain = json.loads(json.dumps(value, default=str))
        words = "\n".join(str(value[key]) for key in _WORDS if value.get(key))
        self._turns.add([Turn(type(step).__name__, words, plain)], self.session)

    def steps(self) -> list[dict[str, Any]]:
        """Return all steps of this session, oldest first."""
        return self._turns.read(self.session)

    def recall(self, question: str, k: int = 5) -> list[str]:
        """Return the steps of this session that best answer a question, as texts."""
        return [hit.text for hit in self._turns.recall(question, k, self.session)]

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()
