"""Plugins are found by name, loaded when they are used, and none of them can break what does not use it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rmem import Brain
from rmem.cli.app import rmem
from rmem.embed import embedder_for
from rmem.errors import ConfigError, EmbedderError, StoreError
from rmem.plugins import installed, plugin
from rmem.stores.plugins import open_plugin

MODULE = """
import numpy as np
from rmem import Embedder, MemoryStore
from rmem.errors import StoreBusyError
from rmem.stores.memory import InMemoryRecordStore

def opened(address, *, word_vectors=None, **options):
    if address.endswith("busy"):
        raise StoreBusyError("try again")
    if address.endswith("crash"):
        raise ZeroDivisionError("user:password@host")
    return InMemoryRecordStore(word_vectors)

class Values(MemoryStore):
    def __init__(self, address, **options): self.values = {}
    def add(self, key, value, meta=None): self.values[key] = value
    def get(self, key): return self.values.get(key)
    def search(self, query, top_k=5): return []
    def forget(self, key): return self.values.pop(key, None) is not None

class Letters(Embedder):
    dimension = 32
    def __init__(self, rest):
        if rest == "crash":
            raise OSError("no such model")
        self.name = f"letters:{rest or 'all'}"
    def embed(self, texts):
        rows = np.zeros((len(texts), 32), np.float32)
        for row, text in zip(rows, texts):
            for letter in text.lower():
                row[ord(letter) % 32] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

nothing = lambda *_, **__: None
"""


class Shelf:
    """Installs distributions into a folder on the path, as pip leaves them: metadata beside modules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, entries: dict[str, dict[str, str]], **modules: str) -> None:
        info = self.folder / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        lines = [
            f"[rmem.{group}]\n" + "".join(f"{key} = {value}\n" for key, value in found.items())
            for group, found in entries.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for module, source in modules.items():
            (self.folder / f"{module}.py").write_text(source)
        importlib.invalidate_caches()


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    known = set(sys.modules)
    yield Shelf(folder)
    for name in set(sys.modules) - known:
        if (folder / f"{name}.py").exists():
            del sys.modules[name]


@pytest.fixture
def good(shelf):
    shelf.put(
        "good-plugin",
        {
            "stores": {"good": "good_plugin:opened", "values": "good_plugin:Values"},
            "embedders": {"letters": "good_plugin:Letters"},
        },
        good_plugin=MODULE,
    )
    return shelf


def listed(*arguments: str):
    result = CliRunner().invoke(rmem, ["plugins", *arguments])
    return result.exit_code, result.stdout


def test_without_plugins_there_is_nothing_to_list():
    code, out = listed("--json", "--kind", "store")
    assert (code, json.loads(out)) == (0, {"plugins": []})


def test_an_address_finds_its_store(good):
    with Brain("good://anything") as brain:
        brain.remember("zebra crossing")
        assert brain.recall("zebra")[0].text == "zebra crossing"
        assert brain.address == "good://anything"


def test_a_name_finds_its_embedder_and_a_later_brain_finds_it_again(good, tmp_path):
    assert embedder_for("letters").name == "letters:all"
    with Brain(tmp_path / "m.db", embedder="letters:small") as brain:
        brain.remember("zebra")
    with Brain(tmp_path / "m.db") as brain:
        assert brain.embedder == "letters:small"
        assert brain.recall("zebras", mode="vector")[0].text == "zebra"


GREETING = """
import click

@click.command()
@click.argument("name")
def greet(name):
    click.echo(f"hello {name}")


"""


def test_a_plugin_adds_a_command(shelf):
    shelf.put("greeter", {"commands": {"greet": "greeter:greet", "list": "greeter:greet"}}, greeter=GREETING)
    helped = CliRunner().invoke(rmem, ["--help"])
    assert "greet  From greeter 1.2." in helped.stdout
    assert "greeter" not in sys.modules
    assert CliRunner().invoke(rmem, ["greet", "Ann"]).stdout == "hello Ann\n"
    assert CliRunner().invoke(rmem, ["list", "Ann"]).exit_code == 2  # ours stays ours
    assert "'greet'" in CliRunner().invoke(rmem, ["great"]).stderr


def test_a_command_that_is_none_is_told(shelf):
    shelf.put("odd", {"commands": {"number": "odd:greet", "five": "odd:nothing"}}, odd="nothing = lambda: None\n")
    assert "must be a click.Command" in CliRunner().invoke(rmem, ["five"]).stderr
    assert "did not load" in CliRunner().invoke(rmem, ["number"]).stderr


def test_nothing_is_loaded_before_it_is_used(shelf):
    shelf.put("loud", {"stores": {"loud": "loud_plugin:x"}}, loud_plugin="raise SystemExit('loaded')")
    installed("store")
    with Brain(":memory:") as brain:
        brain.remember("built-in stores do not look at plugins")
    with pytest.raises(ConfigError, match="no store for other://"):
        Brain("other://x")
    assert "loud_plugin" not in sys.modules


def test_built_in_stores_do_not_even_look_for_plugins(tmp_path):
    script = (
        "import sys; from rmem import Brain\n"
        "with Brain(sys.argv[1]) as brain: brain.remember('x'); brain.recall('x')\n"
        "assert 'importlib.metadata' not in sys.modules or 'rmem.plugins' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "m.db")], check=True)


BROKEN = {
    "importing": ("raise RuntimeError('no licence')", "x", "RuntimeError: no licence"),
    "missing": ("", "x", "AttributeError"),
    "exiting": ("raise SystemExit(3)", "x", "SystemExit: 3"),
    "syntax": ("def", "x", "SyntaxError"),
    "number": ("x = 5", "x", "must be a class or a function, but number_plugin:x is a int"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_says_why_and_breaks_nothing_else(good, name):
    source, target, why = BROKEN[name]
    good.put(f"{name}-plugin", {"stores": {name: f"{name}_plugin:{target}"}}, **{f"{name}_plugin": source})
    with pytest.raises(ConfigError, match=why) as caught:
        Brain(f"{name}://x")
    assert f"'{name}' of {name}-plugin 1.2" in str(caught.value)
    Brain("good://x").close()
    code, out = listed("--json")
    assert code == 6
    states = {one["name"]: one for one in json.loads(out)["plugins"]}
    assert states["good"]["loads"] is True
    assert states[name]["loads"] is False
    assert why in states[name]["problem"]
    code, out = listed()
    assert code == 6
    assert f"\n{name}: " in out
    assert why in " ".join(out.split())


def test_two_of_one_name_are_told_and_neither_is_used(good):
    good.put("twin-plugin", {"stores": {"good": "good_plugin:opened"}})
    with pytest.raises(ConfigError, match=r"twin-plugin brings a store of that name too|good-plugin brings"):
        Brain("good://x")
    code, out = listed("--kind", "store", "--json")
    assert code == 6
    clashing = [one for one in json.loads(out)["plugins"] if one["name"] == "good"]
    assert {one["distribution"] for one in clashing} == {"good-plugin", "twin-plugin"}
    assert all("uninstall one of them" in one["problem"] for one in clashing)
    assert embedder_for("letters:x").name == "letters:x"


@pytest.mark.parametrize(("kind", "name"), [("store", "sqlite"), ("store", "redis"), ("embedder", "static")])
def test_built_in_names_cannot_be_taken(good, tmp_path, kind, name):
    good.put("thief", {f"{kind}s": {name: "good_plugin:nothing"}})
    with Brain(f"sqlite:///{tmp_path}/m.db", embedder="static") as brain:
        brain.remember("still ours")
    assert (tmp_path / "m.db").exists()
    found = plugin(kind, name)
    assert found is not None
    with pytest.raises(ConfigError, match="is built in"):
        found.load()
    assert listed()[0] == 6


def test_a_name_that_no_address_can_have_is_told(shelf):
    shelf.put("odd", {"stores": {"My Store": "x:y"}})
    code, out = listed()
    assert code == 6
    assert "a name must be a small letter" in out


def test_damaged_metadata_harms_nobody(good):
    for name, listed_entries in (
        ("torn", "[rmem.stores]\nno value\n"),
        ("other", "[console_scripts]\nno value\n"),
    ):
        info = good.folder / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(listed_entries)
    nameless = good.folder / "nameless-1.dist-info"
    nameless.mkdir()
    (nameless / "entry_points.txt").write_text("[rmem.stores]\nnameless = good_plugin:opened\n")
    Brain("good://x").close()
    Brain("nameless://x").close()
    code, out = listed("--kind", "store", "--json")
    assert code == 6
    states = {one["distribution"]: one for one in json.loads(out)["plugins"]}
    assert "entry_points.txt cannot be read" in states["torn"]["problem"]
    assert states["unknown"]["loads"] is True
    assert "other" not in states


def test_a_copy_further_down_the_path_is_no_clash(good, tmp_path, monkeypatch):
    second = tmp_path / "second"
    second.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(second)])
    Shelf(second).put("good-plugin", {"stores": {"good": "good_plugin:opened"}})
    Brain("good://x").close()
    assert listed()[0] == 0


def test_a_store_that_only_keeps_values_gives_what_four_methods_can(good):
    with Brain("values://x") as brain:
        brain.remember("zebra crossing", id="z")
        assert brain.get("z").text == "zebra crossing"
        with pytest.raises(ConfigError, match="Values cannot do this: counting memories needs a RecordStore"):
            brain.count()
    found = plugin("store", "values")
    store = open_plugin(found, "values://x")
    store.add("k", "v")
    assert store.get("k") == "v"


def test_what_goes_wrong_inside_is_told_with_the_plugins_name(good):
    from rmem.errors import StoreBusyError

    with pytest.raises(StoreBusyError, match="try again"):
        Brain("good://busy")
    with pytest.raises(StoreError, match=r"'good' of good-plugin 1.2 could not open its address: ZeroDivisionError"):
        Brain("good://crash")
    with pytest.raises(EmbedderError, match=r"'letters' of good-plugin 1.2 failed: OSError: no such model"):
        embedder_for("letters:crash")


def test_what_a_plugin_gives_must_be_of_its_kind(good):
    good.put("nil", {"stores": {"nil": "good_plugin:nothing"}, "embedders": {"nil": "good_plugin:nothing"}})
    with pytest.raises(ConfigError, match="must give a MemoryStore or a RecordStore, but gave a NoneType"):
        Brain("nil://x")
    with pytest.raises(ConfigError, match="must return an Embedder, but returned a NoneType"):
        embedder_for("nil")


def test_unknown_names_list_the_known_ones(good):
    with pytest.raises(ConfigError, match=r"no store for god:// addresses; known: .*good://…"):
        Brain("god://x")
    with pytest.raises(ConfigError, match=r"unknown embedder 'leters'.*the name of a plugin"):
        embedder_for("leters")
