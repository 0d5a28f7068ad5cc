//! Chance that a seed decides (splitmix64), so that a failure can be played again.

use std::{
    env,
    time::{SystemTime, UNIX_EPOCH},
};

#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// From the seed in `BATON_SEED`, else from the time; says which, for who reads why a test failed.
    ///
    /// # Panics
    /// `BATON_SEED` is no number: another row than the one that was asked for would tell nothing.
    #[allow(clippy::expect_used)]
    pub fn of_this_run() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
        let seed = env::var("BATON_SEED").map_or(now, |seed| seed.parse().expect("BATON_SEED is a whole number"));
        println!("to play it again: BATON_SEED={seed}");
        Self(seed)
    }

    /// Whether something comes to pass that does so this many times in a hundred.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// One of them, if there is any.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        match choices.len() {
            0 => None,
            several => choices.get(self.below(several as u64) as usize).copied(),
        }
    }

    /// Brings them into an order of chance (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// A number below this one, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
