"""How a run ends: the exit code of each error, and its message in one line (or as JSON)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, TextIO

import click

from ..errors import (
    ConfigError,
    EmbedderError,
    InputError,
    NoSuchTableError,
    NotFoundError,
    RemanenceError,
    RemoteError,
    ServerError,
    StoreError,
    TableError,
)
from ..extras import explain

TRACEBACK = "RMEM_TRACEBACK"

OK, UNEXPECTED, USAGE, NOT_FOUND, STORE, EMBEDDER, PROBLEMS, STOPPED, PIPE_CLOSED = 0, 1, 2, 3, 4, 5, 6, 130, 141

TABLE = f"""\
  {OK}    done (recall that finds nothing is also {OK})
  {UNEXPECTED}    unexpected error ({TRACEBACK}=1 shows where)
  {USAGE}    wrong usage or bad input
  {NOT_FOUND}    no memory with that id, no such table
  {STORE}    the store cannot do it: missing, locked, full, read-only, damaged, too new, or without its key
  {EMBEDDER}    the embedder cannot load or answer, or is not the store's
  {PROBLEMS}    doctor or plugins found problems
  {STOPPED}  stopped by you: Ctrl-C, or "no" to a question
  {PIPE_CLOSED}  the reader of the output went away"""

_CODES: tuple[tuple[type[RemanenceError], int], ...] = (
    (InputError, USAGE),
    (ConfigError, USAGE),
    (NotFoundError, NOT_FOUND),
    (NoSuchTableError, NOT_FOUND),
    (RemoteError, STORE),
    (TableError, USAGE),
    (StoreError, STORE),
    (EmbedderError, EMBEDDER),
)


def run_to_exit_code(run: Callable[[], int], arguments: Sequence[str]) -> int:
    """Run, report an error, and return the exit code."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in own  # known even if the arguments cannot be parsed
    try:
        try:
            code = _code_of(run)
            sys.stdout.flush()
        except (KeyboardInterrupt, EOFError, click.Abort) as stop:
            report_stopped(stop, as_json)
            code = STOPPED
        except click.ClickException as error:
            report_usage(error, as_json)
            code = USAGE
        except RemanenceError as error:
            report_error(error, as_json)
            code = next((code for kind, code in _CODES if isinstance(error, kind)), UNEXPECTED)
    except BrokenPipeError:
        _discard_output()
        code = PIPE_CLOSED
    except Exception as error:
        known = explain(error) if isinstance(error, ModuleNotFoundError) else None
        if known is not None:
            report_error(ConfigError(known), as_json)
            return USAGE
        report_unexpected(error, as_json)
        code = UNEXPECTED
    return code


def _code_of(run: Callable[[], int]) -> int:
    try:
        return run()
    except click.exceptions.Exit as ended:
        return ended.exit_code


def report_error(error: RemanenceError, as_json: bool) -> None:
    message = str(error)
    if isinstance(error, ServerError) and error.status == HTTPStatus.NOT_IMPLEMENTED:
        message = "this is not offered by a server; run it on its own machine, where the store is"
    _report(type(error).__name__, message, getattr(error, "field", None), as_json)


def report_usage(error: click.ClickException, as_json: bool) -> None:
    message = error.format_message()
    parameter = getattr(error, "param", None)
    if not as_json and isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        message = f"{message} Try '{error.ctx.command_path} --help'."
    _report(type(error).__name__, message, getattr(parameter, "name", None), as_json)


def report_stopped(stop: BaseException, as_json: bool) -> None:
    """Report an interruption, and how to resume if that is possible."""
    advice = getattr(stop, "advice", None)
    if advice and as_json:
        _report("Stopped", advice, None, as_json)
    elif advice:
        click.echo(f"Stopped. {advice}", err=True)


def report_unexpected(error: Exception, as_json: bool) -> None:
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exc()
    message = f"unexpected {type(error).__name__}: {error}"
    if not as_json:
        message += f" (set {TRACEBACK}=1 to see where, and please report it)"
    _report(type(error).__name__, message, None, as_json)


def _report(kind: str, message: str, field: str | None, as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {"error": {"type": kind, "message": message, "field": field}}
        click.echo(json.dumps(document, ensure_ascii=False), err=True)
        return
    coloured = in_colour(sys.stderr)
    label = click.style("Error:", fg="red", bold=True) if coloured else "Error:"
    click.echo(f"{label} {' '.join(message.split())}", err=True, color=coloured)


def in_colour(stream: TextIO) -> bool:
    """Whether to write in colours: on a terminal, or with FORCE_COLOR; never with NO_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    return is_forced() or (stream.isatty() and os.environ.get("TERM") != "dumb")


def is_forced() -> bool:
    """Whether FORCE_COLOR requests terminal output in a pipe."""
    return os.environ.get("FORCE_COLOR", "") not in ("", "0")


def _discard_output() -> None:
    """Redirect stdout to the null device, so that the interpreter's last flush does not fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stdout that is not a file needs no flush
        pass
