//! How one host reaches another, one way.

use super::Micros;

#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Nothing comes through; what was sent waits.
    pub is_cut: bool,
    /// New connections are refused; those that are open go on.
    pub is_shut: bool,
    /// At least as long, and at most twice.
    pub delay: Micros,
    /// Of a hundred pieces so many are lost on the way, and come 200 ms later, when they are sent again.
    pub lost_percent: usize,
    /// Bytes a millisecond.
    pub bytes_per_ms: u64,
}

impl Default for Link {
    fn default() -> Self {
        Self { is_cut: false, is_shut: false, delay: 500, lost_percent: 0, bytes_per_ms: 125_000 }
    }
}
