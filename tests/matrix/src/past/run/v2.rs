//! The v2 API, as its users left it behind: some keys, mostly deleted in the end.

use super::{Broken, stage::Stage};

const KEYS: usize = 5;

/// Writes a few keys, and deletes them again unless they are kept.
pub(super) async fn write(stage: &Stage, kept: bool) -> Result<(), Broken> {
    let http = stage.client(stage.standing()[0])?;
    for number in 0..KEYS {
        http.v2("PUT", &format!("old/{number}?value={number}")).await?;
    }
    if !kept {
        http.v2("DELETE", "old?recursive=true").await?;
    }
    Ok(())
}
