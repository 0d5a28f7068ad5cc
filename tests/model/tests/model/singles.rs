//! Each fault alone, and each playbook and cluster without any.

use super::{
    scenario::{Kind, Scenario},
    sound,
};

sound! {
    nothing: |name| Scenario::new(name, |_| ());
    split_looks: |name| Scenario::new(name, |f| f.split_looks = true).on(&[0, 1]);
    kill: |name| Scenario::new(name, |f| f.kill = 1);
    lose_directory: |name| Scenario::new(name, |f| f.lose_directory = 1);
    crash: |name| Scenario::new(name, |f| f.crash = 1);
    freeze: |name| Scenario::new(name, |f| f.freeze = 1);
    unknown: |name| Scenario::new(name, |f| f.unknown = 1);
    give_up: |name| Scenario::new(name, |f| f.give_up = 1);
    sick: |name| Scenario::new(name, |f| f.sick = 1);
    move_leader: |name| Scenario::new(name, |f| f.move_leader = 1);
    interrupt: |name| Scenario::new(name, |f| f.interrupt = 1);
    abandon: |name| Scenario::new(name, |f| f.abandon = 1);
    rollback: |name| Scenario::new(name, |f| f.rollback = 1);
    replace: |name| Scenario::new(name, |f| f.replace = 1);
    refuse: |name| Scenario::new(name, |f| f.refuse = 1);
    stuck: |name| Scenario::new(name, |f| f.stuck = 1);
    held: |name| Scenario::new(name, |_| ()).held();
    patch: |name| Scenario::new(name, |_| ()).of(Kind::Patch);
    restart: |name| Scenario::new(name, |_| ()).of(Kind::Restart);
    two_members_on_one_host: |name| Scenario::new(name, |_| ()).on(&[0, 0, 1]);
    three_members_on_one_host: |name| Scenario::new(name, |_| ()).on(&[0, 0, 0]);
    two_voters: |name| Scenario::new(name, |_| ()).on(&[0, 1]);
    twins: |name| Scenario::new(name, |_| ()).twins();
    #[ignore = "slow: a million states; the other twins are searched by default"]
    twins_and_kill: |name| Scenario::new(name, |f| f.kill = 1).twins();
    #[ignore = "slow: 500,000 to 800,000 states; the other twins are searched by default"]
    twins_and_crash: |name| Scenario::new(name, |f| f.crash = 1).twins();
    #[ignore = "slow: 500,000 to 800,000 states; the other twins are searched by default"]
    twins_and_unknown: |name| Scenario::new(name, |f| f.unknown = 1).twins();
    twins_and_freeze: |name| Scenario::new(name, |f| f.freeze = 1).twins();
    #[ignore = "slow: 500,000 to 800,000 states; the other twins are searched by default"]
    twins_in_fine: |name| Scenario::new(name, |_| ()).twins().fine();
    backup: |name| Scenario::new(name, |_| ()).backing_up();
    backup_and_kill: |name| Scenario::new(name, |f| f.kill = 1).backing_up().on(&[0, 0, 1]);
    backup_and_freeze: |name| Scenario::new(name, |f| f.freeze = 1).backing_up().on(&[0, 0, 1]);
    backup_and_unknown: |name| Scenario::new(name, |f| f.unknown = 1).backing_up().on(&[0, 0, 1]);
    backup_and_refuse: |name| Scenario::new(name, |f| f.refuse = 1).backing_up().on(&[0, 0, 1]);
    backup_and_rollback: |name| Scenario::new(name, |f| f.rollback = 1).backing_up().on(&[0, 0, 1]);
    backup_and_replace: |name| Scenario::new(name, |f| f.replace = 1).backing_up().on(&[0, 0, 1]);
    backup_of_each_hop: |name| Scenario::new(name, |_| ()).of(Kind::TwoMinors).backing_up().on(&[0, 0, 1]);
    backup_on_the_way_down: |name| Scenario::new(name, |_| ()).of(Kind::Down).backing_up().on(&[0, 0, 1]);
    pause: |name| Scenario::new(name, |f| f.pause = 1);
    pause_and_kill: |name| Scenario::new(name, |f| (f.pause, f.kill) = (1, 1)).on(&[0, 0, 1]);
    pause_and_sick: |name| Scenario::new(name, |f| (f.pause, f.sick) = (1, 1)).on(&[0, 0, 1]);
    pause_and_rollback: |name| Scenario::new(name, |f| (f.pause, f.rollback) = (1, 1)).on(&[0, 0, 1]);
    pause_held: |name| Scenario::new(name, |f| f.pause = 1).held().on(&[0, 0, 1]);
    pause_on_the_way_down: |name| Scenario::new(name, |f| f.pause = 1).of(Kind::Down).on(&[0, 0, 1]);
    one_voter: |name| Scenario::new(name, |_| ()).on(&[0]);
}
