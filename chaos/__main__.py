"""`python -m chaos`: read arguments, start a runner for each store, print the reports."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rmem_bench.machine import facts

from . import embedder, report
from .faults import compile_shim
from .plan import FAULTS, STORES, faults_for
from .runner import STORE

_ABOUT = """\
Break a store on purpose and prove that it kept its promises.

Processes of several threads work on one store: they remember, update, tag, move, forget, recall, list, export and
count memories, and write down each operation before it is issued and after it is acknowledged. Meanwhile faults are
injected. After each round of some seconds a model of what was acknowledged is compared with every answer that was
given and with the store itself. Every violation is printed with the journal lines concerned; the exit code is then 1.
"""
_MORE = """\
faults:
  kill       kill -9 of a worker, which is replaced      disk     EIO, ENOSPC, short writes and failing fsync
  stop       SIGSTOP, and SIGCONT a while later          power    rounds after which power cuts are reconstructed
  interrupt  an exception inside an operation (Ctrl-C)   server   crash of PostgreSQL or Redis
  fork       a fork with the store open                  doctor, backup, reindex, export, open: rmem beside the workers

disk and power need Linux and a C compiler; without them they are left out, and the report says so.

examples:
  python -m chaos --minutes 2                                       all faults on SQLite, PostgreSQL and Redis
  python -m chaos --store sqlite --faults kill,power --seed 7
  python -m chaos --store sqlite --minutes 60 --processes 6 --json chaos.json

A seed gives the same operations and faults, but not the same timing. A violation that does not recur at once recurs
within a few runs. docs/chaos.md says how to read one.
"""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="chaos-")).resolve()
    stores = STORES if options.store == "all" else (options.store,)
    shim = compile_shim(folder) if {"disk", "power"} & set(options.faults) else "no fault needs it"
    answer: dict[str, Any] = {
        "format": 1,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": f"python -m chaos {shlex.join(sys.argv[1:] if arguments is None else arguments)}",
        "seed": options.seed,
        "machine": facts(folder),
        "left_out": {},
        "stores": {},
    }
    for store in stores:
        faults = faults_for(store, options.faults)
        lacking = [fault for fault in faults if fault in ("disk", "power") and isinstance(shim, str)]
        if lacking:
            answer["left_out"][store] = {fault: str(shim) for fault in lacking}
            print(f"LEFT OUT on {store}: {' and '.join(lacking)}, because {shim}", file=sys.stderr)
        faults = [fault for fault in faults if fault not in lacking]
        result = _run(store, faults, options, options.minutes * 60 / len(stores), folder, shim)
        answer["stores"][store] = result
        print(report.describe(store, result, _replay(store, faults, options)), flush=True)
    for store, left in answer["left_out"].items():
        print(f"LEFT OUT on {store}: {', '.join(left)} ({next(iter(left.values()))})")
    if options.json:
        Path(options.json).write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
    if any(result["violations"] for result in answer["stores"].values()):
        print(f"The journals of the rounds concerned are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _replay(store: str, faults: list[str], options: argparse.Namespace) -> str:
    """Return the command that repeats the plan on one store."""
    given = {"round": options.round_seconds}
    given |= {name: getattr(options, name) for name in ("processes", "threads", "seed", "pace", "durability")}
    flags = " ".join(f"--{name} {value}" for name, value in given.items())
    return f"python -m chaos --store {store} {flags} --faults {','.join(faults) or 'none'}"


def _run(
    store: str, faults: list[str], options: argparse.Namespace, seconds: float, folder: Path, shim: Path | str
) -> dict[str, Any]:
    """Run the runner of one store; return its result."""
    home = folder / store
    home.mkdir()
    embedder.install(home / "plugins")
    paths = [str(home / "plugins"), *filter(None, sys.path), str(Path.cwd())]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RMEM_")}
    environment |= {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "RMEM_HOME": str(home / "home"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    if isinstance(shim, Path) and {"disk", "power"} & set(faults):
        named = {"LD_PRELOAD": shim, "CHAOS_CONTROL": home / "control", "CHAOS_LOG": home / "power.log"}
        environment |= {key: str(path) for key, path in named.items()} | {"CHAOS_TARGET": str(home / STORE)}
        (home / "control").write_bytes(bytes(4096))
    orders = {**vars(options), "store": store, "folder": str(home), "faults": faults, "seconds": seconds}
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "chaos.runner"], input=json.dumps(orders), text=True, env=environment, check=True
    )
    result: dict[str, Any] = json.loads((home / "result.json").read_text(encoding="utf-8"))
    return {"seconds": round(time.monotonic() - began, 1), **result}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m chaos", description=_ABOUT, epilog=_MORE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, default=2.0, metavar="M", help="how long, shared by the stores (2)")
    add("--store", choices=[*STORES, "all"], default="all", help="what to break (all)")
    add("--processes", type=int, default=4, metavar="N", help="workers at a time (4)")
    add("--threads", type=int, default=2, metavar="N", help="threads of each worker (2)")
    add("--seed", type=int, default=1, metavar="N", help="the plan of operations and faults (1)")
    add("--faults", type=_faults, default=FAULTS, metavar="A,B,…", help="only these, or none (all)")
    add("--rounds", type=int, metavar="N", help="so many rounds on each store, however long they take")
    add(
        "--round",
        dest="round_seconds",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds of work between comparisons (10)",
    )
    add("--pace", type=float, default=0.5, metavar="N", help="faults in a second for each worker (0.5)")
    add("--cuts", type=int, default=20, metavar="N", help="power cuts after each round with power (20)")
    add("--durability", choices=["full", "normal"], default="full", help="of the store; power cuts break normal")
    add("--json", metavar="FILE", help="write every figure and violation there")
    return parser.parse_args(arguments)


def _faults(text: str) -> tuple[str, ...]:
    chosen = tuple(name for name in text.split(",") if name and name != "none")
    if unknown := sorted(set(chosen) - set(FAULTS)):
        raise argparse.ArgumentTypeError(f"no fault {unknown[0]!r}; there are {', '.join(FAULTS)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
