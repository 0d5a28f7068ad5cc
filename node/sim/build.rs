//! Lets libraries that ask the loader for `getrandom` find the one of the simulation (`entropy.rs`).

fn main() {
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=getrandom");
}
