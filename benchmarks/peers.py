"""`make bench-peers`: the same work on Remanence, lancedb, chromadb and mem0, each in a throw-away environment.

    python benchmarks/peers.py [--size 10000] [--only lancedb] [--json FILE] [--keep FOLDER]

Same synthetic texts, same precomputed vectors, one library at a time in processes of its own. A library that
cannot be installed or fails is reported as such. Environments and data are removed at the end; nothing is sent
anywhere: telemetry is switched off and the work runs without a way to the network."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
from adapters import PEERS  # noqa: E402
from work import QUERIES, SINGLE  # noqa: E402

from rmem.bench import machine  # noqa: E402
from rmem.embed import embedder_for  # noqa: E402
from rmem.testing.synthetic import synthetic_memories, synthetic_questions  # noqa: E402

NO_TELEMETRY = {
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "CHROMA_TELEMETRY_IMPL": "none",
    "POSTHOG_DISABLED": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000, help="memories (default 10000)")
    parser.add_argument("--only", action="append", choices=list(PEERS), help="this library only; may be repeated")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--keep", type=Path, help="keep environments in this folder and use them again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rmem-peers-", dir=machine.disk_folder()) as temporary:
        report = run(Path(temporary), options.size, options.only or list(PEERS), options.keep)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    show(report)


def run(folder: Path, size: int, peers: list[str], keep: Path | None) -> dict[str, Any]:
    data = folder / "data"
    data.mkdir()
    tell(f"making {size:,} memories")
    prepare(data, size)
    results = {}
    for peer in peers:
        environment = (keep or folder) / f"venv-{peer}"
        results[peer] = attempt(peer, environment, data, folder / peer)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "size": size,
        "machine": machine.facts(folder),
        "peers": results,
    }


def prepare(data: Path, size: int) -> None:
    """Rows, vectors, questions and fresh rows as files that every library's process reads."""
    embedder = embedder_for("static")
    vectors = np.lib.format.open_memmap(data / "vectors.npy", "w+", dtype=np.float32, shape=(size, embedder.dimension))
    agents: list[str] = []
    with (data / "rows.jsonl").open("w", encoding="utf-8") as lines:
        texts: list[str] = []
        for memory in synthetic_memories(size):
            texts.append(memory["text"])
            agents.append(memory["agent"])
            row = {"text": memory["text"], "agent": memory["agent"], "id": f"m-{memory['step']}"}
            lines.write(json.dumps(row) + "\n")
            if len(texts) == 1000 or len(agents) == size:
                vectors[len(agents) - len(texts) : len(agents)] = embedder.embed(texts)
                texts = []
    vectors.flush()
    questions = synthetic_questions(QUERIES + 1, size=size)
    asked = [
        {"text": question, "vector": vector.tolist()}
        for question, vector in zip(questions, embedder.embed(questions), strict=True)
    ]
    fresh = [
        {
            "text": memory["text"],
            "agent": memory["agent"],
            "vector": embedder.embed([memory["text"]])[0].tolist(),
            "id": f"n-{memory['step']}",
        }
        for memory in synthetic_memories(SINGLE, seed=1)
    ]
    (data / "questions.json").write_text(json.dumps(asked[:-1]), "utf-8")
    (data / "first.json").write_text(json.dumps(asked[-1]), "utf-8")
    (data / "fresh.json").write_text(json.dumps(fresh), "utf-8")
    (data / "facts.json").write_text(json.dumps({"rows": size, "agent": agents[0]}), "utf-8")


def attempt(peer: str, environment: Path, data: Path, folder: Path) -> dict[str, Any]:
    """Install one library and run its work; what went wrong, if something did."""
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    package = str(HERE.parent) if peer == "rmem" else PEERS[peer].package
    try:
        if not python.exists():
            tell(f"{peer}: installing")
            venv.create(environment, with_pip=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package, "numpy"]
            subprocess.run(pip, check=True, capture_output=True, text=True, timeout=1800)
        version = subprocess.run(
            [str(python), "-c", f"import importlib.metadata as m; print(m.version('{PEERS[peer].package}'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        tell(f"{peer} {version}: working")
        folder.mkdir()
        quiet = {**os.environ, **NO_TELEMETRY, **NO_NETWORK, **ONE_THREAD, "MEM0_DIR": str(folder / "mem0-home")}
        line = [str(python), str(HERE / "work.py"), peer, str(data), str(folder / "store")]
        done = subprocess.run(line, check=True, capture_output=True, text=True, env=quiet, timeout=4 * 3600)
        return {"version": version, **json.loads(done.stdout.splitlines()[-1])}
    except subprocess.CalledProcessError as error:
        return {"failed": (error.stderr or error.stdout or str(error)).strip()[-1500:]}
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as error:
        return {"failed": str(error)[-1500:]}


ROWS = (
    ("add one, durable as by default (ms)", "add_one", "wall_ms"),
    ("fill (rows/s)", "bulk", "rows_per_wall_s"),
    ("hybrid (ms)", "hybrid", "wall_ms"),
    ("  CPU", "hybrid", "cpu_ms"),
    ("hybrid, one agent (ms)", "hybrid_one_agent", "wall_ms"),
    ("vector (ms)", "vector", "wall_ms"),
    ("  CPU", "vector", "cpu_ms"),
    ("vector, one agent (ms)", "vector_one_agent", "wall_ms"),
    ("keywords (ms)", "words", "wall_ms"),
    ("new process to first hit (ms)", "first_hit", "wall_ms"),
    ("  its memory (MB)", "first_hit", "rss_bytes"),
    ("found right after the write", "found_at_once", ""),
    ("on disk (MB)", "bytes", ""),
)


def show(report: dict[str, Any]) -> None:
    """One table, p50 / p95 where there are many calls, and below it why a cell is empty."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{report['size']:,} memories, wall p50 / p95 unless said", title_justify="left")
    table.add_column("", no_wrap=True)
    for peer, figures in report["peers"].items():
        table.add_column(f"{peer} {figures.get('version', '')}".strip(), justify="right")
    notes: dict[str, None] = {}
    for title, part, key in ROWS:
        cells = []
        for peer, figures in report["peers"].items():
            value = figures.get(part)
            if isinstance(value, dict) and "not_possible" in value:
                notes[f"{peer}, {part.split('_')[0]}: not possible offline: {value['not_possible']}"] = None
                value = None
            cells.append(cell(value.get(key) if isinstance(value, dict) else value))
        table.add_row(title, *cells)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(table)
    for peer, figures in report["peers"].items():
        if "failed" in figures:
            notes[f"{peer} failed: {figures['failed'].splitlines()[-1] if figures['failed'] else 'unknown'}"] = None
    for note in notes:
        console.print(f"– {note}", highlight=False, markup=False)
    console.print(f"rmem {metadata.version('rmem')}, {datetime.now():%Y-%m-%d}", highlight=False)


def cell(value: Any) -> str:
    if isinstance(value, dict):
        return " / ".join(f"{one:,.0f}" if one >= 100 else f"{one:.3g}" for one in (value["p50"], value["p95"]))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value / 1e6:,.0f}"
    return "–" if value is None else f"{value:,.0f}"


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
