//! `agent keys`: every key below `/baton/`, and what it is; with `--clear` those that are nobody's go.
//!
//! Works however large or damaged they are: names first, then one value after the other. Only what can be nobody's is ever
//! deleted, and each by a compare on what was shown.

use super::{
    Outcome,
    ask::{is_person, is_yes, no_signals},
    look::{ClusterSnapshot, Prober},
};
use crate::{
    cli::{self, Output},
    event::trouble::Trouble,
    execute::interrupt::Interrupt,
    keys::PREFIX,
    playbook::Playbook,
    report::{
        file::json::Facts,
        names::Names,
        shown::keys as told,
        stop::{Reason, Stop},
    },
    store::{
        Compare, Op, RawKey, Store, TxnAnswer, Unknown,
        inventory::{Is, Item, is_ours, judge, writer},
        listing::One,
    },
};

/// Shows the keys, and clears what is stale where that was typed.
///
/// # Errors
/// The cluster cannot be looked at or does not answer, or the answer to the question was not yes.
pub async fn keys(typed: &cli::Keys, output: Output) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let prober = Prober::open(&playbook.cluster)?;
    let ClusterSnapshot { names, .. } = prober.look().await?;
    let listing = prober.store.list().await.map_err(no_answer)?;
    let mut items = Vec::new();
    for raw in listing.keys {
        items.push(item(&prober.store, raw).await.map_err(no_answer)?);
    }
    let text: String = items.iter().map(|item| told::text(item, &names)).collect();
    let text = if items.is_empty() { format!("nothing lies below {PREFIX}\n") } else { text };
    let mut facts = Facts::default();
    if listing.is_cut {
        facts.warnings.push(format!("there are more keys below {PREFIX}; these are the first {}", items.len()));
    }
    let objects: Vec<_> = items.iter().map(|item| told::object(item, &names)).collect();
    facts.more.insert("keys".into(), objects.into());
    if !typed.clear {
        let message = format!("{} below {PREFIX}; nothing was touched", count(items.len()));
        return Ok(Outcome { stop: Stop::well(Reason::Shown, message, "status", &typed.playbook), facts, text });
    }
    let stale: Vec<_> = items.iter().filter(|item| item.is == Is::Stale).collect();
    clear(&prober.store, &stale, Shown { text, facts, names }, typed, output).await
}

/// What was found, before anything is deleted.
struct Shown {
    text: String,
    facts: Facts,
    names: Names,
}

async fn item(store: &Store, raw: RawKey) -> Result<Item, Unknown> {
    let one = if is_ours(&raw) { Some(store.one(&raw.key).await?) } else { None };
    let lease = match raw.lease {
        Some(id) => Some((id, store.remaining(id).await?)),
        None => None,
    };
    let bytes = match &one {
        Some(One::Whole(raw)) => Some(raw.value.len()),
        Some(One::Oversize(bytes)) => Some(*bytes),
        Some(One::Gone) | None => None,
    };
    Ok(Item { is: judge(&raw, one.as_ref()), by: writer(one.as_ref()), bytes, lease, raw })
}

async fn clear(
    store: &Store,
    stale: &[&Item],
    shown: Shown,
    typed: &cli::Keys,
    output: Output,
) -> Result<Outcome, Trouble> {
    let Shown { mut text, mut facts, names } = shown;
    if !stale.is_empty() && !typed.yes && output == Output::Text && is_person() {
        let which: String = stale.iter().map(|item| told::text(item, &names)).collect();
        let question = format!("{text}\nTo be deleted, as nobody's:\n{which}Delete {}?", count(stale.len()));
        text.clear();
        let interrupt = Interrupt::install().map_err(no_signals)?;
        if !is_yes(&question, &interrupt).await? {
            return Err(Trouble::NotConfirmed);
        }
    }
    let mut cleared = Vec::new();
    for item in stale {
        let key = item.raw.key.clone();
        let compares = [Compare::Modified(key.clone(), item.raw.modified)];
        match store.txn(&compares, &[Op::Delete { key: key.clone() }]).await {
            TxnAnswer::Yes { .. } => cleared.push(format!("{PREFIX}{key}")),
            TxnAnswer::Refused(why) => return Err(Trouble::AuthRefused(format!("the cluster refuses it: {why}"))),
            TxnAnswer::Unknown(unknown) => return Err(no_answer(unknown)),
            TxnAnswer::No(_) | TxnAnswer::Oversize(_) | TxnAnswer::LeaseGone => {
                facts.warnings.push(format!("{PREFIX}{key} changed meanwhile and was left"));
            }
        }
    }
    facts.changed = !cleared.is_empty();
    let message = match cleared.len() {
        0 => "nothing was stale, so nothing was deleted".to_owned(),
        deleted => format!("deleted {}, which had no lease: {}", count(deleted), cleared.join(", ")),
    };
    text.push_str(&format!("{message}\n"));
    facts.more.insert("cleared".into(), cleared.into());
    Ok(Outcome { stop: Stop::well(Reason::Cleared, message, "status", &typed.playbook), facts, text })
}

fn count(keys: usize) -> String {
    if keys == 1 { "1 key".to_owned() } else { format!("{keys} keys") }
}

fn no_answer(unknown: Unknown) -> Trouble {
    Trouble::no_answer(unknown.to_string())
}
