"""Every command of docs/rest-memory.md, run by a shell against a real server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "rest-memory.md"


def commands() -> list[str]:
    blocks = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_the_commands_of_the_page_do_what_it_says(server, tmp_path):
    first, define, *lines = commands()
    assert first.startswith("export API_URL=")
    marked = [line if line.startswith("tag=") else f"{line}; echo; echo '--'" for line in lines]
    script = "\n".join(["set -e", define.replace("curl -s ", "curl -s --fail-with-body "), *marked])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={"API_URL": server.url, "RMEM_API_KEY": server.first_token, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [part.strip() for part in done.stdout.split("--\n")]
    told = {line: json.loads(text) for line, text in zip(
        [line for line in lines if not line.startswith("tag=")], answers, strict=False
    ) if text.startswith("{")}  # fmt: skip
    assert told[lines[0]] == {"ids": ["fix-1"]}
    found = {line: answer for line, answer in told.items() if "/recall" in line}
    assert all(answer["hits"] for answer in found.values())
    assert len((tmp_path / "memories.jsonl").read_text("utf-8").splitlines()) == 3
