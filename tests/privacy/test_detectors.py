"""What is found in a text and what is not, one behaviour at a time. Values that look like keys are made when needed."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rmem_bench.privacy.corpora import labelled
from rmem_bench.privacy.quality import evaluate
from rmem_bench.privacy.samples import MAKERS, read_labelled

from rmem.privacy import KINDS, PrivacyPolicy, scan
from rmem.privacy.findings import Finding, merge_overlaps

LABELLED = Path(__file__).parent / "labelled.tsv"


def made(maker: str, seed: int = 0) -> str:
    return MAKERS[maker](Random(seed))


def kinds(text: str) -> list[tuple[str, str]]:
    return [(one.kind, text[one.start : one.end]) for one in scan(text)]


# The labelled lines


def test_the_labelled_file_is_large_and_half_of_it_is_look_alikes():
    lines = list(read_labelled(LABELLED))
    clean = sum(not line.spans for line in lines)
    assert len(lines) >= 500
    assert 0.45 <= clean / len(lines) <= 0.55
    assert {kind for line in lines for _, _, kind in line.spans} == set(KINDS)
    assert 0.3 < sum(line.held_out for line in lines) / len(lines) < 0.35


@pytest.mark.parametrize("part", ["development", "test", "all"])
def test_every_kind_of_the_labelled_lines_is_found(part):
    result = evaluate(labelled(LABELLED), part=part)
    found, missed, extra = (
        sum(kind[what] for kind in result["by_kind"].values()) for what in ("found", "missed", "extra")
    )
    assert found / (found + missed) >= 0.95, result["wrong"]
    assert found / (found + extra) >= 0.98, result["wrong"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_is_found_badly(kind):
    rates = evaluate(labelled(LABELLED), part="all")["by_kind"][kind]
    assert rates["precision"] >= 0.95
    assert rates["recall"] >= 0.85


@pytest.mark.parametrize("maker", sorted(name for name in MAKERS if name.startswith(("card", "iban", "private_key"))))
def test_made_up_numbers_and_keys_are_found_whatever_the_seed(maker):
    for seed in range(20):
        value = made(maker, seed)
        assert kinds(f"see {value}") == [(maker.split(":")[0], value)]


BY_CONTEXT = (
    "aws_secret",
    "azure_storage",
    "b64_32",
    "b64_40",
    "b64_pw",
    "basic",
    "django",
    "hex",
    "wordpress",
    "discord",
)


@pytest.mark.parametrize(
    "maker", sorted(m for m in MAKERS if m.startswith("secret") and not m[7:].startswith(BY_CONTEXT))
)
def test_keys_of_providers_are_found_without_any_context(maker):
    for seed in range(20):
        value = made(maker, seed)
        assert kinds(f"see {value} there") == [("secret", value)]


# Spans


def test_offsets_are_right_behind_any_characters():
    text = "🦊 İstanbul ﬁn 𝔘 é: anna@example.org, Passwort: Herbst!77x"
    assert kinds(text) == [("email", "anna@example.org"), ("secret", "Herbst!77x")]


def test_the_longest_of_overlapping_findings_wins_and_no_end_is_left_over():
    inside = Finding(5, 9, "email", "a", "a")
    outside = Finding(2, 12, "secret", "b", "b")
    beyond = Finding(10, 15, "phone", "c", "c")
    assert merge_overlaps([inside, outside]) == [outside]
    joined = merge_overlaps([outside, beyond])
    assert [(one.start, one.end, one.kind) for one in joined] == [(2, 15, "secret")]


def test_of_two_findings_with_one_span_the_more_telling_kind_is_kept():
    same = [Finding(0, 5, "phone", "p", "x"), Finding(0, 5, "card", "c", "x")]
    assert [one.kind for one in merge_overlaps(same)] == ["card"]


def test_a_token_in_a_url_with_a_password_is_one_finding():
    token = made("secret:gitlab")
    text = f"https://oauth2:{token}@gitlab.example.com/a.git"
    assert kinds(text) == [("url_credentials", f"oauth2:{token}")]


def test_a_password_with_an_at_sign_is_covered_to_its_end():
    assert kinds("postgres://app:p@ss1@db/main") == [("url_credentials", "app:p@ss1")]


@pytest.mark.parametrize("line", ["\n", "\\n", "\r\n", "\\r\\n"])
def test_a_private_key_is_one_finding_whatever_its_line_ends(line):
    key = made("private_key:rsa").replace("\n", line)
    assert kinds(f'"key": "{key}"') == [("private_key", key)]


def test_a_private_key_in_pieces_of_code_is_covered():
    key = '" +\n  "'.join(made("private_key:ec").splitlines())
    assert kinds(f'x = "{key}"') == [("private_key", key)]


def test_two_private_keys_are_two_findings():
    one, two = made("private_key:rsa", 1), made("private_key:ec", 2)
    assert kinds(f"{one}\n{two}") == [("private_key", one), ("private_key", two)]


def test_the_mention_of_a_private_key_is_none():
    mark = "-----BEGIN " + "PRIVATE KEY-----"
    assert kinds(f"a PEM file starts with {mark} and so on") == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("phone: +49 30 901820 12:30", "+49 30 901820"),
        ("tel 030 901820, Zimmer 12", "030 901820"),
        ("(call 212-555-0143)", "212-555-0143"),
    ],
)
def test_a_phone_number_ends_where_it_ends(text, value):
    assert kinds(text) == [("phone", value)]


@pytest.mark.parametrize(("text", "found"), [("电话是13812345678", "phone"), ("卡号4111111111111111。", "card")])
def test_a_number_may_follow_a_script_without_blanks(text, found):
    assert [one.kind for one in scan(text)] == [found]


def test_only_the_kinds_that_are_asked_for_are_found():
    text = "anna@example.org 203.0.112.9"
    assert [one.kind for one in scan(text, ("ip",))] == ["ip"]


def test_a_finding_does_not_show_its_value():
    (found,) = scan("anna@example.org")
    assert "anna" not in repr(found)


@pytest.mark.parametrize(
    "form",
    [
        "PGPASSWORD={} psql -h db", 'sshpass -p "{}" ssh host', "mysql -uroot -p{} shop", "redis-cli -h r -a {} ping",
        '<add key="DbPassword" value="{}" />', "<password>{}</password>", "Enter password for bob: {}",
        "Passwort für das WLAN: {}", 'os.getenv("DB_PASSWORD", "{}")', "{{'password': '{}', 'user': 'x'}}", "pw: {}",
        "login=bob&password={}&x=1", "set DB_PASS={}", "user: bob\npassword: {}\n", "password: str = '{}'",
    ],
)  # fmt: skip
def test_a_password_is_found_in_the_ways_that_tools_write_it(form):
    assert kinds(form.format("Ab12cd34!")) == [("secret", "Ab12cd34!")]


def test_a_login_to_a_registry_is_found():
    value = made("secret:basic")
    assert kinds(f'{{"auths": {{"registry.example.com": {{"auth": "{value}"}}}}}}') == [("secret", value)]


@pytest.mark.parametrize(
    "text",
    [
        "**deps**: update V8 to 10.2.154.19", "Ed25519 is 1.3.101.112", "(C) Endless Mobile, 2017-2022",
        "raise TypeError(\"Cannot pass 'drawstyle' here\")", 'user_pass = "%s:%s"', '["passwd", "wachtwoord"]',
        "redis://[[username]:[password]]@host", "https://chromestatus.com/feature/5068609911521280",
    ],
)  # fmt: skip
def test_what_other_projects_write_is_left_alone(text):
    assert kinds(text) == []


# Whatever the text


POLICY = PrivacyPolicy.default()
PIECES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(sorted(MAKERS)).map(made),
    st.sampled_from(
        ["password=", "token: ", "\n", '"', "@", "://", "::", "+49 ", "[secret]", "[email:", "-", " ", "\\n", "İ"]
    ),
    st.from_regex(r"[0-9][0-9 .:/-]{5,20}", fullmatch=True),
)


@settings(max_examples=5 * settings.default.max_examples)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_cleaning_never_fails_and_changes_nothing_the_second_time(text):
    findings = POLICY.find(text)
    assert all(0 <= one.start < one.end <= len(text) for one in findings)
    assert all(left.end <= right.start for left, right in pairwise(findings))
    clean = POLICY.clean(text)
    assert clean == text or findings
    assert POLICY.clean(clean) == clean


@pytest.mark.parametrize("action", ["mask", "hash", "encrypt"])
def test_cleaning_the_labelled_lines_twice_is_cleaning_them_once(action):
    policy = PrivacyPolicy(
        actions=dict.fromkeys(KINDS, action), key=b"k" * 32, encrypt=lambda value: value.encode().hex()
    )
    for line in read_labelled(LABELLED):
        once = policy.clean(line.text)
        assert policy.clean(once) == once


HOSTILE = (
    "a", "1 ", "password=", "password: ", "a@", "::", "a.b-", "https://a:", "://a:b@", "+1", "1:", "1.1.", "AB12 ",
    "-u a:", "Cookie: ", "eyJaaaaaaaaa.", "sk-", "phone 030 901 ", '"', "[secret]x", "((((1", "aa:",
    "login a password ",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_text_made_to_be_slow_is_read_in_time(piece):
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    scan(text)
    assert time.process_time() - start < 15  # most take a tenth of a second; a pattern that runs wild takes minutes


PASSWORD = "Wint3r!sComing"
HEX = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
BASE64 = "S8ii67l3Gd1Ba69az78iP9UksewzhjvUfh1DIuDs30w="


@pytest.mark.parametrize(
    "form",
    [
        "net use Z: \\\\srv01\\share {} /user:CORP\\anna",
        "psexec \\\\host1 -u CORP\\anna -p {} cmd.exe",
        "docker login -u anna -p {} registry.example.com",
        "ldapsearch -x -D cn=admin,dc=x -w {} -b dc=x",
        "smbclient //srv/share -U anna%{}",
        "sqlcmd -S srv -U sa -P {} -Q x",
        "htpasswd -b .htpasswd anna {}",
        'ConvertTo-SecureString "{}" -AsPlainText -Force',
        "echo {} | sudo -S apt update",
        "keytool -list -keystore k.jks -storepass {}",
        "username anna password 0 {}",
        'network={{ssid="x" psk="{}"}}',
        'new NetworkCredential("anna@example.org", "{}")',
    ],
)
def test_a_password_is_found_where_a_program_takes_one(form):
    text = form.format(PASSWORD)
    assert [text[one.start : one.end] for one in scan(text, ("secret",))] == [PASSWORD]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Server=host;Port=5432;User Id=anna;Password=sunshine;Database=db;", "sunshine"),
        ("export DB_PASSWORD=sunshine  # of the test server\n", "sunshine"),
        ("user = aladdin\n# of the cave\npassword = open_sesame\n", "open_sesame"),
        (
            "Use the following password to go on:\n\nbd9627decc6346d780b3b6ab6ea8fe1f\n",
            "bd9627decc6346d780b3b6ab6ea8fe1f",
        ),
        ("if password == 'sunshine':", "sunshine"),
        (
            "SharedAccessKey=S8ii67l3Gd1Ba69az78iP9UksewzhjvUfh1DIuDs30w=",
            "S8ii67l3Gd1Ba69az78iP9UksewzhjvUfh1DIuDs30w=",
        ),
        (
            'variable "api_token" {\n  default = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"\n}',
            "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
        ),
        (f"ALGOLIA_ADMIN_KEY={HEX}", HEX),
    ],
)
def test_a_password_of_plain_words_is_found_where_nothing_else_can_stand(text, value):
    assert [text[one.start : one.end] for one in scan(text, ("secret",))] == [value]


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=${DB_PASSWORD}",
        "DB_PASSWORD=db_password",
        "connect(PASSWORD=password)",
        "user = session_user\npassword = form_password\n",
        "if password == 'required':",
        "Server=host;User Id=anna;Password={password};",
        "docker run -p 127.0.0.1:8080:80 nginx1",
        "docker compose -p project1 up",
        "github://pallets:click@1d038f2/src",
        '"parse-passwd": "^1.0.0"',
        "s3_secret_access_key = 's3-secret-access-key'",
        "dynamodb://aws_access_key_id:aws_secret_access_key@region:port/table",
        "The password rules are:\n\nPass-phrases-of-words\n",
    ],
)
def test_names_of_values_and_templates_are_left_alone(text):
    assert scan(text, ("secret", "url_credentials")) == []
