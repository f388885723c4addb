"""Make recall sets of kinds of memories that nothing here was tuned or trained on, from public repositories.

    python benchmarks/unseen_kinds.py FOLDER CLONES

CLONES is a folder of clones as in `training/`: CLONES/OWNER+NAME/repo, bare or not. Each kind of `KINDS` whose clones
are there becomes FOLDER/KIND.json.gz, for `rmem eval recall FOLDER`."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

Store = dict[str, list[dict[str, Any]]]

_ASKED = 200  # functions of a repository that are asked for
_MANY = 800  # questions asked of the largest stores


def main(folder: str, clones: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for kind, (repositories, read) in KINDS.items():
        places = [Path(clones, name.replace("/", "+"), "repo") for name in repositories]
        stores = [store for clone in places if clone.is_dir() for store in read(clone) if store["questions"]]
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


def _messages(clone: Path) -> Iterator[Store]:
    """REALTALK: what two people wrote to each other in three weeks, by phone, and what was asked about it later."""
    for _, text in _files(clone, r"^data/Chat_\d+_\w+\.json$"):
        chat, store, places = json.loads(text), Store(memories=[], questions=[]), {}
        for number in range(1, len(chat)):
            for turn in chat.get(f"session_{number}", ()):
                if turn["clean_text"].strip():
                    places[turn["dia_id"]] = len(store["memories"])
                    when = datetime.strptime(turn["date_time"], "%d.%m.%Y, %H:%M:%S").isoformat()
                    store["memories"].append(
                        {"text": turn["clean_text"], "actor": turn["speaker"], "session": str(number), "when": when}
                    )
        for asked in chat["qa"]:
            evidence = re.findall(r"D\d+:\d+", " ".join(asked["evidence"]))
            if right := [places[turn] for turn in evidence if turn in places]:
                store["questions"].append(_question(asked["question"], right))
        yield store


def _meetings(clone: Path) -> Iterator[Store]:
    """QMSum: transcripts of meetings; which turns are about what is asked?"""
    for _, lines in _files(clone, r"^data/ALL/jsonl/(?:val|test)\.jsonl$"):
        for meeting in map(json.loads, lines.splitlines()):
            turns = meeting["meeting_transcripts"]
            questions = [
                _question(
                    asked["query"],
                    sorted(
                        {
                            turn
                            for first, last in asked["relevant_text_span"]
                            for turn in range(int(first), int(last) + 1)
                            if turn < len(turns)
                        }
                    ),
                )
                for asked in meeting["specific_query_list"]
            ]
            yield {
                "memories": [
                    {"text": turn["content"].strip() or "-", "actor": turn["speaker"], "session": "meeting"}
                    for turn in turns
                ],
                "questions": [question for question in questions if question["relevant"]],
            }


def _health(clone: Path) -> Iterator[Store]:
    """MedQuAD: questions of patients and the answers of public health services, in a quarter of its documents."""
    places: dict[str, int] = {}
    questions = []
    files = sorted(_files(clone, r"\.xml$"))
    for _, text in random.Random(1).sample(files, len(files) // 4):
        for pair in ElementTree.fromstring(text).iter("QAPair"):
            answer = " ".join((pair.findtext("Answer") or "").split())
            if len(answer) >= 40:
                place = places.setdefault(answer, len(places))
                questions.append(_question(" ".join((pair.findtext("Question") or "").split()), [place]))
    random.Random(1).shuffle(questions)
    yield {"memories": [{"text": answer} for answer in places], "questions": questions[:_MANY]}


def _commands(clone: Path) -> Iterator[Store]:
    """NL2Bash: command lines without a comment; which one does what is asked?"""
    texts = dict(_files(clone, r"^data/bash/all\.(?:nl|cm)$"))
    places: dict[str, int] = {}
    right: defaultdict[str, set[int]] = defaultdict(set)
    for asked, command in zip(*(texts[f"data/bash/all.{end}"].splitlines() for end in ("nl", "cm")), strict=True):
        right[asked].add(places.setdefault(command, len(places)))
    questions = [_question(asked, sorted(found)) for asked, found in right.items()]
    random.Random(1).shuffle(questions)
    yield {"memories": [{"text": command} for command in places], "questions": questions[:_MANY]}


def _proposals(clone: Path) -> Iterator[Store]:
    """PEPs: long documents without title and abstract; which one is it that either of these is about?"""
    store: Store = {"memories": [], "questions": []}
    for _, text in _files(clone, r"/pep-\d+\.(?:rst|txt)$"):
        title = re.search(r"^Title: (.+)", text, re.MULTILINE)
        abstract = re.search(r"^Abstract\n=+\n+(.*?)\n\n+[^\n]+\n[=-]+\n", text, re.DOTALL | re.MULTILINE)
        if title and abstract and len(text) - abstract.end(1) >= 1500:
            first = " ".join(abstract[1].split("\n\n")[0].split())
            store["questions"] += [_question(asked, [len(store["memories"])]) for asked in (title[1], first) if asked]
            store["memories"].append({"text": text[abstract.end(1) :]})
    yield store


def _news(clone: Path) -> Iterator[Store]:
    """Questions of the TREC evaluations: which sentences of the news answer them? Judged by hand."""
    places: dict[str, int] = {}
    right: defaultdict[str, list[int]] = defaultdict(list)
    for _, text in _files(clone, r"^data/anssel/wang/(?:train|dev|test)\.csv$"):
        for row in csv.DictReader(text.splitlines()):
            if sentence := row["atext"].strip():
                place = places.setdefault(sentence, len(places))
                if row["label"] == "1":
                    right[row["qtext"]].append(place)
    yield {
        "memories": [{"text": sentence} for sentence in places],
        "questions": [_question(asked, sorted(set(found))) for asked, found in right.items()],
    }


KINDS: dict[str, tuple[Sequence[str], Callable[[Path], Iterator[Store]]]] = {
    "abstracts": (["Menotron/cs7is3-cranfield-search"], _abstracts),  # holds the Cranfield collection
    "answers": (["DataTalksClub/faq"], _answers),
    "chat": (["jkkummerfeld/irc-disentanglement"], _chat),
    "commands": (["TellinaTool/nl2bash"], _commands),
    "functions": (
        ["astropy/astropy", "mitmproxy/mitmproxy", "paramiko/paramiko", "pydicom/pydicom", "getredash/redash"],
        _functions,
    ),
    "health": (["abachaa/MedQuAD"], _health),
    "meetings": (["Yale-LILY/QMSum"], _meetings),
    "messages": (["danny911kr/REALTALK"], _messages),
    "news": (["brmson/dataset-sts"], _news),
    "proposals": (["python/peps"], _proposals),
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
