"""Let recalls be judged: one row for each hit that was said to be useful or not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m003"
down_revision = "m002"


def upgrade() -> None:
    op.create_table(
        "judgements",
        sa.Column("recall", sa.Text, primary_key=True),
        sa.Column("memory", sa.Text, primary_key=True),
        sa.Column("question", sa.Text),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("useful", sa.Integer, nullable=False),
        sa.Column("time", sa.Float, nullable=False),
    )
    op.create_index("judgements_memory", "judgements", ["memory"])
    op.create_index("judgements_time", "judgements", ["time"])
