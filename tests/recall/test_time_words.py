"""Time words in questions: what they mean on one fixed afternoon, and what they do to a recall."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from rmem import Brain
from rmem.timewords import time_span

NOW = datetime(2026, 5, 20, 15, 30)  # a Wednesday


def d(text):
    return datetime.fromisoformat(text)


MEANINGS = {
    "what did we decide yesterday?": ("2026-05-19", "2026-05-20"),
    "Yesterday’s build": ("2026-05-19", "2026-05-20"),
    "the day before yesterday": ("2026-05-18", "2026-05-19"),
    "what broke today": ("2026-05-20", "2026-05-21"),
    "this morning": ("2026-05-20T05:00", "2026-05-20T12:00"),
    "what about tonight": ("2026-05-20T18:00", "2026-05-21T04:00"),
    "who called last night": ("2026-05-19T18:00", "2026-05-20T04:00"),
    "yesterday morning": ("2026-05-19T05:00", "2026-05-19T12:00"),
    "on Monday in the afternoon": ("2026-05-18T12:00", "2026-05-18T18:00"),
    "on the evening of 7 July, 2023": ("2023-07-07T17:00", "2023-07-07T23:00"),
    "what happened over the weekend": ("2026-05-16", "2026-05-18"),
    "this past weekend": ("2026-05-16", "2026-05-18"),
    "the week before last": ("2026-05-04", "2026-05-11"),
    "last week Sunday": ("2026-05-17", "2026-05-18"),
    "Tuesday of last week": ("2026-05-12", "2026-05-13"),
    "what did I do Friday": ("2026-05-15", "2026-05-16"),
    "Thursday, 7 May 2026": ("2026-05-07", "2026-05-08"),
    "from Friday to Monday": ("2026-05-15", "2026-05-19"),
    "last quarter": ("2026-01-01", "2026-04-01"),
    "in Q1": ("2026-01-01", "2026-04-01"),
    "Q3 2025": ("2025-07-01", "2025-10-01"),
    "the third quarter of last year": ("2025-07-01", "2025-10-01"),
    "H1 2016": ("2016-01-01", "2016-07-01"),
    "last summer": ("2025-06-01", "2025-09-01"),
    "in winter 2022": ("2022-12-01", "2023-03-01"),
    "in the 1990s": ("1990-01-01", "2000-01-01"),
    "in the 80s": ("1980-01-01", "1990-01-01"),
    "in early 2023": ("2023-01-01", "2023-05-03"),
    "at the end of March": ("2026-03-22", "2026-04-01"),
    "mid-May 2024": ("2024-05-11", "2024-05-22"),
    "the first half of 2024": ("2024-01-01", "2024-07-02"),
    "earlier this month": ("2026-05-01", "2026-05-20T15:30"),
    "the first week of October 2016": ("2016-10-03", "2016-10-10"),
    "the last week of 2015": ("2015-12-28", "2016-01-04"),
    "the first Friday of May": ("2026-05-01", "2026-05-02"),
    "the week of 16 September 2025": ("2025-09-15", "2025-09-22"),
    "the week starting May 4": ("2026-05-04", "2026-05-11"),
    "1 month and 21 days ago": ("2026-03-30", "2026-03-31"),
    "on 21/04/2016": ("2016-04-21", "2016-04-22"),
    "on 4/22/2016": ("2016-04-22", "2016-04-23"),
    "on 13.5.2015": ("2015-05-13", "2015-05-14"),
    "on 4/22": ("2026-04-22", "2026-04-23"),
    "in 2016/11": ("2016-11-01", "2016-12-01"),
    "2016 June": ("2016-06-01", "2016-07-01"),
    "the twenty-second of June 2017": ("2017-06-22", "2017-06-23"),
    "what did we do on the 15th?": ("2026-05-15", "2026-05-16"),
    "from 4 to 22 January 1995": ("1995-01-04", "1995-01-23"),
    "May 4-8": ("2026-05-04", "2026-05-09"),
    "between April 22 and now": ("2026-04-22", "2026-05-20T15:30:01"),
    "January 12, 2016 - 01/22/2016": ("2016-01-12", "2016-01-23"),
    "at Christmas": ("2025-12-25", "2025-12-26"),
    "on Thanksgiving 2010": ("2010-11-25", "2010-11-26"),
    "last week": ("2026-05-11", "2026-05-18"),
    "this week": ("2026-05-18", "2026-05-25"),
    "last weekend": ("2026-05-16", "2026-05-18"),
    "last month": ("2026-04-01", "2026-05-01"),
    "the previous month": ("2026-04-01", "2026-05-01"),
    "this month": ("2026-05-01", "2026-06-01"),
    "last year": ("2025-01-01", "2026-01-01"),
    "this year": ("2026-01-01", "2027-01-01"),
    "3 days ago": ("2026-05-17", "2026-05-18"),
    "one day ago": ("2026-05-19", "2026-05-20"),
    "two weeks ago": ("2026-05-02", "2026-05-10"),
    "a month ago": ("2026-04-01", "2026-05-01"),
    "two months ago": ("2026-03-01", "2026-04-01"),
    "six months ago": ("2025-11-01", "2025-12-01"),
    "a year ago": ("2025-01-01", "2026-01-01"),
    "ten years ago": ("2016-01-01", "2017-01-01"),
    "an hour ago": ("2026-05-20T13:30", "2026-05-20T15:30"),
    "30 minutes ago": ("2026-05-20T14:59", "2026-05-20T15:01"),
    "what happened in March": ("2026-03-01", "2026-04-01"),
    "what happened in december": ("2025-12-01", "2026-01-01"),
    "what happened in May 2023": ("2023-05-01", "2023-06-01"),
    "in 2022": ("2022-01-01", "2023-01-01"),
    "during 2022": ("2022-01-01", "2023-01-01"),
    "last March": ("2026-03-01", "2026-04-01"),
    "last December": ("2025-12-01", "2026-01-01"),
    "last May": ("2025-05-01", "2025-06-01"),
    "on 7 May 2023": ("2023-05-07", "2023-05-08"),
    "on May 7, 2023": ("2023-05-07", "2023-05-08"),
    "on May 7th 2023": ("2023-05-07", "2023-05-08"),
    "on the 7th of May 2023": ("2023-05-07", "2023-05-08"),
    "the meeting of 2023-05-07": ("2023-05-07", "2023-05-08"),
    "on 7 May": ("2026-05-07", "2026-05-08"),
    "on 7 June": ("2025-06-07", "2025-06-08"),
    "on Sept. 3, 2021": ("2021-09-03", "2021-09-04"),
    "3rd of sept 2021": ("2021-09-03", "2021-09-04"),
    "on Feb 29": ("2024-02-29", "2024-03-01"),
    "29 February 2024": ("2024-02-29", "2024-03-01"),
    "on Monday": ("2026-05-18", "2026-05-19"),
    "on Tuesday": ("2026-05-19", "2026-05-20"),
    "on Wednesday": ("2026-05-13", "2026-05-14"),
    "last Friday": ("2026-05-15", "2026-05-16"),
    "on Sunday": ("2026-05-17", "2026-05-18"),
    "between March and June": ("2025-03-01", "2025-07-01"),
    "between January and April": ("2026-01-01", "2026-05-01"),
    "between November and February": ("2025-11-01", "2026-03-01"),
    "between March and June 2023": ("2023-03-01", "2023-07-01"),
    "between November 2022 and February 2023": ("2022-11-01", "2023-03-01"),
    "between 2020 and 2022": ("2020-01-01", "2023-01-01"),
    "from 3 May to 9 May 2023": ("2023-05-03", "2023-05-10"),
    "from 2023-05-03 until 2023-05-09": ("2023-05-03", "2023-05-10"),
    "between 3 May 2023 and 2024-01-01": ("2023-05-03", "2024-01-02"),
}


@pytest.mark.parametrize("question", MEANINGS)
def test_a_question_names_a_time(question):
    start, end = MEANINGS[question]
    span = time_span(question, NOW)
    assert span is not None
    assert (span.start, span.end) == (d(start), d(end))
    assert span.words in " ".join(question.lower().replace("’", "'").split())


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("in the last 3 months", timedelta(days=91.5), timedelta(0)),
        ("over the past two years", timedelta(days=730.5), timedelta(0)),
        ("in the past week", timedelta(days=7), timedelta(0)),
        ("the last few days", timedelta(days=3), timedelta(0)),
        ("last 7 days", timedelta(days=7), timedelta(0)),
        ("within the last 24 hours", timedelta(hours=24), timedelta(0)),
    ],
)
def test_a_stretch_that_ends_now_reaches_back_from_now(question, start, end):
    span = time_span(question, NOW)
    assert abs(span.start - (NOW - start)) <= timedelta(hours=1)
    assert NOW <= span.end <= NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("since January 2025", ["2025-01-01", "2026-05-20"], ["2024-12-31T23:59"]),
        ("since Monday", ["2026-05-18", "2026-05-20"], ["2026-05-17T23:59"]),
        ("since last week", ["2026-05-11", "2026-05-20"], ["2026-05-10T23:59"]),
        ("before yesterday", ["2026-05-18T23:59", "2020-01-01"], ["2026-05-19"]),
        ("since 2024", ["2024-01-01", "2030-01-01"], ["2023-12-31T23:59"]),
        ("before 2020", ["2019-12-31T23:59", "1975-01-01"], ["2020-01-01"]),
        ("before March 2024", ["2024-02-29T12:00"], ["2024-03-01"]),
        ("until 7 May 2023", ["2023-05-06T12:00"], ["2023-05-09"]),
        ("after May 2023", ["2023-06-01", "2026-01-01"], ["2023-05-31T12:00"]),
        ("after 2023-05-07", ["2023-05-08"], ["2023-05-07T12:00"]),
        ("a couple of weeks ago", ["2026-04-29", "2026-05-06", "2026-05-13"], ["2026-04-20", "2026-05-19"]),
        ("a few days ago", ["2026-05-16T12:00", "2026-05-17T12:00", "2026-05-18T12:00"], ["2026-05-20", "2026-05-01"]),
        ("several months ago", ["2025-12-25", "2026-01-15", "2026-02-15"], ["2026-05-01", "2025-06-01"]),
    ],
)
def test_open_ended_and_vague_times(question, inside, outside):
    span = time_span(question, NOW)
    for moment in inside:
        assert span.start <= d(moment) < span.end
    for moment in outside:
        assert not span.start <= d(moment) < span.end


@pytest.mark.parametrize(
    "question",
    [
        "you may go now",
        "May I ask something?",
        "the march of time",
        "they march on",
        "a second opinion",
        "on the second attempt",
        "wait a second",
        "he marched in first",
        "may the force be with you",
        "what may have caused the crash",
        "June called her mother",
        "is August the cat's name",
        "who is April",
        "the sun and the moon",
        "order 66 of the list",
        "31 June 2023",
        "on 2023-13-45",
        "the last of us",
        "what is planned next Monday",
        "we meet every Friday",
        "a good Friday to all",
        "the spring framework in spring boot",
        "on the 3rd attempt",
        "on the 2nd floor of the house",
        "version 2.0.1 of 1.5",
        "3/4 of the tests fail",
        "open issue 2023-10-4-x",
        "the fall of the wall",
        "multiple thresholds for Q4",
        "attend June",
        "the previous owner",
        "this is it",
        "a day in the life",
        "sat on the sofa",
        "mon ami",
        "",
    ],
)
def test_ordinary_words_are_no_dates(question):
    assert time_span(question, NOW) is None


OTHER_LANGUAGES = {
    "was haben wir gestern entschieden?": ("2026-05-19", "2026-05-20"),
    "was war vor drei Tagen?": ("2026-05-17", "2026-05-18"),
    "letzte Woche": ("2026-05-11", "2026-05-18"),
    "am 7. Mai 2023": ("2023-05-07", "2023-05-08"),
    "im Mai": ("2026-05-01", "2026-06-01"),
    "qu'est-ce qu'on a décidé hier ?": ("2026-05-19", "2026-05-20"),
    "il y a 2 mois": ("2026-03-01", "2026-04-01"),
    "le mercredi 22 janvier": ("2026-01-22", "2026-01-23"),
    "¿qué hicimos la semana pasada?": ("2026-05-11", "2026-05-18"),
    "el 7 de mayo de 2023": ("2023-05-07", "2023-05-08"),
    "что мы решили вчера?": ("2026-05-19", "2026-05-20"),
    "7 мая 2023": ("2023-05-07", "2023-05-08"),
    "ماذا قررنا أمس": ("2026-05-19", "2026-05-20"),
    "قبل يومين": ("2026-05-18", "2026-05-19"),
    "我们昨天决定了什么": ("2026-05-19", "2026-05-20"),
    "上周一": ("2026-05-11", "2026-05-12"),
    "三天前发生了什么": ("2026-05-17", "2026-05-18"),
    "2023年5月7日": ("2023-05-07", "2023-05-08"),
    "五月二十日": ("2026-05-20", "2026-05-21"),
    "先週何をしましたか": ("2026-05-11", "2026-05-18"),
    "２０２３年５月": ("2023-05-01", "2023-06-01"),
    "어제 뭐 했어": ("2026-05-19", "2026-05-20"),
}


@pytest.mark.parametrize("question", OTHER_LANGUAGES)
def test_common_times_of_other_languages_are_read(question):
    start, end = OTHER_LANGUAGES[question]
    span = time_span(question, NOW)
    assert span is not None
    assert (span.start, span.end) == (d(start), d(end))


@pytest.mark.parametrize(
    "question",
    [
        "was ist hier passiert?",
        "настройка рабочая среда",
        "a mission to mars",
        "上上周",
        "the pazar of Istanbul",
        "mon chat s'appelle Août",
        "30 февраля 2023",
    ],
)
def test_words_of_other_languages_that_are_no_times(question):
    assert time_span(question, NOW) is None


def test_last_may_is_the_last_one_that_is_over():
    for month in range(1, 13):
        for day in (1, 15, 30):
            now = datetime(2026, month, min(day, 28), 12)
            span = time_span("last May", now)
            assert span.start == datetime(2026 if month > 5 else 2025, 5, 1)
            assert (span.end - span.start).days == 31


def test_a_month_without_a_year_is_the_last_one_that_has_begun():
    for month, name in ((4, "April"), (5, "May"), (6, "June")):
        span = time_span(f"in {name}", NOW)
        assert span.start <= NOW
        assert span.start.month == month
        assert NOW - span.start < timedelta(days=366)


@pytest.fixture
def diary():
    """The same words on many days, so that nothing but the time can tell them apart."""
    with Brain(":memory:") as brain:
        for day in ("2026-05-19", "2026-05-13", "2026-04-10", "2025-12-24", "2025-05-10", "2023-05-07"):
            brain.remember("went to the dentist", id=day, when=f"{day} 10:00")
        brain.remember("bought a new bicycle", id="bicycle", when="2026-05-19 11:00")
        yield brain


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("who went to the dentist yesterday?", "2026-05-19"),
        ("dentist last week", "2026-05-13"),
        ("dentist last month", "2026-04-10"),
        ("the dentist in December", "2025-12-24"),
        ("dentist on 7 May 2023", "2023-05-07"),
        ("dentist in 2023", "2023-05-07"),
        ("dentist last May", "2025-05-10"),
        ("dentist a week ago", "2026-05-13"),
    ],
)
def test_time_words_raise_what_happened_then(diary, question, best):
    hits = diary.recall(question, k=7, now=NOW, explain=True)
    assert hits[0].memory.memory_id == best
    assert len(hits) == 7, "a boost leaves nothing out"
    times = {hit.memory.memory_id: hit.explanation.components["time"] for hit in hits}
    assert times[best] == max(times.values())
    assert times[best] > 0
    assert any("“" in note for note in hits[0].explanation.notes)


@pytest.mark.parametrize(
    ("question", "raised"),
    [
        ("what happened since Monday?", {"2026-05-19", "bicycle"}),
        ("what happened before last Friday?", {"2026-05-13", "2026-04-10", "2025-12-24", "2025-05-10", "2023-05-07"}),
        ("what happened after last Friday?", {"2026-05-19", "bicycle"}),
    ],
)
def test_times_without_an_end_raise_only_what_lies_inside(diary, question, raised):
    hits = diary.recall(question, k=7, now=NOW, explain=True)
    assert {hit.memory.memory_id for hit in hits if hit.explanation.components["time"] > 1} == raised
    assert {hit.memory.memory_id for hit in hits[: len(raised)]} == raised


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("dentist yesterday", {"2026-05-19", "bicycle"}),
        ("dentist last week", {"2026-05-13"}),
        ("dentist in 2025", {"2025-12-24", "2025-05-10"}),
        ("dentist between April and May 2026", {"2026-04-10", "2026-05-13", "2026-05-19", "bicycle"}),
        ("dentist before 2025", {"2023-05-07"}),
        ("dentist since December 2025", {"2025-12-24", "2026-04-10", "2026-05-13", "2026-05-19", "bicycle"}),
        ("dentist in 1999", set()),
    ],
)
def test_time_words_as_a_filter_keep_only_what_happened_then(diary, question, kept):
    hits = diary.recall(question, k=10, now=NOW, settings={"time_words": "filter"})
    assert {hit.memory.memory_id for hit in hits} == kept


def test_times_without_weight_do_nothing(diary):
    hits = diary.recall("dentist yesterday", k=10, now=NOW, settings={"time": 0}, explain=True)
    assert len(hits) == 7
    assert all("time" not in hit.explanation.components for hit in hits)


def test_explicit_bounds_go_before_time_words(diary):
    hits = diary.recall("dentist yesterday", k=10, since="2025-01-01", until="2025-12-31", now=NOW)
    assert {hit.memory.memory_id for hit in hits} == {"2025-12-24", "2025-05-10"}
    hits = diary.recall(
        "dentist yesterday", k=10, since="2025-01-01", until="2025-12-31", now=NOW, settings={"time_words": "filter"}
    )
    assert {hit.memory.memory_id for hit in hits} == {"2025-12-24", "2025-05-10"}


def test_a_date_as_until_includes_the_whole_day(diary):
    found = {hit.memory.memory_id for hit in diary.recall("dentist", k=10, since="2026-05-19", until="2026-05-19")}
    assert found == {"2026-05-19", "bicycle"}


@pytest.mark.parametrize(
    "words", ["two weeks ago", "2026-05-01", "2026-05-01T12:00:00+02:00", "yesterday", "May 1 2026"]
)
def test_bounds_may_be_given_in_words(words):
    with Brain(":memory:") as brain:
        brain.remember("long ago", when="2001-01-01")
        brain.remember("just now")
        assert [hit.text for hit in brain.recall("now or ago", since=words)] == ["just now"]
        assert [hit.text for hit in brain.recall("now or ago", until=words)] == ["long ago"]


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("2 hours ago", 7200), ("three days ago", 3 * 86_400), ("two weeks ago", 14 * 86_400), ("90 minutes ago", 5400)],
)
def test_a_number_of_units_ago_is_exact_where_a_moment_is_asked_for(words, seconds):
    now = datetime.now().timestamp()
    with Brain(":memory:", embedder="none") as brain:
        assert brain.remember("a moment", when=words).timestamp == pytest.approx(
            now - seconds, abs=60 if seconds < 86_400 else 3700
        )
        for share in (0.5, 0.9, 1.1, 2):
            brain.remember(f"age {share}", when=now - share * seconds)
        newer = {memory.text for memory in brain.memories({"since": words})}
        assert {"age 0.5", "age 0.9"} <= newer
        assert not {"age 1.1", "age 2"} & newer
        older = {memory.text for memory in brain.memories({"until": words})}
        assert {"age 1.1", "age 2"} <= older
        assert not {"age 0.5", "age 0.9"} & older


def test_the_day_begins_where_the_machine_is_whatever_zone_now_is_given_in(diary):
    """One moment in three zones is one moment: the same hits with the same scores."""
    local = NOW.astimezone()
    rankings = []
    for zone in (None, UTC, timezone(timedelta(hours=13)), timezone(timedelta(hours=-11))):
        now = NOW if zone is None else local.astimezone(zone)
        hits = diary.recall("dentist yesterday", k=10, now=now)
        rankings.append([(hit.memory.memory_id, hit.score) for hit in hits])
    assert all(ranking == rankings[0] for ranking in rankings)


def test_asking_when_prefers_memories_that_tell_a_time():
    with Brain(":memory:") as brain:
        brain.remember("Melanie painted the sunrise over the lake", when="2023-03-01")
        brain.remember("Melanie painted the sunrise over the lake last year in 2022", when="2023-03-01")
        hits = brain.recall("When did Melanie paint the sunrise?", explain=True)
        told = {"2022" in hit.text: hit.explanation.components["when"] for hit in hits}
        assert told[True] > told[False]
        hits = brain.recall("Who painted the sunrise?", explain=True)
        assert all("when" not in hit.explanation.components for hit in hits)
