"""NVLink's counters against bytes of peer copies that are known, and against what NVML counts of the same copies."""

from .. import machine
from ..processes import Failed, program
from ..registry import part
from .counters import ACTIVE, READ, WRITTEN, Samples, lost, span, unmeasured

RECEIVED, SENT = "NVLink received", "NVLink sent"
# Of the bytes of the copies: what the counters may differ by, and what the links may carry besides them.
COPIES_DIFFER, BESIDES = 0.01, 0.005


@part("counters-nvlink", limit_s=200, needs=["torch"], gpus=2)
def nvlink(bench, result):
    """Bytes of copies between two GPUs by NVLink's counters, one way, back, both at once and none; the wide set beside them."""
    if machine.gpu_count() < 2:
        return result.unchecked("counters of NVLink", "there are fewer than two NVIDIA GPUs")
    few = ",".join([RECEIVED, SENT, READ, WRITTEN])
    ran, trace, _ = bench.recorded(program("peer_copies", "warm", "there", "back", "both", "local"), "--no-report", f"--counters={few}")
    facts = ran.facts
    result.measure("links", facts["links"])
    if not facts["peer_access"]:
        return result.unchecked("counters of NVLink", "the GPUs do not reach each other's memory")
    if facts["links"] == [0, 0]:
        return result.unchecked("counters of NVLink", "nvidia-smi says that no NVLink is active: copies go another way")
    samples = of_devices(trace, facts)
    result.measure("samples lost", lost(trace))
    said = unmeasured(trace)
    result.measure("not sampled", said)
    result.equal("counters that are not sampled", [one for one in said if "NVLink" in one], [])
    result.measure("sources", [[one.sources.get(name) for name in (SENT, RECEIVED)] for one in samples])
    # By construction: bytes that each device sends; what one sends the other receives.
    for name, sent in facts["sent"].items():
        region(result, name, samples, facts, sent)
    # A copy from peer memory is read where it lies and written where it goes.
    start, end = span(facts, "there")
    for which, counter, one in (("first", READ, samples[0]), ("second", WRITTEN, samples[1])):
        got, _ = one.integral(counter, start, end)
        result.within(f"there: {counter} of the {which} GPU", got, facts["sent"]["there"][0], COPIES_DIFFER)
    wide(bench, result)


def of_devices(trace, facts):
    """The samples of each of the program's devices, in CUDA's order: UUIDs tell which row is which."""
    rows = {one["uuid"]: one["id"] for one in trace.manifest["devices"]}
    missing = [uuid for uuid in facts["uuids"] if uuid not in rows]
    if missing:
        raise Failed(f"the trace has no device {', '.join(missing)}, but {', '.join(rows)}")
    return [Samples(trace, rows[uuid]) for uuid in facts["uuids"]]


def region(result, name, samples, facts, sent):
    start, end = span(facts, name)
    most = max(facts["sent"]["there"])
    for at, own in enumerate(samples):
        for counter, wanted, way in ((SENT, sent[at], "tx"), (RECEIVED, sent[1 - at], "rx")):
            what = f"{name}: {counter}, GPU {at}"
            got, seconds = own.integral(counter, start, end)
            result.at_least(f"{what}: share of the time that is sampled", seconds * 1e9 / (end - start), 0.99)
            told = {key: (facts["nvml"][name].get(key) or [{}, {}])[at].get(way) for key in ("data", "raw")}
            row = {"ratio": got / (wanted or most), "bytes": got, "known": wanted}
            result.measure(what, {**row, **{f"nvml {key}": value for key, value in told.items() if value is not None}})
            if wanted:
                result.within(what, got, wanted, COPIES_DIFFER)
            elif not any(sent):
                # Where copies go one way, requests or answers go the other: no bound of these is known by construction.
                result.at_most(f"{what}, nothing is copied", got, BESIDES * most)
            # NVML counts what is copied in the time between its two readings, and nothing else is.
            if told["data"] is not None and wanted:
                result.within(f"{what}: data by NVML, of the known bytes", told["data"], wanted, COPIES_DIFFER)
            if told["raw"] and told["data"] and wanted:
                result.measure(f"{what}: of NVML's raw bytes", got / told["raw"])


def wide(bench, result):
    """The wide set takes NVLink in where it is there, and must not lose all others by it."""
    ran, trace, _ = bench.recorded(program("peer_copies", "warm", "there", "back"), "--no-report", "--counters=wide")
    facts, samples = ran.facts, of_devices(trace, ran.facts)
    result.measure("wide: samples lost", lost(trace))
    result.measure("wide: not sampled", unmeasured(trace))
    start, end = span(facts, "there")
    for at, own in enumerate(samples):
        result.check(f"wide: GPU {at} by PM sampling", "PM sampling" in (own.sources.get(ACTIVE) or ""), own.sources.get(ACTIVE))
        result.check(f"wide: GPU {at} has both counters of NVLink", {SENT, RECEIVED} <= set(own.of), sorted(own.of))
    got, _ = samples[0].integral(SENT, start, end)
    result.measure("wide, there: sent, of the known bytes", got / facts["sent"]["there"][0])
    result.within("wide, there: sent", got, facts["sent"]["there"][0], 2 * COPIES_DIFFER)
