"""The enhanced memory: experiences, a conversation within a limit, summaries with links, contexts, restarts."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem import Brain, Encryption, EnhancedAgentMemory, SqliteStore
from rmem.conversation import AgentMemory
from rmem.errors import ConfigError, InputError, StoreClosedError
from rmem.recall.budget import estimate_tokens
from rmem.testing import synthetic_memories


@pytest.fixture
def memory():
    with EnhancedAgentMemory() as memory:
        yield memory


@pytest.fixture
def reopened(tmp_path):
    """A function that opens the same file, closing what it opened before."""
    opened = []

    def make(**options):
        if opened:
            opened[-1].close()
        opened.append(EnhancedAgentMemory(persistent=True, path=tmp_path / "agent.db", **options))
        return opened[-1]

    yield make
    opened[-1].close()


def talk(memory, count, start=0):
    for number in range(start, start + count):
        role = ("user", "assistant")[number % 2]
        memory.add_message(role, f"Message {number} says that the crate {number} holds copper and some silver spoons.")


# Experiences


def test_recall_finds_by_words_and_by_meaning(memory):
    memory.add_experience("The ETL job was killed by the kernel: exit code 137")
    memory.add_experience("Our car would not start in the cold")
    memory.add_experience("Bug DEP-4411 is about a wrong rounding of cents")
    assert memory.recall("automobile trouble in winter", k=1)[0][0] == "exp_1"
    assert memory.recall("what was DEP-4411?", k=1)[0][0] == "exp_2"
    assert len(memory.recall("anything at all", k=2)) == 2


def test_recall_is_about_experiences_and_search_about_everything(memory):
    memory.add_experience("The release is on Friday")
    memory.add_message("user", "When is the release?")
    memory.add_tool_call("calendar", {"q": "release"}, {"day": "Friday"})
    assert [key for key, _, _ in memory.recall("When is the release?")] == ["exp_0"]
    assert {key for key, _, _ in memory.search("release")} == {"exp_0", "msg_0", "tool_0"}
    assert [key for key, _, _ in memory.search("release", kinds=["tool_call"])] == ["tool_0"]
    with pytest.raises(InputError, match="kinds"):
        memory.search("release", kinds=["thought"])


def test_a_bad_number_of_answers_is_refused_by_its_name():
    memory = EnhancedAgentMemory()
    for ask in (memory.recall, memory.search):
        with pytest.raises(InputError, match=r"^k must be a whole number ≥ 1, got 0"):
            ask("anything", k=0)


def test_recall_by_words_and_vectors_is_better_than_by_vectors_alone(memory):
    """The figures of docs/enhanced.md."""
    draw = random.Random(1)
    texts = [one["text"] for one in synthetic_memories(1500, 3)]
    draw.shuffle(texts)
    texts = [" ".join(text.split()[:25]) for text in texts]
    memory.long_term.add_many([(f"exp_{number}", text) for number, text in enumerate(texts)])
    right, by_vectors, asked = 0, 0, 0
    for number in draw.sample(range(1500), 300):
        words = [word for word in texts[number].split() if len(word) > 3]
        if len(words) >= 4:
            query, key = " ".join(draw.sample(words, max(2, len(words) // 4))), f"exp_{number}"
            asked += 1
            right += memory.recall(query, k=1)[0][0] == key
            by_vectors += memory.vector.search(query, 1)[0][0] == key
    assert asked == 294
    assert right / asked > 0.88
    assert right / asked > by_vectors / asked + 0.08


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("query", ["", "  ", '"', "half \ud800", "\x00", "a" * 10_000, "😀", "-word", "' OR 1=1 --"])
def test_any_text_can_be_asked(vector, query):
    with EnhancedAgentMemory(vector=vector) as memory:
        memory.add_experience("something ordinary")
        for asked in (memory.recall, memory.search, memory.long_term.search, memory.working.search):
            assert isinstance(asked(query), list)
        assert isinstance(memory.context_for(query, 100), str)


def test_importance_counts_as_the_guide_or_as_a_share(memory):
    keys = [memory.add_experience("x", importance=one) for one in (0, 1, 2, 9, 0.9, np.int64(3))]
    assert [round(memory.long_term.memory(key).importance, 2) for key in keys] == [0, 0.5, 0.67, 0.9, 0.9, 0.75]
    assert memory.long_term.meta_of(keys[2]) == {"importance": 2}
    for wrong in (-1, 1.5, True, "high", None):
        with pytest.raises(InputError, match="importance"):
            memory.add_experience("x", importance=wrong)
    assert len(memory.long_term) == 6


def test_importance_decides_between_equals(memory):
    memory.add_experience("The door code is in the blue book", importance=1)
    important = memory.add_experience("The door code is in the blue book", importance=9)
    assert memory.recall("door code", k=1)[0][0] == important


def test_keys_are_never_given_twice(memory):
    first = [memory.add_experience(f"number {number}") for number in range(3)]
    assert first == ["exp_0", "exp_1", "exp_2"]
    assert memory.forget("exp_2")
    assert memory.forget("exp_0")
    memory.long_term.add("exp_4", "put there by hand")
    assert [memory.add_experience("again") for _ in range(2)] == ["exp_3", "exp_5"]


def test_forgetting_is_complete_and_says_so(memory):
    memory.add_experience("The secret is pelican")
    key = memory.add_message("user", "I also said pelican")
    assert memory.forget("exp_0") is True
    assert memory.forget(key) is True
    assert memory.forget(key) is False
    assert memory.forget("nothing") is False
    assert memory.search("pelican", kinds=["experience", "message", "summary"]) == []
    assert memory.working.data == {}
    assert memory.vector.keys == []


# The conversation within its limit


def test_working_memory_stays_within_its_limit_and_nothing_is_lost():
    with EnhancedAgentMemory(token_limit=400) as memory:
        for number in range(60):
            talk(memory, 1, number)
            assert memory.working.tokens <= 400
        assert "msg_59" in memory.working
        assert "msg_0" not in memory.working
        for number in range(60):
            assert memory.long_term.get(f"msg_{number}").endswith(
                f"crate {number} holds copper and some silver spoons."
            )
        assert len(memory.get_messages()) == 60
        assert [key for key, _, _ in memory.search("crate 7", k=1)] == ["msg_7"]


def test_summaries_link_to_everything_that_they_summarise():
    with EnhancedAgentMemory(token_limit=400) as memory:
        talk(memory, 60)
        last = memory.working.summary_key
        summarised = memory.sources(last, deep=True)
        assert summarised + list(memory.working) == [f"msg_{number}" for number in range(60)]
        assert 0 < len(memory.sources(last)) < len(summarised)
        assert memory.sources("msg_1") == memory.sources("nobody") == []
        assert memory.long_term.get(last) == memory.working.summary


def test_it_is_summarised_every_so_many_steps():
    with EnhancedAgentMemory(summarise_every=6) as memory:
        talk(memory, 5)
        assert memory.working.summary == ""
        talk(memory, 1, 5)
        assert list(memory.working) == ["msg_3", "msg_4", "msg_5"]
        assert memory.sources(memory.working.summary_key) == ["msg_0", "msg_1", "msg_2"]
        talk(memory, 6, 6)
        assert memory.sources(memory.working.summary_key, deep=True) == [f"msg_{number}" for number in range(9)]


def test_it_is_summarised_at_a_share_of_the_window():
    with EnhancedAgentMemory(token_limit=1000, summarise_at=0.2) as memory:
        for number in range(40):
            talk(memory, 1, number)
            assert memory.working.tokens <= 200


def test_what_matters_survives_in_the_summary():
    with EnhancedAgentMemory(token_limit=500) as memory:
        memory.add_message("user", "The deployment failed with error E1234 on host db-7.")
        memory.add_message("assistant", "We decided to roll back to version 2.3.1.")
        for _ in range(60):
            memory.add_message("user", "It is a nice day and we talk about this and that for a while.")
        assert "E1234" in memory.summary()
        assert "2.3.1" in memory.working.summary
        assert estimate_tokens(memory.summary(30)) <= 30


def test_a_message_larger_than_the_window_is_shortened_there_alone():
    with EnhancedAgentMemory(token_limit=100) as memory:
        text = "word " * 5000 + "end"
        key = memory.add_message("user", text)
        assert memory.working.tokens <= 100
        assert memory.working.get(key).endswith("end")
        assert memory.get_messages() == [{"role": "user", "content": text}]


def test_a_summary_can_be_made_at_any_time(memory):
    assert memory.create_summary() == ""
    talk(memory, 1)
    assert "crate 0" in memory.create_summary()
    talk(memory, 3, 1)
    told = memory.create_summary()
    assert "crate 1" in told
    assert list(memory.working) == ["msg_3"]
    assert memory.working.summary == told


def test_a_summariser_of_ones_own_is_used_and_may_fail(caplog):
    asked = []

    def mine(texts, budget):
        asked.append(list(texts))
        if len(asked) > 1:
            raise RuntimeError("no more")
        return f"{len(texts)} messages about crates. " * 500

    with EnhancedAgentMemory(token_limit=300, summariser=mine) as memory, caplog.at_level(logging.WARNING):
        talk(memory, 50)
        assert memory.working.tokens <= 300
        assert len(asked) > 1
        assert asked[0][0].startswith("user: Message 0")
        assert "messages about crates" in asked[1][0]
        assert "no more" in caplog.text
        assert memory.sources(memory.working.summary_key, deep=True)[0] == "msg_0"


def test_what_somebody_puts_into_working_memory_is_not_lost_either():
    with EnhancedAgentMemory(token_limit=300) as memory:
        memory.working.add("note", "system: never deploy on Fridays")
        talk(memory, 40)
        assert "note" not in memory.working
        assert memory.long_term.get("note") == "system: never deploy on Fridays"


def test_forgetting_a_message_takes_it_out_of_the_summaries():
    with EnhancedAgentMemory(token_limit=400) as memory:
        talk(memory, 3)
        key = memory.add_message("user", "The password of the vault is Zanzibar 99.")
        talk(memory, 50, 3)
        assert "Zanzibar" in memory.working.summary
        assert memory.forget(key)
        assert "Zanzibar" not in memory.working.summary
        assert "Zanzibar" not in json.dumps(memory.long_term.data)
        assert memory.search("Zanzibar", k=50, kinds=["summary"]) != []  # they are still there, without it


def test_a_new_conversation_begins_empty_and_forgets_nothing(memory):
    talk(memory, 3)
    memory.add_tool_call("search", {"q": "x"}, "y")
    memory.clear()
    assert (memory.working.data, memory.get_messages(), memory.working.summary) == ({}, [], "")
    assert len(memory.long_term) == 4
    memory.add_message("user", "hello again")
    assert memory.get_recent_messages() == "user: hello again"
    assert memory.get_messages() == [{"role": "user", "content": "hello again"}]


def test_contents_may_be_more_than_text(memory):
    parts = [{"type": "text", "text": "look at this"}, {"type": "image", "url": "x.png"}]
    memory.add_message("user", parts)
    memory.add_message("assistant", None)
    memory.add_message("assistant", "")
    assert [one["content"] for one in memory.get_messages()] == [parts, None, ""]
    assert memory.search("look at this", k=1)[0][0] == "msg_0"
    for wrong in (("", "x"), (None, "x"), ("user", object()), ("user", "half \ud800")):
        with pytest.raises(InputError):
            memory.add_message(*wrong)
    assert len(memory.working) == 3


def test_tool_calls_are_kept_with_their_results(memory):
    memory.add_message("user", "look it up")
    memory.add_tool_call("search", {"q": "price of copper"}, {"hits": 3})
    memory.add_tool_call("fetch", {"url": "x"}, error="timed out")
    memory.add_tool_call("now", None, np.float64(3.5))
    memory.add_tool_call("odd", {"fn": print}, object())
    history = memory.tool_call_history
    assert [call["name"] for call in history] == ["search", "fetch", "now", "odd"]
    assert history[0]["arguments"] == {"q": "price of copper"}
    assert history[0]["result"] == {"hits": 3}
    assert history[1]["error"] == "timed out"
    assert history[2]["result"] == 3.5
    assert history[3]["result"].startswith("<object")
    assert history[0]["key"] == "tool_0"
    assert memory.get_recent_messages() == "user: look it up"
    assert "error: timed out" in memory.context_for("fetch", 300)
    assert memory.search("copper")[0][0] == "tool_0"


def test_arguments_that_are_no_mapping_are_refused(memory):
    with pytest.raises(InputError, match="arguments must be a mapping of names to values") as error:
        memory.add_tool_call("search", '{"q": "x"}', "y")
    assert error.value.field == "arguments"


def test_messages_as_chat_apis_write_them_come_back_whole(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2000}}
    chat = [
        {"role": "user", "content": "What is it like outside?", "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
        {"role": "assistant", "content": "It is sunny."},
        {"role": "user", "content": [{"type": "text", "text": "like this?"}, picture]},
    ]
    with AgentMemory(persistent=True, path=tmp_path / "chat.db") as memory:
        memory.messages.extend(chat)
        memory.messages.append({"role": "user", "content": "bye", "seen": object(), "_attachments": ["ours"]})
    with AgentMemory(persistent=True, path=tmp_path / "chat.db") as memory:
        *whole, last = memory.get_messages(attachments=True)
        assert whole == chat
        assert last["seen"].startswith("<object")
        assert set(last) == {"role", "content", "seen"}
        assert "weather" in memory.get_context()
        assert memory.search("Rome", k=1)[0][0] == "msg_1"


def test_tool_calls_as_chat_apis_write_them():
    memory = AgentMemory()
    called = {"name": "weather", "arguments": '{"city": "Rome"}'}
    memory.tool_call_history.append({"id": "call_1", "type": "function", "function": called, "result": "sunny"})
    memory.tool_call_history.append({"name": "note", "arguments": "not JSON"})
    memory.tool_call_history.append({"name": "count", "arguments": "12"})
    told = [(call["name"], call["arguments"], call["result"]) for call in memory.tool_call_history]
    assert told == [
        ("weather", {"city": "Rome"}, "sunny"),
        ("note", {"value": "not JSON"}, None),
        ("count", {"value": "12"}, None),
    ]


# Contexts


def test_a_context_holds_the_summary_memories_and_messages():
    with EnhancedAgentMemory(token_limit=400) as memory:
        memory.add_experience("The harbour gate opens with code 7731")
        memory.add_experience("Cats sleep most of the day")
        talk(memory, 60)
        memory.add_message("user", "How do I open the harbour gate?")
        told = memory.context_for("How do I open the harbour gate?", token_budget=600)
        assert estimate_tokens(told) <= 600
        summary, memories, messages = told.split("\n\n")
        assert summary.startswith("Summary of what came before:\n")
        assert memories.splitlines()[0] == "Relevant memories:"
        assert "7731" in memories
        assert messages.splitlines()[0] == "Recent messages:"
        assert messages.endswith("user: How do I open the harbour gate?")
        assert "harbour gate?" not in memories


def test_a_context_tells_nothing_twice():
    with EnhancedAgentMemory(summarise_every=20) as memory:
        memory.add_message("user", "The import failed with error E1234 on host db-7.")
        for _ in range(30):
            memory.add_message("user", "Then we talked about the weather for a while.")
        assert memory.context_for("import error E1234", 500).count("E1234") == 1


def test_an_empty_memory_has_nothing_to_tell(memory):
    assert memory.context_for("anything", 100) == ""
    with pytest.raises(InputError, match="token_budget"):
        memory.context_for("anything", 0)


_WORDS = st.text(st.sampled_from("abc de.fg! hi? 0123 Ä北 \n'\"-_/"), max_size=200)


@given(
    said=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), _WORDS), max_size=25),
    known=st.lists(_WORDS.filter(str.strip), max_size=6),
    prompt=_WORDS,
    budget=st.integers(1, 400),
    limit=st.integers(20, 300),
)
def test_a_context_is_never_above_its_budget(said, known, prompt, budget, limit):
    with EnhancedAgentMemory(token_limit=limit) as memory:
        for text in known:
            memory.add_experience(text)
        for role, content in said:
            memory.add_message(role, content)
            assert memory.working.tokens <= limit
        assert estimate_tokens(memory.context_for(prompt, budget)) <= budget
        assert estimate_tokens(memory.summary(budget)) <= budget
        assert len(memory.get_messages()) == len(said)


# Restarts, processes and threads


def test_a_restart_finds_everything(reopened):
    memory = reopened(token_limit=400)
    memory.add_experience("Staging listens on port 8443", importance=3)
    talk(memory, 30)
    memory.add_tool_call("search", {"q": "x"}, "y")
    before = dict(memory.working.data), memory.working.summary, memory.working.summary_key, memory.tool_call_history
    again = reopened(token_limit=400)
    assert (
        dict(again.working.data),
        again.working.summary,
        again.working.summary_key,
        again.tool_call_history,
    ) == before
    assert again.recall("staging port")[0][:2] == ("exp_0", "Staging listens on port 8443")
    assert again.vector.search("which port", 1)
    assert len(again.get_messages()) == 30
    assert again.add_experience("new") == "exp_1"
    assert again.add_message("user", "new") == "msg_30"
    again.forget("exp_1")
    assert reopened().add_experience("newer") == "exp_2"


def test_a_restart_with_a_smaller_window_keeps_within_it(reopened):
    talk(reopened(), 40)
    memory = reopened(token_limit=150)
    assert memory.working.tokens <= 150
    assert len(memory.get_messages()) == 40
    memory.clear()
    assert reopened().working.data == {}


def test_a_restart_after_forgetting_the_newest_loses_no_later_message(reopened):
    memory = reopened(token_limit=300)
    talk(memory, 30)
    for number in range(30):
        memory.forget(f"msg_{number}")
    talk(memory, 2)
    assert list(reopened(token_limit=300).working) == ["msg_30", "msg_31"]


def test_agents_and_sessions_of_one_file_stay_apart(tmp_path):
    def opened(**options):
        return EnhancedAgentMemory(persistent=True, path=tmp_path / "team.db", **options)

    with opened(agent="ann") as ann, opened(agent="bob") as bob, opened(agent="ann", session="second") as second:
        ann.add_experience("ann likes tea")
        bob.add_experience("bob likes coffee")
        ann.add_message("user", "to ann")
        second.add_message("user", "to ann in another window")
        assert [text for _, text, _ in ann.recall("who likes what")] == ["ann likes tea"]
        assert [text for _, text, _ in second.recall("who likes what")] == ["ann likes tea"]
        assert [text for _, text, _ in bob.recall("who likes what")] == ["bob likes coffee"]
        assert ann.get_recent_messages() == "user: to ann"
        assert second.get_recent_messages() == "user: to ann in another window"
    with Brain(tmp_path / "team.db") as brain:
        assert {memory.agent_id for memory in brain.memories()} == {"ann", "bob"}


def test_processes_and_threads_that_share_an_agent_never_share_a_key(tmp_path):
    path = tmp_path / "agent.db"
    code = (
        "import sys\nfrom rmem import EnhancedAgentMemory\n"
        f"with EnhancedAgentMemory(persistent=True, path={str(path)!r}, session=sys.argv[1]) as memory:\n"
        "    print(*(memory.add_experience(f'{sys.argv[1]} {n}') for n in range(25)))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, name], stdout=subprocess.PIPE, text=True) for name in ("a", "b")
    ]
    with EnhancedAgentMemory(persistent=True, path=path) as memory, ThreadPoolExecutor(4) as pool:
        mine = list(pool.map(lambda number: memory.add_experience(f"thread {number}"), range(40)))
        keys = [*mine, *(key for one in running for key in one.communicate(timeout=60)[0].split())]
        assert len(keys) == len(set(keys)) == 90
        assert len(memory.long_term) == 90


def test_threads_may_talk_at_once():
    with EnhancedAgentMemory(token_limit=300) as memory:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: (talk(memory, 1, number), memory.context_for("crate", 100)), range(60)))
        assert len(memory.get_messages()) == 60
        assert memory.working.tokens <= 300
        told = memory.sources(memory.working.summary_key, deep=True)
        assert sorted([*told, *memory.working]) == sorted(f"msg_{number}" for number in range(60))


def test_the_default_file_is_the_one_of_brain():
    with EnhancedAgentMemory(persistent=True) as memory:
        memory.add_experience("kept in the default file")
    with Brain() as brain:
        assert brain.recall("default file")[0].memory.memory_id == "agent/exp_0"


def test_vectors_can_be_left_out_and_taken_up_later(reopened):
    memory = reopened(vector=False)
    memory.add_experience("words alone find the harbour")
    assert memory.vector is None
    assert memory.recall("harbour")[0][0] == "exp_0"
    assert memory.recall("zebra") == []
    memory = reopened(vector=True)
    memory.add_experience("an automobile")
    assert memory.recall("car", k=1)[0][0] == "exp_1"
    memory = reopened(vector=False)  # a file that has vectors keeps having them
    memory.add_experience("a bicycle")
    assert reopened().recall("car or bike", k=2)


def test_an_embedder_of_ones_own_is_used():
    def embed(texts):
        return np.array([[len(text), 1.0, 0, 0, 0, 0, 0, 0] for text in texts])

    with EnhancedAgentMemory(embedder=embed) as memory:
        memory.add_experience("abc")
        assert memory.vector.embeds[0].size == 8


def test_bad_settings_are_refused_by_name(tmp_path):
    for name, wrong in (
        ("persistent", 1), ("vector", "yes"), ("agent", ""), ("agent", "x" * 61), ("session", 3), ("token_limit", 5),
        ("summarise_at", 1.5), ("summarise_every", 0), ("path", tmp_path / "x.db"), ("summariser", 7),
    ):  # fmt: skip
        with pytest.raises(InputError, match=name):
            EnhancedAgentMemory(**{name: wrong})
    for wrong in ("clever", "chat:model", "chat"):
        with pytest.raises(ConfigError, match=r"summariser|chat"):
            EnhancedAgentMemory(summariser=wrong)
    with pytest.raises(ConfigError, match="PostgreSQL"):
        EnhancedAgentMemory(persistent=True, path="postgresql://localhost/x")
    memory = EnhancedAgentMemory()
    memory.close()
    memory.close()
    with pytest.raises(StoreClosedError):
        memory.add_experience("too late")


# For agents that had a plain memory


def test_an_agent_with_a_plain_memory_can_switch():
    class Agent:
        def __init__(self, memory):
            self.memory = memory

        def run(self, asked):
            self.memory.add_message("user", asked)
            self.memory.tool_call_history.append({"tool": "clock", "args": {"zone": "UTC"}, "output": "12:00"})
            answer = f"{len(self.memory.get_history())} messages so far"
            self.memory.messages.append({"role": "assistant", "content": answer})
            return answer

    agent = Agent(AgentMemory())
    assert agent.run("hello") == "1 messages so far"
    assert agent.run("hello again") == "3 messages so far"
    memory = agent.memory
    assert memory.messages[0] == {"role": "user", "content": "hello"}
    assert memory.get_history(1) == [{"role": "assistant", "content": "3 messages so far"}]
    assert [call["result"] for call in memory.tool_calls] == ["12:00", "12:00"]
    assert memory.get_context(2) == "user: hello again\nassistant: 3 messages so far"
    assert "hello" in memory.get_context(query="hello", token_budget=100)
    memory.add_user_message("a")
    memory.add_assistant_message("b")
    memory.add_system_message("c")
    memory.add("user", "d")
    assert len(memory) == 8
    assert [one["content"] for one in memory][-4:] == ["a", "b", "c", "d"]
    memory.messages.extend([{"role": "user", "content": "e"}])
    with pytest.raises(InputError, match="item"):
        memory.messages.append("text")
    memory.clear()
    assert memory.messages == []
    assert bool(memory)


# Privacy


def test_what_the_policy_takes_out_is_nowhere(tmp_path):
    path = tmp_path / "agent.db"
    asked = []

    def mine(texts, budget):
        asked.extend(texts)
        return " ".join(texts)

    with EnhancedAgentMemory(persistent=True, path=path, privacy="default", token_limit=200, summariser=mine) as memory:
        memory.add_message("user", "Write to anna.secretova@example.com about the crates.")
        memory.add_tool_call("mail", {"to": "anna.secretova@example.com"}, "sent to anna.secretova@example.com")
        memory.add_experience("Anna answers at anna.secretova@example.com")
        assert "secretova" not in json.dumps(memory.working.data)
        talk(memory, 30)
        assert "secretova" not in json.dumps([asked, memory.long_term.data, memory.get_messages()])
        assert "secretova" not in json.dumps(memory.tool_call_history) + memory.context_for("Anna", 500)
    assert not any(b"secretova" in file.read_bytes() for file in tmp_path.iterdir())


def test_an_encrypted_memory_works_as_any_other_and_its_file_tells_nothing(tmp_path):
    options = {"persistent": True, "path": tmp_path / "agent.db", "encryption": Encryption(master=bytes(range(32)))}
    with EnhancedAgentMemory(**options, token_limit=300) as memory:
        memory.add_experience("The vault is under the lighthouse")
        key = memory.add_message("user", "The password of the vault is Zanzibar 99.")
        talk(memory, 40)
        assert "Zanzibar" in memory.working.summary
    with EnhancedAgentMemory(**options, token_limit=300) as memory:
        assert memory.recall("where is the vault?")[0][1] == "The vault is under the lighthouse"
        assert memory.search("Zanzibar", k=1)[0][0] == key
        assert memory.forget(key)
        assert "Zanzibar" not in memory.working.summary
    with SqliteStore(tmp_path / "values.db", encryption=options["encryption"]) as store:
        store.add("k", "the lighthouse", meta={"by": "lighthouse"})
        assert store.search("lighthouse")[0][:2] == ("k", "the lighthouse")
        assert store.meta_of("k") == {"by": "lighthouse"}
    for file in tmp_path.iterdir():
        assert not any(word in file.read_bytes() for word in (b"lighthouse", b"Zanzibar", b"zanzibar"))
