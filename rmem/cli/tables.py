"""`rmem sql`: statements on the tables of a store or a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .cli_context import CliContext
from .options import check_one_format, command_options, text_of, value_of, values
from .output import one_line

if TYPE_CHECKING:
    from ..tables.client import Client
    from ..tables.streams import QueryRows


@click.command()
@click.argument("statement", required=False, metavar="[STATEMENT|-]")
@click.option(
    "--file", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read it from a file."
)
@click.option("-p", "--param", "params", multiple=True, metavar="VALUE", help="The value of $1, $2 …; repeat in order.")
@click.option("--set", "named", multiple=True, metavar="NAME=VALUE", help="The value of :name; repeatable.")
@click.option("--csv", "form", flag_value="csv", help="Print comma-separated values.")
@click.option("--tsv", "form", flag_value="tsv", help="Print tab-separated values.")
@click.option("--workspace", metavar="NAME", help="The workspace. Default: $RMEM_WORKSPACE, or default.")
@command_options
def sql(
    cli: CliContext,
    statement: str | None,
    file: Path | None,
    params: tuple[str, ...],
    named: tuple[str, ...],
    form: str | None,
    workspace: str | None,
) -> None:
    """Run SQL on tables; `-`, or nothing with a pipe, reads standard input.

    The tables are those of --store (a file, postgresql://… or http://…, where the token is $RMEM_API_KEY), or where
    $RMEM_API_URL points. Values are read as JSON where they are JSON. Several statements, each ended by `;`, run one
    after the other, each written before the next begins; --json, --csv and --tsv print the answer of the last.

    \b
    Examples:
      rmem sql "SELECT id, task FROM debug_memory ORDER BY id"
      rmem sql 'SELECT task FROM debug_memory WHERE task <#> $1 > 0' -p "out of memory" --csv
      rmem sql "SELECT count(*) FROM runs WHERE day = :day" --set day=2026-05-01 --json
      rmem sql --file schema.sql
      rmem sql --store https://memory.example.org --workspace team "SELECT * FROM runs" --tsv
    """
    check_one_format(cli.json, form)
    if params and named:
        raise InputError("--param is for $1 and --set for :name; give one of them", field="param")
    statements = _statements(statement, file)
    values_ = [value_of(text) for text in params] or values("--set", named) or None
    if values_ and len(statements) > 1:
        raise InputError(f"parameters go with one statement, got {len(statements)}", field="param")
    with client_of(cli, workspace) as client:
        for each in statements[:-1]:
            rows = client.query(each)
            if not cli.json and form is None:
                _print(cli, each, rows)
        if form is not None:
            for text in client.csv(statements[-1], values_, delimiter="," if form == "csv" else "\t"):
                click.echo(text, nl=False, color=True)  # or click removes escapes from the texts
            return
        rows = client.query(statements[-1], values_)
    if cli.json:
        cli.document(_document(rows))
    else:
        _print(cli, statements[-1], rows)


def _statements(given: str | None, file: Path | None) -> list[str]:
    from ..tables.sql.parse import split

    if file is not None and given is not None:
        raise InputError("give a statement or --file, not both", field="file")
    if file is None and given is None and sys.stdin.isatty():
        raise InputError("give a statement, --file FILE, or - and a statement on standard input", field="statement")
    try:
        text = text_of((given or "-",)) if file is None else file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file} must be UTF-8 text", field="file") from None
    return split(text)


def client_of(cli: CliContext, workspace: str | None) -> Client:
    from ..tables.client import Client

    if cli.store is None:
        return Client(workspace_id=workspace)
    if cli.store.startswith(("http://", "https://")):
        return Client(api_url=cli.store, workspace_id=workspace)
    return Client(path=cli.store, workspace_id=workspace)


def _document(rows: QueryRows) -> dict[str, Any]:
    from ..tables.wire_values import to_json

    found = [{name: to_json(value) for name, value in row.items()} for row in rows]
    return {"columns": list(rows.columns), "rows": found, "row_count": rows.row_count}


def _print(cli: CliContext, statement: str, rows: QueryRows) -> None:
    from ..tables.sql.parse import DEFINITIONS, kind_of, parse

    if not rows.columns and not rows.row_count and (kind := kind_of(parse(statement).tree)).startswith(DEFINITIONS):
        cli.note(f"{kind} done")
        return
    if not rows.columns:
        cli.note(f"{rows.row_count:,} {'row' if rows.row_count == 1 else 'rows'} written")
        return
    lines = [[_cell(row[name]) for name in rows.columns] for row in rows]
    right = [at for at, name in enumerate(rows.columns) if rows and all(_is_number(row[name]) for row in rows)]
    cli.table(rows.columns, lines, right=right)
    cli.note(f"({len(rows):,} {'row' if len(rows) == 1 else 'rows'})")


def _cell(value: Any) -> str:
    from ..tables.wire_values import to_json

    if value is None:
        return ""
    plain = to_json(value)
    return one_line(plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False))


def _is_number(value: Any) -> bool:
    from decimal import Decimal

    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))
