"""Files become chunks where a reader would pause, and what cannot be read is named."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem.errors import InputError
from rmem.tables.chunks import check_sizes, chunks, sections
from rmem.tables.files import chunks_of


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page, written by hand."""
    count = len(pages)
    kids = " ".join(f"{3 + 2 * at} 0 R" for at in range(count))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>"]
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    for at, text in enumerate(pages):
        content = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents {4 + 2 * at} 0 R /Resources {font} >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


# Chunks


def test_a_short_text_is_one_chunk():
    assert list(chunks("  Only this.  ", 100, 20)) == ["Only this."]
    assert list(chunks(" \n ", 100, 20)) == []


def test_chunks_end_at_paragraphs_before_sentences_before_words():
    text = "One sentence here. Two is here.\n\nThe second paragraph has some words. And more of them."
    assert list(chunks(text, 50, 0)) == [
        "One sentence here. Two is here.",
        "The second paragraph has some words.",
        "And more of them.",
    ]
    assert list(chunks("alpha beta gamma delta", 12, 0)) == ["alpha beta", "gamma delta"]


def test_a_word_longer_than_a_chunk_is_cut():
    assert list(chunks("x" * 25, 10, 0)) == ["x" * 10, "x" * 10, "x" * 5]


def test_chunks_repeat_whole_sentences_of_the_one_before():
    text = "First sentence. Second sentence. Third sentence. Fourth sentence. Fifth sentence."
    found = list(chunks(text, 50, 20))
    assert found[0] == "First sentence. Second sentence. Third sentence."
    assert found[1].startswith("Third sentence.")
    assert found[-1].endswith("Fifth sentence.")


@given(st.text("ab .\n。\u00e9", max_size=400), st.integers(1, 60), st.integers(0, 59))
def test_nothing_is_lost_and_no_chunk_is_too_long(text, size, overlap):
    found = list(chunks(text, size, min(overlap, size - 1)))
    assert all(0 < len(piece) <= size and piece == piece.strip() for piece in found)
    at = 0
    covered = set()
    for piece in found:  # each piece lies behind the beginning of the one before
        at = text.index(piece, at)
        covered |= set(range(at, at + len(piece)))
        at += overlap == 0 and len(piece)
    if overlap == 0:
        assert "".join("".join(found).split()) == "".join(text.split())
    assert len(covered) <= len(text)


@pytest.mark.parametrize(
    ("size", "overlap", "field"),
    [(0, 0, "chunk_size"), (10, 10, "chunk_overlap"), (10, -1, "chunk_overlap"), (True, 0, "chunk_size")],
)
def test_sizes_are_checked(size, overlap, field):
    with pytest.raises(InputError) as refused:
        check_sizes(size, overlap)
    assert refused.value.field == field


# Markdown


def test_markdown_is_split_at_headings():
    text = "intro\n\n# One\n\nfirst\n\n## Deeper ##\n\nsecond\n\nUnderlined\n---\nthird\n# Two\nfourth"
    assert [(section.headings, section.text) for section in sections(text)] == [
        ((), "intro"),
        (("One",), "# One\n\nfirst"),
        (("One", "Deeper"), "## Deeper ##\n\nsecond"),
        (("One", "Underlined"), "Underlined\n---\nthird"),
        (("Two",), "# Two\nfourth"),
    ]


def test_comments_in_code_are_not_headings():
    text = "# Shell\n\n```sh\n# not a heading\n```\n\n~~~~\n# neither\n~~~\n# still inside\n~~~~\n# Next\n"
    assert [section.headings for section in sections(text)] == [("Shell",), ("Next",)]


def test_settings_before_the_text_are_no_heading():
    assert [section.headings for section in sections("---\ntitle: x\n---\n# One\ntext\n")] == [(), ("One",)]


# Files


def test_each_kind_of_file(tmp_path):
    (tmp_path / "a.txt").write_text("Plain text.")
    (tmp_path / "b.md").write_text("# Title\n\nBody.")
    (tmp_path / "c.jsonl").write_text(
        json.dumps({"text": "one", "source": "x"}) + "\n\n" + json.dumps({"a": 1}) + "\n", "utf-8"
    )
    (tmp_path / "d.pdf").write_bytes(pdf("Hello from a page", "And another"))
    assert chunks_of(tmp_path / "a.txt", 100, 10) == [("Plain text.", {})]
    assert chunks_of(tmp_path / "b.md", 100, 10) == [("# Title\n\nBody.", {"headings": ["Title"]})]
    assert chunks_of(str(tmp_path / "c.jsonl"), 100, 10) == [
        ("one", {"line": 1, "source": "x"}),
        ('{"a": 1}', {"line": 3, "a": 1}),
    ]
    assert chunks_of(tmp_path / "d.pdf", 100, 10) == [("Hello from a page", {"page": 1}), ("And another", {"page": 2})]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_are_told_by_their_mark(tmp_path, encoding):
    path = tmp_path / "a.txt"
    path.write_bytes("Grüße\r\nan alle".encode(encoding))
    assert chunks_of(path, 100, 10)[0].text == "Grüße\nan alle"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("latin.txt", "Grüße".encode("latin-1"), r"latin\.txt is not UTF-8 \(byte 0xfc at 2\); save it as UTF-8"),
        ("image.png", b"\x89PNG\r\n\x1a\n\x00\x00", "image.png is not a text"),
        ("zeros.txt", b"a\0b", "zeros.txt is not a text"),
        ("empty.md", b" \n", "empty.md holds no text"),
        ("bad.jsonl", b'{"text": "a"}\n{"text": \n', "has no JSON in line 2"),
        ("nan.jsonl", b'{"text": NaN}', "has no JSON in line 1"),
        ("list.jsonl", b"[1]", r"must have an object in each line, line 1 is \[1\]"),
        ("broken.pdf", b"%PDF-1.4\nnonsense", "broken.pdf"),
        ("scan.pdf", pdf(""), "scan.pdf holds no text; a scan"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, told):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=told) as refused:
        chunks_of(path, 100, 10)
    assert refused.value.field == "path"


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.md does not exist; nothing was written"):
        chunks_of(tmp_path / "nowhere.md", 100, 10)
    with pytest.raises(InputError, match="is a folder"):
        chunks_of(tmp_path, 100, 10)
    with pytest.raises(InputError, match="path must be the path of a file, got 5"):
        chunks_of(5, 100, 10)


@given(st.binary(max_size=300))
def test_damaged_pdfs_are_refused_and_nothing_else(tmp_path_factory, noise):
    path = tmp_path_factory.mktemp("pdf") / "noise.pdf"
    whole = pdf("Hello")
    path.write_bytes(whole[: len(whole) - len(noise)] + noise)
    with contextlib.suppress(InputError):
        chunks_of(path, 100, 10)
