"""`rmem ui`: the dashboard on one's own store, in the browser."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import tempfile
import webbrowser
from html import escape
from pathlib import Path

import click

from ..errors import ConfigError
from ..extras import require
from ..private_files import make_file
from .cli_context import CliContext
from .options import command_options
from .output import visible

_HOST = "127.0.0.1"
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>rmem</title>'


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: one that is free.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@command_options
def ui(cli: CliContext, port: int, no_browser: bool) -> None:
    """See the memory in the browser: search it and see why a memory was found or not, read, edit and forget memories,
    look at them over time, at the graph of their facts, at tables, and at the state of the store.

    It serves your store on this machine alone until you press Ctrl-C. The link logs in once, within two minutes, and
    after that is worth nothing; start the command again for another one. Nothing is fetched from elsewhere. On a store
    that is empty, the page says how to fill it. `rmem serve` has the same pages for a team, at /ui/.

    \b
    Examples:
      rmem ui
      rmem ui --store team.db
      rmem ui --no-browser --port 9000     # over SSH: ssh -L 9000:127.0.0.1:9000 host, then open the link
    """
    require("server", "rmem ui")
    if cli.is_remote:
        address = cli.address.rstrip("/")
        raise ConfigError(f"this store is a server, which has the same pages: open {address}/ui/ and log in there")
    cli.brain().close()  # reports a problem of the store before a browser opens
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the folder is removed
    with tempfile.TemporaryDirectory(prefix="rmem-ui-") as name, socket.create_server((_HOST, port)) as listening:
        folder, code = Path(name), secrets.token_urlsafe(32)
        link = f"http://{_HOST}:{listening.getsockname()[1]}/ui/#login={code}"
        cli.answer({"url": link, "store": cli.address}, link)
        cli.note(f"Showing {visible(cli.address)} until you press Ctrl-C. The link works once, for two minutes.")
        if not no_browser and not webbrowser.open(_redirecting_file(folder, link).as_uri()):
            cli.note("No browser was found here; open the link yourself.")

        from ..server.own_store import own_settings, serve_own  # takes seconds; a browser waits for the socket

        serve_own(own_settings(cli.address, folder / "server"), listening, code)


def _redirecting_file(folder: Path, link: str) -> Path:
    """Write a page readable only by the user that redirects to a link: arguments of a command are visible to all
    users."""
    path = folder / "open.html"
    make_file(path)
    path.write_text(_REDIRECT.format(escape(link)), encoding="utf-8")
    return path
