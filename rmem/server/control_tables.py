"""The tables of the control data. No secret is kept in them but as a hash."""

from __future__ import annotations

import time

import sqlalchemy as sa

from .settings import MAIN

META = sa.MetaData()
ABOUT = sa.Table("control_about", META, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text))
ORGANIZATIONS = sa.Table(
    "control_organizations",
    META,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.Double, nullable=False),
)
WORKSPACES = sa.Table(
    "control_workspaces",
    META,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("org", sa.Text, sa.ForeignKey("control_organizations.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.UniqueConstraint("org", "name"),
)
PLACEMENTS = sa.Table(  # of workspaces that are, or were, on another server than the first
    "control_placements",
    META,
    sa.Column("workspace", sa.Text, primary_key=True),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("moves", sa.Integer, nullable=False),  # how often it was moved: the later place is the right one
    sa.Column("moving_to", sa.Text),
    sa.Column("left", sa.Text),  # where its old rows are still to be removed
)
MEMBERS = sa.Table(
    "control_members",
    META,
    sa.Column("org", sa.Text, sa.ForeignKey("control_organizations.id"), primary_key=True),
    sa.Column("workspace", sa.Text, primary_key=True),  # '' for all workspaces of the organisation
    sa.Column("member", sa.Text, primary_key=True),
    sa.Column("role", sa.Integer, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)
TOKENS = sa.Table(
    "control_tokens",
    META,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("org", sa.Text, sa.ForeignKey("control_organizations.id"), nullable=False, index=True),
    sa.Column("member", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("role", sa.Integer, nullable=False),
    sa.Column("workspace", sa.Text),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("revoked", sa.Double),
)
ANSWERS = sa.Table(
    "control_answers",
    META,
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("role", sa.Integer, nullable=False),
    sa.Column("process", sa.Text, nullable=False),  # the number of its receipts
    sa.Column("created", sa.Double, nullable=False, index=True),
    sa.Column("status", sa.Integer),
    sa.Column("headers", sa.Text),
    sa.Column("body", sa.LargeBinary),
)

WORKSPACES_NOW = sa.select(
    WORKSPACES, sa.func.coalesce(PLACEMENTS.c.server, MAIN), sa.func.coalesce(PLACEMENTS.c.moves, 0)
).outerjoin(PLACEMENTS, PLACEMENTS.c.workspace == WORKSPACES.c.id)

# A token counts in one workspace, or wherever its member has a role.
_OF_TOKEN = sa.and_(
    MEMBERS.c.org == TOKENS.c.org,
    MEMBERS.c.member == TOKENS.c.member,
    sa.or_(TOKENS.c.workspace.is_(None), MEMBERS.c.workspace.in_(("", TOKENS.c.workspace))),
)
TOKENS_NOW = sa.select(
    TOKENS, sa.select(sa.func.max(MEMBERS.c.role)).where(_OF_TOKEN).scalar_subquery().label("member_role")
)
MEMBERLESS = ~sa.exists().where(_OF_TOKEN)


def revoke(link: sa.Connection, *which: sa.ColumnElement[bool]) -> list[str]:
    """Revoke those of some tokens that were not before; their ids."""
    live = sa.and_(TOKENS.c.revoked.is_(None), *which)
    return list(link.execute(TOKENS.update().where(live).values(revoked=time.time()).returning(TOKENS.c.id)).scalars())
