#!/usr/bin/env python3
"""Records programs on a machine with an NVIDIA GPU and checks what was recorded: `run.py [OPTIONS] PART…`.

Needs Python 3.10 and nothing else; a part says what it needs besides and is skipped without. A part that fails does not
stop the others. The table goes to stdout, everything to results.json in the output folder. Ends with 1 when a check
failed.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from harness import machine, parts
from harness.checks import Result, figure, table
from harness.processes import Failed
from harness.registry import PARTS
from harness.workbench import Workbench


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to run; `all` for everything")
    parser.add_argument("--list", action="store_true", help="list the parts")
    parser.add_argument("--gapscope", default=os.environ.get("GAPSCOPE", "gapscope"), help="the command [$GAPSCOPE]")
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT"), help="folder for results [$OUT]")
    parser.add_argument("--mlx", type=Path, help="folder that mlx/pack.py's archive was unpacked to")
    parser.add_argument("--keep", action="store_true", help="keep traces, and say where they are")
    parser.add_argument("--limit", type=float, help="limit of each part in seconds, instead of its own")
    return parser.parse_args()


def main():
    given = arguments()
    if given.list or not given.parts:
        print(table([[part.name, f"{part.limit_s} s", part.help] for part in PARTS.values()]))
        return 0
    names = list(PARTS) if given.parts == ["all"] else given.parts
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        sys.exit(f"run.py: there is no part {', '.join(unknown)}; --list shows them")
    gapscope = shutil.which(given.gapscope)
    if gapscope is None:
        sys.exit(f"run.py: {given.gapscope} is not a command: give --gapscope PATH")
    out = given.out or Path(tempfile.mkdtemp(prefix="cuda-programs-"))
    out.mkdir(parents=True, exist_ok=True)
    mlx = given.mlx.resolve() if given.mlx else None
    facts = machine.facts(Path(gapscope).resolve())
    print(json.dumps(facts), flush=True)
    results = []
    for name in names:
        results.append(run_part(PARTS[name], str(Path(gapscope).resolve()), given, mlx))
        show(results[-1])
        (out / "results.json").write_text(json.dumps({"machine": facts, "parts": [asdict(one) for one in results]}, indent=1))
    print()
    print(table([["part", "", "checks", "failed", "seconds"]] + [summary(result) for result in results]))
    print(f"{out / 'results.json'}")
    return 0 if all(result.ok for result in results) else 1


def run_part(part, gapscope, given, mlx):
    """Runs a part; whatever happens is in its result."""
    result = Result(part.name)
    missing = [module for module in part.needs if not machine.has(module)]
    if missing:
        result.failure = f"skipped: this Python has no {', '.join(missing)}"
        return result
    scratch = tempfile.mkdtemp(prefix=f"{part.name}-")
    bench = Workbench(gapscope, scratch, given.limit or part.limit_s, mlx)
    begin = time.monotonic()
    bench.start()
    try:
        part.run(bench, result)
    except Failed as failure:
        result.failure = str(failure)
    except Exception:  # The other parts go on.
        result.failure = traceback.format_exc(limit=-3)
    result.seconds = round(time.monotonic() - begin, 1)
    if given.keep:
        result.note(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return result


def show(result):
    """What a part found: the failed checks, then what it measured."""
    print(f"\n== {result.part}: {'ok' if result.ok else 'FAILED'}, {result.seconds} s")
    if result.failure:
        print(f"   {result.failure.strip()}")
    for check in result.checks:
        if check.ok is False:
            print(f"   FAILED {check.name}: {check.got!r}, wanted {check.wanted!r}")
        elif check.ok is None:
            print(f"   unchecked {check.name}: {check.got}")
    rows = {name: value for name, value in result.measured.items() if isinstance(value, dict) and "ratio" in value}
    if rows:
        columns = list(dict.fromkeys(key for value in rows.values() for key in value))
        lines = [[name] + [figure(value[key]) if value.get(key) is not None else "" for key in columns]
                 for name, value in rows.items()]  # fmt: skip
        print("   " + table([[""] + columns] + lines).replace("\n", "\n   "))
    for name, value in result.measured.items():
        if name not in rows:
            shown = json.dumps(value) if isinstance(value, (list, dict)) else figure(value)
            print(f"   {name}: {shown[:700]}")
    for note in result.notes:
        print(f"   {note}")
    sys.stdout.flush()


def summary(result):
    failed = sum(check.ok is False for check in result.checks)
    state = "ok" if result.ok else "skipped" if (result.failure or "").startswith("skipped") else "FAILED"
    return [result.part, state, len(result.checks), failed, result.seconds]


if __name__ == "__main__":
    assert parts.__all__
    sys.exit(main())
