"""Write the training texts from the repositories of `sources.py`.

    python training/corpus.py FOLDER corpus.tsv.xz

FOLDER holds a git directory for each repository, as OWNER+NAME/repo. Each line of the result is
`kind, language, source, first, second`:

    text         en    a text whose teacher vector the table learns
    pair         any   two texts that belong together (question and answer, heading and section, …)
    translation  any   an English text and its translation
"""

from __future__ import annotations

import ast
import csv
import html
import io
import json
import lzma
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

from sources import SOURCES, Source

LONGEST = 1200  # characters of a text; the teacher reads 256 pieces
_SHORTEST = 8
LANGUAGES = (
    "ar bg bn cs da de el es et fa fi fr he hi hr hu id it ja ko lt ms nl no pl pt ro ru sk sl sr sv th tr uk ur vi zh"
).split()

Line = tuple[str, str, str, str]  # kind, language, first, second
Files = Iterable[tuple[str, bytes]]


def text(first: str) -> Line:
    return "text", "en", first, ""


def pair(language: str, first: str, second: str) -> Line:
    return "pair", language, first, second


def translation(language: str, english: str, other: str) -> Line:
    return "translation", language, english, other


class Repository:
    """Reads files and commits of one git directory. Files that the copy lacks are passed over."""

    def __init__(self, folder: Path, source: Source) -> None:
        path = folder / source.repository.replace("/", "+") / "repo"
        self.path = path / ".git" if (path / ".git").is_dir() else path
        self.commit = source.commit or self._git("rev-parse", "HEAD").decode().strip()

    def _git(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        command = ["git", f"--git-dir={self.path}", *arguments]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def names(self, under: str, ends: tuple[str, ...]) -> list[tuple[str, str]]:
        listed = self._git("ls-tree", "-r", "-z", self.commit).split(b"\0")
        rows = [line.decode(errors="replace").split("\t", 1) for line in listed if line]
        return [(meta.split()[2], name) for meta, name in rows if name.startswith(under) and name.endswith(ends)]

    def files(
        self, under: str, ends: tuple[str, ...], most: int = 12_000, keep: Callable[[str], bool] | None = None
    ) -> Iterator[tuple[str, bytes]]:
        names = [one for one in self.names(under, ends) if keep is None or keep(one[1])]
        if len(names) > most:
            names = random.Random(0).sample(names, most)
        answer = self._git("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob, _ in names).encode())
        at = 0
        for _, name in names:
            end = answer.index(b"\n", at)
            header = answer[at:end].split()
            at = end + 1
            if header[-1] == b"missing":
                continue
            size = int(header[2])
            yield name, answer[at : at + size]
            at += size + 1

    def commits(self, most: int) -> list[tuple[str, str]]:
        raw = self._git("log", "--no-merges", "--format=%s%x01%b%x02", self.commit).decode(errors="replace")
        found = []
        for entry in raw.split("\x02"):
            subject, _, body = entry.strip().partition("\x01")
            found.append(
                (subject, re.sub(r"(?m)^[A-Z][\w-]*-by:.*$|^git-svn-id:.*$|^Discussion:.*$", "", body).strip())
            )
        if len(found) > most:
            found = random.Random(0).sample(found, most)
        return found


# Text of markup.

_FENCE = re.compile(r"^(```|~~~)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MACRO = re.compile(r"\{\{<.*?>\}\}|\{\{%.*?%\}\}|\{\{[A-Za-z]+\(([^)]*)\)\}\}|\{#.*?#\}|\{:.*?\}|\{\{.*?\}\}")


def plain(markup: str) -> str:
    """Markdown without links, marks and tags."""
    markup = _LINK.sub(r"\1", markup)
    markup = _MACRO.sub(lambda match: (match[1] or "").split(",")[0].strip("\"' "), markup)
    markup = re.sub(r"<[^<>]{1,200}>", " ", markup)
    markup = re.sub(r"(?m)^\s*(?:>|[-*+]|\d+\.)\s+", "", markup)
    markup = markup.replace("**", "").replace("`", "").replace("__", "")
    return " ".join(html.unescape(markup).split())


def blocks(markdown: str) -> list[tuple[str, str]]:
    """(kind, text) of a page in order: heading, text, code."""
    if markdown.startswith("---"):
        markdown = markdown.partition("\n---")[2]
    markdown = re.sub(r"<!--.*?-->", "", markdown, flags=re.S)
    found: list[tuple[str, str]] = []
    lines: list[str] = []
    code: list[str] | None = None

    def flush() -> None:
        if lines and (said := plain("\n".join(lines))):
            found.append(("text", said))
        lines.clear()

    for line in markdown.split("\n"):
        if code is not None:
            if _FENCE.match(line.strip()):
                found.append(("code", "\n".join(code)))
                code = None
            else:
                code.append(line)
        elif _FENCE.match(line.strip()):
            flush()
            code = []
        elif line.startswith("#"):
            flush()
            found.append(("heading", plain(line.lstrip("# "))))
        elif line.lstrip().startswith("|"):
            flush()
        elif not line.strip() or re.match(r"\s*(?:[-*+]|\d+\.)\s", line):
            flush()
            if line.strip():
                lines.append(line)
        else:
            lines.append(line)
    flush()
    return found


def language_of(path: str) -> str:
    """Language of a documentation page by a folder of its path; English if none names one."""
    for part in re.split(r"[/.]", path.lower().replace("_", "-")):
        code = part.removeprefix("readme-").partition("-")[0]
        if code in LANGUAGES and (part == code or re.fullmatch(r"[a-z]{2}-[a-z]{2,4}", part)):
            return code
    return "en"


def page(language: str, found: list[tuple[str, str]]) -> Iterator[Line]:
    """Pairs of heading and section, of a paragraph and the code below it; the paragraphs."""
    title = heading = ""
    section: list[str] = []

    def sections() -> Iterator[Line]:
        body = " ".join(section)
        if heading and len(body) > 60:
            yield pair(language, f"{title}: {heading}" if title and title != heading else heading, body)

    for at, (kind, said) in enumerate(found):
        if kind == "heading":
            yield from sections()
            section.clear()
            title, heading = title or said, said
        elif kind == "text":
            section.append(said)
            if language == "en":
                yield text(said)
        elif at and found[at - 1][0] == "text" and len(said) > 30:
            yield pair("en" if language == "en" else "code-" + language, found[at - 1][1], said)
            section.append(said[:300])
            if language == "en":
                yield text(said)
    yield from sections()


def aligned(language: str, english: list[tuple[str, str]], other: list[tuple[str, str]]) -> Iterator[Line]:
    """Translations of one page: section by section, where both have as many paragraphs."""

    def parts(found: list[tuple[str, str]]) -> list[list[str]]:
        cut: list[list[str]] = [[]]
        for kind, said in found:
            if kind == "heading":
                cut.append([said])
            elif kind == "text":
                cut[-1].append(said)
        return cut

    ours, theirs = parts(english), parts(other)
    if len(ours) != len(theirs):
        return
    for first, second in zip(ours, theirs, strict=True):
        if len(first) == len(second):
            for left, right in zip(first, second, strict=True):
                if left != right and 0.2 < len(right) / max(len(left), 1) < 2.5:
                    yield translation(language, left, right)


def _source(repository: str) -> Source:
    return next(source for source in SOURCES if source.repository == repository)


# Readers of the kinds of sources. Each takes (repository, source, folder).


def markdown(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    def known(name: str) -> bool:
        """Not of a language that is not listed: it would pass for English."""
        other = re.match(r"translations/([a-z]+)", name)
        return "node_modules" not in name and (other is None or other[1] in LANGUAGES)

    for name, raw in repo.files(source.under, (".md", ".mdx"), 1200, known):
        yield from page(language_of(name), blocks(raw.decode(errors="replace")))


def _translated(language: str, ours: dict[str, bytes], theirs: Files) -> Iterator[Line]:
    for name, raw in theirs:
        if name in ours:
            yield from aligned(
                language, blocks(ours[name].decode(errors="replace")), blocks(raw.decode(errors="replace"))
            )


def mdn_translations(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    english = Repository(folder, _source("mdn/content"))
    names = {name.removeprefix("files/en-us") for _, name in english.names("files/en-us", (".md",))}
    for locale in ("ja", "fr", "zh-cn", "ko", "ru", "es", "pt-br", "de"):
        under = f"files/{locale}"
        theirs = {
            name.removeprefix(under): raw
            for name, raw in repo.files(
                under, (".md",), 500, lambda name, under=under: name.removeprefix(under) in names
            )
        }
        ours = {
            name.removeprefix("files/en-us"): raw
            for name, raw in english.files(
                "files/en-us", (".md",), keep=lambda name, theirs=theirs: name.removeprefix("files/en-us") in theirs
            )
        }
        yield from _translated(locale.partition("-")[0], ours, theirs.items())


def _beside(repo: Repository, under: Callable[[str], str], locales: Iterable[str], most: int) -> Iterator[Line]:
    base = under("en")
    ours = {name.removeprefix(base): raw for name, raw in repo.files(base, (".md",), most)}
    for locale in locales:
        folder = under(locale)
        theirs = (
            (name.removeprefix(folder), raw)
            for name, raw in repo.files(
                folder, (".md",), keep=lambda name, folder=folder: name.removeprefix(folder) in ours
            )
        )
        yield from _translated(locale.lower().partition("-")[0], ours, theirs)


def kubernetes_translations(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    yield from _beside(repo, "content/{}/".format, "zh-cn ja ko fr de ru es pt-br uk".split(), 1500)


def course_translations(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    locales = "ar de ja ru zh-CN zh-TW ko fr es pt-BR it nl pl tr uk vi th he fa hi".split()
    yield from _beside(repo, "translations/{}/".format, locales, 200)


def react_translations(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    language = source.repository.partition("/")[2].partition(".")[0]
    if language in LANGUAGES:
        english = Repository(folder, _source("reactjs/react.dev"))
        yield from _translated(
            language, dict(english.files("src/content/", (".md",))), repo.files("src/content/", (".md",))
        )


def vue_translations(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    english = Repository(folder, _source("vuejs/docs"))
    language = source.repository.removeprefix("vuejs-translations/docs-")[:2]
    yield from _translated(language, dict(english.files("src/", (".md",))), repo.files("src/", (".md",)))


def gettext(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    language = source.repository.removeprefix("python/python-docs-")[:2]
    for _, raw in repo.files("", (".po",)):
        for entry in raw.decode(errors="replace").split("\n\n"):
            if "#, fuzzy" in entry or "#~" in entry:
                continue
            said, _, put = entry.partition("\nmsgstr ")
            first = "".join(re.findall(r'"(.*)"', said.partition("msgid ")[2]))
            second = "".join(re.findall(r'"(.*)"', put))
            if first and second and first != second:
                yield translation(language, _unrest(first), _unrest(second))


def _unrest(said: str) -> str:
    said = re.sub(r":[\w:]+:`[~!]?([^`<]*?)(?: ?<[^`]*>)?`", r"\1", said.replace('\\"', '"').replace("\\n", " "))
    said = re.sub(r"`([^`<]*?)(?: ?<[^`]*>)?`_*", r"\1", said).replace("\\\\", "")
    return " ".join(said.replace("``", "").replace("**", "").replace("*", "").replace("`", "").split())


def locales(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    def strings(raw: bytes) -> dict[str, str]:
        path: list[tuple[int, str]] = []
        found = {}
        for line in raw.decode(errors="replace").split("\n"):
            if match := re.match(r"( *)([\w.?!-]+|'[^']*'|\"[^\"]*\"):(?: (.*))?$", line):
                depth = len(match[1])
                path = [one for one in path if one[0] < depth] + [(depth, match[2])]
                if value := (match[3] or "").strip().strip("\"'"):
                    found[".".join(key for _, key in path[1:])] = plain(re.sub(r"%?\{+\w+\}+", " ", value))
        return found

    files = dict(repo.files(source.under, (".yml",)))
    for name, raw in files.items():
        stem = name.rpartition("/")[2].removesuffix(".yml")
        kind, _, locale = stem.rpartition(".")
        language = locale.partition("-")[0].partition("_")[0].lower()
        original = files.get(f"{source.under}{kind + '.' if kind else ''}en.yml")
        if language in LANGUAGES and original is not None:
            english = strings(original)
            for key, value in strings(raw).items():
                if key in english and value != english[key]:
                    yield translation(language, english[key], value)


def tatoeba(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    codes = dict(
        zip(
            "ara bul ben ces dan deu ell spa est pes fin fra heb hin hrv hun ind ita jpn kor lit zsm nld nob "
            "pol por ron rus slk slv srp swe tha tur ukr urd vie cmn".split(),
            LANGUAGES,
            strict=True,
        )
    )
    files = dict(repo.files(source.under, (*codes, "eng")))
    for code, language in codes.items():
        name = f"{source.under}tatoeba.{code}-eng."
        if name + code in files and name + "eng" in files:
            theirs, ours = (files[name + end].decode().split("\n") for end in (code, "eng"))
            for first, second in zip(ours, theirs, strict=False):
                yield translation(language, first, second)


def tldr(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    pages: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for name, raw in repo.files("pages", (".md",), 20_000):
        where, _, rest = name.partition("/")
        language = where.removeprefix("pages").strip(".").partition("_")[0] or "en"
        lines = raw.decode(errors="replace").split("\n")
        about = " ".join(line[2:] for line in lines if line.startswith("> ") and "http" not in line)
        steps = [("", about)]
        for line in lines:
            if line.startswith("- "):
                steps.append((line[2:].rstrip(":"), ""))
            elif line.startswith("`"):
                steps[-1] = (steps[-1][0], re.sub(r"\{\{|\}\}", "", line.strip("`")))
        pages.setdefault(rest, {})[language] = steps
        command = rest.rpartition("/")[2].removesuffix(".md")
        for said, code in steps:
            if said and code:
                yield pair(language, f"{command}: {said}", code)
                if language == "en":
                    yield text(f"{said}: {code}")
            elif code and language == "en":
                yield text(f"{command}: {code}")
    for versions in pages.values():
        english = versions.get("en", [])
        for language, steps in versions.items():
            if language in LANGUAGES and len(steps) == len(english):
                for (first, about), (second, told) in zip(english, steps, strict=True):
                    yield translation(language, first or about, second or told)


def _dialogue(language: str, turns: list[str]) -> Iterator[Line]:
    for at, turn in enumerate(turns):
        if language == "en":
            yield text(turn)
        if at and len(turn) > 25 and turns[at - 1].rstrip().endswith(("?", "？")):
            yield pair(language, turns[at - 1], turn)
        if at > 2 and at % 6 == 0:
            joined = " ".join(turns[at - 3 : at + 1])
            if language == "en":
                yield text(joined)


def schema_guided(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, (".json",), 60):
        for one in json.loads(raw):
            if isinstance(one, dict) and "turns" in one:
                yield from _dialogue("en", [turn["utterance"] for turn in one["turns"]])


def taskmaster(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files("", (".json",), keep=lambda name: "/data/" in name or "dialogs" in name):
        for one in json.loads(raw):
            yield from _dialogue("en", [turn["text"] for turn in one.get("utterances", [])])


def topical_chat(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, (".json",)):
        for one in json.loads(raw).values():
            yield from _dialogue("en", [turn["message"] for turn in one["content"]])


def self_dialogue(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, (".csv",)):
        for row in csv.DictReader(io.StringIO(raw.decode(errors="replace"))):
            said = {
                int(key.removeprefix("Answer.sentence")): value
                for key, value in row.items()
                if key and re.fullmatch(r"Answer\.sentence\d+", key) and value
            }
            yield from _dialogue("en", [said[at] for at in sorted(said)])


def multidogo(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, (".tsv",)):
        talks: dict[str, list[str]] = {}
        for row in csv.DictReader(io.StringIO(raw.decode(errors="replace")), delimiter="\t", quoting=csv.QUOTE_NONE):
            talks.setdefault(row["conversationId"], []).append(row["utterance"] or "")
        for turns in talks.values():
            yield from _dialogue("en", turns)


def clinc(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, ("data_full.json",)):
        yield from (text(said) for said, _ in json.loads(raw)["train"])


def banking(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, ("train.csv",)):
        yield from (text(row[0]) for row in csv.reader(io.StringIO(raw.decode())))


def chatterbot(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    names = {
        "english": "en",
        "german": "de",
        "french": "fr",
        "spanish": "es",
        "russian": "ru",
        "chinese": "zh",
        "japanese": "ja",
        "italian": "it",
        "portuguese": "pt",
    }
    for name, raw in repo.files(source.under, (".yml",)):
        language = names.get(name.split("/")[2])
        said = ""
        for line in raw.decode(errors="replace").split("\n"):
            if line.startswith("- - "):
                said = line[4:].strip("'\" ")
            elif line.startswith("  - ") and said and language:
                yield pair(language, said, line[4:].strip("'\" "))


def crosswoz(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, ("val.json.zip", "test.json.zip", "train.json.zip")):
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            for one in json.loads(packed.read(packed.namelist()[0])).values():
                yield from _dialogue("zh", [turn["content"] for turn in one["messages"]])


def kdconv(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, ("train.json", "dev.json", "test.json")):
        for one in json.loads(raw):
            turns = [turn["message"] for turn in one["messages"]]
            yield from _dialogue("zh", turns)
            yield from (pair("zh", first, second) for first, second in pairwise(turns))


def squad(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    language = {"cmrc2018": "zh", "DRCD": "zh", "JaQuAD": "ja", "SOQAL": "ar"}[source.repository.partition("/")[2]]
    for _, raw in repo.files(source.under, (".json",)):
        try:
            articles = json.loads(raw)["data"]
        except (ValueError, TypeError, KeyError):
            continue
        for article in articles:
            for paragraph in article["paragraphs"]:
                for one in paragraph["qas"]:
                    yield pair(language, one["question"], paragraph["context"])


def cnxml(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, (".cnxml",)):
        page_text = raw.decode(errors="replace")
        title = _untagged("".join(re.findall(r"<title>(.*?)</title>", page_text, re.S)[:1]))
        for section in re.split(r"<section", page_text):
            named = re.search(r"<title>(.*?)</title>", section, re.S)
            paragraphs = [_untagged(one) for one in re.findall(r"<para[^>]*>(.*?)</para>", section, re.S)]
            yield from (text(one) for one in paragraphs)
            for one in paragraphs:
                sentences = re.split(r"(?<=[.?!]) +", one)
                if len(sentences) > 2:
                    yield from (text(sentence) for sentence in sentences[:3])
            if named and paragraphs:
                yield pair("en", f"{title}: {_untagged(named[1])}", " ".join(paragraphs))
        for term, meaning in re.findall(
            r"<definition[^>]*>\s*<term[^>]*>(.*?)</term>\s*<meaning[^>]*>(.*?)</meaning>", page_text, re.S
        ):
            yield pair("en", _untagged(term), _untagged(meaning))
        for problem, solution in re.findall(
            r"<problem[^>]*>(.*?)</problem>\s*<solution[^>]*>(.*?)</solution>", page_text, re.S
        ):
            yield pair("en", _untagged(problem), _untagged(solution))


def _untagged(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def xhtml(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files(source.under, (".xhtml",)):
        paragraphs = [_untagged(one) for one in re.findall(r"<p[^>]*>(.*?)</p>", raw.decode(errors="replace"), re.S)]
        yield from (text(one) for one in paragraphs)


def rst(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for _, raw in repo.files("", (".rst", ".txt"), 500, lambda name: "doc" in name and "changelog" not in name.lower()):
        found: list[tuple[str, str]] = []
        for block in re.split(r"\n\s*\n", raw.decode(errors="replace")):
            lines = block.strip("\n").split("\n")
            if len(lines) > 1 and re.fullmatch(r"([=\-~^\"*+#`.])\1{2,}\s*", lines[-1]):
                found.append(("heading", _unrest(lines[-2])))
            elif block.startswith(".. "):
                continue
            elif block.startswith("    ") and found:
                found.append(("code", block.strip()))
            else:
                found.append(("text", _unrest(block)))
        yield from page("en", found)


_NUMBER = re.compile(r"(?:#|:(?:issue|gh|pull|pr|ticket|bug):`|[A-Za-z]-)(\d{2,6})\b")


def history(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    for subject, body in repo.commits(25_000):
        yield text(subject)
        if len(body) > 40:
            yield pair("en", subject, body)
            yield text(f"{subject}\n{body}")


def changelog(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    """A sentence of a change log and the commits that name the same issue."""
    commits: dict[str, list[str]] = {}
    for subject, body in repo.commits(60_000):
        for number in set(_NUMBER.findall(subject + " " + body)):
            commits.setdefault(number, []).append(_NUMBER.sub("", f"{subject}\n{body}"))

    def logs(name: str) -> bool:
        lower = name.lower()
        return (
            any(word in lower for word in ("change", "news", "history", "release", "whatsnew")) and "test" not in lower
        )

    for _, raw in repo.files("", (".md", ".rst", ".txt"), 800, logs):
        for item in re.split(r"\n\s*\n|\n\s*[-*+] |\n\s*\.\. change::", raw.decode(errors="replace")):
            numbers = set(_NUMBER.findall(item))
            said = _unrest(plain(_NUMBER.sub("", item)))
            if 20 < len(said) < 600:
                yield text(said)
                for number in sorted(numbers)[:2]:
                    for commit in commits.get(number, [])[:2]:
                        yield pair("en", said, commit)


def docstrings(repo: Repository, source: Source, folder: Path) -> Iterator[Line]:
    def ours(name: str) -> bool:
        return not any(part in name for part in ("_vendor", "vendored", "test", "/migrations/", "packages/"))

    for _, raw in repo.files("", (".py",), 500, ours):
        try:
            tree = ast.parse(raw)
        except (SyntaxError, ValueError, RecursionError):
            continue
        lines = raw.decode(errors="replace").split("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and len(node.body) > 1:
                said = ast.get_docstring(node)
                if said:
                    first = said.partition("\n\n")[0]
                    body = "\n".join(
                        [lines[node.lineno - 1].strip(), *lines[node.body[1].lineno - 1 : node.end_lineno]]
                    )
                    yield pair("en", _unrest(first), body)
                    yield text(f"{node.name}: {_unrest(said)}")
                    yield text(body)


def clean(said: str) -> str:
    said = said.replace("\t", " ").replace("\r", "")
    said = "".join(sign for sign in said if sign >= " " or sign == "\n")[:LONGEST].strip()
    return re.sub(r"\n+", " ⏎ ", said) if "\n" in said else said


def lines_of(folder: Path, source: Source) -> tuple[str, list[str]]:
    """The commit that was read and the lines of one source, without repetitions, at most `source.most`."""
    repo = Repository(folder, source)
    kinds = []
    for kind in source.kinds:
        seen: set[tuple[str, str]] = set()
        kept = []
        for group, language, first, second in globals()[kind](repo, source, folder):
            first, second = clean(first), clean(second)
            short = min(len(first), len(second)) if second else len(first)
            if short >= (_SHORTEST if group == "text" else 3) and (first, second) not in seen:
                seen.add((first, second))
                kept.append("\t".join((group, language, source.repository, first, second)))
        kinds.append(kept)
    # Each reader gets its share; what one leaves, the others may use.
    drawn = random.Random(1)
    kept = []
    left = source.most
    for at, rows in enumerate(sorted(kinds, key=len)):
        share = left // (len(kinds) - at)
        rows = rows if len(rows) <= share else drawn.sample(rows, share)
        kept += rows
        left -= len(rows)
    return repo.commit, kept


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    only = sys.argv[3:]
    chosen = [source for source in SOURCES if not only or any(one in source.repository for one in only)]
    with ProcessPoolExecutor(8) as pool, lzma.open(out, "wt", encoding="utf-8", preset=1) as file:
        for source, (commit, kept) in zip(chosen, pool.map(partial(lines_of, folder), chosen), strict=True):
            print(f"{source.repository:60} {commit[:12]} {len(kept):8,}", flush=True)
            for line in kept:
                file.write(line.replace("\x00", "") + "\n")


if __name__ == "__main__":
    main()
