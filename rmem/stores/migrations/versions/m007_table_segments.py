"""Keep the search indexes of tables in the file, as those of memories are: packed spans of rows for each column."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m007"
down_revision = "m006"


def upgrade() -> None:
    op.create_table(
        "table_segments",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Text, primary_key=True),
        sa.Column("first_seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("changes", sa.Integer, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
    )
    op.create_table(
        "table_segment_arrays",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Text, primary_key=True),
        sa.Column("first_seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id", "place", "first_seq"],
            ["table_segments.table_id", "table_segments.place", "table_segments.first_seq"],
            ondelete="CASCADE",
        ),
    )
