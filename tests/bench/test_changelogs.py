"""benchmarks/changelogs.py on the history of a public repository."""

import gzip
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests" / "server" / "data" / "itsdangerous.bundle"


def test_changelog_entries_ask_for_their_commits(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import changelogs

    subprocess.run(["git", "clone", "-q", BUNDLE, tmp_path / "itsdangerous"], check=True)
    changelogs.main(str(tmp_path / "set.json.gz"), str(tmp_path / "itsdangerous"))

    (store,) = json.loads(gzip.decompress((tmp_path / "set.json.gz").read_bytes()))["stores"]
    texts = [memory["text"] for memory in store["memories"]]
    asked = {question["question"]: texts[question["relevant"][0]] for question in store["questions"]}
    assert asked["Fixed an incorrect call into want_bytes that broke some uses of itsdangerous on Python 2.6."] == (
        "Fixed a bug in Python 2.6"
    )
    assert all(question[:40].lower() not in text.lower() for question, text in asked.items())
