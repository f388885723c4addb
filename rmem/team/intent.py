"""Classify a prompt by its words. Reports of trouble and questions about how things are done profit from past
experience; orders for something new, and remarks about the code at hand, rarely do."""

from __future__ import annotations

import re

from .outcomes import headline

_POLITE = r"^\W*(?:(?:please|can you|could you|now|then|let's|i want(?: you)? to|i need|we need|help me)\b[\s,:]*)*"
_ORDER = re.compile(
    _POLITE + r"(?:add|write|implement|create|build|generate|export|design|draft|let|make|port|migrate|convert|rename|"
    r"explain|summari[sz]e|split|shorten|open|run|move|refactor|extract|inline|commit|push|format|show|list|print|"
    r"delete|translate|set up|install|start|support|decode|serve|connect|schedule|introduce|provide|extend)\b",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"\b(?:fix|bugs?|errors?|fail\w*|wrong\w*|broken?|breaks?|crash\w*|hang\w*|freez\w*|regress\w*|no longer|any ?more|"
    r"leak\w*|lost|loses?|ignored?|unexpected\w*|does ?n[o']t|didn't|can ?not|can't|won't|panick?\w*|exception|"
    r"traceback|stuck|corrupt\w*|nonsense|duplicat\w*|slow|not work\w*|raises|twice)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\?|^\W*(?:how|why|which|what|where|when|is|are|do|does|did|can|should|who|whose)\b", re.IGNORECASE)
_AT_HAND = re.compile(
    r"\b(?:my|mine|this (?:function|file|code|diff|decorator|snippet|script|handler|test|class|method|docstring|"
    r"branch)|i just|above|under the cursor|our (?:own|company|internal))\b",
    re.IGNORECASE,
)
_OUTPUT = re.compile(
    r"^Traceback \(most recent|^\s*File \"|\b[A-Z]\w*(?:Error|Exception)\b: |panicked at|^\S+: (?:fatal )?error: ",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[.?!])\s|\n")


def orders_new_work(prompt: str) -> bool:
    """Return whether a prompt orders something new ("add a spinner") and reports no trouble."""
    return bool(_ORDER.search(prompt)) and not _TROUBLE.search(prompt)


def is_question(prompt: str) -> bool:
    """Return whether a prompt is a question: "why …", "which …", or any question mark."""
    return bool(_ASKS.search(prompt))


def is_about_code_at_hand(prompt: str) -> bool:
    """Return whether a prompt is about the code before its author: "this function", "my script"."""
    return bool(_AT_HAND.search(prompt))


def gist(text: str) -> str:
    """Return the line that says what a text is about: the error of an output, the first sentence of a prompt."""
    if _OUTPUT.search(text):
        return headline(text)
    return next((part for part in _SENTENCE.split(text.strip()) if part.strip()), "")
