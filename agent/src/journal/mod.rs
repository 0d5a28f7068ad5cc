//! What this host did and was about to do, so that the same command after a crash finishes the job.

pub mod file;
