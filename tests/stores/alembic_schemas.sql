-- m001
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE memories (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    born INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    type TEXT NOT NULL,
    actor TEXT,
    tier TEXT NOT NULL,
    step INTEGER NOT NULL,
    time FLOAT NOT NULL,
    created FLOAT NOT NULL,
    importance FLOAT NOT NULL,
    level INTEGER NOT NULL,
    position TEXT,
    place TEXT,
    tags TEXT,
    text TEXT NOT NULL,
    contents TEXT,
    flags INTEGER NOT NULL,
    specific INTEGER NOT NULL,
    words TEXT NOT NULL,
    terms BLOB NOT NULL,
    marks BLOB NOT NULL,
    vector BLOB,
    UNIQUE (id)
);
CREATE INDEX memories_agent_step ON memories (agent, step);
CREATE TABLE changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
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
    head TEXT NOT NULL,
    PRIMARY KEY (first_seq)
);
CREATE TABLE segment_arrays (
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (first_seq, name),
    FOREIGN KEY(first_seq) REFERENCES segments (first_seq) ON DELETE CASCADE
);
CREATE TABLE staged (
    seq INTEGER NOT NULL,
    vector BLOB,
    PRIMARY KEY (seq)
);
CREATE TABLE notes (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
-- m002
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE memories (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    born INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    type TEXT NOT NULL,
    actor TEXT,
    tier TEXT NOT NULL,
    step INTEGER NOT NULL,
    time FLOAT NOT NULL,
    created FLOAT NOT NULL,
    importance FLOAT NOT NULL,
    level INTEGER NOT NULL,
    position TEXT,
    place TEXT,
    tags TEXT,
    text TEXT NOT NULL,
    contents TEXT,
    flags INTEGER NOT NULL,
    specific INTEGER NOT NULL,
    words TEXT NOT NULL,
    terms BLOB NOT NULL,
    marks BLOB NOT NULL,
    vector BLOB, numbers BLOB, packed BLOB, unpacked INTEGER,
    UNIQUE (id)
);
CREATE INDEX memories_agent_step ON memories (agent, step);
CREATE TABLE changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
, tier TEXT);
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
    head TEXT NOT NULL,
    PRIMARY KEY (first_seq)
);
CREATE TABLE segment_arrays (
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (first_seq, name),
    FOREIGN KEY(first_seq) REFERENCES segments (first_seq) ON DELETE CASCADE
);
CREATE TABLE staged (
    seq INTEGER NOT NULL,
    vector BLOB,
    PRIMARY KEY (seq)
);
CREATE TABLE notes (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE TABLE dictionaries (
    id INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id)
);
-- m003
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE memories (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    born INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    type TEXT NOT NULL,
    actor TEXT,
    tier TEXT NOT NULL,
    step INTEGER NOT NULL,
    time FLOAT NOT NULL,
    created FLOAT NOT NULL,
    importance FLOAT NOT NULL,
    level INTEGER NOT NULL,
    position TEXT,
    place TEXT,
    tags TEXT,
    text TEXT NOT NULL,
    contents TEXT,
    flags INTEGER NOT NULL,
    specific INTEGER NOT NULL,
    words TEXT NOT NULL,
    terms BLOB NOT NULL,
    marks BLOB NOT NULL,
    vector BLOB, numbers BLOB, packed BLOB, unpacked INTEGER,
    UNIQUE (id)
);
CREATE INDEX memories_agent_step ON memories (agent, step);
CREATE TABLE changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
, tier TEXT);
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
    head TEXT NOT NULL,
    PRIMARY KEY (first_seq)
);
CREATE TABLE segment_arrays (
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (first_seq, name),
    FOREIGN KEY(first_seq) REFERENCES segments (first_seq) ON DELETE CASCADE
);
CREATE TABLE staged (
    seq INTEGER NOT NULL,
    vector BLOB,
    PRIMARY KEY (seq)
);
CREATE TABLE notes (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE TABLE dictionaries (
    id INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE judgements (
    recall TEXT NOT NULL,
    memory TEXT NOT NULL,
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
-- m004
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE memories (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    born INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    type TEXT NOT NULL,
    actor TEXT,
    tier TEXT NOT NULL,
    step INTEGER NOT NULL,
    time FLOAT NOT NULL,
    created FLOAT NOT NULL,
    importance FLOAT NOT NULL,
    level INTEGER NOT NULL,
    position TEXT,
    place TEXT,
    tags TEXT,
    text TEXT NOT NULL,
    contents TEXT,
    flags INTEGER NOT NULL,
    specific INTEGER NOT NULL,
    words TEXT NOT NULL,
    terms BLOB NOT NULL,
    marks BLOB NOT NULL,
    vector BLOB, numbers BLOB, packed BLOB, unpacked INTEGER,
    UNIQUE (id)
);
CREATE INDEX memories_agent_step ON memories (agent, step);
CREATE TABLE changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
, tier TEXT);
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
    head TEXT NOT NULL,
    PRIMARY KEY (first_seq)
);
CREATE TABLE segment_arrays (
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (first_seq, name),
    FOREIGN KEY(first_seq) REFERENCES segments (first_seq) ON DELETE CASCADE
);
CREATE TABLE staged (
    seq INTEGER NOT NULL,
    vector BLOB,
    PRIMARY KEY (seq)
);
CREATE TABLE notes (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE TABLE dictionaries (
    id INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE judgements (
    recall TEXT NOT NULL,
    memory TEXT NOT NULL,
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
    detail TEXT NOT NULL,
    seal TEXT NOT NULL
);
CREATE INDEX audit_memory ON audit (memory);
-- m005
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE memories (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    born INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    type TEXT NOT NULL,
    actor TEXT,
    tier TEXT NOT NULL,
    step INTEGER NOT NULL,
    time FLOAT NOT NULL,
    created FLOAT NOT NULL,
    importance FLOAT NOT NULL,
    level INTEGER NOT NULL,
    position TEXT,
    place TEXT,
    tags TEXT,
    text TEXT NOT NULL,
    contents TEXT,
    flags INTEGER NOT NULL,
    specific INTEGER NOT NULL,
    words TEXT NOT NULL,
    terms BLOB NOT NULL,
    marks BLOB NOT NULL,
    vector BLOB, numbers BLOB, packed BLOB, unpacked INTEGER, sealed BLOB, key_version INTEGER,
    UNIQUE (id)
);
CREATE INDEX memories_agent_step ON memories (agent, step);
CREATE TABLE changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
, tier TEXT);
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
    head TEXT NOT NULL,
    PRIMARY KEY (first_seq)
);
CREATE TABLE segment_arrays (
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (first_seq, name),
    FOREIGN KEY(first_seq) REFERENCES segments (first_seq) ON DELETE CASCADE
);
CREATE TABLE staged (
    seq INTEGER NOT NULL,
    vector BLOB,
    PRIMARY KEY (seq)
);
CREATE TABLE notes (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE TABLE dictionaries (
    id INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE judgements (
    recall TEXT NOT NULL,
    memory TEXT NOT NULL,
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
    detail TEXT NOT NULL,
    seal TEXT NOT NULL
);
CREATE INDEX audit_memory ON audit (memory);
CREATE TABLE keys (
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    wrapped BLOB NOT NULL,
    master TEXT NOT NULL,
    created FLOAT NOT NULL,
    PRIMARY KEY (kind, version)
);
-- m006
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE memories (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    born INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    type TEXT NOT NULL,
    actor TEXT,
    tier TEXT NOT NULL,
    step INTEGER NOT NULL,
    time FLOAT NOT NULL,
    created FLOAT NOT NULL,
    importance FLOAT NOT NULL,
    level INTEGER NOT NULL,
    position TEXT,
    place TEXT,
    tags TEXT,
    text TEXT NOT NULL,
    contents TEXT,
    flags INTEGER NOT NULL,
    specific INTEGER NOT NULL,
    words TEXT NOT NULL,
    terms BLOB NOT NULL,
    marks BLOB NOT NULL,
    vector BLOB, numbers BLOB, packed BLOB, unpacked INTEGER, sealed BLOB, key_version INTEGER,
    UNIQUE (id)
);
CREATE INDEX memories_agent_step ON memories (agent, step);
CREATE TABLE changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
, tier TEXT);
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
    head TEXT NOT NULL,
    PRIMARY KEY (first_seq)
);
CREATE TABLE segment_arrays (
    first_seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (first_seq, name),
    FOREIGN KEY(first_seq) REFERENCES segments (first_seq) ON DELETE CASCADE
);
CREATE TABLE staged (
    seq INTEGER NOT NULL,
    vector BLOB,
    PRIMARY KEY (seq)
);
CREATE TABLE notes (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE TABLE dictionaries (
    id INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE judgements (
    recall TEXT NOT NULL,
    memory TEXT NOT NULL,
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
    detail TEXT NOT NULL,
    seal TEXT NOT NULL
);
CREATE INDEX audit_memory ON audit (memory);
CREATE TABLE keys (
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    wrapped BLOB NOT NULL,
    master TEXT NOT NULL,
    created FLOAT NOT NULL,
    PRIMARY KEY (kind, version)
);
CREATE TABLE catalogue (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    definition TEXT NOT NULL,
    UNIQUE (name)
);
CREATE TABLE table_changes (
    n INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    table_id INTEGER NOT NULL,
    "row" INTEGER NOT NULL
);
CREATE INDEX table_changes_table ON table_changes (table_id, n);
CREATE TABLE table_sequences (
    table_id INTEGER NOT NULL,
    "column" TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (table_id, "column")
);
