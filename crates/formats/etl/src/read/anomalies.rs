//! What can be wrong with a file without stopping its reading.

crate::define_anomalies! {
    EVENTS_LOST "events_lost" DataLoss Recording "Events that the session could not record, as its header says: counts and totals are lower bounds.";
    BUFFERS_LOST "buffers_lost" DataLoss Recording "Buffers that the session could not write: events of whole time ranges are missing.";
    EVENTS_LOST_FLAG "buffers_with_lost_events" DataLoss Recording "Buffers marked as having lost events while they were filled.";
    BUFFER_LOST_FLAG "buffers_after_lost_buffer" DataLoss Recording "Buffers marked as following a lost buffer.";
    NOT_FINALISED "file_not_finalised" Warning Recording "The session was never stopped properly (power loss, or a copy of a running trace): header counts and the end rundown are missing, the buffers on disk are read all the same.";
    BUFFERS_MISSING "buffers_missing" DataLoss Read "Sequence numbers without a buffer: buffers were lost or cut out.";
    FEWER_BUFFERS "fewer_buffers_than_written" DataLoss Read "Buffers that were written, as the header says, but are not in the file: the file is a part of the trace.";
    CIRCULAR_OVERWRITTEN "circular_overwritten" Info Recording "Buffers overwritten in a circular file before the oldest one that is left: the trace starts later than the session did.";
    FIRST_BUFFERS_ABSENT "first_buffers_absent" Info Recording "Buffers numbered before the first one of the file, though the session wrote one file and did not overwrite it: empty ones, which are never written.";
    HEADER_GIVEN "header_given" Info Read "Files without a session header, of which the clock and the machine are those of the header that was given for them.";
    HEADER_IMPLAUSIBLE "header_implausible" Warning Read "Fields of session headers that cannot be so. In their place are assumed: a performance counter of 10 MHz (for one of under 1 kHz or over 10 GHz, so that all times may be wrong by a factor), that counter (for an unknown kind of clock), an unknown number and speed of processors, UTC (for a time zone of more than a day). A start before 1999 or after 2200 stays what it is.";
    SEGMENT_OF_SERIES "segment_of_series" Info Recording "Buffers that stand in earlier files of a series of segments.";
    FILE_TRUNCATED "file_truncated" DataLoss Read "Files that end in the middle of a buffer: what is there is read. Copy the file again if this is a copy.";
    BUFFER_HEADER_BAD "buffer_header_bad" Error Read "Buffer headers that make no sense; reading went on at the next sound one.";
    BYTES_SKIPPED "bytes_skipped" Error Read "Bytes that belong to no readable buffer.";
    TAIL_OF_ZEROS "tail_of_zeros" Info Read "Bytes of zeros behind the last buffer (preallocated file).";
    BUFFER_NOT_UNPACKED "buffer_not_unpacked" Error Read "Compressed buffers that are damaged: the part that could be unpacked is read.";
    BUFFER_END_ODD "buffer_end_odd" Warning Read "Buffers whose header contradicts itself or what is in the buffer (end of data, compression): read up to the first thing that is no record.";
    RECORDS_BEHIND_END "records_behind_end" DataLoss Read "Buffers in which records go on behind the end of data that their header gives: those are not read, because they may be left from an earlier use of the buffer.";
    BUFFERS_REPEATED "buffers_repeated" Warning Read "Buffers that stand in the file more than once: each is read once.";
    RECORD_HEADER_UNKNOWN "record_header_unknown" Error Read "Buffers in which something stands that is no known record header: the rest of such a buffer is not read.";
    RECORD_SIZE_BAD "record_size_bad" Error Read "Records whose size is too small or runs out of their buffer: the rest of such a buffer is not read.";
    FILE_SHRANK "file_shrank" Error Read "Files that became shorter while they were read, or that the disk could not give as a whole: what was there is read. Copy the file when it is finished, and read the copy.";
    READ_FAILED "read_failed" Error Read "Buffers that the operating system could not read.";
    FORMAT_NEWER "format_newer_than_known" Error Read "Buffers in a form that is newer than this program knows.";
    RECORDS_OUT_OF_ORDER "records_out_of_order" Warning Order "Records that stood behind a later one in their buffer and were sorted.";
    BUFFERS_OVERLAP "buffers_overlap_in_time" Info Order "Buffers of one processor whose times overlap; their records were merged by time.";
    TOO_MANY_OVERLAP "too_many_buffers_overlap" Warning Order "Buffers that were read out of order, because too many of them reach over the same time to be held in memory together.";
    CLOCK_JUMPS "clock_jumps_back" Warning Order "Places where the clock of a processor was set back: order and durations around them are uncertain.";
    CLOCKS_DIFFER "clocks_differ_between_files" Warning Order "Files with different clocks: merged by wall time, which is exact to milliseconds only.";
    MESSAGE_WITHOUT_TIME "messages_without_time" Info Order "WPP messages without a timestamp: placed after the record before them.";
    COMPACT_CSWITCH "compact_cswitch_buffers" Warning Read "Buffers that hold context switches in compact form.";
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique_snake_case() {
        let mut names: Vec<&str> = super::ALL.iter().map(|a| a.name).collect();
        names.sort_unstable();
        let n = names.len();
        names.dedup();
        assert_eq!(names.len(), n);
        assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_lowercase() || c == '_')));
    }
}
