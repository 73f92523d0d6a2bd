//! What can go wrong while files are opened without stopping the work.

etwhy_etl::define_anomalies! {
    ARCHIVE_DAMAGED "archive_damaged" DataLoss Input "A packed trace could be unpacked only in part: what stood behind the damage is missing.";
    ARCHIVE_WITHOUT_DIRECTORY "archive_without_directory" DataLoss Input "The archive's list of contents is missing (truncated copy?): traces were searched for, some may be missing.";
    ARCHIVE_NESTED_TOO_DEEP "archive_nested_too_deep" Warning Input "An archive nested more than one level deep was not opened: unpack it by hand if it holds a trace.";
    ARCHIVE_MEMBER_ENCRYPTED "archive_member_encrypted" DataLoss Input "A member of an archive is encrypted and was left out.";
    ARCHIVE_MEMBER_UNSUPPORTED "archive_member_unsupported" DataLoss Input "A member of an archive is packed with a method that is not supported and was left out.";
    MEMBER_UNLIKE_A_TRACE "member_unlike_a_trace" Warning Input "A member named .etl is empty or does not start like a trace and was left out.";
    PACKED_SYMBOL_SKIPPED "packed_symbol_skipped" Info Input "A symbol file in an archive is not laid out as name.pdb/GUIDAGE/name.sym and was not unpacked.";
    GIVEN_UNUSABLE "given_unusable" DataLoss Input "A file or folder that an option names (--symbols, --images, --manifests, --tmf) is missing or could not be read: names and texts that it would give are missing.";
    SEGMENT_SKIPPED "segment_skipped" Warning Input "A file of the folder is empty or something else than its name says, and was left out.";
}
