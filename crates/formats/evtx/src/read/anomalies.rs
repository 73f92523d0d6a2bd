//! What may be wrong with a log without stopping it.

etwhy_etl::define_anomalies! {
    DIRTY "log_dirty" Info Read "The log was not closed (it is in use, or the machine went down): its header may be older than its chunks, all of which are read.";
    HEADER_CHECKSUM "log_header_checksum" Warning Read "The checksum of the file header is wrong; the header is not needed to read chunks.";
    LEFT_OUT "log_left_out" Error Read "A file that was given or found beside others is no event log or cannot be opened; nothing of it is in the results.";
    NO_HEADER "log_header_missing" Warning Read "The file has no header; chunks were looked for.";
    CHUNK_COUNT "log_chunk_count" Info Read "The header counts other chunks than there are; those that are there were read.";
    CHUNK_MAGIC "log_chunk_magic" Error Read "Where a chunk should begin there is something else; its records are missing unless a chunk was found behind it.";
    CHUNK_HEADER_CHECKSUM "log_chunk_header_checksum" Error Read "The checksum of a chunk's header is wrong; its records were read as far as they make sense.";
    CHUNK_CHECKSUM "log_chunk_checksum" Error Read "The checksum of a chunk's records is wrong; its records were read as far as they make sense.";
    CUT "log_cut" DataLoss Read "The file ends within a chunk; the records that are complete were read.";
    SHRANK "log_shrank" Error Read "Pieces of the file that were there when it was opened and gone when they were read: it became shorter meanwhile. What was there is read.";
    RECORD_MAGIC "log_record_damaged" DataLoss Read "Bytes among the records of a chunk are no record; reading went on at the next one.";
    FOREIGN "log_record_foreign" Info Read "Behind damaged bytes of a chunk stand records that are not its own (left from what the place held before); they are not counted.";
    RECORD_BROKEN "log_record_broken" DataLoss Read "The binary XML of a record is broken; it counts, and the fields before the damage are shown.";
    RECORD_EMPTY "log_record_empty" DataLoss Read "A record has no content; it counts.";
    NO_TEMPLATE "log_template_missing" DataLoss Read "The template of a record is damaged and no other chunk has it: its values have no names.";
    BORROWED "log_template_borrowed" Warning Read "The template of a record is damaged in its chunk; the one with the same id from another chunk was used.";
    ODD_NAMES "log_odd_names" Warning Read "An element, attribute or instruction of a record has a name that XML does not allow; in its XML `_` stands for what is not allowed in it.";
    TRAILING_BYTES "log_trailing_bytes" Info Read "Bytes behind the last chunk that are no chunk.";
}
