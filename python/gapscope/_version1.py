"""Converts tables of version 1 of the trace format to the columns of this version.

In version 1 a submission had `begin_ns` and `end_ns`, and no `kind`, which `gapscope query` derives from its function.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_NAMES = {"begin_ns": "start_ns", "end_ns": "duration_ns"}


def pandas_table(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Converts a pandas table."""
    if not _NAMES.keys() <= set(frame.columns):
        return frame
    return frame.assign(end_ns=frame["end_ns"] - frame["begin_ns"]).rename(columns=_NAMES)


def polars_table(frame: polars.DataFrame) -> polars.DataFrame:
    """Converts a Polars table."""
    if not _NAMES.keys() <= set(frame.columns):
        return frame
    return frame.with_columns(end_ns=frame["end_ns"] - frame["begin_ns"]).rename(_NAMES)


def arrow_table(rows: pyarrow.Table) -> pyarrow.Table:
    """Converts an Arrow table."""
    names: list[str] = rows.column_names
    if not _NAMES.keys() <= set(names):
        return rows
    durations = importlib.import_module("pyarrow.compute").subtract(rows["end_ns"], rows["begin_ns"])
    upgraded: pyarrow.Table = rows.set_column(names.index("end_ns"), "end_ns", durations)
    return upgraded.rename_columns([_NAMES.get(name, name) for name in names])
