"""`rmem org`, `workspace`, `member` and `token`: administer the organisations, members and tokens of a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, StoreError
from .cli_context import CliContext
from .options import command_group, command_options
from .output import moment
from .serve import DATA, settings_of

if TYPE_CHECKING:
    from ..server.control import Control, Organization, Role
    from ..server.settings import ServerSettings

_ORG = click.option("--org", default="default", show_default=True, metavar="NAME", help="The organisation.")
_ROLE = click.Choice(["read", "write", "admin"], case_sensitive=False)


@contextmanager
def control_of(cli: CliContext, data: str | None, *, new: bool = False) -> Iterator[tuple[Control, ServerSettings]]:
    """Open the control data of the server that a command is for."""
    from ..server.control import Control

    settings = settings_of(cli, data=data)
    if not new and settings.store is None and not Path(settings.control_address).exists():
        raise StoreError(f"there is no server's data in {settings.data}; `rmem serve` makes it")
    control = Control(settings)
    try:
        yield control, settings
    finally:
        control.close()


def organization_of(control: Control, name: str) -> Organization:
    """Return an organisation by its name; the InputError for an unknown one lists all."""
    found = control.organization(name)
    if found is None:
        known = ", ".join(organization.name for organization in control.organizations()) or "none"
        raise InputError(f"there is no organisation {name!r}; known: {known}", field="org")
    return found


def _workspace(control: Control, org: str, name: str | None) -> str | None:
    """Return the id of a workspace; None for all of them."""
    if name is None:
        return None
    found = control.workspace(org, name)
    if found is None:
        raise InputError(f"there is no workspace {name!r} in this organisation", field="workspace")
    return found.id


def _parse_role(role: str) -> Role:
    from ..server.control import role_named

    return role_named("role", role)


def _print_list(cli: CliContext, key: str, documents: list[dict[str, Any]], columns: dict[str, str]) -> None:
    """Print a list as JSON, or as a table with these headings for these fields."""
    if cli.json:
        cli.document({key: documents})
        return
    rows = [tuple(_cell(name, document[name]) for name in columns) for document in documents]
    heads = tuple(columns.values())
    cli.table(heads, rows)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    return moment(value) if name in ("created", "expires") else str(value)


# Organisations


@command_group
def org() -> None:
    """Make and list the organisations of a server. None can see anything of another.

    \b
    Examples:
      rmem org create acme
      rmem org list --json
    """


@org.command("create")
@click.argument("name")
@DATA
@command_options
def create_org(cli: CliContext, name: str, data: str | None) -> None:
    """Make an organisation with a workspace called "default".

    \b
    Examples:
      rmem org create acme
      rmem member add alice admin --org acme
    """
    with control_of(cli, data, new=True) as (control, _):
        made = control.create_organization(name)
        control.create_workspace(made.id, "default")
    cli.answer({"id": made.id, "name": made.name}, made.id)


@org.command("list")
@DATA
@command_options
def list_orgs(cli: CliContext, data: str | None) -> None:
    """List the organisations.

    \b
    Examples:
      rmem org list
      rmem org list --json | jq -r '.organizations[].id'
    """
    with control_of(cli, data) as (control, _):
        found = [
            {"name": organization.name, "id": organization.id, "created": organization.created}
            for organization in control.organizations()
        ]
    _print_list(cli, "organizations", found, {"name": "NAME", "id": "ID", "created": "MADE"})


# Workspaces


@command_group
def workspace() -> None:
    """Make, list and delete the workspaces of an organisation: each has its own memories and tables.

    \b
    Examples:
      rmem workspace create team-a
      rmem workspace list --json
      rmem workspace delete team-a
    """


@workspace.command("create")
@click.argument("name")
@_ORG
@DATA
@command_options
def create_workspace(cli: CliContext, name: str, org: str, data: str | None) -> None:
    """Make a workspace.

    \b
    Examples:
      rmem workspace create team-a
      rmem workspace create research --org acme
    """
    with control_of(cli, data) as (control, _):
        made = control.create_workspace(organization_of(control, org).id, name)
    cli.answer({"id": made.id, "name": made.name}, made.name)


@workspace.command("list")
@_ORG
@DATA
@command_options
def list_workspaces(cli: CliContext, org: str, data: str | None) -> None:
    """List the workspaces of an organisation.

    \b
    Examples:
      rmem workspace list
      rmem workspace list --org acme --json
    """
    with control_of(cli, data) as (control, _):
        records = control.workspaces(organization_of(control, org).id, limit=1_000_000)
    found = [{"name": record.name, "id": record.id, "created": record.created} for record in records]
    _print_list(cli, "workspaces", found, {"name": "NAME", "id": "ID", "created": "MADE"})


@workspace.command("delete")
@click.argument("name")
@_ORG
@DATA
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@command_options
def delete_workspace(cli: CliContext, name: str, org: str, data: str | None, yes: bool) -> None:
    """Delete a workspace with all its memories and tables permanently.

    \b
    Examples:
      rmem workspace delete team-a
      rmem workspace delete research --org acme --yes
    """
    from ..server.spaces import Spaces

    with control_of(cli, data) as (control, settings):
        home = organization_of(control, org)
        _workspace(control, home.id, name)
        if not yes:
            click.confirm(f"Delete {name} with all its memories and tables?", abort=True, err=True)
        gone = control.delete_workspace(home.id, name)
        if gone is not None:
            Spaces(settings).remove(gone.org, gone.id, gone.name)
    cli.answer({"deleted": name}, f"Deleted {name}")


# Members


@command_group
def member() -> None:
    """Say who may do what: READ asks, WRITE also changes, ADMIN also manages members, tokens and workspaces.

    \b
    Examples:
      rmem member add alice write
      rmem member add bob read --workspace team-a
      rmem member list --json
      rmem member remove bob --workspace team-a
    """


_OF_WORKSPACE = click.option("--workspace", metavar="NAME", help="In this workspace alone; else in all of them.")


@member.command("add")
@click.argument("name", metavar="MEMBER")
@click.argument("role", type=_ROLE)
@_OF_WORKSPACE
@_ORG
@DATA
@command_options
def add_member(cli: CliContext, name: str, role: str, workspace: str | None, org: str, data: str | None) -> None:
    """Give somebody a role, or another one.

    \b
    Examples:
      rmem member add alice admin
      rmem member add agent-7 write --workspace team-a
    """
    with control_of(cli, data) as (control, _):
        home = organization_of(control, org)
        kept = control.set_member(home.id, name, _parse_role(role), _workspace(control, home.id, workspace))
    cli.answer(
        {"member": kept.member, "role": kept.role.name, "workspace": workspace},
        f"{kept.member} has {kept.role.name} in {workspace or 'all workspaces'}",
    )


@member.command("list")
@_OF_WORKSPACE
@_ORG
@DATA
@command_options
def list_members(cli: CliContext, workspace: str | None, org: str, data: str | None) -> None:
    """List who has a role in an organisation, or in one of its workspaces alone.

    \b
    Examples:
      rmem member list
      rmem member list --workspace team-a --json
    """
    with control_of(cli, data) as (control, _):
        home = organization_of(control, org)
        records = control.members(home.id, _workspace(control, home.id, workspace), limit=1_000_000)
    found = [{"member": record.member, "role": record.role.name, "created": record.created} for record in records]
    _print_list(cli, "members", found, {"member": "MEMBER", "role": "ROLE", "created": "SINCE"})


@member.command("remove")
@click.argument("name", metavar="MEMBER")
@_OF_WORKSPACE
@_ORG
@DATA
@command_options
def remove_member(cli: CliContext, name: str, workspace: str | None, org: str, data: str | None) -> None:
    """Take a role away. It counts within two seconds on a server that runs.

    With the last role all tokens of the member end for good; adding the member again needs new ones.

    \b
    Examples:
      rmem member remove alice
      rmem member remove agent-7 --workspace team-a
    """
    with control_of(cli, data) as (control, _):
        home = organization_of(control, org)
        if not control.remove_member(home.id, name, _workspace(control, home.id, workspace)):
            raise InputError(f"{name!r} has no role {'in ' + workspace if workspace else 'here'}", field="MEMBER")
    cli.answer({"removed": name}, f"Removed {name}")


# Tokens


@command_group
def token() -> None:
    """Make, list and revoke tokens. A token is shown once; the server keeps a hash.

    \b
    Examples:
      rmem token create alice --days 30
      rmem token list --json
      rmem token revoke 3f0c9a7be21d4e55
    """


@token.command("create")
@click.argument("name", metavar="MEMBER")
@click.option("--role", type=_ROLE, default="admin", help="No more than this, whatever the member may do.")
@click.option("--workspace", metavar="NAME", help="For this workspace alone.")
@click.option("--days", type=float, default=90.0, show_default=True, metavar="N", help="Until it expires.")
@click.option("--label", default="", metavar="TEXT", help="What it is for.")
@_ORG
@DATA
@command_options
def create_token(
    cli: CliContext, name: str, role: str, workspace: str | None, days: float, label: str, org: str, data: str | None
) -> None:
    """Make a token for a member and print it.

    \b
    Examples:
      export RMEM_API_KEY="$(rmem token create alice)"
      rmem token create ci --role read --workspace team-a --days 7 --label "nightly report"
    """
    from ..server.tokens import Tokens, signing_secret

    with control_of(cli, data) as (control, settings):
        home = organization_of(control, org)
        if not control.is_member(home.id, name):
            raise InputError(
                f"{name!r} is no member of {home.name}; `rmem member add {name} write` makes it one", field="MEMBER"
            )
        tokens = Tokens(control, signing_secret(settings.data))
        place = _workspace(control, home.id, workspace)
        made, record = tokens.issue(home.id, name, role=_parse_role(role), workspace=place, days=days, label=label)
    if cli.json:
        cli.document({"token": made, "id": record.id, "org": home.id, "expires": record.expires})
        return
    cli.note(f"Token {record.id} of {name}, until {moment(record.expires)}. It is shown this once.")
    click.echo(made)


@token.command("list")
@_ORG
@DATA
@command_options
def list_tokens(cli: CliContext, org: str, data: str | None) -> None:
    """List the tokens of an organisation, without the tokens themselves.

    ROLE is what a token may do now: the lesser of its own role and its member's. Tokens of somebody who was removed
    are "member removed", and stay revoked when the member is added again.

    \b
    Examples:
      rmem token list
      rmem token list --json | jq '.tokens[] | select(.state == "valid")'
    """
    with control_of(cli, data) as (control, _):
        records = control.tokens(organization_of(control, org).id, limit=1_000_000)
    found = [
        {
            "id": record.id,
            "member": record.member,
            "role": record.role.name,
            "effective_role": None if record.effective_role is None else record.effective_role.name,
            "state": record.state,
            "created": record.created,
            "expires": record.expires,
            "label": record.label,
        }
        for record in records
    ]
    names = ("id", "member", "effective_role", "state", "created", "expires", "label")
    heads = ("ID", "MEMBER", "ROLE", "STATE", "MADE", "EXPIRES", "LABEL")
    _print_list(cli, "tokens", found, dict(zip(names, heads, strict=True)))


@token.command("revoke")
@click.argument("id", metavar="ID")
@_ORG
@DATA
@command_options
def revoke_token(cli: CliContext, id: str, org: str, data: str | None) -> None:
    """Revoke a token: it opens nothing any more, within two seconds on a server that runs.

    \b
    Examples:
      rmem token list
      rmem token revoke 3f0c9a7be21d4e55
    """
    with control_of(cli, data) as (control, _):
        if not control.revoke_token(organization_of(control, org).id, id):
            raise InputError(f"there is no token {id!r}; `rmem token list` shows them", field="ID")
    cli.answer({"revoked": id}, f"Revoked {id}")
