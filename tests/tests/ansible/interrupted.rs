//! Ctrl-C in the middle of a play: agents go on, and so does the same play.

use tests::{
    machine::Host,
    system::System,
    wait::{GENEROUS, until_blocking},
};

use crate::{play::Stage, site::Site};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: a play of a minute; agents that are killed show the same"]
async fn an_interrupted_play_ends_no_agent_and_goes_on_when_played_again() {
    let Some(site) = Site::up(System::Node, 3).await else { return };
    let site = site.with_agents();
    let Some(mut stage) = Stage::new(&site) else { return };
    // A task in a terminal of its own gets SIGHUP when its connection breaks.
    stage.pipelining = false;
    let playing = stage.begin(&["-e", "brake=on"]);
    let held = until_blocking("an agent with the baton in its hand", 4 * GENEROUS, || {
        let held = |host: &&Host| host.path("/srv/held").exists();
        site.hosts.iter().find(held).ok_or_else(|| "none".into())
    });
    let held = held.unwrap();
    let agent = held.must(&["pgrep", "-x", "agent"]).unwrap();
    playing.interrupt();
    let interrupted = playing.ended().await;
    assert_eq!(interrupted.code, Some(99), "{}", interrupted.text);
    // By the time its connection is gone the agent would be, too.
    until_blocking("the end of the task", GENEROUS, || match held.run(&["pgrep", "-f", "AnsiballZ|baton_run"]) {
        Ok(said) if said.code == Some(1) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .unwrap();
    assert_eq!(held.must(&["pgrep", "-x", "agent"]).unwrap(), agent);
    site.is_upgraded(&[false; 3]).await;

    let busy = stage.play(&["-e", "brake=on", "-e", "baton_lock_timeout=0", "--limit", &held.name]).await;
    assert_eq!(busy.code, Some(2), "{}", busy.text);
    let run = busy.run_on(held.name[1..].parse().unwrap());
    assert_eq!((&run["reason"], &run["changed"]), (&"state_dir_locked".into(), &false.into()), "{run}");
    assert!(run["msg"].as_str().unwrap().contains(&format!("pid {}", agent.trim())), "{run}");

    site.hosts.iter().for_each(|host| host.write("/srv/go", "").unwrap());
    let again = stage.play(&["-e", "brake=on", "-e", "baton_require_complete=true"]).await;
    again.must_succeed();
    site.is_upgraded(&[true; 3]).await;
    site.nothing_is_lost().await;
}
