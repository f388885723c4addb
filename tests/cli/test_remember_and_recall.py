"""Keeping memories from the command line and finding them again."""

from __future__ import annotations

import pytest
from rmem_runner import Rmem


def test_what_one_process_remembers_another_recalls(rmem: Rmem) -> None:
    kept = rmem.process("remember", "Fixed the OOM: switched to pyarrow.dataset", "--agent", "swe-01")
    assert kept.code == 0
    found = rmem.process("recall", "why was the ETL job out of memory: OOM")
    assert found.code == 0
    assert "Fixed the OOM" in found.out
    assert kept.out.strip() in found.out


def test_remember_prints_nothing_but_the_id_into_a_pipe(rmem: Rmem) -> None:
    kept = rmem("remember", "Parquet it is")
    assert rmem("show", kept.out.strip()).code == 0
    assert len(kept.lines) == 1


def test_every_field_can_be_given(rmem: Rmem) -> None:
    answer = rmem(
        "remember", "Retries need jitter", "--agent", "swe-01", "--type", "decision", "--session", "s-12",
        "--actor", "Ada", "--tag", "repo=api", "--tag", "lang=go=1.22", "--importance", "0.9", "--when", "2026-05-01",
        "--meta", "ticket=4711", "--meta", '{"nested": {"list": [1, 2]}, "flag": true}', "--meta", "name=x y",
        "--meta", 'quoted="5"', "--step", "7", "--place", "build farm", "--position", "1,-2.5", "--id", "m-1", "--json",
    )  # fmt: skip
    memory = answer.json
    assert memory["memory_id"] == "m-1"
    assert memory["agent_id"] == "swe-01"
    assert memory["step_number"] == 7
    assert memory["session"] == "s-12"
    assert memory["actor"] == "Ada"
    assert memory["tags"] == {"repo": "api", "lang": "go=1.22"}
    assert memory["place"] == "build farm"
    assert memory["position"] == [1.0, -2.5]
    assert memory["metadata"]["importance_score"] == 0.9
    assert memory["metadata"]["memory_type"] == "decision"
    assert memory["contents"] == {
        "text": "Retries need jitter", "ticket": 4711, "nested": {"list": [1, 2]}, "flag": True, "name": "x y",
        "quoted": "5",
    }  # fmt: skip
    assert "embeddings" not in memory


def test_words_need_no_quotes(rmem: Rmem) -> None:
    memory_id = rmem("remember", "the", "login", "test", "was", "flaky").out.strip()
    assert rmem("show", memory_id, "--json").json["text"] == "the login test was flaky"
    assert rmem("recall", "flaky", "login", "test", "-k", "3", "--json").json["question"] == "flaky login test"


def test_a_dash_reads_the_text_from_standard_input(rmem: Rmem) -> None:
    text = "first line\n\tsecond line — größer\n"
    memory_id = rmem("remember", "-", input=text).out.strip()
    assert rmem("show", memory_id, "--json").json["text"] == text.removesuffix("\n")


def test_standard_input_that_is_not_text_is_refused(rmem: Rmem) -> None:
    answer = rmem("remember", "-", input=b"abc\xff")
    assert answer.code == 2
    assert "UTF-8" in answer.err
    assert rmem("stats", "--json").json["memories"] == 0


def test_any_text_comes_back_as_it_was(rmem: Rmem) -> None:
    texts = ["Größe und Straße", "日本語のテキスト", "🎉 emoji 👩‍👩‍👧", "a 'quoted' \"text\" $HOME `x`", "-5 degrees"]
    ids = [rmem.process("remember", "--", text).out.strip() for text in texts]
    assert [rmem("show", memory_id, "--json").json["text"] for memory_id in ids] == texts
    assert rmem.process("show", ids[2], "--json").json["text"] == texts[2]
    listed = rmem.process("list").out
    assert [text for text in texts if text not in listed] == []


def test_recall_answers_json_with_every_score_explained(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM: switched to pyarrow.dataset", "--session", "s")
    rmem("remember", "The login page is blue", "--session", "s")
    answer = rmem("recall", "OOM", "--explain", "--json").json
    best = answer["hits"][0]
    assert best["memory"]["text"].startswith("Fixed the OOM")
    assert sum(best["explanation"]["components"].values()) == pytest.approx(best["score"], abs=1e-4)
    assert {"mode", "bm25", "cosine", "words", "notes"} <= best["explanation"].keys()
    assert answer["hits"][0]["score"] >= answer["hits"][1]["score"]


def test_explain_is_readable_in_a_pipe(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM: switched to pyarrow.dataset")
    rmem("remember", "The login page is blue")
    out = rmem("recall", "OOM", "--explain").out
    assert "score: " in out
    assert "words: oom" in out
    assert "explanation" not in rmem("recall", "OOM", "--json").json["hits"][0]


def test_each_hit_is_printed_with_the_probability_that_it_answers(rmem: Rmem) -> None:
    rmem("remember", "The build on the ARM runner needs 16 GB of swap")
    rmem("remember", "Lunch is at noon")
    found = rmem("recall", "swap for the ARM runner", "--explain")
    likely = [float(line.strip().split("%")[0]) for line in found.lines if "%  memory" in line]
    assert len(likely) == 2
    assert 100 >= likely[0] > 50 > likely[1] >= 0
    assert any(line.strip().startswith("score: ") and " = words " in line for line in found.lines)


def test_filters_narrow_what_is_recalled(rmem: Rmem) -> None:
    for agent, kind, repo, ticket in (("a", "note", "x", 1), ("a", "fix", "y", 2), ("b", "fix", "x", 3)):
        rmem(
            "remember", f"deploy failed for {agent}", "--agent", agent, "--type", kind, "--session", f"s-{agent}",
            "--actor", agent, "--tag", f"repo={repo}", "--meta", f"ticket={ticket}", "--place", f"room {ticket}",
            "--importance", f"0.{ticket}", "--when", f"2026-05-0{ticket}", "--position", f"{ticket},0",
        )  # fmt: skip

    def tickets(*options: str) -> list[int]:
        hits = rmem("recall", "deploy failed", *options, "--json").json["hits"]
        return sorted(hit["memory"]["contents"]["ticket"] for hit in hits)

    assert tickets() == [1, 2, 3]
    assert tickets("--agent", "a") == [1, 2]
    assert tickets("--agent", "a", "--agent", "b") == [1, 2, 3]
    assert tickets("--type", "fix") == [2, 3]
    assert tickets("--session", "s-b") == [3]
    assert tickets("--actor", "b") == [3]
    assert tickets("--tag", "repo=x") == [1, 3]
    assert tickets("--tag", "repo=x", "--agent", "a") == [1]
    assert tickets("--attr", "ticket=2") == [2]
    assert tickets("--place", "room 3") == [3]
    assert tickets("--min-importance", "0.2") == [2, 3]
    assert tickets("--since", "2026-05-02") == [2, 3]
    assert tickets("--until", "2026-05-02") == [1, 2]
    assert tickets("--near", "3,0", "--radius", "1") == [2, 3]
    assert tickets("-k", "1") in ([1], [2], [3])


def test_time_can_be_said_in_words(rmem: Rmem) -> None:
    rmem("remember", "old deploy", "--when", "2001-01-01")
    rmem("remember", "new deploy")
    hits = rmem("recall", "deploy", "--since", "two weeks ago", "--json").json["hits"]
    assert [hit["memory"]["text"] for hit in hits] == ["new deploy"]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
def test_each_mode_answers(rmem: Rmem, mode: str) -> None:
    rmem("remember", "Fixed the OOM: switched to pyarrow.dataset")
    assert len(rmem("recall", "OOM", "--mode", mode, "--json").json["hits"]) == 1


def test_a_token_budget_leaves_out_what_does_not_fit(rmem: Rmem) -> None:
    rmem("remember", "deploy " * 200)
    rmem("remember", "deploy done")
    hits = rmem("recall", "deploy", "--token-budget", "20", "--json").json["hits"]
    assert [hit["memory"]["text"] for hit in hits] == ["deploy done"]


def test_settings_change_the_ranking_and_unknown_ones_are_refused(rmem: Rmem) -> None:
    rmem("remember", "deploy done yesterday", "--when", "2001-01-01")
    plain = rmem("recall", "deploy yesterday", "--json").json["hits"]
    strict = rmem("recall", "deploy yesterday", "--settings", "time_words=filter", "--json").json["hits"]
    assert (len(plain), len(strict)) == (1, 0)
    answer = rmem("recall", "deploy", "--settings", "densee=0.5")
    assert answer.code == 2
    assert "did you mean 'dense'" in answer.err


def test_recalling_nothing_is_no_error(rmem: Rmem) -> None:
    rmem("remember", "something")
    answer = rmem("recall", "something", "--agent", "nobody")
    assert (answer.code, answer.out) == (0, "")
    assert rmem("recall", "something", "--agent", "nobody", "--json").json["hits"] == []


def test_looking_makes_no_store(rmem: Rmem) -> None:
    for command in (("recall", "x"), ("list",), ("stats",)):
        answer = rmem(*command)
        assert answer.code == 0
        assert "there is no store" in answer.err
    assert not rmem.home.exists()


def test_a_memory_with_the_same_id_is_replaced(rmem: Rmem) -> None:
    rmem("remember", "first version", "--id", "one")
    rmem("remember", "second version", "--id", "one")
    assert rmem("stats", "--json").json["memories"] == 1
    assert rmem("show", "one", "--json").json["text"] == "second version"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("remember", "   "), "text"),
        (("remember", "a\x00b"), "text"),
        (("remember", "x", "--importance", "nan"), "importance"),
        (("remember", "x", "--importance", "2"), "importance"),
        (("remember", "x", "--when", "the twelfth of never"), "when"),
        (("remember", "x", "--tag", "novalue"), "tag"),
        (("remember", "x", "--meta", "{broken"), "meta"),
        (("remember", "x", "--meta", "text=y"), "metadata"),
        (("remember", "x", "--position", "1,two"), "position"),
        (("remember", "x", "--position", "1"), "position"),
        (("remember", "x", "--step", "-1"), "step"),
        (("recall", "x", "-k", "0"), "k"),
        (("recall", ""), "question"),
        (("recall", "x", "--since", "2026-02-01", "--until", "2026-01-01"), "since"),
        (("recall", "x", "--near", "1,2"), "radius"),
        (("recall", "x", "--token-budget", "0"), "token_budget"),
        (("list", "--limit", "-1"), "limit"),
        (("list", "--min-importance", "7"), "min_importance"),
    ],
)
def test_bad_input_is_told_in_one_line_and_names_the_field(rmem: Rmem, arguments: tuple[str, ...], field: str) -> None:
    rmem("remember", "something", "--id", "kept")
    plain = rmem(*arguments)
    assert plain.code == 2
    assert plain.out == ""
    assert plain.err.startswith("Error: ")
    assert len(plain.err.splitlines()) == 1
    as_json = rmem(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.error["field"] == field
    assert as_json.error["type"].endswith("Error")
    assert rmem("stats", "--json").json["memories"] == 1
