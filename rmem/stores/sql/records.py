"""SqlRecords, the base class of the SQL stores: reads and writes memories by statements that both databases accept.
Transactions, inserts and updates of the index differ for each store."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ... import checks
from ...crypto.encryption import Encryption
from ...crypto.vault import Vault, WrappedKey
from ...facts import VERSION as FACTS
from ...facts import facts_of
from ...filters import Filter
from ...index.analyser import VERSION as ANALYSER
from ...index.recall_index import RecallIndex
from ...index.vocabulary import WordVectors
from ...models import TIERS, Embeddings, Memory
from .. import packing
from ..base import Edit, Edited, Progress, Size
from ..capabilities import Counters
from ..indexed import Derived, IndexedStore, derive
from ..packing import Codec
from ..touches import Touches
from ..vectors import EmbedderIdentity, Vector, check_dimension, check_vector_format, check_vectors, first_vector
from . import audit, dictionaries, encrypted_rows, facts, inserts, removal, rows
from . import keys as data_keys
from .audit import SqlAuditLog
from .audit_chain import AuditChain, AuditHead
from .base import Result
from .connection import Connection
from .encrypted_rows import Seal
from .facts import SqlFacts
from .feedback import SqlFeedback
from .receipts import once
from .removal import SqlRemoval
from .vector_feed import SqlVectorFeed

log = logging.getLogger(__name__)

_MOVE = f"UPDATE memories SET tier = ?, level = ?, {', '.join(f'{name} = ?' for name in rows.BODY)} WHERE seq = ?"
_REWRITE = f"UPDATE memories SET {', '.join(f'{name} = ?' for name in rows.BODY + rows.DERIVED)} WHERE seq = ?"
_FETCH = 512  # ids or seqs in one statement
_FEW = 8  # of which there is a statement for each number
_KIND = f"SELECT key, value FROM notes WHERE key IN {rows.KIND}"


class SqlRecords(SqlAuditLog, SqlRemoval, SqlFeedback, SqlFacts, SqlVectorFeed, Counters, IndexedStore):
    """A store with the tables of `stores/migrations.py`."""

    def __init__(self, word_vectors: WordVectors | None, encryption: Encryption | Literal[False] | None) -> None:
        super().__init__(word_vectors)
        self.encryption = Encryption.of(encryption)
        self.vault = Vault(self.encryption, self._wrapped_keys)
        self.audit_chain = AuditChain(None)
        self.codec = Codec(self._dictionaries, self.vault)
        self.touches = Touches()
        self._train_from = packing.TRAIN_FROM
        self._unscrubbed = False
        self._encrypted = False  # whether readable data was encrypted
        self._checked_format: tuple[Mapping[str, str], EmbedderIdentity | None, int | None] | None = (
            None  # what _check_vector_format saw last
        )

    @abstractmethod
    def append(
        self, connection: Connection, memories: Sequence[Memory], derived: Sequence[Derived], seal: Seal | None
    ) -> bool:
        """Append rows; return whether readable data is now encrypted."""

    # Writing

    def insert(
        self,
        connection: Connection,
        memories: Sequence[Memory],
        derived: Sequence[Derived],
        *,
        own_vectors: bool = False,
    ) -> tuple[list[Memory], Sequence[Derived]]:
        """Write memories; return them as stored, with their derived data. `own_vectors`: the vectors were read from
        this store."""
        seal = data_keys.seal_for_writing(connection, self.vault)
        if seal is not None:
            derived = [encrypted_rows.blind(parts, seal, self.vault) for parts in derived]
        if self.encryption is not None and self.encryption.hides_vectors:
            for memory in memories:
                memory.embeddings = Embeddings()
        if not own_vectors:
            self._check_vector_format(connection, memories)
        if any(memory.bookkeeping.compression_level for memory in memories):
            dictionaries.use_newest(self, connection)
        given = [memory.memory_id for memory in memories if memory.memory_id]
        if given and len(memories) > 1 and (len(set(given)) < len(given) or inserts.existing_ids(connection, given)):
            # A memory that replaces another may lower its agent's highest step for the next ones.
            for memory, parts in zip(memories, derived, strict=True):
                self._encrypted |= self.append(connection, [memory], [parts], seal)
        else:
            self._encrypted |= self.append(connection, memories, derived, seal)
        self._unscrubbed |= self._encrypted
        return list(memories), derived

    def _check_vector_format(self, connection: Connection, memories: Sequence[Memory]) -> None:
        """Refuse vectors of another format; set the format with the first ones."""
        known = self.vector_metadata(connection)
        given = first_vector(memories)
        checked = known, self.embedder_identity, None if given is None else given.size
        if checked == self._checked_format:
            return
        fresh = {} if "analyser" in known else {"analyser": str(ANALYSER), "facts": str(FACTS)}
        if given is not None:
            fresh |= check_vector_format(given, known, self.embedder_identity)
        new = [(key, value) for key, value in fresh.items() if key not in known]
        if new:
            connection.executemany("INSERT INTO notes VALUES (?, ?)", new)
        else:
            self._checked_format = dict(known), *checked[1:]

    def _check_dimension(self, connection: Connection, vectors: Iterable[Vector]) -> int | None:
        """Refuse vectors of another dimension, from before the store was re-embedded; return the store's dimension."""
        noted = self.vector_metadata(connection).get("dimension")
        dimension = None if noted is None else int(noted)
        check_dimension(vectors, dimension)
        return dimension

    def vector_metadata(self, connection: Connection) -> Mapping[str, str]:
        """Return the metadata of KIND that is set."""
        return dict(connection.execute(_KIND).fetchall())

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        def work(connection: Connection) -> tuple[Memory | None, int, AuditHead | None]:
            old = self._row(connection, memory_id)
            vector = None if old is None else packing.tier_vector(old)
            edited = edit(old)
            if edited is None:
                return old, 0, None
            kept, written = self._apply(connection, memory_id, old, vector, edited)
            if not edited.action:
                return kept, written, None
            key = self.audit_chain.key(make=True)
            return kept, written, audit.append(connection, key, edited.who, edited.action, [memory_id], **edited.detail)

        def again(connection: Connection, kept: Sequence[str]) -> tuple[Memory | None, int, AuditHead | None]:
            return next(iter(self._read_back(connection, kept)), None), 0, None

        kept, written, head = once(
            self.write, f"edit {_digest(memory_id)}", work, lambda done: [memory_id] if done[0] else [], again
        )
        self.audit_chain.save(head)
        self.on_write(written)
        return kept

    def _apply(
        self,
        connection: Connection,
        memory_id: str,
        old: Memory | None,
        vector: packing.QuantizedVector | None,
        edited: Edited,
    ) -> tuple[Memory | None, int]:
        """Write the result of an edit of a memory that had `vector`; return the memory and the number of rows
        written."""
        memory = edited.memory
        if memory is None:
            gone = removal.remove(connection, [memory_id])
            self._unscrubbed |= bool(gone)
            return None, len(gone)
        memory.memory_id = memory_id
        check_vectors([memory])
        own = old is not None and packing.tier_vector(memory) is vector  # unchanged, whatever embedder it is from
        (kept,), _ = self.insert(connection, [memory], [derive(memory, facts_of(memory))], own_vectors=own)
        return kept, 1 if old is None else 2

    def _row(self, connection: Connection, memory_id: str) -> Memory | None:
        row = connection.execute(f"{self.dialect.read} WHERE m.id = ?", (memory_id,)).fetchone()
        return None if row is None else rows.to_memory(row, self.codec)

    def move(self, keys: Sequence[str], tier: str, vectors: Mapping[str, Vector] | None = None) -> int:
        checks.one_of("tier", tier, TIERS)
        given = vectors or {}
        if packing.LEVELS[tier]:
            self._train_if_due()

        def work(connection: Connection) -> int:
            moved = 0
            dictionaries.use_newest(self, connection)
            dimension = self._check_dimension(connection, given.values())
            for part in _parts(keys):
                placed: list[tuple[Any, ...]] = []
                for row in connection.execute(f"{self.dialect.read} WHERE m.id IN ({_placeholders(part)})", part):
                    memory, seal = rows.to_memory(row, self.codec), rows.seal_of(row)
                    bare = seal is not None and packing.tier_vector(memory) is None  # and stays without
                    memory = packing.move_to_tier(
                        memory, tier, None if bare else given.get(memory.memory_id), dimension
                    )
                    body = rows.body_values(memory, self.codec, seal)
                    placed.append((tier, memory.bookkeeping.compression_level, *body, row[0]))
                connection.executemany(_MOVE, placed)
                connection.executemany(
                    "INSERT INTO changes (seq, tier) VALUES (?, ?)", [(values[-1], tier) for values in placed]
                )
                moved += len(placed)
            return moved

        if not keys:
            return 0
        moved = self.write(work)
        self.on_write(moved)
        return moved

    def rewrite(self, connection: Connection, seq: int, memory: Memory, seal: Seal, derived: Derived) -> None:
        """Rewrite the body of a row, encrypted by `seal`, and its derived data."""
        body = rows.body_values(memory, self.codec, seal)
        connection.execute(_REWRITE, (*body, *rows.derived_values(derived), seq))
        facts.replace(connection, seq, facts.to_rows(seq, memory, derived.facts, self.vault, seal.version))

    @abstractmethod
    def new_generation(self, connection: Connection) -> None:
        """Make every process rebuild its index and read the keys again."""

    @abstractmethod
    def on_rows_rewritten(self, connection: Connection, *, vectors: bool = True) -> None:
        """Call after all rows were rewritten, with `vectors` if these were, too; starts a new generation."""

    def before_reembed(self) -> None:
        """Call before all vectors are replaced, perhaps by those of another dimension."""

    @abstractmethod
    def rebuild(self) -> None:
        """Rebuild the index from the rows."""

    @abstractmethod
    def derive_terms(self, on_progress: Progress | None = None, *, all_rows: bool = False) -> int:
        """Derive the terms of all memories again; a store may skip it if the analyser has not changed, unless
        `all_rows`. Return how many rows were written."""

    @abstractmethod
    def describe(self) -> str:
        """Return a description of the store: the file, or the server and its version."""

    @abstractmethod
    def check_storage(self) -> tuple[str, bool, str]:
        """Check the storage beside the rows; return (name, whether it is sound, details)."""

    def read_raw(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` to look for damage: damaged rows are not skipped."""
        return self.read(work)

    @property
    def row_estimate(self) -> int:
        """The approximate number of rows, as far as this process knows."""
        return self.index.size

    def _train_if_due(self) -> None:
        """Train a compression dictionary on the newest memories, once there are enough."""
        if self.row_estimate < self._train_from or self.codec.has_dictionary:
            return
        self._train_from = 4 * self.row_estimate  # try again later if they have too little in common
        if found := dictionaries.train(self):
            dictionaries.add(self, found)

    def _dictionaries(self) -> list[bytes]:
        sql = "SELECT data FROM dictionaries ORDER BY id"
        return self.read(lambda connection: [data for (data,) in connection.execute(sql)])

    def _wrapped_keys(self) -> list[WrappedKey]:
        return self.read(data_keys.read)

    def repack(self, on_progress: Progress | None = None) -> None:
        dictionaries.replace(self, on_progress)

    def touch(self, keys: Sequence[str], when: float) -> None:
        if self.touches.add(keys, when):
            self.flush()

    @abstractmethod
    def flush(self) -> None:
        """Write pending access counts."""

    def get_meta(self, key: str) -> str | None:
        sql = "SELECT value FROM notes WHERE key = ?"
        found = self.read(lambda connection: connection.execute(sql, (key,)).fetchone())
        return None if found is None else str(found[0])

    def set_meta(self, key: str, value: str) -> None:
        self.write(lambda connection: connection.execute(self.dialect.set_meta, (key, value)))

    def next_number(self, stem: str) -> int:
        key = f"next {stem}"

        def work(connection: Connection) -> int:
            found = connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
            number = 0 if found is None else int(found[0])
            while connection.execute("SELECT 1 FROM memories WHERE id = ?", (f"{stem}{number}",)).fetchone():
                number += 1
            connection.execute(self.dialect.set_meta, (key, str(number + 1)))
            return number

        return self.write(work)

    # Reading

    def _fetch_rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run a statement for many values, some at a time in the place of its `{}`; return all rows."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            return [
                row
                for part in map(_padded, _parts(values))
                for row in connection.execute(sql.format(_placeholders(part)), part)
            ]

        return self.read(work)

    def get_many(self, keys: Sequence[str]) -> list[Memory | None]:
        found: dict[str, Memory | None] = {}
        read = rows.to_memory if len(keys) == 1 else rows.readable  # of many, damaged ones are skipped
        for row in self._fetch_rows(f"{self.dialect.read} WHERE m.id IN ({{}})", keys):
            found[row[1]] = read(row, self.codec)
        self.touches.add_pending(found.values())
        return [found.get(key) for key in keys]

    def memories_at(self, seqs: Sequence[int]) -> list[tuple[int, Memory]]:
        found: dict[int, Memory | None] = {}
        for row in self._fetch_rows(f"{self.dialect.read} WHERE m.seq IN ({{}})", seqs):
            found[row[0]] = rows.readable(row, self.codec)
        self.touches.add_pending(found.values())
        return [(seq, memory) for seq in seqs if (memory := found.get(seq)) is not None]

    def ids_at(self, seqs: Sequence[int]) -> list[str]:
        found = dict(self._fetch_rows("SELECT seq, id FROM memories WHERE seq IN ({})", seqs))
        return [found[seq] for seq in seqs if seq in found]

    def recalls_at(self, seqs: Sequence[int]) -> dict[int, int]:
        self.flush()
        sql = "SELECT m.seq, a.count FROM memories m JOIN access a ON a.born = m.born WHERE m.seq IN ({})"
        return dict(self._fetch_rows(sql, seqs))

    def vectors_at(self, seqs: npt.NDArray[np.int64], dimension: int) -> npt.NDArray[np.float32]:
        matrix = np.zeros((seqs.size, dimension), np.float32)
        at = {seq: position for position, seq in enumerate(seqs.tolist())}
        for seq, stored, level in self._fetch_rows(
            "SELECT seq, vector, level FROM memories WHERE seq IN ({})", seqs.tolist()
        ):
            vector = rows.vector_of(stored, level, dimension)
            if vector is not None and vector.size == dimension:
                matrix[at[seq]] = vector
        return matrix

    def texts_at(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        wanted = seqs.tolist()
        found = {
            row[0]: rows.text_of(row, self.codec)
            for row in self._fetch_rows(f"{rows.READ_TEXT} WHERE seq IN ({{}})", wanted)
        }
        return [found.get(seq, "") for seq in wanted]

    def sizes(self, where: Filter) -> dict[str, Size]:
        found: dict[str, Size] = {}
        sql = (
            "SELECT tier, sum(length(packed)), sum(unpacked) FROM memories WHERE seq IN ({}) "
            "AND packed IS NOT NULL GROUP BY tier"
        )
        for tier, packed, unpacked in self._fetch_rows(sql, self.filtered_rows(where).seq.tolist()):
            known = found.get(tier, Size(0, 0))
            found[tier] = Size(known.packed + packed, known.unpacked + unpacked)
        return found

    def unreadable(self) -> int:
        encrypted = self.stats().encrypted
        return 0 if self.vault.opens else encrypted

    def check_comparable(self, by: Literal["vectors", "numbers"]) -> None:
        if self.vault.latest is not None and self.stats().encrypted:
            encrypted_rows.check_comparable(self.encryption, by)

    def check_keys(self, index: RecallIndex) -> None:
        """Raise if the given key is not that of the encrypted memories, instead of leaving them out."""
        if not self.vault.is_whole:
            self.vault.check()
            self.use_keys(index)

    def use_keys(self, index: RecallIndex) -> None:
        """Give the keys to an index, so that it finds encrypted memories; without keys it leaves them out."""
        if self.encryption is None and self.vault.latest is not None and not index.hides_sealed:
            log.warning("without the key of this store its encrypted memories are left out of every answer")
        index.hides_sealed = not self.vault.opens
        index.set_blind_term_lookup(self.vault.blind_term_lookup())


def _parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _FETCH):
        yield values[start : start + _FETCH]


def _padded(values: Sequence[Any]) -> Sequence[Any]:
    """Repeat the last value up to a full batch, so that few different statements are prepared."""
    size = min(_FETCH, 1 << (len(values) - 1).bit_length()) if len(values) > _FEW else len(values)
    return [*values, *[values[-1]] * (size - len(values))]


def _digest(memory_id: str) -> str:
    """Return a name for the receipt of an edit that does not reveal the memory's id."""
    return blake2b(memory_id.encode(), digest_size=8).hexdigest()


def _placeholders(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
