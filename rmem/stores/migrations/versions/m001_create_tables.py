"""Create the tables: memories, their change log, access counts, segments, staged vectors and notes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "memories",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("born", sa.Integer, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("session", sa.Text),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("actor", sa.Text),
        sa.Column("tier", sa.Text, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("importance", sa.Float, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("position", sa.Text),
        sa.Column("place", sa.Text),
        sa.Column("tags", sa.Text),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("contents", sa.Text),
        sa.Column("flags", sa.Integer, nullable=False),
        sa.Column("specific", sa.Integer, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("terms", sa.LargeBinary, nullable=False),
        sa.Column("marks", sa.LargeBinary, nullable=False),
        sa.Column("vector", sa.LargeBinary),
        sqlite_autoincrement=True,
    )
    op.create_index("memories_agent_step", "memories", ["agent", "step"])
    op.create_table(
        "changes",
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "access",
        sa.Column("born", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("last", sa.Float, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
    )
    op.create_table(
        "segments",
        sa.Column("first_seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("changes", sa.Integer, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
    )
    op.create_table(
        "segment_arrays",
        sa.Column(
            "first_seq",
            sa.Integer,
            sa.ForeignKey("segments.first_seq", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "staged",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("vector", sa.LargeBinary),
    )
    op.create_table(
        "notes",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
