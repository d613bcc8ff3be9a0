//! The spool: blocks with a checksum, appended while recording.
