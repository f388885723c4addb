"""JsonRouter: a route as one synchronous function, which waits for a store."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, Response

from .access import Access, Role
from .exchange import body_schema, json_body, json_response
from .forms import Form

Work = TypeVar("Work", bound=Callable[..., Any])


class JsonRouter(APIRouter):
    """A router for functions that wait for a store."""

    def json(
        self,
        method: str,
        path: str,
        answer: Any,
        summary: str,
        *,
        form: type[Form] | None = None,
        status: int = 200,
        **more: Any,
    ) -> Callable[[Work], Work]:
        """Register a function that runs in a thread, in the organisation's turn: as a read if it is a GET or the role
        READ is enough for it, else as a write.

        It gets the caller's `access`, the parameters that it names and, with a `form`, the body as `form`. It returns
        a response, or what is sent as JSON; the model `answer` only describes that."""

        def register(work: Work) -> Work:
            parameters = dict(inspect.signature(work, eval_str=True).parameters)
            role: Role = parameters["access"].annotation.__metadata__[0].dependency.role
            is_read = method == "GET" or role == Role.READ
            if form is not None:
                parameters["form"] = parameters["form"].replace(default=Depends(json_body(form)))
                more["openapi_extra"] = body_schema(form)

            async def endpoint(access: Access, **given: Any) -> Response:
                run = access.read if is_read else access.write
                return await run(lambda: _respond(work(access=access, **given), status))

            named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters.values()]
            endpoint.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
            endpoint.__name__, endpoint.__doc__ = work.__name__, work.__doc__
            self.add_api_route(
                path, endpoint, methods=[method], response_model=answer, summary=summary, status_code=status, **more
            )
            return work

        return register


def _respond(told: object, status: int) -> Response:
    return told if isinstance(told, Response) else json_response(told, status)
