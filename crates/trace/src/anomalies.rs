//! What can go wrong while tables are built.

etwhy_etl::define_anomalies! {
    PAYLOAD_TOO_SHORT "payload_too_short" Error Decode "Events whose payload ends before the fields that are needed: they are counted, but missing in their table.";
    EVENT_TYPES_UNDECODED "event_types_undecoded" Info Decode "Kinds of events that nothing describes: counted and dumped raw. A folder of manifests (--manifests) or .tmf files (--tmf) may help.";
    STACK_KEYS_UNDEFINED "stack_keys_undefined" DataLoss Analysis "Stack references whose stack was never written (the trace ended before its rundown): these stacks are unknown.";
    STACKS_LATE "stacks_too_late" DataLoss Analysis "User halves of stacks that came more than ten seconds after their event: these stacks lack their user half.";
    STACKS_BEYOND_LIMIT "stacks_beyond_limit" DataLoss Analysis "Distinct stacks beyond what a trace of this size can honestly hold: they are kept without their frames.";
    SAMPLES_WITHOUT_STACK "samples_without_stack" Info Analysis "CPU samples (idle ones not counted) without a stack: they count for processes and modules, not in stacks.";
    SAMPLE_INTERVAL_ASSUMED "sample_interval_assumed" Warning Analysis "The trace does not say how often it sampled; 1 ms was assumed, which scales all CPU times.";
    THREADS_WITHOUT_PROCESS "threads_without_process" Warning Analysis "Threads whose process nobody named (no start, no rundown): shown under the process [unknown].";
    PROCESSES_WITHOUT_NAME "processes_without_name" Info Analysis "Processes known by their id only: neither start nor rundown of them was recorded.";
    FRAMES_WITHOUT_IMAGE "frames_without_image" Info Analysis "Distinct stack addresses that lie in no known image and no known .NET method (generated code, or rundown missing).";
    SYMBOLS_MISMATCHED "symbols_mismatched" Warning Symbols "Symbol files found under an image's name but of another build: not used.";
    SYMBOLS_UNREADABLE "symbols_unreadable" Warning Symbols "Symbol files that could not be read.";
    IL_MAPS_BEYOND_LIMIT "il_maps_beyond_limit" DataLoss Analysis "Maps from machine code to IL of .NET methods beyond what is kept: these methods are shown without source lines.";
    SWITCHES_MISSED "context_switches_missed" DataLoss Analysis "Context switches whose old thread is not the one that was switched in before on that processor: switches in between are missing, and the run of the thread before has no known end.";
    PROCESSORS_UNKNOWN "processors_unknown" DataLoss Recording "Context switches, DPCs and ISRs of a session without buffers per processor: on which processor they happened is not recorded, so nothing is attributed by processor.";
    RUNNING_FORGOTTEN "running_thread_forgotten" DataLoss Analysis "Places where buffers of a processor may be missing: until its next context switch it is not known who runs there, and nothing is attributed.";
    WAITS_ACROSS_LOSS "waits_across_loss" DataLoss Analysis "Waits during which buffers may be missing: the thread may have run in between, and so their length is left open.";
    LOST_IN_BAND "lost_events_reported" DataLoss Recording "Reports of a real-time session that events, buffers or files were lost at this point.";
    DROPPED_BUFFERS "last_dropped_times" DataLoss Recording "Moments at which the session dropped events, as its LastDroppedTimes record says.";
    SYSCALLS_WITHOUT_SWITCHES "syscalls_without_context_switches" DataLoss Recording "System calls were recorded without context switches. These events do not name their thread, so that nobody can say how long a call took; who made it is known only where its stack was recorded. Record CSWITCH too.";
    SYSCALLS_UNATTRIBUTED "syscalls_unattributed" DataLoss Analysis "Events of system calls on processors of which it is not known who ran there (no context switches, buffers missing, or before the first context switch): begun calls are kept without thread and duration, ends are dropped.";
    SYSCALLS_UNPAIRED "syscalls_unpaired" DataLoss Analysis "System calls during which buffers are missing, or that their thread cannot all be inside of: their end is not known, and no duration is given.";
    FILE_OBJECTS_FORGOTTEN "file_objects_forgotten" DataLoss Analysis "File objects that were opened and never closed, beyond what can be open at once: operations on them are named by key only.";
    FILE_OPERATIONS_UNFINISHED "file_operations_without_end" Info Analysis "File operations whose end was not recorded (still under way at the end, ends not recorded at all, or lost): their duration, status and bytes are unknown.";
    FILE_ENDS_UNMATCHED "file_ends_without_operation" Info Analysis "Ends of file operations that began before the trace, or whose begin was not recorded: not shown.";
    FILE_PAIRS_DOUBTFUL "file_operations_across_gaps" DataLoss Analysis "File operations whose begin and end lie on both sides of missing buffers: the end may be that of another one, so their duration is unknown.";
    FILE_OPERATIONS_BEYOND_LIMIT "file_operations_beyond_limit" DataLoss Analysis "File operations under way beyond what a machine can have at once: shown as unfinished.";
    DISK_REQUESTS_FORGOTTEN "disk_requests_forgotten" DataLoss Analysis "Disk requests that were issued and never completed, beyond what can be under way at once: later ones lack their stack and queue depth.";
    FILTER_STARTS_FORGOTTEN "filter_starts_forgotten" DataLoss Analysis "Callbacks of file system filters that began and never ended, beyond what can be under way at once: failed ones lack their duration.";
    REGISTRY_KEYS_UNNAMED "registry_keys_unnamed" DataLoss Analysis "Registry keys that operations use and nobody names (no rundown at the end, or lost): shown as [unknown] with what the operation adds.";
    FREES_OF_UNKNOWN "frees_of_unknown" Info Analysis "Frees and closes of what was not seen to be allocated or opened, mostly because that happened before the trace began: what they freed is unknown.";
    FREES_UNSEEN "frees_unseen" Info Analysis "Addresses and handles that were given out again though their free or close was not recorded: the earlier one has no known end, and is not counted as outstanding.";
    OUTSTANDING_DOUBTFUL "outstanding_doubtful" DataLoss Analysis "Allocations and handles shown as outstanding over whose life buffers may be missing: the record of their end may be among them.";
    ALPC_DOUBTFUL "alpc_pairs_doubtful" DataLoss Analysis "ALPC messages sent before and received after a place where buffers may be missing: their ids may have been used again in between, so they are shown as two messages.";
    KERNEL_CLASS_STOPPED "kernel_class_stopped" Warning Recording "Kinds of kernel events that came all the time and then no more, while the recording went on: another program has probably taken the kernel session or changed it. Table `kernel_class` says which and when.";
    ENDS_DOUBTFUL "ends_doubtful" DataLoss Analysis "Allocations and handles that seem to end behind a place where buffers may be missing: their address may have been freed and given out again in between, so the time of their end is not told.";
    TCP_CONNECTIONS_CUT "tcp_connections_cut" Warning Analysis "More TCP connections at a time than are followed: each of these is shown in several parts, whose sums are right.";
    GROWTH_BEYOND_LIMIT "growth_series_beyond_limit" Warning Analysis "Calls of operations and processes beyond those whose cost is followed for growth laws: table `growth` lacks them.";
    INTERVALS_BEYOND_LIMIT "intervals_beyond_limit" DataLoss Analysis "More operations open at a time than are followed: the ones that began last are missing, or shown without their start.";
    INTERVALS_DOUBTFUL "intervals_doubtful" DataLoss Analysis "Start and stop events of one thread with missing buffers between them: they may not belong together, so no duration is shown.";
    PATHS_BEYOND_LIMIT "critical_paths_beyond_limit" Warning Analysis "Stretches whose critical path is left out: the paths before have more pieces together than the trace can fill.";
    KEY_PATHS_SHORTENED "registry_paths_shortened" Warning Analysis "Paths of registry keys with names longer than any honest program's, shown without the middle.";
}
