"""The schema of an SQLite store and its history: the SQL of one revision after another, applied when a file is opened.

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
facts           what memories say as subject, relation and object; removed with the memory that says it
catalogue       tables of SQL (rmem.tables): each lies in a table of its own, `rt_<id>`
table_changes   what happened to their rows besides being inserted, by which search indexes follow
table_sequences the last number that each of their serial columns gave
table_segments  packed spans of the search indexes of their columns, a cache that may be deleted at any time
alembic_version the last revision that was applied; named after the tool that made the first stores

A released step never changes: files that went through it are out there. Add a new one at the end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

_CREATE_TABLES = """
CREATE TABLE memories (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    born INTEGER NOT NULL,  -- the first seq this memory had: its place in the session
    agent TEXT NOT NULL,
    session TEXT,
    type TEXT NOT NULL,
    actor TEXT,
    tier TEXT NOT NULL,
    step INTEGER NOT NULL,
    time FLOAT NOT NULL,
    created FLOAT NOT NULL,
    importance FLOAT NOT NULL,
    level INTEGER NOT NULL,  -- compression
    position TEXT,  -- JSON
    place TEXT,
    tags TEXT,  -- JSON
    text TEXT NOT NULL,
    contents TEXT,  -- JSON without `text` where contents["text"] is the text
    flags INTEGER NOT NULL,  -- how the text speaks (index/manner.py)
    specific INTEGER NOT NULL,
    words TEXT NOT NULL,
    terms BLOB NOT NULL,
    marks BLOB NOT NULL,
    vector BLOB,  -- shortened as `level` says
    UNIQUE (id)
);
CREATE INDEX memories_agent_step ON memories (agent, step);
CREATE TABLE changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL  -- a row that is gone, or is now in the tier that stands beside it
);
CREATE TABLE access (
    born INTEGER NOT NULL,
    last FLOAT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (born)
);
CREATE TABLE segments (
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    head TEXT NOT NULL,  -- JSON: format, shapes, checksums, names
    PRIMARY KEY (first_seq)
);
CREATE TABLE segment_arrays (
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (first_seq, name),
    FOREIGN KEY (first_seq) REFERENCES segments (first_seq) ON DELETE CASCADE
);
CREATE TABLE staged (
    seq INTEGER NOT NULL,
    vector BLOB,
    PRIMARY KEY (seq)
);
CREATE TABLE notes (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (key)
);
"""

_TIERS = """
ALTER TABLE memories ADD COLUMN numbers BLOB;
ALTER TABLE memories ADD COLUMN packed BLOB;  -- text and contents after short-term memory; their own columns are empty
ALTER TABLE memories ADD COLUMN unpacked INTEGER;  -- the bytes that it had before
ALTER TABLE changes ADD COLUMN tier TEXT;
CREATE TABLE dictionaries (
    id INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id)
);
"""

_JUDGEMENTS = """
CREATE TABLE judgements (
    recall TEXT NOT NULL,
    memory TEXT NOT NULL,  -- empty where a recall found nothing of use
    question TEXT,
    agent TEXT NOT NULL,
    type TEXT NOT NULL,
    rank INTEGER NOT NULL,
    score FLOAT NOT NULL,
    useful INTEGER NOT NULL,
    time FLOAT NOT NULL,
    PRIMARY KEY (recall, memory)
);
CREATE INDEX judgements_memory ON judgements (memory);
CREATE INDEX judgements_time ON judgements (time);
"""

_FORGETTING = """
CREATE TABLE trash (
    id TEXT NOT NULL,
    removed FLOAT NOT NULL,
    until FLOAT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE audit (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    time FLOAT NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    memory TEXT,
    detail TEXT NOT NULL,  -- JSON
    seal TEXT NOT NULL
);
CREATE INDEX audit_memory ON audit (memory);
"""

_ENCRYPTION = """
ALTER TABLE memories ADD COLUMN sealed BLOB;  -- encrypted fields; their own columns are empty then
ALTER TABLE memories ADD COLUMN key_version INTEGER;  -- of the data keys that hide them, the terms and the marks
CREATE TABLE keys (
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    wrapped BLOB NOT NULL,
    master TEXT NOT NULL,  -- the fingerprint of the master key
    created FLOAT NOT NULL,
    PRIMARY KEY (kind, version)
);
"""

_TABLES = """
CREATE TABLE catalogue (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    definition TEXT NOT NULL,  -- JSON: columns, keys, indexes, and where the columns lie
    UNIQUE (name)
);
CREATE TABLE table_changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    table_id INTEGER NOT NULL,
    "row" INTEGER NOT NULL  -- one that was updated or deleted
);
CREATE INDEX table_changes_table ON table_changes (table_id, n);
CREATE TABLE table_sequences (
    table_id INTEGER NOT NULL,
    "column" TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (table_id, "column")
);
"""

_TABLE_SEGMENTS = """
CREATE TABLE table_segments (
    table_id INTEGER NOT NULL,
    place TEXT NOT NULL,  -- the column as it is named in the file
    first_seq INTEGER NOT NULL,  -- numbers of rows
    last_seq INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    changes INTEGER NOT NULL,  -- the last entry of table_changes that it knows
    head TEXT NOT NULL,
    PRIMARY KEY (table_id, place, first_seq)
);
CREATE TABLE table_segment_arrays (
    table_id INTEGER NOT NULL,
    place TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (table_id, place, first_seq, name),
    FOREIGN KEY (table_id, place, first_seq)
        REFERENCES table_segments (table_id, place, first_seq) ON DELETE CASCADE
);
"""

_FACTS = """
CREATE TABLE facts (
    seq INTEGER NOT NULL,  -- the memory that says it
    number INTEGER NOT NULL,  -- which of its facts
    subject INTEGER NOT NULL,  -- hashes of names; blind ones where the memory is encrypted
    relation INTEGER NOT NULL,
    object INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    confidence FLOAT NOT NULL,
    first INTEGER NOT NULL,  -- the place in its text
    last INTEGER NOT NULL,
    valid_from FLOAT NOT NULL,
    valid_until FLOAT,
    learned FLOAT NOT NULL,
    names BLOB NOT NULL,  -- subject, relation, object; encrypted as the memory is
    PRIMARY KEY (seq, number),
    FOREIGN KEY (seq) REFERENCES memories (seq) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX facts_subject ON facts (subject, relation);
CREATE INDEX facts_object ON facts (object, relation);
CREATE INDEX facts_relation ON facts (relation);
"""

STEPS = {
    "m001": _CREATE_TABLES,
    "m002": _TIERS,
    "m003": _JUDGEMENTS,
    "m004": _FORGETTING,
    "m005": _ENCRYPTION,
    "m006": _TABLES,
    "m007": _TABLE_SEGMENTS,
    "m008": _FACTS,
}
REVISIONS = tuple(STEPS)
HEAD = REVISIONS[-1]

_COMMENT = re.compile(r" *--[^\n]*")
_VERSION = "CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"


def upgrade(connection: sqlite3.Connection, target: str = HEAD) -> None:
    """Apply the steps that are missing up to a revision, inside the caller's transaction."""
    connection.execute(_VERSION)
    found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    first = 0 if found is None else REVISIONS.index(found[0]) + 1
    for revision in REVISIONS[first : REVISIONS.index(target) + 1]:
        for statement in _COMMENT.sub("", STEPS[revision]).split(";"):  # executescript() would commit
            connection.execute(statement)
        connection.execute("DELETE FROM alembic_version")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
