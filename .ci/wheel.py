"""Build the wheel and the sdist, look into them, and try the wheel in fresh environments.

    python .ci/wheel.py                       # every Python from 3.11 to 3.14 on this machine, lowest and newest
    python .ci/wheel.py --python python3.12   # this one only; may be repeated

Needs a package index. Versions without a wheel for a Python are left out of the lowest. Builds stay in dist/."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
BIN = "Scripts" if sys.platform == "win32" else "bin"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
IN_SDIST = ("README.md", "CHANGELOG.md", "LICENSE", "NOTICE", "pyproject.toml", "Makefile", "docs/index.md",
            "tests/conftest.py", "rmem/py.typed", "aliases/pyproject.toml", "benchmarks/pyproject.toml")  # fmt: skip

IN_WHEEL = ("rmem/py.typed", "rmem/server/ui/index.html", "rmem/server/ui/app.js", "rmem/server/ui/style.css")


def run(*line: object, quiet: bool = True) -> None:
    done = subprocess.run([str(word) for word in line], cwd=ROOT, capture_output=quiet, text=True, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, line))}\n{done.stdout or ''}{done.stderr or ''}")


def tools(folder: Path) -> Path:
    """An environment with what builds and checks."""
    venv.create(folder, with_pip=True)
    run(folder / BIN / "python", "-m", "pip", "install", "--quiet", "build", "twine", "uv")
    return folder / BIN


def built(tools: Path) -> Path:
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(tools / "python", "-m", "build", "--outdir", ROOT / "dist", ROOT)
    run(tools / "twine", "check", "--strict", *(ROOT / "dist").iterdir())
    (wheel,) = (ROOT / "dist").glob("*.whl")
    (source,) = (ROOT / "dist").glob("*.tar.gz")
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    strange = [top for top in tops if top != "rmem" and not top.endswith(".dist-info")]
    strange += [name for name in names if Path(name).name.startswith(("test_", "conftest"))]
    if strange:
        sys.exit(f"not ours in the wheel: {', '.join(strange)}")
    if missing := [name for name in IN_WHEEL if name not in names]:
        sys.exit(f"missing from the wheel: {', '.join(missing)}")
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    if missing := [name for name in IN_SDIST if name not in held]:
        sys.exit(f"missing from the sdist: {', '.join(missing)}")
    print(f"built and checked: {wheel.name} ({len(names)} files), {source.name} ({len(held)} files)", flush=True)
    return wheel


def pythons() -> list[str]:
    """Every interpreter of a version that we name: on the PATH, or installed by pyenv."""
    found = {}
    for version in VERSIONS:
        candidates = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), shutil.which(f"python{version}")]
        for candidate in [*candidates, sys.executable]:
            code = "import sys; print('%d.%d' % sys.version_info[:2])"
            told = candidate and subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
            if told and told.returncode == 0 and told.stdout.strip() == version:
                found[version] = str(candidate)
                break
    for version in VERSIONS:
        if version not in found:
            print(f"Python {version}: none on this machine", flush=True)
    return list(found.values())


def tried(python: str, resolution: str, wheel: Path, tools: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        uv = tools / "uv"
        run(uv, "venv", "--quiet", "--python", python, folder / "venv")
        inside = folder / "venv" / BIN / "python"
        for extra in ("", "server"):
            chosen = folder / f"{extra or 'core'}.txt"
            wanted = ("--extra", extra) if extra else ()
            run(uv, "pip", "compile", "--quiet", "--python", inside, "--only-binary", ":all:",
                "--resolution", resolution, *wanted, "--output-file", chosen, ROOT / "pyproject.toml")  # fmt: skip
            run(uv, "pip", "install", "--quiet", "--python", inside, "--only-binary", ":all:", "-r", chosen, wheel)
            clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
            clean["PYTHONDONTWRITEBYTECODE"] = "1"  # a host of workers may still import while the folder is removed
            line = [str(inside), str(ROOT / ".ci" / "smoke.py"), *wanted[1:]]
            done = subprocess.run(line, cwd=folder, env=clean, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(
                    f"{python}, {resolution}, {extra or 'core'}:\n{done.stdout}{done.stderr}\n{chosen.read_text()}"
                )
            print(f"{python}, {resolution}, {extra or 'core'}: {done.stdout.strip()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter; default: all that are found")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        at = tools(Path(folder) / "tools")
        wheel = built(at)
        for python in chosen.python or pythons():
            for resolution in ("lowest-direct", "highest"):
                tried(python, resolution, wheel, at)


if __name__ == "__main__":
    main()
