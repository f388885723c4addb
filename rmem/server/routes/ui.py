"""The dashboard: its files, log-in and log-out. Its data comes from the other routes."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from ... import checks
from ..access import RequestContext
from ..auth import Headers, foreign_page
from ..bodies import fields_of, is_among, parse_json
from ..exchange import json_response
from ..sessions import KEY_HEADER, cookie_name, session_id
from ..tokens import Refused

router = APIRouter(prefix="/ui", include_in_schema=False)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class _File(NamedTuple):
    content: bytes
    kind: str
    tag: str


def _files() -> dict[str, _File]:
    folder, found = Path(__file__).parents[1] / "ui", {}
    for path in folder.iterdir():
        if path.suffix in _KINDS:
            content = path.read_bytes()
            tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
            found[path.name] = _File(content, f"{_KINDS[path.suffix]}; charset=utf-8", tag)
    return found


FILES = _files()


@router.get("")
async def without_slash(request: Request) -> Response:
    """Links of the page are relative, so it must be a folder."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}/ui/", headers=HEADERS)


@router.get("/")
async def page(request: Request) -> Response:
    return await file(request, "index.html")


@router.get("/{name}")
async def file(request: Request, name: str) -> Response:
    found = FILES.get(name)
    if found is None:
        raise HTTPException(404, "the dashboard has no such file")
    headers = {**HEADERS, "ETag": found.tag}
    if is_among(found.tag, request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.kind)


@router.post("/session")
async def log_in(request: Request) -> Response:
    """Open a session with a token, or with the code of a one-time link. The answer is the key of the session; its id is
    in the cookie."""
    headers, service = Headers(request.scope), _context(request).service
    if (foreign := foreign_page("POST", headers)) is not None:
        raise HTTPException(403, foreign)
    body = fields_of(parse_json(await request.body()), "a login", ("token", "code"))
    if "code" in body:
        token = service.sessions.accept(checks.text("code", body["code"]))
        if token is None:
            raise HTTPException(401, "this link was used already or has expired; ask for another one")
    else:
        token = checks.text("token", body.get("token"))
    try:
        await run_in_threadpool(service.tokens.caller, token)
    except Refused as refused:
        raise HTTPException(401, str(refused)) from None
    made = service.sessions.open(token)
    answer = json_response({"key": made.key, "idle_seconds": service.sessions.idle_seconds}, headers=_UNCACHED)
    _set_cookie(request, answer, made.id)
    return answer


@router.delete("/session")
async def log_out(request: Request) -> Response:
    """End the session whose both halves the request has."""
    headers, sessions = Headers(request.scope), _context(request).service.sessions
    id = session_id(headers.get(b"cookie"), headers.get(b"host"))
    if sessions.token_of(id, headers.get(KEY_HEADER)) is not None:
        sessions.close(id)
    answer = json_response({}, headers=_UNCACHED)
    _set_cookie(request, answer, None)
    return answer


_UNCACHED = {**HEADERS, "Cache-Control": "no-store"}


def _set_cookie(request: Request, answer: Response, id: str | None) -> None:
    """Give the browser the id of a session, or take it away."""
    options: dict[str, Any] = {
        "httponly": True,
        "samesite": "strict",
        "secure": request.url.scheme == "https",
        "path": request.scope.get("root_path") or "/",
    }
    name = cookie_name(request.headers.get("host", ""))
    answer.set_cookie(name, id or "", max_age=None if id else 0, **options)


def _context(request: Request) -> RequestContext:
    context: RequestContext = request.scope["context"]
    return context
