"""The same repository in every clone and worktree, read from git's own files."""

from __future__ import annotations

import subprocess

import pytest

from remanence.team.identity import author, repository


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=Ann", "-c", "user.email=ann@acme.io", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@pytest.mark.parametrize(
    "address",
    [
        "git@github.com:Acme/Etl.git",
        "https://github.com/acme/etl",
        "https://ann:secret@github.com/acme/etl.git",
        "ssh://git@github.com:22/acme/etl.git",
    ],
)
def test_all_ways_of_writing_an_address_are_one_repository(clone, address):
    git(clone, "remote", "add", "origin", address)
    assert repository(clone).id == "github.com/acme/etl"


def test_a_worktree_is_the_same_repository_on_its_own_branch(clone, tmp_path):
    git(clone, "remote", "add", "origin", "git@github.com:acme/etl.git")
    git(clone, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "other"))
    here, there = repository(clone), repository(tmp_path / "other")
    assert here.id == there.id
    assert (here.branch, there.branch) == ("main", "fix")
    assert here.commit == there.commit
    assert len(here.commit) == 40


def test_worktrees_of_a_repository_that_is_shared_nowhere_are_one(clone, tmp_path):
    git(clone, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "other"))
    assert repository(clone).id == repository(tmp_path / "other").id


def test_a_packed_branch_has_its_commit(clone):
    before = repository(clone).commit
    git(clone, "pack-refs", "--all")
    assert repository(clone).commit == before


def test_a_detached_head_has_a_commit_and_no_branch(clone):
    git(clone, "checkout", "-q", "--detach")
    found = repository(clone)
    assert found.branch is None
    assert len(found.commit) == 40


def test_paths_are_told_from_the_root(clone):
    (clone / "src").mkdir()
    found = repository(clone / "src")
    assert found.relative(clone / "src" / "a.py") == "src/a.py"
    assert found.relative("src/a.py") == "src/a.py"
    assert found.relative("/elsewhere/b.py") == "/elsewhere/b.py"


def test_outside_any_repository_there_is_none(tmp_path):
    assert repository(tmp_path) is None


def test_the_author_is_whom_git_names(clone):
    git(clone, "config", "user.email", "bob@acme.io")
    assert author(clone) == "bob@acme.io"


def test_without_git_the_author_is_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REMANENCE_USER", "carla")
    assert author(tmp_path) == "carla"
