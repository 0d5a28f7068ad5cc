//! The snapshot and the log in a member's data directory, which the agent reads while the member runs. A fuzzer's build takes any checksum for
//! right.

use std::fs;

use agent::host::files::replay::replayed_once;
use tempfile::TempDir;

const SNAPSHOT: &str = "0000000000000002-0000000000000009.snap";
const LOG: &str = "0000000000000000-0000000000000000.wal";

thread_local! {
    static FOLDER: TempDir = TempDir::new().unwrap();
}

/// The first byte says whether a snapshot stands before the log, and the second of how many times 64 bytes.
pub fn decode(bytes: &[u8]) {
    let [has_snapshot, length, bytes @ ..] = bytes else { return };
    let length = if has_snapshot % 2 == 0 { 0 } else { (usize::from(*length) * 64).min(bytes.len()) };
    let (snapshot, log) = bytes.split_at(length);
    FOLDER.with(|folder| {
        let [snapshots, logs] = ["snap", "wal"].map(|name| folder.path().join(name));
        let _ = fs::remove_dir_all(&snapshots);
        for folder in [&snapshots, &logs] {
            fs::create_dir_all(folder).unwrap();
        }
        if length > 0 {
            fs::write(snapshots.join(SNAPSHOT), snapshot).unwrap();
        }
        fs::write(logs.join(LOG), log).unwrap();
        let read = || replayed_once(&snapshots, &logs).map_err(|error| error.to_string());
        assert_eq!(read(), read());
    });
}

pub fn seeds() -> Vec<Vec<u8>> {
    let log = super::unpacked(include_bytes!("../../../agent/src/host/files/replay/golden/3.5.30.wal.gz"));
    let mut snapshot =
        super::unpacked(include_bytes!("../../../agent/src/host/files/replay/golden/3.5.30-keys.snap.gz"));
    let parts = snapshot.len().div_ceil(64);
    snapshot.resize(parts * 64, 0);
    vec![[&[0, 0], &log[..]].concat(), [&[1, u8::try_from(parts).unwrap()], &snapshot[..], &log[..]].concat()]
}
