"""What a pprof file holds, read with Google's protobuf library.

    read_pprof.py FILE

The definition is that of profile.proto (github.com/google/pprof), written down here again so that nothing is shared with the
writer. Checks what `profile.CheckValid` of the Go package checks, and prints the sums of each sample type as JSON.
"""

import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT, UINT, BOOL, TEXT, MESSAGE = 3, 4, 8, 9, 11
# Message: (name, number, type, repeated, type of message).
MESSAGES = {
    "ValueType": [("type", 1, INT), ("unit", 2, INT)],
    "Label": [("key", 1, INT), ("str", 2, INT), ("num", 3, INT), ("num_unit", 4, INT)],
    "Sample": [("location_id", 1, UINT, True), ("value", 2, INT, True), ("label", 3, MESSAGE, True, "Label")],
    "Mapping": [
        ("id", 1, UINT), ("memory_start", 2, UINT), ("memory_limit", 3, UINT), ("file_offset", 4, UINT),
        ("filename", 5, INT), ("build_id", 6, INT), ("has_functions", 7, BOOL), ("has_filenames", 8, BOOL),
        ("has_line_numbers", 9, BOOL), ("has_inline_frames", 10, BOOL),
    ],
    "Line": [("function_id", 1, UINT), ("line", 2, INT), ("column", 3, INT)],
    "Location": [
        ("id", 1, UINT), ("mapping_id", 2, UINT), ("address", 3, UINT), ("line", 4, MESSAGE, True, "Line"),
        ("is_folded", 5, BOOL),
    ],
    "Function": [("id", 1, UINT), ("name", 2, INT), ("system_name", 3, INT), ("filename", 4, INT), ("start_line", 5, INT)],
    "Profile": [
        ("sample_type", 1, MESSAGE, True, "ValueType"), ("sample", 2, MESSAGE, True, "Sample"),
        ("mapping", 3, MESSAGE, True, "Mapping"), ("location", 4, MESSAGE, True, "Location"),
        ("function", 5, MESSAGE, True, "Function"), ("string_table", 6, TEXT, True), ("drop_frames", 7, INT),
        ("keep_frames", 8, INT), ("time_nanos", 9, INT), ("duration_nanos", 10, INT),
        ("period_type", 11, MESSAGE, False, "ValueType"), ("period", 12, INT), ("comment", 13, INT, True),
        ("default_sample_type", 14, INT), ("doc_url", 15, INT),
    ],
}


def profile_class():
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, *rest in fields:
            repeated, of = (rest + [False, ""])[:2] if len(rest) < 2 else rest
            message.field.add(
                name=field, number=number, type=kind, label=3 if repeated else 1,
                type_name=f".p.{of}" if kind == MESSAGE else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


def unknown(message):
    """Whether a message holds fields that its definition does not have."""
    from google.protobuf import unknown_fields

    return len(unknown_fields.UnknownFieldSet(message)) > 0


def main():
    profile = profile_class()()
    profile.ParseFromString(gzip.open(sys.argv[1]).read())
    texts = profile.string_table
    assert texts[0] == "" and len(set(texts)) == len(texts)
    text = lambda number: texts[number]
    mappings = {m.id: m for m in profile.mapping}
    functions = {f.id: f for f in profile.function}
    locations = {l.id: l for l in profile.location}
    for ids, records in ((mappings, profile.mapping), (functions, profile.function), (locations, profile.location)):
        assert 0 not in ids and len(ids) == len(records), "ids are unique and not 0"
    for records in (profile.mapping, profile.function, profile.location, profile.sample, [profile]):
        assert not any(map(unknown, records))
    for location in profile.location:
        assert location.line, "every location has a function"
        assert all(text(functions[line.function_id].name) for line in location.line)
        if location.mapping_id:
            mapping = mappings[location.mapping_id]
            assert mapping.memory_start <= location.address < mapping.memory_limit, location
    types = [(text(t.type), text(t.unit)) for t in profile.sample_type]
    totals = [0] * len(types)
    own, processes = {}, {}
    for sample in profile.sample:
        assert len(sample.value) == len(types)
        totals = [a + b for a, b in zip(totals, sample.value)]
        labels = {text(l.key): text(l.str) or l.num for l in sample.label}
        assert len(labels) == len(sample.label)
        process = labels["process"]
        processes[process] = processes.get(process, 0) + sample.value[1]
        if sample.location_id:
            leaf = locations[sample.location_id[0]]
            name = text(functions[leaf.line[0].function_id].name)
            own[name] = own.get(name, 0) + sample.value[1]
    build_ids = sum(1 for m in profile.mapping if m.build_id)
    print(json.dumps({
        "types": types, "totals": totals, "own": own, "processes": processes, "time_nanos": profile.time_nanos,
        "duration_nanos": profile.duration_nanos, "default": text(profile.default_sample_type), "build_ids": build_ids,
    }))


main()
