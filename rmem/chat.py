"""ChatModel: call a language model by the OpenAI `POST {base_url}/chat/completions` protocol.

Nothing in Remanence needs one; a user names it: `chat:MODEL@URL`."""

from __future__ import annotations

import os
import re
from typing import Any

from . import checks
from .embed.endpoint import Endpoint
from .errors import ConfigError, RemanenceError

KEY_VARIABLE = "RMEM_CHAT_API_KEY"


class ChatModel:
    """A model and the address of its server. The key comes from RMEM_CHAT_API_KEY (or the provider's own variable) when
    it is needed, and is kept nowhere. Failures are raised as `error`."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        what: str,
        error: type[RemanenceError],
        timeout: float = 60.0,
        retries: int = 2,
        longest_wait: float = 30.0,
    ) -> None:
        self.model = checks.name("model", model)
        checks.number("timeout", timeout, low=0.001)
        checks.whole("retries", retries)
        self.endpoint = Endpoint(
            base_url,
            "/chat/completions",
            what=what,
            key_variable=KEY_VARIABLE,
            error=error,
            timeout=timeout,
            retries=retries,
            longest_wait=longest_wait,
        )

    def complete(self, task: str, material: str) -> str:
        """Return the model's answer to a task (the system message) about some material (the user message)."""
        messages = [
            {"role": "system", "content": task},
            {"role": "user", "content": material.encode("utf-8", "replace").decode()},
        ]
        answer = self.endpoint.post({"model": self.model, "messages": messages})
        content = _content(answer).strip()
        if not content:
            raise self.endpoint.failed(f"must answer with a message, got: {self.endpoint.excerpt(answer)}")
        return content


def parse_chat_spec(spec: str, what: str) -> tuple[str, str]:
    """Parse `chat`, `chat:MODEL` or `chat:MODEL@URL` into model and address; missing parts come from the
    environment."""
    match = re.fullmatch(r"chat(?::(?P<model>(?!//).+?)(?:@(?P<url>https?://.+))?)?", spec)
    model = (match and match["model"]) or os.environ.get("RMEM_CHAT_MODEL", "")
    url = (match and match["url"]) or os.environ.get("RMEM_CHAT_URL", "")
    if match is None or not model or not url:
        raise ConfigError(
            f"{what} 'chat' needs a model and an address: write chat:MODEL@URL, or set RMEM_CHAT_MODEL and "
            "RMEM_CHAT_URL (such as https://openrouter.ai/api/v1)"
        )
    return model, url


def _content(answer: Any) -> str:
    """Return the text of the first choice, given as a text or as parts."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    message = (
        choices[0].get("message") if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    )
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
