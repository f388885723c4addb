"""Run a framework's own tests on our implementation: the test files of the installed release, as they are.

They come with its source distribution, which pip fetches, or are in its repository, at the tag of the release. A plugin
of pytest puts our class in the place of theirs before the files are read."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = HERE.parents[1]


def sources(distribution: str, folder: Path) -> Path:
    """The unpacked source distribution of the release that is installed."""
    version = importlib.metadata.version(distribution)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    named = f"{distribution}=={version}"
    subprocess.run([*pip, "--no-binary", distribution, "--dest", str(folder), named], check=True, timeout=300)
    (archive,) = folder.glob(f"{distribution.replace('-', '_')}-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def repository(address: str, tag: str, only: str, folder: Path) -> Path:
    """One folder of a repository; skips the test where there is no way to it."""
    root = folder / address.rpartition("/")[2]
    clone = ["clone", "--depth", "1", "--filter", "blob:none", "--no-checkout", "--branch", tag, address, str(root)]
    for command in (clone, ["-C", str(root), "sparse-checkout", "set", only], ["-C", str(root), "checkout"]):
        done = subprocess.run(["git", *command], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"{address} at {tag} cannot be fetched: {done.stderr.strip()}")
    return root / only


def outcomes(
    root: Path, files: Sequence[str], plugin: str, *, deselect: Sequence[str] = (), alone: bool = False
) -> dict[str, int]:
    """Run test files with a plugin of this folder; how many passed, failed, … . What failed is printed. `alone` leaves
    out the configuration of the project, which may need more than these files do."""
    options = [word for one in deselect for word in ("--deselect", one)]
    if alone:
        options += ["-c", os.devnull, "--rootdir", ".", "--noconftest", "-o", "asyncio_mode=auto"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "--tb=short", "-q", *options, *files],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(HERE), str(PACKAGES)])},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stdout[-20_000:], done.stderr[-5_000:])
    *_, last = [line for line in done.stdout.splitlines() if re.search(r"\d+ (passed|failed|error)", line)] or [""]
    return {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", last.partition(" in ")[0])}
