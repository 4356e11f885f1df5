"""What code kernels have, and what is said of work without a record."""

from pathlib import Path

from ..processes import program
from ..registry import part


@part("sources")
def sources(bench, result):
    """Code that a program loads: PTX, NVRTC's, Triton's; the trace has it by its hash."""
    ran, trace, _ = bench.recorded(program("sources"))
    result.equal("the result", ran.facts["result"], len(ran.facts["ran"]) - ("triton_add" in ran.facts["ran"]))
    columns = trace.columns("kernels", "entry_point", "source", "source_file", "source_file_hash")
    rows = {entry: (source, file, kept) for entry, source, file, kept in zip(*columns)}
    for name, extension in ran.facts["ran"].items():
        source, file, _ = rows.get(name, (None, None, None))
        path = trace.path / "sources" / f"{source}.{extension}"
        text = path.read_text(errors="replace") if path.is_file() else ""
        result.check(f"{name}: its code is kept", f".entry {name}" in text, source)
        result.measure(f"{name}: written in", file)
    for name, wanted in (("nvrtc_add", "nvrtc_add.cu"), ("triton_add", "sources.py")):
        if name in ran.facts["ran"]:
            result.check(f"{name}: its file is named", (rows[name][1] or "").endswith(wanted), rows[name][1])
    if "triton_add" in ran.facts["ran"]:
        _, file, kept = rows["triton_add"]
        path = trace.path / "sources" / f"{kept}.py"
        same = path.is_file() and path.read_bytes() == Path(file).read_bytes()
        result.check("triton_add: its file is kept", same, kept)
    for name, reason in ran.facts["missing"].items():
        result.unchecked(name, reason)
    kernels = {kernel["name"]: kernel for kernel in trace.report()["kernels"]}
    result.check("the report names it", bool(kernels.get("count", {}).get("sources")), kernels.get("count"))
    result.measure("losses", trace.losses)
    result.measure("bytes of code", sum(file.stat().st_size for file in (trace.path / "sources").glob("*")))


@part("unrecorded")
def unrecorded(bench, result):
    """Managed memory, decompression and graphs launched by the device: what the trace says of them."""
    ran, trace, _ = bench.recorded(program("unrecorded"))
    facts = ran.facts
    losses = {loss["what"]: loss["count"] for loss in trace.losses}
    result.check("pages moved", facts["managed"])
    result.equal("managed allocations", losses.get("managed allocations whose page moves are not recorded"), 1)
    result.equal("prefetches", losses.get("prefetches and discards of managed memory"), 1)
    expected = 1 if facts["decompression"] == "accepted" else None
    result.equal("decompressions", losses.get("decompressions of memory by the device"), expected)
    result.measure("decompression", facts["decompression"])
    graphs = losses.get("graphs that the device can launch itself")
    if facts["device_launch"]:
        result.at_least("graphs for the device", graphs, facts["graphs_for_device"])
        result.unchecked("a graph launched by the device", facts["device_launch"])
    else:
        result.equal("graphs for the device", graphs, facts["graphs_for_device"])
        result.equal("launchers are noticed", losses.get("pieces of code whose kernels can launch others"), 1)
    # One more is recorded than counted: that of the managed memory.
    ids, names = trace.columns("kernels", "id", "name")
    count = {key for key, name in zip(ids, names) if name == "count"}
    recorded = sum(kernel in count for kernel in trace.columns("dispatches", "kernel")[0])
    result.equal("kernels launched by the host", recorded, 2)
    result.measure("kernels that ran", facts["counted"] + 1)
    result.measure("losses", trace.losses)
