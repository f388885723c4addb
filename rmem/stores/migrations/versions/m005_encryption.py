"""Let fields of memories be encrypted: the sealed fields, the version of their keys, and the wrapped keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m005"
down_revision = "m004"


def upgrade() -> None:
    op.add_column("memories", sa.Column("sealed", sa.LargeBinary))
    op.add_column("memories", sa.Column("key_version", sa.Integer))
    op.create_table(
        "keys",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("wrapped", sa.LargeBinary, nullable=False),
        sa.Column("master", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
