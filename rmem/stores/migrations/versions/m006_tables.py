"""Keep tables of SQL beside the memories: what they are, what happened to their rows, the numbers of their serials."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m006"
down_revision = "m005"


def upgrade() -> None:
    op.create_table(
        "catalogue",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("definition", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "table_changes",
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("row", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("table_changes_table", "table_changes", ["table_id", "n"])
    op.create_table(
        "table_sequences",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("column", sa.Text, primary_key=True),
        sa.Column("last", sa.Integer, nullable=False),
    )
