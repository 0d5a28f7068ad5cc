//! Which plans are run: those of the cells that were asked for, by name or as a sample.
//!
//! Pure.

use std::collections::BTreeSet;

use super::{
    model::{Cell, Matrix},
    plan::{Plan, plan, sound::sound},
};

#[derive(Clone, Copy, Debug, Default)]
pub struct Wish<'w> {
    /// Parts of names, or whole ones; without any, every cell.
    pub only: &'w [String],
    /// So many plans in all, each from the next seed.
    pub sample: Option<u64>,
    /// Of a single plan these steps and faults alone.
    pub keep: &'w [String],
}

/// The plans of the cells that were asked for.
///
/// # Errors
/// There is none of such a name, or what is kept of a plan makes no sense; for a person.
pub fn chosen(matrix: &Matrix, wish: Wish<'_>) -> Result<Vec<Plan>, String> {
    // A cell that is named in full may be of a seed that the file would not come to.
    let (named, parts): (Vec<_>, Vec<_>) = wish.only.iter().partition(|text| matrix.cell(text).is_some());
    let is_chosen = |cell: &Cell| parts.iter().any(|text| cell.id().contains(*text));
    let mut cells: Vec<Cell> = named.iter().filter_map(|text| matrix.cell(text)).collect();
    cells.extend(match (wish.sample, wish.only) {
        (Some(count), []) => matrix.sample(count as usize, |_| true),
        (Some(count), _) => matrix.sample(count as usize, is_chosen),
        (None, []) => matrix.cells(),
        (None, _) => matrix.cells().into_iter().filter(is_chosen).collect(),
    });
    if cells.is_empty() {
        return Err(format!("no plan's name contains `{}`; --list shows all", wish.only.join("`, `")));
    }
    let mut plans: Vec<Plan> = cells.iter().map(plan).collect();
    if !wish.keep.is_empty() {
        let [whole] = &plans[..] else {
            return Err("--keep is for one plan; name it with --only".into());
        };
        let known = whole.parts();
        if let Some(unknown) = wish.keep.iter().find(|name| !known.contains(name)) {
            return Err(format!("--keep: the plan has no part {unknown}; it has {}", known.join(", ")));
        }
        let has_step =
            |name: &&String| name.split_once('.').is_none_or(|(step, _)| wish.keep.iter().any(|kept| kept == step));
        if let Some(fault) = wish.keep.iter().find(|name| !has_step(name)) {
            return Err(format!("--keep: {fault} is a fault of a step that is left out"));
        }
        let part = whole.only(&wish.keep.iter().cloned().collect::<BTreeSet<_>>());
        sound(&part).map_err(|why| format!("--keep leaves a plan that makes no sense: {why}"))?;
        plans = vec![part];
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Matrix {
        let text = include_str!("../../../playbooks/matrix/own.yaml");
        Matrix::parse(text, "own.yaml".as_ref()).unwrap()
    }

    fn names(only: &[&str], sample: Option<u64>) -> Vec<String> {
        let only: Vec<String> = only.iter().map(ToString::to_string).collect();
        let plans = chosen(&matrix(), Wish { only: &only, sample, keep: &[] }).unwrap();
        plans.iter().map(|plan| plan.cell.id()).collect()
    }

    #[test]
    fn cells_are_chosen_by_a_part_of_their_name_or_by_a_whole_one_of_any_seed() {
        assert_eq!(names(&[], None).len(), 32);
        for (only, sample, expected) in [
            (
                &["etcd/3.6.14-3.5.30"][..],
                None,
                &["3/none/1", "3/mixed/1", "5/none/1", "5/mixed/1"].map(|rest| format!("etcd/3.6.14-3.5.30/{rest}"))[..],
            ),
            (
                &["node/3.6.0-3.5.0/5", "3.7.0-3.6.0/5/mixed"],
                None,
                &["node/3.7.0-3.6.0/5/mixed/1", "node/3.6.0-3.5.0/5/none/1", "node/3.6.0-3.5.0/5/mixed/1"]
                    .map(String::from),
            ),
            (&["etcd/3.5.30-3.6.14/3/mixed/77"], None, &["etcd/3.5.30-3.6.14/3/mixed/77"].map(String::from)),
            (
                &["node/3.7.0-3.6.0/3"],
                Some(3),
                &["none/1", "mixed/2", "none/3"].map(|rest| format!("node/3.7.0-3.6.0/3/{rest}")),
            ),
        ] {
            assert_eq!(names(only, sample), expected, "{only:?}");
        }
    }

    #[test]
    fn what_there_is_not_is_refused() {
        for (only, keep, words) in [
            (&["etcd/3.7"][..], &[][..], "no plan's name contains `etcd/3.7`"),
            (&["etcd"], &["1"], "--keep is for one plan"),
            (&["etcd/3.5.30-3.6.14/3/none/1"], &["2"], "makes no sense"),
            (&["etcd/3.5.30-3.6.14/3/none/1"], &["1", "99"], "the plan has no part 99; it has 1, "),
            (&["etcd/3.5.30-3.6.14/3/mixed/1"], &["1", "2.1"], "2.1 is a fault of a step that is left out"),
        ] {
            let [only, keep] = [only, keep].map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>());
            let refused = chosen(&matrix(), Wish { only: &only, sample: None, keep: &keep }).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
