"""Write memories and hits as CSV and TSV to standard output."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from io import StringIO
from typing import Any

import click

from ..display import columns_of, record_of
from ..models import Hit, Memory


def write_table(rows: Sequence[Memory | Hit], delimiter: str) -> None:
    """Write the names of the columns, then a line per row."""
    held = StringIO(newline="")
    writer = csv.writer(held, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns_of(rows))
    writer.writerows([_cell(value) for value in record_of(row).values()] for row in rows)
    click.echo(held.getvalue(), nl=False, color=True)  # or click removes escapes from the texts


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value.isoformat() if hasattr(value, "isoformat") else value
