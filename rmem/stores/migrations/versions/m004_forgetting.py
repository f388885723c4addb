"""Let memories be restored for a while after they were pruned, and keep a log of who removed what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m004"
down_revision = "m003"


def upgrade() -> None:
    op.create_table(
        "trash",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("removed", sa.Float, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("memory", sa.Text),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("seal", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("audit_memory", "audit", ["memory"])
