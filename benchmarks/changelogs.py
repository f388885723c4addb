"""Make a recall set from the histories of Git repositories: each commit is a memory (subject and body), and the
sentence that a commit adds to the changelog is a question for it. Commits that rewrite a changelog ask nothing, nor do
those whose message says the same.

    python benchmarks/changelogs.py changelogs.json.gz CLONE…

A store for each repository: its newest 5,000 commits without merges and bots, and at most 200 questions."""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rmem.team.importers.git import Commit, commit_ids, commits

_COMMITS, _QUESTIONS = 5000, 200
_SHORTEST, _LONGEST, _LONGEST_ENTRY = 40, 300, 400  # characters of a question; of an entry
_CHANGELOG = re.compile(r"change ?log|release|what'?s ?new|merge|^news\b", re.IGNORECASE)
_REFERENCE = re.compile(r"\[?\(?\[?(?:#\d+|GH-\d+|@[\w-]+)\]?(?:\(https?://\S+\))?[\]):,]*|https?://\S+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_NEWS = "Changelog: "


def main(target: str, *clones: str) -> None:
    stores = [_store(Path(clone)) for clone in clones]
    recall_set = {"name": "changelogs", "source": "public git histories", "unit": "memory", "stores": stores}
    Path(target).write_bytes(gzip.compress(json.dumps(recall_set).encode(), 9, mtime=0))
    for clone, store in zip(clones, stores, strict=True):
        print(f"{clone}: {len(store['memories'])} memories, {len(store['questions'])} questions")


def _store(clone: Path) -> dict[str, Any]:
    """Return the commits of one repository, oldest first, and questions for some of them, chosen at random."""
    read = [commit for commit in commits(clone, commit_ids(clone)[:_COMMITS]) if not commit.by_bot]
    memories, questions = [], []
    known: set[str] = set()  # sentences of older commits: a changelog is sorted and moved
    for commit in reversed(read):
        text = f"{commit.subject}\n\n{commit.body}".strip()
        sentence = _changelog_sentence(commit)
        is_new = sentence not in known and sentence[:_SHORTEST].lower() not in text.lower()
        known.add(sentence)
        if is_new and _SHORTEST <= len(sentence) <= _LONGEST:
            questions.append({"question": sentence, "kind": clone.name, "relevant": [len(memories)]})
        memories.append({"text": text, "when": datetime.fromtimestamp(commit.when, UTC).isoformat()})
    chosen = random.Random(0).sample(questions, min(_QUESTIONS, len(questions)))
    return {"memories": memories, "questions": chosen}


def _changelog_sentence(commit: Commit) -> str:
    """Return the first sentence of a commit's changelog entry, without references to issues and people."""
    if len(commit.files) < 2 or _CHANGELOG.search(commit.subject):
        return ""  # about the changelog alone: the change itself is another commit
    news = next((line.removeprefix(_NEWS) for line in commit.patch.lines() if line.startswith(_NEWS)), "")
    plain = " ".join(_REFERENCE.sub(" ", news).split()).strip(" *-:([")
    return _SENTENCE_END.split(plain)[0] if len(news) <= _LONGEST_ENTRY else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
