//! Generates the messages of `proto/*.proto`: what a member stores, and what members say. protox parses them, so nobody needs protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(
        ["proto/state.proto", "proto/cluster.proto", "proto/entry.proto", "proto/peer.proto"],
        ["proto"],
    )?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}
