"""Check columns of Python values against a table before a bulk insert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import SqlError
from ..catalog import Column, Kind, Table
from .expression_types import NAMES
from .json_values import json_text
from .literals import fit


def check_columns(table: Table, columns: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return column names and rows of plain values that fit them; JSONB as text."""
    if not isinstance(columns, Mapping) or not columns:
        raise SqlError("columns must be a mapping of names to lists of values, with at least one column")
    names = list(columns)
    length = None
    checked = []
    for name in names:
        column = table.column(name)
        if column is None:
            raise SqlError(f'column "{name}" does not exist in table "{table.name}"')
        values = columns[name]
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            raise SqlError(f'column "{name}" must be a list of values, got {type(values).__name__}')
        if length is not None and len(values) != length:
            raise SqlError(f'column "{name}" has {len(values)} values, but column "{names[0]}" has {length}')
        length = len(values)
        checked.append(
            _matrix(values, column) or [_check_value(value, column, row) for row, value in enumerate(values)]
        )
    return names, list(zip(*checked, strict=True))


def _matrix(values: Any, column: Column) -> list[Any] | None:
    """Check the vectors of a two-dimensional array at once; None if it is not one or has a bad value."""
    if column.type.kind != Kind.VECTOR or not isinstance(values, np.ndarray) or values.ndim != 2:
        return None
    if values.dtype.kind != "f" or (column.type.dimension or values.shape[1]) != values.shape[1]:
        return None
    data = np.ascontiguousarray(values, dtype=np.float32)
    return list(data) if np.isfinite(data).all() else None


def _check_value(value: Any, column: Column, row: int) -> Any:
    if value is None:
        if not column.nullable:
            raise SqlError(f'column "{column.name}", row {row}: NULL is not allowed')
        return None
    limits = column.type
    try:
        found = fit(value, NAMES[limits.kind])
        if limits.length is not None and len(found) > limits.length:
            raise SqlError(f"at most {limits.length} characters, got {len(found)}")
        if limits.kind in (Kind.VECTOR, Kind.VECTORS):
            found = np.asarray(found, np.float32)
            if limits.dimension is not None and found.shape[-1] != limits.dimension:
                raise SqlError(f"expected a vector of dimension {limits.dimension}, got {found.shape[-1]}")
        return json_text(found) if limits.kind is Kind.JSONB else found
    except SqlError as error:
        raise SqlError(f'column "{column.name}", row {row}: {error}') from None
