"""Counts the samples of a trace by their exact stack, and prints it as JSON.

dissect.etl (which shares no code with this project) walks the buffers and records; `PerfInfo/SampleProf` and
`StackWalk/Stack` are taken apart here ("SampledProfile" and "StackWalk_Event" classes, MSDN). 64-bit traces whose
stacks are plain (no stack keys).

Prints {"samples": N, "with_stack": N, "stacks": {"ADDRESS ADDRESS …": samples}}, addresses in decimal as signed 64-bit
numbers, innermost first. Samples of the idle threads outside of DPCs and ISRs stand under "", because nobody pays for them.
Run: python sampled_stacks.py trace.etl
"""

import collections
import json
import struct
import sys

from brute_force import walk

SAMPLED_PROFILE = 0x0F2E
STACK = 0x1820
KERNEL = 1 << 63


def main():
    records, _, _ = walk(sys.argv[1])
    # A stack names the moment and the thread of its event. All processors have an idle thread 0: there the
    # processor tells them apart; other threads may be on another one when their user half is written.
    def key(ticks, tid, cpu):
        return ticks, tid, cpu if tid == 0 else None

    halves = collections.defaultdict(list)
    for record in records:
        if record.hook == STACK:
            ticks, _, tid = struct.unpack_from("<QII", record.payload)
            count = (len(record.payload) - 16) // 8
            halves[key(ticks, tid, record.cpu)].append(struct.unpack_from(f"<{count}Q", record.payload, 16))
    stacks, total, with_stack = collections.Counter(), 0, 0
    for record in records:
        if record.hook != SAMPLED_PROFILE:
            continue
        address, tid, _, flags = struct.unpack_from("<QIHH", record.payload)
        found = halves.get(key(record.ticks, tid, record.cpu), [])
        kernel = [a for half in found if half and half[0] & KERNEL for a in half]
        user = [a for half in found if half and not half[0] & KERNEL for a in half]
        total += 1
        if tid == 0 and not flags & 3:
            stacks[""] += 1
            continue
        with_stack += bool(kernel or user)
        frames = kernel + user or [address]
        stacks[" ".join(str(a - (1 << 64) if a & KERNEL else a) for a in frames)] += 1
    json.dump({"samples": total, "with_stack": with_stack, "stacks": stacks}, sys.stdout)


main()
