"""What the property tests draw from: words, texts, memories and filters that meet each other often."""

from __future__ import annotations

from hypothesis import strategies as st

from rmem.testing.contract import clustered_vectors, example

AGENTS = ("ann", "ben", "agent-3")
SESSIONS = (None, "s1", "s2", "Sitzung ü")
ACTORS = (None, "Ann", "Ben", "Zoë Quinn")
TYPES = ("note", "error_fix", "decision")
TIERS = ("stm", "im", "ltm")
PLACES = (None, "forest", "harbour")
WORDS = (
    "river stone wolf lantern bridge copper signal engine harbour violet pipeline memory parquet etl/transform.py "
    "MemoryError transform_parquet v1.2.3 Straße café running ran runs 北京 cats cat"
).split()
VECTORS = clustered_vectors(40, 16, seed=11)
EPOCH = 1_700_000_000.0

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
any_texts = st.text(min_size=1, max_size=200).filter(
    lambda text: text.strip() and "\x00" not in text and _encodes(text)
)
ids = st.sampled_from([f"m{number}" for number in range(12)])
times = st.one_of(
    st.integers(0, 40).map(lambda day: EPOCH + 86_400.0 * day),
    st.floats(-1e9, 4e9, allow_nan=False).map(lambda seconds: round(seconds, 3)),
)
json_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -2.0, 1e20]),
    st.sampled_from(["x", "1", "True"]),
)
contents = st.dictionaries(
    st.sampled_from(["count", "flag", "deep", "list", "a.b"]),
    st.one_of(
        json_leaves, st.lists(json_leaves, max_size=3), st.dictionaries(st.sampled_from("bc"), json_leaves, max_size=2)
    ),
    max_size=3,
)
positions = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda p: tuple(map(float, p))),
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 2)).map(lambda p: tuple(map(float, p))),
)
_tag_names, _tag_values = st.sampled_from(["repo", "env", "ключ"]), st.sampled_from(["a", "b", "значение"])
tags = st.dictionaries(_tag_names, _tag_values, max_size=2)
some_tags = st.dictionaries(_tag_names, _tag_values, min_size=1, max_size=2)
vectors = st.one_of(st.none(), st.integers(0, len(VECTORS) - 1).map(lambda at: VECTORS[at]))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@st.composite
def memories(draw, *, id_from=None, texts=texts):
    """Memories as a store is given them; without `id_from` the store finds an id."""
    return example(
        draw(texts),
        memory_id="" if id_from is None else draw(id_from),
        agent_id=draw(st.sampled_from(AGENTS)),
        session=draw(st.sampled_from(SESSIONS)),
        actor=draw(st.sampled_from(ACTORS)),
        memory_type=draw(st.sampled_from(TYPES)),
        tier=draw(st.sampled_from(TIERS)),
        tags=draw(tags),
        contents=draw(contents),
        step_number=draw(st.one_of(st.just(-1), st.integers(0, 30))),
        timestamp=draw(times),
        importance_score=draw(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0])),
        position=draw(positions),
        place=draw(st.sampled_from(PLACES)),
        vector=draw(vectors),
    )


def _one_or_more(values):
    return st.one_of(st.sampled_from(values), st.lists(st.sampled_from(values), min_size=1, max_size=2))


def _ordered(values):
    return st.tuples(values, values).map(sorted)


@st.composite
def filters(draw):
    """Mappings for `Filter.of` with a few fields each."""
    fields = {
        "agent": _one_or_more([*AGENTS, "nobody"]),
        "session": _one_or_more([name for name in SESSIONS if name]),
        "actor": _one_or_more([name for name in ACTORS if name]),
        "type": _one_or_more(TYPES),
        "tier": _one_or_more(TIERS),
        "place": _one_or_more(["forest", "harbour", "nowhere"]),
        "tags": some_tags,
        "attributes": st.dictionaries(
            st.sampled_from(["count", "flag", "list", "deep.b", "a.b"]), json_leaves, min_size=1, max_size=2
        ),
        "steps": _ordered(st.integers(0, 30)),
        "times": _ordered(times),
        "importance": _ordered(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0])),
        "box": st.integers(2, 3).flatmap(
            lambda size: st.tuples(*[_ordered(st.integers(0, 5).map(float)) for _ in range(size)])
        ),
        "circle": st.tuples(
            st.one_of(
                st.tuples(st.integers(0, 5), st.integers(0, 5)),
                st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 2)),
            ),
            st.sampled_from([0.0, 1.0, 2.5]),
        ),
    }
    where = {}
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=3, unique=True)):
        value = draw(fields[name])
        if name == "steps":
            where |= {"min_step": value[0], "max_step": value[1]}
        elif name == "times":
            where |= {"since": value[0], "until": value[1]}
        elif name == "importance":
            where |= {"min_importance": value[0], "max_importance": value[1]}
        elif name == "box":
            where["box"] = (tuple(low for low, _ in value), tuple(high for _, high in value))
        elif name == "circle":
            where |= {"near": value[0], "radius": value[1]}
        else:
            where[name] = value
    return where
