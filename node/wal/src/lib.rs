//! A raft log on disk.
