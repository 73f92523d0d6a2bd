"""What a Perfetto trace holds, read with the definitions of the PyPI package perfetto.

    read_perfetto.py FILE

Parses every packet, checks that nothing is unknown to the definitions and that numbers of names, frames and tracks were
written before they are used, and prints counts as JSON.
"""

import json
import sys
from collections import Counter

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p


def packets(data):
    """The packets of a trace: a trace is a message of nothing else."""
    at = 0
    while at < len(data):
        assert data[at] == 0x0A
        at, shift, size = at + 1, 0, 0
        while True:
            byte = data[at]
            at, size, shift = at + 1, size | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        packet = p.TracePacket()
        packet.ParseFromString(data[at:at + size])
        at += size
        yield packet


def check(message):
    assert len(unknown_fields.UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                check(inner)


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    counts, interned, tracks, depth = Counter(), {}, {0: 0}, Counter()
    last = {}
    for number, packet in enumerate(packets(data)):
        check(packet)
        assert packet.timestamp_clock_id == p.BUILTIN_CLOCK_BOOTTIME
        assert packet.trusted_packet_sequence_id == 1
        assert packet.sequence_flags == (1 if number == 0 else 2)
        for field, values in packet.interned_data.ListFields():
            known = interned.setdefault(field.name, set())
            for value in values:
                assert value.iid > 0 and value.iid not in known, f"{field.name} {value.iid} twice"
                known.add(value.iid)
        data_of = packet.interned_data
        for mapping in data_of.mappings:
            assert mapping.build_id in interned["build_ids"]
            assert set(mapping.path_string_ids) <= interned["mapping_paths"]
        for frame in data_of.frames:
            assert frame.function_name_id in interned["function_names"] and frame.mapping_id in interned["mappings"]
            assert not frame.HasField("source_path_iid") or frame.source_path_iid in interned["source_paths"]
        for stack in data_of.callstacks:
            assert stack.frame_ids and set(stack.frame_ids) <= interned["frames"]
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks and track.parent_uuid in tracks
            tracks[track.uuid] = track
        if packet.HasField("perf_sample"):
            counts["perf_sample"] += 1
            sample = packet.perf_sample
            assert not sample.HasField("callstack_iid") or sample.callstack_iid in interned["callstacks"]
        for event in packet.ftrace_events.event:
            counts[event.WhichOneof("event")] += 1
        if packet.HasField("track_event"):
            event = packet.track_event
            assert event.track_uuid in tracks
            kind = p.TrackEvent.Type.Name(event.type)
            counts[kind] += 1
            # Within a track packets stand in order of time, begins and ends in pairs.
            if kind != "TYPE_COUNTER":
                assert packet.timestamp >= last.get(event.track_uuid, 0)
                last[event.track_uuid] = packet.timestamp
                depth[event.track_uuid] += {"TYPE_SLICE_BEGIN": 1, "TYPE_SLICE_END": -1}.get(kind, 0)
                assert depth[event.track_uuid] >= 0
            if kind in ("TYPE_SLICE_BEGIN", "TYPE_INSTANT"):
                assert event.name_iid in interned["event_names"]
                assert set(event.category_iids) <= interned["event_categories"]
                assert {a.name_iid for a in event.debug_annotations} <= interned.get("debug_annotation_names", set())
    assert not any(depth.values())
    print(json.dumps(counts))


main()
