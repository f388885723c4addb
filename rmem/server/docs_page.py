"""`/docs`: the OpenAPI document as one plain page, without scripts and without requests to other hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_METHODS = ("get", "put", "post", "patch", "delete")
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
details { border-top: 1px solid #8884; padding: .4em 0; }
summary { cursor: pointer; }
b { display: inline-block; width: 4.5em; }
pre { overflow-x: auto; background: #8881; padding: .7em; font-size: 13px; }
table { border-collapse: collapse; }
td { padding: .1em 1em .1em 0; vertical-align: top; }
"""


def docs_page(app: FastAPI) -> HTMLResponse:
    """Build the page of all routes."""
    document = app.openapi()
    body = "".join(_page(document))
    return HTMLResponse(body, headers={"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"})


def _page(document: dict[str, Any]) -> Iterator[str]:
    info = document["info"]
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}</title>'
    yield f"<style>{_STYLE}</style><h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield f"<p>{escape(info.get('summary', ''))} For programs: <a href='openapi.json'>openapi.json</a>.</p>"
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if method in operations:
                text = "".join(_operation(document, method, path, operations[method]))
                groups.setdefault(operations[method].get("tags", ["other"])[0], []).append(text)
    for name, several in groups.items():
        yield f"<h2>{escape(name)}</h2>{''.join(several)}"
    yield "</html>"


def _operation(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    summary = escape(operation.get("summary", ""))
    yield f"<details><summary><b>{method.upper()}</b><code>{escape(path)}</code> {summary}</summary>"
    yield f"<p>{escape(operation.get('description', ''))}</p>"
    if parameters := operation.get("parameters"):
        yield "<h4>Parameters</h4><table>"
        for parameter in parameters:
            needed = "needed" if parameter.get("required") else ""
            text = escape(parameter.get("description", ""))
            yield f"<tr><td><code>{escape(parameter['name'])}</code><td>{escape(parameter['in'])}<td>{needed}<td>{text}"
        yield "</table>"
    yield from _contents(document, "Body", operation.get("requestBody", {}))
    for status, answer in operation["responses"].items():
        yield from _contents(document, f"{status}: {answer.get('description', '')}", answer)
    yield "</details>"


def _contents(document: dict[str, Any], title: str, described: dict[str, Any]) -> Iterator[str]:
    if title != "Body" or described:
        yield f"<h4>{escape(title)}</h4>"
    for kind, content in described.get("content", {}).items():
        schema = _resolve(document, content.get("schema", {}), frozenset())
        shown = f"<pre>{escape(json.dumps(schema, indent=1, ensure_ascii=False))}</pre>" if schema else ""
        yield f"<code>{escape(kind)}</code>{shown}"


def _resolve(document: dict[str, Any], schema: Any, inside: frozenset[str]) -> Any:
    """Replace the references of a schema; a reference to itself stays a name."""
    if isinstance(schema, list):
        return [_resolve(document, item, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        known = document.get("components", {}).get("schemas", {}).get(name)
        return name if known is None or name in inside else _resolve(document, known, inside | {name})
    return {key: _resolve(document, value, inside) for key, value in schema.items() if key != "title"}
