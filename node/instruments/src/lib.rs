//! What is counted and measured on the way of a request: atomics, with no lock and no allocation.
//!
//! Of our own: `prometheus-client` takes a lock for each observation. Every constructor of `prometheus` can fail, and it keeps each
//! series with its labels in allocations of its own; of calls alone a member has six hundred. Names, labels and text are not here.

#![warn(missing_docs)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

/// A number that only grows while the process runs.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn inc(&self) {
        self.add(1);
    }

    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many until now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many there are now.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// So many more.
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as i64, Ordering::Relaxed);
    }

    /// So many fewer.
    pub fn sub(&self, fewer: usize) {
        self.0.fetch_sub(fewer as i64, Ordering::Relaxed);
    }

    /// One more, until what is given is dropped.
    pub fn hold(self: &Arc<Self>) -> Held {
        self.add(1);
        Held(self.clone())
    }

    /// How many there are.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of those that a gauge counts.
#[derive(Debug)]
pub struct Held(Arc<Gauge>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.sub(1);
    }
}

/// How long something took, each time: how often at most so long.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [Duration],
    /// How often above the bound before, and at most this one; the last has no bound.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    sum_unit: SumUnit,
}

/// What a sum is counted in.
#[derive(Clone, Copy, Debug)]
enum SumUnit {
    Nanoseconds,
    Seconds,
}

/// What a histogram says at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How often it took at most so long; each has all those before it.
    pub buckets: Vec<(Duration, u64)>,
    /// How often.
    pub count: u64,
    /// How long in all.
    pub sum: Duration,
}

impl Histogram {
    /// With these upper bounds, which rise.
    pub fn new(bounds: &'static [Duration]) -> Self {
        Self::with(bounds, SumUnit::Nanoseconds)
    }

    /// Of what may take years: the sum has whole seconds alone. As nanoseconds it would begin again after 584 years.
    pub fn in_seconds(bounds: &'static [Duration]) -> Self {
        Self::with(bounds, SumUnit::Seconds)
    }

    fn with(bounds: &'static [Duration], sum_unit: SumUnit) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::default()).collect();
        Self { bounds, counts, sum: AtomicU64::default(), sum_unit }
    }

    /// It took so long once more.
    pub fn observe(&self, took: Duration) {
        self.observe_each(took, 1);
    }

    /// It took so long each of so many times.
    pub fn observe_each(&self, took: Duration, times: u64) {
        let place = self.bounds.partition_point(|bound| *bound < took);
        self.counts[place].fetch_add(times, Ordering::Relaxed);
        let took = match self.sum_unit {
            SumUnit::Nanoseconds => took.as_nanos() as u64,
            SumUnit::Seconds => took.as_secs(),
        };
        self.sum.fetch_add(took.saturating_mul(times), Ordering::Relaxed);
    }

    /// What it says now. The sum may be ahead of the counts by what is being observed.
    pub fn read(&self) -> Reading {
        let mut count = 0;
        let mut counts = self.counts.iter().map(|bucket| {
            count += bucket.load(Ordering::Relaxed);
            count
        });
        let buckets = self.bounds.iter().copied().zip(&mut counts).collect();
        // The one without a bound.
        counts.for_each(drop);
        let sum = self.sum.load(Ordering::Relaxed);
        let sum = match self.sum_unit {
            SumUnit::Nanoseconds => Duration::from_nanos(sum),
            SumUnit::Seconds => Duration::from_secs(sum),
        };
        Reading { buckets, count, sum }
    }
}

/// Upper bounds, each twice the one before.
pub const fn doubling<const N: usize>(first: Duration) -> [Duration; N] {
    let mut bounds = [first; N];
    let mut at = 1;
    while at < N {
        bounds[at] = bounds[at - 1].saturating_mul(2);
        at += 1;
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_all_that_took_at_most_so_long() {
        static BOUNDS: [Duration; 3] = doubling(Duration::from_millis(1));
        let histogram = Histogram::new(&BOUNDS);
        let ms = Duration::from_millis;
        for took in [0, 1, 2, 3, 4, 5, 1000] {
            histogram.observe(ms(took));
        }
        let buckets = vec![(ms(1), 2), (ms(2), 3), (ms(4), 5)];
        assert_eq!(histogram.read(), Reading { buckets, count: 7, sum: ms(1015) });
    }

    #[test]
    fn a_sum_of_centuries_does_not_begin_again() {
        static BOUNDS: [Duration; 1] = [Duration::from_secs(1)];
        let (histogram, longest) = (Histogram::in_seconds(&BOUNDS), Duration::from_secs(9_000_000_000));
        (0..3).for_each(|_| histogram.observe(longest));
        assert_eq!(histogram.read(), Reading { buckets: vec![(BOUNDS[0], 0)], count: 3, sum: 3 * longest });
    }

    #[test]
    fn what_is_held_is_there_until_it_is_dropped() {
        let gauge = Arc::new(Gauge::default());
        gauge.add(3);
        let held = gauge.hold();
        assert_eq!(gauge.get(), 4);
        drop(held);
        gauge.sub(2);
        assert_eq!(gauge.get(), 1);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        static BOUNDS: [Duration; 1] = [Duration::from_secs(1)];
        let (counter, histogram) = (Counter::default(), Histogram::new(&BOUNDS));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counter.inc();
                        histogram.observe(Duration::from_nanos(3));
                    }
                });
            }
        });
        let Reading { buckets, count, sum } = histogram.read();
        assert_eq!((counter.get(), count, buckets[0].1, sum), (4000, 4000, 4000, Duration::from_nanos(12_000)));
    }
}
