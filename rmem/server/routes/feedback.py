"""Feedback on recalls, and evaluation of recall on the questions that got feedback."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Response

from ... import checks
from ...brain import Brain
from ...errors import InputError
from ...evaluate import feedback_set
from .. import documents, forms
from ..access import Access, Role, allowed
from ..bodies import Document
from ..exchange import body_schema, json_body, json_response
from ..ownership import is_visible
from .answers import RUNNING

router = APIRouter(prefix="/workspaces/{workspace}", tags=["feedback"], responses=RUNNING)
Reader = Annotated[Access, Depends(allowed(Role.READ))]
Writer = Annotated[Access, Depends(allowed(Role.WRITE))]
EMBEDDERS = ("static", "minilm")
"""Embedders that run locally."""
_RANKED = 200


@router.post(
    "/feedback",
    status_code=201,
    response_model=documents.FeedbackAnswer,
    openapi_extra=body_schema(forms.FeedbackForm),
    summary="Say whether a hit of a recall was useful",
)
async def feedback(
    access: Writer,
    form: Annotated[Document, Depends(json_body(forms.FeedbackForm, "feedback"))],
) -> Response:
    """Accepts feedback on the last recalls of the workspace since the server was started."""
    return json_response(await access.write(_add_feedback, access, form), 201)


def _add_feedback(access: Access, form: Document) -> Document:
    recall_id = checks.name("recall_id", form["recall_id"])
    try:
        feedback = access.brain.feedback(
            recall_id, memory_id=form.get("memory_id"), useful=checks.flag("useful", form.get("useful", True))
        )
    except InputError as error:
        if error.field == "recalled":
            raise HTTPException(404, f"there is no recall {recall_id!r} any more that could be judged") from None
        raise
    return {
        "recall_id": feedback.recall_id,
        "memory_id": feedback.memory_id,
        "useful": feedback.useful,
        "rank": feedback.rank,
        "time": feedback.time,
    }


@router.get("/evaluation", response_model=documents.EvaluationAnswer, summary="Judged questions, and runs of them")
async def evaluation(access: Reader) -> Response:
    """The set holds each question that had a useful hit. Only administrators see the questions."""
    return json_response(await access.read(_evaluation, access))


def _evaluation(access: Access) -> Document:
    questions = feedback_set.question_set(access.brain.store.feedback()).questions
    listed = [{"question": question.text, "relevant": list(question.relevant)} for question in questions]
    return {
        "count": len(questions),
        "questions": listed if access.role >= Role.ADMIN else [],
        "runs": feedback_set.runs(access.brain),
    }


@router.post(
    "/evaluation",
    response_model=documents.EvaluationRunAnswer,
    openapi_extra=body_schema(forms.EvaluationForm),
    summary="Run the judged questions again and store the figures",
)
async def evaluate(
    access: Writer, form: Annotated[Document, Depends(json_body(forms.EvaluationForm, "an evaluation"))]
) -> Response:
    """Uses the given `settings` of recall, or the defaults. Learning from feedback is off in a run, since it would be
    measured on its own training data."""
    given = checks.json_object("settings", form.get("settings") or {})
    return json_response(await access.write(lambda: feedback_set.run(access.brain, given, who=access.member)))


@router.post(
    "/ranking",
    response_model=documents.RankingAnswer,
    openapi_extra=body_schema(forms.RankingForm),
    summary="Rank the first hits of a question by another embedder",
)
async def ranking(
    access: Reader, form: Annotated[Document, Depends(json_body(forms.RankingForm, "a ranking"))]
) -> Response:
    """The first 200 hits are embedded again for this question; nothing is stored."""
    checks.one_of("embedder", form["embedder"], EMBEDDERS)
    return json_response(await access.read(_rank, access, form))


def _rank(access: Access, form: Document) -> Document:
    question, where = checks.text("query", form["query"]), form.get("where")
    hits = access.brain.recall(question, _RANKED, where, touch=False)
    found = [hit.memory for hit in hits if is_visible(access, hit.memory.place)]
    with Brain(":memory:", embedder=form["embedder"]) as other:
        other.remember_many(
            {
                "id": memory.memory_id, "text": memory.text, "agent": memory.agent_id, "type": memory.type,
                "session": memory.session, "actor": memory.actor, "when": memory.timestamp,
                "importance": memory.importance,
            }
            for memory in found
        )  # fmt: skip
        ranked = other.recall(question, _RANKED, touch=False) if found else []
        return {"embedder": other.embedder, "ids": [hit.memory.memory_id for hit in ranked]}
