"""Completion for PowerShell, which click does not know by itself."""

from __future__ import annotations

import os

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

_SCRIPT = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.ToString()
    $env:COMP_WORDS = $line.Substring(0, [Math]::Min($line.Length, $cursorPosition))
    $env:COMP_WORD = $wordToComplete
    $env:%(complete_var)s = "powershell_complete"
    try {
        %(prog_name)s | ForEach-Object {
            $type, $value, $help = $_ -split "`t", 3
            if ($type -eq "plain") {
                $tip = if ($help) { $help } else { $value }
                [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $tip)
            }
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_WORD, Env:%(complete_var)s -ErrorAction SilentlyContinue
    }
}
"""


@add_completion_class
class PowerShell(ShellComplete):
    """`rmem completion powershell`; paths are left to the shell."""

    name = "powershell"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
        incomplete = os.environ.get("COMP_WORD", "")
        return (words[:-1] if incomplete and words and words[-1] == incomplete else words), incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type}\t{item.value}\t{' '.join((item.help or '').split())}"
