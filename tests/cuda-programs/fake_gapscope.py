#!/usr/bin/env python3
"""A FAKE gapscope for the tests of the harness: it records nothing. The recorded program writes the tables itself.

`record … -o TRACE … -- COMMAND` runs the command with FAKE_TABLES=FILE, into which a test's program writes
{"kernels": …, "dispatches": …, …}, rows as objects. `report --json` and `export --format csv` give them back.
"""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path


def record(arguments):
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    trace = Path(options[options.index("-o") + 1])
    trace.mkdir()
    tables = trace / "tables.json"
    status = subprocess.run(command, env={**os.environ, "FAKE_TABLES": str(tables)}).returncode
    if not tables.exists():
        tables.write_text("{}")
    (trace / "trace.json").write_text(json.dumps({"losses": json.loads(tables.read_text()).get("losses", [])}))
    return status if status >= 0 else 128 - status


def report(arguments):
    found = json.loads((Path(arguments[-1]) / "tables.json").read_text())
    findings = {"dispatch_count": len(found.get("dispatches", [])), "verdict": "unknown", "gaps": []}
    print(json.dumps({**findings, **found.get("report", {})}))
    return 0


def export(arguments):
    folder = Path(arguments[arguments.index("-o") + 1])
    folder.mkdir()
    found = json.loads((Path(arguments[-1]) / "tables.json").read_text())
    for name, rows in found.items():
        if isinstance(rows, list) and rows:
            with open(folder / f"{name}.csv", "w", newline="") as file:
                writer = csv.DictWriter(file, rows[0].keys())
                writer.writeheader()
                writer.writerows(rows)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    verbs = {"record": record, "report": report, "export": export}
    sys.exit(verbs[sys.argv[1]](sys.argv[2:]) if sys.argv[1] in verbs else 0)
