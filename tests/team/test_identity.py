"""The same repository in every clone and worktree, read from git's own files."""

from __future__ import annotations

import subprocess

import pytest

from rmem.errors import ConfigError
from rmem.team.identity import author, repository, repository_id
from rmem.team.repository_file import settings_of


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
        "git@github.com:/acme/etl.git",
    ],
)
def test_all_ways_of_writing_an_address_are_one_repository(clone, address):
    git(clone, "remote", "add", "origin", address)
    assert repository(clone).id == "github.com/acme/etl"


# The forms of git's documentation (git help clone, "GIT URLS") and of each service's own clone button.
ADDRESSES = {
    "github.com/acme/etl": [
        "https://GITHUB.com/Acme/etl.git/", "https://www.github.com/acme/etl", "http://github.com:80/acme/etl.git",
        "git+ssh://git@github.com/acme/etl.git", "ssh+git://git@github.com/acme/etl", "git://github.com:9418/acme/etl.git",
        "git+https://github.com/acme/etl.git", "ssh://git@github.com:acme/etl.git", "git@GitHub.com:/acme/etl.git/",
        "org-1234@github.com:acme/etl.git", "https://x-access-token:p@ss@github.com/acme//etl", "ftps://github.com/acme/etl",
    ],
    "host.xz/~ann/path/etl": [
        "ssh://ann@host.xz:2222/~ann/path/etl.git/", "git://host.xz/~ann/path/etl.git", "ann@host.xz:~ann/path/etl.git",
        "ann@host.xz:/~ann/path/etl.git/",
    ],
    "gitlab.com/a/b/c/etl": [
        "git@gitlab.com:a/b/c/etl.git", "https://oauth2:token@gitlab.com/a/b/c/etl.git",
        "ssh://git@altssh.gitlab.com:443/a/b/c/etl.git",
    ],
    "dev.azure.com/acme/data platform/_git/etl": [
        "git@ssh.dev.azure.com:v3/acme/Data%20Platform/etl", "https://acme@dev.azure.com/acme/Data%20Platform/_git/etl",
        "https://acme.visualstudio.com/DefaultCollection/Data%20Platform/_git/etl",
        "https://acme.visualstudio.com/Data%20Platform/_git/etl",
        "acme@vs-ssh.visualstudio.com:v3/acme/Data%20Platform/etl",
    ],
    "dev.azure.com/acme/etl/_git/etl": [
        "https://dev.azure.com/acme/_git/etl", "https://acme.visualstudio.com/_git/etl",
        "git@ssh.dev.azure.com:v3/acme/etl/etl",
    ],
    "bitbucket.acme.io/dat/etl": [
        "https://bitbucket.acme.io/scm/DAT/etl.git", "ssh://git@bitbucket.acme.io:7999/dat/etl.git",
        "https://ann@bitbucket.acme.io:8443/bitbucket/scm/dat/etl.git",
    ],
    "bitbucket.acme.io/~ann/etl": [
        "https://bitbucket.acme.io/scm/~ann/etl.git", "ssh://git@bitbucket.acme.io:7999/~ann/etl.git",
    ],
    "git-codecommit.eu-west-1.amazonaws.com/v1/repos/etl": [
        "codecommit::eu-west-1://etl", "codecommit::eu-west-1://work@etl",
        "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/etl",
        "ssh://KEY@git-codecommit.eu-west-1.amazonaws.com/v1/repos/etl",
    ],
    "[2001:db8::1]/acme/etl": ["ssh://git@[2001:db8::1]:2222/acme/etl.git", "https://[2001:db8::1]/acme/etl"],
    "friendco.de/ann@acme/etl": ["https://friendco.de/Ann@acme/etl.git", "git@friendco.de:Ann@acme/etl.git"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "address"), [(wanted, address) for wanted, several in ADDRESSES.items() for address in several]
)
def test_every_service_writes_the_address_of_a_repository_in_its_own_ways(clone, home, wanted, address):
    git(clone, "remote", "add", "origin", address)
    assert repository(clone).id == repository_id(address) == wanted
    assert repository_id(wanted) == wanted


@pytest.mark.parametrize("name", ["etl", "../etl.git", "/srv/git/etl.git", "gitlab.com/scm/a/b"])
def test_what_is_no_address_stays_as_it_is(name):
    assert repository_id(name) == name


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


@pytest.mark.parametrize("way", ["{}", "file://{}"])
def test_a_clone_of_a_folder_is_named_after_it_without_its_path(clone, tmp_path, way):
    git(tmp_path, "clone", "-q", way.format(clone), "copy")
    found = repository(tmp_path / "copy").id
    assert found == repository(clone).id
    assert str(tmp_path) not in found


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
    monkeypatch.setenv("RMEM_USER", "carla")
    assert author(tmp_path) == "carla"


# One repository is one id


def test_a_fork_is_the_repository_that_it_is_of(clone):
    git(clone, "remote", "add", "origin", "git@github.com:ann/etl.git")
    git(clone, "remote", "add", "upstream", "https://github.com/acme/etl")
    assert repository(clone).id == "github.com/acme/etl"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def home(tmp_path, clone):
    return tmp_path / "home"


@pytest.mark.parametrize(
    "address",
    [
        "git@work:acme/etl.git",
        "ssh://git@work/acme/etl.git",
        "git@ssh.github.com:acme/etl.git",
        "ssh://git@ssh.github.com:443/acme/etl.git",
        "git@eu-1:acme/etl",
        "git@here:acme/etl",
    ],
)
def test_names_of_ssh_hosts_are_the_hosts_that_they_stand_for(clone, home, address):
    write(
        home / ".ssh/config",
        "# Work\nInclude more/*.conf\nHost other\n  HostName example.org\n"
        "Host = work\n  HostName = github.com\n  User git\n"
        'Host eu-* !eu-2\n  hostname "ssh.github.com"\n  Port 443\nHost *\n  ForwardAgent no\n',
    )
    write(home / ".ssh/more/a.conf", "Host here\n  HostName github.com\n")
    git(clone, "remote", "add", "origin", address)
    assert repository(clone).id == "github.com/acme/etl"


def test_names_of_ssh_hosts_do_not_hold_for_https(clone, home):
    write(home / ".ssh/config", "Host github.com\n  HostName proxy.acme.io\n")
    git(clone, "remote", "add", "origin", "https://github.com/acme/etl")
    assert repository(clone).id == "github.com/acme/etl"


def test_addresses_are_rewritten_as_git_does_it(clone, home):
    write(
        home / ".gitconfig",
        '[url "git@github.com:"]\n  insteadOf = gh:\n  insteadOf = https://mirror/\n'
        '[url "ssh://git@github.com/acme/"]\n  insteadOf = gh:ours/\n',
    )
    git(clone, "remote", "add", "origin", "gh:acme/etl")
    asked = subprocess.run(
        ["git", "remote", "get-url", "origin"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip() == "git@github.com:acme/etl"
    assert repository(clone).id == "github.com/acme/etl"
    git(clone, "remote", "set-url", "origin", "gh:ours/etl.git")
    assert repository(clone).id == "github.com/acme/etl"


def test_a_mirror_of_a_forge_makes_no_other_repository(clone, home):
    write(home / ".gitconfig", '[url "https://mirror.acme.io/github/"]\n  insteadOf = https://github.com/\n')
    git(clone, "remote", "add", "origin", "https://github.com/acme/etl")
    assert repository(clone).id == "github.com/acme/etl"


def test_a_linked_folder_belongs_to_the_repository_that_it_is_in(clone, tmp_path):
    git(clone, "remote", "add", "origin", "git@github.com:acme/etl.git")
    (clone / "etl/jobs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(clone / "etl")
    assert repository(tmp_path / "link/jobs").id == "github.com/acme/etl"


def test_a_submodule_is_a_repository_of_its_own(clone, tmp_path):
    part = tmp_path / "part"
    part.mkdir()
    git(part, "init", "-q", "-b", "main")
    git(part, "commit", "-q", "--allow-empty", "-m", "first")
    git(clone, "remote", "add", "origin", "git@github.com:acme/etl.git")
    git(clone, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "libs/part")
    inside = clone / "libs/part"
    git(inside, "remote", "set-url", "origin", "git@github.com:acme/part.git")
    assert (repository(inside).id, repository(clone / "libs").id) == ("github.com/acme/part", "github.com/acme/etl")
    assert repository(inside).root == inside


def test_worktrees_of_a_fork_and_of_a_bare_clone_are_one(clone, tmp_path):
    git(clone, "remote", "add", "origin", "git@github.com:ann/etl.git")
    git(clone, "remote", "add", "upstream", "git@github.com:acme/etl.git")
    git(tmp_path, "clone", "-q", "--bare", str(clone), "bare.git")
    git(tmp_path / "bare.git", "remote", "set-url", "origin", "https://github.com/acme/etl.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "fix")
    git(clone, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    ids = {repository(path).id for path in (clone, tmp_path / "other", tmp_path / "tree")}
    assert ids == {"github.com/acme/etl"}


@pytest.mark.parametrize("named", ["github.com/acme/platform", "git@github.com:Acme/Platform.git"])
def test_the_repository_file_has_the_last_word(clone, tmp_path, named):
    git(clone, "remote", "add", "origin", "git@github.com:ann/etl.git")
    write(clone / ".rmem.toml", f'repository = "{named}"\n')
    (clone / "src").mkdir()
    git(clone, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "other"))
    write(tmp_path / "other" / ".rmem.toml", f'repository = "{named}"\n')
    assert repository(clone / "src").id == repository(tmp_path / "other").id == "github.com/acme/platform"


def test_a_repository_that_is_no_address_is_refused_and_names_nothing(clone):
    git(clone, "remote", "add", "origin", "git@github.com:acme/etl.git")
    write(clone / ".rmem.toml", 'repository = "two words"\n')
    with pytest.raises(ConfigError, match="repository must be an address like"):
        settings_of(clone)
    assert repository(clone).id == "github.com/acme/etl"


def test_the_author_is_whom_an_included_file_names(clone, home, tmp_path):
    write(
        home / ".gitconfig",
        f'[user]\n  email = ann@home.org\n[includeIf "gitdir:{clone}/"]\n  path = work.cfg\n'
        '[includeIf "hasconfig:remote.*.url:git@github.com:corp/**"]\n  path = corp.cfg\n',
    )
    write(home / "work.cfg", "[user]\n  email = ann@acme.io\n")
    write(home / "corp.cfg", "[user]\n  email = ann@corp.io\n")
    assert (author(clone), author(tmp_path)) == ("ann@acme.io", "ann@home.org")
    git(clone, "remote", "add", "origin", "git@github.com:corp/etl.git")
    assert author(clone) == "ann@corp.io"


def test_without_git_its_plain_files_are_read(clone, home, monkeypatch):
    write(home / ".gitconfig", '[user]\n  email = "ann@home.org"\n[url "https://github.com/"]\n  insteadOf = gh:\n')
    git(clone, "remote", "add", "origin", "gh:acme/etl")
    monkeypatch.setenv("PATH", "")
    assert (author(clone), repository(clone).id) == ("ann@home.org", "github.com/acme/etl")


def test_a_git_folder_in_the_environment_misleads_nobody(clone, tmp_path, monkeypatch):
    git(clone, "remote", "add", "origin", "git@github.com:acme/etl.git")
    other = tmp_path / "elsewhere"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "remote", "add", "origin", "git@github.com:acme/other.git")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert repository(clone).id == "github.com/acme/etl"
