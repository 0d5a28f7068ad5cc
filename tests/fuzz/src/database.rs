//! A member's database, as it sends it to the agent: members and users, and what a restore makes a cluster from. A fuzzer's build takes
//! any checksum of its first pages for right.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
};

use agent::observe::database::{content, content::Content, origin::Origin};
use tempfile::tempfile;

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

pub fn decode(bytes: &[u8]) {
    let read = Content::read(file(bytes)).map_err(|error| error.to_string());
    let again = Content::read(file(bytes)).map_err(|error| error.to_string());
    assert_eq!(read, again);
    let _ = Origin::read(file(bytes)).map(|origin| origin.voters().count());
    let _ = content::revision(file(bytes));
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![super::unpacked(include_bytes!("../../../agent/src/observe/database/golden/3.5.30.db.gz"))]
}
