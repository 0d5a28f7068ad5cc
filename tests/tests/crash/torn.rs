//! The journal is cut at every byte of its last records, then the same command.
//!
//! A crash can only leave a part of the last record; a disk that lies can lose whole ones too. Neither may
//! cost more than doing some of the work again.

use std::{fs, path::Path};

use tests::{ended::Ended, fault::Moment, on_both, system::System};

use crate::{
    is_finished,
    kill::{journal, kill_at},
    rollout,
};

on_both! {
    a_journal_cut_within_its_last_records_is_no_obstacle, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: two minutes; it is cut at each seventh byte by default"]
    nor_is_one_cut_at_any_byte_of_them;
    #[ignore = "slow: one that is cut within them is taken up by default"]
    a_journal_that_lost_records_while_its_member_was_down_costs_work_and_nothing_else;
    #[ignore = "slow: three more upgrades"]
    a_journal_that_lost_records_at_other_stages_costs_work_and_nothing_else;
}

/// Where a journal's last `records` begin, and where it ends.
fn last_records(journal: &Path, records: usize) -> (usize, usize) {
    let bytes = fs::read(journal).expect("a journal");
    let ends: Vec<_> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    (ends[ends.len() - 1 - records], bytes.len())
}

async fn a_journal_cut_within_its_last_records_is_no_obstacle(system: System) {
    is_cut_at_each(system, 7).await;
}

async fn nor_is_one_cut_at_any_byte_of_them(system: System) {
    is_cut_at_each(system, 1).await;
}

/// From the end of the last record to where the one before it begins, each so many bytes.
async fn is_cut_at_each(system: System, bytes: usize) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    rollout.all("run").await.iter().for_each(Ended::must_succeed);
    let journal = journal(&rollout, 0);
    let whole = fs::read(&journal).expect("a journal");
    // *Starting* and *done*: what a crash at the end of a step may tear.
    let (from, to) = last_records(&journal, 2);
    let process = rollout.member(0).process().expect("it runs").pid;
    let mut taken_over = 0;
    for cut in (from..=to).rev().step_by(bytes) {
        fs::write(&journal, &whole[..cut]).expect("cut");
        let ended = rollout.one("run", 0).await;
        assert_eq!(ended.exit, Some(0), "cut at {cut} of {to}: {ended}");
        let told = |name: &str| ended.events.iter().filter(|event| event.event == name).count();
        let is_restarted = told("member_switched") + told("member_started") + told("member_mended") > 0;
        assert!(!is_restarted, "it ran all along, cut at {cut} of {to}: {ended}");
        taken_over += told("step_taken_over");
    }
    assert!(taken_over > 0, "its last record tells of a step that is over");
    println!("cut at each {bytes} of {} bytes", to - from + 1);
    assert_eq!(rollout.member(0).process().expect("it runs").pid, process, "nothing was restarted");
    rollout.done().await;
}

/// In the middle of a step: the member is down, the record stands, and so many whole records of the journal are
/// lost, with half of the next.
async fn cut_in_a_step(system: System, nth: usize, lost: &[usize]) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    for (index, lost) in lost.iter().enumerate() {
        let killed = kill_at(&rollout, index, nth, Moment::After).await.expect("killed in its step");
        let journal = journal(&rollout, index);
        let (from, to) = last_records(&journal, 1 + lost);
        let (next, _) = last_records(&journal, *lost);
        let cut = from + (next - from) / 2;
        let file = fs::OpenOptions::new().write(true).open(&journal).expect("a journal");
        file.set_len(cut as u64).expect("cut");
        println!("killed after {killed}, cut at byte {cut} of {to}");
        rollout.one("run", index).await.must_succeed();
    }
    is_finished(rollout).await;
}

async fn a_journal_that_lost_records_while_its_member_was_down_costs_work_and_nothing_else(system: System) {
    cut_in_a_step(system, 4, &[0, 1, 3]).await;
}

async fn a_journal_that_lost_records_at_other_stages_costs_work_and_nothing_else(system: System) {
    for nth in [2, 3, 5] {
        cut_in_a_step(system, nth, &[0, 1, nth - 1]).await;
    }
}
