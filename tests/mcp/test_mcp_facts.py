"""What agents know as facts, over every transport."""

from __future__ import annotations

from mcp_clients import ETL, MODERN, Talk, answer, refusal


def told(found) -> list[str]:
    return [one["fact"] for one in found["facts"]]


def test_facts_are_stated_corrected_ended_and_asked_for(talk):
    async def work(client):
        old = await answer(
            client, "state_fact", subject="staging", relation="runs on", object="port 5432", since="2026-01-01"
        )
        assert old["fact"] == "staging – runs on – port 5432"
        assert old["since"] == "2026-01-01"
        again = await answer(client, "state_fact", subject="Staging", relation="runs on", object="port 5432")
        assert again["id"] == old["id"]  # what is known is not kept twice
        new = await answer(
            client,
            "state_fact",
            subject="staging",
            relation="runs on",
            object="port 5433",
            since="2026-05-01",
            ends=old["id"],
        )
        assert (new["ended"], new["since"]) == (old["id"], "2026-05-01")
        await answer(client, "state_fact", subject="ann", relation="owns", object="staging", since="2026-02-01")

        found = await answer(client, "facts", about="staging")
        assert told(found) == ["staging – runs on – port 5433", "ann – owns – staging"]
        assert set(found["facts"][0]) == {"id", "fact", "since"}
        assert told(await answer(client, "facts", about="staging", relation="owns")) == ["ann – owns – staging"]
        then = await answer(client, "facts", about="staging", at="2026-04-01")
        assert told(then) == ["staging – runs on – port 5432", "ann – owns – staging"]
        assert then["facts"][0]["until"] == "2026-05-01"
        history = await answer(client, "facts", about="staging", history=True)
        assert told(history) == [
            "staging – runs on – port 5432", "staging – runs on – port 5433", "ann – owns – staging",
        ]  # fmt: skip

        (way,) = (await answer(client, "connect", start="ann", goal="port 5433"))["paths"]
        assert way["path"] == "ann → owns → staging → runs on → port 5433"
        assert way["facts"][-1] == new["id"]
        assert await answer(client, "connect", start="ann", goal="nowhere") == {"paths": []}

        assert await answer(client, "state_fact", ends=new["id"]) == {"ended": new["id"]}
        assert told(await answer(client, "facts", about="staging")) == ["ann – owns – staging"]
        memory = await answer(client, "get_memory", id=new["id"].partition("#")[0])
        assert memory["text"] == "staging runs on port 5433."

    talk.having(work)


def test_a_correction_that_cannot_be_stated_ends_nothing(over_http):
    async def work(client):
        kept = await answer(client, "state_fact", subject="a", relation="part of", object="b", since="2026-01-01")
        wrong = {"subject": "b", "relation": "rmem:ends", "object": "a", "ends": kept["id"]}
        assert "relation must not begin" in await refusal(client, "state_fact", **wrong)
        assert told(await answer(client, "facts", about="a")) == ["a – part of – b"]

    over_http.having(work)


def test_pages_leave_nothing_out(over_http):
    async def work(client):
        for number in range(5):
            await answer(client, "state_fact", subject="root", relation="holds", object=f"leaf {number}")
        found, offset = [], 0
        while offset is not None:
            page = await answer(client, "facts", about="root", limit=2, offset=offset)
            found += told(page)
            offset = page.get("next_offset")
        assert found == [f"root – holds – leaf {number}" for number in range(5)]

    over_http.having(work)


def test_facts_are_seen_by_those_who_work_in_the_repository(lasting):
    def as_member(name: str, repository: str | None) -> Talk:
        token = lasting.token_for("acme", "seen", "WRITE", member=name)
        return Talk.http(lasting, "seen", token, repository, mode=MODERN)

    stated = {"relation": "runs on", "object": "port 5433"}
    shared = as_member("ann", ETL).call("state_fact", subject="staging", **stated)
    as_member("ann", None).call("state_fact", subject="laptop", **stated)
    assert told(as_member("bob", ETL).call("facts", about="port 5433")) == ["staging – runs on – port 5433"]
    assert told(as_member("bob", "github.com/acme/site").call("facts", about="port 5433")) == []
    assert len(told(as_member("ann", ETL).call("facts", about="port 5433"))) == 2
    assert "ends: there is no fact" in as_member("bob", None).refusal("state_fact", ends=shared["id"])
    way = {"start": "laptop", "goal": "staging"}
    assert as_member("bob", ETL).call("connect", **way) == {"paths": []}
    assert len(as_member("ann", ETL).call("connect", **way)["paths"]) == 1


def test_a_reader_states_nothing_and_what_agents_do_is_written_down(lasting):
    token = lasting.token_for("acme", "logged", "READ", member="ron")
    reader = Talk.http(lasting, "logged", token, mode=MODERN)
    stated = {"subject": "a", "relation": "is", "object": "b"}
    assert "needs the role WRITE" in reader.refusal("state_fact", **stated)
    writer = Talk.http(lasting, "logged", lasting.token_for("acme", "logged", "WRITE", member="ann"), mode=MODERN)
    fact = writer.call("state_fact", **stated)
    reader.call("facts", about="a")
    admin = lasting.client(lasting.token_for("acme", "logged", "ADMIN", member="eve"))
    memory = fact["id"].partition("#")[0]
    log = admin.get("/workspaces/logged/audit", params={"memory": memory}).json()["entries"]
    assert [(one["who"], one["action"]) for one in log] == [("ron", "read"), ("ann", "remember")]
    assert all(one["detail"]["origin"] == "mcp http" for one in log)


def test_secrets_are_taken_out_of_facts(talk):
    async def work(client):
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        kept = await answer(client, "state_fact", subject="deploy", relation="signs in with", object=secret)
        assert secret not in str(kept)
        assert secret not in str(await answer(client, "facts", about="deploy"))

    talk.having(work)
