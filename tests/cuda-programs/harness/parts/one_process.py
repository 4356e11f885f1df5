"""Several GPUs in one process: judged over one window, and ranks that no launcher numbers."""

from .. import machine
from ..processes import program
from ..registry import part


@part("one-process", limit_s=200, needs=["torch"], gpus=2)
def one_process(bench, result):
    """One process with two GPUs, of which one has a tenth of the work; NCCL between them."""
    if machine.gpu_count() < 2:
        result.unchecked("one process with two GPUs", "there are fewer than two NVIDIA GPUs")
        return
    facts, report = scene(bench, "imbalance")
    parts = {one["what"]: one["total_ns"] for one in report["verdict_evidence"]}
    result.measure("imbalance: parts", parts)
    result.measure("imbalance: sentences", [one["sentence"] for one in report["verdict_evidence"]])
    busy = sorted((device["busy_ns"] for device in report["devices"] if device["busy_ns"]), reverse=True)
    for name, got, wanted in zip(("first", "second"), busy, facts["busy_ns"]):
        result.within(f"imbalance: busy time of the {name} GPU, ns", got, wanted, 0.15)
    result.within("imbalance: computing of both, ns", parts.get("compute"), sum(facts["busy_ns"]), 0.15)
    # Both start at once; the second is done when the first has nine tenths before it.
    result.at_least("imbalance: without work while the other had, ns", parts.get("imbalance"),
                    0.9 * (facts["busy_ns"][0] - facts["busy_ns"][1]))  # fmt: skip
    result.check("imbalance: not device-bound", report["verdict"] != "device-bound", report["verdict"])
    result.measure("imbalance: verdicts", [report["verdict"], *(one["verdict"] for one in report["idle_time"]["devices"])])

    facts, report = scene(bench, "all-reduce")
    ranks = report.get("ranks") or {}
    result.equal("all-reduce: ranks", len(ranks.get("ranks", [])), 2)
    counts = [rank["collective_count"] for rank in ranks.get("ranks", [])]
    result.equal("all-reduce: collectives of each", counts, [facts["collectives"]] * 2)
    result.measure("all-reduce: sentences", ranks.get("sentences"))
    result.measure("all-reduce: collectives", ranks.get("collectives"))


def scene(bench, name):
    command = program("one_process", name)
    ran, trace, _ = bench.recorded(command)
    return ran.facts, trace.report()
