"""A long text says first what it is about."""

import pytest

from rmem import Brain
from rmem.recall.words import emphases

REPORT = """Colours are lost when output is piped into less

I run the tool in a container with Ubuntu 24.04 and zsh. My configuration file sets the timeout to thirty seconds,
retries to five, the cache folder to a mounted volume and the proxy to the one of the company. The volume is shared with
two other services, a scheduler and a queue worker, which write archives every night and rotate their certificates.
Steps to reproduce: start the container, mount the volume, wait until the scheduler has written its archives, restart
the queue worker, and look at the terminal. I expected the same as without a pipe. The proxy logs nothing unusual, the
certificates are valid, and the retries and timeout of the configuration file are respected by every other command."""

NAMES = [
    "main",
    "start",
    "load",
    "connect",
    "receive",
    "decode",
    "dispatch",
    "handle",
    "validate",
    "normalise",
    "convert",
]


def test_a_pasted_report_is_ranked_by_what_it_says_first():
    with Brain(":memory:") as brain:
        brain.remember_many(
            [
                {"text": "Keep colours if the output goes to a pager such as less"},
                {"text": "Rotate certificates of the proxy when the scheduler restarts the queue worker"},
                {"text": "Retries and timeout of the configuration file apply to archives on a mounted volume"},
                {"text": "Write the cache folder to a shared volume every night"},
            ]
        )
        assert brain.recall(REPORT, k=1)[0].text.startswith("Keep colours")


def test_every_line_of_a_pasted_output_counts():
    frames = [f'  File "app/{name}.py", line {at}, in {name}\n    {name}(value)' for at, name in enumerate(NAMES, 10)]
    output = "\n".join(["Traceback (most recent call last):", *frames, "ValueError: column 'price' holds text"])
    with Brain(":memory:") as brain:
        brain.remember_many(
            [
                {"text": "The most recent calls are listed last in the log of the call centre"},
                {"text": "A price column that holds text is refused: convert and normalise values before validate"},
                {"text": "Open the settings before the window"},
            ]
        )
        assert brain.recall(output, k=1)[0].text.startswith("A price column")


@pytest.mark.parametrize("count", [0, 1, 24])
def test_every_word_of_a_short_question_counts_in_full(count):
    assert emphases(count) == [1.0] * count


@pytest.mark.parametrize("count", [25, 60, 1000])
def test_words_count_less_towards_the_end_of_a_long_text(count):
    found = emphases(count)
    assert found[:4] == [1.0] * 4
    assert found == sorted(found, reverse=True)
    assert 0 < found[-1] < 1
