"""Run CREATE, DROP, ALTER and TRUNCATE: check dependencies, then change the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from graphlib import CycleError
from typing import TypeVar

from sqlglot import exp

from ..errors import ConstraintError, NoSuchTableError, SqlError, SqlUnsupportedError, TableExistsError
from .catalog import Index, Table, parents_first
from .engines.base import Engine, StaleCatalogueError
from .results import Result
from .sql import define, views
from .sql.bind import Binder
from .sql.parse import kind_of
from .sql.scope import base_table, check_name, fold_name, only, shown, table_name

T = TypeVar("T")
_TRIES = 5


class Definitions:
    """The DDL statements of one workspace. `run` binds and runs a statement that writes rows."""

    def __init__(self, engine: Engine, workspace: str, run: Callable[[exp.Expression], Result]) -> None:
        self._engine, self._workspace, self._run = engine, workspace, run

    def run(self, tree: exp.Expression) -> Result:
        kind = kind_of(tree)
        match tree, kind:
            case exp.Create(), "CREATE TABLE":
                return self._create_table(tree)
            case exp.Create(), "CREATE VIEW":
                return self._change(lambda catalogue: self._create_view(tree, catalogue))
            case exp.Drop(), "DROP TABLE" | "DROP VIEW":
                nodes = [node for node in _dropped(tree) if isinstance(node, exp.Table)]
                names = [table_name(node, self._workspace) for node in nodes]
                self.drop(names, str(tree.args["kind"]), bool(tree.args.get("exists")))
                return Result()
            case exp.Drop(), "DROP INDEX":
                self.drop_indexes([fold_name(node.this) for node in _dropped(tree)], bool(tree.args.get("exists")))
                return Result()
            case exp.Alter(), "ALTER TABLE":
                only(tree, "this", "kind", "exists", "actions")
                return self._change(lambda catalogue: self._alter(tree, catalogue))
            case exp.TruncateTable(), _:
                return self._truncate(tree)
            case exp.Condition() | exp.Alias(), _:  # an expression, such as a misspelt SELECT
                raise SqlError(f"the statement cannot be read: {shown(tree)!r} is not the beginning of one")
        raise SqlUnsupportedError(f"{kind} statements are not supported")

    def _change(self, work: Callable[[dict[str, Table]], T]) -> T:
        return retry_if_stale(lambda: self._engine.change_catalogue(work))

    def _create_table(self, tree: exp.Create) -> Result:
        define.check_properties(tree)
        columns, query = tree.this, tree.expression
        if query is not None and isinstance(columns, exp.Schema):
            raise SqlUnsupportedError("CREATE TABLE … (columns) AS is not supported; name the columns in the SELECT")
        name = table_name(columns.this if isinstance(columns, exp.Schema) else columns, self._workspace)

        def create(catalogue: dict[str, Table]) -> Result:
            if name in catalogue:
                if tree.args.get("exists"):
                    return Result()
                raise TableExistsError(f'relation "{name}" already exists')
            if query is None:
                self._engine.create_table(define.table_of(tree, catalogue, self._workspace))
                return Result()
            found = views.columns_of(Binder(catalogue, self._workspace).query(query.copy(), None))
            self._engine.create_table(Table(check_name(name, "table"), found))
            target = exp.Table(this=exp.Identifier(this=name, quoted=True))
            return Result(row_count=self._run(exp.Insert(this=target, expression=query.copy())).row_count)

        return self._change(create)

    def create_index(self, tree: exp.Create) -> Index | None:
        """Create an index and return it; None if there is one of its name and the statement allows that."""

        def create(catalogue: dict[str, Table]) -> Index | None:
            index = define.index_of(tree, catalogue, self._workspace)
            if any(index.name == other.name for table in catalogue.values() for other in table.indexes):
                if tree.args.get("exists"):
                    return None
                raise TableExistsError(f'index "{index.name}" already exists')
            self._engine.create_index(index)
            return index

        return self._change(create)

    def drop_indexes(self, names: Sequence[str], missing_ok: bool) -> bool:
        """Drop all of these indexes, or none; return whether any existed."""

        def drop(catalogue: dict[str, Table]) -> bool:
            known = {index.name: index for table in catalogue.values() for index in table.indexes}
            for name in names:
                if name in known:
                    self._engine.drop_index(known[name])
                elif not missing_ok:
                    raise NoSuchTableError(f'index "{name}" does not exist')
            return any(name in known for name in names)

        return self._change(drop)

    def _create_view(self, tree: exp.Create, catalogue: dict[str, Table]) -> Result:
        view = views.view_of(tree, catalogue, self._workspace)
        if view.name in catalogue:
            views.check_altered(view, catalogue, self._workspace)
            self._engine.drop_table(view.name)
        self._engine.create_table(view)
        return Result()

    def drop(self, names: Sequence[str], kind: str, missing_ok: bool) -> bool:
        """Drop all of these tables or views, or none; return whether any existed."""

        def drop(catalogue: dict[str, Table]) -> bool:
            known = [name for name in names if name in catalogue]
            for name in names:
                if name not in catalogue and not missing_ok:
                    raise NoSuchTableError(f'{kind.lower()} "{name}" does not exist in workspace "{self._workspace}"')
            for name in known:
                found = "TABLE" if catalogue[name].view is None else "VIEW"
                if found != kind:
                    raise SqlError(f'"{name}" is not a {kind.lower()}; use DROP {found}')
            views.check_unused(set(known), catalogue, self._workspace)
            for other in catalogue.values():
                used = {reference.table for reference in other.references}.intersection(known)
                if used and other.name not in known:
                    what = f'cannot drop table "{used.pop()}" because table "{other.name}" refers to it'
                    raise ConstraintError(f"{what}; drop that one first")
            try:
                ordered = parents_first(catalogue[name] for name in known)
            except CycleError:
                raise ConstraintError(
                    f"{', '.join(known)} refer to each other; drop one of the columns first"
                ) from None
            for table in reversed(ordered):
                self._engine.drop_table(table.name)
            return bool(known)

        return self._change(drop)

    def _alter(self, tree: exp.Alter, catalogue: dict[str, Table]) -> Result:
        name = table_name(tree.this, self._workspace)
        if name not in catalogue and tree.args.get("exists"):
            return Result()
        table = base_table(name, catalogue, self._workspace)
        changed = define.apply_alter(table, tree, catalogue, self._workspace)
        if changed != table:
            views.check_altered(changed, catalogue, self._workspace)
            self._engine.alter_table(changed)
        return Result()

    def _truncate(self, tree: exp.TruncateTable) -> Result:
        only(tree, "expressions", "identity", "option")
        if tree.args.get("identity") == "RESTART":
            raise SqlUnsupportedError("TRUNCATE … RESTART IDENTITY is not supported")

        def emptied() -> Result:
            for node in tree.expressions:
                self._run(exp.Delete(this=node.copy()))
            return Result()

        return self._engine.run_in_transaction(emptied) if len(tree.expressions) > 1 else emptied()


def _dropped(tree: exp.Drop) -> list[exp.Expr]:
    only(tree, "this", "tables", "kind", "exists", "cascade", "restrict", "expressions")
    return tree.args.get("tables") or [tree.this]


def retry_if_stale(run: Callable[[], T]) -> T:
    """Run again if a table changed after the statement was bound."""
    for tries in reversed(range(_TRIES)):
        try:
            return run()
        except StaleCatalogueError:
            if not tries:
                raise SqlError("the tables are being changed faster than the statement can be read") from None
        except RecursionError:
            raise SqlError("the statement is nested too deeply") from None
    raise AssertionError
