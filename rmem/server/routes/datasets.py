"""Tables for the public `deeplake` package: credentials of a table's dataset, and its object storage. These routes
implement that package's protocol and the part of S3's that it uses; they are not in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from fastapi import APIRouter, HTTPException, Query, Request, Response

from ...errors import RemanenceError
from ..access import Access, Reader, Role, admitted
from ..datasets import Copy
from ..problems import status_of

STORAGE = "/dataset-storage"
router = APIRouter(include_in_schema=False)
_PLAIN_ERRORS = {404: "NoSuchKey", 412: "PreconditionFailed", 403: "AccessDenied", 507: "QuotaExceeded"}


@router.get("/api/org/{workspace}/ds/{table}/creds")
async def credentials(
    request: Request,
    table: str,
    access: Reader,
    mode: Annotated[str | None, Query()] = None,
) -> dict[str, object]:
    """Where the dataset of a table lies. The token of the storage is the caller's own."""
    writable = mode != "r" and access.role >= Role.WRITE
    copy = await access.write(partial(access.service.datasets.open, access, table, writable=writable))
    token = request.headers.get("authorization", "").partition(" ")[2].strip() or "none"
    return {
        "path": f"s3:/{STORAGE}/{copy.id}",
        "repo_type": "s3",
        "mode": "a" if writable else "r",
        "creds": {
            "aws_access_key_id": copy.id,
            "aws_secret_access_key": "unused",
            "aws_session_token": token,
            "aws_region": "us-east-1",
            "endpoint_url": str(request.base_url).rstrip("/"),
        },
    }


@router.get(STORAGE)
async def listing(request: Request) -> Response:
    """The objects whose names start with a prefix."""
    prefix = parse_qs(request.url.query).get("prefix", [""])[0]
    id, _, rest = prefix.partition("/")
    try:
        access, copy = await _copy(request, id, Role.READ)
        return Response("".join(await access.read(lambda: list(_listed(copy, rest)))), media_type="application/xml")
    except (HTTPException, RemanenceError) as error:
        return _refused(error)


@router.api_route(STORAGE + "/{id}/{key:path}", methods=["GET", "HEAD", "PUT", "DELETE"])
async def storage(request: Request, id: str, key: str) -> Response:
    """One object."""
    changing = request.method in ("PUT", "DELETE")
    try:
        access, copy = await _copy(request, id, Role.WRITE if changing else Role.READ)
        if not changing:
            return await access.read(_object, copy, key, request)
        if not copy.writable:
            raise HTTPException(403, "the table was opened for reading")
        if request.method == "DELETE":
            copy.path(key).unlink(missing_ok=True)
            return Response(status_code=204)
        body = await request.body()
        return Response(headers={"ETag": await access.write(_put, access, copy, key, request, body)})
    except (HTTPException, RemanenceError) as error:
        return _refused(error)


async def _copy(request: Request, id: str, role: Role) -> tuple[Access, Copy]:
    context = request.scope["context"]
    service, caller = context.service, context.caller
    name = service.datasets.workspace_of(caller.org, id)
    if name is None:
        raise HTTPException(404, "there is no such open dataset; open the table again")
    access = await admitted(context, name, role)
    return access, service.datasets.find(access, id)


def _object(copy: Copy, key: str, request: Request) -> Response:
    path = copy.path(key)
    if not path.is_file():
        raise HTTPException(404, "there is no such object")
    whole = path.read_bytes()
    headers = {"ETag": _tag(whole), "Accept-Ranges": "bytes", "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"}
    wanted_range = request.headers.get("range", "")
    if not wanted_range.startswith("bytes=") or not whole:
        return Response(whole, headers=headers, media_type="binary/octet-stream")
    first, _, last = wanted_range[6:].partition("-")
    try:
        start = int(first) if first else max(0, len(whole) - int(last))
        end = min(int(last), len(whole) - 1) if first and last else len(whole) - 1
    except ValueError:
        raise HTTPException(400, "Range must be bytes=FIRST-LAST") from None
    if start > end:
        raise HTTPException(416, "Range is behind the end of the object")
    headers["Content-Range"] = f"bytes {start}-{end}/{len(whole)}"
    return Response(whole[start : end + 1], 206, headers, media_type="binary/octet-stream")


def _put(access: Access, copy: Copy, key: str, request: Request, body: bytes) -> str:
    """Keep an object; its tag."""
    _check_condition(copy.path(key), request)
    access.service.datasets.put(access, copy, key, body)
    return _tag(body)


def _check_condition(path: Path, request: Request) -> None:
    """Refuse to replace an object that is no longer the one that the caller knows."""
    wanted, unwanted = request.headers.get("if-match"), request.headers.get("if-none-match")
    there = path.read_bytes() if path.is_file() else None
    if (unwanted == "*" and there is not None) or (wanted is not None and (there is None or _tag(there) != wanted)):
        raise HTTPException(412, "the object is another one by now")


def _listed(copy: Copy, prefix: str) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>false</IsTruncated>'
    for path in sorted(copy.folder.rglob("*")):
        key = path.relative_to(copy.folder).as_posix()
        if key.startswith(prefix) and path.is_file() and path.suffix != ".draft":
            yield f"<Contents><Key>{escape(f'{copy.id}/{key}')}</Key><Size>{path.stat().st_size}</Size>"
            yield f"<ETag>{escape(_tag(path.read_bytes()))}</ETag>"
            yield "<LastModified>1970-01-01T00:00:00Z</LastModified></Contents>"
    yield "</ListBucketResult>"


def _tag(content: bytes) -> str:
    return f'"{md5(content, usedforsecurity=False).hexdigest()}"'


def _refused(error: HTTPException | RemanenceError) -> Response:
    """An error in the words of the storage's protocol."""
    status, message = (
        (error.status_code, error.detail) if isinstance(error, HTTPException) else (status_of(error), str(error))
    )
    if status >= 500 and not isinstance(error, HTTPException):
        message = "the store does not answer; try again"
    code = _PLAIN_ERRORS.get(status, "InvalidRequest")
    body = f"<Error><Code>{code}</Code><Message>{escape(str(message))}</Message></Error>"
    return Response(body, status, media_type="application/xml")
