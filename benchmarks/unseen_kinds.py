"""Make recall sets of kinds of memories that nothing here was tuned or trained on, from public repositories.

    python benchmarks/unseen_kinds.py FOLDER CLONES

CLONES is a folder of clones, named as in `KINDS` below; bare ones will do. Each kind whose clones are there becomes
FOLDER/KIND.json.gz, for `rmem eval recall FOLDER`."""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Store = dict[str, list[dict[str, Any]]]

_ASKED = 200  # functions of a repository that are asked for


def main(folder: str, clones: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for kind, (repositories, read) in KINDS.items():
        found = [Path(clones) / name for name in repositories if (Path(clones) / name).is_dir()]
        stores = [store for clone in found for store in read(clone) if store["questions"]]
        if stores:
            recall_set = {"name": kind, "source": ", ".join(repositories), "unit": "memory", "stores": stores}
            Path(folder, f"{kind}.json.gz").write_bytes(gzip.compress(json.dumps(recall_set).encode(), 9, mtime=0))
        memories, questions = (sum(len(store[part]) for store in stores) for part in ("memories", "questions"))
        print(f"{kind}: {len(stores)} stores, {memories} memories, {questions} questions")


def _abstracts(clone: Path) -> Iterator[Store]:
    """Cranfield: which abstracts are about a question of an engineer? Judged by its author and his peers."""
    texts = dict(_files(clone, r"^data/(?:cran\.all\.1400|cran\.qry|cranqrel)$"))
    memories = []
    for entry in texts["data/cran.all.1400"].split("\n.I "):
        title, text = entry.partition("\n.A\n")[0].partition(".T\n")[2], entry.partition(".W\n")[2]
        memories.append({"text": " ".join((text.strip() or title).split()) or "-"})
    right = defaultdict(list)
    for line in texts["data/cranqrel"].splitlines():
        question, document = line.split()[:2]
        right[int(question)].append(int(document) - 1)
    asked = [" ".join(entry.partition(".W\n")[2].split()) for entry in texts["data/cran.qry"].split(".I ")[1:]]
    yield {
        "memories": memories,
        "questions": [_question(text, right[number]) for number, text in enumerate(asked, 1) if right[number]],
    }


def _answers(clone: Path) -> Iterator[Store]:
    """Questions of students, each answered in a chat and kept: a store for each course, without the questions."""
    courses: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for path, text in _files(clone, r"^_questions/.*\.md$"):
        head, answer = re.match(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        question = re.search(r"^question: (.*?)(?=^\w+:|\Z)", head, re.DOTALL | re.MULTILINE)
        if question and len(answer.strip()) >= 40:
            courses[path.split("/")[1]].append((" ".join(question[1].strip(" \n'\"").split()), answer.strip()))
    for pairs in courses.values():
        yield {
            "memories": [{"text": answer} for _, answer in pairs],
            "questions": [_question(text, [at]) for at, (text, _) in enumerate(pairs) if len(text.split()) >= 4],
        }


def _functions(clone: Path) -> Iterator[Store]:
    """Functions without their docstrings: which one does what the docstring's first sentence says?"""
    store: Store = {"memories": [], "questions": []}
    for _, text in _files(clone, r"^(?!.*tests?/).*\.py$"):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or len(node.body) < 2:
                continue
            about = " ".join(re.split(r"\n\s*\n|(?<=\.)\s", ast.get_docstring(node) or "")[0].split())
            node.body = node.body[1:]
            code = ast.unparse(node)
            if 5 <= len(about.split()) <= 30 and 100 < len(code) < 4000:
                store["questions"].append(_question(about, [len(store["memories"])]))
                store["memories"].append({"text": code})
    random.Random(0).shuffle(store["questions"])
    del store["questions"][_ASKED:]
    yield store


def _chat(clone: Path) -> Iterator[Store]:
    """Help in a busy channel: which messages reply to a question? Judged by hand; the questions are not kept."""
    texts = dict(_files(clone, r"^data/(?:dev|test)/.*\.(?:annotation|raw)\.txt$"))
    for path in sorted(path for path in texts if path.endswith(".raw.txt")):
        said = [
            re.match(r"\[(..:..)\] <([^>]+)> (.*\S)", line) for line in texts[path].splitlines()
        ]  # what is no message says who came and went
        replies = defaultdict(list)
        for line in texts[path.replace(".raw.", ".annotation.")].splitlines():
            first, second = sorted(map(int, line.split()[:2]))
            if first != second:
                replies[first].append(second)
        asked = [
            at for at in replies if (one := said[at]) is not None and one[3].endswith("?") and len(one[3].split()) >= 5
        ]
        store: Store = {"memories": [], "questions": []}
        places = {}
        for at, one in enumerate(said):
            if one is not None and at not in asked:
                places[at] = len(store["memories"])
                when = f"2024-01-01T{one[1]}:00"
                store["memories"].append({"text": one[3], "actor": one[2], "session": "channel", "when": when})
        for at in asked:
            if right := [places[reply] for reply in replies[at] if reply in places]:
                store["questions"].append(_question(said[at][3], right))  # type: ignore[index]
        yield store


KINDS: dict[str, tuple[Sequence[str], Callable[[Path], Iterator[Store]]]] = {
    "abstracts": (["cs7is3-cranfield-search"], _abstracts),  # Menotron, holds the Cranfield collection
    "answers": (["faq"], _answers),  # DataTalksClub
    "chat": (["irc-disentanglement"], _chat),  # jkkummerfeld
    "functions": (["astropy", "mitmproxy", "paramiko", "pydicom", "redash"], _functions),
}


def _question(text: str, right: Sequence[int]) -> dict[str, Any]:
    return {"question": text, "kind": "question", "relevant": list(right)}


def _files(clone: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files at HEAD whose path matches; without those that are no text or not there."""
    listed = (line.split(None, 3) for line in _git(clone, "ls-tree", "-r", "HEAD").decode().splitlines())
    chosen = [(path, blob) for _, kind, blob, path in listed if kind == "blob" and re.search(pattern, path)]
    contents = _git(clone, "cat-file", "--batch", given="".join(f"{blob}\n" for _, blob in chosen))
    at = 0
    for path, _ in chosen:
        end = contents.index(b"\n", at)
        head = contents[at:end].split()
        at = end + 1
        if head[1] == b"missing":
            continue
        size = int(head[2])
        try:
            yield path, contents[at : at + size].decode()
        except UnicodeDecodeError:
            pass
        at += size + 1


def _git(clone: Path, *words: str, given: str = "") -> bytes:
    command = ["git", "-C", str(clone), *words]
    return subprocess.run(command, input=given.encode(), capture_output=True, check=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
