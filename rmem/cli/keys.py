"""`rmem keys`: the master key and the data keys of an encrypted store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from .cli_context import CliContext
from .options import command_group, command_options
from .output import moment
from .progress import progress


@command_group
def keys() -> None:
    """Make, list and rotate the keys of encrypted memories.

    A store encrypts what is written while RMEM_MASTER_KEY (or RMEM_MASTER_KEY_FILE) is set. The master key
    opens the data keys, which lie in the store; the data keys open the memories. Lose the master key, and what is
    encrypted is lost.

    \b
    Examples:
      (umask 077; rmem keys new > master.key)
      export RMEM_MASTER_KEY_FILE=master.key
      rmem remember "The safe is behind the painting"
      rmem keys list --json
    """


@keys.command()
@command_options
def new(cli: CliContext) -> None:
    """Print a fresh master key: 32 random bytes as base64. It is stored nowhere.

    \b
    Examples:
      (umask 077; rmem keys new > master.key)
      export RMEM_MASTER_KEY="$(rmem keys new)"
    """
    from ..crypto.encryption import new_master_key

    key = new_master_key()
    cli.answer({"master_key": key}, key)


@keys.command("list")
@command_options
def list_(cli: CliContext) -> None:
    """List the data keys of the store: kind, version, when they were made, how many memories use them, the fingerprint
    of their master key, and whether the present master key opens them. Keys themselves are never shown.

    \b
    Examples:
      rmem keys list
      rmem keys list --json | jq '.keys[] | select(.opens | not)'
    """
    from ..admin import data_keys

    found = data_keys(cli.address)
    if cli.json:
        cli.document({"keys": found})
        return
    if not found:
        cli.note("this store has no keys: nothing in it is encrypted")
        return
    columns = ("KIND", "VERSION", "MADE", "MEMORIES", "MASTER", "OPENS")
    rows = [
        (
            key["kind"],
            str(key["version"]),
            moment(key["created"]),
            f"{key['memories']:,}",
            key["master"],
            _opens_text(key),
        )
        for key in found
    ]
    cli.table(columns, rows, right=(1, 3))


def _opens_text(key: dict[str, Any]) -> str:
    return {True: "yes", False: "no", None: "no key given"}[key["opens"]]


@keys.command()
@click.option("--master-env", metavar="NAME", help="The environment variable that holds the new master key.")
@click.option("--master-file", metavar="PATH", help="The file that holds the new master key.")
@click.option("--data", is_flag=True, help="Make new data keys as well, and encrypt every encrypted memory again.")
@command_options
def rotate(cli: CliContext, master_env: str | None, master_file: str | None, data: bool) -> None:
    """Change the master key, or the data keys with --data, or both. Others may use the store meanwhile.

    A new master key takes a moment: only the data keys are wrapped again. The present one is read from
    RMEM_MASTER_KEY or RMEM_MASTER_KEY_FILE. From then on only the new one opens the store; running processes
    that were given a key file or a function ask it again by themselves.

    --data encrypts memories in small transactions; old and new keys both work until the last one is done. If it is
    interrupted, even killed, the same command goes on where it stopped.

    \b
    Examples:
      NEW_KEY="$(rmem keys new)" rmem keys rotate --master-env NEW_KEY
      rmem keys rotate --master-file new-master.key --data
      rmem keys rotate --data
    """
    from ..admin import rotate_keys
    from ..crypto.encryption import Encryption, master_from

    if master_env is not None and master_file is not None:
        raise InputError("give the new master key by --master-env or by --master-file, not by both", field="master_env")
    if master_env is None and master_file is None and not data:
        raise InputError("say what to rotate: --master-env NAME, --master-file PATH, or --data", field="data")
    new_master: Encryption | None = None
    if master_env is not None:
        master = master_from(master_env)
        if master is None:
            raise InputError(f"the environment variable {master_env} is not set", field="master_env")
        new_master = Encryption(master=master)
    elif master_file is not None:
        new_master = Encryption(master=Path(master_file))
    with progress("Encrypting") as bar:
        done = rotate_keys(cli.address, new_master, data=data, on_progress=bar)
    if cli.json:
        cli.document(done)
        return
    if new_master is not None:
        click.echo(f"{done['rewrapped']:,} data keys are now opened by the new master key only")
    if data:
        click.echo(f"Encrypted {done['memories']:,} memories with data keys of version {done['version']}")
        if done["unreadable"]:
            cli.note(f"{done['unreadable']:,} memories do not open and keep their old keys; see `rmem doctor`")
