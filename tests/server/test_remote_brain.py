"""Brain on a server is the same Brain. What a Brain does is tested over both in tests/test_brain.py and
tests/test_read_what_was_given.py; here is what only a server brings."""

from __future__ import annotations

import asyncio
import pickle
import socket
from datetime import datetime

import pytest

from rmem import AsyncBrain, Brain, Hits, Memory
from rmem.aio import _Awaited
from rmem.annotations import Stats
from rmem.brain import Brain as LocalBrain
from rmem.errors import (
    ConfigError,
    InputError,
    NotFoundError,
    ServerError,
    StoreClosedError,
    StoreUnreachableError,
)
from rmem.remote import RemoteBrain

OFFERED = {
    "remember", "remember_many", "recall", "get", "get_many", "memories", "count", "update", "forget", "restore", "pin",
    "feedback", "stats", "close",
}  # fmt: skip


@pytest.fixture
def brain(server):
    with Brain(server.url, token=server.first_token) as brain:
        yield brain


def test_an_address_makes_a_brain_and_the_token_may_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("RMEM_API_KEY", server.first_token)
    with Brain(server.url + "/") as brain:
        assert isinstance(brain, Brain)
        memory = brain.remember("Fixed the OOM", agent="swe-01", metadata={"ticket": 4711})
        assert isinstance(memory, Memory)
        assert memory.vector is not None
        hits = brain.recall("OOM", explain=True)
        assert isinstance(hits, Hits)
        assert hits[0].id == memory.id
        assert hits[0].explanation.words[0].word == "oom"
        stats = brain.stats()
        assert stats.keys() == Stats.__annotations__.keys()
        assert (stats["address"], stats["memories"]) == (server.url, 1)
        assert brain.embedder == stats["embedder"]
        assert server.first_token not in repr(brain) + str(vars(brain)["address"])


def test_what_one_writes_another_reads_in_a_workspace_of_its_own(server):
    ours = server.token_for("default", "ours", "WRITE")
    theirs = server.token_for("default", "theirs", "WRITE")
    with Brain(server.url, token=ours, workspace="ours") as one, Brain(server.url, token=ours, workspace="ours") as two:
        one.remember("Parquet it is", id="p")
        assert two.get("p").text == "Parquet it is"
    with Brain(server.url, token=theirs, workspace="theirs") as other:
        assert other.memories() == []
        assert other.get("p") is None


def test_an_edit_keeps_what_was_said_before_unless_it_shall_be_gone(brain):
    brain.remember("Deploys go to Bern", id="m")
    changed = brain.update("m", text="Deploys go to Oslo")
    assert [one.text for one in changed.earlier] == ["Deploys go to Bern"]
    assert brain.update("m", text="Deploys go to Rome", keep_earlier=False, only_if=lambda memory: None).earlier == []


def test_long_lists_come_whole(brain):
    brain.remember_many([{"text": f"note {n}", "agent": "a", "step": n} for n in range(1200)], chunk=5000)
    found = brain.memories(order="step", limit=None)
    assert [memory.step for memory in found] == list(range(1200))
    assert [memory.step for memory in brain.memories(order="step", limit=3, offset=1100)] == [1100, 1101, 1102]
    assert brain.count({"min_step": 1000}) == 200


def test_hits_can_be_judged(brain, server):
    brain.remember("Fixed the OOM", id="fix")
    hits = brain.recall("OOM")
    hits[0].useful()
    judgement = brain.feedback(hits, memory_id="fix", useful=False)
    assert (judgement.memory_id, judgement.useful) == ("fix", False)
    with Brain(server.url, token=server.first_token) as other:
        assert other.feedback(hits.recall_id, memory_id="fix").rank == 1
        assert other.feedback(pickle.loads(pickle.dumps(hits[0]))).useful is True
    with pytest.raises(ServerError, match="no recall 'none'"):
        brain.feedback("none", memory_id="fix")


def test_the_past_can_be_asked(brain):
    brain.remember("the deploy of May", when=datetime(2026, 5, 1, 12))
    brain.remember("the deploy of June", when=datetime(2026, 6, 1, 12))
    only = {"time_words": "filter"}
    hits = brain.recall("deploy yesterday", now=datetime(2026, 5, 2, 12), settings=only)
    assert [hit.text for hit in hits] == ["the deploy of May"]
    assert [hit.text for hit in brain.recall("deploy", since="2026-05-15")] == ["the deploy of June"]


def test_a_change_may_depend_on_what_the_memory_is(brain, server):
    brain.remember("text", id="m", tags={"n": "0"})
    seen = []

    def only_if(memory):
        seen.append(memory.tags["n"])
        if len(seen) == 1:  # somebody else is faster
            Brain(server.url, token=server.first_token).update("m", tags={"n": "1"})

    assert brain.update("m", importance=0.9, only_if=only_if).tags == {"n": "1"}
    assert seen == ["0", "1"]

    def refuse(memory):
        raise RuntimeError("not this one")

    with pytest.raises(RuntimeError, match="not this one"):
        brain.update("m", importance=0.1, only_if=refuse)
    assert brain.get("m").importance == 0.9


def test_pinning_and_forgetting(brain):
    memory = brain.remember("keep me")
    assert brain.pin(memory).tags == {"pinned": "yes"}
    assert brain.pin(memory.id, False).tags == {}
    brain.remember("about Ann Smith")
    assert len(brain.forget(subject="Ann Smith", dry_run=True)) == 1
    assert len(brain.forget(subject="Ann Smith")) == 1
    assert brain.count() == 1
    assert brain.restore("nobody") == []


@pytest.mark.parametrize("key", ["a/b c?d#e%2F", "ünï'code", "x" * 500])
def test_any_id_finds_its_way(brain, key):
    brain.remember("text", id=key)
    assert brain.get(key).id == key
    assert brain.update(key, importance=0.9).importance == 0.9
    assert brain.forget(key) is True


def test_what_a_server_does_not_offer_is_named(brain):
    public = {name for name, value in vars(LocalBrain).items() if not name.startswith("_") and callable(value)}
    for name in public - OFFERED:
        with pytest.raises(ServerError, match=rf"^Brain\.{name} is not offered by a server"):
            getattr(brain, name)("x")
    for name in OFFERED:
        assert name in vars(RemoteBrain), name
    with pytest.raises(ServerError, match=r"Brain\.store is not offered"):
        brain.store.count()
    with pytest.raises(AttributeError, match="no_such"):
        brain.no_such  # noqa: B018


def test_errors_are_those_of_a_brain_on_a_file(brain, server):
    with pytest.raises(InputError, match="importance must be a number") as caught:
        brain.remember("x", importance=2)
    assert caught.value.field == "importance"
    with pytest.raises(InputError, match="item 1: text"):
        brain.remember_many([{"text": "one"}, {"text": ""}])
    assert brain.count() == 0
    with pytest.raises(InputError, match="mode must be one of") as caught:
        brain.recall("x", mode="fuzzy")
    assert caught.value.field == "mode"
    with pytest.raises(NotFoundError, match="nobody"):
        brain.update("nobody", importance=1)
    with pytest.raises(ServerError, match="RMEM_API_KEY") as refused:
        Brain(server.url, token="wrong").stats()
    assert refused.value.status == 401
    reader = server.token_for("default", "default", "READ")
    with pytest.raises(ServerError) as refused, Brain(server.url, token=reader) as reading:
        reading.remember("x")
    assert refused.value.status == 403
    with pytest.raises(ServerError, match="workspace"):
        Brain(server.url, token=server.first_token, workspace="nowhere").stats()
    brain.close()
    with pytest.raises(StoreClosedError):
        brain.stats()


def test_a_server_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr("rmem.http_link._FIRST_PAUSE", 0.001)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(StoreUnreachableError, match="cannot be reached"), Brain(address, token="t") as brain:
            brain.recall("x")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"embedder": "minilm"}, "embedder"),
        ({"durability": "normal"}, "durability"),
        ({"privacy": "default"}, "privacy"),
    ],
)
def test_what_the_server_decides_cannot_be_given(options, part):
    with pytest.raises(ConfigError, match=f"{part} cannot be given to a Brain on a server"):
        Brain("https://memory.example", token="t", **options)


def test_a_token_goes_with_a_server_only(tmp_path):
    with pytest.raises(ConfigError, match="token and workspace go with the address of a server"):
        Brain(tmp_path / "memories.db", token="t")
    assert not (tmp_path / "memories.db").exists()
    with pytest.raises(ConfigError, match="address must not hold a user or password"):
        Brain("https://user:secret@host")


def test_the_async_face_takes_a_server_too(server):
    async def story():
        async with AsyncBrain(server.url, token=server.first_token) as brain:
            memory = await brain.remember("one", agent="a")
            assert [hit.id for hit in await brain.recall("one", agent="a")] == [memory.id]
            assert await brain.forget(memory) is True

    asyncio.run(story())
    assert isinstance(vars(AsyncBrain)["count"], _Awaited)


def test_the_command_line_takes_a_server_as_its_store(server, tmp_path):
    from click.testing import CliRunner, Result

    from rmem.cli.app import rmem as program

    def rmem(*arguments: str) -> Result:
        environment = {"RMEM_API_KEY": server.first_token, "RMEM_HOME": str(tmp_path)}
        return CliRunner().invoke(program, ["--store", server.url, *arguments], env=environment)

    assert rmem("remember", "Parquet it is", "--id", "p", "--agent", "a").stdout == "p\n"
    assert "Parquet it is" in rmem("recall", "parquet").stdout
    assert rmem("list", "-q").stdout == "p\n"
    assert rmem("update", "p", "--importance", "1", "--tag", "repo=etl").exit_code == 0
    assert '"tags": {"repo": "etl"}' in rmem("update", "p", "--untag", "absent", "--json").stdout
    assert '"memories": 1' in rmem("stats", "--json").stdout
    assert "importance" in rmem("show", "p").stdout
    failed = rmem("export", str(tmp_path / "x.jsonl"))
    assert failed.exit_code == 4
    assert "not offered by a server" in failed.stderr
    assert "Brain" not in failed.stderr
    for command in (["doctor"], ["reindex"], ["backup", str(tmp_path / "b.db")], ["keys", "list"], ["review"]):
        refused = rmem(*command)
        assert refused.exit_code == (6 if command == ["doctor"] else 2), (command, refused.output)
        assert "is a server" in refused.output, command
    assert rmem("forget", "p", "--yes").stdout == "p\n"
