"""smolagents: its own tests of a tool, and what is ours alone."""

from __future__ import annotations

import shutil
from importlib.metadata import version

import pytest

pytest.importorskip("smolagents", reason="smolagents is not installed: make test-frameworks")

from smolagents import CodeAgent, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model
from upstream import HERE, outcomes, repository

from rmem import Brain
from rmem.integrations.smolagents import BrainSteps, memory_tools


@pytest.mark.framework("smolagents", "its own tests")
def test_the_tests_of_a_tool_pass(tmp_path, record_property):
    tests = repository("https://github.com/huggingface/smolagents", f"v{version('smolagents')}", "tests", tmp_path)
    shutil.copy(HERE / "smolagents_tools.py", tests / "test_ours.py")
    counted = outcomes(tests.parent, ["tests/test_ours.py"], "smolagents", alone=True)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "warning", "warnings"}
    assert counted["passed"] == 6


class Scripted(Model):
    """A model that says what it is told to, one message after the other."""

    def __init__(self, *messages: ChatMessage) -> None:
        super().__init__()
        self.messages = list(messages)

    def generate(self, messages, **options) -> ChatMessage:
        return self.messages.pop(0)


def calls(name: str, **arguments: str) -> ChatMessage:
    function = ChatMessageToolCallFunction(name=name, arguments=arguments)
    return ChatMessage(
        role=MessageRole.ASSISTANT,
        content="",
        tool_calls=[ChatMessageToolCall(id="1", type="function", function=function)],
    )


def test_an_agent_remembers_in_one_run_and_recalls_in_the_next(tmp_path):
    def run(*messages: ChatMessage) -> str:
        with Brain(tmp_path / "a.db") as brain:
            agent = ToolCallingAgent(tools=memory_tools(brain), model=Scripted(*messages), verbosity_level=0)
            return str(agent.run("go")) + str(agent.memory.get_full_steps())

    run(calls("remember", text="Ann's dog is called Bruno"), calls("final_answer", answer="noted"))
    assert "- Ann's dog is called Bruno" in run(calls("recall", question="dog"), calls("final_answer", answer="done"))


def test_steps_are_kept_in_order_and_found_by_what_they_did(tmp_path):
    said = "Thought: I compute.\n<code>\nfinal_answer(6 * 7)\n</code>"
    with Brain(tmp_path / "a.db") as brain:
        steps = BrainSteps(brain, session="monday")
        model = Scripted(ChatMessage(role=MessageRole.ASSISTANT, content=said))
        agent = CodeAgent(tools=[], model=model, step_callbacks=steps.callbacks(), verbosity_level=0)
        assert agent.run("what is six times seven?") == 42
    with Brain(tmp_path / "a.db") as brain:
        steps = BrainSteps(brain, session="monday")
        assert "what is six times seven?" in str(steps.steps()[0]) or "6 * 7" in str(steps.steps()[0])
        assert steps.steps()[-1]["output"] == 42
        assert "6 * 7" in steps.recall("compute", k=1)[0]
        assert BrainSteps(brain, session="tuesday").steps() == []
