"""Edits of JSON texts: what was asked for changes, and every other byte stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmem.errors import ConfigError
from rmem.team.install.jsonc import Document

KEYS = st.sampled_from(["a", "b", "hooks", "two words", 'a "quote"', "é", "//", "/*"])
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=6)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)


@st.composite
def written(draw: st.DrawFn, value: Any, within: bool = True) -> str:
    """A JSON text as people write it: any space, comments anywhere (or not `within` a pair), commas at the end."""

    def space() -> str:
        pieces = [" ", "\n", "\t", "\r\n", "\n  ", "/* c */", "/* }\n, */", '// "d": [\n', "// e */\n"]
        return "".join(draw(st.lists(st.sampled_from(pieces), max_size=2)))

    def listed(parts: list[str], brackets: str) -> str:
        comma = "," if parts and draw(st.booleans()) else ""
        return f"{brackets[0]}{','.join(parts)}{comma}{space()}{brackets[1]}"

    def text(value: Any) -> str:
        if isinstance(value, dict):
            colons = [f"{space()}:{space()}" if within else ":" for _ in value]
            pairs = zip(value.items(), colons, strict=True)
            return listed(
                [f"{space()}{json.dumps(key)}{colon}{text(inner)}{space()}" for (key, inner), colon in pairs], "{}"
            )
        if isinstance(value, list):
            return listed([f"{space()}{text(inner)}{space()}" for inner in value], "[]")
        return json.dumps(value)

    return f"{space()}{text(value)}{space()}"


def comments(text: str) -> list[str]:
    """The comments of a text that `written` made."""
    return [piece for piece in ("/* c */", "/* }\n, */", '// "d": [', "// e */") for _ in range(text.count(piece))]


@given(st.data())
@settings(max_examples=2 * settings.default.max_examples)
def test_what_is_added_and_removed_again_leaves_the_same_text(data):
    value = data.draw(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3))
    new = data.draw(VALUES)
    text = data.draw(written(value))
    document = Document(text)
    document.set(("new",), new)
    assert Document(document.text).value == {**value, "new": new}
    document.remove(("new",))
    assert document.text == text
    for key, inner in value.items():
        if isinstance(inner, list) and inner:
            document.append((key,), new)
            assert Document(document.text).value == {**value, key: [*inner, new]}
            document.remove((key, len(inner)))
            assert document.text == text


@given(st.data())
@settings(max_examples=2 * settings.default.max_examples)
def test_removing_or_replacing_one_key_keeps_the_others_and_all_comments(data):
    value = data.draw(st.dictionaries(KEYS, st.one_of(st.integers(), st.text(alphabet="xyz")), min_size=1, max_size=4))
    text = data.draw(written(value, within=False))
    key = data.draw(st.sampled_from(sorted(value)))
    removed, replaced = Document(text), Document(text)
    removed.remove((key,))
    assert removed.value == {one: inner for one, inner in value.items() if one != key}
    replaced.set((key,), {"deep": [1]})
    assert replaced.value == {**value, key: {"deep": [1]}}
    assert comments(replaced.text) == comments(text)
    assert comments(removed.text) == comments(text)


@given(st.data())
def test_strict_json_stays_strict(data):
    value = data.draw(st.dictionaries(KEYS, VALUES, max_size=3))
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 2, 4, "\t"])))
    document = Document(text)
    document.set(("new", "Stop"), [{"command": "x"}])
    document.set(("other",), {"é": [None, 1.5]})
    assert json.loads(document.text) == {**value, "new": {"Stop": [{"command": "x"}]}, "other": {"é": [None, 1.5]}}


@pytest.mark.parametrize(
    "text",
    [
        '{"b":0,// c\n"a":0/* }\n, */,\n"d":0}',
        '{\n  // about a\n  "a": 1, "d": 2\n}',
        '{\n  "d": 2,\n  // about a\n  "a": 1 }',
        '{ // x\n "a": 1}',
    ],
)
def test_nothing_slips_behind_a_comment_of_the_line_before(text):
    document = Document(text)
    rest = {key: value for key, value in document.value.items() if key != "a"}
    document.remove(("a",))
    assert document.value == rest


def edited(text: str) -> str:
    document = Document(text)
    document.set(("hooks", "Stop"), [{"command": "x"}])
    return document.text


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "hooks": {\n    "Stop": [\n      {\n        "command": "x"\n      }\n    ]\n  }\n}\n'),
        ('{"a":1}', '{"a":1,"hooks":{"Stop":[{"command":"x"}]}}'),
        ('{"a": 1}', '{"a": 1, "hooks": {"Stop": [{"command": "x"}]}}'),
        (
            '{\n\t"a": 1 // why\n}',
            '{\n\t"a": 1, // why\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{\n\t\t\t\t"command": "x"\n\t\t\t}\n\t\t]\n\t}\n}',
        ),
        (
            '{\r\n   "a": 1,\r\n}',
            '{\r\n   "a": 1,\r\n   "hooks": {\r\n      "Stop": [\r\n         {\r\n            "command": "x"\r\n'
            "         }\r\n      ]\r\n   },\r\n}",
        ),
        ('{\n  "hooks": {} // none yet\n}', None),
        ("// only a comment\n", None),
    ],
)
def test_what_is_added_looks_like_the_rest(text, after):
    if after is not None:
        assert edited(text) == after
    assert Document(edited(text)).get(("hooks", "Stop", 0, "command")) == "x"
    for line in text.splitlines():
        if "//" in line:
            assert line.partition("//")[2] in edited(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "line 1, column 2: the text ends"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: a comma or } was expected"),
        ('{"a" 1}', "line 1, column 6: a colon was expected"),
        ("{a: 1}", "line 1, column 2: a key in quotes was expected"),
        ("[1,,2]", "line 1, column 4: a value was expected"),
        ('{"a": tru}', "a value was expected"),
        ('{"a": 01}', "a value was expected"),
        ('{"a": "\\q"}', "this text is not valid"),
        ("{} {}", "there is something behind the end"),
        ('{"a": 1', "the text ends"),
        ("/* never closed", "a value was expected"),
        ("[" * 5000, "nested too deeply"),
        ("<<<<<<< HEAD\n{}", "line 1, column 1"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text, told):
    with pytest.raises(ConfigError, match=told.replace("(", r"\(").replace("}", r"\}")):
        Document(text)


def test_a_key_that_is_there_twice_is_not_half_removed():
    document = Document('{"a": 1, "a": 2}')
    assert document.value == {"a": 2}
    with pytest.raises(ConfigError, match="cannot be changed safely"):
        document.remove(("a",))
    assert document.text == '{"a": 1, "a": 2}'


def test_what_is_in_the_way_is_named():
    document = Document('{"hooks": [], "other": {"x": 1}}')
    with pytest.raises(ConfigError, match="hooks must be an object"):
        document.set(("hooks", "Stop"), [])
    with pytest.raises(ConfigError, match=r"other\.x must be an array"):
        document.append(("other", "x"), 1)
    with pytest.raises(ConfigError, match=r"nothing at other\.y"):
        document.remove(("other", "y"))
