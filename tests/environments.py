"""Fresh virtual environments with our wheels in them. No network: wheels are built here, and what they depend on is
read from the environment of the tests, all of it or only what the core needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
OURS = ("rmem", "pyproject.toml", "README.md", "CHANGELOG.md", "MANIFEST.in", "LICENSE", "NOTICE")


class Environment(NamedTuple):
    """Its interpreter, and a folder outside of the checkout to work in."""

    python: Path
    folder: Path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env={**clean, "RMEM_HOME": str(self.folder / "home"), **environment},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )

    def rmem(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "rmem", *arguments, **environment)


def wheel(folder: Path, source: Path = ROOT) -> Path:
    """Build the wheel of a source folder into an empty folder."""
    copy = folder / "source"  # because building leaves traces beside the sources
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "*.pyc")
    if source == ROOT:
        for name in OURS:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=skipped)
            elif (ROOT / name).exists():
                copy.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
    else:
        shutil.copytree(source, copy, ignore=skipped)
    _pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder / "wheels", copy)
    (built,) = (folder / "wheels").glob("*.whl")
    return built


def environment(folder: Path, *wheels: Path, core_only: bool = False) -> Environment:
    """An environment with these wheels, and beside them all that the tests have, or only what they need themselves."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    told = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    )
    packages = Path(told.stdout.strip())
    _pip("install", "--quiet", "--no-deps", "--no-index", "--target", packages, *wheels)
    if core_only:
        for installed in packages.glob("*.dist-info"):
            for needed in _needed(PathDistribution(installed)):
                _link(needed, packages)
    else:
        # Behind its own packages, and as a plain path: editable installations of the tests' environment stay out.
        (packages / "dependencies.pth").write_text(
            f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n", encoding="utf-8"
        )
    return Environment(python, folder)


def _needed(of: Distribution, known: set[str] | None = None) -> list[Distribution]:
    """What a distribution depends on without any extra, and what that depends on."""
    known = set() if known is None else known
    found: list[Distribution] = []
    for line in of.requires or ():
        requirement = Requirement(line)
        wanted = (
            any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras))
            if (requirement.marker)
            else True
        )
        if wanted and requirement.name.lower() not in known:
            known.add(requirement.name.lower())
            one = distribution(requirement.name)
            found += [one, *_needed(one, known)]
    return found


def _link(one: Distribution, packages: Path) -> None:
    for name in {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}:
        target = packages / name
        if not target.exists():
            target.symlink_to(Path(str(one.locate_file(name))))


def _pip(*arguments: object) -> None:
    line = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
