"""Opens traces, and gives their tables and findings."""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _version1
from ._command import INCOMPLETE, CommandError, command

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: The version of the trace format that this package reads.
FORMAT_VERSION = 3


class TraceError(ValueError):
    """A trace cannot be read, or lacks the wanted data; the message says what to do."""


class MissingPackage(ImportError):
    """A package that only this function needs is missing."""


class Trace:
    """A trace of `gapscope record`. `load` opens one.

    Times are in nanoseconds on the monotonic clock of the machine that recorded. Unknown values are missing in the tables, never 0.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        """The folder of the trace."""
        try:
            manifest = json.loads((self.path / "trace.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise TraceError(f"{self.path} is not a trace: it has no trace.json") from None
        except (OSError, ValueError) as error:
            raise TraceError(f"{self.path}: trace.json cannot be read: {error}") from None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format_version"), int):
            raise TraceError(f"{self.path} is not a trace: its trace.json does not say which version of the format it has")
        if manifest["format_version"] > FORMAT_VERSION:
            version = manifest["format_version"]
            raise TraceError(
                f"{self.path} has version {version} of the format, and this package reads up to {FORMAT_VERSION}: upgrade it"
            )
        if not manifest.get("complete"):
            raise TraceError(
                f"{self.path} is not complete: it is still being recorded, or its recording was killed; wait for its end, "
                f"or run `gapscope recover {self.path}`"
            )
        self.manifest: dict[str, Any] = manifest
        """The facts about the trace as a whole; docs/trace-format.md lists the fields."""

    @functools.cached_property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables. docs/trace-format.md describes the tables and their columns."""
        return tuple(sorted(file.stem for file in self.path.glob("*.parquet")))

    @functools.cached_property
    def ranks(self) -> tuple[Trace, ...]:
        """The traces of the ranks of a distributed program, in the order of their numbers; empty for others."""
        folders = [folder for folder in self.path.glob("rank=*") if folder.name[5:].isdecimal()]
        return tuple(Trace(folder) for folder in sorted(folders, key=lambda folder: int(folder.name[5:])))

    @functools.cached_property
    def report(self) -> dict[str, Any]:
        """The findings: what `gapscope report --json` prints, with the same keys, and the picture as `activity`.

        Where tables of the trace cannot be read, `unread` names them, and figures that need them are None.

        Raises CommandError when the command is missing or fails.
        """
        program = command()
        # The picture has room for 240 bars.
        arguments = [str(program), "report", "--json", "--slices", "240", os.path.abspath(self.path)]
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8")
        if done.returncode not in (0, INCOMPLETE):
            complaint = done.stderr.strip().removeprefix("gapscope: ")
            raise CommandError(complaint or f"{program.name} report ended with {done.returncode}")
        if not done.stdout:
            raise CommandError(done.stderr.strip().removeprefix("gapscope: "))
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @property
    def verdict(self) -> str:
        """The kind of limit on the program's speed.

        `host-bound`, `device-bound`, `transfer-bound`, `sync-bound`, `communication-bound`, `latency-bound`, `mixed`, `unknown`.
        """
        return str(self.report["verdict"])

    def file(self, table: str) -> Path:
        """Returns the Parquet file of a table, for tools such as DuckDB. Its columns are those of the trace's format version."""
        if table not in self.tables:
            raise TraceError(f"the trace has no table {table!r}; it has {', '.join(self.tables)}")
        return self.path / f"{table}.parquet"

    def to_pandas(self, table: str) -> pandas.DataFrame:
        """Returns a table as a pandas DataFrame. Its types can hold missing values, so that times stay exact integers.

        Raises MissingPackage without pandas and pyarrow: `pip install 'gapscope[pandas]'`.
        """
        file = self.file(table)
        module = _package("pandas", "to_pandas", "pandas")
        _package("pyarrow", "to_pandas", "pandas")
        frame: pandas.DataFrame = module.read_parquet(file, engine="pyarrow", dtype_backend="numpy_nullable")
        return _version1.pandas_table(frame)

    def to_polars(self, table: str) -> polars.DataFrame:
        """Returns a table as a Polars DataFrame.

        Raises MissingPackage without polars: `pip install 'gapscope[polars]'`.
        """
        file = self.file(table)
        frame: polars.DataFrame = _package("polars", "to_polars", "polars").read_parquet(file)
        return _version1.polars_table(frame)

    def to_arrow(self, table: str) -> pyarrow.Table:
        """Returns a table as a pyarrow Table.

        Raises MissingPackage without pyarrow: `pip install 'gapscope[arrow]'`.
        """
        file = self.file(table)
        _package("pyarrow", "to_arrow", "arrow")
        rows: pyarrow.Table = importlib.import_module("pyarrow.parquet").read_table(file)
        return _version1.arrow_table(rows)

    def __repr__(self) -> str:
        return f"gapscope.load({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Returns the verdict, a picture and the largest causes and kernels as HTML, for notebooks."""
        from ._html import failure, page

        try:
            return page(self.report, self.path.name)
        except CommandError as error:
            return failure(self.path.name, str(error))


def load(path: str | os.PathLike[str]) -> Trace:
    """Opens a trace. Raises TraceError, which says what to do, when the folder is not a trace or not complete."""
    return Trace(path)


def _package(name: str, function: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f"{function} needs {name}, which cannot be imported ({error}): pip install 'gapscope[{extra}]'", name=name
        ) from None
