"""Writes traces of programs that never ran: events that a scenario plants go in, a folder `NAME.gapscope` comes out.

All times are microseconds since the start of the recording. The columns of the tables are read from
`docs/trace-format.md`, so that the writer cannot fall behind the format.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FORMAT = Path(__file__).parents[2] / "docs" / "trace-format.md"

ARROW_TYPES = {
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f64": pa.float64(),
}

H100_LIMITS = {
    "compute_capability": "9.0",
    "multiprocessors": 132,
    "core_clock_khz": 1_980_000,
    "memory_bytes_per_s": 3_350_000_000_000,
    "l2_bytes": 52_428_800,
    "threads_per_multiprocessor": 2048,
    "registers_per_multiprocessor": 65_536,
    "shared_bytes_per_multiprocessor": 233_472,
    "groups_per_multiprocessor": 32,
}

SUBMITTING_THREAD = 7


def nanoseconds(microseconds: float) -> int:
    """Returns a time of a scenario as the trace stores it."""
    return round(microseconds * 1000)


def optional_nanoseconds(microseconds: float | None) -> int | None:
    """Returns the same for a time that the recording may not know."""
    return None if microseconds is None else nanoseconds(microseconds)


def read_columns() -> dict[str, list[tuple[str, str, bool]]]:
    """Returns the columns of each table: the name, the type, and whether a value may be missing."""
    tables = FORMAT.read_text(encoding="utf-8").split("<!-- columns", 1)[1]
    columns = {}
    for section in re.split(r"\n### ", tables)[1:]:
        name = re.match(r"`(\w+)`", section)
        if name is None:
            continue
        rows = re.finditer(r"^\| `(\w+)` \| (\w+)(\??) \|", section, re.MULTILINE)
        columns[name[1]] = [(row[1], row[2], row[3] == "?") for row in rows]
    return columns


COLUMNS = read_columns()


class TraceWriter:
    """A trace that is being planted. Thread 7 of process 1 submits to queue 1 unless a call says otherwise."""

    def __init__(
        self,
        api: str = "cuda",
        devices: int = 1,
        queues: list[tuple[int, int]] | None = None,
        processes: int = 1,
        clock_error_ns: int = 1000,
        uuids: list[str] | None = None,
        limits: dict[str, Any] | None = None,
        sampling_mode: str = "dispatch",
    ) -> None:
        """`queues` are pairs of a queue's id and its device's id. Devices with equal `uuids` are one GPU."""
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in COLUMNS}
        self.api = api
        self.sampling_mode = sampling_mode
        self.losses: list[dict[str, Any]] = []
        self.ranks: list[int] | None = None
        self.rank: tuple[int, int] | None = None
        self.end: float | None = None
        self.last_ns = 0
        self.boot = "b0"
        self.kernels: dict[tuple[str, int], int] = {}
        self.labels: dict[tuple[str, int | None], int] = {}
        self.processes = [
            {
                "id": number + 1,
                "pid": 1001 + number,
                "parent_pid": 1,
                "executable": "/opt/program",
                "arguments": ["program"],
                "hook": api,
                "start_ns": 0,
                "end_ns": 0,
            }
            for number in range(processes)
        ]
        self.queues = queues or [(1, 1), (2, 1), (3, 1), (4, 1)]
        self.devices = [
            {
                "id": number + 1,
                "process": number % processes + 1 if processes > 1 else 1,
                "api": api,
                "name": "NVIDIA H100 80GB HBM3" if api == "cuda" else "GPU",
                "driver": "580",
                "uuid": uuids[number] if uuids else f"{number:032x}",
                "heaps": [85_899_345_920],
                "lost": False,
                "clock": {
                    "method": "brackets",
                    "error_ns": clock_error_ns,
                    "samples": 10,
                    "nanoseconds_per_tick": 1.0,
                },
                **({"limits": limits} if limits else {}),
            }
            for number in range(devices)
        ]

    def add(self, table: str, until: float | None = None, **values: Any) -> None:
        """Adds a row. The recording lasts at least `until`."""
        self.rows[table].append(values)
        if until is not None:
            self.last_ns = max(self.last_ns, nanoseconds(until))

    def kernel(self, name: str, process: int = 1, **values: Any) -> int:
        """Returns the id of a kernel, which the first call adds."""
        key = (name, process)
        if key not in self.kernels:
            self.kernels[key] = len(self.kernels) + 1
            facts: dict[str, Any] = {
                "id": self.kernels[key],
                "process": process,
                "name": name,
                "name_source": "entry-point",
                "entry_point": name,
                "local_x": 256,
                "local_y": 1,
                "local_z": 1,
            }
            self.add("kernels", **{**facts, **values})
        return self.kernels[key]

    def label(self, text: str, parent: int | None = None) -> int:
        """Returns the id of a label, which the first call adds."""
        key = (text, parent)
        if key not in self.labels:
            self.labels[key] = len(self.labels) + 1
            self.add("labels", id=self.labels[key], text=text, parent=parent)
        return self.labels[key]

    def submission(
        self,
        start: float,
        duration: float = 5,
        queue: int = 1,
        kind: str = "kernel",
        thread: int | None = SUBMITTING_THREAD,
        function: str | None = None,
        process: int = 1,
        command_buffers: int = 0,
    ) -> int:
        """Adds a call that hands work to a queue and returns the submission's id."""
        usual = {"kernel": "cuLaunchKernel", "transfer": "cudaMemcpyAsync", "graph": "cuGraphLaunch"}
        if function is None and self.api == "cuda":
            function = usual.get(kind)
        number = len(self.rows["submissions"]) + 1
        self.add(
            "submissions",
            until=start + duration,
            id=number,
            process=process,
            queue=queue,
            kind=kind,
            thread=thread,
            start_ns=nanoseconds(start),
            duration_ns=nanoseconds(duration),
            command_buffers=command_buffers,
            function=function,
        )
        return number

    def dispatch(
        self,
        submission: int | None,
        kernel: str,
        start: float | None,
        duration: float | None,
        queue: int = 1,
        process: int = 1,
        label: str | None = None,
        groups: int | None = None,
        command_buffer: int | None = None,
        position: int = 0,
    ) -> None:
        """Adds the execution of a kernel, of a submission or of a command buffer. A missing `start` was not measured."""
        self.add(
            "dispatches",
            until=None if start is None else start + (duration or 0),
            command_buffer=command_buffer,
            position=position,
            queue=queue,
            kernel=self.kernel(kernel, process),
            start_ns=optional_nanoseconds(start),
            duration_ns=optional_nanoseconds(duration),
            groups_x=groups,
            groups_y=groups and 1,
            groups_z=groups and 1,
            label=None if label is None else self.label(label),
            submission=None if command_buffer else submission,
        )

    def launch(
        self,
        kernel: str,
        call: float,
        start: float,
        duration: float,
        queue: int = 1,
        call_duration: float = 5,
        thread: int | None = SUBMITTING_THREAD,
        process: int = 1,
        label: str | None = None,
        groups: int | None = None,
    ) -> int:
        """Adds a kernel with the call at `call` that launches it, and returns the submission's id."""
        submission = self.submission(call, call_duration, queue, "kernel", thread, None, process)
        self.dispatch(submission, kernel, start, duration, queue, process, label, groups)
        return submission

    def copy(
        self,
        kind: str,
        call: float,
        start: float,
        duration: float,
        bytes: int,
        queue: int = 1,
        call_duration: float = 5,
        host_memory: str = "pinned",
        function: str = "cudaMemcpyAsync",
        label: str | None = None,
    ) -> int:
        """Adds a transfer with its call, and returns the submission's id."""
        submission = self.submission(call, call_duration, queue, "transfer", function=function)
        self.add(
            "transfers",
            until=start + duration,
            position=0,
            queue=queue,
            kind=kind,
            bytes=bytes,
            start_ns=nanoseconds(start),
            duration_ns=nanoseconds(duration),
            submission=submission,
            host_memory=host_memory,
            label=None if label is None else self.label(label),
        )
        return submission

    def command_buffer(
        self,
        submission: int,
        start: float | None,
        duration: float | None,
        queue: int = 1,
        dispatches: int = 0,
        timing: str = "measured",
        host_functions: int | None = None,
    ) -> int:
        """Adds a command buffer or the launch of a CUDA graph, and returns its id."""
        number = len(self.rows["command_buffers"]) + 1
        self.add(
            "command_buffers",
            until=None if start is None else start + (duration or 0),
            id=number,
            process=1,
            queue=queue,
            submission=submission,
            start_ns=optional_nanoseconds(start),
            duration_ns=optional_nanoseconds(duration),
            timing=timing,
            dispatches=dispatches,
            transfers=0,
            host_functions=host_functions,
        )
        return number

    def submitted(self, call: float, start: float, duration: float, kernel: str = "k", queue: int = 1) -> int:
        """Adds a Vulkan submission of one command buffer with one dispatch, and returns the submission's id."""
        submission = self.submission(call, 20, queue, kind="command-buffers", command_buffers=1)
        number = self.command_buffer(submission, start, duration, queue, dispatches=1)
        self.dispatch(submission, kernel, start, duration, queue, command_buffer=number)
        return submission

    def call(
        self,
        kind: str,
        start: float,
        duration: float,
        function: str | None = None,
        thread: int | None = SUBMITTING_THREAD,
        process: int = 1,
        queue: int | None = None,
        waits_for: int | None = None,
    ) -> None:
        """Adds a call that hands over no work; `queue` and the submission `waits_for` are what it waits for."""
        self.add(
            "host_calls",
            until=start + duration,
            process=process,
            thread=thread,
            call=kind,
            start_ns=nanoseconds(start),
            duration_ns=nanoseconds(duration),
            count=1,
            busy_ns=nanoseconds(duration),
            result=0,
            queue=queue,
            function=function,
            waits_for=waits_for,
        )

    def depends(self, submission: int, on: int | None = None, signal: float | None = None) -> None:
        """Makes a submission wait for another, or for a signal of the host at a time."""
        self.add(
            "dependencies",
            submission=submission,
            waits_for=on,
            host_signal_ns=optional_nanoseconds(signal),
        )

    def range(
        self,
        text: str,
        start: float,
        duration: float,
        domain: str | None = None,
        payload: str | None = None,
        thread: int = SUBMITTING_THREAD,
    ) -> None:
        """Adds a range of NVTX, of an operator or of a function of Python on a thread."""
        self.add(
            "markers",
            until=start + duration,
            process=1,
            scope="thread",
            label=self.label(text),
            thread=thread,
            start_ns=nanoseconds(start),
            duration_ns=nanoseconds(duration),
            domain=domain,
            payload=payload,
        )

    def stack(self, lines: list[tuple[str, str, int]]) -> int:
        """Adds a stack of Python's functions, each with its file and line, the outermost first; returns the stack's id."""
        parent = None
        for function, file, line in lines:
            frame = len(self.rows["frames"])
            self.add("frames", id=frame, kind="python", function=function, file=file, line=line)
            stack = len(self.rows["stacks"])
            self.add("stacks", id=stack, parent=parent, frame=frame)
            parent = stack
        if parent is None:
            raise ValueError("a stack has at least one line")
        return parent

    def samples(
        self, stack: int, start: float, until: float, period: float = 2000, thread: int = SUBMITTING_THREAD
    ) -> None:
        """Adds samples of a thread that runs and has a stack throughout."""
        at = start + period / 2
        while at < until:
            self.add(
                "samples",
                until=at,
                time_ns=nanoseconds(at),
                process=1,
                thread=thread,
                stack=stack,
                state="running",
                source="sampled",
                period_ns=nanoseconds(period),
            )
            at += period

    def counter(
        self,
        name: str,
        unit: str,
        values: list[tuple[float, float]],
        device: int | None = 1,
        source: str = "NVML",
        lasts: float | None = None,
    ) -> None:
        """Adds a counter with pairs of a time and a value, each of which holds for `lasts` or until the next."""
        number = len(self.rows["counters"]) + 1
        self.add("counters", id=number, name=name, unit=unit, device=device, source=source)
        for at, value in values:
            self.add(
                "counter_values",
                counter=number,
                start_ns=nanoseconds(at),
                duration_ns=optional_nanoseconds(lasts),
                value=float(value),
            )

    def write(self, folder: Path, end: float | None = None) -> None:
        """Writes the tables and the manifest. The recording ends at `end`, or one microsecond after all events."""
        folder.mkdir(parents=True, exist_ok=True)
        for table, columns in COLUMNS.items():
            rows = self.rows[table]
            if rows or table not in ("kernel_metrics", "pc_samples"):
                pq.write_table(_table(table, columns, rows), folder / f"{table}.parquet")
        end = end or self.end
        end_ns = nanoseconds(end) if end else self.last_ns + 1000
        for process in self.processes:
            process["end_ns"] = end_ns
        manifest: dict[str, Any] = {
            "format_version": 3,
            "gapscope_version": "0.1.0",
            "complete": True,
            "command": ["scenario", folder.name],
            "exit": {"code": 0},
            "sampling_mode": self.sampling_mode,
            "start_ns": 0,
            "end_ns": end_ns,
            "start_unix_ns": 1_790_000_000_000_000_000,
            "host": {"system": "Linux", "processor": "x", "cores": 8, "boot_id": self.boot},
            "processes": self.processes,
            "threads": [],
            "devices": self.devices,
            "queues": [
                {
                    "id": queue,
                    "device": device,
                    "family": 0,
                    "index": queue,
                    "capabilities": ["compute", "transfer"],
                    "timestamp_bits": 64,
                }
                for queue, device in self.queues
            ],
            "losses": self.losses,
            "notes": [],
            "unmeasured": [],
        }
        if self.rank is not None:
            manifest["rank"] = {"rank": self.rank[0], "world_size": self.rank[1]}
        if self.ranks is not None:
            manifest["ranks"] = self.ranks
        (folder / "trace.json").write_text(json.dumps(manifest), encoding="utf-8")


def _table(name: str, columns: list[tuple[str, str, bool]], rows: list[dict[str, Any]]) -> pa.Table:
    """Returns rows as a table with the format's types."""
    arrays, fields = [], []
    for column, kind, optional in columns:
        values = [row.get(column) for row in rows]
        if not optional and None in values:
            raise ValueError(f"a row of {name} lacks {column}")
        if kind == "text":
            array = pa.array(values, type=pa.string()).dictionary_encode()
        else:
            array = pa.array(values, type=ARROW_TYPES[kind])
        arrays.append(array)
        fields.append(pa.field(column, array.type, nullable=optional))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
