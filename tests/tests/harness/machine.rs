//! Hosts: what is done to one is done to that one alone, and is over when it is said to be.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use tests::{
    machine::{Host, Network, disk_or_skip, hosts_or_skip},
    wait::{GENEROUS, until_blocking},
};

/// Long enough for an answer that comes at all, and short enough to wait for one that does not.
const AN_ANSWER: Duration = Duration::from_secs(1);

/// Whether one host reaches another's sshd.
fn reaches(from: &Host, to: &Host) -> bool {
    let connect = format!("exec 3<>/dev/tcp/{}/22 && head -c 3 <&3", to.address());
    let said = from.run(&["timeout", "1", "bash", "-c", &connect]).expect("it is up");
    said.stdout == "SSH"
}

fn until_it_reaches(from: &Host, to: &Host) {
    until_blocking("a host to reach the other", GENEROUS, || reaches(from, to).then_some(()).ok_or("not yet".into()))
        .expect("it reaches it");
}

#[test]
fn hosts_see_each_other_until_one_is_cut_off() {
    let Some((_network, hosts)) = hosts_or_skip(3) else { return };
    let [first, second, third] = &hosts[..] else { unreachable!("three were wanted") };
    for (from, to) in [(first, second), (second, third), (third, first)] {
        until_it_reaches(from, to);
    }
    // This machine reaches them, too.
    let connect = || TcpStream::connect_timeout(&SocketAddr::from((first.address(), 22)), AN_ANSWER);
    until_blocking("this machine to reach one", GENEROUS, || connect().map_err(|error| error.to_string())).unwrap();

    second.cut_off().unwrap();
    assert!(!reaches(first, second) && !reaches(second, third));
    until_it_reaches(first, third);
    TcpStream::connect_timeout(&SocketAddr::from((second.address(), 22)), AN_ANSWER).unwrap_err();
    second.repair().unwrap();
    until_it_reaches(first, second);

    // Neither connects, as the answers of one are dropped; yet what the deaf one says arrives.
    third.turn_deaf_to(first).unwrap();
    assert!(!reaches(first, third) && !reaches(third, first));
    until_it_reaches(second, third);
    third.listen_to(first).unwrap();
    until_it_reaches(first, third);
}

#[test]
fn a_host_that_crashed_boots_again_with_its_disk() {
    let Some((_network, hosts)) = hosts_or_skip(2) else { return };
    let [victim, other] = &hosts[..] else { unreachable!("two were wanted") };
    let unit = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
    victim.write_unit("sleeper.service", unit).unwrap();
    victim.must(&["systemctl", "enable", "--now", "sleeper"]).unwrap();
    let boot = |host: &Host| host.must(&["cat", "/proc/sys/kernel/random/boot_id"]).unwrap();
    let (before, others) = (boot(other), id(other));

    victim.crash().unwrap();
    assert!(!victim.is_up() && other.is_up());
    victim.run(&["true"]).unwrap_err();
    victim.boot().unwrap();
    assert_eq!(victim.must(&["systemctl", "is-active", "sleeper"]).unwrap(), "active\n");

    victim.power_off().unwrap();
    assert!(!victim.is_up() && other.is_up());
    victim.boot().unwrap();
    assert_eq!(victim.must(&["systemctl", "is-active", "sleeper"]).unwrap(), "active\n");
    // The other has noticed nothing of all that, and is another.
    assert_eq!((boot(other), id(other)), (before, others.clone()));
    assert_ne!(id(victim), others);
}

fn id(host: &Host) -> String {
    host.must(&["cat", "/etc/machine-id"]).expect("it has one")
}

#[test]
fn a_slow_host_and_a_full_one_recover() {
    let Some((_network, hosts)) = hosts_or_skip(2) else { return };
    let [slow, other] = &hosts[..] else { unreachable!("two were wanted") };
    let serve =
        "head -c 100000 /dev/zero >/srv/zeros && systemd-run --unit=files python3 -m http.server --directory=/srv 80";
    slow.must(&["bash", "-c", serve]).unwrap();
    let fetch = format!(
        "exec 3<>/dev/tcp/{}/80 && printf 'GET /zeros HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3 | wc -c",
        slow.address()
    );
    let fetch = |limit: &str| other.run(&["timeout", limit, "bash", "-c", &fetch]).unwrap();
    let until_fetched = || {
        let fetched = || (fetch("10").code == Some(0)).then_some(()).ok_or("not yet".into());
        until_blocking("a file", GENEROUS, fetched).unwrap();
    };
    until_fetched();
    // 100 kB take 100 s at this speed.
    slow.slow_down(8).unwrap();
    assert_eq!(fetch("2").code, Some(124));
    slow.speed_up().unwrap();
    until_fetched();

    slow.confine("/var/lib/small", 64 << 10).unwrap();
    let fill = ["bash", "-c", "head -c 1000000 /dev/zero >/var/lib/small/ballast"];
    assert!(slow.run(&fill).unwrap().stderr.contains("No space left"));
    other.must(&["mkdir", "/var/lib/small"]).unwrap();
    assert_eq!(other.run(&fill).unwrap().code, Some(0));
}

#[test]
fn nothing_is_left_of_hosts_that_are_gone() {
    let Some((network, hosts)) = hosts_or_skip(1) else { return };
    let (root, gateway) = (hosts[0].root.clone(), network.gateway());
    assert!(root.join("etc/hostname").exists());
    TcpListener::bind((gateway, 0)).unwrap();
    let number = gateway.octets()[2];
    let hosts_own = [&[PathBuf::from(format!("/run/netns/bh{number}-1"))], &groups(number)[..]].concat();
    let all = || hosts_own.iter().filter(|path| path.exists()).collect::<Vec<_>>();
    assert_eq!(all(), hosts_own.iter().collect::<Vec<_>>());
    let bridge = format!("/sys/class/net/bh{number}/ifindex");
    let index = fs::read_to_string(&bridge).unwrap();
    drop(hosts);
    // While the network is there, nobody else makes any of these names.
    assert!(all().is_empty(), "{:?}", all());
    drop(network);
    assert!(!root.exists());
    // By now another test may have a bridge of this name, which is another bridge.
    assert_ne!(fs::read_to_string(&bridge).ok(), Some(index));
}

/// The control groups of the first host of this network, in every hierarchy that has some.
fn groups(number: u8) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("there is proc");
    let mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let is_of_systemd =
        |mount: &Vec<&str>| mount[2] == "cgroup2" || mount[2] == "cgroup" && mount[3].contains("name=systemd");
    let group = |mount: Vec<&str>| PathBuf::from(format!("{}/baton-hosts-{number}/h1", mount[1]));
    mounts.filter(is_of_systemd).map(group).collect()
}

#[test]
fn the_hosts_of_a_test_that_was_killed_are_cleared_away() {
    if disk_or_skip().is_none() {
        return;
    }
    let mut killed = Command::new(env::current_exe().unwrap());
    killed.args(["--ignored", "--exact", "machine::it_waits_to_be_killed", "--nocapture"]);
    let mut killed = killed.stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(killed.stdout.take().unwrap()).lines();
    let root = said.map_while(Result::ok).find_map(|line| Some(PathBuf::from(line.strip_prefix("a host: ")?))).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Another test may be at it just now.
    until_blocking("the host to be gone", GENEROUS, || {
        drop(Network::new().map_err(|error| error.to_string())?);
        if root.exists() { Err(format!("{} is there", root.display())) } else { Ok(()) }
    })
    .unwrap();
}

#[test]
#[ignore = "run by other tests: to be killed while it has a host"]
fn it_waits_to_be_killed() {
    let (_network, hosts) = hosts_or_skip(1).unwrap();
    println!("\na host: {}", hosts[0].root.display());
    thread::sleep(GENEROUS);
}
