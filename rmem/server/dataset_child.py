"""Create and read Deep Lake datasets in a process of its own: their files come from clients, and the library is native
code. A task is one JSON object on standard input; the result is one on standard output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_STEP = 1000


def main() -> None:
    task = json.load(sys.stdin)
    try:
        result = {"make": _make, "read": _read}[task["do"]](task)
    except ValueError as error:
        result = {"error": str(error)}
    json.dump(result, sys.stdout)


def _types(columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the type of each column, from the kind and the dimension of a table's. What has no other is a text."""
    from deeplake import types

    plain = {
        "bigint": types.Int64, "integer": types.Int32, "smallint": types.Int16, "double precision": types.Float64,
        "real": types.Float32, "boolean": types.Bool, "bytea": types.Bytes,
        "float4[][]": lambda: types.Array("float32", 2),
    }  # fmt: skip
    made: dict[str, Any] = {}
    for name, (kind, dimension) in columns.items():
        if kind == "float4[]":
            made[name] = types.Embedding(dimension) if dimension else types.Array("float32", 1)
        else:
            made[name] = plain.get(kind, types.Text)()
    return made


def _make(task: dict[str, Any]) -> dict[str, Any]:
    """Return a dataset with the rows of a table, which come as columns."""
    import deeplake

    dataset = deeplake.create(Path(task["folder"]).as_uri(), schema=_types(task["columns"]))
    rows = {name: _given(name, kind, task["rows"][name]) for name, (kind, _) in task["columns"].items()}
    count = len(next(iter(rows.values())))
    for start in range(0, count, _STEP):
        dataset.append({name: values[start : start + _STEP] for name, values in rows.items()})
    dataset.commit()
    return {"rows": count}


def _given(name: str, kind: str, values: list[Any]) -> list[Any]:
    if kind in ("double precision", "real"):
        return [float("nan") if value is None else float(value) for value in values]
    if kind in ("bigint", "integer", "smallint", "boolean") and None in values:
        raise ValueError(f"column {name!r} holds NULL, which a Deep Lake dataset has not for {kind}")
    if kind in ("float4[]", "float4[][]"):  # the library takes [0.5, 1] for [0.5, 0]
        return [None if value is None else np.array(value, np.float32) for value in values]
    if kind == "bytea":
        return [None if value is None else bytes.fromhex(value.removeprefix("\\x")) for value in values]
    return values


def _read(task: dict[str, Any]) -> dict[str, Any]:
    """Return the rows that were appended behind the first `known` ones, as columns."""
    import deeplake

    dataset = deeplake.open_read_only(Path(task["folder"]).as_uri())
    expected = {name: str(type) for name, type in _types(task["columns"]).items()}
    found = {column.name: str(column.dtype) for column in dataset.schema.columns}
    if found.keys() != expected.keys():
        raise ValueError("the columns of a table cannot be changed through its dataset; use ALTER TABLE")
    known, count = task["known"], len(dataset)
    if count < known:
        raise ValueError("rows cannot be removed through a dataset; use DELETE")
    if count == known:
        return {"rows": {name: [] for name in expected}}
    return {"rows": {name: _to_list(dataset[name][known:count]) for name in expected}}


def _to_list(values: Any) -> list[Any]:
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [_value(value) for value in listed]


def _value(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return "\\x" + value.hex() if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()
