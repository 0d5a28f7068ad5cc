//! `agent`: argv in, exit code out.

fn main() {}
