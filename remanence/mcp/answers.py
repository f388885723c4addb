"""What the tools answer, as schemas that a client can read."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from ..team.notes import Experience


class Known(BaseModel):
    """One memory of the team."""

    id: str = Field(description="What get_memory, forget, feedback and supersedes want.")
    kind: str = Field(description="codebase, preference, task, error_fix, tool_output or decision.")
    text: str = Field(description="What was learned.")
    author: str = Field(description="Whose agent learned it.")
    agent: str = Field(description="Which coding agent learned it.")
    when: float = Field(description="When it was learned, in seconds since 1970.")
    scope: str = Field(description="Who sees it: personal, repository or organisation.")
    repository: str | None = Field(default=None, description="Where it was learned, e.g. github.com/acme/etl.")
    branch: str | None = Field(default=None, description="The branch it was learned on.")
    commit: str | None = Field(default=None, description="The commit it was learned at.")
    files: list[str] = Field(default=[], description="Files it is about, from the repository's root.")
    error: str | None = Field(default=None, description="Of an error_fix: the error as it was printed.")
    fix: str | None = Field(default=None, description="Of an error_fix: what fixed it.")
    count: int = Field(default=1, description="How often it was learned.")
    relevance: float | None = Field(default=None, description="How well it fits the question, between 0 and 1.")
    stale: str | None = Field(default=None, description="Why it may be out of date; check before you rely on it.")
    superseded_by: str | None = Field(default=None, description="The id of the memory that holds in its place.")

    @model_serializer(mode="wrap")
    def _known_only(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what is not known: an agent pays for every word."""
        return {name: value for name, value in whole(self).items() if value not in (None, [])}

    @classmethod
    def of(cls, one: Experience) -> Known:
        body = one.memory.contents
        return cls(
            id=one.id,
            kind=one.kind,
            text=one.text,
            author=one.author,
            agent=one.memory.agent_id,
            when=one.memory.timestamp,
            scope=one.scope,
            repository=one.repository,
            branch=body.get("branch"),
            commit=one.commit,
            files=one.files,
            error=body.get("error"),
            fix=body.get("fix"),
            count=one.count,
            relevance=round(one.relevance, 3) if one.recall_id else None,
            stale=one.stale,
            superseded_by=body.get("superseded_by"),
        )


class Page(BaseModel):
    """Memories, a page of them."""

    memories: list[Known] = Field(description="The memories of this page.")
    next_offset: int | None = Field(default=None, description="Ask again with this offset for more; null at the end.")


class Found(Page):
    """Memories that answer a question, best first."""

    recall_id: str | None = Field(default=None, description="What feedback wants; null if nothing was found.")


class Kept(BaseModel):
    """What `remember` did."""

    id: str = Field(description="The id of the memory.")
    count: int = Field(description="1 for a new memory; more if the team knew it already.")
    scope: str = Field(description="Who sees it. Outside any repository, repository means personal.")
    repository: str | None = Field(default=None, description="The repository it is kept for.")


class Done(BaseModel):
    """Whether something was done."""

    done: bool = Field(description="Whether it was done.")


class Expert(BaseModel):
    """Somebody whose agents know about a topic."""

    author: str = Field(description="Who.")
    weight: float = Field(description="How much they know: the relevance of all they learned, added up.")
    memories: list[str] = Field(description="The ids of the best that they learned.")


class Experts(BaseModel):
    """Those who know, the best first."""

    experts: list[Expert] = Field(description="The best first; empty if nobody knows.")


class State(BaseModel):
    """What a session was doing."""

    found: bool = Field(description="Whether there is such a session.")
    state: dict[str, Any] = Field(
        default={}, description="Its task, plan, open files, edits, last outputs and failures."
    )
    hint: str | None = Field(default=None, description="What to do where there is none.")
