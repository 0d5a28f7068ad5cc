//! Generates the messages, clients and servers of `etcd/*.proto`. protox parses them, so nobody needs protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=etcd");
    let files = protox::compile(["etcd/rpc.proto", "etcd/kv.proto"], ["."])?;
    tonic_prost_build::configure().server_mod_attribute(".", "#[cfg(feature = \"server\")]").compile_fds(files)?;
    Ok(())
}
