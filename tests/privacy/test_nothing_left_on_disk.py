"""Nothing that was detected reaches the file, its journal or the log, by whichever door it came in."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from rmem import Brain
from rmem.agents import AgentMemoryAPI, MemoryConfig
from rmem.errors import MemoryStoreException, PrivacyError
from rmem.privacy import KINDS, PrivacyPolicy
from rmem.privacy.samples import MAKERS
from rmem.transfer import export, import_

RANDOM = Random(7)
VALUES = {
    "email": "zacharias.quint@example.org",
    "phone": "+49 30 901820",
    "card": MAKERS["card:visa"](RANDOM),
    "iban": MAKERS["iban:DE"](RANDOM),
    "national_id": "RSSMRA85T10A562S",
    "ip": "203.0.112.217",
    "mac": "3c:22:fb:9a:10:ee",
    "url_credentials": "quintus:Pw7zebra9",
    "secret": MAKERS["secret:github_pat"](RANDOM),
    "private_key": MAKERS["private_key:rsa"](RANDOM),
}
PASSWORD = "marmalade-sandwiches"
TEXT = (
    "Note: {email} called from {phone} and paid with {card} or {iban}; id {national_id}, host {ip}, {mac}. "
    "postgres://{url_credentials}@db/main token={secret}\n{private_key}\n"
).format(**VALUES)
CONTENTS = {"nested": [{"who": VALUES["email"]}, {VALUES["ip"]: {"password": PASSWORD}}], "pan": int(VALUES["card"])}


def traces() -> list[bytes]:
    """Every value, and parts of it as the index would hold them."""
    found = {PASSWORD, "marmalade", "zacharias", "quintus", "Pw7zebra9", "RSSMRA85"}
    found |= {value for kind, value in VALUES.items() if kind != "private_key"}
    found |= set(VALUES["private_key"].splitlines()[1:3])
    return [
        form.encode()
        for value in found
        for form in (value, value.lower(), value.replace(" ", ""), value.replace(".", " "))
    ]


def assert_gone(folder: Path, *logged: str) -> None:
    files = [path for path in folder.rglob("*") if path.is_file() and ".db" in path.name]
    assert files
    for path in files:
        held = path.read_bytes()
        assert [trace for trace in traces() if trace in held] == [], path.name
    for text in logged:
        assert [trace for trace in traces() if trace.decode() in text] == []


@pytest.fixture(autouse=True)
def loud(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG):
        yield


@pytest.fixture(params=["mask", "hash", "drop", "encrypt"])
def policy(request) -> PrivacyPolicy:
    return PrivacyPolicy(
        actions=dict.fromkeys(KINDS, request.param), key=b"0" * 32, encrypt=lambda value: f"{hash(value) & 0xFFFF:x}"
    )


def test_the_values_are_really_looked_for_in_the_file(tmp_path):
    with Brain(tmp_path / "m.db") as brain:
        brain.remember(TEXT, metadata=CONTENTS)
        with pytest.raises(AssertionError):
            assert_gone(tmp_path)


def test_remember_update_and_many_leave_no_trace(tmp_path, policy, caplog):
    path = tmp_path / "m.db"
    with Brain(path, privacy=policy) as brain:
        kept = brain.remember(TEXT, metadata=CONTENTS, tags={"by": VALUES["email"]}, actor=VALUES["email"], id="one")
        brain.remember_many([{"text": f"{n} {TEXT}", "metadata": CONTENTS, "session": "s"} for n in range(300)])
        brain.update("one", text=f"again {TEXT}")
        brain.update("one", metadata=CONTENTS, place=VALUES["ip"])
        brain.recall("who called about the card?", k=3)
        assert_gone(tmp_path, caplog.text)  # with the journal still there
        assert brain.vector_of(TEXT) is not None
        assert kept.embeddings.full_vector is not None
        assert np.allclose(kept.embeddings.full_vector, brain.vector_of(kept.text, kept.contents), atol=1e-5)
    assert_gone(tmp_path, caplog.text)
    with Brain(path) as brain:
        export(brain, tmp_path / "out.db.jsonl")
    assert_gone(tmp_path)


def test_a_judged_question_leaves_no_trace(tmp_path, policy, caplog):
    with Brain(tmp_path / "m.db", privacy=policy) as brain:
        brain.remember("the card was declined")
        hits = brain.recall(f"why was {VALUES['card']} of {VALUES['email']} declined?")
        brain.feedback(hits[0], useful=True)
        assert_gone(tmp_path, caplog.text)


def test_an_import_leaves_no_trace_and_makes_new_vectors(tmp_path, policy, caplog):
    source = tmp_path / "elsewhere"
    source.mkdir()
    with Brain(source / "plain.db") as plain:
        plain.remember(TEXT, metadata=CONTENTS, id="telling")
        plain.remember("nothing to hide", id="clean")
        export(plain, source / "plain.jsonl")
    target = tmp_path / "target"
    target.mkdir()
    with Brain(target / "m.db", privacy=policy) as brain:
        done = import_(brain, source / "plain.jsonl")
        assert (done["imported"], done["vectors_kept"]) == (2, 1)
        assert_gone(target, caplog.text)
        kept = brain.get("telling")
        assert np.allclose(kept.embeddings.full_vector, brain.vector_of(kept.text, kept.contents), atol=1e-5)


def test_the_agents_memory_leaves_no_trace(tmp_path, policy, caplog):
    config = MemoryConfig(ltm_config={"path": tmp_path / "m.db"}, privacy=policy, cleanup_interval=2)
    with AgentMemoryAPI(config) as api:
        for step in range(6):
            api.store_agent_state("agent", {"log": TEXT, "step": step, **CONTENTS}, step)
            api.store_agent_action("agent", {"action_type": "bash", "output": TEXT, VALUES["email"]: CONTENTS}, step)
        assert api.get_memory_space("agent").retrieve_recent_states(2)
        assert_gone(tmp_path, caplog.text)
    assert_gone(tmp_path, caplog.text)


def test_the_environment_covers_every_door(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("RMEM_PRIVACY", "default")
    with Brain(tmp_path / "a.db") as brain:
        brain.remember(TEXT, metadata=CONTENTS)
    with AgentMemoryAPI(MemoryConfig(ltm_config={"path": tmp_path / "b.db"})) as api:
        api.store_agent_state("agent", {"log": TEXT, **CONTENTS}, 1)
    assert_gone(tmp_path, caplog.text)


# Blocking


def blocking() -> PrivacyPolicy:
    return PrivacyPolicy(actions={"secret": "block"})


def test_a_blocked_memory_of_many_writes_none(tmp_path, caplog):
    with Brain(tmp_path / "m.db", privacy=blocking()) as brain:
        items = [{"text": f"fine {n}"} for n in range(2500)]
        items.append({"text": f"token={VALUES['secret']}"})
        with pytest.raises(PrivacyError, match="item 2500: text holds") as caught:
            brain.remember_many(items)
        assert brain.stats()["memories"] == 0
        assert_gone(tmp_path, caplog.text, str(caught.value))


def test_a_blocked_line_stops_an_import_before_it_begins(tmp_path):
    with Brain(tmp_path / "plain.db") as plain:
        plain.remember("fine")
        plain.remember(f"token={VALUES['secret']}")
        export(plain, tmp_path / "plain.jsonl")
    with Brain(tmp_path / "m.db", privacy=blocking()) as brain:
        with pytest.raises(ValueError, match="line 3: text holds a value of the kind 'secret'") as caught:
            import_(brain, tmp_path / "plain.jsonl")
        assert VALUES["secret"] not in str(caught.value)
        assert brain.stats()["memories"] == 0


def test_an_agent_learns_that_its_state_was_refused(tmp_path, caplog):
    with AgentMemoryAPI(MemoryConfig(ltm_config={"path": tmp_path / "m.db"}, privacy=blocking())) as api:
        with pytest.raises(MemoryStoreException, match="secret") as caught:
            api.store_agent_state("agent", {"env": {"token": VALUES["secret"]}}, 1)
        assert isinstance(caught.value.__cause__, PrivacyError)
        assert VALUES["secret"] not in str(caught.value)
        assert VALUES["secret"] not in caplog.text


# Vectors of the caller


def test_a_given_vector_of_a_changed_text_is_made_anew(tmp_path):
    with Brain(tmp_path / "m.db", privacy="default") as brain:
        given = np.zeros(256, np.float32)
        given[3] = 1.0
        changed = brain.remember("mail zoe@example.org", vector=given)
        assert np.allclose(changed.embeddings.full_vector, brain.vector_of("mail [email]"), atol=1e-5)
        same = brain.remember("nothing here", vector=given)
        assert np.allclose(same.embeddings.full_vector, given)
        again = brain.update(same.memory_id, text="to zoe@example.org", vector=given)
        assert np.allclose(again.embeddings.full_vector, brain.vector_of("to [email]"), atol=1e-5)


def test_new_metadata_with_a_vector_keeps_the_memorys_own_vector(tmp_path):
    with Brain(tmp_path / "m.db", privacy="default") as brain:
        before = brain.remember("plain words")
        given = np.zeros(256, np.float32)
        given[3] = 1.0
        after = brain.update(before.memory_id, metadata={"by": "zoe@example.org"}, vector=given)
        assert after.contents == {"by": "[email]", "text": "plain words"}
        assert np.allclose(after.embeddings.full_vector, before.embeddings.full_vector)


def test_hashed_values_are_found_by_the_cleaned_question(tmp_path):
    policy = PrivacyPolicy(actions={"email": "hash"}, key="sixteen bytes or more")
    with Brain(tmp_path / "m.db", privacy=policy) as brain:
        brain.remember("Zoe@example.org likes tulips", id="zoe")
        brain.remember("max@example.org likes roses", id="max")
        hits = brain.recall(policy.clean("zoe@example.org"), mode="lexical")
        assert hits[0].memory.memory_id == "zoe"


# The configuration of agents


def test_the_configuration_of_agents_takes_a_policy_in_every_form(monkeypatch):
    policy = PrivacyPolicy(actions={"ip": "mask"})
    for given in (policy, policy.to_dict()):
        config = MemoryConfig(privacy=given)
        assert config.privacy == policy
        assert MemoryConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    monkeypatch.setenv("RMEM_PRIVACY", "default")
    with AgentMemoryAPI(MemoryConfig(ltm_config={"path": ":memory:"}, privacy="off")) as api:
        api.store_agent_state("agent", {"ip": VALUES["ip"]}, 1)
        assert VALUES["ip"] in str(api.get_memory_space("agent").retrieve_recent_states(1)[0])
    with pytest.raises(ValueError, match="did you mean 'email'"):
        MemoryConfig(privacy={"actions": {"emial": "mask"}})
