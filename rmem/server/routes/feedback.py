"""Feedback on recalls, and evaluation of recall on the questions that got feedback."""

from __future__ import annotations

from fastapi import HTTPException

from ... import checks
from ...brain import Brain
from ...errors import InputError
from ...evaluate import feedback_set
from .. import documents, forms
from ..access import Reader, Role, Writer
from ..bodies import Document
from ..json_router import JsonRouter
from ..ownership import is_visible
from .answers import RUNNING

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["feedback"], responses=RUNNING)
EMBEDDERS = ("static", "minilm")
"""Embedders that run locally."""
_RANKED = 200


@router.json(
    "POST",
    "/feedback",
    documents.FeedbackAnswer,
    "Say whether a hit of a recall was useful",
    form=forms.FeedbackForm,
    status=201,
)
def feedback(access: Writer, form: Document) -> Document:
    """Accepts feedback on the last recalls of the workspace since the server was started."""
    recall_id = checks.name("recall_id", form["recall_id"])
    try:
        kept = access.brain.feedback(
            recall_id, memory_id=form.get("memory_id"), useful=checks.flag("useful", form.get("useful", True))
        )
    except InputError as error:
        if error.field == "recalled":
            raise HTTPException(404, f"there is no recall {recall_id!r} any more that could be judged") from None
        raise
    return {name: getattr(kept, name) for name in documents.FeedbackAnswer.model_fields}


@router.json("GET", "/evaluation", documents.EvaluationAnswer, "Judged questions, and runs of them")
def evaluation(access: Reader) -> Document:
    """The set holds each question that had a useful hit. Only administrators see the questions."""
    questions = feedback_set.question_set(access.brain.store.feedback()).questions
    listed = [{"question": question.text, "relevant": list(question.relevant)} for question in questions]
    return {
        "count": len(questions),
        "questions": listed if access.role >= Role.ADMIN else [],
        "runs": feedback_set.runs(access.brain),
    }


@router.json(
    "POST",
    "/evaluation",
    documents.EvaluationRunAnswer,
    "Run the judged questions again and store the figures",
    form=forms.EvaluationForm,
)
def evaluate(access: Writer, form: Document) -> Document:
    """Uses the given `settings` of recall, or the defaults. Learning from feedback is off in a run, since it would be
    measured on its own training data."""
    given = checks.json_object("settings", form.get("settings") or {})
    return feedback_set.run(access.brain, given, who=access.member)


@router.json(
    "POST",
    "/ranking",
    documents.RankingAnswer,
    "Rank the first hits of a question by another embedder",
    form=forms.RankingForm,
)
def ranking(access: Reader, form: Document) -> Document:
    """The first 200 hits are embedded again for this question; nothing is stored."""
    checks.one_of("embedder", form["embedder"], EMBEDDERS)
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
