"""Predictions against changed programs: each pair runs in turn in one recorded process."""

import json
import os
import shutil
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..processes import Failed, program, run
from ..registry import part

# Programs whose times are planted, and programs of PyTorch: `programs/changes.py`.
PLANTED = (
    "kernel-half-waited", "kernel-half-device-bound", "kernel-third-host-bound", "kernel-double", "kernels-small-half",
    "host-half-waited", "host-code-away", "host-before-kernels", "host-behind-kernels", "wait-each-tenth", "to-device-half",
    "to-host-half", "on-device-half", "copies-away", "copies-overlapped", "two-streams-half", "two-streams-independent",
    "one-label-of-two", "queue-full-half", "host-and-kernel",
    # Made after the margins of intervals were set.
    "read-each-fifth", "event-waited", "fills-away", "kernel-alternates", "two-labels", "queue-full-double", "wait-each-fourth",
    "to-device-quarter", "three-streams-half", "device-half",
)  # fmt: skip
TORCH = (
    "torch-item", "torch-synchronize", "torch-logging", "torch-loader", "torch-bfloat16", "torch-batch", "torch-attention",
    "torch-dropout", "torch-checkpoint", "torch-optimizer", "torch-large-copy", "torch-activation",
    # Made after the margins of intervals were set.
    "torch-convolution", "torch-embedding", "torch-softmax", "torch-metrics", "torch-tokenizer", "torch-recurrent",
)  # fmt: skip


def ratio(labels, change):
    """The time of the work in a label after the change by that before it."""
    before = change.removeprefix("label:").split("=")[0]
    times = [labels.get(name) for name in (before, before.replace(" before", " after"))]
    if not all(times):
        raise Failed(f"the report has no times for {before!r}")
    return times[1] / times[0]


def busy_by_label(bench, trace):
    """GPU time by the text of labels."""
    report = json.loads(run([bench.gapscope, "report", "--json", trace], bench.left(), bench.environment).need().stdout)
    times = {}
    for label in report.get("labels") or []:
        times[label["text"]] = times.get(label["text"], 0) + (label["inclusive"]["busy_ns"] or 0)
    return times


def predicted(bench, trace, step, changes):
    """The prediction for one block, or the reasons why there is none."""
    options = [word for change in changes for word in ("--set", change)]
    ran = run([bench.gapscope, "what-if", "--json", "--step", step, *options, trace], bench.left(), bench.environment)
    try:
        return json.loads(ran.stdout)
    except json.JSONDecodeError:
        return {"refused": [ran.stderr.strip()[-300:]]}


def judge(bench, result, group, names, *options):
    ran, trace, _ = bench.recorded(program("changes", *names), *options)
    if kept := os.environ.get("KEEP_TRACES"):
        shutil.make_archive(f"{kept}/{group}", "gztar", trace.path)
        Path(kept, f"{group}.jsonl").write_text(ran.stdout)
    pairs = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"pair"')]
    result.equal(f"{group}: pairs that ran", len(pairs), len(names))
    labels = busy_by_label(bench, trace.path)
    errors, inside, judged = [], 0, 0
    with ThreadPoolExecutor(8) as pool:
        for pair in pairs:
            changes = [change.format(ratio=round(ratio(labels, change), 5)) if "{ratio}" in change else change for change in pair["change"]]
            blocks = range(len(pair["before"]))
            answers = list(pool.map(lambda k: predicted(bench, trace.path, f"{pair['pair']} before {k}", changes), blocks))
            before, truth = (statistics.median(pair[which]) for which in ("before", "after"))
            good = [answer for answer in answers if answer.get("changed_ns")]
            row = {"changes": changes, "before ms": before / 1e6, "after ms": truth / 1e6, "refused": len(answers) - len(good),
                   "reasons": sorted({str(reason)[:160] for answer in answers for reason in answer.get("refused") or []})[:3]}  # fmt: skip
            if good:
                low, mid, high = (statistics.median(answer["changed_ns"][key] for answer in good) for key in ("low", "mid", "high"))
                recorded = statistics.median(answer["recorded_ns"] for answer in good)
                error = mid / truth - 1
                judged += 1
                inside += low <= truth <= high
                errors.append(abs(error))
                row |= {"recorded ms": recorded / 1e6, "predicted ms": mid / 1e6, "error %": 100 * error,
                        "low %": 100 * (low / truth - 1), "high %": 100 * (high / truth - 1)}  # fmt: skip
            result.measure(pair["pair"], row)
    if not judged:
        raise Failed("every prediction was refused")
    result.measure(group, {"judged": judged, "median error %": 100 * statistics.median(errors), "within 5 %": sum(e <= 0.05 for e in errors),
                           "within 10 %": sum(e <= 0.1 for e in errors), "inside the interval": inside})  # fmt: skip
    return errors, inside, judged


@part("what-if-planted", 300, needs=("torch",))
def planted(bench, result):
    """Planted changes: 95 % of the predictions within 5 %, and all inside the stated interval."""
    errors, inside, judged = judge(bench, result, "planted", PLANTED, "--stack-rate", "999")
    result.at_least("planted: predictions within 5 %", sum(error <= 0.05 for error in errors) / judged, 0.95)
    result.equal("planted: inside the interval", inside, judged)


@part("what-if-torch", 300, needs=("torch",))
def torch(bench, result):
    """Changes of PyTorch programs: median error at most 5 %, nine tenths within 10 % and inside the interval."""
    errors, inside, judged = judge(bench, result, "torch", TORCH, "--stack-rate", "999")
    result.at_most("torch: median error", statistics.median(errors), 0.05)
    result.at_least("torch: predictions within 10 %", sum(error <= 0.1 for error in errors) / judged, 0.9)
    result.at_least("torch: inside the interval", inside / judged, 0.9)
