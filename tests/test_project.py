"""What holds for the project as a whole: who may import whom, what is public, what is shipped, what is never said."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rmem

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rmem"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)

# From the bottom up; a part may import its own row and the rows above it in this list, less what is forbidden.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("receipts", "old_names"),
    (
        "errors",
        "lazy_names",
        "extras",
        "http_link",
        "annotations",
        "closing",
        "forks",
        "garbage",
        "patterns",
        "filelocks",
        "private_files",
        "checks",
        "fields",
        "models",
        "display",
        "contents",
        "earlier_texts",
        "attachments",
        "filters",
        "config",
        "timewords",
        "plugins",
        "feedback",
    ),
    ("index", "embed", "privacy", "crypto", "facts", "chat"),
    ("stores", "vectors"),
    ("recall",),
    ("tiers",),
    ("store_embedding", "memory_files"),
    ("brain", "graph", "remote", "memory_builder", "aio", "doctor", "admin", "transfer", "kv"),
    ("agents", "conversation", "tables"),
    ("team", "postgres_migration", "foreign_files", "integrations"),
    ("mcp", "evaluate"),
    ("server",),
    ("testing",),
    ("cli", "__main__"),
)
FORBIDDEN = {  # beside the layers
    "index": {"embed"},
    "recall": {"stores", "embed"},
    "stores": {"embed"},
}
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}


def part_of(path: Path) -> str:
    """`brain` for rmem/brain.py, `index` for rmem/index/bits.py, "" for rmem/__init__.py."""
    inside = path.relative_to(PACKAGE)
    return "" if inside.name == "__init__.py" and len(inside.parts) == 1 else inside.parts[0].removesuffix(".py")


def type_checking_lines(tree: list[ast.AST]) -> set[int]:
    """Lines inside `if TYPE_CHECKING:`, which no running program imports."""
    lines: set[int] = set()
    for node in tree:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            lines |= set(range(node.lineno, max(child.end_lineno or 0 for child in node.body) + 1))
    return lines


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a module, itself first: parsing and walking takes longer than the checks."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[tuple[int, str, bool]]:
    """(line, part of the package, whether only for types) of each import of our own."""
    tree = nodes(path)
    typing_only = type_checking_lines(tree)
    folder = list(path.relative_to(ROOT).with_suffix("").parts[:-1])
    for node in tree:
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            # `from .. import checks` names the part behind "import"
            targets = [f"{stem}.{name.name}" for name in node.names] if stem == "rmem" else [stem]
        for target in targets:
            names = target.split(".")
            if names[0] == "rmem" and len(names) > 1:
                yield node.lineno, names[1], node.lineno in typing_only


def test_every_part_has_a_place_in_the_layers():
    parts = {part_of(path) for path in MODULES} - {""}
    assert parts == set(LEVEL), "a new part of the package must be put into LAYERS"


def test_imports_point_downwards_only():
    wrong = []
    for path in MODULES:
        part = part_of(path)
        for line, target, typing_only in imports(path):
            if not part or target == part or target not in LEVEL:
                continue
            upwards = LEVEL[target] > LEVEL[part]
            # A name in an annotation binds nothing together when the program runs.
            if (upwards or target in FORBIDDEN.get(part, ())) and not typing_only:
                wrong.append(f"{path.relative_to(ROOT)}:{line} ({part}) imports rmem.{target}")
    assert not wrong, "\n".join(wrong)


def test_nobody_outside_the_stores_asks_for_a_concrete_store():
    """Capabilities (rmem/stores/capabilities.py) say what a store can do; its class is nobody's business."""
    concrete = {"InMemoryRecordStore", "SqlRecords", "SqliteRecordStore", "PostgresRecordStore", "RedisRecordStore"}
    concrete |= {"IndexedStore"}
    asked = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "stores"):
            continue
        for node in nodes(path):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) < 2:
                continue
            if node.func.id not in ("hasattr", "getattr", "isinstance"):
                continue
            named = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            subject = ast.unparse(node.args[0])
            probed = node.func.id in ("hasattr", "getattr") and subject.split(".")[-1].strip("_") in (
                "store",
                "archive",
            )
            if probed or (node.func.id == "isinstance" and named & concrete):
                asked.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}")
    assert not asked, "\n".join(asked)


def test_the_import_check_sees_both_ways_of_writing_an_import():
    found = {target for _, target, _ in imports(PACKAGE / "brain.py")}
    assert {"checks", "config", "embed", "errors", "filters", "models", "recall", "stores"} <= found
    assert "errors" in {target for _, target, _ in imports(PACKAGE / "embed" / "static.py")}  # written absolutely


# The public names


def test_exported_names_resolve():
    assert [name for name in rmem.__all__ if getattr(rmem, name) is None] == []


def test_dir_lists_the_public_names_in_order():
    assert dir(rmem) == sorted([*rmem.__all__, "open"])


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Brian'"):
        _ = rmem.Brian


HEAVY = ("numpy", "sqlalchemy", "rich", "click", "dateparser", "pyarrow", "onnxruntime", "pydantic")


def loaded_by(code: str) -> set[str]:
    told = f"{code}\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import rmem") == set()


def test_recalling_from_a_file_loads_no_schema_tools(tmp_path):
    path = tmp_path / "memories.db"
    with rmem.Brain(path) as brain:
        brain.remember("the schema exists now")
    asked = f"import rmem\nwith rmem.Brain({str(path)!r}) as brain: assert brain.recall('the schema')"
    assert loaded_by(asked) == {"numpy"}


# What is shipped


def test_the_package_has_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert rmem.__version__ == project["version"]
    assert f"## {rmem.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_types_are_shipped():
    assert (PACKAGE / "py.typed").exists()
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert "py.typed" in tool["setuptools"]["package-data"]["*"]


def test_a_module_says_what_lives_in_it():
    trees = {path.relative_to(ROOT).as_posix(): nodes(path)[0] for path in MODULES}
    assert [path for path, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def test_every_module_can_be_imported():
    for path in MODULES:
        names = path.relative_to(ROOT).with_suffix("").parts
        if names[-1] in ("__main__", "child") or names[1:2] == ("integrations",):
            continue  # these run when they are imported, or need a framework
        importlib.import_module(".".join(names[:-1] if names[-1] == "__init__" else names))


def test_the_workflow_runs_what_a_developer_runs():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    ran = re.findall(r"- run: (.*)", workflow)
    assert (ran[0], ran[-1]) == ("bash .ci/run", "python .ci/wheel.py --python python")
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_project_has_the_files_that_people_look_for():
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "Makefile", "docs/index.md"):
        assert (ROOT / name).stat().st_size > 0, name


# What is never said

_REGISTRIES = ("pypi" + r"\.org", "pythonhosted" + r"\.org", "npmjs" + r"\.(?:org|com)", "hugging" + r"face\.co")
_FORBIDDEN_TEXT = {
    "the path of this checkout": re.compile(re.escape(str(ROOT)) + r"\b"),
    "a home folder": re.compile(r"(?<![\w.])/(?:home|Users)/[a-z][\w.-]*|(?<![\w.])/root/\w|[A-Z]:\\Users\\"),
    "a shared machine's folder": re.compile(r"(?<![\w.])/work/\w|(?<![\w.])/tmp/(?:spike|recall-lab)"),
    "the host of a package registry": re.compile("|".join(_REGISTRIES)),
    "something like a key": re.compile(r"\bsk-[A-Za-z0-9]{20,}|\bghp_[A-Za-z0-9]{30,}|-----BEGIN [A-Z ]*PRIVATE KEY"),
}
_OWN = Path(__file__).resolve()


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.decode().split("\0") if name]


def test_tracked_files_name_no_machine_registry_or_key():
    wrong = []
    for path in tracked():
        if not path.is_file() or path.resolve() == _OWN or path.stat().st_size > 5_000_000:
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            for what, pattern in _FORBIDDEN_TEXT.items():
                if pattern.search(line):
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()[:100]}")
    assert not wrong, "\n".join(wrong)


def test_no_store_is_tracked():
    assert [path.name for path in tracked() if path.suffix in (".db", ".sqlite", ".parquet")] == []
