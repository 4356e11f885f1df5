"""What a trace says, read through the command and through the files, as a user would."""

import csv
import json
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from .processes import Failed

csv.field_size_limit(1 << 30)

# What a trace may lack of code, and not of work: that of libraries is too large to be kept, and samples of stacks may come late.
CODE = {
    "stack samples",
    "pieces of loaded code",
    "sources of kernels",
    "pieces of code whose kernels can launch others",
}


@dataclass
class Span:
    """GPU work between two times on the host's clock."""

    kernels: int
    # None when a kernel has no time.
    kernel_ns: int | None
    # By name: count and nanoseconds.
    by_name: dict
    transfers: int
    transfer_bytes: int
    command_buffers: int


class Trace:
    """A trace folder."""

    def __init__(self, gapscope, path, folder=None):
        self.gapscope, self.path = str(gapscope), Path(path)
        # What the recording wrote: the trace, or a folder of traces.
        self.folder = Path(folder or path)
        try:
            self.manifest = json.loads((self.path / "trace.json").read_text())
        except (OSError, ValueError) as error:
            raise Failed(f"the trace {self.path.name} cannot be read: {error}") from None

    def report(self, *arguments):
        """The findings, as `gapscope report --json` prints them."""
        command = [self.gapscope, "report", "--json", *arguments, str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(f"gapscope report --json failed: {done.stderr.strip()[-400:]}")
        return json.loads(done.stdout)

    @property
    def losses(self):
        return self.manifest.get("losses", [])

    @property
    def lost_work(self):
        return [loss for loss in self.losses if loss.get("what") not in CODE]

    @property
    def bytes(self):
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def rows(self, *tables):
        """Rows of tables; None where pyarrow, which reads them from the footers, is missing."""
        try:
            from pyarrow.parquet import read_metadata
        except ImportError:
            return None
        return sum(read_metadata(self.path / f"{table}.parquet").num_rows for table in tables)

    def columns(self, table, *names):
        """Columns of a table as lists of integers or texts; None where unknown."""
        try:
            from pyarrow import parquet
        except ImportError:
            return self._csv_columns(table, names)
        data = parquet.read_table(self.path / f"{table}.parquet", columns=list(names))
        return [data.column(name).to_pylist() for name in names]

    def _csv_columns(self, table, names):
        folder = self.path.with_suffix(".csv")
        if not folder.exists():
            command = [self.gapscope, "export", "--format", "csv", "-o", str(folder), str(self.path)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                raise Failed(f"gapscope export --format csv failed: {done.stderr.strip()[-400:]}")
        found = [[] for _ in names]
        with open(folder / f"{table}.csv", newline="") as file:
            for row in csv.DictReader(file):
                for values, name in zip(found, names):
                    values.append(_value(row[name]))
        return found

    def within(self, start_ns, end_ns):
        """The work that started in [start_ns, end_ns)."""
        # A kernel has a row for each shape of its launches; its whole name tells them apart from others.
        ids, names, whole_names = self.columns("kernels", "id", "name", "full_name")
        name_of = {key: whole or name for key, name, whole in zip(ids, names, whole_names)}
        kernels, starts, durations = self.columns("dispatches", "kernel", "start_ns", "duration_ns")
        by_name = defaultdict(lambda: [0, 0])
        unknown = False
        for kernel, start, duration in zip(kernels, starts, durations):
            if start is None or duration is None:
                unknown = True
            elif start_ns <= start < end_ns:
                entry = by_name[name_of.get(kernel, str(kernel))]
                entry[0] += 1
                entry[1] += duration
        transfers, transfer_bytes = 0, 0
        for start, size in zip(*self.columns("transfers", "start_ns", "bytes")):
            if start is not None and start_ns <= start < end_ns:
                transfers += 1
                transfer_bytes += size or 0
        starts = self.columns("command_buffers", "start_ns")[0]
        return Span(
            kernels=sum(count for count, _ in by_name.values()),
            kernel_ns=None if unknown else sum(total for _, total in by_name.values()),
            by_name=dict(by_name),
            transfers=transfers,
            transfer_bytes=transfer_bytes,
            command_buffers=sum(start is not None and start_ns <= start < end_ns for start in starts),
        )

    def launched_before(self):
        """For each timed kernel, from the start of its launch call to its start, in nanoseconds; and kernels whose
        call the trace does not have."""
        submission_of = dict(zip(*self.columns("command_buffers", "id", "submission")))
        call_of = dict(zip(*self.columns("submissions", "id", "start_ns")))
        latencies, without = [], 0
        columns = self.columns("dispatches", "command_buffer", "submission", "start_ns")
        for buffer, submission, start in zip(*columns):
            call = call_of.get(submission if submission is not None else submission_of.get(buffer))
            if call is None or start is None:
                without += 1
            else:
                latencies.append(start - call)
        return latencies, without

    def markers(self):
        """How many markers each label has."""
        text_of = dict(zip(*self.columns("labels", "id", "text")))
        return Counter(text_of.get(label, str(label)) for label in self.columns("markers", "label")[0])


def traces_under(gapscope, folder):
    """Every trace at or under a folder."""
    return [Trace(gapscope, file.parent, folder) for file in sorted(Path(folder).rglob("trace.json"))]


def _value(text):
    if text == "":
        return None
    try:
        return int(text)
    except ValueError:
        return text
