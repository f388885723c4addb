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
from .sql.alter import apply_alter
from .sql.bind import Binder
from .sql.kinds import kind_of
from .sql.scope import base_table, check_name, fold_name, only, shown, table_name

T = TypeVar("T")
_TRIES = 5


class Definitions:
    """The DDL statements of one workspace. `run` binds and runs a statement that writes rows; `create_index` creates an
    index."""

    def __init__(
        self,
        engine: Engine,
        workspace: str,
        run: Callable[[exp.Expression], Result],
        create_index: Callable[[Index, bool], None],
    ) -> None:
        self._engine, self._workspace, self._run, self._create_index = engine, workspace, run, create_index

    def run(self, tree: exp.Expression, sql: str) -> Result:
        """Run one DDL statement; `sql` is its text."""
        if isinstance(tree, exp.Create) and tree.args.get("kind") == "VIEW":
            return self._engine.run_in_transaction(lambda: self._create_view(tree, sql))
        if isinstance(tree, exp.Create):
            return self._create(tree)
        if isinstance(tree, exp.Drop):
            return self._drop(tree)
        if isinstance(tree, exp.Alter) and tree.args.get("kind") == "TABLE":
            return self._alter(tree)
        if isinstance(tree, exp.TruncateTable):
            return self._truncate(tree)
        if isinstance(tree, (exp.Condition, exp.Alias)):  # an expression, such as a misspelt SELECT
            raise SqlError(f"the statement cannot be read: {shown(tree)!r} is not the beginning of one")
        raise SqlUnsupportedError(f"{kind_of(tree)} statements are not supported")

    def _create(self, tree: exp.Create) -> Result:
        kind = tree.args.get("kind")
        exists_ok = bool(tree.args.get("exists"))
        catalogue = self._engine.tables()
        if kind == "INDEX":
            index = define.index_of(tree, catalogue, self._workspace)
            self._create_index(index, exists_ok)
            return Result()
        if kind != "TABLE":
            raise SqlUnsupportedError(f"CREATE {kind} is not supported")
        define.check_properties(tree)
        if tree.expression is not None:
            return self._create_as(tree, exists_ok)
        name = table_name(tree.this.this if isinstance(tree.this, exp.Schema) else tree.this, self._workspace)
        if name in catalogue and exists_ok:
            return Result()
        if name in catalogue:
            raise TableExistsError(f'relation "{name}" already exists')
        self._engine.create_table(define.table_of(tree, catalogue, self._workspace), exists_ok=exists_ok)
        return Result()

    def _create_view(self, tree: exp.Create, sql: str) -> Result:
        catalogue = self._engine.tables()
        view = views.view_of(tree, sql, catalogue, self._workspace)
        if view.name in catalogue:
            views.check_altered(view.name, view, catalogue, self._workspace)
            self._engine.drop_table(view.name)
        self._engine.create_table(view)
        return Result()

    def _create_as(self, tree: exp.Create, exists_ok: bool) -> Result:
        """Run CREATE TABLE … AS SELECT: table and rows in one transaction."""
        if isinstance(tree.this, exp.Schema):
            raise SqlUnsupportedError("CREATE TABLE … (columns) AS is not supported; name the columns in the SELECT")
        name = check_name(table_name(tree.this, self._workspace), "table")
        catalogue = self._engine.tables()
        if name in catalogue:
            if exists_ok:
                return Result()
            raise TableExistsError(f'relation "{name}" already exists')
        source = tree.expression.copy()
        columns = views.columns_of(Binder(catalogue, self._workspace).query(source, None))

        def made() -> Result:
            self._engine.create_table(Table(name, columns))
            target = exp.Table(this=exp.Identifier(this=name, quoted=True))
            insert = exp.Insert(this=target, expression=tree.expression.copy())
            return Result(row_count=self._run(insert).row_count)

        return self._engine.run_in_transaction(made)

    def _drop(self, tree: exp.Drop) -> Result:
        only(tree, "this", "tables", "kind", "exists", "cascade", "restrict", "expressions")
        names = [fold_name(node.this) for node in tree.args.get("tables") or [tree.this]]
        if tree.args.get("kind") == "INDEX":
            missing_ok = bool(tree.args.get("exists"))
            self._engine.run_in_transaction(
                lambda: [self._engine.drop_index(name, missing_ok=missing_ok) for name in names]
            )
            return Result()
        kind = str(tree.args.get("kind"))
        if kind not in ("TABLE", "VIEW"):
            raise SqlUnsupportedError(f"DROP {kind} is not supported")
        nodes = [node for node in tree.args.get("tables") or [tree.this] if isinstance(node, exp.Table)]
        self.drop([table_name(node, self._workspace) for node in nodes], kind, bool(tree.args.get("exists")))
        return Result()

    def drop(self, names: Sequence[str], kind: str, missing_ok: bool) -> bool:
        """Drop all of these tables or views, or none; return whether any existed."""

        def drop() -> bool:
            catalogue = self._engine.tables()
            known = [name for name in names if name in catalogue]
            for name in names:
                if name not in catalogue and not missing_ok:
                    raise NoSuchTableError(f'{kind.lower()} "{name}" does not exist in workspace "{self._workspace}"')
            for name in known:
                found = "TABLE" if catalogue[name].view is None else "VIEW"
                if found != kind:
                    raise SqlError(f'"{name}" is not a {kind.lower()}; use DROP {found}')
            views.check_unused(set(known), catalogue, self._workspace)
            try:
                ordered = parents_first(catalogue[name] for name in known)
            except CycleError:
                raise ConstraintError(
                    f"{', '.join(known)} refer to each other; drop one of the columns first"
                ) from None
            for table in reversed(ordered):
                self._engine.drop_table(table.name)
            return bool(known)

        return retry_if_stale(lambda: self._engine.run_in_transaction(drop))

    def _alter(self, tree: exp.Alter) -> Result:
        name = table_name(tree.this, self._workspace)
        catalogue = self._engine.tables()
        if name not in catalogue:
            if tree.args.get("exists"):
                return Result()
            raise NoSuchTableError(f'table "{name}" does not exist in workspace "{self._workspace}"')
        changed = apply_alter(base_table(name, catalogue, self._workspace), tree, catalogue, self._workspace)
        if changed != catalogue[name]:
            views.check_altered(name, changed, catalogue, self._workspace)
            self._engine.alter_table(name, changed, tree)
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
