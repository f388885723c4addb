"""Memories out to a file and in again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem import Brain, Memory
from rmem.errors import InputError, UnknownFieldError
from rmem.memory_files import format_of
from rmem.transfer import export, import_

FORMATS = ("jsonl", "parquet")


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    with Brain(tmp_path / "source.db") as opened:
        for number in range(5):
            opened.remember(
                f'Zeile {number}\n日本語 🎉 "quoted" \\ back',
                agent="swe-01",
                type="note" if number % 2 else "fix",
                session="s-1" if number < 3 else None,
                actor="Ada",
                tags={"repo": "x", "n": str(number)},
                importance=number / 10,
                when=1_700_000_000.125 + number,
                metadata={"ticket": number, "nested": {"list": [1, 2.5, None, True, "x"]}, "empty": {}},
                step=number * 10,
                position=(1.5, -2.0, 3.25) if number else None,
                place="Zürich" if number else None,
                id=f"m-{number}",
                tier="ltm" if number == 4 else "stm",
            )
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Brain]:
    with Brain(tmp_path / "target.db") as opened:
        yield opened


def held(brain: Brain) -> list[dict[str, Any]]:
    return [memory.to_dict() for memory in sorted(brain.memories(limit=None), key=lambda one: one.memory_id)]


@pytest.mark.parametrize("kind", FORMATS)
def test_everything_comes_back_as_it_was(brain: Brain, other: Brain, tmp_path: Path, kind: str) -> None:
    brain.recall("Zeile 3")  # so that access counts and times are not all alike
    brain.recall("Zeile 3", k=1)
    path = tmp_path / f"out.{kind}"
    told = export(brain, path)
    assert told == {"target": str(path), "format": kind, "memories": 5, "vectors": True, "left_out": 0}
    done = import_(other, path)
    assert done == {"imported": 5, "replaced": 0, "vectors_kept": 5, "embedder": brain.embedder}
    assert held(other) == held(brain)
    assert other.recall("Zeile 3")[0].memory.memory_id == brain.recall("Zeile 3")[0].memory.memory_id


@pytest.mark.parametrize("kind", FORMATS)
def test_importing_again_replaces_and_doubles_nothing(brain: Brain, tmp_path: Path, kind: str) -> None:
    brain.recall("Zeile 3")
    path = tmp_path / f"out.{kind}"
    export(brain, path)
    before = held(brain)
    brain.update("m-1", text="changed meanwhile")
    brain.forget("m-2")
    done = import_(brain, path)
    assert (done["imported"], done["replaced"]) == (5, 4)
    assert held(brain) == before
    assert len(brain.recall("Zeile", k=50)) == 5


def test_a_filter_chooses_what_is_exported(brain: Brain, other: Brain, tmp_path: Path) -> None:
    assert export(brain, tmp_path / "out.jsonl", where={"type": "fix"})["memories"] == 3
    import_(other, tmp_path / "out.jsonl")
    assert [memory.memory_id for memory in other.memories(order="oldest")] == ["m-0", "m-2", "m-4"]
    with pytest.raises(UnknownFieldError):
        export(brain, tmp_path / "x.jsonl", where={"typo": "fix"})
    assert not list(tmp_path.glob("x.jsonl*"))


@pytest.mark.parametrize("kind", FORMATS)
def test_without_vectors_the_texts_are_embedded_again(brain: Brain, other: Brain, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    export(brain, path, vectors=False)
    assert import_(other, path)["vectors_kept"] == 0
    assert held(other) == held(brain)


def test_vectors_in_a_file_can_be_passed_over(brain: Brain, other: Brain, tmp_path: Path) -> None:
    export(brain, tmp_path / "out.jsonl")
    assert import_(other, tmp_path / "out.jsonl", vectors=False)["vectors_kept"] == 0
    assert held(other) == held(brain)


@pytest.mark.parametrize("kind", FORMATS)
def test_vectors_of_another_embedder_are_not_mixed_in(other: Brain, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    with Brain(":memory:", embedder=lambda texts: [[1.0, *[0.0] * 7] for _ in texts]) as source:
        source.remember("a grey cat", id="cat")
        export(source, path)
    assert import_(other, path)["vectors_kept"] == 0
    memory = other.get("cat")
    assert memory is not None
    assert memory.embeddings.full_vector is not None
    assert memory.embeddings.full_vector.size == 256


@pytest.mark.parametrize("kind", FORMATS)
def test_vectors_that_users_supplied_are_kept_bit_by_bit(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    vectors = np.random.default_rng(7).standard_normal((50, 16)).astype(np.float32)
    with Brain(":memory:", embedder="none") as source, Brain(":memory:", embedder="none") as target:
        for number, vector in enumerate(vectors):
            source.remember(f"memory {number}", vector=vector, id=f"v-{number}")
        source.remember("without a vector", id="bare")
        export(source, path)
        assert import_(target, path)["vectors_kept"] == 50
        assert held(target) == held(source)


def test_a_session_keeps_its_order_even_after_an_update(brain: Brain, other: Brain, tmp_path: Path) -> None:
    brain.update("m-0", text="the first of the session, rewritten")
    export(brain, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    in_session = [memory["memory_id"] for memory in map(json.loads, lines) if memory["session"] == "s-1"]
    assert in_session == ["m-0", "m-1", "m-2"]


def test_a_failed_export_leaves_the_old_file(brain: Brain, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("what was there")

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(brain, path, on_progress=stop)
    assert path.read_text() == "what was there"
    assert sorted(one.name for one in tmp_path.glob("out*")) == ["out.jsonl"]
    export(brain, path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 6


def test_an_empty_store_round_trips(tmp_path: Path) -> None:
    with Brain(":memory:") as source, Brain(":memory:") as target:
        for kind in FORMATS:
            assert export(source, tmp_path / f"out.{kind}")["memories"] == 0
            assert import_(target, tmp_path / f"out.{kind}")["imported"] == 0


def test_exports_may_be_joined_and_blank_lines_do_not_matter(brain: Brain, other: Brain, tmp_path: Path) -> None:
    export(brain, tmp_path / "one.jsonl", where={"type": "fix"})
    export(brain, tmp_path / "two.jsonl", vectors=False)
    joined = (tmp_path / "one.jsonl").read_bytes() + b"\n  \n" + (tmp_path / "two.jsonl").read_bytes()
    (tmp_path / "all.jsonl").write_bytes(b"\xef\xbb\xbf" + joined)
    done = import_(other, tmp_path / "all.jsonl")
    assert (done["imported"], done["vectors_kept"]) == (8, 3)
    assert held(other) == held(brain)


def test_progress_tells_how_many_of_how_many(brain: Brain, other: Brain, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    export(brain, tmp_path / "out.jsonl", on_progress=lambda done, total: seen.append((done, total)))
    import_(other, tmp_path / "out.jsonl", on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(5, 5), (5, 5)]


# Bad files


def lines_of(brain: Brain, tmp_path: Path) -> list[str]:
    export(brain, tmp_path / "good.jsonl")
    return (tmp_path / "good.jsonl").read_text(encoding="utf-8").splitlines()


def changed(line: str, **fields: Any) -> str:
    return json.dumps({**json.loads(line), **fields})


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda line: line[:100], "not JSON"),
        (lambda line: "[1, 2]", "JSON object"),
        (lambda line: "{}", "memory_id"),
        (lambda line: '{"text": "only a text"}', "memory_id"),
        (lambda line: changed(line, unknown=1), "'unknown'"),
        (lambda line: changed(line, step_number=True), "step_number"),
        (lambda line: changed(line, step_number=-1), "step_number"),
        (lambda line: changed(line, timestamp="never"), "timestamp"),
        (lambda line: changed(line, contents="text"), "contents"),
        (lambda line: changed(line, text="\x00"), "text"),
        (lambda line: changed(line, text="  "), "text"),
        (lambda line: changed(line, tier="hot"), "tier"),
        (lambda line: changed(line, tags=["a"]), "tags"),
        (lambda line: changed(line, embeddings={"full_vector": [1.0, 2.0]}), "full_vector"),
        (lambda line: changed(line, embeddings={"full_vector": [1.0] * 255}), "256 numbers"),
        (lambda line: changed(line, embeddings={"full_vector": [float("nan")] * 256}), "NaN"),
        (lambda line: changed(line, embeddings={"fullvector": []}), "fullvector"),
        (lambda line: changed(line, metadata={"importance_score": 7}), "importance_score"),
        (lambda line: changed(line, contents={"x": "\ud800"}), "surrogate"),
        (lambda line: "[" * 100_000, "line 4"),
        (lambda line: '{"remanence": {"format": 2, "embedder": null}}', "newer version"),
        (lambda line: '{"remanence": {"format": 1, "zip": true}}', "zip"),
        (lambda line: '{"remanence": 1}', "header"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(
    brain: Brain, other: Brain, tmp_path: Path, change: Any, part: str
) -> None:
    lines = lines_of(brain, tmp_path)
    lines[3] = change(lines[3])
    (tmp_path / "bad.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        import_(other, tmp_path / "bad.jsonl")
    assert "line 4: " in str(caught.value)
    assert part in str(caught.value)
    assert len(other.store) == 0


def test_bytes_that_are_no_text_are_named_too(brain: Brain, other: Brain, tmp_path: Path) -> None:
    lines = [line.encode() for line in lines_of(brain, tmp_path)]
    lines[2] = b"\xff\xfe" + lines[2]
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match="line 3: not UTF-8"):
        import_(other, tmp_path / "bad.jsonl")


def test_many_bad_lines_are_counted_and_the_first_are_named(other: Brain, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("x\n" * 12)
    with pytest.raises(InputError, match=r"line 1: .*line 5: .*; and 7 more"):
        import_(other, tmp_path / "bad.jsonl")


def test_parquet_files_of_another_kind_are_refused(brain: Brain, other: Brain, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "out.parquet"
    export(brain, path)
    table = pq.read_table(path)

    def refused(part: str) -> None:
        with pytest.raises(InputError, match=part):
            import_(other, tmp_path / "bad.parquet")
        assert len(other.store) == 0

    pq.write_table(table.append_column("extra", pa.array([1] * 5)), tmp_path / "bad.parquet")
    refused("'extra'")
    pq.write_table(table.drop_columns(["agent_id"]), tmp_path / "bad.parquet")
    refused("'agent_id' is missing")
    at = table.schema.get_field_index("contents")
    pq.write_table(table.set_column(at, "contents", pa.array(["{}", "{", "1", None, "{}"])), tmp_path / "bad.parquet")
    refused("row 2: contents must be JSON text.*row 3: contents.*row 4: contents")
    at = table.schema.get_field_index("step_number")
    pq.write_table(table.set_column(at, "step_number", pa.array(["a"] * 5)), tmp_path / "bad.parquet")
    refused("row 1: step_number")
    (tmp_path / "bad.parquet").write_bytes(path.read_bytes()[:-100])
    refused("the file: ")
    (tmp_path / "bad.parquet").write_text("no table at all")
    refused("the file: ")


def test_a_parquet_file_reads_as_a_table(brain: Brain, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    export(brain, tmp_path / "out.parquet")
    row = pq.read_table(tmp_path / "out.parquet").to_pylist()[1]
    assert row["text"].startswith("Zeile 1")
    assert row["memory_type"] == "note"
    assert dict(row["tags"]) == {"repo": "x", "n": "1"}
    assert json.loads(row["contents"])["ticket"] == 1
    assert len(row["full_vector"]) == 256


def test_the_name_of_a_file_tells_its_format() -> None:
    assert format_of("a/b.JSONL") == format_of("x.ndjson") == format_of("-") == format_of("x.db", "jsonl") == "jsonl"
    assert format_of("x.parquet") == format_of("x.pq") == format_of("-", "parquet") == "parquet"
    for path in ("x.csv", "x", "x.json"):
        with pytest.raises(InputError, match="format"):
            format_of(path)


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1).filter(str.strip)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=8,
)
_number = st.floats(-1e6, 1e6, width=32)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"text": _text},
            optional={
                "metadata": st.dictionaries(_text.filter(lambda key: key != "text"), _json, max_size=4),
                "importance": st.floats(0, 1),
                "when": st.floats(0, 4e9),
                "step": st.integers(0, 2**40),
                "position": st.tuples(_number, _number),
                "vector": st.lists(_number, min_size=8, max_size=8).filter(
                    lambda given: any(abs(x) > 1 for x in given)
                ),
            },
        ),
        max_size=4,
    ),
    st.sampled_from(FORMATS),
)
def test_whatever_can_be_remembered_can_be_moved(items: list[dict[str, Any]], kind: str) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Brain(":memory:", embedder="none") as source,
        Brain(":memory:", embedder="none") as target,
    ):
        source.remember_many(items)
        path = Path(folder) / f"out.{kind}"
        export(source, path)
        import_(target, path)
        assert held(target) == held(source)
        assert all(isinstance(memory, Memory) for memory in target.memories(limit=None))
