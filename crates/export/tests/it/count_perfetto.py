"""Reads a trace by Perfetto's own protobuf classes and prints what is in it as JSON."""

import json
import sys
from collections import Counter, defaultdict

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
E = pb.TrackEvent
names, categories, keys, texts, specs, contexts = {}, {}, {}, {}, {}, {}
stages, correlations, counter_names, samples = {}, [], {}, defaultdict(list)
tracks, slices, flows, counters = {}, [], defaultdict(list), defaultdict(list)
stacks = defaultdict(list)
functions, paths, mappings, frames, callstacks, host_samples = {}, {}, {}, {}, {}, []
problems = []


# TrackEvent.gpu_correlation, an extension that this version of the package does not have yet.
GPU_CORRELATION = 3000


def unknown(message, path="trace"):
    """Fields that Perfetto does not know: a wrong number or type."""
    for field in UnknownFieldSet(message):
        if not (isinstance(message, E) and field.field_number == GPU_CORRELATION):
            problems.append(f"unknown field {field.field_number} in {path}")
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            many = value if not hasattr(value, "DESCRIPTOR") else [value]
            for one in many:
                unknown(one, f"{path}.{field.name}")


def correlated(event):
    """The ids of the render stages that a host call submitted."""
    return [
        inner.data
        for field in UnknownFieldSet(event)
        if field.field_number == GPU_CORRELATION
        for inner in UnknownFieldSet(parsed(field.data))
    ]


def parsed(data):
    """Any message, all of whose fields are unknown."""
    from google.protobuf.empty_pb2 import Empty

    return Empty.FromString(data)


def render_stage(event, now):
    """A render stage as a slice."""
    stage = specs[event.stage_iid]
    assert stage.name == names[event.name_iid]
    assert event.event_id not in stages
    args = {e.name: int(e.value) if e.value.isdigit() else e.value for e in event.extra_data}
    for axis in "xyz":
        if event.launch.grid_size.HasField(axis):
            args[f"groups_{axis}"] = getattr(event.launch.grid_size, axis)
        if event.launch.workgroup_size.HasField(axis):
            args[f"local_{axis}"] = getattr(event.launch.workgroup_size, axis)
    if event.HasField("submission_id"):
        args["submission"] = event.submission_id
    if event.HasField("context"):
        args["pid"] = contexts[event.context].pid
    args["gpu"] = event.gpu_id
    one = {
        "track": specs[event.hw_queue_iid].name,
        "category": stage.description.split("; ")[0],
        "name": stage.name,
        "start_ns": now,
        "duration_ns": event.duration,
        "args": args,
    }
    stages[event.event_id] = one
    slices.append(one)


def gpu_counters(event, now):
    for spec in event.counter_descriptor.specs:
        assert spec.counter_id not in counter_names
        counter_names[spec.counter_id] = spec.name
    for sample in event.counters:
        samples[sample.counter_id].append([now, getattr(sample, sample.WhichOneof("value"))])


def host_sample(sample, now):
    stack = None
    if sample.HasField("callstack_iid"):
        stack = []
        for iid in callstacks[sample.callstack_iid].frame_ids:
            frame = frames[iid]
            path = "".join(paths[iid] for iid in mappings[frame.mapping_id].path_string_ids)
            stack.append([path, functions[frame.function_name_id], frame.line_number])
    host_samples.append([now, sample.pid, sample.tid, stack])


unknown(trace)
sequence = 1
interned = (names, categories, keys, texts, specs, contexts, functions, paths, mappings, frames, callstacks)
for packet in trace.packet:
    # Several traces of one file come one after the other, each with what it interns; then the GPUs of all.
    if packet.trusted_packet_sequence_id != sequence:
        assert packet.trusted_packet_sequence_id == sequence + 1 or packet.HasField("gpu_info")
        sequence = packet.trusted_packet_sequence_id
        for known in interned:
            known.clear()
    for one in packet.interned_data.event_names:
        names[one.iid] = one.name
    for one in packet.interned_data.event_categories:
        categories[one.iid] = one.name
    for one in packet.interned_data.debug_annotation_names:
        keys[one.iid] = one.name
    for one in packet.interned_data.debug_annotation_string_values:
        texts[one.iid] = one.str.decode()
    for one in packet.interned_data.gpu_specifications:
        assert one.iid not in specs
        specs[one.iid] = one
    for one in packet.interned_data.graphics_contexts:
        contexts[one.iid] = one
    for kind, known in (("function_names", functions), ("mapping_paths", paths)):
        known.update({one.iid: one.str.decode() for one in getattr(packet.interned_data, kind)})
    for kind, known in (("mappings", mappings), ("frames", frames), ("callstacks", callstacks)):
        for one in getattr(packet.interned_data, kind):
            assert one.iid not in known
            known[one.iid] = one
    if packet.HasField("perf_sample"):
        host_sample(packet.perf_sample, packet.timestamp)
    if packet.HasField("gpu_render_stage_event"):
        render_stage(packet.gpu_render_stage_event, packet.timestamp)
    if packet.HasField("gpu_counter_event"):
        gpu_counters(packet.gpu_counter_event, packet.timestamp)
    if packet.HasField("track_descriptor"):
        d = packet.track_descriptor
        assert d.uuid not in tracks
        assert not d.parent_uuid or d.parent_uuid in tracks
        tracks[d.uuid] = d
    if not packet.HasField("track_event"):
        continue
    e, now = packet.track_event, packet.timestamp
    track = tracks[e.track_uuid]
    if e.type == E.TYPE_SLICE_BEGIN:
        args = {}
        for a in e.debug_annotations:
            which = a.WhichOneof("value")
            value = getattr(a, which)
            args[keys[a.name_iid]] = texts[value] if which == "string_value_iid" else value
        one = {
            "track": track.name,
            "category": categories[e.category_iids[0]],
            "name": names[e.name_iid],
            "start_ns": now,
            "args": args,
        }
        for flow in e.flow_ids:
            flows[flow].append([one["category"], now])
        if ids := correlated(e):
            correlations.append([now, ids])
        stacks[e.track_uuid].append(one)
        slices.append(one)
    elif e.type == E.TYPE_COUNTER:
        assert track.counter.unit_name
        counters[track.name].append([now, e.double_counter_value])
    else:
        assert e.type == E.TYPE_SLICE_END
        one = stacks[e.track_uuid].pop()
        one["duration_ns"] = now - one["start_ns"]
assert not any(stacks.values())
# A sample is the value since the one before.
for counter, values in samples.items():
    after = [value for _, value in values[1:]]
    counters[counter_names[counter]] = [[at, value] for (at, _), value in zip(values, after)]
clocks = [[c.clock_id, c.timestamp] for p in trace.packet for c in p.clock_snapshot.clocks]
threads = [[d.thread.pid, d.thread.tid] for d in tracks.values() if d.HasField("thread")]
print(json.dumps({
    "problems": problems,
    "slices": slices,
    "flows": sorted(flows.values()),
    "correlations": [
        [at, [[stages[id]["category"], stages[id]["start_ns"]] for id in ids]] for at, ids in correlations
    ],
    "counters": counters,
    "gpus": [gpu.name for p in trace.packet for gpu in p.gpu_info.gpus],
    "clocks": clocks,
    "threads": threads,
    "samples": host_samples,
}))
