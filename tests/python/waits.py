"""Who waited for whom, which transfers followed each other, and what is missing, as dissect.etl (no code of this project) reads a trace.

Run: python waits.py trace.etl
Prints {"waits": [[tid, KWAIT_REASON, from_ns, to_ns, tid of who readied it or null for a DPC]], "runs": [[tid, from_ns, to_ns, cpu]],
"transfers": [[disk, from_ns, to_ns]], "working_sets": [[ns, {pid: pages}]], "lost": [events, buffers], "missing": [numbers of buffers],
"gaps": {cpu: longest time without records, in ns}}.
"""

import collections
import json
import struct
import sys

from brute_force import Trace, switches
from verdicts import FOREVER, Threads


def buffers(path):
    """(sequence number, processor) of every buffer: the fields of WMI_BUFFER_HEADER."""
    found, at = [], 0
    data = open(path, "rb").read()
    while at + 72 <= len(data):
        size, = struct.unpack_from("<I", data, at)
        found.append((struct.unpack_from("<q", data, at + 0x18)[0], struct.unpack_from("<H", data, at + 0x28)[0]))
        at += size
    return found


def main(path):
    trace = Trace(path)
    rows = switches(trace)
    threads = Threads(trace, rows)
    waits, runs = [], []
    for tid, list_ in threads.runs.items():
        for run in list_:
            if run["waited"] and run["left"] is not None and run["ready"] is not None:
                waits.append([tid, run["reason"], run["left"], run["ready"], run["by"]])
            if run["end"] != FOREVER:
                runs.append([tid, run["start"], run["end"], run["record"].cpu])
    transfers = []
    for r in trace.get(0x010A, 0x010B):  # read, write
        disk, = struct.unpack_from("<I", r.payload)
        took, = struct.unpack_from("<q", r.payload, 40)
        transfers.append([disk, trace.ns(r.ticks - took), trace.ns(r.ticks)])
    sets = []
    for r in trace.get(0x027D):
        count, = struct.unpack_from("<I", r.payload)
        entries = [struct.unpack_from("<IQ", r.payload, 4 + 68 * n) for n in range(count)]
        sets.append([trace.ns(r.ticks), {str(pid): pages for pid, pages in entries}])
    header = trace.records[0].payload
    # TRACE_LOGFILE_HEADER: EventsLost, and BuffersLost behind two pointers, a TIME_ZONE_INFORMATION and four times.
    lost = [struct.unpack_from("<I", header, 0x30)[0], struct.unpack_from("<I", header, 0x114)[0]]
    numbers = {number for number, _ in buffers(path)}
    times = collections.defaultdict(list)
    for r in trace.records:
        times[r.cpu].append(trace.ns(r.ticks))
    gaps = {cpu: max(b - a for a, b in zip(list_, list_[1:])) for cpu, list_ in times.items() if len(list_) > 1}
    print(json.dumps({
        "waits": sorted(waits), "runs": sorted(runs), "transfers": sorted(transfers), "working_sets": sets, "lost": lost,
        "missing": sorted(set(range(max(numbers))) - numbers), "gaps": gaps,
    }))


if __name__ == "__main__":
    main(sys.argv[1])
