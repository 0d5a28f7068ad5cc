//! A release on its way to a member: had, checked, unpacked, recorded, and made the member's own.

pub mod archive;
pub mod artifact;
pub mod digest;
pub mod download;
pub mod link;
pub mod release_record;
pub mod switch;
pub mod unpack;
