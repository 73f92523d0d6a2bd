"""Counts the records of a trace with dissect.etl, a reader that shares no code with this project.

Prints one line per kind of record: "<key> <count>", sorted. Keys:
  kernel/<group>/<type>            records with a system, compact or perfinfo header
  classic/<class guid>/<opcode>    EVENT_TRACE_HEADER and its instance form
  event/<provider guid>/<id>/<opcode>
  message/<guid or ->/<number>
The header kind is appended with --kinds. Run: python count_records.py [--kinds] trace.etl
"""

import collections
import sys
import uuid

from dissect.etl import ETL

KERNEL = {1, 2, 3, 4, 16, 17}
CLASSIC = {10, 11, 20, 21}
EVENT = {18, 19}


def key(header):
    data = bytes(header.data[:80])
    kind = data[2]
    if data[3] == 0x90:
        guid = header.provider_id or "-"
        return f"message/{guid}/{header.id}", 64
    if kind in KERNEL:
        return f"kernel/{header.group}/{header.opcode}", kind
    # The reader's provider_id takes the bytes of EVENT_HEADER in the wrong order; the raw bytes are right.
    guid = uuid.UUID(bytes_le=data[0x18:0x28])
    if kind in CLASSIC:
        return f"classic/{guid}/{data[4]}", kind
    if kind in EVENT:
        return f"event/{guid}/{header.header.Id}/{header.opcode}", kind
    return f"other/{kind}", kind


def main():
    kinds = "--kinds" in sys.argv
    path = [a for a in sys.argv[1:] if not a.startswith("--")][0]
    counts = collections.Counter()
    with open(path, "rb") as file:
        trace = ETL(file)
        for buffer in trace.buffers():
            for record in buffer:
                name, kind = key(record.header)
                counts[f"{name} {kind}" if kinds else name] += 1
            # The reader keeps every buffer it has seen; a large trace would not fit into memory.
            buffer._data = None
    for name, count in sorted(counts.items()):
        print(name, count)


main()
