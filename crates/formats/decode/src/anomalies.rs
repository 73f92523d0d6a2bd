//! What can go wrong with the sources of meaning.

etwhy_etl::define_anomalies! {
    MANIFEST_BROKEN "manifest_broken" Warning Decode "A manifest could not be read; events that only it describes are shown raw.";
    MANIFEST_TOO_LARGE "manifest_too_large" Warning Decode "A manifest is larger than this program reads; events that only it describes are shown raw.";
    MANIFEST_CHUNK_LOST "manifest_chunk_lost" Info Decode "An EventSource manifest in the trace misses pieces; another copy of it may be whole.";
    METADATA_BROKEN "metadata_broken" Warning Decode "An embedded event description is damaged; the events that it describes may be shown raw.";
    TMF_BROKEN "tmf_broken" Warning Decode "A TMF file, or a message in it, could not be read; its messages are shown raw.";
    SOURCE_UNREADABLE "decode_source_unreadable" Warning Decode "A file with event descriptions could not be opened; events that it describes are shown raw.";
    EVENT_TYPES_FULL "event_types_full" Warning Decode "The trace has more event types than are kept apart; the others are counted as one.";
}
