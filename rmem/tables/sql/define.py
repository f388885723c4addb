"""Apply CREATE TABLE, CREATE INDEX and ALTER TABLE to the catalogue, checked before any engine sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError, TableExistsError
from ..catalog import Check, Column, Index, Kind, Reference, Table, quote_identifier
from .bind import Binder
from .dialect import Dialect
from .expression_types import NAMES, long_name, read_type, result_type
from .parse import parse
from .scope import (
    NameScope,
    Source,
    base_table,
    check_name,
    fold_name,
    missing_column,
    only,
    shown,
    table_name,
    table_source,
    unsupported,
)

MAX_COLUMNS = 1000
_SERIAL = (exp.DType.SERIAL, exp.DType.BIGSERIAL, exp.DType.SMALLSERIAL)
_ACTIONS = ("NO ACTION", "RESTRICT", "CASCADE", "SET NULL")
SEARCH = "search"
_METHODS = {"": "btree", "btree": "btree", "deeplake_index": SEARCH, "deeplake": SEARCH, "search": SEARCH}
_INDEX_TYPES = (
    "bm25", "vector", "embedding", "exact_text", "exact", "inverted", "inverted_index", "hybrid", "cosine", "maxsim",
    "clustered", "clustered_quantized", "pooled_quantized",
)  # fmt: skip
_WHOLE = {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}
_SEARCHED = (Kind.TEXT, Kind.VECTOR, Kind.VECTORS)


def text(node: exp.Expression) -> str:
    """Write an expression in PostgreSQL's syntax, as the catalogue stores it."""
    return node.sql(dialect=Dialect)


def create_statement(name: str, columns: Mapping[str, str]) -> exp.Create:
    """Return the CREATE TABLE for columns and the words of their types; refuse words that are more than a type."""
    body = ", ".join(f"{quote_identifier(column)} {words}" for column, words in columns.items())
    tree = parse(f"CREATE TABLE {quote_identifier(name)} ({body})").tree
    found = [item.this.name if isinstance(item, exp.ColumnDef) else "" for item in tree.this.expressions]
    if not isinstance(tree, exp.Create) or found != list(columns) or tree.args.get("properties"):
        raise SqlError(f"each column of table {name!r} takes one type and no more")
    only(tree, "this", "kind")
    return tree


def table_of(tree: exp.Create, catalogue: Mapping[str, Table], workspace: str) -> Table:
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        raise SqlError("CREATE TABLE needs columns: CREATE TABLE t (id BIGINT, …)")
    name = check_name(table_name(schema.this, workspace), "table")
    builder = Builder(name, catalogue, workspace)
    for item in schema.expressions:
        builder.add(item)
    return builder.table()


def check_properties(tree: exp.Create) -> None:
    """Allow only `USING deeplake`."""
    only(tree, "this", "kind", "exists", "properties", "expression", "unique")
    for item in tree.args["properties"].expressions if tree.args.get("properties") else []:
        method = fold_name(item.this) if isinstance(item, exp.FileFormatProperty) else ""
        if method not in ("deeplake", "heap"):
            raise SqlUnsupportedError(f"{shown(item)} is not supported in CREATE TABLE")


class Builder:
    def __init__(self, name: str, catalogue: Mapping[str, Table], workspace: str) -> None:
        self.name = name
        self.catalogue = catalogue
        self.workspace = workspace
        self.columns: dict[str, Column] = {}
        self.key: tuple[str, ...] = ()
        self.uniques: list[tuple[str, tuple[str, ...]]] = []
        self.checks: list[tuple[str, str, exp.Expression]] = []
        self.references: list[tuple[str, tuple[str, ...], exp.Reference]] = []

    def add(self, item: exp.Expression, constraint: str = "", own: tuple[str, ...] = ()) -> None:
        """Add a column or a constraint; `own` is the column that the constraint was written behind."""
        if isinstance(item, exp.ColumnDef):
            self.column(item)
        elif isinstance(item, exp.Constraint):
            only(item, "this", "expressions")
            for inner in item.expressions:
                self.add(inner, check_name(fold_name(item.this), "constraint"))
        elif isinstance(item, exp.PrimaryKey | exp.PrimaryKeyColumnConstraint):
            if self.key:
                raise SqlError(f'multiple primary keys for table "{self.name}" are not allowed')
            self.key = own or tuple(_name_of(column) for column in item.expressions)
        elif isinstance(item, exp.UniqueColumnConstraint):
            names = item.this.expressions if isinstance(item.this, exp.Schema) else []
            if item.args.get("nulls"):
                raise SqlUnsupportedError("UNIQUE NULLS NOT DISTINCT is not supported")
            self.uniques.append((constraint, own or tuple(_name_of(column) for column in names)))
        elif isinstance(item, exp.CheckColumnConstraint):
            self.checks.append((constraint, "".join(own), item.this))
        elif isinstance(item, exp.ForeignKey):
            only(item, "expressions", "reference")
            columns = tuple(_name_of(column) for column in item.expressions)
            self.references.append((constraint, columns, item.args["reference"]))
        elif isinstance(item, exp.Reference):
            self.references.append((constraint, own, item))
        else:
            raise SqlUnsupportedError(f"{shown(item)} is not supported in CREATE TABLE")

    def column(self, item: exp.ColumnDef) -> Column:
        only(item, "this", "kind", "constraints", "exists")
        name = check_name(fold_name(item.this), "column")
        if name in self.columns:
            raise SqlError(f'column "{name}" specified more than once')
        if not isinstance(item.args.get("kind"), exp.DataType):
            raise SqlError(f'column "{name}" needs a type')
        kind, limits = read_type(item.args["kind"])
        if kind not in NAMES.values() and result_type(kind) is None:
            raise SqlUnsupportedError(f'column "{name}": type {long_name(kind)} is not supported for columns')
        serial = item.args["kind"].this in _SERIAL
        column = Column(name, limits, nullable=not serial, serial=serial)
        self.columns[name] = column
        constraint = ""
        for wrapped in item.args.get("constraints") or []:
            constraint = fold_name(wrapped.this) if wrapped.args.get("this") is not None else ""
            column = self._apply_constraint(column, wrapped.args["kind"], constraint)
        self.columns[name] = column
        if len(self.columns) > MAX_COLUMNS:
            raise SqlError(f"a table may have {MAX_COLUMNS} columns")
        return column

    def _apply_constraint(self, column: Column, kind: exp.Expression, constraint: str) -> Column:
        if isinstance(kind, exp.NotNullColumnConstraint):
            return replace(column, nullable=bool(kind.args.get("allow_null")) and not column.serial)
        if isinstance(kind, exp.DefaultColumnConstraint):
            if column.serial:
                raise SqlError(f'multiple default values specified for column "{column.name}"')
            return replace(column, default=default_text(kind.this, column))
        if isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
            if column.type.kind not in _WHOLE:
                raise SqlError("identity column type must be smallint, integer, or bigint")
            return replace(column, serial=True, nullable=False)
        self.add(kind, constraint, (column.name,))
        return column

    def table(self) -> Table:
        if not self.columns:
            raise SqlError(f'table "{self.name}" needs at least one column')
        for names in (self.key, *(unique for _, unique in self.uniques), *(own for _, own, _ in self.references)):
            for name in names:
                if name not in self.columns:
                    raise SqlError(f'column "{name}" named in key does not exist')
        columns = tuple(
            replace(column, nullable=False) if column.name in self.key else column for column in self.columns.values()
        )
        return self.add_constraints(Table(self.name, columns, self.key))

    def add_constraints(self, table: Table) -> Table:
        """Return the table with its keys, checks and references."""
        names = {index.name for index in table.indexes} | {check.name for check in table.checks}
        for name, unique in self.uniques:
            chosen = free_name(name or f"{self.name}_{'_'.join(unique)}_key", names, self.catalogue)
            table = replace(table, indexes=(*table.indexes, Index(chosen, self.name, unique, unique=True)))
        for name, column, condition in self.checks:
            chosen = free_name(name or f"{self.name}_{column + '_' if column else ''}check", names, {})
            table = replace(table, checks=(*table.checks, check_of(chosen, condition, table)))
        for name, own, reference in self.references:
            chosen = free_name(name or f"{self.name}_{'_'.join(own)}_fkey", names, {})
            made = reference_of(chosen, own, reference, table, self.catalogue, self.workspace)
            table = replace(table, references=(*table.references, made))
        return table


def _name_of(node: exp.Expression) -> str:
    node = node.this if isinstance(node, exp.Ordered) else node
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        return fold_name(node.this)
    if isinstance(node, exp.Identifier):
        return fold_name(node)
    raise SqlUnsupportedError(f"only columns are supported here, not {shown(node)}")


def free_name(name: str, used: set[str], catalogue: Mapping[str, Table]) -> str:
    """Return an unused name: `t_a_key`, `t_a_key1` …"""
    taken = used | {index.name for table in catalogue.values() for index in table.indexes}
    base, count = name[:60], 0
    while name in taken:
        count += 1
        name = f"{base}{count}"
    used.add(name)
    return name


def default_text(node: exp.Expression, column: Column) -> str | None:
    """Return the default of a column, checked: it fits the type and refers to no columns."""
    if isinstance(node.unnest(), exp.Null):
        return None
    words = text(node)
    bind_value(words, column)
    return words


def bind_value(words: str, column: Column) -> exp.Expression:
    from .statements import check_assignable

    tree = parse(f"SELECT {words}").tree
    node = tree.expressions[0]
    kind = NAMES[column.type.kind]
    if node.find(exp.Column, exp.Query, exp.Parameter, exp.Placeholder) is not None:
        raise SqlError(f'column "{column.name}": a default cannot refer to columns, queries or parameters')
    try:
        have = Binder({}, "").expressions.bind(node, NameScope(), kind)
    except SqlUnsupportedError:
        raise
    except SqlError as error:
        raise SqlError(f'column "{column.name}": {error}') from None
    check_assignable(have, kind, column.name)
    return tree.expressions[0] if isinstance(tree.expressions[0], exp.Expression) else node


def check_of(name: str, condition: exp.Expression, table: Table) -> Check:
    for column in condition.find_all(exp.Column):
        if column.table and fold_name(column.args["table"]) != table.name:
            raise SqlError(f'missing FROM-clause entry for table "{column.table}"')
    words = text(condition)
    bind_check(words, table)
    return Check(name, words)


def bind_check(words: str, table: Table) -> tuple[exp.Expression, Source]:
    """Bind a CHECK; return the condition and the row that it reads. A column's table may have been renamed since."""
    tree = parse(f"SELECT {words}").tree
    node = tree.expressions[0]
    for column in node.find_all(exp.Column):
        column.set("table", None)
    if node.find(exp.Query, exp.Parameter, exp.Placeholder) is not None:
        raise SqlError("a CHECK cannot hold queries or parameters")
    binder = Binder({}, "")
    source = table_source(binder.alias("new"), table)
    binder.expressions.boolean(node, NameScope(sources={table.name: source}), "CHECK")
    return tree.expressions[0], source


def reference_of(
    name: str,
    own: tuple[str, ...],
    node: exp.Reference,
    table: Table,
    catalogue: Mapping[str, Table],
    workspace: str,
) -> Reference:
    schema = node.this
    target = schema.this if isinstance(schema, exp.Schema) else schema
    other_name = table_name(target, workspace)
    other = table if other_name == table.name else base_table(other_name, catalogue, workspace)
    targets = tuple(fold_name(column) for column in schema.expressions) if isinstance(schema, exp.Schema) else ()
    targets = targets or other.primary_key
    if not targets:
        raise SqlError(f'there is no primary key for referenced table "{other.name}"')
    if len(targets) != len(own):
        raise SqlError("number of referencing and referenced columns for foreign key disagree")
    unique = [other.primary_key, *(index.columns for index in other.indexes if index.unique)]
    if not any(set(targets) == set(columns) for columns in unique):
        raise SqlError(f'there is no unique constraint matching given keys for referenced table "{other.name}"')
    for mine, theirs in zip(own, targets, strict=True):
        a, b = table.column(mine), other.column(theirs)
        if a is None or b is None:
            raise missing_column(mine if a is None else theirs, table if a is None else other)
        if a.type.kind != b.type.kind and not {a.type.kind, b.type.kind} <= _WHOLE:
            raise SqlError(
                f'foreign key constraint "{name}" cannot be implemented: key columns "{mine}" and "{theirs}" '
                f"are of different types: {a.type.kind} and {b.type.kind}"
            )
    actions = {"DELETE": "NO ACTION", "UPDATE": "NO ACTION"}
    for option in node.args.get("options") or []:
        words = str(option).upper()
        found = next((key for key in actions if words.startswith(f"ON {key} ")), None)
        action = words.removeprefix(f"ON {found} ") if found else ""
        if found is None or action not in _ACTIONS:
            raise SqlUnsupportedError(f"REFERENCES … {words} is not supported")
        actions[found] = action
    return Reference(name, own, other.name, targets, actions["DELETE"], actions["UPDATE"])


# -- indexes ---------------------------------------------------------------------------------------------------


def index_of(tree: exp.Create, catalogue: Mapping[str, Table], workspace: str) -> Index:
    only(tree, "this", "kind", "exists", "unique")
    node = tree.this
    only(node, "this", "table", "params")
    table = base_table(table_name(node.args["table"], workspace), catalogue, workspace)
    params = node.args["params"]
    only(params, "using", "columns", "with_storage")
    method = fold_name(params.args["using"]) if params.args.get("using") is not None else ""
    if method not in _METHODS:
        raise SqlUnsupportedError(f"USING {method} is not supported; there is btree, and deeplake_index for search")
    named: list[str] = []
    for key in params.args.get("columns") or []:
        only(key, "this", "desc", "nulls_first")
        named.append(_name_of(key.this))
    columns = tuple(named)
    options: dict[str, str] = {}
    for item in params.args.get("with_storage") or []:
        options[fold_name(item.this)] = str(item.args["value"].name).lower()
    name = fold_name(node.this) if node.this is not None else ""
    unique, method = bool(tree.args.get("unique")), _METHODS[method]
    if method == SEARCH:
        method, unique, options = _resolve_search_index(table, columns, unique, options)
    for column in columns:
        found = table.column(column)
        if found is None:
            raise missing_column(column, table)
        if method == SEARCH and found.type.kind not in _SEARCHED:
            raise SqlError(f'column "{column}" of type {found.type.kind} cannot be searched; TEXT and FLOAT4[] can')
        if method != SEARCH and found.type.kind in (Kind.VECTOR, Kind.VECTORS):
            raise SqlError(f'column "{column}" of type {found.type.kind} takes an index USING deeplake_index')
    if not columns or len(set(columns)) != len(columns):
        raise SqlError("an index needs columns, each once")
    if method == SEARCH and unique:
        raise SqlError("an index USING deeplake_index cannot be UNIQUE")
    for option, value in options.items():
        if method != SEARCH or option != "index_type":
            raise SqlUnsupportedError(f"index option {option} is not supported")
        if value not in _INDEX_TYPES:
            raise SqlError(f"index_type must be one of {', '.join(_INDEX_TYPES)}, got {value!r}")
    chosen = check_name(name, "index") if name else free_name(f"{table.name}_{'_'.join(columns)}_idx", set(), catalogue)
    return Index(chosen, table.name, columns, method, unique, options)


def _resolve_search_index(
    table: Table, columns: tuple[str, ...], unique: bool, options: dict[str, str]
) -> tuple[str, bool, dict[str, str]]:
    """Resolve USING deeplake_index: on plain values it is a btree; the dimension is the column's own."""
    left = {name: value for name, value in options.items() if name != "dimension"}
    wanted = left.get("index_type")
    kinds = [found.type.kind for column in columns if (found := table.column(column)) is not None]
    of_values = bool(kinds) and not any(kind in _SEARCHED for kind in kinds)
    if wanted == "unique" or (of_values and wanted in (None, "inverted", "inverted_index")):
        return "btree", unique or wanted == "unique", {}
    dimensions = {found.type.dimension for column in columns if (found := table.column(column)) is not None}
    given = options.get("dimension")
    if given is not None and not (given.isdecimal() and dimensions & {None, int(given)}):
        raise SqlError(f"dimension must be that of the column, got {given!r}")
    return SEARCH, unique, left


# -- ALTER TABLE ------------------------------------------------------------------------------------------------


def apply_alter(table: Table, tree: exp.Alter, catalogue: Mapping[str, Table], workspace: str) -> Table:
    actions = tree.args["actions"]
    dropped = {
        fold_name(node.this) for action in actions if isinstance(action, exp.Drop) for node in action.args["tables"]
    }
    if any(fold_name(action.this) in dropped for action in actions if isinstance(action, exp.ColumnDef)):
        raise unsupported("ALTER TABLE that drops and adds one column", "Use two statements")
    for action in actions:
        if isinstance(action, exp.ColumnDef):
            table = _add_column(table, action, catalogue, workspace)
        elif isinstance(action, exp.Drop) and action.args.get("kind") == "COLUMN":
            table = _drop_columns(table, action, catalogue)
        else:
            raise unsupported(f"ALTER TABLE … {shown(action)}", "ADD COLUMN, UPDATE and DROP COLUMN change a column")
    return table


def _add_column(table: Table, action: exp.ColumnDef, catalogue: Mapping[str, Table], workspace: str) -> Table:
    name = fold_name(action.this)
    if table.column(name) is not None:
        if action.args.get("exists"):
            return table
        raise TableExistsError(f'column "{name}" of relation "{table.name}" already exists')
    builder = Builder(table.name, catalogue, workspace)
    column = builder.column(action)
    if builder.key:
        raise SqlUnsupportedError("ADD COLUMN … PRIMARY KEY is not supported")
    if len(table.columns) >= MAX_COLUMNS:
        raise SqlError(f"a table may have {MAX_COLUMNS} columns")
    return builder.add_constraints(replace(table, columns=(*table.columns, column)))


def _drop_columns(table: Table, action: exp.Drop, catalogue: Mapping[str, Table]) -> Table:
    for node in action.args["tables"]:
        name = fold_name(node.this)
        if table.column(name) is None:
            if action.args.get("exists"):
                continue
            raise missing_column(name, table)
        if len(table.columns) == 1:
            raise SqlUnsupportedError(f'table "{table.name}" must keep at least one column')
        for other in catalogue.values():
            for reference in other.references:
                if reference.table == table.name and name in reference.targets:
                    raise SqlError(f'cannot drop column "{name}": constraint "{reference.name}" depends on it')
        table = replace(
            table,
            columns=tuple(column for column in table.columns if column.name != name),
            primary_key=() if name in table.primary_key else table.primary_key,
            indexes=tuple(index for index in table.indexes if name not in index.columns),
            checks=tuple(check for check in table.checks if name not in _columns_of(check)),
            references=tuple(reference for reference in table.references if name not in reference.columns),
        )
    return table


def _columns_of(check: Check) -> set[str]:
    return {fold_name(column.this) for column in parse(f"SELECT {check.condition}").tree.find_all(exp.Column)}
