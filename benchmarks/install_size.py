"""How large a core install is, and whether every dependency of the core has a wheel on the platforms that we name.

    python benchmarks/install_size.py             # megabytes in site-packages, by distribution
    python benchmarks/install_size.py --wheels    # a table: platform by Python version

Both use pip and its index, in a folder that is thrown away."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PLATFORMS = {
    "Linux x86-64": ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"],
    "Linux ARM64": ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    "macOS ARM64": ["macosx_14_0_arm64", "macosx_11_0_arm64"],
    "macOS x86-64": ["macosx_14_0_x86_64", "macosx_10_13_x86_64", "macosx_10_9_x86_64"],
    "Windows x86-64": ["win_amd64"],
}
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def dependencies(version: str) -> list[str]:
    """What the core needs on a version of Python. pip would take the markers to be about the Python that runs it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = map(Requirement, project["dependencies"])
    kept = (one for one in wanted if one.marker is None or one.marker.evaluate({"python_version": version}))
    return [f"{one.name}{one.specifier}" for one in kept]


def pip(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    line = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def lacking(platforms: list[str], version: str) -> list[str]:
    """The dependencies of the core that cannot be had as wheels there."""
    tags = [word for platform in platforms for word in ("--platform", platform)]

    def works(*wanted: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            options = ("--only-binary=:all:", "--python-version", version, "--target", folder)
            return pip("install", "--dry-run", *options, *tags, *wanted).returncode == 0

    wanted = dependencies(version)
    return [] if works(*wanted) else [one for one in wanted if not works(one)]


def wheels() -> int:
    print(f"| | {' | '.join(VERSIONS)} |\n| --- |{' --- |' * len(VERSIONS)}")
    complete = True
    for name, platforms in PLATFORMS.items():
        cells = []
        for version in VERSIONS:
            missing = lacking(platforms, version)
            complete = complete and not missing
            cells.append("all" if not missing else f"not {', '.join(missing)}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0 if complete else 1


def sizes(limit: float) -> int:
    """Megabytes of files in site-packages, bytecode included, without pip and setuptools."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python")
        done = pip("install", str(ROOT), python=python)
        if done.returncode:
            sys.exit(done.stderr)
        code = (
            "import json, importlib.metadata as m\n"
            "print(json.dumps({d.metadata['Name']: sum(f.locate().stat().st_size for f in d.files or () "
            "if f.locate().is_file()) for d in m.distributions()}))"
        )
        told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    found = {name: size / 1e6 for name, size in json.loads(told).items() if name not in ("pip", "setuptools")}
    for name, size in sorted(found.items(), key=lambda item: -item[1]):
        print(f"{size:8.1f} MB  {name}")
    total = sum(found.values())
    print(f"{total:8.1f} MB  in all; the limit is {limit:g} MB")
    return 0 if total <= limit else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", action="store_true", help="look for wheels instead")
    parser.add_argument("--limit", type=float, default=120.0, metavar="MB")
    chosen = parser.parse_args()
    sys.exit(wheels() if chosen.wheels else sizes(chosen.limit))
