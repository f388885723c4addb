"""What git's history teaches: fixes, what was reverted, conventions, files that belong together."""

from __future__ import annotations

import os
import subprocess

import pytest

from rmem import Brain
from rmem.errors import InputError
from rmem.team.identity import repository
from rmem.team.importers.run import import_git
from rmem.team.memory import TeamMemory
from rmem.team.review import out_of_date

START = 1_700_000_000


class History:
    """A repository whose commits have fixed authors and times."""

    def __init__(self, root):
        self.root, self._clock = root, START
        root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("remote", "add", "origin", "git@github.com:acme/etl.git")
        self.git("config", "user.email", "ann@acme.io")
        self.git("config", "user.name", "Ann")

    def git(self, *words, input=None, **more):
        done = subprocess.run(
            ["git", *words], cwd=self.root, check=True, capture_output=True, input=input, env={**os.environ, **more}
        )
        return done.stdout.decode().strip()

    def commit(self, message, *names, author="Ann <ann@acme.io>", when=None):
        """A commit that changes these files; its id."""
        for name in names:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"{message[:20]!r} {self._clock}\n")
        self.git("add", "-A")
        self._clock += 60
        date = f"{when or self._clock} +0000"
        told = message if isinstance(message, bytes) else message.encode()
        self.git("commit", "-q", "--allow-empty", "--author", author, "-F", "-", input=told,
                 GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)  # fmt: skip
        return self.git("rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def history(tmp_path):
    made = History(tmp_path / "clone")
    made.commit("Fix the first commit which brings everything", "etl/carrier.py", "etl/pool.py", "README.md")
    return made


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "team.db", privacy="default", durability="normal") as brain:
        yield brain


def of_kind(brain, kind):
    return brain.memories({"type": kind}, limit=None)


def texts(brain):
    """What is known but for changes that are neither fixes nor decisions."""
    return [memory.text for memory in brain.memories(limit=None) if memory.importance > 0.2]


def changes(brain):
    return [memory.text for memory in of_kind(brain, "codebase") if memory.importance == 0.2]


def test_a_fix_tells_what_was_wrong_what_was_changed_who_and_when(brain, history):
    body = "The carrier sends no code for parcels.\n\nSigned-off-by: Bob <bob@acme.io>\nCo-authored-by: C <c@acme.io>"
    made = history.commit(
        f"Fix KeyError in the carrier import\n\n{body}", "etl/carrier.py", author="Bob <bob@acme.io>", when=START + 5
    )
    assert import_git(brain, history.root)[:3] == (2, 0, 1)
    (fix,) = of_kind(brain, "error_fix")
    assert fix.text == (
        "Fix KeyError in the carrier import\nThe carrier sends no code for parcels.\nFix: changed etl/carrier.py"
    )
    assert (fix.contents["commit"], fix.contents["files"]) == (made, ["etl/carrier.py"])
    assert fix.contents["repository"] == "github.com/acme/etl"
    assert (fix.timestamp, fix.agent_id) == (START + 5, "git")


def test_authors_are_named_in_their_own_notes_and_nowhere_else(brain, history):
    told = "Fix the mail to bob@acme.io that was never sent"
    history.commit(told, "etl/pool.py", author="Ann <ann@acme.io>")
    history.commit("Fix the pool that bob found too small", "etl/pool.py", author="Bob <bob@acme.io>")
    history.commit("Fix the pool size once more, please", "etl/pool.py", author="Nobody <>")
    import_git(brain, history.root)
    by = {memory.actor: memory for memory in of_kind(brain, "error_fix")}
    assert by.keys() == {"ann@acme.io", "bob@acme.io", "Nobody"}
    assert by["bob@acme.io"].contents["sources"][0]["author"] == "bob@acme.io"
    assert "bob@acme.io" not in by["ann@acme.io"].text
    assert {entry.who for entry in brain.store.audit()} == {"ann@acme.io"}  # who imported, not who committed
    assert brain.privacy.allow == ()


FIXES = [
    "fix: carrier codes are optional in parcels", "fix(pool): wait for connections to return", "Fixes #12, no rows",
    "[etl] Fixed wrong timezone in nightly report", "hotfix: stop sending mails twice", "Bugfix for the empty rows",
    "Don't crash when the row is empty", "Resolve deadlock between pool and writer", "pool: fix leaking sockets",
    "Work around the slow resolver of Alpine", "Correct the rounding of prices in yen",
]  # fmt: skip


def test_subjects_that_tell_of_a_fix(brain, history):
    for subject in FIXES:
        history.commit(subject, "etl/carrier.py")
    import_git(brain, history.root)
    assert {memory.contents["error"] for memory in of_kind(brain, "error_fix")} == set(FIXES)


NO_FIXES = [
    "Fix typo in the carrier docs", "fix: lint", "fixup! Fix the carrier import of rows", "Fix tests", "fix",
    "Add a prefix to carrier codes of parcels", "Test installing into broken folders of all kinds",
    "Store a fix, recall it in another process", "Fix formatting of the whole module", "docs: fix wording of intro",
    "Add a test of crashes in the middle", "Bump the version of the package", "Address review: fix findings",
]  # fmt: skip


def test_subjects_that_tell_of_none(brain, history):
    for subject in NO_FIXES:
        history.commit(subject, "etl/carrier.py")
    import_git(brain, history.root)
    assert of_kind(brain, "error_fix") == []


def test_what_was_taken_back_is_a_dead_end_with_its_reason(brain, history):
    tried = history.commit("Read parquet files with threads", "etl/carrier.py")
    history.git("revert", "--no-edit", tried)
    history.git("commit", "-q", "--amend", "-m", f'Revert "Read parquet files with threads"\n\n'
                f"This reverts commit {tried}.\n\nThreads doubled the memory on the build machines.")  # fmt: skip
    import_git(brain, history.root)
    assert texts(brain) == [
        f"Tried and reverted: Read parquet files with threads (commit {tried[:10]}). "
        "Why: Threads doubled the memory on the build machines."
    ]
    assert of_kind(brain, "decision")[0].contents["files"] == ["etl/carrier.py"]


def test_the_names_of_branches_and_lists_of_conflicts_are_no_reasons(brain, history):
    undone, before = "a" * 40, "b" * 40
    history.commit(f'Revert "Merge pull request #7 from acme/side"\n\nThis reverts commit {undone}, reversing\n'
                   f"changes made to {before}.", "etl/carrier.py")  # fmt: skip
    history.commit(f'Revert "Read files with threads"\n\nThis reverts commit {undone}.\n\nConflicts:\n\tetl/a.py\n'
                   "\tetl/b.py\n", "etl/carrier.py")  # fmt: skip
    import_git(brain, history.root)
    assert texts(brain) == [f"Tried and reverted: Read files with threads (commit {undone[:10]})."]


def test_the_end_of_a_range_of_reverted_commits_is_no_reason(brain, history):
    body = "This reverts commits 24cb8b1..d0abb37 from acme/etl#1840\n\nThreads doubled the memory."
    history.commit(f'Revert "Read files with threads"\n\n{body}', "etl/carrier.py")
    import_git(brain, history.root)
    assert texts(brain) == [
        "Tried and reverted: Read files with threads (commit 24cb8b1). Why: Threads doubled the memory."
    ]


def test_what_came_back_in_is_no_dead_end(brain, history):
    tried = history.commit("Read parquet files with threads", "etl/carrier.py")
    history.git("revert", "--no-edit", tried)
    (history.root / "etl/carrier.py").touch()
    taken_back = history.git("rev-parse", "HEAD")
    import_git(brain, history.root)
    (dead_end,) = of_kind(brain, "decision")
    history.git("revert", "--no-edit", taken_back)
    assert import_git(brain, history.root).memories == 2  # that it is in again, and what it is
    states = {memory.text[:12]: memory.tags["state"] for memory in of_kind(brain, "decision")}
    assert states == {"Tried and re": "superseded", "It was rever": "current"}
    assert brain.get(dead_end.memory_id).contents["valid_until"]
    assert "in again: Read parquet files with threads." in "".join(texts(brain))
    with Brain(":memory:", privacy="default") as other:  # nobody learned of the dead end
        assert import_git(other, history.root).memories == 1
        assert texts(other) == []


def reverts(history, what, commit, body="", suffix=" (#21)"):
    """Take a commit back as GitHub does when its pull request is squashed."""
    told = f'Revert "{what}"{suffix}\n\nThis reverts commit {commit}.\n\n{body}'
    return history.commit(told, "etl/carrier.py")


def test_a_revert_is_git_s_own_form_with_the_suffix_of_a_pull_request(brain, history):
    tried = history.commit("Read parquet files with threads (#12)", "etl/carrier.py")
    reverts(history, "Read parquet files with threads (#12)", tried, "Threads doubled the memory.")
    other = history.commit("Support generated columns of Oracle", "etl/pool.py")
    history.commit(f'Revert "Support generated columns of Oracle" - it failed in production\n\n'
                   f"This reverts commit {other}.\n\nRefs #1658", "etl/pool.py")  # fmt: skip
    import_git(brain, history.root)
    back = "Tried and reverted:"
    assert texts(brain) == [
        f"{back} Support generated columns of Oracle (commit {other[:10]}). Why: it failed in production",
        f"{back} Read parquet files with threads (commit {tried[:10]}). Why: Threads doubled the memory.",
    ]


def test_a_squashed_body_that_tells_of_a_revert_is_none(brain, history):
    body = '* Add ACL DRYRUN\r\n\r\n* Fix linter error\r\n\r\n* Revert "Fix linter error"\r\n\r\n'
    body += "This reverts commit 0123456789abcdef0123456789abcdef01234567.\r\n\r\n* Linting\r\n\r\n---------\r\n"
    history.commit(f"Add support for ACL DRYRUN (#1992)\n\n{body}", "etl/carrier.py")
    history.commit("Run jobs one after the other again\n\nThis reverts commit 0123456789.", "etl/carrier.py")
    import_git(brain, history.root)
    assert texts(brain) == []


@pytest.mark.parametrize(
    "again",
    [
        'Revert "Revert "Read parquet files with threads (#12)" (#21)" (#22)',
        'Reapply "Read parquet files with threads" (#22)',
        "Read parquet files with threads (#30)",
        "Threads for parquet files, once more\n\nCloses #7",
    ],
)
def test_what_is_in_again_by_whatever_way_is_no_dead_end(brain, history, again):
    tried = history.commit("Read parquet files with threads (#12)", "etl/carrier.py")
    what = "Read parquet files with threads" + (", closes #7" if "Closes" in again else " (#12)")
    reverts(history, what, tried, "Threads doubled the memory.")
    history.commit(again, "etl/carrier.py")
    import_git(brain, history.root)
    assert [text for text in texts(brain) if text.startswith("Tried")] == []


def test_what_was_taken_back_for_the_third_time_is_a_dead_end(brain, history):
    tried = history.commit("Read parquet files with threads", "etl/carrier.py")
    once = reverts(history, "Read parquet files with threads", tried)
    twice = reverts(history, 'Revert "Read parquet files with threads" (#21)', once)
    reverts(history, 'Revert "Revert "Read parquet files with threads" (#21)" (#21)', twice, "It leaked again, sadly.")
    import_git(brain, history.root)
    assert [text[:52] for text in texts(brain)] == ["Tried and reverted: Read parquet files with threads "]


def test_lists_of_squashed_commits_are_no_decisions_and_hold_no_linting(brain, history):
    body = "* Add red test\n\n* Linting\n\n* We no longer lint here\n\n* changelog\n\n---------"
    history.commit(f"Widen the rows of carriers (#7)\n\n{body}", "etl/carrier.py")
    history.commit(f"Fix environment proxies of carriers (#8)\n\n{body}", "etl/carrier.py")
    import_git(brain, history.root)
    (fix,), (change,) = texts(brain), changes(brain)
    assert fix == "Fix environment proxies of carriers (#8)\n* Add red test\nFix: changed etl/carrier.py"
    assert change == "Widen the rows of carriers (#7)\n* Add red test\nChanged: etl/carrier.py"


PYTHON = """\
class Path:
    def resolve(self, value):
        return value


    def coerce(self, value):
        return value
"""


def test_a_fix_is_known_by_what_the_notes_of_a_later_release_say_of_its_request_or_issue(brain, history):
    request = history.commit("Fix reading of rows without codes (#41)", "etl/rows.py")
    issue = history.commit("Fix the zone of invoices\n\nCloses #52", "etl/dates.py")
    other = history.commit("Fix the order of columns (#60)", "etl/columns.py")
    news = """1.2
---
-   Parcels of carriers that assign no number are imported. :issue:`41`
-   Invoices are no longer dated
    one day early. (#52)
"""
    (history.root / "CHANGES.rst").write_text(news)
    history.commit("Release 1.2")
    import_git(brain, history.root)
    texts = {memory.contents["commit"]: memory.text for memory in brain.memories() if "commit" in memory.contents}
    assert "Changelog: -   Parcels of carriers that assign no number are imported. 41" in texts[request]
    assert "Changelog: -   Invoices are no longer dated one day early. (#52)" in texts[issue]
    assert "Changelog" not in texts[other]


def test_a_change_is_known_by_its_functions_its_tests_and_the_changelog(brain, history):
    (history.root / "etl").mkdir(exist_ok=True)
    (history.root / "etl/paths.py").write_text(PYTHON)
    history.commit("Add paths of all kinds", "etl/other.py")
    (history.root / "etl/paths.py").write_text(PYTHON.replace("return value\n\n\n", "return real(value)\n\n\n"))
    (history.root / "CHANGES.rst").write_text("Version 8\n---------\n-   Relative ``symlinks`` are kept. :issue:`19`\n")
    (history.root / "tests").mkdir()
    (history.root / "tests/test_paths.py").write_text("def test_symlink_of_a_folder():\n    pass\n")
    (history.root / "web").mkdir()
    (history.root / "web/paths.test.js").write_text("it('should follow a link', () => {})\n")
    history.commit("Resolve links against their own folder")
    import_git(brain, history.root)
    assert changes(brain)[0].splitlines() == [
        "Resolve links against their own folder",
        "Changed: CHANGES.rst, etl/paths.py, tests/test_paths.py, web/paths.test.js",
        "Changelog: -   Relative symlinks are kept. 19",
        "In: resolve",
        "Tests: test_symlink_of_a_folder, should follow a link",
    ]


def test_a_partial_clone_is_asked_for_no_patches(brain, history):
    (history.root / "etl/paths.py").parent.mkdir(exist_ok=True)
    history.commit("Add paths of all kinds", "etl/paths.py")
    (history.root / "etl/paths.py").write_text(PYTHON)
    history.commit("Resolve links against their own folder")
    history.git("config", "remote.origin.promisor", "true")
    assert import_git(brain, history.root).without_patch == 3
    assert changes(brain)[0] == "Resolve links against their own folder\nChanged: etl/paths.py"


def test_commits_whose_contents_are_missing_are_imported_without_their_patches(brain, history):
    for number in range(3):
        history.commit(f"Load the table of carriers number {number}", "etl/data.csv", "etl/carrier.py")
    (history.root / "etl/paths.py").write_text(PYTHON)
    history.commit("Resolve links against their own folder")
    for number in range(1, 4):
        missing = history.git("rev-parse", f"HEAD~{number}:etl/data.csv")
        (history.root / f".git/objects/{missing[:2]}/{missing[2:]}").unlink()
    assert import_git(brain, history.root)[:] == (5, 0, 4, 3, 1)
    found = {one.partition("\n")[0]: one for one in changes(brain)}
    assert "In: Path, resolve" in found["Resolve links against their own folder"]
    assert "Changed: etl/carrier.py, etl/data.csv" in found["Load the table of carriers number 1"]


@pytest.mark.parametrize("how", ["--bare", "--no-checkout"])
def test_a_clone_without_files_is_imported_and_nothing_is_called_gone(brain, history, tmp_path, how):
    history.commit("Fix KeyError in the carrier import", "etl/carrier.py")
    subprocess.run(["git", "clone", "-q", how, history.root, tmp_path / "copy"], check=True)
    assert import_git(brain, tmp_path / "copy").memories == 1
    assert ["prints" in hit.memory.contents for hit in brain.recall("carrier import")] == [False]


ROUTINE = [
    "Bump the version of the package", "Release 2.0 of the importer", "Merge the branch of carriers",
    "Fix typos in names",
    "lint: the whole importer", "Update dependencies of the importer", "style: sort the imports", "Work",
]  # fmt: skip


def test_two_words_say_enough_about_code_and_elsewhere_an_explanation_does(brain, history):
    history.commit("Drop chardet (#1269)", "etl/carrier.py")
    history.commit("Pin the doctest runner", "docs/conf.rst")
    history.commit("Describe the locks\n\nReaders in RAM lock whole tables.", "docs/locks.rst")
    import_git(brain, history.root)
    assert {one.partition("\n")[0] for one in changes(brain)} == {"Drop chardet (#1269)", "Describe the locks"}


def test_a_number_in_another_repository_is_no_reason_for_a_revert(brain, history):
    history.commit('Revert "use little endian int (acme/core#1372)" (acme/core#1393)', "etl/carrier.py")
    import_git(brain, history.root)
    assert texts(brain) == ["Tried and reverted: use little endian int."]


def test_a_revert_of_a_revert_in_words_says_nothing_was_taken_back(brain, history):
    history.commit('Revert "Revert the /graph changes."\n\nThis brings back the /graph changes.', "etl/graph.py")
    import_git(brain, history.root)
    assert texts(brain) == []


@pytest.mark.parametrize("again", ["Reland", "Re-merge", "Reapply", "Reintroduce"])
def test_what_came_back_under_another_word_was_not_taken_back(brain, history, again):
    history.commit('Revert "macos: use posix_spawn"\n\nIt caused failures in other suites.', "etl/spawn.c")
    history.commit(f'{again} "macos: use posix_spawn" (#3257)', "etl/spawn.c")
    import_git(brain, history.root)
    assert not [one for one in texts(brain) if "Tried and reverted" in one]


def test_a_revert_behind_a_kind_is_one(brain, history):
    body = "This change requires TypeScript 5.1."
    history.commit(f'fix: Revert "fix(types): allow unrelated getters (#11442)"\n\n{body}', "etl/ref.ts")
    import_git(brain, history.root)
    assert texts(brain) == [f"Tried and reverted: fix(types): allow unrelated getters. Why: {body}"]


def test_a_partial_revert_took_nothing_back_and_its_ids_are_no_reason(brain, history):
    part = "This reverts the part of commit 19908ff7a37a9a431399bb6f2868efc22820f2b6 in\nsubdirectory lints."
    history.commit(f'Revert "stabilize conversions"\n\n{part}', "etl/a.rs")
    both = "This reverts commits 978b1daf99d8326718684381704902fdaaf71b18 and 3235d9d612909bc64550eea3a0d387e1187e93dd."
    history.commit(f'Revert "New lint for maps"\n\n{both}', "etl/b.rs")
    import_git(brain, history.root)
    assert texts(brain) == ["Tried and reverted: New lint for maps (commit 978b1daf99)."]


@pytest.mark.parametrize(
    "subject", ["Revert #152369 because of multiple regressions", "Fix grammar: 'allows to' in it"]
)
def test_a_revert_in_words_and_corrected_wording_are_no_fixes(brain, history, subject):
    history.commit(f"{subject}\n\nThe regressions are documented elsewhere.", "etl/a.rs")
    import_git(brain, history.root)
    assert {memory.type for memory in brain.memories()} <= {"codebase"}


def test_whom_a_revert_is_told_to_and_what_it_closes_is_no_reason(brain, history):
    history.commit('Revert "Change pane titles"\n\nClose #586. /cc @akashin', "etl/title.sh")
    history.commit('Revert "Close handles to the terminal", instead reuse handles', "etl/tty.go")
    history.commit("Fix/typescript tests (#5375)\n\nrefactor the tests of types a bit", "etl/index.ts")
    import_git(brain, history.root)
    assert texts(brain) == [
        "Tried and reverted: Close handles to the terminal. Why: instead reuse handles",
        "Tried and reverted: Change pane titles.",
    ]


def test_lines_of_a_wrapped_item_stay_together(brain, history):
    items = "- Check if a character is inside a visible range (do not\n  include the next position).\n- Clip both bars."
    history.commit(f"Fix various errors in redrawing:\n\n{items}", "etl/redraw.c")
    import_git(brain, history.root)
    assert texts(brain)[0].splitlines()[1:3] == [
        "- Check if a character is inside a visible range (do not include the next position).",
        "- Clip both bars.",
    ]


def test_a_corrected_manual_page_is_no_fix(brain, history):
    history.commit("Correct Linux-specific sections\n\nSome of the locations on Linux differ.", "etl.1")
    import_git(brain, history.root)
    assert [memory.type for memory in brain.memories()] == ["codebase"]


def test_files_that_a_bot_or_a_release_changes_are_not_told_to_belong_together(brain, history):
    for number in range(8):
        history.commit(f"Update packages {number}", "etl/a.ts", "etl/b.ts", author="renovate[bot] <bot@renovate.io>")
        history.commit(f"Raise versions {number}", "web/package.json", "cli/package.json")
    import_git(brain, history.root)
    assert not [one for one in texts(brain) if one.startswith("Of the")]


def test_a_refactoring_or_another_docstring_is_no_decision(brain, history):
    history.commit("refactor: replace numbers with constants", "etl/carrier.py")
    history.commit("Use 'prefix' instead of 'key' in the session docstring", "etl/carrier.py")
    import_git(brain, history.root)
    assert of_kind(brain, "decision") == []


def test_routine_teaches_nothing(brain, history):
    for subject in ROUTINE:
        history.commit(subject, "etl/carrier.py")
    import_git(brain, history.root)
    assert changes(brain) == []


def test_what_was_taken_back_after_it_was_learned_no_longer_holds(brain, history):
    tried = history.commit("Read parquet files with threads", "etl/carrier.py")
    import_git(brain, history.root)
    (learned,) = of_kind(brain, "codebase")
    reverts(history, "Read parquet files with threads", tried, "Threads doubled the memory.")
    import_git(brain, history.root)
    assert brain.get(learned.memory_id).tags["state"] == "superseded"
    assert of_kind(brain, "decision")[0].tags["state"] == "current"


def test_what_lies_around_the_code_is_neither_fixed_nor_decided(brain, history):
    history.commit("Fix the broken upload step of the guide", "docs/guide.md", "README.md")
    history.commit("Fix the race in the carrier suite for good", "tests/test_carrier.py")
    history.commit("Switch to the new runners of everybody", ".github/workflows/ci.yml")
    tried = history.commit("Deploy every tag that passes", ".travis.yml")
    history.git("revert", "--no-edit", tried)
    import_git(brain, history.root)
    assert texts(brain) == []


def test_the_same_commit_on_two_branches_is_told_once(brain, history):
    for _ in range(2):
        history.commit("Fix KeyError in the carrier import\n\nParcels have none.", "etl/carrier.py")
    import_git(brain, history.root)
    assert len(texts(brain)) == 1


def test_commits_weigh_less_than_what_people_said(brain, history):
    tried = history.commit("Read parquet files with threads", "etl/carrier.py")
    reverts(history, "Read parquet files with threads", tried, "Threads doubled the memory.")
    history.commit("Fix KeyError in the carrier import\n\nParcels of Ann have no carrier.", "etl/carrier.py")
    history.commit("Use httpx instead of requests", "etl/carrier.py")
    import_git(brain, history.root)
    assert len(texts(brain)) == 3
    assert max(memory.importance for memory in brain.memories(limit=None)) < 0.5


CONVENTIONS = [
    "Use httpx instead of requests", "Switch CI to uv", "Replace moment with date-fns",
    "Deprecate the v1 endpoints",
    "Migrate settings to pydantic", "Sort imports\n\nFrom now on ruff sorts the imports of every module.",
    "Log as JSON\n\nWe no longer print to stdout.",
]  # fmt: skip


def test_conventions_are_decisions(brain, history):
    for message in CONVENTIONS:
        history.commit(message, "etl/carrier.py")
    import_git(brain, history.root)
    told = {message.replace("\n\n", "\n") for message in CONVENTIONS}
    assert {memory.text for memory in of_kind(brain, "decision")} == told


def test_files_that_change_together(brain, history):
    for number in range(8):
        history.commit(f"Widen rows {number}", "etl/rows.py", "etl/schema.sql", "poetry.lock", "CHANGELOG.md",
                       "tests/test_rows.py", *(["etl/four.py"] if number < 4 else []))  # fmt: skip
    for number in range(30):
        history.commit(f"Other work {number}", f"etl/other{number}.py", "CHANGELOG.md")
    import_git(brain, history.root)
    assert sorted(texts(brain)) == [
        "Of the 8 commits that changed etl/rows.py, most changed these files too: etl/schema.sql (8).",
        "Of the 8 commits that changed etl/schema.sql, most changed these files too: tests/test_rows.py (8).",
    ]


def test_what_changes_with_everything_belongs_to_nothing(brain, history):
    for number in range(12):
        history.commit(f"Work {number}", f"etl/part{number % 2}.py", "etl/settings.py")
    import_git(brain, history.root)
    assert texts(brain) == []


def test_files_that_are_gone_or_were_renamed_belong_to_nothing(brain, history):
    for number in range(6):
        history.commit(f"Widen {number}", "etl/old.py", "etl/schema.sql", "etl/gone.py")
    history.git("mv", "etl/old.py", "etl/new.py")
    history.git("rm", "-q", "etl/gone.py")
    history.commit("Rename it")
    for number in range(10):
        history.commit(f"Other {number}", f"etl/o{number}.py")
    import_git(brain, history.root)
    assert texts(brain) == []


def test_huge_commits_and_merges_teach_nothing(brain, history):
    many = [f"gen/{number}.py" for number in range(40)]
    for number in range(6):
        history.commit(f"Fix everything at once, round {number}", *many)
    history.git("checkout", "-q", "-b", "side")
    history.commit("Side", "etl/side.py")
    history.git("checkout", "-q", "main")
    history.commit("Main", "etl/main.py")
    history.git("merge", "-q", "--no-ff", "-m", "Fix conflicts by merging side into main", "side")
    assert import_git(brain, history.root)[:3] == (9, 0, 0)


def test_bots_are_not_listened_to(brain, history):
    history.commit("Fix security hole by a bump of lodash", "package.json", author="dependabot[bot] <x@users.noreply>")
    import_git(brain, history.root)
    assert texts(brain) == []


def test_a_second_run_adds_nothing_and_new_commits_only_theirs(brain, history):
    history.commit("Fix KeyError in the carrier import", "etl/carrier.py")
    for number in range(8):
        history.commit(f"Rows {number}", "etl/rows.py", "etl/schema.sql")
    for number in range(10):
        history.commit(f"Other {number}", f"etl/o{number}.py")
    assert import_git(brain, history.root).memories == 2
    before = {memory.memory_id: memory.contents for memory in brain.memories(limit=None)}
    assert import_git(brain, history.root)[1:3] == (2, 0)
    history.commit("Fix timeouts of the pool in tests", "etl/pool.py")
    assert import_git(brain, history.root)[1:3] == (2, 1)
    assert all(brain.get(name).contents == contents for name, contents in before.items())


def test_from_any_folder_of_it_and_with_progress(brain, history):
    history.commit("Fix KeyError in the carrier import", "etl/carrier.py")
    told = []
    import_git(brain, history.root / "etl", on_progress=lambda *done: told.append(done))
    assert told == [(1, 2), (2, 2)]


def test_a_commit_about_a_file_that_is_gone_says_so_when_it_is_found_and_is_nothing_to_review(brain, history):
    history.commit("Fix KeyError in the carrier import", "etl/carrier.py")
    history.commit("Fix timeouts of the pool in tests", "etl/pool.py")
    history.git("rm", "-q", "etl/carrier.py")
    history.commit("Leave the carriers to others")
    import_git(brain, history.root)
    team, here = TeamMemory(brain, author="ann@acme.io"), repository(history.root)
    found = team.recent(repository=here, limit=10)
    assert {team.check_stale(one, here).stale for one in found} == {"etl/carrier.py is gone", None}
    assert out_of_date(team, here) == []


def test_shallow_clones(brain, history, tmp_path):
    history.commit("Fix KeyError in the carrier import", "etl/carrier.py")
    history.commit("Fix timeouts of the pool in tests", "etl/pool.py")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "2", f"file://{history.root}", shallow], check=True)
    assert import_git(brain, shallow).read == 2
    # Where it was cut, nobody knows what was changed.
    assert [memory.contents["files"] for memory in of_kind(brain, "error_fix")] == [["etl/pool.py"]]


def test_messages_and_names_in_any_encoding(brain, history):
    history.git("config", "i18n.commitEncoding", "ISO-8859-1")
    history.commit("Fix Größe of the packages".encode("latin-1"), "etl/carrier.py")
    history.git("config", "i18n.commitEncoding", "UTF-8")
    history.commit(b"Fix bytes \xff\xfe that nobody reads", "etl/größe.py")
    import_git(brain, history.root)
    told = sorted((memory.text, memory.contents["files"]) for memory in of_kind(brain, "error_fix"))
    assert told[0][0].startswith("Fix Größe of the packages") or told[1][0].startswith("Fix Größe of the packages")
    assert ["etl/größe.py"] in [files for _, files in told]


def test_secrets_in_messages_are_masked(brain, history):
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    history.commit(f"Fix login with the token of the team\n\nIt was {secret}.", "etl/carrier.py")
    import_git(brain, history.root)
    assert secret not in "".join(texts(brain))


def test_what_is_no_repository_is_refused(brain, tmp_path, monkeypatch):
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(InputError, match="must lie in a git repository, got 'plain'"):
        import_git(brain, plain)
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    with pytest.raises(InputError, match="has no commits yet"):
        import_git(brain, bare)
    empty = History(tmp_path / "empty")
    with pytest.raises(InputError, match="'empty' has no commits yet"):
        import_git(brain, empty.root)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="git is not installed"):
        import_git(brain, empty.root)


def test_a_repository_that_opts_out_is_left_alone(brain, history):
    history.commit("Fix KeyError in the carrier import", "etl/carrier.py")
    (history.root / ".rmem.toml").write_text("capture = false\n")
    with pytest.raises(InputError, match="opts out"):
        import_git(brain, history.root)


def test_a_long_history_is_read_by_a_few_processes(brain, history, monkeypatch):
    stream = []
    for number in range(200):
        message = f"Fix the part {number} of it" if number % 100 == 0 else f"Work on part {number}"
        stream.append(
            f"commit refs/heads/long\ncommitter Ann <ann@acme.io> {START + number} +0000\n"
            f"data {len(message)}\n{message}\n"
            f"M 100644 inline etl/part{number % 50}.py\ndata {len(str(number))}\n{number}\n"
        )
    history.git("fast-import", "--quiet", input="".join(stream).encode())
    history.git("checkout", "-q", "long")
    ran = []
    popen = subprocess.Popen

    class Counted(popen):
        def __init__(self, *words, **more):
            ran.append(words)
            super().__init__(*words, **more)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    assert import_git(brain, history.root)[:3] == (200, 0, 199)  # of the first commit nobody knows what it changed
    assert len(ran) <= 6
