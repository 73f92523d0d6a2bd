//! What is counted while a trace is followed.

etwhy_etl::define_anomalies! {
    LATE_BUFFERS "buffers_too_late" DataLoss Read "Buffers that were written when the window had moved past their beginning: the records in them that lie before it were not seen by anybody.";
    REPLACED "file_replaced" Warning Read "Files that were replaced or cut off while they were followed: what came before is no longer part of the answer.";
    REFUSED "file_refused" DataLoss Read "Files of the followed folder that the system does not let this program read (permissions, a disk or network that fails): what is in them is missing. They are tried again.";
    TIME_DOUBTED "buffer_time_doubtful" Warning Read "Buffers with times more than an hour after all others, or after the end of their session: records with wrong times, as a rule. The window ends before them. It moves on when most of the buffers that arrive, of at least two processors, have such times, as after a machine slept.";
}
