"""Examine a store in one snapshot: the file, the rows, and what is derived from them. Repair what is derived."""

from __future__ import annotations

import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from . import __version__
from .admin import open_sql
from .embed import embedder_for
from .embed.state import MemoryVectors
from .errors import KeyMissingError, KeyWrongError, RemanenceError, StoreError
from .facts import VERSION as FACTS
from .filters import Filter
from .index.analyser import VERSION as ANALYSER
from .index.filtered_rows import nearest_rows
from .index.recall_index import RecallIndex
from .index.text_features import SEALED
from .models import TIERS
from .stores.base import Progress, RecordStore
from .stores.capabilities import AuditLog
from .stores.packing import quantized_bytes
from .stores.sql import keys, reembed, rows
from .stores.sql.records import SqlRecords
from .vectors.engine import VectorEngine

Result = TypeVar("Result")

_BATCH = 1000
_NAMED = 5  # entries of the audit log that a finding names
_SAMPLE = 200  # rows compared one by one
_QUESTIONS = 5  # words, and vectors, whose results are compared with a scan of all rows
_NEAREST = 10
_SAME = 0.7  # least cosine of a vector and its codes; codes may be finer than the vector that long-term memory keeps
_WORSE = 0.02  # most that the mean cosine of the nearest rows may be below that of the scan


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    ok: bool
    detail: str


def examine(
    address: str | Path | None = None, on_check: Callable[[str, int, int], None] | None = None
) -> list[CheckResult]:
    """Check the file or the database, the rows, and all data derived from them. `on_check` is called before each check
    with its name, how many are done and how many there are."""
    findings = [_versions()]
    try:
        store = open_sql(address)
    except RemanenceError as error:
        return [*findings, CheckResult("store", False, str(error))]

    def run_checks() -> list[CheckResult]:
        found = []
        for done, check in enumerate(_CHECKS):
            if on_check is not None:
                on_check(_name_of(check), done, len(_CHECKS))
            found.append(_run_check(check, store))
        return found

    try:
        findings.append(CheckResult("store", True, store.describe()))
        findings += store.read_transaction(run_checks)
        engine = VectorEngine(store, None)
        if (finding := engine.examine()) is not None:
            findings.append(CheckResult("vector engine", *finding))
        engine.close()
    finally:
        store.close()
    return findings


def _run_check(check: Callable[[SqlRecords], CheckResult], store: SqlRecords) -> CheckResult:
    """Run a check; turn an unexpected error into a finding."""
    try:
        return check(store)
    except Exception as error:
        message = str(error) if isinstance(error, RemanenceError) else f"{type(error).__name__}: {error}"
        return CheckResult(_name_of(check), False, message)


def _name_of(check: Callable[[SqlRecords], CheckResult]) -> str:
    return check.__name__.removeprefix("check").strip("_")


def _versions() -> CheckResult:
    features = {option for (option,) in sqlite3.connect(":memory:").execute("PRAGMA compile_options")}
    modern = sqlite3.sqlite_version_info >= (3, 35) and "OMIT_JSON" not in features
    return CheckResult(
        "versions",
        modern,
        f"rmem {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"numpy {np.__version__}, {sys.platform}" + ("" if modern else "; SQLite 3.35 or newer is needed"),
    )


def _file(store: SqlRecords) -> CheckResult:
    return CheckResult(*store.check_storage())


def _rows(store: SqlRecords) -> CheckResult:
    unreadable, count, locked = [], 0, 0
    for seq, found in _each_row(store):
        count += 1
        try:
            if isinstance(found, sqlite3.Error):
                raise StoreError(str(found))
            rows.to_memory(found, store.codec)
        except (KeyMissingError, KeyWrongError):
            locked += 1
        except StoreError as error:
            name = seq if isinstance(found, sqlite3.Error) else found[1]
            unreadable.append(f"{name}: {error}")
    message = f"{count:,} memories, all readable" + (f" but {locked:,} encrypted ones" if locked else "")
    bad = f"{len(unreadable):,} of {count:,} memories are damaged: {'; '.join(unreadable[:5])}"
    return CheckResult("rows", not unreadable, bad if unreadable else message)


def _each_row(store: SqlRecords) -> Iterator[tuple[Any, tuple[Any, ...] | sqlite3.Error]]:
    """Yield every row with its seq, or the error of SQLite on reading it."""
    last, read = 0, store.dialect.read
    while True:
        bounds = (last, _BATCH)
        try:
            batch = _fetch(store, f"{read} WHERE m.seq > ? ORDER BY m.seq LIMIT ?", *bounds)
            yield from ((row[0], row) for row in batch)
            last = batch[-1][0] if batch else last
            if len(batch) < _BATCH:
                return
        except sqlite3.OperationalError:
            for (seq,) in _fetch(store, "SELECT seq FROM memories WHERE seq > ? ORDER BY seq LIMIT ?", *bounds):
                last = seq
                try:
                    yield seq, _fetch(store, f"{read} WHERE m.seq = ?", seq)[0]
                except sqlite3.OperationalError as error:
                    yield seq, error


def _fetch(store: SqlRecords, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    return store.read_raw(lambda connection: connection.execute(sql, values).fetchall())


def _keys(store: SqlRecords) -> CheckResult:
    held, wrapped = store.read_raw(keys.count), store.read_raw(keys.read)
    if not wrapped:
        return CheckResult(
            "keys", not held, f"{sum(held.values()):,} encrypted memories" + " without keys" * bool(held)
        )
    versions = sorted({key.version for key in wrapped})
    message = f"{sum(held.values()):,} encrypted memories, data keys of version {' and '.join(map(str, versions))}"
    if len(versions) > 1:
        message += " (a rotation waits to be finished: rmem keys rotate --data)"
    if store.encryption is None:
        return CheckResult("keys", True, f"{message}, not checked for want of the master key")
    lost = sorted(set(held) - set(versions))
    if lost:
        return CheckResult("keys", False, f"{message}; the keys of version {lost[0]} are gone")
    for version in versions:
        store.vault.keys(version)
    return CheckResult("keys", True, f"{message}, opened by the master key")


def check_vectors(store: SqlRecords) -> CheckResult:
    noted = store.get_meta("dimension")
    dimension = int(noted) if noted is not None else 0
    ((total, present),) = _fetch(store, "SELECT count(*), count(vector) FROM memories")
    wrong = _fetch(
        store,
        "SELECT id FROM memories WHERE vector IS NOT NULL AND (level NOT IN (0, 1, 2) OR "
        "length(vector) <> CASE level WHEN 0 THEN ? WHEN 1 THEN ? ELSE ? END)",
        *(quantized_bytes(dimension, level) for level in range(3)),
    )
    detail = f"{present:,} of {dimension} numbers, {total - present:,} memories without"
    if wrong:
        detail = f"{len(wrong):,} of a wrong size ({', '.join(str(key) for (key,) in wrong[:5])}) among {detail}"
    return CheckResult("vectors", not wrong, detail)


def _terms(store: SqlRecords) -> CheckResult:
    version = store.get_meta("analyser")
    if version not in (None, str(ANALYSER)):
        return CheckResult("terms", False, f"derived by analyser {version}, not {ANALYSER}")
    damaged = "SELECT count(*) FROM memories WHERE length(terms) % 10 <> 0 OR length(marks) % 8 <> 0"
    ((bad,),) = _fetch(store, damaged)
    return CheckResult(
        "terms", bad == 0, f"analyser version {ANALYSER}" if bad == 0 else f"{bad:,} rows with damaged terms"
    )


def check_index(store: SqlRecords) -> CheckResult:
    """Compare the index with the rows, and a sample of its results with a plain scan."""
    store.refresh()
    store.index.read_codes()
    held = np.array([seq for (seq,) in _fetch(store, "SELECT seq FROM memories ORDER BY seq")], np.int64)
    columns = store.index.columns
    indexed = columns["seq"][columns["alive"]]
    if not np.array_equal(indexed, held):
        extra, missing = np.setdiff1d(indexed, held).size, np.setdiff1d(held, indexed).size
        return CheckResult("index", False, f"{missing:,} rows missing from it, {extra:,} that no longer exist")
    rotating = len({key.version for key in store.read_raw(keys.read)}) > 1
    noted = store.get_meta("dimension")
    sample = _Sample(store.index, None if noted is None else int(noted), rotating)
    for seq in held[:: max(1, held.size // _SAMPLE)].tolist():
        sample.compare(_fetch(store, rows.READ_INDEX, seq - 1, seq, 1)[0])
    last = 0
    while batch := _fetch(store, rows.READ_INDEX, last, sys.maxsize, _BATCH):
        sample.scan(batch)
        last = batch[-1][0]
    sample.compare_answers(store)
    segments = store.stats().segments
    packed = f"in {segments} segments and the tail, " if segments else ""
    message = f"{held.size:,} rows {packed}as they are stored; {sample.answers} answers compared"
    return CheckResult("index", sample.wrong is None, sample.wrong or message)


class _Sample:
    """A sample of rows and results of an index, compared with the stored rows."""

    def __init__(self, index: RecallIndex, dimension: int | None, rotating: bool) -> None:
        self._index, self._dimension, self._rotating = index, dimension, rotating
        self.wrong: str | None = None
        self.answers = 0
        self._terms: dict[int, list[int]] = {}  # term -> rows that contain it
        self._vectors: list[_Nearest] = []

    def compare(self, stored: tuple[Any, ...]) -> None:
        """Compare one row of the index with the stored row."""
        row, columns = rows.to_index_row(stored, self._dimension), self._index.columns
        at = int(np.searchsorted(columns["seq"], row.seq))
        indexed = (
            TIERS[columns["tier"][at]],
            columns.groups.names[columns["group"][at]],
            columns.kinds.names[columns["kind"][at]],
            columns.actors.names[columns["actor"][at]],
            *(columns[name][at].item() for name in ("time", "step", "importance", "length")),
        )
        stated = row.tier, (row.agent, row.session), row.kind, row.actor, row.time, row.step, row.importance
        if indexed != (*stated, row.terms.length):
            self._report(f"row {row.seq} is not as in the file")
        vectors = self._index.vectors
        if row.vector is not None:
            found = vectors.decode_rows(np.array([at]))[0] if vectors is not None else np.zeros_like(row.vector)
            if float(found @ row.vector) < _SAME:
                self._report(f"row {row.seq} has the vector of another one")
            if len(self._vectors) < _QUESTIONS:
                self._vectors.append(_Nearest(row.vector))
        if self._rotating and row.manner.flags & SEALED:
            return  # indexed under its old blind terms, too, until the rotation is done
        hashes = row.terms.hashes.tolist()
        for term, count in zip(hashes, row.terms.counts.tolist(), strict=True):
            holders, counts, _ = self._index.postings.lookup([term])
            place = int(np.searchsorted(holders, at))
            if place == holders.size or holders[place] != at or counts[place] != count:
                self._report(f"row {row.seq} is not under all of its words")
                return
        if len(self._terms) < _QUESTIONS and hashes and not row.manner.flags & SEALED:
            self._terms.setdefault(hashes[0], [])

    def scan(self, batch: Sequence[tuple[Any, ...]]) -> None:
        """Scan a batch of rows for the exact results of the sample's questions."""
        found = [rows.to_index_row(row, self._dimension) for row in batch]
        for term, holders in self._terms.items():
            holders += [row.seq for row in found if (row.terms.hashes == np.uint64(term)).any()]
        embedded = [row.vector for row in found if row.vector is not None]
        if embedded:
            for nearest in self._vectors:
                nearest.take_in(np.stack(embedded))

    def compare_answers(self, store: SqlRecords) -> None:
        """Compare the results of the index with the exact ones."""
        found_rows = store.filtered_rows(Filter())
        for term, holders in self._terms.items():
            at, _ = found_rows.matches([term]).part(0)
            known = set(found_rows.seq[at].tolist())
            if self._index.postings.blind_term_lookup is None and known != set(holders):
                self._report("the rows that hold a word are not those of the file")
            self.answers += 1
        for nearest in self._vectors:
            _, cosines = nearest_rows(found_rows, nearest.query, _NEAREST)
            if cosines.size < nearest.best.size or float(nearest.best.mean() - cosines.mean()) > _WORSE:
                self._report("the nearest vectors are not those of the file")
            self.answers += 1

    def _report(self, what: str) -> None:
        self.wrong = self.wrong or what


class _Nearest:
    """Keeps the highest cosines of a vector with the rows of `take_in`."""

    def __init__(self, query: npt.NDArray[np.float32]) -> None:
        self.query = query
        self.best = np.empty(0, np.float32)

    def take_in(self, matrix: npt.NDArray[np.float32]) -> None:
        self.best = np.sort(np.append(self.best, matrix @ self.query))[-_NEAREST:]


def _embedder(store: SqlRecords) -> CheckResult:
    known, spec = store.get_meta("embedder"), store.get_meta("embedder_spec")
    if known is None or known == "none":
        return CheckResult("embedder", True, "none yet" if known is None else "vectors are supplied by users")
    if spec is None:
        return CheckResult("embedder", True, f"{known}, to be passed to Brain(embedder=…)")
    name = embedder_for(spec).name
    if name != known:
        return CheckResult("embedder", False, f"vectors are of {known!r}, but {spec!r} is {name!r} here: rmem reindex")
    return CheckResult("embedder", True, known)


def _facts(store: SqlRecords) -> CheckResult:
    """Report missing facts as sound: they are extracted again later."""
    if store.get_meta("facts") != str(FACTS) and len(store):
        return CheckResult(
            "facts", True, "not read from all memories, or by older rules: rmem reindex reads them again"
        )
    return CheckResult("facts", True, f"{store.fact_count():,} read from the memories")


def check_audit(store: RecordStore) -> list[CheckResult]:
    """Check the seals of the audit log and its head outside of the table; nothing for a store without one. Not part of
    `examine`: a log that somebody cut does not keep a backup from being restored."""
    if not isinstance(store, AuditLog):
        return []
    broken = store.broken_audit()
    return [CheckResult("audit log", not broken, describe_audit(store, broken))]


def describe_audit(store: AuditLog, broken: Sequence[int]) -> str:
    """Say what is wrong with the entries `broken` of an audit log, or that it is whole."""
    if not broken:
        return "whole"
    newest = store.audit(limit=1)
    last = newest[0].n if newest else 0
    changed, missing = [number for number in broken if number <= last], [number for number in broken if number > last]
    parts = []
    if changed:
        shown = ", ".join(f"{number:,}" for number in changed[:_NAMED]) + ", …" * (len(changed) > _NAMED)
        parts.append(f"entries {shown} are not as they were written, or those before them are missing")
    if missing:
        parts.append(f"its end is cut off: entry {missing[0]:,} and perhaps later ones are missing")
    return f"{'; '.join(parts)} (`rmem audit accept` takes it as it is, after a backup was restored)"


_CHECKS = (_file, _rows, _keys, check_vectors, _terms, check_index, _embedder, _facts)


def repair(address: str | Path | None = None, on_progress: Progress | None = None) -> list[str]:
    """Rebuild derived data: terms, missing or malformed vectors, the index. Return what was done, as sentences."""
    store = open_sql(address)
    done = []
    try:
        changed = store.derive_terms(on_progress, all_rows=True)
        done.append(f"derived the terms of {changed:,} memories again" if changed else "the terms were right")
        if not check_vectors(store).ok:
            spec, known = store.get_meta("embedder_spec"), store.get_meta("embedder")
            if spec is None:
                done.append(f"vectors of a wrong size remain: {known!r} cannot be loaded by name; use rmem reindex")
            else:
                number = reembed.reembed(store, MemoryVectors(embedder_for(spec)), spec, on_progress)
                done.append(f"embedded {number:,} memories again")
        store.rebuild()
        done.append("rebuilt the recall index from the rows")
    finally:
        store.close()
    return done
