"""Makes recall sets of other languages from XQuAD (Chinese, German, Russian, Arabic) and JSQuAD (Japanese), licensed CC
BY-SA 4.0: each sentence of the articles is a memory, and a question is answered by the one that holds its answer.

    git clone https://github.com/deepmind/xquad && git clone https://github.com/yahoojapan/JGLUE
    python benchmarks/multilingual.py xquad JGLUE --out sets
    rmem eval recall sets/*-test.json.gz

Articles with an odd number are for tuning (`-dev`), those with an even one for reporting (`-test`)."""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path
from typing import Any

XQUAD = {"zh": "Chinese", "de": "German", "ru": "Russian", "ar": "Arabic"}
_ENDS = re.compile(r"(?<=[.!?؟])\s+(?=\S)|(?<=[。！？])")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("xquad", type=Path)
    parser.add_argument("jglue", type=Path)
    parser.add_argument("--out", type=Path, default=Path("sets"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for code in XQUAD:
        data = json.loads((given.xquad / f"xquad.{code}.json").read_text("utf-8"))["data"]
        write(given.out, f"xquad-{code}", "XQuAD, CC BY-SA 4.0", data)
    (valid,) = given.jglue.glob("datasets/jsquad-v*/valid-*.json")
    write(given.out, "jsquad-ja", "JSQuAD (JGLUE), CC BY-SA 4.0", json.loads(valid.read_text("utf-8"))["data"])


def write(folder: Path, name: str, source: str, articles: list[dict[str, Any]]) -> None:
    for part, chosen in (("dev", articles[1::2]), ("test", articles[::2])):
        store = _store(chosen)
        told = {"name": f"{name}-{part}", "source": source, "unit": "memory", "stores": [store]}
        packed = gzip.compress(json.dumps(told, ensure_ascii=False).encode(), 9, mtime=0)
        (folder / f"{name}-{part}.json.gz").write_bytes(packed)
        print(f"{name}-{part}: {len(store['memories'])} memories, {len(store['questions'])} questions")


def _store(articles: list[dict[str, Any]]) -> dict[str, Any]:
    """Sentences of some articles, and the questions that one of them answers."""
    memories: list[dict[str, str]] = []
    questions: list[dict[str, Any]] = []
    for article in articles:
        for paragraph in article["paragraphs"]:
            text = paragraph["context"].partition("[SEP]")[2] or paragraph["context"]  # JSQuAD has the title before it
            left = len(paragraph["context"]) - len(text)
            first, starts = len(memories), [0, *(found.end() for found in _ENDS.finditer(text))]
            ends = [*starts[1:], len(text)]
            memories += [{"text": text[start:end].strip()} for start, end in zip(starts, ends, strict=True)]
            for asked in paragraph["qas"]:
                at = asked["answers"][0]["answer_start"] - left
                inside = [first + number for number, end in enumerate(ends) if starts[number] <= at < end]
                if inside:
                    questions.append({"question": asked["question"], "kind": "answer", "relevant": inside})
    kept = [at for at, memory in enumerate(memories) if memory["text"]]
    place = {old: new for new, old in enumerate(kept)}
    for one in questions:
        one["relevant"] = [place[at] for at in one["relevant"] if at in place]
    return {"memories": [memories[at] for at in kept], "questions": [one for one in questions if one["relevant"]]}


if __name__ == "__main__":
    main()
