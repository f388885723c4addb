"""LangGraph's checkpointer: the published conformance package, the tests of its own in-memory and SQLite savers, and a
graph that goes on in the next process."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed: make test-frameworks")

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from rmem import Brain
from rmem.integrations.langgraph_checkpoint import BrainSaver


@checkpointer_test(name="BrainSaver")
async def saver():
    with Brain(":memory:") as brain:
        yield BrainSaver(brain)


@pytest.mark.framework("langgraph", "its own tests")
def test_the_conformance_package_passes_with_all_capabilities(record_property):
    report = asyncio.run(validate(saver))
    report.print_report()
    record_property("counted", sum(one.tests_passed for one in report.results.values()))
    assert report.passed_all()
    assert report.conformance_level() == "FULL"


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def graph(saver: BrainSaver):
    def first(state: State) -> State:
        return {"said": ["first"]}

    def second(state: State) -> State:
        return {"said": [str(interrupt("go on?"))]}

    builder = StateGraph(State).add_node("first", first).add_node("second", second)
    return builder.add_edge(START, "first").add_edge("first", "second").add_edge("second", END).compile(saver)


class Deltas(TypedDict):
    said: Annotated[list[str], DeltaChannel(lambda held, new: [*held, *(one for write in new for one in write)])]


CONFIG = {"configurable": {"thread_id": "ann"}}


@pytest.mark.framework("langgraph", "kept")
def test_a_graph_goes_on_in_the_next_process(tmp_path):
    with BrainSaver(tmp_path / "a.db") as saver:
        graph(saver).invoke({"said": ["hello"]}, CONFIG)
    with BrainSaver(tmp_path / "a.db") as saver:
        assert graph(saver).invoke(Command(resume="yes"), CONFIG)["said"] == ["hello", "first", "yes"]
        history = [state.values["said"] for state in graph(saver).get_state_history(CONFIG)]
        assert history == [["hello", "first", "yes"], ["hello", "first"], ["hello"], []]


@pytest.mark.framework("langgraph", "kept")
def test_a_graph_goes_on_for_async_callers(tmp_path):
    async def run() -> list[str]:
        with BrainSaver(tmp_path / "a.db") as saver:
            await graph(saver).ainvoke({"said": ["hello"]}, CONFIG)
            return (await graph(saver).ainvoke(Command(resume="yes"), CONFIG))["said"]

    assert asyncio.run(run()) == ["hello", "first", "yes"]


@pytest.mark.framework("langgraph", "scopes apart")
def test_threads_are_apart_and_a_deleted_one_leaves_nothing():
    with Brain(":memory:") as brain:
        saver = BrainSaver(brain)
        graph(saver).invoke({"said": ["hello"]}, CONFIG)
        other = {"configurable": {"thread_id": "bob"}}
        assert graph(saver).get_state(other).values == {}
        saver.copy_thread("ann", "bob")
        saver.delete_thread("ann")
        assert graph(saver).invoke(Command(resume="yes"), other)["said"] == ["hello", "first", "yes"]
        saver.prune(["bob"])
        assert graph(saver).get_state(other).values["said"] == ["hello", "first", "yes"]
        assert len(list(saver.list(other))) == 1
        saver.delete_thread("bob")
        assert brain.count() == 0


def test_pruning_keeps_what_a_channel_of_differences_is_built_on():
    with Brain(":memory:") as brain:
        saver = BrainSaver(brain)
        builder = StateGraph(Deltas).add_node("one", lambda state: {"said": ["answer"]})
        compiled = builder.add_edge(START, "one").add_edge("one", END).compile(saver)
        for text in ("a", "b", "c"):
            compiled.invoke({"said": [text]}, CONFIG)
        before = compiled.get_state(CONFIG).values
        assert before["said"] == ["a", "answer", "b", "answer", "c", "answer"]
        saver.prune(["ann"])
        assert compiled.get_state(CONFIG).values == before


@pytest.mark.framework("langgraph", "on a server")
def test_it_works_on_a_server(server):
    with Brain(server.url, token=server.first_token) as brain:
        saver = BrainSaver(brain)
        graph(saver).invoke({"said": ["hello"]}, CONFIG)
        assert graph(saver).invoke(Command(resume="yes"), CONFIG)["said"] == ["hello", "first", "yes"]
