"""`.rmem.toml`: what a repository may wish, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmem.errors import ConfigError
from rmem.old_names import REPOSITORY_FILES
from rmem.team.notes import SCOPES as MEMORY_SCOPES
from rmem.team.repository_file import SCOPES, find, read_settings, settings_of

FILE = REPOSITORY_FILES[0]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "outside" / "project"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    return root


def settings(root: Path, text: str):
    (root / FILE).write_text(text)
    return read_settings(root / FILE)


def test_it_may_name_a_workspace_and_a_scope(repository):
    read = settings(repository, 'workspace = "etl-team"\nscope = "repository"\n')
    assert (read.workspace, read.scope, read.capture, read.recall) == ("etl-team", "repository", True, True)


def test_it_may_opt_out(repository):
    read = settings(repository, "capture = false\nrecall = false\n")
    assert (read.capture, read.recall) == (False, False)


def test_wishing_for_capture_is_the_same_as_wishing_for_nothing(repository):
    assert settings(repository, "capture = true\n") == settings(repository, "")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('token = "abc"', "token"),
        ('api_key = "abc"', "api_key"),
        ('API-Key = "abc"', "API-Key"),
        ('[server]\nurl = "x"\npassword = "abc"', "password"),
        ('[[servers]]\nclientSecret = "abc"', "clientSecret"),
        ("a = { b = { access_token = 'abc' } }", "access_token"),
        ('note = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"', "note"),
        ('workspace = ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"]', "workspace"),
    ],
)
def test_it_may_never_carry_a_secret_and_the_secret_is_not_repeated(repository, text, key):
    with pytest.raises(ConfigError, match=f"'{key}' looks like a secret") as told:
        settings(repository, f"capture = false\n{text}")
    assert "abc" not in str(told.value)
    assert "eyJ" not in str(told.value)


def test_a_key_that_is_nearly_right_is_refused(repository):
    with pytest.raises(ConfigError, match="no key 'captrue'; did you mean 'capture'"):
        settings(repository, "captrue = false")


def test_other_keys_are_named_and_ignored(repository):
    assert settings(repository, 'colour = "red"\n[future]\nx = 1\n').ignored == ("colour", "future")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('capture = "false"', "capture must be true or false, got 'false'"),
        ("recall = 0", "recall must be true or false, got 0"),
        ("workspace = 3", "workspace must be a name"),
        ('workspace = "../other"', "workspace must be a name"),
        ('scope = "everybody"', "scope must be one of personal, repository, organisation"),
        ("capture = ", "not valid TOML"),
        ("x = 1\n" * 20_000, "larger than 64 KB"),
    ],
)
def test_what_is_wrong_is_named(repository, text, told):
    with pytest.raises(ConfigError, match=told):
        settings(repository, text)


def test_a_file_that_is_no_text_is_refused(repository):
    (repository / FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_settings(repository / FILE)


def test_it_is_found_from_below_and_the_nearest_counts(repository):
    (repository / FILE).write_text("recall = false")
    assert find(repository / "src" / "deep") == repository / FILE
    (repository / "src" / FILE).write_text("")
    assert find(repository / "src" / "deep") == repository / "src" / FILE
    assert settings_of(repository).recall is False


def test_it_is_never_looked_for_above_the_repository_or_outside_one(repository):
    (repository.parent / FILE).write_text("capture = false")
    assert find(repository / "src") is None
    assert settings_of(repository.parent) is None


def test_a_link_that_leads_out_of_the_repository_is_not_followed(repository, tmp_path):
    (tmp_path / "elsewhere.toml").write_text("capture = false")
    (repository / FILE).symlink_to(tmp_path / "elsewhere.toml")
    assert find(repository) is None
    (repository / FILE).unlink()
    (repository / "settings.toml").write_text("capture = false")
    (repository / FILE).symlink_to("settings.toml")
    assert settings_of(repository).capture is False


def test_scopes_are_those_of_memories():
    assert SCOPES == MEMORY_SCOPES
