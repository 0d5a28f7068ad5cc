//! Generates the messages, clients and servers of `etcd/*.proto` and `baton/*.proto`. protox parses them, so nobody needs protoc.

use std::{env, error::Error, fs, path::Path};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=etcd");
    println!("cargo::rerun-if-changed=baton");
    let files =
        protox::compile(["etcd/rpc.proto", "etcd/kv.proto", "baton/counters.proto", "baton/members.proto"], ["."])?;
    // For reflection: what the services and messages are.
    fs::write(Path::new(&env::var("OUT_DIR")?).join("etcd.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().server_mod_attribute(".", "#[cfg(feature = \"server\")]").compile_fds(files)?;
    Ok(())
}
