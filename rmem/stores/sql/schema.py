"""The tables, described once with SQLAlchemy Core. Migrations create them; the embedded store reads and writes
them with prepared SQL on the driver, because importing SQLAlchemy costs a short-lived process 0.3 s.

memories        one row is one memory: contents, vector and analysed terms; `seq` grows with every write
changes         what happened to rows besides being appended: the log by which indexes follow
access          how often and when a memory was recalled, apart so that reading never rewrites a memory
segments        packed spans of the recall index, a cache that may be deleted at any time
staged          vectors of a re-embedding in progress, so that it can go on after an interruption
dictionaries    what packed memories have in common, for zstd
judgements      hits that were said to be useful or not, for `rmem eval online`
trash           memories that were pruned and can be restored for a while
audit           who removed and restored what, each entry sealed
keys            the data keys of encrypted memories, wrapped by a master key that is kept elsewhere
notes           facts about the store: its embedder, its dimension
catalogue       tables of SQL (rmem.tables): each lies in a table of its own, `rt_<id>`
table_changes   what happened to their rows besides being inserted, by which search indexes follow
table_sequences the last number that each of their serial columns gave
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()

memories = Table(
    "memories",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("born", Integer, nullable=False),  # the first seq this memory had; its place in the session
    Column("agent", Text, nullable=False),
    Column("session", Text),
    Column("type", Text, nullable=False),
    Column("actor", Text),
    Column("tier", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("time", Float, nullable=False),
    Column("created", Float, nullable=False),
    Column("importance", Float, nullable=False),
    Column("level", Integer, nullable=False),  # compression
    Column("position", Text),  # JSON
    Column("place", Text),
    Column("tags", Text),  # JSON
    Column("text", Text, nullable=False),
    Column("contents", Text),  # JSON without `text` where contents["text"] is the text
    Column("flags", Integer, nullable=False),  # how the text speaks (index/manner.py)
    Column("specific", Integer, nullable=False),
    Column("words", Text, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    Column("marks", LargeBinary, nullable=False),
    Column("vector", LargeBinary),  # shortened as `level` says
    Column("numbers", LargeBinary),
    Column("packed", LargeBinary),  # text and contents of a memory that left short-term memory; they are empty then
    Column("unpacked", Integer),  # the bytes that it had before
    Column("sealed", LargeBinary),  # encrypted fields; their own columns are empty then
    Column("key_version", Integer),  # of the data keys that they, the terms and the marks are hidden with
    Index("memories_agent_step", "agent", "step"),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    Column("n", Integer, primary_key=True, autoincrement=True),
    Column("seq", Integer, nullable=False),  # a row that is gone, or
    Column("tier", Text),  # is now in this tier
    sqlite_autoincrement=True,
)

access = Table(
    "access",
    metadata,
    Column("born", Integer, primary_key=True, autoincrement=False),
    Column("last", Float, nullable=False),
    Column("count", Integer, nullable=False),
)

segments = Table(
    "segments",
    metadata,
    Column("first_seq", Integer, primary_key=True, autoincrement=False),
    Column("last_seq", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("changes", Integer, nullable=False),
    Column("head", Text, nullable=False),  # JSON: format, shapes, checksums, names
)

segment_arrays = Table(
    "segment_arrays",
    metadata,
    Column(
        "first_seq",
        Integer,
        ForeignKey("segments.first_seq", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("name", Text, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

staged = Table(
    "staged",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary),
)

dictionaries = Table(
    "dictionaries",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("wrapped", LargeBinary, nullable=False),
    Column("master", Text, nullable=False),  # the fingerprint of the master key
    Column("created", Float, nullable=False),
)

trash = Table(
    "trash",
    metadata,
    Column("id", Text, primary_key=True),
    Column("removed", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("n", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("memory", Text),
    Column("detail", Text, nullable=False),  # JSON
    Column("seal", Text, nullable=False),
    Index("audit_memory", "memory"),
    sqlite_autoincrement=True,
)

notes = Table(
    "notes",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

judgements = Table(
    "judgements",
    metadata,
    Column("recall", Text, primary_key=True),
    Column("memory", Text, primary_key=True),  # empty where a recall found nothing of use
    Column("question", Text),
    Column("agent", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("score", Float, nullable=False),
    Column("useful", Integer, nullable=False),
    Column("time", Float, nullable=False),
    Index("judgements_memory", "memory"),
    Index("judgements_time", "time"),
)

catalogue = Table(
    "catalogue",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("definition", Text, nullable=False),  # JSON: columns, keys, indexes, and where the columns lie
    sqlite_autoincrement=True,
)

table_changes = Table(
    "table_changes",
    metadata,
    Column("n", Integer, primary_key=True, autoincrement=True),
    Column("table_id", Integer, nullable=False),
    Column("row", Integer, nullable=False),  # one that was updated or deleted
    Index("table_changes_table", "table_id", "n"),
    sqlite_autoincrement=True,
)

table_sequences = Table(
    "table_sequences",
    metadata,
    Column("table_id", Integer, primary_key=True, autoincrement=False),
    Column("column", Text, primary_key=True),
    Column("last", Integer, nullable=False),
)
