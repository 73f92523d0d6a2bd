"""Recomputes what verdicts rest on, the slow and simple way: critical paths, what waits were for, and what samples cost drivers.

dissect.etl (which shares no code with this project) walks the buffers and records; payloads are taken apart with `struct`;
functions are named by the Breakpad symbol files beside a written trace. The lists of functions (`wait_classes.tsv`,
`layer_crossings.tsv`) are the facts that are shared: which function waits for a lock is documented, not computed.

Run: python verdicts.py trace.etl questions.json
questions: {"ranges": [[tid, from_ns, to_ns], ...], "drivers": ["name.sys", ...], "facts": "folder of the .tsv files"}
Prints {"paths": [{"tid kind": ns}, ...], "waits": {"class": [count, ns]}, "drivers": {"name": [charged, own, passed on]}},
of samples the numbers, not their times. Waits are those that a thread ended; below 100 us the wait reason alone tells what they were for.
"""

import bisect
import collections
import fnmatch
import json
import pathlib
import struct
import sys
import uuid

from brute_force import Images, PREEMPTED, WAITING, Running, Trace, switches, text16

KERNEL = 1 << 63
FOREVER = 1 << 62
MOST_DEPTH = 256
LEAST_WAIT_NS = 100_000  # of those whose stack is looked at
DBG_ID_RSDS = (uuid.UUID("b3e675d7-2554-4f18-830b-2762732560de"), 36)
# KWAIT_REASON (wdm.h; the later ones as Process Hacker's phnt lists them), as far as written traces use them.
REASONS = {
    0: "other", 2: "page_fault", 4: "sleep", 5: "suspended", 6: "object", 8: "page_fault", 9: "page_fault", 11: "sleep",
    12: "suspended", 13: "object", 15: "queue", 16: "queue", 17: "call", 18: "page_fault", 19: "page_fault",
    21: "lock_or_condition", 27: "lock", 28: "lock", 29: "lock", 34: "lock", 35: "lock", 36: "lock",
    37: "lock_or_condition",
}
OPEN = {"other", "object", "lock_or_condition"}


class Functions:
    """Names of addresses, from the images in the trace and the symbol files beside it."""

    def __init__(self, trace, folder):
        self.images = collections.defaultdict(list)
        for r in trace.get(0x030A, 0x1403, 0x1404):
            base, size, pid = struct.unpack_from("<QQI", r.payload)
            name = text16(r.payload, 56).rsplit("\\", 1)[-1].lower()
            self.images[0 if base & KERNEL else pid].append((base, size, name))
        for images in self.images.values():
            images.sort()
        pdbs = {}
        for r in trace.get(None):
            if (r.guid, r.opcode) != DBG_ID_RSDS:  # base, process, GUID, age, name
                continue
            base, pid = struct.unpack_from("<QI", r.payload)
            key = uuid.UUID(bytes_le=r.payload[12:28]).hex.upper()
            age = struct.unpack_from("<I", r.payload, 28)[0]
            end = r.payload.index(b"\0", 32)
            pdb = r.payload[32:end].decode("utf-8", "replace").rsplit("\\", 1)[-1]
            pdbs[(0 if base & KERNEL else pid, base)] = (pdb, f"{key}{age:x}".upper())
        self.pdbs, self.folder, self.loaded, self.names = pdbs, folder, {}, {}

    def symbols(self, key):
        if key not in self.loaded:
            functions = []
            if key:
                for file in self.folder.glob(f"{key[0]}/*/*.sym"):
                    if file.parent.name.upper() == key[1]:
                        for line in file.read_text().splitlines():
                            words = line.split(" ")
                            if words[0] == "FUNC":
                                at = 2 if words[1] == "m" else 1
                                functions.append((int(words[at], 16), int(words[at + 1], 16), " ".join(words[at + 3:])))
            self.loaded[key] = sorted(functions)
        return self.loaded[key]

    def name(self, pid, address):
        """(module, function) at an address."""
        pid = 0 if address & KERNEL else pid
        if (pid, address) not in self.names:
            images = self.images[pid]
            at = bisect.bisect_right(images, (address, FOREVER, "")) - 1
            found = None
            if at >= 0 and address < images[at][0] + images[at][1]:
                base, _, module = images[at]
                functions = self.symbols(self.pdbs.get((pid, base)))
                f = bisect.bisect_right(functions, (address - base, FOREVER, "")) - 1
                inside = f >= 0 and address - base < functions[f][0] + functions[f][1]
                found = (module, functions[f][2] if inside else None)
            self.names[(pid, address)] = found
        return self.names[(pid, address)]


def stacks(trace):
    """Kernel and user frames by the time and thread of their event; idle threads by their processor."""
    halves = collections.defaultdict(list)
    for r in trace.get(0x1820):
        ticks, _, tid = struct.unpack_from("<QII", r.payload)
        count = (len(r.payload) - 16) // 8
        frames = struct.unpack_from(f"<{count}Q", r.payload, 16)
        halves[(ticks, tid, r.cpu if tid == 0 else None)].append(frames)
    found = {}
    for key, lists in halves.items():
        kernel = [a for half in lists for a in half if a & KERNEL]
        user = [a for half in lists for a in half if not a & KERNEL]
        found[key] = (kernel, user)
    return found


class Threads:
    """What each thread did: its runs, and what went before each."""

    def __init__(self, trace, rows):
        running = Running(rows)
        readies = collections.defaultdict(list)
        for r in trace.get(0x0532):
            tid, _, _, flags = struct.unpack_from("<IBBB", r.payload)
            by = None if flags & 1 else running.tid(r.cpu, r)
            readies[tid].append((r.ticks, r.order, trace.ns(r.ticks), by or None))
        self.runs = collections.defaultdict(list)
        self.out, on_cpu = {}, {}
        for ns, cpu, new, old, state, record in rows:
            if cpu in on_cpu and on_cpu[cpu]["tid"] == old:
                on_cpu[cpu]["end"] = ns
            reason = record.payload[12]
            if new:
                left = self.out.get(new)
                at = bisect.bisect_right(readies[new], (left[3], left[4]) if left else (-1, -1), key=lambda x: x[:2])
                woken = readies[new][at] if at < len(readies[new]) else None
                woken = woken if woken and woken[0] <= record.ticks else None
                preempted = left is not None and left[1] in PREEMPTED
                run = {
                    "tid": new, "start": ns, "end": FOREVER, "left": left[0] if left else None,
                    "waited": left is None or left[1] == WAITING, "reason": left[2] if left else None,
                    "ready": left[0] if preempted else woken[2] if woken else None,
                    "by": woken[3] if woken and not preempted else None, "record": record,
                }
                self.runs[new].append(run)
                on_cpu[cpu] = run
            else:
                on_cpu.pop(cpu, None)
            self.out[old] = (ns, state, reason, record.ticks, record.order)

    def path(self, tid, low, high, chain=()):
        """(kind, tid, from, to) of a time range of a thread, latest first."""
        found, runs = [], self.runs[tid]
        at = high
        while at > low:
            index = bisect.bisect_left(runs, at, key=lambda run: run["start"])
            before = runs[index - 1] if index else None
            if before and before["end"] >= at:
                start = max(before["start"], low)
                found.append(("run", tid, start, at))
                at = start
                continue
            since = max(before["end"] if before else low, low)
            after = runs[index] if index < len(runs) else None
            if after is None:
                left = self.out.get(tid)
                start = max(left[0], since) if left else at
                if start < at:
                    found.append(("wait" if left[1] == WAITING else "ready", tid, start, at))
                else:
                    start = since
                    found.append(("unknown", tid, start, at))
            elif after["left"] is None or after["left"] >= at:
                start = since
                found.append(("unknown", tid, start, at))
            else:
                start = max(after["left"], since)
                ready = min(max(after["ready"] if after["ready"] is not None else at, start), after["start"])
                by = after["by"]
                if not after["waited"]:
                    found.append(("ready", tid, start, at))
                elif at > ready:
                    start = ready
                    found.append(("ready", tid, start, at))
                elif by and by != tid and after["ready"] == at and by not in chain and len(chain) < MOST_DEPTH:
                    found.extend(self.path(by, start, at, chain + (tid,)))
                else:
                    found.append(("wait", tid, start, at))
            at = start
        return found


def waits(threads, functions, stack_of, pids, facts):
    """Waits that a thread ended, by what they were for: the innermost function that is known for waiting."""
    known = [line.split("\t") for line in (facts / "wait_classes.tsv").read_text().splitlines() if line[:1] not in ("#", "")]
    classes = {}

    def function_class(name):
        if name not in classes:
            classes[name] = next((row[0] for row in known if name and name[1] and row[1].lower() == name[0] and fnmatch.fnmatchcase(name[1], row[2])), None)
        return classes[name]

    found = collections.defaultdict(lambda: [0, 0])
    for tid, runs in threads.runs.items():
        for run in runs:
            if run["left"] is None or not run["waited"] or run["by"] is None or run["ready"] is None:
                continue
            ns = run["ready"] - run["left"]
            kind = REASONS.get(run["reason"], "other")
            if kind in OPEN and ns >= LEAST_WAIT_NS:
                kernel, user = stack_of.get((run["record"].ticks, tid, None), ((), ()))
                names = (functions.name(pids.get(tid), address) for address in (*kernel, *user))
                kind = next(filter(None, map(function_class, names)), kind)
            found[kind][0] += 1
            found[kind][1] += ns
    return found


def drivers(trace, functions, stack_of, names, facts):
    """Samples of the drivers asked for: charged, own, passed on."""
    lines = (facts / "layer_crossings.tsv").read_text().splitlines()
    crossings = [tuple(line.lower().split("\t")[:2]) for line in lines if line[:1] not in ("#", "")]

    def crosses(frame, caller):
        """The driver only hands over: to a function of the list, or as a hook to the system call that it stands in front of."""
        module, function = frame[0], (frame[1] or "").lower()
        if any(module == m and fnmatch.fnmatchcase(function, f) for m, f in crossings):
            return True
        is_call = module == "ntoskrnl.exe" and function.startswith("nt")
        return is_call and caller is not None and (caller[1] or "").startswith("KiSystemService")

    dispatchers = {"KiRetireDpcList", "KiExecuteAllDpcs", "KiExecuteDpc", "KiExecuteDpcDelegate", "KiDpcInterrupt", "KiInterruptDispatch",
                   "KiCallInterruptServiceRoutine", "KiScanInterruptObjectList", "KiInterruptDispatchNoLock", "KiChainedDispatch",
                   "KiInterruptDispatchNoLockNoEtw", "KiInterruptMessageDispatch"}
    found = {name: [0, 0, 0] for name in names}
    for r in trace.get(0x0F2E):
        _, tid, _, flags = struct.unpack_from("<QIHH", r.payload)
        kernel, _ = stack_of.get((r.ticks, tid, r.cpu if tid == 0 else None), ((), ()))
        frames = [functions.name(0, address) or (None, None) for address in kernel]
        if flags & 3:
            end = next((at for at, frame in enumerate(frames) if frame[1] in dispatchers), None)
            frames = frames if end is None else frames[:end + 1]
        elif tid == 0:
            continue
        first = next((at for at, frame in enumerate(frames) if frame[0] in found), None)
        for name in {frame[0] for frame in frames} & set(found):
            found[name][2] += 1
        if first is None:
            continue
        name = frames[first][0]
        callee = frames[first - 1] if first else None
        caller = next((frame for frame in frames[first:] if frame[0] not in found), None)
        if callee is None or not crosses(callee, caller):
            found[name][0] += 1
            found[name][1] += first == 0
            found[name][2] -= 1
    return found


def system_work(trace, functions, stack_of, pids, names, facts):
    """Samples of threads of the System process by the driver whose routine is at their outer end."""
    lines = (facts / "work_hosts.tsv").read_text().splitlines()
    hosts = {tuple(line.split("\t")[:2]) for line in lines if line[:1] not in ("#", "")}
    hosts = {(module.lower(), function) for module, function in hosts}
    found = collections.Counter()
    for r in trace.get(0x0F2E):
        _, tid, _, flags = struct.unpack_from("<QIHH", r.payload)
        if flags & 3 or tid == 0 or pids.get(tid) != 4:
            continue
        kernel, _ = stack_of.get((r.ticks, tid, None), ((), ()))
        frames = [functions.name(0, address) or (None, None) for address in kernel]
        inner = list(frames)
        while inner and inner[-1] in hosts:
            inner.pop()
        if not inner or len(inner) == len(frames):
            found["unknown"] += 1
        elif inner[-1][0] in names:
            found[inner[-1][0]] += 1
        else:
            found["windows" if inner[-1][1] else "unknown"] += 1
    return found


def wakeups(trace, rows, pids):
    """Threads that DPCs woke, by driver and process: how many went on on the node of the DPC, and how many on another one."""
    nodes = []
    for r in trace.get(0x0B18):
        count = struct.unpack_from("<I", r.payload)[0]
        nodes = [struct.unpack_from("<QH", r.payload, 4 + 16 * at) for at in range(count)]

    def node(cpu):
        return next((at for at, (mask, group) in enumerate(nodes) if group == cpu // 64 and mask >> cpu % 64 & 1), None)

    readies, dpcs = collections.defaultdict(list), collections.defaultdict(list)
    for r in trace.get(0x0532):
        tid, _, _, flags = struct.unpack_from("<IBBB", r.payload)
        readies[tid].append((r.ticks, r.order, r.cpu, bool(flags & 1)))
    for r in trace.get(0x0F42, 0x0F44, 0x0F45, 0x0F46):
        dpcs[r.cpu].append((r.ticks, r.order, *struct.unpack_from("<qQ", r.payload)))
    images, left, found = Images(trace), {}, collections.defaultdict(lambda: [0, 0])
    for _, cpu, new, old, _, record in rows:
        key = left.get(new, (-1, -1))
        at = bisect.bisect_right(readies[new], key, key=lambda x: x[:2])
        left[old] = (record.ticks, record.order)
        if new == 0 or at == len(readies[new]) or readies[new][at][0] > record.ticks or not readies[new][at][3]:
            continue
        ticks, _, from_cpu, _ = readies[new][at]
        over = bisect.bisect_left(dpcs[from_cpu], (ticks,))
        dpc = dpcs[from_cpu][over] if over < len(dpcs[from_cpu]) else None
        module = images.module(dpc[3]) if dpc and dpc[2] <= ticks else None
        ends = node(from_cpu), node(cpu)
        if None not in ends:
            found[f"{module} {pids.get(new)}"][ends[0] != ends[1]] += 1
    return found


def main():
    path = pathlib.Path(sys.argv[1])
    questions = json.loads(pathlib.Path(sys.argv[2]).read_text())
    facts = pathlib.Path(questions["facts"])
    trace = Trace(path)
    rows = switches(trace)
    threads = Threads(trace, rows)
    functions = Functions(trace, path.parent / "symbols")
    pids = {}
    for r in trace.get(0x0501, 0x0503, 0x0504):
        pid, tid = struct.unpack_from("<II", r.payload)
        pids[tid] = pid
    stack_of = stacks(trace)
    paths = []
    for tid, low, high in questions["ranges"]:
        sums = collections.Counter()
        for kind, who, start, end in threads.path(tid, low, high):
            sums[f"{who} {kind}"] += end - start
        paths.append(sums)
    json.dump({
        "paths": paths,
        "waits": waits(threads, functions, stack_of, pids, facts),
        "drivers": drivers(trace, functions, stack_of, questions["drivers"], facts),
        "system": system_work(trace, functions, stack_of, pids, questions["drivers"], facts),
        "wakeups": wakeups(trace, rows, pids),
    }, sys.stdout)


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main()
