"""Texts that others wrote, with what there is to find in them: the test data of scanners and recognizers, made-up
people of many countries, and real source code and git logs, in which a secret is most likely a false alarm.

A corpus is recognized by what its folder holds, so that a caller names paths only."""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import tomllib
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rmem.errors import ConfigError, InputError

from .go_patterns import generate_match, python_pattern
from .samples import read_labelled

Mark = tuple[int, int, str]

SECRETS_ONLY = ("gitleaks", "noseyparker", "kingfisher", "trufflehog", "detect-secrets", "creddata")
"""Corpora that mark secrets and leave the addresses that stand beside them unmarked."""
PARTS = ("all", "development", "test")


class Sample(NamedTuple):
    """A text and its marks (start, end, kind). `marks` is None where nobody has marked anything: source code, logs."""

    corpus: str
    source: str
    """What it was made from: a rule, a test file, a template. All samples of one source are in one part."""
    text: str
    marks: tuple[Mark, ...] | None
    setting: str = ""
    """For secrets: "assigned" if a name stands before the value, "bare" if it stands alone in prose, "line" if nobody
    said which part of the line it is."""

    part: str = ""
    """Given by the corpus; otherwise `part_of` says."""


def part_of(sample: Sample) -> str:
    """ "development" or "test", by a hash of where the sample is from."""
    return sample.part or PARTS[1 + zlib.crc32(f"{sample.corpus}/{sample.source}".encode()) % 2]


Reader = Callable[[Path], Iterator[Sample]]

_REPEATED = re.compile(r"([^A=])\1{6}")
"""Placeholders such as xxxxxxx: a secret in the tests of one project, and none in those of another. Neither counts."""
_TYPED = re.compile("12345|54321|abcde|edcba|qwert|asdf|fghij|lmnop|rstuv|a1b2c3", re.IGNORECASE)
"""What people type who need an example, in half of Kingfisher's."""
_PROSE = ("I put {} into the vault yesterday.", "use {}, it works until Friday", "rotated ({}) and told the team")


def _in_prose(corpus: str, source: str, values: set[str], applies: Callable[[str], bool]) -> Iterator[Sample]:
    """Values in sentences, if the rule that they are from finds them there too."""
    for value in sorted(values):
        before, after = _PROSE[zlib.crc32(value.encode()) % len(_PROSE)].split("{}")
        text, mark = before + value + after, (len(before), len(before) + len(value), "secret")
        if applies(text.replace(",", " ").replace(")", " ")) and not re.search(r"\s", value):
            yield Sample(corpus, source, text, (mark,), setting="bare")


# gitleaks (MIT): the rules' own examples, and values made from each rule in the forms that its tests use

_GO_TEXT = re.compile(r'`([^`]*)`|"((?:[^"\\\n]|\\.)*)"')
_GO_RULE = re.compile(r'RuleID:\s*"([^"]+)"')
_GO_FORM = re.compile(r'^\s*"[^"]*":\s*(`[^`]*`|"(?:[^"\\]|\\.)*"),', re.MULTILINE)
_GO_CASES = re.compile(r"\b([tf])ps\s*:?=")
_NO_SECRET = re.compile(r"-(?:client-)?id$|public|publishable|pkcs12|kubernetes|curl")
"""Rules for what is no secret (ids, public keys), has no text (a file's name), or wraps what other rules find."""


def gitleaks(folder: Path) -> Iterator[Sample]:
    rules = {rule["id"]: rule for rule in tomllib.loads((folder / "config/gitleaks.toml").read_text("utf-8"))["rules"]}
    patterns = {
        name: (rule.get("keywords", ()), re.compile(python_pattern(rule["regex"])))
        for name, rule in rules.items()
        if "regex" in rule
    }
    utils = (folder / "cmd/generate/config/utils/generate.go").read_text("utf-8")
    forms = [_go_text(form.group(1)) for form in _GO_FORM.finditer(utils)]
    for path in sorted((folder / "cmd/generate/config/rules").glob("*.go")):
        for function in re.split(r"^func ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            named = _GO_RULE.search(function)
            name = named.group(1) if named else ""
            if name in patterns and not _NO_SECRET.search(name):
                yield from _gitleaks_rule(name, patterns, function, forms)


def _gitleaks_rule(
    name: str, patterns: dict[str, tuple[list[str], re.Pattern[str]]], function: str, forms: list[str]
) -> Iterator[Sample]:
    kind = "private_key" if name == "private-key" else "secret"
    own = patterns[name][1]
    values = set()
    for sort, text in _go_cases(function):
        if sort == "f":
            if not any(_applies(one, text) for rule, one in patterns.items() if rule != name):
                yield Sample("gitleaks", name, text, ())
        elif (found := own.search(text)) and not _REPEATED.search(found.group()):
            start, end = _secret_span(found)
            values.add(text[start:end])
            yield Sample("gitleaks", name, text, ((start, end, kind),), setting="assigned" if start else "bare")
    if kind == "private_key":
        return
    value = _value_of(own, Random(name))
    if value:
        values.add(value)
        provider = name.split("-")[0]
        for form in forms:
            before, after = form.replace("{i}", provider).replace("{I}", provider.upper()).split("{s}")
            mark = (len(before), len(before) + len(value), kind)
            yield Sample("gitleaks", name, before + value + after, (mark,), setting="assigned")
    yield from _in_prose("gitleaks", name, values, lambda text: _applies(patterns[name], text))


def _applies(rule: tuple[list[str], re.Pattern[str]], text: str) -> bool:
    keywords, pattern = rule
    lowered = text.lower()
    return any(word in lowered for word in keywords) and pattern.search(text) is not None


def _go_cases(function: str) -> Iterator[tuple[str, str]]:
    """("t", text) for what a rule has to find and ("f", text) for what it must leave alone."""
    starts = [(found.start(), found.group(1)) for found in _GO_CASES.finditer(function)]
    for at, (start, sort) in enumerate(starts):
        end = starts[at + 1][0] if at + 1 < len(starts) else len(function)
        for found in _GO_TEXT.finditer(re.sub(r"(?m)^\s*//.*$", "", function[start:end])):
            text = _go_text(found.group())
            if len(text) > 8:
                yield sort, text


def _go_text(literal: str) -> str:
    if literal.startswith("`"):
        return literal[1:-1]
    try:
        return str(json.loads(literal))
    except ValueError:
        return literal[1:-1]


def _secret_span(found: re.Match[str]) -> tuple[int, int]:
    """The last long group that took part (a user comes before a password, a host behind it), else everything."""
    groups = range(found.re.groups, 0, -1)
    group = next((at for at in groups if found[at] and len(found[at]) >= _SHORTEST and not _is_host(found, at)), 0)
    return found.span(group)


def _without_quotes(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out `="` and the like, which some patterns count to the secret."""
    value = text[start:end]
    left = len(value) - len(value.lstrip("\"'=: \n"))
    return start + left, end - (len(value) - len(value.rstrip("\"' \n")))


def _password_of_url(text: str, start: int, end: int) -> tuple[int, int]:
    """Of a whole URL with a user and a password, mark the password: the host is no secret."""
    found = _URL_PASSWORD.match(text, start, end)
    return found.span(1) if found else (start, end)


_URL_PASSWORD = re.compile(r"[a-z][\w+.-]*://[^/\s:@]*:([^/\s]+)@")


def _is_host(found: re.Match[str], group: int) -> bool:
    return found.string[: found.start(group)].endswith("@")


def _value_of(pattern: re.Pattern[str], random: Random) -> str:
    """A made-up value of a rule: a text that its pattern takes, less what surrounds the secret."""
    for _ in range(20):
        found = pattern.search(" " + generate_match(pattern.pattern, random) + " ")
        value = found and found.string[slice(*_secret_span(found))]
        if value and re.search("[0-9]", value):
            return value
    return ""


_SHORTEST = 6


# CredData (Apache-2.0): lines of 297 projects that people judged, in the files that its download_data.py collects

_NOT_SECRET = frozenset(
    ("UUID", "AWS S3 Bucket", "Firebase Domain", "Tencent WeChat API App ID", "Nonce", "Salt", "AWS Client ID",
     "Twilio Credentials", "Other", "Category", "")
)  # fmt: skip
"""Categories of ids and addresses."""
_LONGEST_LINE = 4000


def creddata(folder: Path) -> Iterator[Sample]:
    """Each judged line once per project, with the values that were judged true."""
    for path in sorted((folder / "meta").glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: (row["FilePath"], int(row["LineStart"])))
        seen: set[str] = set()
        for name, judged in groupby(rows, key=lambda row: row["FilePath"]):
            file_path = folder / name
            if not file_path.exists() or file_path.stat().st_size > _MOST:
                continue
            lines = file_path.read_bytes().decode("utf-8", errors="replace").split("\n")
            for number, same in groupby(judged, key=lambda row: int(row["LineStart"])):
                sample = _judged_line(path.stem, lines, number, list(same))
                if sample and sample.text not in seen:
                    seen.add(sample.text)
                    yield sample


def _judged_line(project: str, lines: list[str], number: int, rows: list[dict[str, str]]) -> Sample | None:
    """A line, or several where a key has several; None if it is too long or an id is all there is to find."""
    last = max(int(row["LineEnd"]) for row in rows)
    text = "\n".join(lines[number - 1 : last])
    if not text or len(text) > _LONGEST_LINE or last > len(lines):
        return None
    marks = []
    for row in rows:
        if row["GroundTruth"] != "T":
            continue
        kinds = set(row["Category"].split(":"))
        if not kinds - _NOT_SECRET or min(int(row[key] or -1) for key in ("ValueStart", "ValueEnd")) < 0:
            return None
        if kinds & {"PEM Private Key", "JWK"}:
            return None  # the mark covers what stands around the key, too
        before = sum(len(line) + 1 for line in lines[number - 1 : int(row["LineEnd"]) - 1])
        marks.append((int(row["ValueStart"]), before + int(row["ValueEnd"]), "secret"))
    if any(_REPEATED.search(text[start:end]) for start, end, _ in marks):
        return None
    return Sample("creddata", project, text, tuple(marks), setting="assigned")


# Nosey Parker and Kingfisher (Apache-2.0): rules with examples and counter-examples


def noseyparker(folder: Path) -> Iterator[Sample]:
    yield from _rules_with_examples("noseyparker", folder / _NOSEYPARKER)


def kingfisher(folder: Path) -> Iterator[Sample]:
    """Its examples that are not typed by hand."""
    for sample in _rules_with_examples("kingfisher", folder / _KINGFISHER):
        if not any(_TYPED.search(sample.text, start, end) for start, end, _ in sample.marks or ()):
            yield sample


def _rules_with_examples(corpus: str, folder: Path) -> Iterator[Sample]:
    try:
        import yaml
    except ImportError:
        raise ConfigError(f"the rules of {corpus} need PyYAML; install it with: pip install PyYAML") from None
    rules = []
    for path in sorted(folder.glob("*.yml")):
        rules += yaml.safe_load(path.read_text("utf-8"))["rules"]
    secret = [
        rule
        for rule in rules
        if not {"identifier", "hashed", "test"} & set(rule.get("categories", ()))
        and rule.get("visible", True)  # Kingfisher does not show what it needs beside a secret: ids, users, hosts
        and not re.search(r"\bHash\b", rule["name"])
    ]
    patterns = {rule["id"]: pattern for rule in rules if (pattern := _compiled(rule["pattern"]))}
    for rule in secret:
        name = rule["id"]
        if name not in patterns:
            continue
        values = set()
        kind = "private_key" if re.match(r"\w+\.(?:pem|age|privkey)\b", name) else "secret"
        for text in rule.get("examples") or ():
            if (found := patterns[name].search(text)) and not _REPEATED.search(found.group()):
                start, end = _password_of_url(text, *_without_quotes(text, *_secret_span(found)))
                values.add(text[start:end])
                yield Sample(corpus, name, text, ((start, end, kind),), setting="assigned" if start else "bare")
        for text in rule.get("negative_examples") or ():
            if not any(pattern.search(text) for other, pattern in patterns.items() if other != name):
                yield Sample(corpus, name, text, ())
        if kind == "secret" and not {"fuzzy", "generic"} & set(rule.get("categories", ())):
            yield from _in_prose(corpus, name, values, partial(_found, patterns[name]))


def _found(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


_KINGFISHER = "data/rules"
_NOSEYPARKER = "crates/noseyparker/data/default/builtin/rules"


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(python_pattern(pattern))
    except re.error:
        return None  # syntax of another engine


# TruffleHog (AGPL-3.0): the patterns that its detectors are tested with

_GO_NAMED = re.compile(r'^\s*(?:const\s+|var\s+)?(\w+)\s*:?=\s*(`[^`]*`|"(?:[^"\\\n]|\\.)*")\s*$', re.MULTILINE)
_GO_CASE = re.compile(r'name:\s*"([^"]*)",\s*input:\s*(.*?),\s*want:\s*\[\]string\{(.*?)\}', re.DOTALL)
_GO_FORMAT = re.compile(r"fmt\.Sprintf\((.*)\)\s*$", re.DOTALL)
_GO_TERM = re.compile(r'`[^`]*`|"(?:[^"\\\n]|\\.)*"|\b[A-Za-z_]\w*\b')


def trufflehog(folder: Path) -> Iterator[Sample]:
    """What each detector has to find: the secrets, without the ids and addresses that it tells with them."""
    for path in sorted((folder / _TRUFFLEHOG).glob("*/**/*_test.go")):
        code = path.read_text("utf-8")
        names = {found[1]: _go_text(found[2]) for found in _GO_NAMED.finditer(code)}
        source = path.parent.relative_to(folder / _TRUFFLEHOG).parts[0]
        for case, written, told in _GO_CASE.findall(code):
            text = _go_input(written, names)
            wanted = [_go_value(term, names) for term in _GO_TERM.findall(told)]
            if text is None or "invalid" in case or not wanted or _REPEATED.search(text):
                continue
            if not all(one and one in text and len(one) >= _SHORTEST for one in wanted):
                continue
            spans = {_secret_part(text, text.index(one), text.index(one) + len(one)) for one in wanted if one}
            if marks := sorted((*span, "secret") for span in spans if span):
                yield Sample("trufflehog", source, text, tuple(marks), setting="assigned")


_NO_SECRET_NAME = re.compile(
    r"(?:id|user|user_?name|e?mail|account|domain|host)\\?[\"'`]?(?:>\{\w+ |[ ]?(?:=>|[-:=>])[ ]?[{\"'`]{0,2})$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\.[\w-]+)+(?::[0-9]+)?|[A-Za-z]+")
_CREDENTIALS = re.compile(
    r"://[^/\s@]*:([^/\s@]+)@|(?:password|secret|sig)=([^&;\s]+)|/([A-Za-z0-9_-]{20,})$", re.IGNORECASE
)
_PAIR = re.compile(r"[\w.-]+:([\w-]{20,})")


def _secret_part(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The secret of a value that a detector returns; None for the ids, users, addresses and hosts that it returns with
    the secret that belongs to them."""
    value = text[start:end]
    if _ADDRESS.fullmatch(value) or _NO_SECRET_NAME.search(text, max(0, start - 40), start):
        return None
    if "://" in value or value.startswith("jdbc:"):
        found = _CREDENTIALS.search(text, start, end)
        if found is None or found[3]:
            return found and (start, end)  # a webhook is a secret as a whole
        return found.span(found.lastindex or 0)
    pair = _PAIR.fullmatch(value)
    return (start + pair.start(1), end) if pair else (start, end - value.endswith('"'))


def _go_value(term: str, names: dict[str, str]) -> str | None:
    return _go_text(term) if term[0] in '`"' else names.get(term)


def _go_input(written: str, names: dict[str, str]) -> str | None:
    formatted = _GO_FORMAT.match(written.strip())
    found = [_go_value(term, names) for term in _GO_TERM.findall(formatted[1] if formatted else written)]
    terms = [term for term in found if term is not None]
    if not terms or len(terms) < len(found) or (formatted is None and len(terms) != 1):
        return None
    form, *values = terms
    if formatted is None:
        return form
    parts = form.split("%s")
    return (
        None if len(parts) != len(values) + 1 else "".join(chain.from_iterable(zip(parts, [*values, ""], strict=True)))
    )


_TRUFFLEHOG = "pkg/detectors"


# detect-secrets (Apache-2.0) and Presidio (MIT): the parameters of their tests


def detect_secrets(folder: Path) -> Iterator[Sample]:
    clean, secrets = [], set()
    for path in sorted((folder / "tests/plugins").glob("*_test.py")):
        name = path.stem.removesuffix("_test")
        if name in ("base", "high_entropy_strings", "ip_public"):
            continue
        for text, told in ((text.strip(), told) for text, told in _detect_secrets_cases(path)):
            if isinstance(told, str) and told in text:
                start = text.index(told)
                secrets.add(told)
                yield Sample("detect-secrets", name, text, ((start, start + len(told), "secret"),), setting="assigned")
            elif told is True and not _REPEATED.search(text):
                secrets.add(text)
                yield Sample("detect-secrets", name, text, ((0, len(text), "secret"),), setting="line")
            elif not told and not _REPEATED.search(text):
                clean.append(Sample("detect-secrets", name, text, ()))
    # what one plugin has to leave alone may be the secret of another
    yield from (one for one in clean if not any(secret in one.text for secret in secrets))


def _detect_secrets_cases(path: Path) -> Iterator[tuple[str, Any]]:
    tree = ast.parse(path.read_text("utf-8"))
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = _constant(node.value, names)
            if isinstance(value, str):
                names[node.targets[0].id] = value
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            text, told = (_constant(one, names) for one in node.elts)
            if (
                isinstance(text, str)
                and text
                and told is not Ellipsis
                and (told is None or isinstance(told, bool | str))
            ):
                yield text, told


def _constant(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of a literal, a name, or a literal's `.format(…)`; Ellipsis where it is something else."""
    if isinstance(node, ast.Name):
        return names.get(node.id, ...)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        form, values = _constant(node.func.value, names), [_constant(one, names) for one in node.args]
        return ... if form is ... or ... in values or node.keywords else form.format(*values)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return ...


_PRESIDIO_TESTS = {
    "credit_card": "card", "email": "email", "iban": "iban", "ip": "ip", "mac": "mac", "phone": "phone",
    **dict.fromkeys(
        ("us_ssn", "us_itin", "uk_nhs", "es_nif", "es_nie", "fi_personal_identity_code", "it_fiscal_code", "in_aadhaar",
         "pl_pesel", "au_tfn", "ca_sin", "kr_rrn", "se_personnummer", "tr_national_id", "za_id_number", "de_tax_id"),
        "national_id",
    ),
}  # fmt: skip
_NOBODYS = re.compile(r"http|::|127\.|2001:db8:|203\.0\.113\.")  # loopback and the networks of documents are nobody's
_PRESIDIO_KINDS = {
    "PHONE_NUMBER": "phone", "EMAIL_ADDRESS": "email", "CREDIT_CARD": "card", "IBAN_CODE": "iban",
    "US_SSN": "national_id", "IP_ADDRESS": "ip",
}  # fmt: skip


def presidio(folder: Path) -> Iterator[Sample]:
    for name, kind in _PRESIDIO_TESTS.items():
        path = folder / f"presidio-analyzer/tests/test_{name}_recognizer.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8"))) if path.exists() else ():
            if not isinstance(node, ast.Tuple) or len(node.elts) < 3:
                continue
            text, count, *rest = (_constant(one, {}) for one in node.elts)
            if not isinstance(text, str) or type(count) is not int:
                continue
            spans = next((one for one in rest if _is_spans(one, count)), None)
            if spans is not None and not any(_NOBODYS.match(text[start:end]) for start, end in spans):
                marks = tuple((start, start + len(re.split("[/%]", text[start:end])[0]), kind) for start, end in spans)
                yield Sample("presidio", f"{name}/{re.sub('[0-9]', '0', text)[:24]}", text, marks)


def _is_spans(value: Any, count: int) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == count
        and all(isinstance(one, tuple) and len(one) == 2 and all(type(at) is int for at in one) for one in value)
    )


def presidio_research(folder: Path) -> Iterator[Sample]:
    for path in ("data/synth_dataset_v2.json", "tests/data/generated_large.json"):
        for one in json.loads((folder / path).read_text("utf-8")):
            marks = tuple(
                (span["start_position"], span["end_position"], _PRESIDIO_KINDS[span["entity_type"]])
                for span in one["spans"]
                if span["entity_type"] in _PRESIDIO_KINDS
            )
            yield Sample("presidio-research", f"template {one['template_id']}", one["full_text"], marks)


# Faker: made-up people

_LOCALES = {  # words for a phone, an id and a password
    "en_US": ("phone: {}", "SSN {}", "the password is {}"), "en_GB": ("Tel. {}", "", "password: {}"),
    "de_DE": ("Telefon {}", "", "Das Passwort lautet {}"), "fr_FR": ("Téléphone : {}", "NIR {}", "mot de passe: {}"),
    "es_ES": ("mi teléfono es {}", "DNI {}", "la contraseña es {}"), "it_IT": ("Telefono: {}", "codice fiscale {}", ""),
    "nl_NL": ("telefoonnummer {}", "BSN {}", "wachtwoord: {}"), "pl_PL": ("Telefon: {}", "PESEL {}", "hasło: {}"),
    "pt_BR": ("telefone {}", "CPF {}", "senha: {}"), "sv_SE": ("telefon {}", "personnummer {}", "lösenord: {}"),
    "fi_FI": ("puhelin / phone {}", "henkilötunnus {}", ""), "tr_TR": ("telefon: {}", "TC kimlik no {}", "şifre: {}"),
    "ja_JP": ("電話番号は{}", "", "パスワード: {}"), "zh_CN": ("电话：{}", "身份证 {}", "密码：{}"),
    "ru_RU": ("телефон: {}", "", "пароль: {}"), "ko_KR": ("전화번호는 {}", "주민등록번호 {}", "비밀번호: {}"),
}  # fmt: skip
_PASSWORDS = (
    "password={}", "password: {}", "DB_PASSWORD={}", 'password = "{}"', "the password is {}",
    "mysql --password {} -h db", "pw: {}", "export PGPASSWORD={}",
    '{{"user": "anna", "password": "{}"}}', "password={} user=anna",
)  # fmt: skip
_NUMBERS = (
    "tool call {n9}", "took {n9} ns", '{{"cell": {n10}}}', "offset {n12} of {n13}", "commit {sha1}", "request {uuid4}",
    "checksum md5 {md5}", "sha256:{sha256}", "build {v}", "upgraded to version {v}", "ISBN {isbn13}", "barcode {ean13}",
    "job {n11} finished at {iso}", "{iso} worker[{n5}]: {n10} rows", "user agent {ua}", '{{"id": {n16}, "t": {n13}}}',
    "span {hex16} trace {hex32}", "order no {n10}", "license plate {plate}", "coordinates {lat}, {lon}",
)  # fmt: skip
_EACH, _GB_IBAN = 25, 22


def made_up_people() -> Iterator[Sample]:
    """Values of Faker in sentences, and numbers that are nobody's."""
    try:
        from faker import Faker
    except ImportError:
        raise ConfigError("made-up people need Faker; install it with: pip install Faker") from None
    for locale, (phone, person, password) in _LOCALES.items():
        fake = Faker(locale)
        fake.seed_instance(zlib.crc32(locale.encode()))
        forms: list[tuple[str, str, Callable[[], str]]] = [
            ("email", "write to {} today", fake.email), ("email", "From: <{}>", fake.company_email),
            ("phone", phone, fake.phone_number), ("national_id", person, fake.ssn), ("iban", "IBAN {}", fake.iban),
            ("iban", "pay to {}, please", fake.iban), ("card", "card {}", fake.credit_card_number),
            ("ip", "login from {}", fake.ipv4_public), ("ip", "host {} is down", fake.ipv4_private),
            ("ip", "connected to {}", fake.ipv6), ("mac", "MAC address {}", fake.mac_address),
            ("secret", password, fake.password),
            *(("secret", form, lambda: fake.password(length=14)) for form in _PASSWORDS),  # noqa: B023
        ]  # fmt: skip
        for kind, form, make in forms:
            for at in range(_EACH if form else 0):
                before, after = form.format("\0").split("\0")
                value = make()
                if kind == "iban" and value.startswith("GB") and len(value) != _GB_IBAN:
                    continue  # what Faker makes for countries that have no IBAN is none
                mark = (len(before), len(before) + len(value), kind)
                source = f"{locale}/{form}/{at % 5}"
                yield Sample("faker", source, before + value + after, (mark,), setting="assigned")
        for form in _NUMBERS:
            yield from (Sample("faker", f"{locale}/{form}/{at % 5}", _number(fake, form), ()) for at in range(_EACH))


def _number(fake: Any, form: str) -> str:
    values = {f"n{size}": str(fake.random_number(digits=size, fix_len=True)) for size in (5, 9, 10, 11, 12, 13, 16)}
    values |= {name: getattr(fake, name)() for name in ("sha1", "sha256", "md5", "uuid4", "isbn13", "ean13")}
    return form.format(
        **values, v=fake.numerify("%.##.%.###"), iso=fake.iso8601(), ua=fake.user_agent(), plate=fake.bothify("??-###"),
        hex16=fake.hexify("^" * 16), hex32=fake.hexify("^" * 32), lat=fake.latitude(), lon=fake.longitude(),
    )  # fmt: skip


# Real text

_PIECE = 8000  # characters, about what a tool prints
_MOST = 2_000_000  # bytes of a file that is read


def real_text(folder: Path) -> Iterator[Sample]:
    """The files of a clone, and its log."""
    for name in _git(folder, "ls-files", "-z").split("\0"):
        path = folder / name
        if name and path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST:
            try:
                text = path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
            yield from _pieces("source code", f"{folder.name}/{name}", text)
    yield from _pieces("git log", folder.name, _git(folder, "log", "--no-color", "--stat"))


def _pieces(corpus: str, source: str, text: str) -> Iterator[Sample]:
    start, line = 0, 1
    while start < len(text):
        end = text.find("\n", start + _PIECE) + 1 or len(text)
        yield Sample(corpus, f"{source}:{line}", text[start:end], None)
        line += text.count("\n", start, end)
        start = end


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    if done.returncode:
        raise InputError(
            f"{folder} is no corpus that is known, nor a clone whose files and log can be read: "
            f"{done.stderr.decode(errors='replace').strip()}",
            field="paths",
        )
    return done.stdout.decode("utf-8", errors="replace")


def labelled(path: Path) -> Iterator[Sample]:
    for line in read_labelled(path):
        part = PARTS[2] if line.held_out else PARTS[1]
        yield Sample(path.name, str(line.number), line.text, line.spans, part=part)


_READERS: dict[str, Reader] = {  # what a folder holds, and who reads it
    "config/gitleaks.toml": gitleaks,
    _NOSEYPARKER: noseyparker,
    _KINGFISHER: kingfisher,
    "detect_secrets/plugins": detect_secrets,
    _TRUFFLEHOG: trufflehog,
    "word_in_path.json": creddata,
    "presidio-analyzer/tests": presidio,
    "data/synth_dataset_v2.json": presidio_research,
    ".git": real_text,
}


def read_corpus(path: Path) -> Iterator[Sample]:
    """The samples of a clone or of a file of labelled lines."""
    if path.is_file():
        return labelled(path)
    if not path.is_dir():
        raise InputError(
            f"{path} is neither a folder nor a file; name a clone or a file of labelled lines", field="paths"
        )
    for inside, reader in _READERS.items():
        if (path / inside).exists():
            return reader(path)
    raise InputError(
        f"{path} must be a clone of gitleaks, Nosey Parker, Kingfisher, TruffleHog, detect-secrets, CredData, Presidio "
        "or presidio-research, or any other clone, whose files and log are then read for false alarms: it has no .git",
        field="paths",
    )
