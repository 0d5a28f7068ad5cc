//! Writes what each decoder begins with: `fuzz-seeds FOLDER` makes a folder for each in it, and prints its name.

use std::{env, fs, io, path::PathBuf};

use fuzz::DECODERS;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args().nth(1).ok_or_else(|| io::Error::other("usage: fuzz-seeds FOLDER"))?);
    for decoder in DECODERS {
        let folder = folder.join(decoder.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (decoder.seeds)().into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
        println!("{}", decoder.name);
    }
    Ok(())
}
