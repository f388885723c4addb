"""The table `facts`: subject, relation and object of the facts that memories state. Rows are written and removed with
their memory.

A fact of an encrypted memory has blind ids, like the memory's terms, and its names are encrypted with the memory's
keys. Callers see only plain ids and names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from ...crypto.vault import Vault
from ...errors import StoreError
from ...facts.conflicts import Conflict, possible_conflicts
from ...facts.model import DATED, NEGATED, SINGLE, SURE, FactEdges, FoundFact, StoredFact, flags_of, name_id
from ...facts.relations import relation_id
from ...models import Memory
from ..capabilities import FactTable
from .base import Result, SqlStore
from .connection import Connection

COLUMNS = (
    "seq", "number", "subject", "relation", "object", "flags", "confidence", "first", "last", "valid_from",
    "valid_until", "learned", "names",
)  # fmt: skip
INSERT = f"INSERT INTO facts ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_READ = (
    f"SELECT {', '.join('f.' + name for name in COLUMNS)}, m.id, m.agent, m.place, m.tags, m.key_version "
    "FROM facts f JOIN memories m ON m.seq = f.seq"
)
_PART = 200  # ids in one statement
_SEPARATOR = "\x1f"


def to_rows(
    seq: int, memory: Memory, found: Sequence[FoundFact], vault: Vault, version: int | None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the facts of a memory; `version` is that of the keys it is encrypted with."""
    for number, fact in enumerate(found):
        ids = [name_id(fact.subject), relation_id(fact.relation), name_id(fact.object)]
        names = _SEPARATOR.join((fact.subject, fact.relation, fact.object)).encode("utf-8", "surrogatepass")
        if version is not None:
            ids = vault.blind(np.array(ids, np.int64).view(np.uint64), version).view(np.int64).tolist()
            names = vault.seal_whole(memory.memory_id, names, version)
        yield (
            seq,
            number,
            *ids,
            flags_of(fact),
            fact.confidence,
            fact.start,
            fact.end,
            memory.timestamp if fact.valid_from is None else fact.valid_from,
            fact.valid_until,
            memory.bookkeeping.creation_time,
            names,
        )


def replace(connection: Connection, seq: int, fresh: Iterable[tuple[Any, ...]]) -> None:
    """Replace the facts of a row."""
    connection.execute("DELETE FROM facts WHERE seq = ?", (seq,))
    connection.executemany(INSERT, list(fresh))


def read(
    connection: Connection,
    vault: Vault,
    subjects: Sequence[int] = (),
    relations: Sequence[int] = (),
    objects: Sequence[int] = (),
    *,
    seqs: Sequence[int] = (),
    memories: Sequence[str] = (),
    within: tuple[float, float] | None = None,
    may_hold_at: float | None = None,
    least: float = 0.0,
    after: tuple[int, int] | None = None,
    newest: bool = False,
    limit: int | None = None,
) -> list[StoredFact]:
    """Return the facts that have one of the given ids of each kind, in the order of storage."""
    blind = vault.blind_term_lookup() if vault.opens else None
    found: list[StoredFact] = []
    kinds: dict[str, list[Any]] = {
        "f.subject": _with_blind_ids(subjects, blind),
        "f.relation": _with_blind_ids(relations, blind),
        "f.object": _with_blind_ids(objects, blind),
        "f.seq": list(seqs),
        "m.id": list(memories),
    }
    given = {name: ids for name, ids in kinds.items() if ids}
    longest = max(given, key=lambda name: len(given[name]), default=None)
    parts = [given[longest][at : at + _PART] for at in range(0, len(given[longest]), _PART)] if longest else [[]]
    for part in parts:
        wheres: list[str] = []
        values: list[Any] = []
        for name, ids in given.items():
            ids = part if name == longest else ids
            wheres.append(f"{name} IN ({', '.join('?' * len(ids))})")
            values += ids
        if within is not None:
            wheres.append("(f.valid_from >= ? AND f.valid_from < ? OR f.valid_until >= ? AND f.valid_until < ?)")
            values += (*within, *within)
        if may_hold_at is not None:
            wheres.append(
                f"f.valid_from <= ? AND (f.valid_until IS NULL OR f.valid_until > ?) AND f.flags & {NEGATED} = 0"
            )
            values += (may_hold_at, may_hold_at)
        if least > 0:
            wheres.append("f.confidence >= ?")
            values.append(least)
        if after is not None:
            wheres.append("(f.seq, f.number) > (?, ?)")
            values += after
        where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
        if limit is not None:  # choose by the index alone, then read
            order = "f.seq DESC, f.number DESC" if newest else "f.seq, f.number"
            chosen = f"SELECT f.seq, f.number FROM facts f{where} ORDER BY {order} LIMIT {int(limit)}"
            where = f" WHERE (f.seq, f.number) IN ({chosen})"
        rows = connection.execute(f"{_READ}{where} ORDER BY f.seq, f.number", values)
        found += [fact for row in rows if (fact := _to_fact(row, vault)) is not None]
    if len(parts) > 1:
        found.sort(key=lambda fact: (fact.seq, fact.number))
    return found[-limit:] if newest and limit else found[:limit]


def _with_blind_ids(ids: Sequence[int], blind: Callable[[int], tuple[int, ...]] | None) -> list[int]:
    """Return ids with their blind forms in encrypted memories."""
    if blind is None:
        return list(ids)
    sought = [id_ & 0xFFFF_FFFF_FFFF_FFFF for id_ in ids]
    hidden = [term for id_ in sought for term in blind(id_)]
    return [*ids, *(term - (1 << 64) if term >> 63 else term for term in hidden)]


def _to_fact(row: tuple[Any, ...], vault: Vault) -> StoredFact | None:
    """Convert a row of `_READ` to a fact; None if it is encrypted and cannot be read."""
    seq, number, subject, relation, object_, *rest, names, memory_id, agent, place, tags, version = row
    if version is not None:
        try:
            names = vault.open_whole(memory_id, bytes(names), version)
        except StoreError:
            return None
    texts = names.decode("utf-8", "surrogatepass").split(_SEPARATOR)
    if version is not None:
        subject, relation, object_ = name_id(texts[0]), relation_id(texts[1]), name_id(texts[2])
    return StoredFact._make((seq, number, subject, relation, object_, *rest, *texts, memory_id, agent, place, tags))


def known(connection: Connection, vault: Vault, ids: Sequence[int]) -> dict[int, str]:
    """Return the names of the entities among some ids."""
    names: dict[int, str] = {}
    blind = vault.blind_term_lookup() if vault.opens else None
    for at in range(0, len(ids), _PART):
        part = _with_blind_ids(ids[at : at + _PART], blind)
        for column in ("object", "subject"):  # a name as subject takes precedence
            for row in connection.execute(_first(column, len(part)), part):
                fact = _to_fact(row, vault)
                if fact is not None and column == "subject":
                    names[fact.subject] = fact.subject_name
                elif fact is not None and not fact.is_value:
                    names[fact.object] = fact.object_name
    return names


@lru_cache(64)
def _first(column: str, count: int) -> str:
    """Return a statement that selects one fact of each of some ids."""
    ids = " UNION ALL ".join(["SELECT CAST(? AS bigint) AS id"] * count)
    return (
        f"{_READ} JOIN ({ids}) wanted ON (f.seq, f.number) = "
        f"(SELECT seq, number FROM facts WHERE {column} = wanted.id LIMIT 1)"
    )


def edges(connection: Connection, vault: Vault, shown: Callable[[int, str | None], bool] | None) -> FactEdges:
    """Return all facts as numbers, or those for which `shown(row, place of its memory)` is true. Encrypted ones must be
    decrypted one by one."""
    if _is_any_encrypted(connection):
        found: Iterable[tuple[int, ...]] = (
            (fact.subject, fact.relation, fact.object, fact.flags)
            for fact in read(connection, vault)
            if shown is None or shown(fact.seq, fact.place)
        )
    elif shown is not None:
        columns = "f.subject, f.relation, f.object, f.flags, f.seq, m.place"
        rows = connection.execute(f"SELECT {columns} FROM facts f JOIN memories m ON m.seq = f.seq")
        found = (row[:4] for row in rows if shown(*row[4:]))
    else:
        found = connection.execute("SELECT subject, relation, object, flags FROM facts")
    table = np.fromiter(chain.from_iterable(found), np.int64).reshape(
        -1, 4
    )  # row by row: tuples take ten times as much
    return FactEdges(*table.T)


def _is_any_encrypted(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM memories WHERE key_version IS NOT NULL LIMIT 1").fetchone() is not None


_DENIED = f"""
SELECT subject, relation, object FROM facts
WHERE object IN (SELECT object FROM facts WHERE flags & {NEGATED} <> 0) AND confidence >= {SURE}{{about}}
GROUP BY subject, relation, object HAVING min(flags & {NEGATED}) < max(flags & {NEGATED})
"""
_REPLACED = f"""
WITH several AS (
    SELECT subject, relation, count(valid_until) AS ends, CASE WHEN
        min(CASE WHEN confidence >= {SURE} THEN confidence END) < max(confidence)
        OR count(CASE WHEN flags & {DATED} <> 0 THEN 1 END)
            > count(DISTINCT CASE WHEN flags & {DATED} <> 0 THEN valid_from END)
        THEN 1 ELSE 0 END AS differs
    FROM facts WHERE relation NOT IN ({{many}}){{about}} GROUP BY subject, relation
    HAVING min(object) < max(object) AND (max(flags & {SINGLE}) > 0 OR relation IN ({{single}}))
), ordered AS (
    SELECT f.subject, f.relation, f.valid_from,
        lag(f.valid_until) OVER (PARTITION BY f.subject, f.relation ORDER BY f.valid_from, f.seq, f.number) AS until
    FROM several s JOIN facts f ON f.subject = s.subject AND f.relation = s.relation
    WHERE s.differs = 0 AND s.ends > 0
)
SELECT subject, relation FROM several WHERE differs = 1
UNION SELECT subject, relation FROM ordered WHERE until > valid_from
"""  # a later value contradicts an earlier one if it is trusted less, has the same date, or begins before its end
_ABOUT = (
    " AND (subject IN ({ids}) OR (subject, relation) IN (SELECT subject, relation FROM facts WHERE object IN ({ids})))"
)


def conflicts(
    connection: Connection, vault: Vault, single: Sequence[int], many: Sequence[int], about: Sequence[int]
) -> list[Conflict]:
    """Find where facts may contradict each other; encrypted ones must be decrypted one by one."""
    if _is_any_encrypted(connection):
        return possible_conflicts(read(connection, vault), single, many, about)
    limit = _ABOUT.format(ids=_listed(about)) if about else ""
    found: list[Conflict] = list(connection.execute(_DENIED.format(about=limit)))
    replaced = connection.execute(_REPLACED.format(single=_listed(single), many=_listed(many), about=limit))
    found += [(subject, relation, None) for subject, relation in replaced]
    return sorted(found, key=lambda one: one[:2])


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(str(int(one)) for one in (*ids, 0))  # SQL knows no empty list; no name has the id 0


def count(connection: Connection) -> int:
    found = connection.execute("SELECT count(*) FROM facts").fetchone()
    return 0 if found is None else int(found[0])


class SqlFacts(FactTable, SqlStore):
    """The facts as a capability of a store."""

    def facts_about(self, *ids: Sequence[int], **conditions: Any) -> list[StoredFact]:
        return self._read_facts(lambda connection: read(connection, self.vault, *ids, **conditions))

    def facts_at(self, seqs: Sequence[int]) -> list[StoredFact]:
        return self._read_facts(lambda connection: read(connection, self.vault, seqs=seqs)) if seqs else []

    def facts_of(self, memory_ids: Sequence[str]) -> list[StoredFact]:
        return (
            self._read_facts(lambda connection: read(connection, self.vault, memories=memory_ids)) if memory_ids else []
        )

    def known_names(self, ids: Sequence[int]) -> dict[int, str]:
        return self._read_facts(lambda connection: known(connection, self.vault, ids))

    def fact_edges(self, shown: Callable[[int, str | None], bool] | None = None) -> FactEdges:
        return self._read_facts(lambda connection: edges(connection, self.vault, shown))

    def possible_conflicts(
        self, single: Sequence[int], many: Sequence[int], about: Sequence[int] = ()
    ) -> list[Conflict]:
        return self._read_facts(lambda connection: conflicts(connection, self.vault, single, many, about))

    def fact_count(self) -> int:
        return self.read(count)

    def _read_facts(self, work: Callable[[Connection], Result]) -> Result:
        """Read facts; raise if the given key is not that of the encrypted ones."""
        self.vault.check()
        return self.read(work)
