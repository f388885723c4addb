"""The team memory tells what fits and keeps quiet otherwise: on the history that is shipped, and on repositories that
the caller names."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from rmem.errors import InputError
from rmem.evaluate.team import BARS, Found, Prompt, PromptResult, builtin, measure, mistakes
from rmem.evaluate.team.fitting import cross_validate, examples, fit
from rmem.evaluate.team.repositories import import_histories, read_prompts
from rmem.team.briefing import BAR
from rmem.team.relevance import FEATURES


@pytest.fixture(scope="module")
def results():
    return builtin.evaluate()


def test_the_shipped_set_is_large_and_half_of_it_has_no_answer():
    prompts = builtin.prompts()
    assert len(prompts) >= 150
    assert 0.45 <= sum(not prompt.answers for prompt in prompts) / len(prompts) <= 0.55
    names = {name for name, _ in builtin.history()}
    assert all(prompt.answers <= names for prompt in prompts)


def test_what_is_told_is_right(results):
    figures = measure(results, BAR)
    assert figures.precision >= 0.85
    assert figures.wrongly <= 0.1


def test_what_is_known_is_told(results):
    assert measure(results, BAR).recall >= 0.8


def test_the_right_experience_is_among_the_first_three(results):
    assert measure(results, BAR).recall_at_3 >= 0.95


def test_a_higher_bar_tells_less(results):
    told = [measure(results, bar).shown for bar in BARS]
    assert told == sorted(told, reverse=True)
    assert measure(results, 1.0).shown == 0


def test_a_second_memory_is_told_only_if_it_is_nearly_as_relevant():
    found = [Found(name, name, relevance, True) for name, relevance in (("a", 0.9), ("b", 0.82), ("c", 0.8))]
    told = PromptResult(Prompt("r", "issue", "one", frozenset({"a"})), found).select_shown(0.5)
    assert [one.id for one in told] == ["a", "b"]


def test_figures_are_counted_as_they_are_called():
    right, wrong = Found("a", "A", 0.9, True), Found("b", "B", 0.85, False)
    results = [
        PromptResult(Prompt("r", "issue", "one", frozenset({"a"})), [right, wrong]),
        PromptResult(Prompt("r", "how", "two", frozenset({"a"})), [wrong, wrong, wrong, right]),
        PromptResult(Prompt("r", "error", "three", frozenset({"a"})), [Found("a", "A", 0.2, True)]),
        PromptResult(Prompt("r", "nothing", "four", frozenset()), [wrong]),
        PromptResult(Prompt("r", "nothing", "five", frozenset()), []),
    ]
    figures = measure(results, 0.5)
    assert (figures.right, figures.shown) == (1, 6)
    assert (figures.recalled, figures.with_answer) == (1, 3)
    assert (figures.shown_wrongly, figures.prompts - figures.with_answer) == (1, 2)
    assert figures.first_three == 2
    assert [len(lines) for lines in mistakes(results, 0.5).values()] == [3, 2]


# Repositories that the caller names

COMMITS = {
    "Fix KeyError in the carrier import": ("etl/carrier.py", "Parcels without a carrier_code have no such key."),
    "Retry uploads that time out": ("etl/upload.py", "The gateway closes idle sockets after thirty seconds."),
    "Use httpx instead of requests": ("etl/client.py", "One client for sync and async."),
    "Write invoices in cents of EUR": ("etl/invoice.py", "Floats lost cents in the yearly report."),
}


@pytest.fixture
def clones(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "memory"))
    return [clone(tmp_path / name) for name in ("etl", "site")]


def clone(root):
    """A repository with a small history; its path and the id of each commit by its subject."""
    root.mkdir()
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=n@acme.io"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    made = {}
    for subject, (name, body) in COMMITS.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {root.name} {subject}\n")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"{subject}\n\n{body}"], check=True, env=dict(os.environ))
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        made[subject] = done.stdout.strip()
    return root, made


def prompts_over(clones, folder):
    for root, made in clones:
        rows = [
            ("error", "E   KeyError: 'carrier_code'\nFAILED tests/test_a.py", ["Fix KeyError in the carrier import"]),
            ("how", "which client do we use for http, requests or httpx?", ["Use httpx instead of requests"]),
            ("issue", "uploads time out at the gateway now and then", ["Retry uploads that time out"]),
            ("nothing", "write a haiku about mountains", []),
            ("nothing", "thanks, go on", []),
        ]  # fmt: skip
        name = f"acme/{root.name}"
        lines = [
            {"repository": name, "kind": kind, "prompt": text, "answers": [made[one][:12] for one in wanted]}
            for kind, text, wanted in rows
        ]
        (folder / f"{root.name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def test_histories_of_named_repositories_are_asked(clones, tmp_path):
    (tmp_path / "prompts").mkdir()
    prompts = read_prompts(prompts_over(clones, tmp_path / "prompts"))
    seen = []
    with import_histories(
        [root for root, _ in clones], prompts, on_progress=lambda *told: seen.append(told)
    ) as histories:
        results = histories.evaluate()
        known = examples(histories)
    figures = measure(results, 0.1)
    assert (figures.prompts, figures.with_answer, figures.first_three) == (10, 6, 6)
    assert figures.recalled >= 4
    assert ("Importing etl", 5, 5) in seen
    curve = fit(known)
    assert curve.weights.keys() == FEATURES.keys()
    assert measure(cross_validate(known), 0.1).prompts == 10
    left = [path for path in (tmp_path / "memory").rglob("*") if path.is_file()]
    assert left == [], "an evaluation leaves nothing behind"


def test_prompts_about_other_repositories_are_left_out(clones, tmp_path):
    (tmp_path / "prompts").mkdir()
    prompts = read_prompts(prompts_over(clones, tmp_path / "prompts"))
    with import_histories([clones[0][0]], prompts) as histories:
        assert {one.repository for one in histories.prompts} == {"acme/etl"}
    with pytest.raises(InputError, match="none of the prompts"), import_histories([clones[0][0]], prompts[5:]):
        pass


GOOD = {"repository": "a/b", "kind": "issue", "prompt": "it fails", "answers": ["0123456789ab"]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "bug"}, "kind must be one of"),
        ({"repository": ""}, "repository must be a text"),
        ({"prompt": 5}, "prompt must be a text"),
        ({"answers": "0123456789ab"}, "answers must be a list"),
        ({"answers": ["01"]}, "answers must be a list"),
        ({"answers": []}, 'answers must be empty for the kind "nothing"'),
        ({"kind": "nothing"}, 'answers must be empty for the kind "nothing"'),
    ],
)
def test_a_wrong_line_is_refused_with_its_number_and_field(tmp_path, change, complaint):
    path = tmp_path / "prompts.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, **change}))
    with pytest.raises(InputError, match=f"prompts.jsonl, line 2: {complaint}"):
        read_prompts(path)


def test_what_is_no_json_is_refused(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("{half")
    with pytest.raises(InputError, match=r"prompts.jsonl, line 1"):
        read_prompts(path)
    with pytest.raises(InputError, match=r"no \.jsonl files"):
        read_prompts((tmp_path / "empty").mkdir() or tmp_path / "empty")
