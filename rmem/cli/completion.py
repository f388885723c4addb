"""`rmem completion`: print the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import powershell  # noqa: F401  makes itself known to click
from .app import COMPLETE_VARIABLE, rmem
from .cli_context import CliContext
from .options import command_options


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
@command_options
def completion(cli: CliContext, shell: str) -> None:
    """Print the completion script of your shell.

    \b
    Examples:
      echo 'eval "$(rmem completion bash)"' >> ~/.bashrc
      echo 'eval "$(rmem completion zsh)"' >> ~/.zshrc
      rmem completion fish > ~/.config/fish/completions/rmem.fish
      rmem completion powershell >> $PROFILE
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows three, powershell the fourth"
    script = kind(rmem, {}, "rmem", COMPLETE_VARIABLE).source()
    cli.answer({"shell": shell, "script": script}, script)
