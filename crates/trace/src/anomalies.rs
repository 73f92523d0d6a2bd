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
    SWITCHES_MISSED "context_switches_missed" DataLoss Analysis "Context switches whose old thread is not the one that was switched in before on that processor: switches in between are missing, and the run of the thread before has no known end.";
    RUNNING_FORGOTTEN "running_thread_forgotten" DataLoss Analysis "Places where buffers of a processor may be missing: until its next context switch it is not known who runs there, and nothing is attributed.";
    LOST_IN_BAND "lost_events_reported" DataLoss Recording "Reports of a real-time session that events, buffers or files were lost at this point.";
    DROPPED_BUFFERS "last_dropped_times" DataLoss Recording "Moments at which the session dropped events, as its LastDroppedTimes record says.";
    KERNEL_CLASS_STOPPED "kernel_class_stopped" Warning Recording "Kinds of kernel events that came all the time and then no more, while the recording went on: another program has probably taken the kernel session or changed it. Table `kernel_class` says which and when.";
    TCP_CONNECTIONS_CUT "tcp_connections_cut" Warning Analysis "More TCP connections at a time than are followed: each of these is shown in several parts, whose sums are right.";
    INTERVALS_BEYOND_LIMIT "intervals_beyond_limit" DataLoss Analysis "More operations open at a time than are followed: the ones that began last are missing, or shown without their start.";
    INTERVALS_DOUBTFUL "intervals_doubtful" DataLoss Analysis "Start and stop events of one thread with missing buffers between them: they may not belong together, so no duration is shown.";
}
