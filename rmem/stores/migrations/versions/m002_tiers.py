"""Let memories move between tiers: packed bodies and their dictionaries, moves in the change log, indexed numbers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m002"
down_revision = "m001"


def upgrade() -> None:
    op.add_column("memories", sa.Column("numbers", sa.LargeBinary))
    op.add_column("memories", sa.Column("packed", sa.LargeBinary))
    op.add_column("memories", sa.Column("unpacked", sa.Integer))
    op.add_column("changes", sa.Column("tier", sa.Text))
    op.create_table(
        "dictionaries",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
