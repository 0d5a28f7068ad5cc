//! Random requests give the same answers, reads, events and leases in the store and in the model.

use node::{
    api_error::ApiError,
    mvcc::{Bound, KeyRange, Restore, Store},
};
use proto::{LeaseId, Revision, mvccpb::Event};

use crate::{
    answer::{Answer, answer, checked},
    model::Model,
    random::{LEASES, Random, Step, Steps},
};

const SEEDS: u64 = 150;
const STEPS: usize = 300;

#[test]
fn the_store_does_what_a_naive_model_does() {
    let mut refused = 0;
    for seed in 0..SEEDS {
        refused += play(seed);
    }
    let all = SEEDS as usize * STEPS;
    println!("counted: {all} random requests against the model, {refused} of them refused");
    assert!(refused > all / 20 && refused < all / 2, "{refused} of {all} refused: the requests test little");
}

/// Plays one sequence; says how many requests were refused.
fn play(seed: u64) -> usize {
    let mut steps = Steps { random: Random(seed), open_deletions: true };
    let (mut store, mut model) = (Store::default(), Model::default());
    // A second member, which is restored from snapshots now and then.
    let mut other = Store::default();
    let mut refused = 0;
    for turn in 0..STEPS {
        let place = format!("seed {seed}, request {turn}");
        let step = steps.next(model.newest());
        let given = answer(&mut store, step.clone());
        assert_eq!(answer(&mut other, step.clone()), given, "{place}: {step:?}");
        let expected = checked(&step).and_then(|()| model.answer(&step));
        assert_eq!(given, expected, "{place}: {step:?}");
        refused += usize::from(given.is_err());
        // The other member forgets at another pace: nobody sees it.
        store.forget(steps.random.below(4) as usize);
        look(&mut steps, &store, &mut model, &place);
        if steps.random.once_in(10) {
            other = restored(&store);
        }
        assert_eq!(other, store, "{place}: {step:?}");
        assert_eq!(other.hash_kv(0), store.hash_kv(0), "{place}");
        assert!(other.snapshot().eq(store.snapshot()), "{place}");
    }
    store.forget(usize::MAX);
    assert_eq!(store.size_bytes(), restored(&store).size_bytes(), "seed {seed}: nothing is left of what is hidden");
    refused
}

/// Reads, at random.
fn look(steps: &mut Steps, store: &Store, model: &mut Model, place: &str) {
    assert_eq!((store.revision().0, store.compacted().0), (model.newest(), model.compacted()), "{place}");
    let request = steps.range(model.newest());
    let step = Step::Range(request.clone());
    if checked(&step).is_ok() {
        assert_eq!(store.range(&request).map(Answer::Range), model.answer(&step), "{place}: {request:?}");
    }
    let start = model.newest() + 1 - steps.random.below(20);
    let (key, end) = (request.key, request.range_end);
    let events = store.events_since(Revision(start), KeyRange::new(&key, &end), true).map(Iterator::collect);
    assert_eq!(events, model.events(start, &key, &end), "{place}: events of {key:?} {end:?} since {start}");
    assert_eq!(in_stretches(steps, store, start, KeyRange::new(&key, &end)), events, "{place}: in stretches");
    for lease in LEASES {
        let held = store.leases().get(LeaseId(lease)).into_iter().flat_map(|lease| lease.keys());
        assert!(held.eq(model.held(lease).iter()), "{place}: lease {lease}");
    }
}

/// The same events, a few at a time; no revision is split.
fn in_stretches(steps: &mut Steps, store: &Store, start: i64, range: KeyRange) -> Result<Vec<Event>, ApiError> {
    let (mut next, mut events) = (Revision(start), Vec::<Event>::new());
    loop {
        let mut bound =
            Bound { changes: 1 + steps.random.below(5) as usize, bytes: 1 + steps.random.below(50) as usize };
        let stretch = store.events_within(next, range, true, &mut bound)?;
        let revision = |event: &Event| event.kv.as_ref().unwrap().mod_revision;
        assert!(stretch.events.iter().all(|event| (next.0..stretch.next.0).contains(&revision(event))));
        events.extend(stretch.events);
        next = stretch.next;
        if next > store.revision() {
            assert_eq!(next.0, start.max(store.revision().0 + 1));
            return Ok(events);
        }
        assert!(bound.is_reached(), "it stopped before it had to");
    }
}

fn restored(store: &Store) -> Store {
    let mut restore = Restore::default();
    for piece in store.snapshot() {
        restore.push(&piece).unwrap();
    }
    restore.finish().unwrap()
}
