"""Words as people write them: code, names, hashes, many languages, quotes and minus signs. What is written is found."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem import Brain
from rmem.errors import InputError
from rmem.index import analyser
from rmem.index.analyser import analyse, question_words

FILLER = (
    "a quiet afternoon by the lake",
    "le chat dort sur la chaise",
    "der Hund schläft unter dem Tisch",
    "the meeting was moved to Thursday",
)


def found(question, *texts, mode="lexical", filler=FILLER, **more):
    """The texts that a question finds among others, best first."""
    with Brain(":memory:", embedder="static" if mode != "lexical" else "none") as brain:
        brain.remember_many([{"text": text} for text in (*filler, *texts)])
        return [hit.text for hit in brain.recall(question, k=20, mode=mode, **more)]


def first(question, *texts):
    """The one text that a question finds before all others."""
    hits = found(question, *texts)
    return hits[0] if hits else None


IDENTIFIERS = {
    "switched transform_parquet to pyarrow": [
        "transform_parquet",
        "transform",
        "parquet",
        "TRANSFORM_PARQUET",
        "pyarrow",
    ],
    "the job in etl/transform.py was killed": ["etl/transform.py", "transform.py", "transform", "etl", "transform py"],
    "raises MemoryError at night": ["MemoryError", "memoryerror", "memory error", "memory", "error"],
    "HTTPServerError in handler": ["HTTPServerError", "httpservererror", "server error", "http", "HTTP"],
    "call getUserById first": ["getUserById", "user", "getuserbyid", "get user by id"],
    "java.lang.NullPointerException at Foo.java:42": [
        "NullPointerException",
        "java.lang.NullPointerException",
        "null pointer",
        "Foo.java",
        "Foo.java:42",
    ],
    r"lost D:\work\bob\notes.txt yesterday": ["notes.txt", r"D:\work\bob\notes.txt", "notes", "bob"],
    "std::unordered_map is slow here": ["std::unordered_map", "unordered_map", "unordered", "map"],
    "pinned numpy==1.26.4 for now": ["numpy", "1.26.4", "numpy==1.26.4", "1.26"],
    "upgraded to v2.10.3-rc1": ["v2.10.3-rc1", "2.10.3", "2.10", "v2.10", "v2.10.3"],
    "requires Python 3.11 or newer": ["3.11", "python 3.11", "Python"],
    "see https://example.org/docs/install.html?x=1": ["example.org", "install.html", "docs", "install"],
    "write to jane.doe@example.com": ["jane.doe@example.com", "jane", "doe", "example.com"],
    "set MAX_RETRIES=5 in .env.production": ["MAX_RETRIES", "max_retries", "retries", ".env.production", "production"],
    "the kebab-case-name of the service": ["kebab-case-name", "kebab", "case name"],
    "port 8080 of host db-01.internal": ["8080", "db-01.internal", "db-01", "internal"],
    "written in C++ and C# and Rust": ["C++", "C#", "rust"],
    "error E1234: ORA-00942 from the driver": ["E1234", "ORA-00942", "00942", "ora"],
    "cost 1,250,000 dollars": ["1250000", "1,250,000"],
    "the issue #4711 is closed": ["4711", "#4711"],
    "class _PrivateThing2 in módulo": ["_PrivateThing2", "private", "modulo"],
    "git checkout feature/JIRA-123-fix-login": ["JIRA-123", "feature/JIRA-123-fix-login", "login"],
    "at 10.0.0.17:5432 refused": ["10.0.0.17", "5432", "10.0.0.17:5432"],
    "uuid 550e8400-e29b-41d4-a716-446655440000 is wrong": ["550e8400-e29b-41d4-a716-446655440000", "550e8400"],
}


@pytest.mark.parametrize(
    ("text", "question"), [(text, question) for text, questions in IDENTIFIERS.items() for question in questions]
)
def test_identifiers_paths_and_versions_are_found_whole_and_in_parts(text, question):
    assert first(question, text) == text


def test_a_whole_identifier_ranks_before_its_parts():
    whole, parts = "we renamed load_user_table", "load the user into a table of the user"
    assert found("load_user_table", parts, whole)[0] == whole


HASH = "3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b"


@pytest.mark.parametrize("size", [7, 8, 9, 10, 11, 12, 16, 40])
def test_a_commit_is_found_by_the_beginning_of_its_hash(size):
    text = f"reverted {HASH} because of the outage"
    assert found(HASH[:size], text, "reverted 9999999999999999999999999999999999999999 too") == [text]
    assert found(HASH[:size].upper(), text) == [text]


def test_the_middle_of_a_hash_finds_nothing():
    assert found(HASH[5:15], f"reverted {HASH}") == []


LANGUAGES = {
    "German": {
        "Die Datenbanken wurden gestern auf den neuen Server in Köln verschoben": [
            "Datenbank", "Datenbanken", "Server", "Köln", "Koln", "verschoben", "KÖLN",
        ],
        "Wir haben die Straße vor dem Haus wegen der Häuser gesperrt": ["Straße", "Strasse", "Häuser", "hauser"],
    },
    "French": {
        "Les élèves ont mangé des crêpes à l'école pendant la fête": ["élèves", "eleves", "crêpe", "crepes", "école"],
    },
    "Spanish": {
        "Mañana viajamos a España para celebrar el cumpleaños de los niños": ["mañana", "manana", "España", "niño"],
    },
    "Italian": {"Gli studenti hanno già letto i libri della biblioteca": ["studente", "libri", "biblioteca", "gia"]},
    "Portuguese": {"As crianças não gostam das canções daquela região": ["crianças", "criancas", "canções", "região"]},
    "Dutch": {"De kinderen hebben gisteren in de tuin met de honden gespeeld": ["kinderen", "honden", "gespeeld"]},
    "Swedish": {"Barnen åkte till sjön för att bada på sommaren": ["sjön", "sjon", "sommaren", "bada"]},
    "Russian": {"Вчера мы обсуждали новые книги в библиотеке": ["книги", "книга", "библиотеке", "библиотека", "КНИГИ"]},
    "Greek": {"Η γάτα κοιμάται στον κήπο δίπλα στη θάλασσα": ["γάτα", "γατα", "ΓΑΤΑ", "θάλασσα", "κήπο"]},
    "Turkish": {
        "Çocuklar İstanbul'da bahçede oynuyor ve gülüyor": ["çocuklar", "cocuklar", "İstanbul", "istanbul", "bahçede"],
        "Yarın ışık festivali için şehre gidiyoruz": ["ışık", "şehre", "sehre", "festivali"],
    },
    "Chinese": {"我们昨天在北京大学讨论了新的数据库": ["北京大学", "北京", "数据库", "讨论", "京"]},
    "Japanese": {"昨日、東京タワーでデータベースの話をしました": ["東京", "タワー", "東京タワー", "データベース"]},
    "Thai": {"เมื่อวานฉันกินข้าวผัดกับเพื่อนที่กรุงเทพ": ["ข้าวผัด", "เพื่อน", "กรุงเทพ"]},
    "Arabic": {"قرأنا الكتاب الجديد في المكتبة أمس": ["الكتاب", "كتاب", "المكتبة", "مكتبة", "الجديد"]},
    "Hebrew": {"קראנו את הספר החדש בספרייה אתמול": ["הספר", "החדש", "בספרייה"]},
    "Hindi": {"कल हमने पुस्तकालय में नई किताब पढ़ी": ["किताब", "पुस्तकालय", "पढ़ी"]},
    "Korean": {"어제 우리는 학교에서 새로운 데이터베이스를 배웠다": ["학교", "학교에서", "데이터베이스"]},
    "Polish": {"Wczoraj dzieci bawiły się w ogrodzie koło łąki": ["dzieci", "ogrodzie", "łąki"]},
    "Vietnamese": {"Hôm qua chúng tôi ăn phở ở Hà Nội": ["phở", "pho", "Hà Nội"]},
    "Ukrainian": {"Вчора ми їли смачний борщ у Києві": ["борщ", "Києві", "їли"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "question"),
    [
        pytest.param(text, question, id=f"{language}-{number}")
        for language, texts in LANGUAGES.items()
        for text, questions in texts.items()
        for number, question in enumerate(questions)
    ],
)
def test_words_of_many_languages_are_found(text, question):
    others = [other for texts in LANGUAGES.values() for other in texts if other != text]
    assert first(question, text, *others) == text


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("किला", "किला बहुत पुराना है", "काल बीत गया और कल आया"),
        ("ข้าวผัด", "ฉันกินข้าวผัด", "ฉันขายขวดและผ้า"),
        ("北京大学", "他在北京大学工作", "大学不在北京"),
        ("كتب", "كتب الطالب الدرس", "تكبير الصورة"),
        ("학생", "학생이 왔다", "생학교가 있다"),
        ("東京都", "東京都に住む", "京都の東に住む"),
    ],
)
def test_a_word_is_more_than_its_letters(question, right, wrong):
    assert found(question, wrong, right)[0] == right


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("word", ["résumé", "Köln", "señor", "Ångström", "Việt", "한국어", "が"])
def test_the_form_in_which_an_accent_is_written_does_not_matter(word, form):
    text = unicodedata.normalize(form, f"please keep {word} here")
    for asked in ("NFC", "NFD"):
        assert found(unicodedata.normalize(asked, word), text) == [text]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("naïve façade", "naive facade"),
        ("Zoë", "zoe"),
        ("smörgåsbord", "smorgasbord"),
        ("ﬁnal ﬂight", "final flight"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("Москва ёлка", "елка"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
    ],
)
def test_accents_width_and_points_are_optional(written, asked):
    text = f"{written} 42"
    assert found(asked, text)[0] == text
    assert found(written, f"{asked} 42")[0] == f"{asked} 42"


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("running shoes", "run"),
        ("the boxes arrived", "box"),
        ("she studies law", "study"),
        ("our children's toys", "toy"),
        ("don't panic", "panic"),
        ("it’s Anna’s bicycle", "anna"),
        ("O'Brien called", "o'brien"),
        ("CATS", "cat"),
    ],
)
def test_english_words_are_found_in_their_other_forms(written, asked):
    assert first(asked, written) == written


# Quotes and minus signs


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "vector"])
def test_what_must_be_said_is(mode):
    exact, apart = "the row group was too large", "a group of people stood in a large row"
    assert found("row group", exact, apart, mode=mode, must=["row group"]) == [exact]
    assert found("large", exact, apart, mode=mode, must="ROW   Group") == [exact]
    assert found("row group", exact, apart, mode=mode, must=["group row"]) == []
    assert found("large", exact, apart, mode=mode, must=["row", "people"]) == [apart]


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "vector"])
def test_what_must_not_be_said_is_not(mode):
    csv, parquet = "wrote the table as csv", "wrote the table as parquet"
    assert csv not in found("table", csv, parquet, mode=mode, must_not=["CSV"])
    assert parquet in found("table", csv, parquet, mode=mode, must_not=["csv"])
    assert found("table", csv, parquet, mode=mode, must_not=["csv", "parquet"], filler=()) == []
    with_it, without = "alpha beta gamma", "alpha gamma beta"
    assert found("alpha", with_it, without, mode=mode, must_not=["beta gamma"], filler=()) == [without]


@pytest.mark.parametrize(
    ("excluded", "stays", "goes"),
    [
        ("staging", "deploy to production", "deploy to staging"),
        ("foo_bar", "deploy foo alone", "deploy with foo_bar"),
        ("etl/load.py", "deploy etl/transform.py", "deploy etl/load.py"),
        ("v2.1.0", "deploy v2.2.0", "deploy v2.1.0"),
        ("北京", "deploy 我在上海学习", "deploy 我在北京学习"),
        ("kebab-case", "deploy with a kebab", "deploy in kebab-case"),
    ],
)
def test_what_is_excluded_goes_and_what_merely_looks_like_it_stays(excluded, stays, goes):
    assert found("deploy", stays, goes, must_not=[excluded]) == [stays]


@pytest.mark.parametrize("given", [[""], ["--"], [3], "!!"])
def test_what_must_be_said_has_to_be_words(given):
    with pytest.raises(InputError, match="must"):
        found("deploy", must=given)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("pip install -e fails", "pip install -e fails with a legacy setup.py"),
        ('KeyError: "user_id"', "the session lost user_id after login: KeyError"),
        ('pytest -k "not slow" -q', "run pytest with -k and -q to see what hangs"),
        ("-lake", "a boat upon the lake"),
        ('"row group" -csv', "csv files have no row group"),
    ],
)
@pytest.mark.parametrize("mode", ["lexical", "hybrid", "vector"])
def test_nothing_in_a_question_is_an_operator(question, text, mode):
    assert text in found(question, text, mode=mode)


def test_what_is_quoted_is_raised_and_removes_nothing():
    exact, apart = "the row group was too large", "a row of a group was large"
    assert found('large "row group"', apart, exact, mode="hybrid")[:2] == [exact, apart]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ('"北京大学"', "我在北京大学学习"),
        ('"東京タワー"', "昨日東京タワーに登った"),
        ('"chapter 5"', "read chapter-5 tonight"),
        ('"war nicht"', "die Katze war nicht da und die Maus ist weg"),
        ('"it department"', "ask the IT department"),
        ('"IT department"', "ask the it department"),
        ('"café noir"', "un cafe noir, please"),
        ('"to be or not to be"', "he said to be or not to be"),
        ('"etl/transform.py"', "killed in etl/transform.py again"),
        ('"1,000 rows"', "about 1,000 rows were lost"),
        ('"don\'t panic"', "please don’t panic now"),
        ('"O\'Brien called"', "then O'Brien called again"),
    ],
)
def test_phrases_of_every_kind_are_found(question, text):
    must = question.strip('"')
    assert found(text, text, "something else", must=[must]) == [text]


@pytest.mark.parametrize("question", ['"unclosed quote', 'a " b', '""', '" "', '"', "-", '-""', '"" -', "“", '-"x'])
def test_broken_quotes_and_minus_signs_are_harmless(question):
    for mode in ("lexical", "hybrid", "vector"):
        assert isinstance(found(question, "a quote", mode=mode), list)


# Odd questions


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "vector"])
def test_a_question_of_function_words_only_is_harmless(mode):
    hits = found("who is it that was and of the", "he who is it", mode=mode)
    assert isinstance(hits, list)
    if mode == "lexical":
        assert hits == []


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "vector"])
def test_a_hundred_kilobytes_are_a_question(mode):
    log = "\n".join(
        f"2026-05-01 12:00:{n % 60:02} ERROR worker-{n} lost connection to 10.0.{n % 256}.1" for n in range(1700)
    )
    assert len(log) > 100_000
    hits = found(log, "worker-7 lost its connection", mode=mode)
    assert hits[0] == "worker-7 lost its connection"


def test_pasted_text_full_of_quotes_is_read_as_words():
    """JSON and logs quote everything; nobody means twenty phrases that must all occur."""
    text = "worker 7 lost its connection to the database"
    log = json.dumps([{"level": "error", "message": f"worker {n} lost connection", "host": "db-1"} for n in range(20)])
    for question in (log, log * 60, "\n".join(f'- item "{n}" -flag{n}: connection' for n in range(200))):
        for mode in ("lexical", "hybrid"):
            assert text in found(question, text, mode=mode)


def test_one_endless_word_is_a_question():
    for question in ("a" * 100_000, "字" * 30_000, "a.b" * 30_000, "-" * 100_000, '"' * 100_000, "é" * 50_000):
        assert isinstance(found(question, "a b"), list)


@pytest.mark.parametrize("question", ["🚀", "😀 launch", "👩‍👩‍👧", "🏳️‍🌈", "❤️"])
def test_emoji_are_harmless_and_do_not_hide_the_words_beside_them(question):
    text = f"{question} the launch went well"
    for mode in ("lexical", "hybrid", "vector"):
        hits = found(f"{question} launch", text, mode=mode)
        assert hits[0] == text


def test_a_word_is_counted_once_however_many_forms_match():
    """A text in another language keeps stems and words; a question word counts the best of them, not the sum."""
    with Brain(":memory:", embedder="none") as brain:
        brain.remember("die Bücher sind auf dem Tisch und die Stühle sind weg")
        [hit] = brain.recall("Bücher", mode="lexical", explain=True)
        assert len(hit.explanation.words) == 1


def test_the_date_of_a_memory_is_searchable_with_its_text():
    with Brain(":memory:", embedder="none") as brain:
        brain.remember("went to the dentist", when="2023-05-07 12:00")
        brain.remember("went to the market", when="2022-03-01 12:00")
        assert [hit.text for hit in brain.recall("May 2023", mode="lexical")] == ["went to the dentist"]


def test_what_is_analysed_twice_is_the_same():
    for text in (*IDENTIFIERS, *[text for texts in LANGUAGES.values() for text in texts]):
        first, second = analyse(text), analyse(text)
        assert first.hashes.tolist() == second.hashes.tolist()
        assert first.words == second.words
        assert len(set(first.hashes.tolist())) == first.hashes.size
        assert all(word.text for word in question_words(text))


@given(st.from_regex(r"[0-9]{1,11}(\.[0-9]{1,11})?", fullmatch=True))
def test_a_number_has_the_terms_of_any_code(number):
    """Numbers are read on a way of their own, because states are full of them."""
    whole_and_parts = dict.fromkeys(word for word, _ in analyser._code_terms(number, "english"))
    assert list(analyse(number).words) == list(whole_and_parts)
