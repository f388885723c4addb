"""What callers say of recalls."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Response

from ... import checks
from ...errors import InputError
from .. import documents, forms
from ..access import Access, Role, allowed
from ..bodies import Document
from ..exchange import body_schema, json_body, json_response
from .answers import RUNNING

router = APIRouter(prefix="/workspaces/{workspace}", tags=["feedback"], responses=RUNNING)


@router.post(
    "/feedback",
    status_code=201,
    response_model=documents.FeedbackAnswer,
    openapi_extra=body_schema(forms.FeedbackForm),
    summary="Say whether a hit of a recall was useful",
)
async def feedback(
    access: Annotated[Access, Depends(allowed(Role.WRITE))],
    form: Annotated[Document, Depends(json_body(forms.FeedbackForm, "feedback"))],
) -> Response:
    """A recall can be judged as long as it is one of the last of its workspace since the server was started."""
    return json_response(await access.write(_judged, access, form), 201)


def _judged(access: Access, form: Document) -> Document:
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
