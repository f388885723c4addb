"""Show memories and hits: lines in a shell, tables in a notebook, data frames and Arrow tables. The classes in `models`
call these functions; nothing here is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from .errors import ConfigError
from .models import Hit, Memory, shorten

if TYPE_CHECKING:
    import pandas
    import pyarrow

_LINES = 10  # rows in a repr
_HTML_ROWS = 50
_WIDTHS = {"id": 28, "type": 14, "agent": 14}
_TEXT = 60
_COLUMNS = (
    "id", "text", "agent", "type", "session", "actor", "when", "importance", "tags", "metadata", "step", "tier",
    "place", "position",
)  # fmt: skip


def _memory(row: Memory | Hit) -> Memory:
    return row.memory if isinstance(row, Hit) else row


# For shells and notebooks


def lines_of(rows: Sequence[Memory | Hit]) -> str:
    """Format rows as at most 10 numbered lines of about a hundred characters."""
    if not rows:
        return "[]"
    lines = [_line(number, row) for number, row in enumerate(rows[:_LINES], 1)]
    if len(rows) > _LINES:
        lines.append(f"    … and {len(rows) - _LINES:,} more")
    return "\n".join(lines)


def _line(number: int, row: Memory | Hit) -> str:
    memory = _memory(row)
    rated = [f"{rating(row):>6}"] if isinstance(row, Hit) else []
    named = [shorten(_printable(str(getattr(memory, name))), width).ljust(width) for name, width in _WIDTHS.items()]
    return "  ".join([f"{number:2}.", *rated, *named, shorten(_printable(memory.text), _TEXT)])


def rating(hit: Hit) -> str:
    """Format how likely a hit answers the question; its score, if a store estimates no relevance."""
    return f"{hit.score:.2f}" if hit.relevance is None else f"{hit.relevance:.0%}"


def _printable(text: str) -> str:
    """Replace control characters, which could steer a terminal."""
    line = " ".join(text[:1000].split())
    return line if line.isprintable() else repr(line)[1:-1]


def html_of(rows: Sequence[Memory | Hit]) -> str:
    rated = bool(rows) and isinstance(rows[0], Hit)
    names = (*(("relevance",) if rated else ()), "id", "type", "agent", "when", "text")
    body = [_html_row([_html_cell(row, name) for name in names], "td") for row in rows[:_HTML_ROWS]]
    rest = len(rows) - _HTML_ROWS
    more = f"<p>… and {rest:,} more</p>" if rest > 0 else "" if rows else "<p>no rows</p>"
    return f"<table><thead>{_html_row(names, 'th')}</thead><tbody>{''.join(body)}</tbody></table>{more}"


def _html_cell(row: Memory | Hit, name: str) -> str:
    from html import escape

    if name == "relevance":
        return rating(row) if isinstance(row, Hit) else ""
    if name == "when":
        return f"{_memory(row).when:%Y-%m-%d %H:%M}"
    return escape(shorten(str(getattr(_memory(row), name)), 200))


def _html_row(cells: Sequence[str], kind: str) -> str:
    inner = "".join(f"<{kind} style='text-align: left'>{cell}</{kind}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def html_of_hit(hit: Hit) -> str:
    return _html_facts({"relevance": rating(hit), "score": f"{hit.score:.2f}", **_facts(hit.memory)})


def html_of_memory(memory: Memory) -> str:
    return _html_facts(_facts(memory))


def _facts(memory: Memory) -> dict[str, str]:
    """Return every non-empty field."""
    found = record_of(memory)
    for name in ("tags", "metadata"):
        found[name] = json.dumps(found[name], ensure_ascii=False, default=str) if found[name] else None
    found["when"] = f"{memory.when:%Y-%m-%d %H:%M}"
    return {name: str(value) for name, value in found.items() if value is not None}


def _html_facts(facts: Mapping[str, str]) -> str:
    from html import escape

    rows = [f"<th style='text-align: left'>{name}</th><td>{escape(value)}</td>" for name, value in facts.items()]
    return f"<table><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"


# For other libraries


def record_of(row: Memory | Hit) -> dict[str, Any]:
    """Convert a row to a dictionary with the names of `remember`; a hit has its rank, relevance and score first."""
    memory = _memory(row)
    record = {name: getattr(memory, name) for name in _COLUMNS}
    record["when"] = memory.when.astimezone(UTC)
    record["position"] = None if memory.position is None else list(memory.position)
    if not isinstance(row, Hit):
        return record
    return {"rank": row.rank, "relevance": row.relevance, "score": float(row.score), **record}


def frame_of(rows: Sequence[Memory | Hit]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise ConfigError("to_pandas() needs pandas; install it with: pip install 'rmem[pandas]'") from None
    frame = pandas.DataFrame([record_of(row) for row in rows], columns=columns_of(rows))
    return frame.astype({"when": "datetime64[us, UTC]"})


def arrow_of(rows: Sequence[Memory | Hit]) -> pyarrow.Table:
    try:
        import pyarrow
    except ImportError:
        raise ConfigError("to_arrow() needs pyarrow; install it with: pip install 'rmem[parquet]'") from None
    text, number, whole = pyarrow.string(), pyarrow.float64(), pyarrow.int64()
    others = {
        "rank": whole,
        "relevance": number,
        "score": number,
        "when": pyarrow.timestamp("us", tz="UTC"),
        "importance": number,
        "tags": pyarrow.map_(text, text),
        "step": whole,
        "position": pyarrow.list_(number),
    }
    schema = pyarrow.schema([(name, others.get(name, text)) for name in columns_of(rows)])
    return pyarrow.Table.from_pylist([_arrow_row(record_of(row)) for row in rows], schema)


def _arrow_row(record: dict[str, Any]) -> dict[str, Any]:
    written = json.dumps(record["metadata"], ensure_ascii=False, default=str)
    return {**record, "tags": list(record["tags"].items()), "metadata": written}


def columns_of(rows: Sequence[Memory | Hit]) -> list[str]:
    """Return the columns; those of hits even if a recall found nothing."""
    from .models import Hits

    return [*(("rank", "relevance", "score") if isinstance(rows, Hits) else ()), *_COLUMNS]
