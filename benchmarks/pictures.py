"""Draws the pictures of the README and the manual into docs/pictures: the demo in a terminal, recall and speed beside
their baselines (from benchmarks/results), and the paths of a memory. Run it with `make pictures`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parent / "docs" / "pictures"
RESULTS = HERE / "results"
OURS, THEIRS, INK, PAPER = "#3f51b5", "#b0b4c8", "#20243a", "#eef0fa"
WIDTH = 104


def main() -> None:
    mpl.rcParams.update({"svg.hashsalt": "rmem", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    PICTURES.mkdir(exist_ok=True)
    demo()
    recall()
    speed()
    flow("write", WRITE_PATH)
    flow("recall", RECALL_PATH)
    parts()


def demo() -> None:
    """Run the demo and draw what a terminal shows."""
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, str(HERE.parent / "examples" / "demo.py"), "--home", str(Path(folder) / "rmem-demo")]
        shown = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
        told = subprocess.run(line, capture_output=True, text=True, check=True, env=shown).stdout
        told = told.replace(folder, "~")
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text("$ make demo", style="bold"))
    console.print(Text.from_ansi(told))
    drawn = console.export_svg(title="make demo", unique_id="rmem")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # these fonts would be fetched
    (PICTURES / "demo.svg").write_text(drawn, "utf-8")


def recall() -> None:
    """First hits that are right, on each public set, beside plain BM25."""
    sets = _read("recall.json")["sets"]
    fig, axis = plt.subplots(figsize=(7.2, 2.8))
    for number, one in enumerate(sets):
        for at, (name, colour) in enumerate((("default", OURS), ("bm25", THEIRS))):
            value = 100 * one["systems"][name]["r@1"]
            axis.barh(number + 0.38 * at, value, 0.36, color=colour)
            axis.text(value + 0.6, number + 0.38 * at, f"{value:.1f}", va="center", fontsize=8, color=INK)
    axis.set_yticks([number + 0.19 for number in range(len(sets))], [one["name"] for one in sets])
    axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.set_xlabel("questions whose first hit is right, %")
    _legend(axis, ("rmem, static embedder", "plain BM25"))
    _save(fig, "recall-quality.svg")


def speed() -> None:
    """Time of a hybrid recall as the store grows, beside numpy's brute force over the same vectors."""
    sizes: dict[int, Any] = {}
    for path in RESULTS.glob("bench*.json"):
        sizes |= {int(size): found for size, found in json.loads(path.read_text("utf-8"))["sizes"].items()}
    rows = sorted(sizes)
    fig, axis = plt.subplots(figsize=(7.2, 2.6))
    hybrid = [sizes[size]["recall"]["hybrid"]["wall_ms"]["p50"] for size in rows]
    plain = [sizes[size]["recall"]["baselines"]["numpy_brute_force"]["wall_ms"]["p50"] for size in rows]
    for values, label, colour in ((hybrid, "hybrid recall", OURS), (plain, "numpy, vectors only", THEIRS)):
        axis.plot(rows, values, "o-", color=colour, label=label)
        for x, y in zip(rows, values, strict=True):
            axis.annotate(f"{y:.1f}", (x, y), textcoords="offset points", xytext=(4, 5), fontsize=8, color=INK)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("memories")
    axis.set_ylabel("ms, median")
    axis.legend(frameon=False, fontsize=8)
    _save(fig, "speed.svg")


WRITE_PATH = (
    ("remember(…)", "one memory or many"),
    ("check", "fields, types, limits"),
    ("mask", "the privacy policy,\nif there is one"),
    ("embed", "text → 256 numbers"),
    ("derive", "words, times, names"),
    ("commit", "one transaction,\nthen on disk"),
)
RECALL_PATH = (
    ("recall(…)", "any text"),
    ("read", "words, time,\nwho is named"),
    ("search", "BM25 and vectors\nfor every row"),
    ("fuse", "each side in its\nown deviations"),
    ("context", "neighbours, session,\ntime, importance"),
    ("load", "the best k, with\nevery part of the score"),
)


def flow(name: str, steps: tuple[tuple[str, str], ...]) -> None:
    """Boxes from left to right."""
    fig, axis = plt.subplots(figsize=(11.5, 1.5))
    axis.set_xlim(0, len(steps))
    axis.set_ylim(0, 1)
    axis.axis("off")
    for number, (title, text) in enumerate(steps):
        _box(axis, (number + 0.06, 0.12), (0.82, 0.76), title, text)
        if number:
            _arrow(axis, (number - 0.11, 0.5), (number + 0.05, 0.5))
    _save(fig, f"{name}-path.svg")


def parts() -> None:
    """What stands on what."""
    fig, axis = plt.subplots(figsize=(9, 3.6))
    axis.set_xlim(0, 12)
    axis.set_ylim(0, 4.2)
    axis.axis("off")
    _row(
        axis,
        3.2,
        ("Command line", "rmem …"),
        ("Python", "Brain, agents, Client"),
        ("REST", "rmem serve"),
        ("MCP, hooks", "coding agents"),
    )
    _row(
        axis,
        2.15,
        ("Brain", "remember, recall, forget"),
        ("Agents", "three tiers"),
        ("Tables", "SQL, hybrid search"),
        ("Team", "capture, share, audit"),
    )
    _row(
        axis,
        1.1,
        ("Recall", "one ranking"),
        ("Index", "words, vectors, columns"),
        ("Embedders", "static, MiniLM, yours"),
        ("Privacy, keys", "mask, encrypt"),
    )
    _row(
        axis,
        0.05,
        ("SQLite", "one file"),
        ("PostgreSQL", "many machines"),
        ("Redis", "hot tiers"),
        ("Plugins", "four methods"),
    )
    _save(fig, "parts.svg")


def _row(axis: Any, height: float, *boxes: tuple[str, str]) -> None:
    for number, (title, text) in enumerate(boxes):
        _box(axis, (3 * number + 0.1, height), (2.8, 0.85), title, text)


def _box(axis: Any, at: tuple[float, float], size: tuple[float, float], title: str, text: str) -> None:
    shape = FancyBboxPatch(at, *size, boxstyle="round,pad=0,rounding_size=0.06", facecolor=PAPER, edgecolor=OURS)
    axis.add_patch(shape)
    middle = at[0] + size[0] / 2
    axis.text(middle, at[1] + size[1] * 0.72, title, ha="center", va="center", weight="bold", color=INK, fontsize=9)
    axis.text(middle, at[1] + size[1] * 0.32, text, ha="center", va="center", color=INK, fontsize=7.5)


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axis.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10, color=OURS, shrinkA=0, shrinkB=0))


def _legend(axis: Any, names: tuple[str, str]) -> None:
    for name, colour in zip(names, (OURS, THEIRS), strict=True):
        axis.barh([0], [0], color=colour, label=name)
    axis.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1.0), ncols=2)


def _read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text("utf-8"))


def _save(fig: Any, name: str) -> None:
    fig.savefig(PICTURES / name, bbox_inches="tight", metadata={"Date": None}, transparent=False, facecolor="white")
    plt.close(fig)
    print(f"docs/pictures/{name}")


if __name__ == "__main__":
    main()
