"""Recomputes from a trace what this project's tables say, the slow and simple way, and prints it as JSON.

dissect.etl (which shares no code with this project) walks the buffers and records; payloads are taken apart here with
`struct`. Everything is kept in lists and searched; nothing is streamed. 64-bit traces with version-2 kernel events.

Prints {"tables": {name: {"columns": [...], "rows": [[...], ...]}}, "sums": {name: {key: number}}}. Columns are named
as in `etwhy dump TABLE --format jsonl`; times are nanoseconds since the start of the trace; unknown is null.
Run: python brute_force.py trace.etl
"""

import bisect
import collections
import json
import struct
import sys
import uuid

from dissect.etl import ETL

SYSTEM_CONFIG_EX = uuid.UUID("9b79ee91-b5fd-41c0-a243-4248e266e9d0")
# KTHREAD_STATE: a thread that leaves a processor Ready, Standby or DeferredReady was preempted.
PREEMPTED = {1, 3, 7}
WAITING = 5


class Record:
    """One record: hook id (group << 8 | type) or class GUID, and the payload."""

    __slots__ = ("ticks", "cpu", "order", "hook", "guid", "opcode", "pid", "tid", "payload")

    def __init__(self, data, cpu, order):
        self.cpu, self.order = cpu, order
        self.hook = self.guid = self.opcode = self.pid = self.tid = None
        kind = data[2]
        if kind in (1, 2, 3, 4):  # SYSTEM_TRACE_HEADER, with and without processor times
            size, self.hook, self.tid, self.pid, self.ticks = struct.unpack_from("<HHIIq", data, 4)
            start = 32 if kind < 3 else 24
        elif kind in (16, 17):  # PERFINFO_TRACE_HEADER: nobody is named
            size, self.hook, self.ticks = struct.unpack_from("<HHq", data, 4)
            start = 16
        elif kind in (10, 20):  # EVENT_TRACE_HEADER
            size = struct.unpack_from("<H", data, 0)[0]
            self.opcode = data[4]
            self.tid, self.pid, self.ticks = struct.unpack_from("<IIq", data, 8)
            self.guid = uuid.UUID(bytes_le=data[24:40])
            start = 48
        else:  # EVENT_HEADER and messages: not needed here
            size, self.ticks, start = len(data), struct.unpack_from("<q", data, 16)[0], len(data)
        self.payload = data[start:size]


def text16(data, at=0):
    end = at
    while end + 1 < len(data) and data[end:end + 2] != b"\0\0":
        end += 2
    return data[at:end].decode("utf-16-le", "replace")


def walk(path):
    records = []
    with open(path, "rb") as file:
        trace = ETL(file)
        for number in range(trace.logfile_header.buffers_written):
            try:
                buffer = trace.buffer(number)
            except Exception:  # fewer buffers than the header says: some were left out
                break
            for record in buffer:
                data = bytes(record.header.data[:record.size])
                records.append(Record(data, buffer.header.ProcessorIndex, len(records)))
            buffer._data = None
    header = records[0]
    frequency = struct.unpack_from("<q", header.payload, 0x100)[0]
    start = header.ticks
    # Of equal times the order within a processor is that of the file.
    records.sort(key=lambda r: (r.ticks, r.cpu, r.order))
    return records, start, frequency


class Trace:
    def __init__(self, path):
        self.records, self.start, self.frequency = walk(path)
        self.by_hook = collections.defaultdict(list)
        for record in self.records:
            self.by_hook[record.hook].append(record)

    def ns(self, ticks):
        return (ticks - self.start) * 1_000_000_000 // self.frequency

    def get(self, *hooks):
        found = [r for hook in hooks for r in self.by_hook[hook]]
        found.sort(key=lambda r: (r.ticks, r.cpu, r.order))
        return found


def switches(trace):
    """(ns, cpu, new tid, old tid, old state) of every context switch, in time order."""
    rows = []
    for r in trace.get(0x0524):
        new, old = struct.unpack_from("<II", r.payload)
        rows.append((trace.ns(r.ticks), r.cpu, new, old, r.payload[14], r))
    return rows


class Running:
    """Who runs on a processor, from its first context switch on."""

    def __init__(self, rows):
        self.times, self.tids = collections.defaultdict(list), collections.defaultdict(list)
        for ns, cpu, new, _, _, record in rows:
            self.times[cpu].append((record.ticks, record.order))
            self.tids[cpu].append(new)

    def tid(self, cpu, record):
        at = bisect.bisect_right(self.times[cpu], (record.ticks, record.order))
        return self.tids[cpu][at - 1] if at else None


def cswitch(trace, rows):
    running = Running(rows)
    readies = collections.defaultdict(list)
    for r in trace.get(0x0532):
        tid, _, _, flags = struct.unpack_from("<IBBB", r.payload)
        readies[tid].append((trace.ns(r.ticks), r, bool(flags & 1)))
    per_cpu = collections.defaultdict(list)
    for row in rows:
        per_cpu[row[1]].append(row)
    # Thread ids are reused: what a thread of the same id did before this one began does not count.
    born = collections.defaultdict(list)
    for r in trace.get(0x0501):
        born[struct.unpack_from("<II", r.payload)[1]].append((r.ticks, r.order))
    out, result = {}, []
    ends = {}
    for cpu, list_ in per_cpu.items():
        for this, following in zip(list_, list_[1:]):
            ends[id(this)] = following[0]
    for row in rows:
        ns, cpu, new, old, state, record = row
        run = ends[id(row)] - ns if id(row) in ends else None
        wait = ready = by = None
        if new != 0:
            left = out.get(new)
            births = [b for b in born[new] if b <= (record.ticks, record.order)]
            if left and births and births[-1] > left[2]:
                left = None
            since = left[0] if left else -1
            # The first ReadyThread since it left.
            key = left[2] if left else (births[-1] if births else (-1, -1))
            at = bisect.bisect_right(readies[new], key, key=lambda x: (x[1].ticks, x[1].order))
            woken = readies[new][at] if at < len(readies[new]) and readies[new][at][1].ticks <= record.ticks else None
            if left and left[1] in PREEMPTED:
                wait, ready = 0, ns - since
            elif woken:
                wait = woken[0] - since if left else None
                ready = ns - woken[0]
            if woken and not woken[2]:
                by = running.tid(woken[1].cpu, woken[1])
        result.append([ns, cpu, new, old, run, wait, ready, by])
        out[old] = (ns, state, (record.ticks, record.order))
    return {"columns": ["ts_ns", "cpu", "new_tid", "old_tid", "run_ns", "wait_ns", "ready_ns", "readying_tid"], "rows": result}


class Images:
    """Kernel images by address; the last record of each counts."""

    def __init__(self, trace):
        found = {}
        for r in trace.get(0x030A, 0x1403, 0x1404):
            base, size, pid = struct.unpack_from("<QQI", r.payload)
            if pid == 0 or base >> 63:
                # Fixed part of Image_Load version 3: 56 bytes, then the path.
                found[base] = (size, text16(r.payload, 56).rsplit("\\", 1)[-1])
        self.bases = sorted(found)
        self.found = found

    def module(self, address):
        at = bisect.bisect_right(self.bases, address)
        if at:
            base = self.bases[at - 1]
            size, name = self.found[base]
            if address < base + size:
                return name.lower()
        return None


def interrupts(trace):
    """DPCs and ISRs: (start, end, cpu, routine, is_isr, tid-less exclusive time)."""
    all_ = []
    for r in trace.get(0x0F42, 0x0F44, 0x0F45, 0x0F46, 0x0F43, 0x0F32, 0x0F5F):
        initial, routine = struct.unpack_from("<qQ", r.payload)
        isr = r.hook in (0x0F43, 0x0F32, 0x0F5F)
        all_.append([trace.ns(initial), trace.ns(r.ticks), r.cpu, routine, isr, r])
    per_cpu = collections.defaultdict(list)
    for row in all_:
        per_cpu[row[2]].append(row)
    for list_ in per_cpu.values():
        list_.sort(key=lambda row: row[0])
    starts = {cpu: [row[0] for row in list_] for cpu, list_ in per_cpu.items()}
    result = []
    for row in all_:
        start, end, cpu, routine, isr, record = row
        # Whatever lies within, other than itself: the union of these stretches is not its own time.
        first = bisect.bisect_left(starts[cpu], start)
        inside = []
        for at in range(first, len(per_cpu[cpu])):
            other = per_cpu[cpu][at]
            if other[0] > end:
                break
            if other is not row and other[1] <= end and other[5].order < record.order:
                inside.append((other[0], other[1]))
        result.append((start, end, cpu, routine, isr, end - start - union(inside)))
    return result


def union(spans):
    total, reach = 0, None
    for start, end in sorted(spans):
        if reach is None or start > reach:
            total += end - start
            reach = end
        elif end > reach:
            total += end - reach
            reach = end
    return total


def interrupt_tables(trace, found):
    images = Images(trace)
    tables = {}
    for name, wanted in (("dpc", False), ("isr", True)):
        rows = [
            [start, end, end - start, own, cpu, images.module(routine)]
            for start, end, cpu, routine, isr, own in found
            if isr == wanted
        ]
        tables[name] = {"columns": ["start_ns", "ts_ns", "dur_ns", "exclusive_ns", "cpu", "module"], "rows": rows}
    return tables


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def syscalls(trace, rows, found):
    running = Running(rows)
    # Where the first switch of a processor is still to come, the stack record of the enter names the thread.
    stacks = {}
    for r in trace.get(0x1820, 0x1825, 0x1826):
        ticks, _, tid = struct.unpack_from("<qII", r.payload)
        stacks.setdefault((ticks, r.cpu), tid)
    # On which processor each thread ran, from when to when.
    runs = collections.defaultdict(list)
    last = {}
    for ns, cpu, new, old, _, _ in rows:
        if cpu in last and last[cpu][0] == old:
            runs[old].append((last[cpu][1], ns, cpu))
        last[cpu] = (new, ns)
    for cpu, (tid, since) in last.items():
        runs[tid].append((since, 1 << 62, cpu))
    for list_ in runs.values():
        list_.sort()
    stolen = collections.defaultdict(list)
    for start, end, cpu, _, _, _ in found:
        stolen[cpu].append((start, end))
    for list_ in stolen.values():
        list_.sort()

    def on_cpu(tid, start, end):
        total = 0
        list_ = runs[tid]
        first = max(bisect.bisect_right(list_, (start, 1 << 62, 0)) - 1, 0)
        for place in range(first, len(list_)):
            since, until, cpu = list_[place]
            if since >= end:
                break
            low, high = max(since, start), min(until, end)
            if low < high:
                # Interrupts do not last longer than a tenth of a second.
                spans, inside = stolen[cpu], []
                for at in range(bisect.bisect_left(spans, (low - 100_000_000, 0)), len(spans)):
                    a, b = spans[at]
                    if a >= high:
                        break
                    if b > low:
                        inside.append((max(a, low), min(b, high)))
                total += high - low - union(inside)
        return total

    open_, result = collections.defaultdict(list), []
    for r in trace.get(0x0F33, 0x0F34):
        tid = running.tid(r.cpu, r)
        if r.hook == 0x0F33:
            by_switch = tid is not None
            tid = tid if by_switch else stacks.get((r.ticks, r.cpu))
            call = (trace.ns(r.ticks), struct.unpack_from("<Q", r.payload)[0], by_switch)
            if tid is None:
                result.append([call[0], None, None, None, None, signed(call[1], 64), None])
            else:
                open_[tid].append(call)
            continue
        status = signed(struct.unpack_from("<I", r.payload)[0], 32)
        if tid is None or not open_[tid]:
            result.append([None, trace.ns(r.ticks), None, None, tid, None, status])
            continue
        start, address, by_switch = open_[tid].pop()
        end = trace.ns(r.ticks)
        on = on_cpu(tid, start, end) if by_switch else None
        result.append([start, end, end - start, on, tid, signed(address, 64), status])
    for tid, calls in open_.items():
        result.extend([start, None, None, None, tid, signed(address, 64), None] for start, address, _ in calls)
    columns = ["start_ns", "ts_ns", "dur_ns", "on_cpu_ns", "tid", "address", "status"]
    return {"columns": columns, "rows": result}


FILE_OPS = {
    64: "Create", 65: "Cleanup", 66: "Close", 67: "Read", 68: "Write", 69: "SetInfo", 70: "Delete", 71: "Rename",
    72: "DirEnum", 73: "Flush", 74: "QueryInfo", 75: "FSControl", 77: "DirNotify",
}
# Offset of the thread id in the payload: behind offset, IRP, object and key in their order of version 3.
FILE_TID = {64: 16, 65: 24, 66: 24, 73: 24, 67: 32, 68: 32, 72: 24, 77: 24}


def file_io(trace):
    open_, result = {}, []
    for r in trace.get(*(0x0400 | op for op in FILE_OPS), 0x044C):
        op, payload = r.hook & 0xFF, r.payload
        if op == 76:
            irp, _, status = struct.unpack_from("<QQI", payload)
            if irp in open_:
                name, start, tid = open_.pop(irp)
                end = trace.ns(r.ticks)
                result.append([start, end, end - start, name, tid, signed(irp, 64), signed(status, 32)])
            continue
        irp = struct.unpack_from("<Q", payload, 8 if op in (67, 68) else 0)[0]
        tid = struct.unpack_from("<I", payload, FILE_TID.get(op, 32))[0]
        if irp in open_:
            name, start, before = open_[irp]
            result.append([start, None, None, name, before, signed(irp, 64), None])
        open_[irp] = (FILE_OPS[op], trace.ns(r.ticks), tid)
    for irp, (name, start, tid) in open_.items():
        result.append([start, None, None, name, tid, signed(irp, 64), None])
    return {"columns": ["start_ns", "ts_ns", "dur_ns", "op", "tid", "irp", "status"], "rows": result}


REGISTRY_OPS = {
    10: "Create", 11: "Open", 12: "Delete", 13: "Query", 14: "SetValue", 15: "DeleteValue", 16: "QueryValue",
    17: "EnumerateKey", 18: "EnumerateValueKey", 19: "QueryMultipleValue", 20: "SetInformation", 21: "Flush",
    26: "Virtualize", 27: "Close", 28: "SetSecurity", 29: "QuerySecurity",
}
VALUE_OPS = {14, 15, 16, 19}


def registry(trace):
    # Names of key control blocks: created while the trace ran (22), and those of the rundown (24, 25).
    names = collections.defaultdict(list)
    for r in trace.get(0x0916, 0x0918, 0x0919):
        key = struct.unpack_from("<Q", r.payload, 16)[0]
        names[key].append((r.ticks, text16(r.payload, 24)))

    def name(key, ticks):
        before = [n for t, n in names[key] if t <= ticks]
        return before[-1] if before else (names[key][0][1] if names[key] else None)

    result = []
    for r in trace.get(*(0x0900 | op for op in REGISTRY_OPS)):
        op = r.hook & 0xFF
        initial, status, _, key = struct.unpack_from("<qIIQ", r.payload)
        text = text16(r.payload, 24)
        path, value = name(key, r.ticks) if key else "", None
        if op in VALUE_OPS:
            value = text
        elif text:
            path = f"{path}\\{text}" if path and not text.startswith("\\") else text
        for native, short in (("\\REGISTRY\\MACHINE", "HKLM"), ("\\REGISTRY\\USER", "HKU")):
            if path and path.upper().startswith(native):
                path = short + path[len(native):]
        start, end = trace.ns(initial), trace.ns(r.ticks)
        result.append([start, end, end - start, REGISTRY_OPS[op], path, value, signed(status, 32), r.tid])
    columns = ["start_ns", "ts_ns", "dur_ns", "op", "key", "value", "status", "tid"]
    return {"columns": columns, "rows": result}


def pool(trace, rows):
    running = Running(rows)
    open_, result = {}, []
    for r in trace.get(0x0E20, 0x0E22):
        kind, tag, size, entry = struct.unpack_from("<I4sQQ", r.payload)
        ns, tid = trace.ns(r.ticks), running.tid(r.cpu, r)
        if r.hook == 0x0E20:
            if entry in open_:
                result.append(open_.pop(entry))
            open_[entry] = [ns, None, tag.decode("latin-1"), size, signed(entry, 64), tid, None]
        elif entry in open_:
            row = open_.pop(entry)
            row[1], row[6] = ns, tid
            result.append(row)
    result.extend(open_.values())
    columns = ["ts_ns", "freed_ns", "tag", "size_bytes", "address", "tid", "freed_by_tid"]
    outstanding = collections.Counter()
    for row in result:
        if row[1] is None:
            outstanding[row[2]] += row[3]
    return {"columns": columns, "rows": result}, outstanding


FAULTS = {
    10: "TransitionFault", 11: "DemandZeroFault", 12: "CopyOnWrite", 13: "GuardPageFault", 14: "HardPageFault",
    15: "AccessViolation",
}


def page_faults(trace, rows):
    running = Running(rows)
    result = []
    for r in trace.get(*(0x0200 | op for op in FAULTS)):
        address = struct.unpack_from("<Q", r.payload)[0]
        tid = running.tid(r.cpu, r)
        result.append([trace.ns(r.ticks), FAULTS[r.hook & 0xFF], signed(address, 64), r.cpu, tid])
    return {"columns": ["ts_ns", "kind", "address", "cpu", "tid"], "rows": result}


def virtual_alloc(trace):
    """Committed bytes that are left at the end, by process: page by page."""
    pages = collections.defaultdict(set)
    ends = {}
    for r in trace.get(0x0262, 0x0263, 0x0302):
        if r.hook == 0x0302:
            pages[struct.unpack_from("<I", r.payload, 8)[0]].clear()
            continue
        base, size, pid, flags = struct.unpack_from("<QQII", r.payload)
        span = range(base // 4096, (base + size + 4095) // 4096)
        if r.hook == 0x0262:
            ends[pid] = True
            if flags & 0x1000:
                pages[pid].update(span)
        else:
            pages[pid].difference_update(span)
    return {str(pid): len(pages[pid]) * 4096 for pid in ends}


def main():
    trace = Trace(sys.argv[1])
    rows = switches(trace)
    found = interrupts(trace)
    tables = {"cswitch": cswitch(trace, rows), **interrupt_tables(trace, found)}
    tables["syscall"] = syscalls(trace, rows, found)
    tables["file_io"] = file_io(trace)
    tables["registry"] = registry(trace)
    tables["pool"], outstanding = pool(trace, rows)
    tables["page_fault"] = page_faults(trace, rows)
    sums = {"virtual_alloc": virtual_alloc(trace), "pool": outstanding}
    json.dump({"tables": {name: table for name, table in tables.items() if table["rows"]}, "sums": sums}, sys.stdout)


if __name__ == "__main__":
    main()
