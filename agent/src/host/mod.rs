//! Everything the agent does to its own host: files, processes, the binary.
//!
//! Nothing here knows a cluster or decides anything: each function does one thing that it was told to do,
//! can be repeated after a crash at any instant, and says with a typed error what it could not do.

mod archive;
pub mod artifact;
pub(crate) mod blocking;
pub mod capabilities;
pub mod cgroup;
pub mod credentials;
pub mod digest;
pub mod download;
pub mod durable;
pub mod exec;
pub mod executable;
pub mod files;
pub mod hook;
mod last_words;
pub mod launcher;
mod limits;
pub mod link;
pub mod listener;
mod log;
mod log_end;
pub mod member_name;
pub mod path_owner;
pub mod portrait;
mod probe;
pub mod process_id;
mod program_path;
pub mod release_record;
pub mod runtime;
pub mod state_dir;
pub mod switch;
mod trial;
pub mod unpack;
