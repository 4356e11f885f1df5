"""Writes a trace many times over, one repetition after the other, with ids of their own: what the same program would give if it ran longer.

    replicate.py TIMES IN.json.gz OUT.json
    replicate.py TIMES IN.sqlite OUT.sqlite
"""

import gzip
import json
import shutil
import sqlite3
import sys
from decimal import Decimal
from pathlib import Path

# Ids of events, by where the PyTorch profiler writes them.
IDS = ("correlation", "External id", "Python id", "Python parent id", "Ev Idx")


def kineto(times: int, source: Path, out: Path) -> None:
    with gzip.open(source, "rt") as file:
        trace = json.load(file, parse_float=Decimal)
    events = trace.pop("traceEvents")
    timed = [event for event in events if event["ph"] != "M" and "ts" in event]
    others = [event for event in events if event["ph"] == "M" or "ts" not in event]
    first = min(Decimal(event["ts"]) for event in timed)
    last = max(Decimal(event["ts"]) + Decimal(event.get("dur", 0)) for event in timed)
    length = last - first + 1000

    def greatest(value):
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    step = 1 + max(max((greatest(event.get("args", {}).get(key)) for key in IDS), default=0) for event in timed)
    step = max(step, 1 + max(greatest(event.get("id")) for event in timed))
    with open(out, "w") as file:
        head = json.dumps(trace, default=str)
        # The decimals of the file, not the floats nearest to them.
        write = json.JSONEncoder(default=lambda value: float(value)).encode
        file.write(head[:-1] + ', "traceEvents": [\n')
        file.write(",\n".join(write(event) for event in others))
        for number in range(times):
            for event in timed:
                copy = dict(event)
                ts = Decimal(event["ts"]) + number * length
                copy["ts"] = "@TS@"
                if isinstance(event.get("id"), int):
                    copy["id"] = event["id"] + number * step
                args = event.get("args")
                if args and number:
                    args = dict(args)
                    for key in IDS:
                        if isinstance(args.get(key), int):
                            args[key] += number * step
                    copy["args"] = args
                file.write(",\n" + write(copy).replace('"@TS@"', str(ts), 1))
        file.write("\n]}\n")


def sqlite(times: int, source: Path, out: Path) -> None:
    shutil.copyfile(source, out)
    out.chmod(0o644)
    database = sqlite3.connect(out)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")] for name in tables}
    rows = [name for name in tables if "start" in columns[name] and not name.startswith("TARGET_INFO")]
    spans = [database.execute(f"SELECT min(start), max(coalesce({'end' if 'end' in columns[n] else 'start'}, start)) FROM {n}") for n in rows]
    spans = [span for span in (cursor.fetchone() for cursor in spans) if span[0] is not None]
    length = max(last for _, last in spans) - min(first for first, _ in spans) + 1_000_000
    step = 1 + max(
        database.execute(f"SELECT coalesce(max(correlationId), 0) FROM {name}").fetchone()[0]
        for name in rows
        if "correlationId" in columns[name]
    )
    for name in rows:
        count = database.execute(f"SELECT max(rowid) FROM {name}").fetchone()[0] or 0
        def shifted(column: str) -> str:
            if column in ("start", "end"):
                return f'"{column}" + ?1 * {length}'
            if column == "correlationId":
                return f'"{column}" + ?1 * {step}'
            return f'"{column}"'
        names = ", ".join(f'"{column}"' for column in columns[name])
        values = ", ".join(shifted(column) for column in columns[name])
        for number in range(1, times):
            database.execute(
                f"INSERT INTO {name} ({names}) SELECT {values} FROM {name} WHERE rowid <= {count}", (number,)
            )
    database.commit()


if __name__ == "__main__":
    times, source, out = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    (sqlite if source.suffix == ".sqlite" else kineto)(times, source, out)
