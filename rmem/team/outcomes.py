"""Read from a tool's output whether a command failed, and the line that names its error.

An exit code decides where it is known and belongs to the command: that of `pytest | tail` is tail's, and `grep` returns
1 when it finds nothing. Otherwise the output decides."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from .tool_output import WIDTH, plain

_FILTERS = frozenset("tail head tee cat grep sed awk less more sort uniq cut wc jq column tr".split())
_ASIDES = frozenset("cd echo true : export set source . printf pwd sleep mkdir".split())
# What they print is what they were asked to show: a log full of errors is no failure of `cat`.
_READERS = frozenset(
    "cat head tail sed awk less more grep egrep fgrep rg ag ls find fd wc tree stat file du df sort uniq cut diff cmp "
    "echo printf bat column nl tac strings xxd env printenv which type man test [".split()
)
_GIT_READERS = frozenset("log show diff blame grep status branch tag ls-files reflog shortlog rev-parse config".split())
_ASKING = frozenset("grep egrep fgrep rg ag diff cmp test [ pgrep which".split())  # exit code 1 is an answer
_SEPARATOR = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_PIPE = re.compile(r"(?<!\|)\|(?!\|)&?")
_ASSIGNED = re.compile(r"^(?:[A-Za-z_]\w*=\S*\s+|(?:sudo|time|env|exec|nohup|command)\s+|timeout\s+\S+\s+)+")
_IGNORED_FAILURE = re.compile(r"\|\|\s*(?:true|:|echo\b.*|exit 0)\s*$|;\s*(?:true|:|echo\b[^;&|]*)\s*$")

_NAME = r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Fault|Interrupt|Exit|Warning)"
_RAISED = re.compile(
    rf"^(?:Uncaught |Caused by: |Exception in thread \S+ )?(?:{_NAME}|Error)\b(?: \[\w+\])?(?::|$|\s*\()"
)
_TRACEBACK = re.compile(r"^\s*(?:\| |\+ )?(?:Exception Group )?Traceback \(most recent call last\)")
_MADE = re.compile(r"^make(?:\[\d+\])?: \*\*\* \[")
_RULE = re.compile(r"^([=_!-])\1{3}")
_E_LINE = re.compile(r"^E\s+(?!\+ |-|\?)(\S.*)$")
_E_NAMED = re.compile(rf"^(?:{_NAME}\b|assert\b|Failed\b|[\w.]+: )")
_COMPILER = re.compile(
    r"^(?:\S[^:]*(?::\d+)*:? )?(?:fatal |internal compiler )?error(?:\[\w+\])?:"
    r"|\berror TS\d+:|^\S+:\d+:\d+:? [A-Z]+\d+\b"
    r"|^[A-Z]{1,4}\d{2,4} (?:\[\*\] )?\S|\bundefined reference to\b|^\s+\d+:\d+\s+error\s|^CMake Error\b|panicked at\b"
    r"|: (?:fatal )?error:|^\[(?i:error)\] \S"
)
_TOOL = re.compile(
    r"^(?:npm (?:error|ERR!)|(?i:fatal|error|err!|failed)\b(?!\s*(?:rate|count|s\b))|CONFLICT\b|error:|"
    r"[\w./\[\]-]+: (?:line \d+: |error: |fatal: |\*\*\* |\(\d+\) )*\S.*"
    r"(?:no such|not found|cannot|can't|could ?n[o']t|denied|refused|fail|invalid|unknown|unrecognized|unbound|error|"
    r"no rule|required|unable|missing|expected|exceeded|timed out|unexpected|exist|not a ))",
    re.IGNORECASE,
)
_FAILED_TEST = re.compile(
    r"^(?:FAILED|FAIL|ERROR)[:\s]\s*\S|^--- FAIL|^\s*● |^not ok \d|^\s*(?:✗|✘|×|✖) \S|^test \S+ \.\.\. FAILED"
)
_TELLING = re.compile(
    r"\b(?:errors?|exception|fail(?:ed|ure)?|fatal|panic|denied|refused|undefined|unresolved|not found|no such|cannot|"
    r"can't|could not|couldn't|unable to|"
    r"no (?:\w+ ){0,2}(?:information|found|files?|tests?)|diff in|unterminated|"
    r"timed? ?out|killed|fault|out of memory|conflict|mismatch|invalid|missing|would reformat|"
    r"no tests ran|deselected|nothing to commit|did not|is not)\b",
    re.IGNORECASE,
)
# What follows an error, or only says that there was one.
_WEAK = re.compile(
    r"^(?:> |hint|note|help|warning|info|usage|see also|for more|to see|run |\[notice\]|\[info|node\.js v|caused by:$|"
    r"compilation terminated|as a reminder|oh no|=+ |-+$|_+ |!+ |\s*at |\s*File \"|\s*\^|\s*~)|"
    r"^npm (?:error|ERR!)\s*(?:$|A complete log|code |errno|path|command |To see|Lifecycle|\d+\s*$|  npm )|"
    r"^make(?:\[\d+\])?: \*\*\* \[|^collect2: |^error: (?:could not compile|test failed|aborting|build failed|process)|"
    r"^(?:FAILED|FAIL) \(|^\d+ (?:error|problem|failed|warning)|^Found \d+ |"
    r"^\[ERROR\] *(?:$|To see|Re-run|For more|-> |\[Help)|"
    r"^ERROR \S+$|^error: failed to push",
    re.IGNORECASE,
)  # fmt: skip

_SUMMED_UP = re.compile(
    r"""^=*\ ?.*\b[1-9]\d*\ (?:failed|errors?)\b.*\ in\ [\d.:]+s.*$     # pytest
    |^FAILED\ \(|^Tests?:?\s+[1-9]\d*\ failed|^test\ result:\ FAILED|^\#\ fail\ [1-9]|^not\ ok\ \d|^---\ FAIL|^FAIL\t
    |\([1-9]\d*\ errors?,|^\s*Tests\s+[1-9]\d*\ failed|^Found\ [1-9]\d*\ errors?(?!.*\b0\ remaining)
    |^[1-9]\d*\ errors?(?:\ generated)?\.?$
    |^npm\ (?:error|ERR!)|^\S+:\ \*\*\*\ |^\*\*\*Test\ Failed|^No\ (?:tests?|test\ files)\ found
    """,
    re.MULTILINE | re.VERBOSE,
)
_FAILED = re.compile(
    r"""^(?:fatal|error|Error|ERROR)(?:\[\w+\])?:\ |:\ (?:fatal\ )?error:\ |\berror\ TS\d+:
    |^\S+:\d+:\d+:\ [A-Z]\d+\ |\bwould\ be\ reformatted|^would\ reformat|^Would\ reformat|^\[warn\]\ Code\ style
    |panicked\ at
    |^Exception\ in\ thread|^Node\.js\ v\d+|^CONFLICT\ \(|^Automatic\ merge\ failed|^BUILD\ FAILED|^\[ERROR\]
    |^curl:\ \(\d+\)|^CMake\ Error|undefined\ reference\ to
    |^(?:no\ tests\ ran|=+\ (?:no\ tests\ ran|\d+\ deselected)\ in)
    |\bexit(?:ed\ with)?\ (?:code|status):?\ [1-9]|^Exit\ Code:\ [1-9]|^Segmentation\ fault|\(core\ dumped\)
    |^Cannot\ connect\ to|^(?:[Uu]nable|Could\ not|Couldn't|Failed)\ to?\b|^\w+\ failed$|^syntax\ error|^\*\*\*\ Error
    |^There\ is\ no\ |^Diff\ in\ |^Expecting\ \w+:\ line|^Oops!
    |^[Uu]nknown\ (?:command|option|shorthand|flag)|^(?:jq:\ |[Pp]arse\ |Runtime\ )error\b
    |^E\ \ \ (?:\w+\.)*\w+Error:|^\[error\]\s
    |^(?:[\w./-]+:\ )+(?:line\ \d+:\ )?.*(?:command\ not\ found|not\ found|No\ such\ file\ or\ directory
        |Permission\ denied
        |cannot\ \w+|can't\ open|Connection\ refused|unbound\ variable|syntax\ error|No\ module\ named|unrecognized)
    |:\ Connection\ refused$|^Error\ in\ |^\S+:\ error:
    """,
    re.MULTILINE | re.VERBOSE,
)
_PASSED = re.compile(
    r"^=*\s?(?!.*\b[1-9]\d* (?:failed|errors?)\b).*\b\d+ passed\b.* in [\d.:]+s|^test result: ok|^OK(?: \(|$)|"
    r"^Success: no issues|^All checks passed|^BUILD SUCCESS|^# fail 0$|^All matched files use",
    re.MULTILINE,
)


def has_failed(command: str, output: str, reported: bool | None) -> bool:
    """Return whether a command failed. `reported` is the agent's own verdict; None if it gave none."""
    if reported is None:
        return looks_failed(command, output)
    if reported:
        return _last_program(command) not in _ASKING or looks_failed(command, output)
    return not _has_own_exit_code(command) and looks_failed(command, output)


def looks_failed(command: str, output: str) -> bool:
    """Return whether an output without a known exit code reads like a failure."""
    text = plain(output)
    programs = list(_programs(command))
    if programs and all(words[0] in _READERS or _reads_git(words) for words in programs):
        return _complains(programs, text)
    if "--exit-zero" in command:
        return False  # of ruff, flake8 and pylint: what they find is no failure
    if programs and programs[-1][:2] == ["git", "commit"] and "nothing to commit" in text:
        return True
    if _SUMMED_UP.search(text):
        return True
    if _PASSED.search(text):
        return False
    return bool(_FAILED.search(text)) or _ends_with_error(text) or _complains(programs, text)


def headline(output: str) -> str:
    """Return the line that names the error; empty without output."""
    lines = [line.rstrip() for line in plain(output).splitlines() if line.strip()]
    marked = [found[1] for line in lines if (found := _E_LINE.match(line))]
    strong = [line for line in lines if not _WEAK.match(line)] or lines
    choices = (
        [candidate for candidate in marked if _E_NAMED.match(candidate)][:1],
        marked[:1],
        list(_raised_errors(lines))[-1:],
        [line.lstrip(" |") for line in strong if _RAISED.match(line.lstrip(" |"))][:1],
        [line for line in strong if _COMPILER.search(line)][:1],
        [line for line in strong if _FAILED_TEST.match(line)][:1],
        [line for line in strong if _TOOL.match(line)][:1],
        [line for line in strong if _TELLING.search(line)][:1],
        [before for before, line in pairwise(lines) if _MADE.match(line)][-1:],
        [line for line in lines if _TELLING.search(line)][:1],
        strong[-1:],
    )
    best = next((found[0] for found in choices if found), "")
    after = lines[lines.index(best) + 1].strip() if best in lines[:-1] else ""
    if best.endswith(":") or after.startswith("Cause: "):
        best = f"{best} {after}"  # the place is on one line, the error on the next
    return " ".join(best.split())[:WIDTH]


def _raised_errors(lines: list[str]) -> Iterator[str]:
    """Return the exceptions at the ends of Python tracebacks."""
    inside = False
    for line in lines:
        if _TRACEBACK.match(line):
            inside = True
        elif inside and not line.startswith((" ", "\t", "|", "+")):
            inside = False
            if not _RULE.match(line):
                yield line


def _ends_with_error(text: str) -> bool:
    """Return whether an output ends with an uncaught exception."""
    lines = [line for line in text.splitlines() if line.strip()]
    plain_lines = [line for line in lines if not line.startswith((" ", "\t"))]
    if not plain_lines:
        return False
    if len(plain_lines) > 1 and plain_lines[-2].startswith("Exception ignored"):
        return False
    return bool(_RAISED.match(plain_lines[-1])) or plain_lines[-1] in list(_raised_errors(lines))[-1:]


def _complains(programs: list[list[str]], text: str) -> bool:
    """Return whether a program that only shows things reports an error in its own name."""
    names = "|".join({re.escape(words[0].rpartition("/")[2]) for words in programs})
    pattern = re.compile(
        rf"^(?:(?:(?:ba|z|da)?sh|gzip): (?:line \d+: |\S+: )*|(?:{names}): )"
        r"(?!warning|note|info|\w+ing\b|nothing|.*\bignored$)\S",
        re.IGNORECASE | re.MULTILINE,
    )
    if programs and pattern.search(text):
        return True
    return any(words[0] == "git" for words in programs) and text.lstrip().startswith(("fatal: ", "error: ", "usage: "))


def _programs(command: str) -> Iterator[list[str]]:
    """Return the words of each working command of a line: the first of each pipeline, without `cd` and `echo`."""
    for part in _SEPARATOR.split(command):
        words = _words(_PIPE.split(part)[0])
        if words and words[0] not in _ASIDES:
            yield words


def _last_program(command: str) -> str:
    parts = [part for part in _SEPARATOR.split(command) if part.strip()]
    words = _words(_PIPE.split(parts[-1])[-1]) if parts else []
    if words[:2] in (["git", "diff"], ["git", "grep"]):
        return "diff"
    condition = _words(_PIPE.split(parts[-2])[-1]) if len(parts) > 1 else []  # `test -f x && cat x`
    return condition[0] if condition and condition[0] in ("test", "[") else words[0] if words else ""


def _words(part: str) -> list[str]:
    command = _ASSIGNED.sub("", part.strip().lstrip("({ "))
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _reads_git(words: list[str]) -> bool:
    return words[0] == "git" and next((word for word in words[1:] if word[0] != "-"), "") in _GIT_READERS


def _has_own_exit_code(command: str) -> bool:
    """Return whether the exit code of a command line is that of the command that does the work."""
    if _IGNORED_FAILURE.search(command):
        return False
    parts = [part for part in _SEPARATOR.split(command) if part.strip()]
    piped = [_words(stage) for stage in _PIPE.split(parts[-1])[1:]] if parts else []
    return "pipefail" in command or not any(words and words[0] in _FILTERS for words in piped)
