"""Run prompts over the histories of real repositories, imported into a temporary store as `rmem import git` does, with
recorded sessions if there are any."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ...brain import Brain
from ...errors import InputError
from ...models import Memory
from ...team.identity import Repository, repository
from ...team.importers.run import import_git, import_transcripts
from ...team.memory import TeamMemory
from . import KINDS, Prompt, PromptResult, run_prompts

Progress = Callable[[str, int, int], None]
"""Called with a label, the number done and the total."""


@dataclass(slots=True)
class Histories:
    """A team memory of some repositories, and prompts about them."""

    team: TeamMemory
    places: dict[str, Repository]
    """The repositories by the names used in the prompts."""
    prompts: list[Prompt]

    def evaluate(self, on_progress: Progress | None = None) -> list[PromptResult]:
        report = None if on_progress is None else lambda done, total: on_progress("Asking", done, total)
        place_of = lambda prompt: self.places[prompt.repository]  # noqa: E731
        return run_prompts(self.prompts, self.team, place_of, lambda experience: commits_of(experience.memory), report)


def commits_of(memory: Memory) -> list[str]:
    """Return the commits that a memory is about."""
    return [str(commit)] if (commit := memory.contents.get("commit")) else []


def read_prompts(place: Path) -> list[Prompt]:
    """Read the prompts of a JSON Lines file, or of all such files in a folder."""
    paths = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    if not paths:
        raise InputError(f"there are no .jsonl files in {place}", field="prompts")
    return [prompt for path in paths for prompt in _read_file(path)]


def _read_file(path: Path) -> Iterator[Prompt]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", field="prompts") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _prompt(json.loads(line))
            except ValueError as error:  # InputError is one
                raise InputError(f"{path.name}, line {number}: {error}", field="prompts") from error


def _prompt(data: Any) -> Prompt:
    if not isinstance(data, Mapping):
        raise InputError(f"expected a JSON object, got {type(data).__name__}", field="prompts")
    for name in ("repository", "kind", "prompt"):
        if not isinstance(data.get(name), str) or not data[name].strip():
            raise InputError(f"{name} must be a text, got {data.get(name)!r}", field=name)
    if data["kind"] not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {data['kind']!r}", field="kind")
    answers = data.get("answers", [])
    if not isinstance(answers, list) or not all(isinstance(answer, str) and len(answer) >= 7 for answer in answers):
        raise InputError(f"answers must be a list of commit ids (7 digits at least), got {answers!r}", field="answers")
    if bool(answers) == (data["kind"] == "nothing"):
        raise InputError('answers must be empty for the kind "nothing", and for no other', field="answers")
    return Prompt(data["repository"], data["kind"], data["prompt"], frozenset(answers))


@contextmanager
def import_histories(
    paths: Sequence[Path],
    prompts: Sequence[Prompt],
    *,
    sessions: Sequence[tuple[str, Path]] = (),
    on_progress: Progress | None = None,
) -> Iterator[Histories]:
    """Import repositories and sessions (agent and folder of each) into a temporary memory; keep the prompts about
    these repositories."""
    found = [_repository(path) for path in paths]
    names = dict.fromkeys(prompt.repository for prompt in prompts)
    places = {name: place for name in names if (place := _find_repository(name, found)) is not None}
    chosen = [prompt for prompt in prompts if prompt.repository in places]
    if not chosen:
        others = ", ".join(names)
        raise InputError(f"none of the prompts is about these repositories, but about {others}", field="prompts")

    def progress_of(label: str) -> Callable[[int, int], None] | None:
        return None if on_progress is None else lambda done, total: on_progress(label, done, total)

    with (
        tempfile.TemporaryDirectory() as folder,
        Brain(Path(folder) / "team.db", durability="normal") as brain,
    ):
        for place in found:
            import_git(brain, place.root, on_progress=progress_of(f"Importing {place.root.name}"))
        for agent, where in sessions:
            import_transcripts(brain, agent, folder=where, on_progress=progress_of(f"Importing {agent}"))
        yield Histories(TeamMemory(brain, author="reader@example.org"), places, chosen)


def _repository(path: Path) -> Repository:
    found = repository(path.resolve())
    if found is None:
        raise InputError(f"{path} must lie in a git repository", field="repository")
    return found


def _find_repository(name: str, found: Sequence[Repository]) -> Repository | None:
    """Return the repository that prompts call "pallets/click", by its id or its folder."""
    by_id = (candidate for candidate in found if candidate.id == name or candidate.id.endswith(f"/{name}"))
    by_folder = (candidate for candidate in found if candidate.root.name == name.rpartition("/")[2])
    return next(chain(by_id, by_folder), None)
