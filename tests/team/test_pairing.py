"""Errors and fixes pair rightly: the same command or test, and what was changed for it in between."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from datetime import UTC, datetime

import pytest

from rmem import Brain
from rmem.team.briefing import Briefing
from rmem.team.capture import Capture
from rmem.team.dialects import dialect
from rmem.team.error_fixes import change_in, command_key, fixed_by
from rmem.team.events import Event, EventKind
from rmem.team.identity import repository
from rmem.team.memory import TeamMemory

FAILED = "E   KeyError: 'code'\nFAILED tests/test_carrier.py::test_read - KeyError: 'code'\n1 failed in 0.1s"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "clone"
    folder.mkdir()
    for words in ("init -q -b main", "remote add origin git@github.com:acme/etl.git", "config user.email ann@acme.io"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "team.db", privacy="default", durability="normal") as brain:
        yield brain


class Agent:
    def __init__(self, brain, folder):
        self.brain, self.capture, self.folder, self.session = brain, Capture(brain), str(folder), "s1"
        self._numbers = itertools.count(1)

    def tell(self, kind, **more):
        number = next(self._numbers)
        cwd = more.pop("cwd", self.folder)
        self.capture.take(Event(f"e{number}", "claude-code", kind, self.session, cwd, 1000.0 + number, **more))

    def runs(self, command, output="ok", failed=False, **more):
        self.tell(EventKind.TOOL, tool="Bash", action="shell", command=command, output=output, failed=failed, **more)

    def edits(self, path, old="a", new="b", **more):
        given = {"file_path": path, "old_string": old, "new_string": new}
        self.tell(EventKind.TOOL, tool="Edit", action="edit", files=[path], input=given, **more)

    @property
    def fixes(self):
        return sorted((one.contents for one in self.brain.memories({"type": "error_fix"}, limit=None)),
                      key=lambda body: body["sources"][0]["when"])  # fmt: skip


@pytest.fixture
def agent(brain, clone):
    return Agent(brain, clone)


@pytest.mark.parametrize(
    ("failed", "passed"),
    [
        ("make test", "make"),
        ("make", "make clean"),
        ("ls tests/clients", "ls tests"),
        ("ls tests", "ls tests/clients"),
        ("pytest tests/test_a.py", "pytest tests/test_b.py"),
        ("pytest tests/test_a.py", "pytest tests/test_a.py -k other"),
        ("cd frontend && npm test", "cd backend && npm test"),
        ("npm run build", "npm run lint"),
        ("cargo test parse", "cargo build"),
        ("python a.py", "python b.py"),
        ("docker compose up web", "docker compose ps"),
    ],
)
def test_another_command_fixes_nothing(agent, failed, passed):
    agent.runs(failed, "error: it is broken", failed=True)
    agent.edits("src/a.py")
    agent.runs(passed)
    assert agent.fixes == []


@pytest.mark.parametrize(
    ("failed", "passed"),
    [
        ("make test", "make test 2>&1 | tail -20"),
        ("pytest tests/test_carrier.py -v", "python -m pytest tests/test_carrier.py"),
        ("pytest tests/test_carrier.py::test_read", "pytest tests/test_carrier.py"),
        ("pytest tests/test_carrier.py", "pytest tests"),
        ("pytest tests/test_carrier.py", "uv run pytest -q"),
        ("pytest", "pytest tests/test_carrier.py"),  # the only one that had failed
        ("npx jest src/a.test.js", "jest src"),
        ("CI=1 npm test", "npm test"),
    ],
)
def test_the_same_command_or_a_run_that_has_the_failed_test_is_the_fix(agent, failed, passed):
    agent.runs(failed, FAILED, failed=True)
    agent.edits("etl/carrier.py", 'row["code"]', 'row.get("code")')
    agent.runs(passed, "1 passed in 0.1s")
    (fix,) = agent.fixes
    assert fix["files"] == ["etl/carrier.py"]


FIXING = """*** Begin Patch
*** Update File: etl/carrier.py
@@
-    return row["code"]
+    return row.get("code")
*** End Patch"""
DIFF = """--- a/etl/carrier.py
+++ b/etl/carrier.py
@@ -1,2 +1,2 @@
 def read(row):
-    return row["code"]
+    return row.get("code")
"""
SCRIPT = """from pathlib import Path
p = Path("etl/carrier.py")
s = p.read_text()
s = s.replace('row["code"]', 'row.get("code")')
p.write_text(s)
"""
BY_SHELL = {
    "apply_patch": f"apply_patch <<'EOF'\n{FIXING}\nEOF",
    "apply_patch as an argument": f"apply_patch '{FIXING}'",
    "apply_patch in a shell": f"bash -lc \"apply_patch <<'EOF'\n{FIXING.replace(chr(34), chr(92) + chr(34))}\nEOF\"",
    "apply_patch in a folder": "cd etl && apply_patch <<'EOF'\n" + FIXING.replace("etl/", "") + "\nEOF\n",
    "git apply": f"git apply - <<'EOF'\n{DIFF}EOF",
    "patch": f"patch -p1 <<'EOF'\n{DIFF}EOF\n",
    "sed": """sed -i 's/row\\["code"\\]/row.get("code")/' etl/carrier.py""",
    "sed of macOS": """sed -i '' -e 's|row\\["code"\\]|row.get("code")|g' etl/carrier.py""",
    "perl": """perl -pi -e 's/row\\["code"\\]/row.get("code")/' etl/carrier.py""",
    "cat": "cat > etl/carrier.py <<'EOF'\ndef read(row):\n    return row.get(\"code\")\nEOF",
    "cat, its target last": 'cat <<EOF > etl/carrier.py\ndef read(row):\n    return row.get("code")\nEOF',
    "tee": "tee etl/carrier.py <<-'EOF' > /dev/null\n\tdef read(row):\n\t    return row.get(\"code\")\n\tEOF",
    "echo": """echo 'def read(row): return row.get("code")  # > row' >> "etl/carrier.py\"""",
    "sed of a line": """sed -i '2s/row\\["code"\\]/row.get("code")/' etl/carrier.py""",
    "sed that replaces a line": """sed -i '2c\\    return row.get("code")' etl/carrier.py""",
    "a script": f"python3 - <<'PY'\n{SCRIPT}PY",
    "a script in a file": f"# It's easier this way.\ncat <<'EOF' > fix.py\n{SCRIPT}EOF\npython3 fix.py",
    "a script as an argument": f"python3 -c '{SCRIPT.replace(chr(39), chr(34) * 3)}'",
}


@pytest.mark.parametrize("how", BY_SHELL)
def test_an_edit_by_shell_is_the_fix(agent, how):
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    agent.runs(BY_SHELL[how], "")
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    (fix,) = agent.fixes
    assert fix["files"] == ["etl/carrier.py"]
    assert 'row.get("code")' in fix["fix"]
    assert fix["fix"].startswith("changed etl/carrier.py: ")
    assert "ran `" not in fix["fix"]


@pytest.mark.parametrize("how", ["apply_patch", "git apply", "sed", "cat", "a script"])
def test_a_command_that_edits_and_then_tests_is_both(agent, how):
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    separator = "\n" if "\n" in BY_SHELL[how] else " && "
    both = f"{BY_SHELL[how]}{separator}pytest tests/test_carrier.py"
    agent.runs(both.replace(".get(", ".pop("), FAILED, failed=True)
    agent.runs(both, "1 passed in 0.1s")
    (fix,) = agent.fixes
    assert fix["command"] == "pytest tests/test_carrier.py"
    assert "row.pop(" in fix["fix"]
    assert "row.get(" in fix["fix"]


@pytest.mark.parametrize(
    "command",
    [
        "cat etl/carrier.py", "sed -n '1,20p' etl/carrier.py", "grep -rn 'code' . > /tmp/found.txt", "echo done",
        "git apply --check x.diff", "pytest tests/other.py > out.txt 2>&1",
        "python3 - <<'PY'\nprint(open('etl/carrier.py').read())\nPY",
        "cat > /tmp/try.py <<'EOF'\nprint(1)\nEOF", "cat <<'EOF'\n*** Begin Patch\nEOF", "cat > $FILE <<'EOF'\nx\nEOF",
    ],
)  # fmt: skip
def test_what_a_shell_reads_or_writes_elsewhere_is_no_edit(agent, command):
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    agent.runs(command)
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    assert [fix for fix in agent.fixes if "changed" in fix["fix"]] == []


def test_an_edit_by_shell_that_failed_is_none(agent):
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    agent.runs(BY_SHELL["git apply"], "error: patch failed: etl/carrier.py:1", failed=True)
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    assert agent.fixes == []


def codex_item(number, when, **item):
    """A line of a transcript, as Codex 0.169 writes it."""
    moment = datetime.fromtimestamp(when, UTC).isoformat().replace("+00:00", "Z")
    body = {"type": "item_completed", "thread_id": "t", "turn_id": "u", "item": {"id": number, **item}}
    return json.dumps({"timestamp": moment, "type": "event_msg", "payload": body}) + "\n"


def codex_command(clone, number, when, output, code):
    command = ["/bin/bash", "-lc", "pytest tests/test_carrier.py"]
    ended = {"status": "failed" if code else "completed", "aggregated_output": output, "exit_code": code}
    return codex_item(number, when, type="CommandExecution", command=command, cwd=f"file://{clone}", **ended)


@pytest.mark.parametrize("has_hook", [False, True])
def test_a_patch_of_codex_that_no_hook_reports_is_read_from_its_transcript(brain, clone, tmp_path, has_hook):
    """Codex 0.169 applies the patch of a shell call itself, without a PostToolUse; that of its own tool has one."""
    capture, transcript, now = Capture(brain), tmp_path / "rollout.jsonl", time.time()
    base = {"session_id": "s1", "turn_id": "u", "cwd": str(clone), "transcript_path": str(transcript)}
    ran = {**base, "tool_name": "Bash", "tool_input": {"command": "pytest tests/test_carrier.py"}}
    transcript.write_text(codex_command(clone, "call_0", now, FAILED, 1))
    capture.take(dialect("codex").read("PostToolUse", {**ran, "tool_use_id": "call_0", "tool_response": FAILED}))
    if has_hook:
        patched = {
            **base,
            "tool_name": "apply_patch",
            "tool_use_id": "call_1",
            "tool_input": {"command": FIXING},
        }
        capture.take(dialect("codex").read("PostToolUse", {**patched, "tool_response": "Success."}))
    diff = {"type": "update", "unified_diff": DIFF.partition("carrier.py\n")[2].partition("carrier.py\n")[2]}
    with transcript.open("a") as file:
        changes = {str(clone / "etl" / "carrier.py"): diff}
        file.write(codex_item("call_1", time.time(), type="FileChange", changes=changes, status="completed"))
        file.write(codex_command(clone, "call_2", time.time(), "1 passed in 0.1s", 0))
    capture.take(dialect("codex").read("PostToolUse", {**ran, "tool_use_id": "call_2", "tool_response": "1 passed"}))
    (fix,) = (memory.contents for memory in brain.memories({"type": "error_fix"}))
    assert fix["fix"] == 'changed etl/carrier.py: `return row["code"]` → `return row.get("code")`'
    (state,) = capture.sessions.all()
    assert len(state.edits) == 1


def test_a_folder_is_part_of_a_command_however_one_got_there(clone):
    root = str(clone)
    assert (
        command_key("cd web && npm test", root, root) == command_key("npm test", f"{root}/web", root) == "web$ npm test"
    )
    assert (
        command_key(f"cd {root} && npm test", f"{root}/web", root) == command_key("npm test", root, root) == "npm test"
    )


def test_a_run_of_some_of_the_failed_tests_is_not_enough():
    failure = {"tests": ["tests/test_a.py::test_one", "tests/test_b.py::test_two"], "time": 1.0}
    assert fixed_by("pytest tests/test_a.py", {"pytest": failure}) == []
    assert fixed_by("pytest tests/test_a.py tests/test_b.py", {"pytest": failure}) == ["pytest"]


def test_without_anything_done_there_is_no_fix(agent):
    agent.runs("pytest tests/test_flaky.py", FAILED, failed=True)
    agent.runs("cat tests/test_flaky.py", "def test_read(): …")
    agent.runs("pytest tests/test_flaky.py", "1 passed in 0.1s")
    assert agent.fixes == []


def test_a_command_that_changes_something_may_be_the_fix(agent):
    agent.runs("python app.py", "ModuleNotFoundError: No module named 'yaml'", failed=True)
    agent.runs("pip list", "pip 24")
    agent.runs("pip install pyyaml", "Successfully installed pyyaml-6.0")
    agent.runs("python app.py", "started")
    assert [fix["fix"] for fix in agent.fixes] == ["ran `pip install pyyaml`"]


def test_an_edit_for_another_failure_is_no_part_of_a_fix(agent):
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    agent.runs("mypy etl", "etl/pool.py:3: error: Incompatible return value type", failed=True)
    agent.edits("etl/pool.py", "return 1", 'return "1"')
    agent.edits("etl/carrier.py", 'row["code"]', 'row.get("code")')
    agent.runs("mypy etl", "Success: no issues found in 4 source files")
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    assert [(fix["command"], fix["files"]) for fix in agent.fixes] == [
        ("mypy etl", ["etl/pool.py"]),
        ("pytest tests/test_carrier.py", ["etl/carrier.py"]),
    ]


def test_an_edit_that_failed_changed_nothing(agent):
    agent.runs("make", "error: linker failed", failed=True)
    agent.edits("src/a.c", failed=True)
    agent.runs("make", "built")
    assert agent.fixes == []


def test_several_attempts_at_the_same_error_are_one_fix_and_another_error_starts_anew(agent):
    agent.runs("make", "a.c:3:1: error: unknown type name 'row'", failed=True)
    agent.edits("a.c", "row r;", "struct row r;")
    agent.runs("make", "a.c:9:1: error: unknown type name 'row'", failed=True)
    agent.edits("a.h", "", "typedef struct row row;")
    agent.runs("make", "undefined reference to `total'", failed=True)
    agent.edits("Makefile", "a.o", "a.o total.o")
    agent.runs("make", "built")
    (fix,) = agent.fixes
    assert fix["files"] == ["Makefile"]
    assert "undefined reference" in fix["error"]


def test_the_fix_says_what_changed_and_not_what_stayed(agent):
    old = "def read(row):\n    # Codes are set by the carrier.\n    return row['code']\n"
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    agent.edits("etl/carrier.py", old, old.replace("row['code']", "row.get('code')"))
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    (fix,) = agent.fixes
    assert fix["fix"] == "changed etl/carrier.py: `return row['code']` → `return row.get('code')`"


CARRIER = 'def read(row):\n    return row["code"]\n'
FIXED = CARRIER.replace('row["code"]', 'row.get("code")')
WORDINGS = {
    "a part of a line": {"old_string": 'row["code"]', "new_string": 'row.get("code")'},
    "a whole line": {"old_string": '    return row["code"]', "new_string": '    return row.get("code")'},
    "with the lines around it": {"old_string": CARRIER, "new_string": FIXED},
    "other indentation": {"old_string": '\treturn row["code"]', "new_string": '\treturn row.get("code")'},
    "two steps": {"edits": [{"old_string": '["code"]', "new_string": '.get["code"]'},
                            {"old_string": '["code"]', "new_string": '("code")'}]},
    "a patch of Codex": {"command": FIXING},
    "a diff": {"patch": DIFF},
    "the whole file": {"content": FIXED},
}  # fmt: skip


def fixes_by(brain, folder, name, how):
    agent = Agent(brain, folder)
    agent.session = name
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    if isinstance(how, str):
        agent.runs(how, "")
    else:
        agent.tell(EventKind.TOOL, tool="Edit", action="edit", files=["etl/carrier.py"], input=how)
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    return {memory.memory_id for memory in brain.memories({"type": "error_fix"}, limit=None)}


@pytest.fixture
def committed(clone):
    (clone / "etl").mkdir()
    (clone / "etl" / "carrier.py").write_text(CARRIER)
    for words in (["add", "."], ["-c", "user.name=Ann", "commit", "-qm", "Read codes"]):
        subprocess.run(["git", *words], cwd=clone, check=True)
    return clone


ONE_EDIT = {name: how for name, how in BY_SHELL.items() if name not in ("echo", "sed that replaces a line")}


@pytest.mark.parametrize("how", [*WORDINGS, *ONE_EDIT])
def test_one_failure_and_one_fix_are_one_memory_however_the_edit_is_worded(brain, committed, how):
    first = fixes_by(brain, committed, "s1", WORDINGS["a whole line"])
    assert fixes_by(brain, committed, "s2", {**WORDINGS, **ONE_EDIT}[how]) == first
    (memory,) = brain.memories({"type": "error_fix"})
    assert memory.contents["count"] == 2


@pytest.mark.parametrize(
    "command",
    [
        BY_SHELL["sed that replaces a line"],
        """perl -0pi -e 's{row\\[.*}{row.get("code")}' etl/carrier.py""",
    ],
)
def test_an_edit_by_line_numbers_or_patterns_is_the_same_fix_too(brain, committed, command):
    first = fixes_by(brain, committed, "s1", WORDINGS["a whole line"])
    subprocess.run(["bash", "-c", command], cwd=committed, check=True)
    assert (committed / "etl" / "carrier.py").read_text() == FIXED
    assert fixes_by(brain, committed, "s2", command) == first


def test_a_file_that_is_written_anew_after_an_edit_is_the_same_fix_too(brain, committed):
    first = fixes_by(brain, committed, "s1", WORDINGS["a whole line"])
    agent = Agent(brain, committed)
    agent.session = "s2"
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    agent.edits("etl/carrier.py", 'row["code"]', 'row["codes"]')
    agent.tell(EventKind.TOOL, tool="Write", action="edit", files=["etl/carrier.py"], input={"content": FIXED})
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    assert {memory.memory_id for memory in brain.memories({"type": "error_fix"})} == first


@pytest.mark.parametrize(
    "other",
    [
        {"old_string": 'row["code"]', "new_string": 'row.get("code", 0)'},
        {"old_string": 'row["code"]', "new_string": 'row["codes"]'},
        {"content": "def read(row):\n    return None\n"},
    ],
)
def test_another_fix_of_the_same_failure_is_another_memory(brain, committed, other):
    fixes_by(brain, committed, "s1", WORDINGS["a whole line"])
    assert len(fixes_by(brain, committed, "s2", other)) == 2


UNITTEST = """Exit code 1
E
======================================================================
ERROR: test_read (tests.test_carrier.T.test_read)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "{folder}/tests/test_carrier.py", line 5, in test_read
    self.assertIsNone(read({{"id": 1}}))
                      ^^^^^^^^^^^^^^^
  File "{folder}/etl/carrier.py", line 2, in read
    return row["code"]
           ~~~^^^^^^^^
KeyError: 'code'

----------------------------------------------------------------------
Ran 1 test in 0.001s

FAILED (errors=1)"""  # as Claude Code 2.1.327 reports it


def test_the_fix_of_the_same_error_reaches_a_clone_that_does_not_have_it_yet(brain, committed, tmp_path):
    """The file of the fix is short: what was fixed is a third of it."""
    behind = tmp_path / "behind"
    subprocess.run(["git", "clone", "-q", str(committed), str(behind)], check=True)
    subprocess.run(["git", "remote", "set-url", "origin", "git@github.com:acme/etl.git"], cwd=behind, check=True)
    agent, command = Agent(brain, committed), "python3 -m unittest tests.test_carrier"
    agent.tell(EventKind.PROMPT, prompt="Make the tests of the carrier pass")
    agent.runs(command, UNITTEST.format(folder=committed), failed=True)
    (committed / "etl" / "carrier.py").write_text(FIXED)
    agent.edits("etl/carrier.py", 'row["code"]', 'row.get("code")')
    agent.runs(command, ".\n-----\nRan 1 test in 0.001s\n\nOK")
    agent.tell(EventKind.SESSION_END)
    team = TeamMemory(brain, author="bob@acme.io")
    briefing = Briefing(brain, agent.capture.sessions)
    for given, expected in ((command, ["error_fix"]), ("python3 -m unittest", [])):
        output = UNITTEST.format(folder=behind)
        found = briefing.relevant_to_failure(given, output, team, repository(str(behind)))
        assert [one.kind for one in found if one.relevance > 0.9] == expected
        assert all(one.stale is None for one in found)


def test_another_number_is_another_fix(brain, committed):
    fixes_by(brain, committed, "s1", {"old_string": "timeout=5", "new_string": "timeout=10"})
    assert len(fixes_by(brain, committed, "s2", {"old_string": "timeout=5", "new_string": "timeout=60"})) == 2


PATCH = """*** Begin Patch
*** Update File: etl/pool.py
@@
 class Pool:
-    size = 5
+    size = 20
*** Update File: etl/carrier.py
@@
+TIMEOUT = 3
*** End Patch"""


@pytest.mark.parametrize(
    ("given", "path", "told"),
    [
        ({"command": PATCH}, "etl/pool.py", "`size = 5` → `size = 20`"),
        ({"input": PATCH}, "etl/carrier.py", "added `TIMEOUT = 3`"),
        ({"content": "a = 1\nb = 2\n"}, "x.py", "wrote 2 lines: `a = 1 b = 2`"),
        ({"old_string": "a\nb", "new_string": "a"}, "x.py", "removed `b`"),
        ({"edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]}, "x",
         "`a` → `b`; `c` → `d`"),
    ],
)  # fmt: skip
def test_edits_of_every_tool_in_a_few_words(given, path, told):
    assert change_in(given, path).text == told


def test_the_last_message_gives_the_reason(agent, brain):
    agent.runs("pytest tests/test_carrier.py", FAILED, failed=True)
    agent.edits("etl/carrier.py", 'row["code"]', 'row.get("code")')
    agent.runs("pytest tests/test_carrier.py", "1 passed in 0.1s")
    agent.tell(
        EventKind.STOP, message="All tests pass now.\n\n**Cause:** the test failed because parcels carry no `code`."
    )
    (memory,) = brain.memories({"type": "error_fix"}, limit=None)
    assert memory.contents["reason"] == "Cause: the test failed because parcels carry no `code`."
    assert memory.text.endswith("Why: Cause: the test failed because parcels carry no `code`.")


def test_of_several_fixes_each_gets_its_own_reason(agent, brain):
    for name in ("carrier", "invoice"):
        agent.runs(f"pytest tests/test_{name}.py", f"E   KeyError: '{name}_code'", failed=True)
        agent.edits(f"etl/{name}.py", "a", f"b_{name}")
        agent.runs(f"pytest tests/test_{name}.py", "1 passed in 0.1s")
    agent.tell(
        EventKind.STOP, message="The carrier_code was missing in parcels. invoice_code did not exist before 2020."
    )
    reasons = {fix["command"]: fix["reason"] for fix in agent.fixes}
    assert reasons == {
        "pytest tests/test_carrier.py": "The carrier_code was missing in parcels.",
        "pytest tests/test_invoice.py": "invoice_code did not exist before 2020.",
    }
