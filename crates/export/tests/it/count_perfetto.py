"""Reads a trace by Perfetto's own protobuf classes and prints what is in it as JSON."""

import json
import sys
from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
E = pb.TrackEvent
names, categories, keys, texts = {}, {}, {}, {}
tracks, slices, flows, counters = {}, [], defaultdict(list), defaultdict(list)
stacks = defaultdict(list)
problems = []


def unknown(message, path="trace"):
    """Fields that Perfetto does not know: a wrong number or type."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if len(UnknownFieldSet(message)):
        problems.append(f"unknown field in {path}")
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            many = value if not hasattr(value, "DESCRIPTOR") else [value]
            for one in many:
                unknown(one, f"{path}.{field.name}")


unknown(trace)
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    for one in packet.interned_data.event_names:
        names[one.iid] = one.name
    for one in packet.interned_data.event_categories:
        categories[one.iid] = one.name
    for one in packet.interned_data.debug_annotation_names:
        keys[one.iid] = one.name
    for one in packet.interned_data.debug_annotation_string_values:
        texts[one.iid] = one.str.decode()
    if packet.HasField("track_descriptor"):
        d = packet.track_descriptor
        assert d.uuid not in tracks
        assert not d.parent_uuid or d.parent_uuid in tracks
        tracks[d.uuid] = d
    if not packet.HasField("track_event"):
        continue
    e, now = packet.track_event, packet.timestamp
    track = tracks[e.track_uuid]
    if e.type == E.TYPE_COUNTER:
        counters[track.name].append([now, e.counter_value])
    elif e.type == E.TYPE_SLICE_BEGIN:
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
        stacks[e.track_uuid].append(one)
        slices.append(one)
    else:
        assert e.type == E.TYPE_SLICE_END
        one = stacks[e.track_uuid].pop()
        one["duration_ns"] = now - one["start_ns"]
assert not any(stacks.values())
clocks = [[c.clock_id, c.timestamp] for p in trace.packet for c in p.clock_snapshot.clocks]
threads = [[d.thread.pid, d.thread.tid] for d in tracks.values() if d.HasField("thread")]
print(json.dumps({
    "problems": problems,
    "slices": slices,
    "flows": sorted(flows.values()),
    "counters": counters,
    "clocks": clocks,
    "threads": threads,
}))
