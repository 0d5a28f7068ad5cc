//! What the quota counts is what memory holds (`node/src/mvcc/size.rs`). Alone in its process: it reads how much that has.

#![allow(clippy::unwrap_used)]

use node::mvcc::Store;
use proto::etcdserverpb::PutRequest;

const MIB: u64 = 1 << 20;

/// What is resident of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn what_is_counted_is_near_what_is_resident() {
    // Kept, so that none gets the memory of the one before.
    let (mut ratios, mut stores) = (Vec::new(), Vec::new());
    for (versions, value_bytes) in [(1, 8), (4, 8), (1, 1000)] {
        let before = resident();
        let mut store = Store::default();
        let mut number = 0u64;
        while store.size_bytes() < 200 * MIB {
            let key = format!("{:016}", number / versions).into_bytes();
            store.put(PutRequest { key, value: vec![7; value_bytes], ..PutRequest::default() }).unwrap();
            number += 1;
        }
        let (counted, resident) = (store.size_bytes() as f64, (resident() - before) as f64);
        println!("{versions} versions of {value_bytes} bytes: {} a change", (resident / number as f64) as u64);
        ratios.push((versions, value_bytes, resident / counted));
        stores.push(store);
    }
    assert!(
        ratios.iter().all(|(.., ratio)| (1.0 / 1.3..=1.3).contains(ratio)),
        "versions, bytes, of what is counted: {ratios:.2?}"
    );
}
