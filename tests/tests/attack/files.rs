//! Another user of the host, often the one that a member runs as, who puts a link where root is to write; and what keeps
//! a switched file open to that user.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink},
    path::{Path, PathBuf},
};

use tests::{
    agent::Agent,
    case::Case,
    cluster::Member,
    on_both,
    playbook::{quoted, started_by_the_agent},
    process::Process,
    rollout::Ends,
    sick::Illness,
    skip::skip,
    system::System,
};

use crate::SICK;

on_both! {
    what_lets_a_members_user_read_its_file_goes_along_both_ways, etcd #[ignore = "slow: the node's row shows the same"];
}

/// `nobody`, who attacks.
const NOBODY: u32 = 65534;
/// What only root may read and write, and is to stay so.
const SECRET: &str = "root's alone\n";

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A member, a folder beside it that is nobody's, and a file of root's.
struct Attack {
    case: Case,
    theirs: PathBuf,
    secret: PathBuf,
}

fn theirs(member: &Member) -> PathBuf {
    member.dir.join("theirs")
}

impl Attack {
    /// `None` is a skip.
    async fn begin() -> Option<Self> {
        if !is_root() {
            skip("two users take root");
            return None;
        }
        let case = Case::with(System::Node, |spec| spec.size = 1).await?;
        let case = case.strategy(&["join_window: 0s", "allow_downtime: true"]);
        let (theirs, secret) = (theirs(case.member(0)), case.layout().dir.join("secret"));
        fs::create_dir(&theirs).expect("made");
        chown(&theirs, Some(NOBODY), Some(NOBODY)).expect("given away");
        fs::write(&secret, SECRET).expect("written");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("closed");
        fs::write(case.member(0).dir.join("next.yaml"), "chosen").expect("written");
        Some(Self { case, theirs, secret })
    }

    /// Links `name` in nobody's folder to root's file.
    fn link(&self, name: &str) {
        symlink(&self.secret, self.theirs.join(name)).expect("linked");
    }

    /// This verb ends so, and neither the member nor root's file is touched.
    async fn ends(&self, verb: &str, end: (i32, &str), words: &[&str]) {
        self.ends_with(verb, |argv| argv, end, words).await;
    }

    /// As [`Attack::ends`], with another command line.
    async fn ends_with(
        &self,
        verb: &str,
        wrap: impl FnOnce(Vec<OsString>) -> Vec<OsString>,
        (exit, reason): (i32, &str),
        words: &[&str],
    ) {
        let before = self.case.pids();
        let agent = Agent::start_under(verb, &self.case.write()[0], &[], wrap).expect("an agent");
        let ended = agent.ends().await;
        assert_eq!(self.secret(), SECRET, "{ended}");
        ended.must_be(exit, reason);
        words.iter().for_each(|words| assert!(ended.message().contains(words), "{words}: {ended}"));
        assert_eq!(self.case.pids(), before, "{ended}");
    }

    fn secret(&self) -> String {
        fs::read_to_string(&self.secret).expect("readable")
    }
}

const REFUSED: (i32, &str) = (3, "unprepared");

#[tokio::test(flavor = "multi_thread")]
async fn a_switched_file_in_anothers_folder_is_refused() {
    let Some(mut attack) = Attack::begin().await else { return };
    attack.link("etcd.yaml");
    attack.case.upgrade.node = |member| {
        let [path, source] = [theirs(member).join("etcd.yaml"), member.dir.join("next.yaml")];
        let [path, source] = [path, source].map(|path| quoted(&path.to_string_lossy()));
        vec![format!("files: [{{ path: {path}, source: {source} }}]")]
    };
    for verb in ["plan", "run"] {
        attack.ends(verb, REFUSED, &["theirs belongs to uid 65534", "chown -h root "]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_in_anothers_folder_is_refused() {
    let Some(mut attack) = Attack::begin().await else { return };
    attack.link("next.yaml");
    attack.case.upgrade.node = |member| {
        let [path, source] = [member.dir.join("etcd.yaml"), theirs(member).join("next.yaml")];
        let [path, source] = [path, source].map(|path| quoted(&path.to_string_lossy()));
        vec![format!("files: [{{ path: {path}, source: {source} }}]")]
    };
    for verb in ["plan", "run"] {
        attack.ends(verb, REFUSED, &["theirs belongs to uid 65534"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_roots_in_anothers_folder_is_refused() {
    let Some(mut attack) = Attack::begin().await else { return };
    attack.link("node.log");
    attack.case.upgrade.runtime = |member| {
        let mut lines = started_by_the_agent(member);
        lines.retain(|line| !line.starts_with("log: "));
        lines.push(format!("log: {}", quoted(&theirs(member).join("node.log").to_string_lossy())));
        lines
    };
    for verb in ["plan", "run"] {
        attack.ends(verb, REFUSED, &["`log`", "theirs belongs to uid 65534"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_in_anothers_folder_is_refused() {
    let Some(attack) = Attack::begin().await else { return };
    let bin = attack.case.member(0).bin();
    chown(&bin, Some(NOBODY), None).expect("given away");
    // Its temporary name beside the link.
    symlink(&attack.secret, bin.join(".node.baton-new")).expect("linked");
    for verb in ["plan", "run"] {
        attack.ends(verb, REFUSED, &["bin (owner nobody, ", "chown root "]).await;
    }
    assert!(fs::symlink_metadata(bin.join(".node.baton-new")).is_ok(), "nothing of another's is removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_directory_that_others_may_write_is_refused() {
    let Some(attack) = Attack::begin().await else { return };
    let state = attack.case.member(0).state_dir();
    fs::create_dir_all(&state).expect("made");
    symlink(&attack.secret, state.join("lock")).expect("linked");
    let unusable = (3, "state_dir");
    let mode = |mode| fs::set_permissions(&state, fs::Permissions::from_mode(mode)).expect("changed");
    for open in [0o777, 0o770] {
        mode(open);
        for verb in ["plan", "run"] {
            let said = [&*format!("(mode {open:04o})"), &*format!("chmod go-w {}", state.display())];
            attack.ends(verb, unusable, &said).await;
        }
    }
    mode(0o700);
    chown(&state, Some(NOBODY), None).expect("given away");
    for verb in ["plan", "run"] {
        attack.ends(verb, unusable, &["baton belongs to uid 65534"]).await;
    }
    // What was put there while others could is not used, either.
    chown(&state, Some(0), None).expect("taken back");
    attack.ends("run", unusable, &["lock is no plain file but a link"]).await;
    fs::remove_file(state.join("lock")).expect("removed");
    fs::hard_link(&attack.secret, state.join("lock")).expect("linked");
    attack.ends("run", unusable, &["lock is one of 2 names of the same file"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_events_file_that_another_could_choose_is_refused() {
    let Some(attack) = Attack::begin().await else { return };
    attack.link("events");
    let misused = (2, "usage");
    for name in ["events", "new"] {
        let argv = events_in(attack.theirs.join(name));
        attack.ends_with("run", argv, misused, &["theirs belongs to uid 65534"]).await;
    }
    // In a folder for all, such as /tmp, by its owner.
    let shared = attack.case.layout().dir.join("shared");
    fs::create_dir(&shared).expect("made");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("opened");
    let link = shared.join("events");
    symlink(&attack.secret, &link).expect("linked");
    lchown(&link, Some(NOBODY), Some(NOBODY)).expect("given away");
    attack.ends_with("run", events_in(link), misused, &["shared/events belongs to uid 65534"]).await;
    assert_eq!(fs::read_dir(&attack.theirs).expect("readable").count(), 1, "nothing was made there");
}

/// The same command line with another events file.
fn events_in(path: PathBuf) -> impl FnOnce(Vec<OsString>) -> Vec<OsString> {
    move |mut argv| {
        let option = argv.iter().position(|word| word == "--events").expect("the lab has one");
        argv[option + 1] = path.into();
        argv
    }
}

/// The ACL that lets nobody read, as the kernel has it (acl(5), `posix_acl_xattr.h`): `u::rw-,u:65534:r--,g::---,m::r--,o::---`.
fn acl_for_nobody() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(0x01, 6, u32::MAX), (0x02, 4, NOBODY), (0x04, 0, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let entry =
        |(tag, bits, id): (u16, u16, u32)| [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat();
    [2_u32.to_le_bytes().to_vec(), entries.map(entry).concat()].concat()
}

const ACL: &str = "system.posix_acl_access";

fn acl_of(file: &Path) -> Vec<u8> {
    let mut value = vec![0; 256];
    let length = rustix::fs::getxattr(file, ACL, &mut value[..]).unwrap_or(0);
    value.truncate(length);
    value
}

fn give_away(folder: &Path) {
    lchown(folder, Some(NOBODY), Some(NOBODY)).expect("given away");
    let Ok(entries) = fs::read_dir(folder) else { return };
    entries.for_each(|entry| give_away(&entry.expect("readable").path()));
}

/// A second name for the file, made when preflight is over; here by a hook.
#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_fails_leaves_no_member_down() {
    let Some(case) = Case::of(System::Node).await else { return };
    let mut case = case.strategy(&["join_window: 0s"]);
    let conf = case.member(0).dir.join("conf");
    fs::write(&conf, "old").expect("written");
    fs::write(next_file(case.member(0)), "new").expect("written");
    case.upgrade.node = |member| {
        let [path, source] = [member.dir.join("conf"), next_file(member)].map(|path| quoted(&path.to_string_lossy()));
        vec![format!("files: [{{ path: {path}, source: {source}, for: \">=3.6\" }}]")]
    };
    let [from, to] = [&conf, &conf.with_extension("2")].map(|path| quoted(&path.to_string_lossy()));
    case.upgrade.extra = vec![format!("hooks: {{ before_node: [[ln, {from}, {to}]] }}")];
    let before = case.pids();
    let ended = Agent::start("run", &case.write()[0], &[]).expect("an agent").ends().await;
    ended.must_be(1, "step_failed");
    assert!(ended.message().contains("is one of 2 names"), "{ended}");
    assert_ne!(case.pids()[0], before[0], "it was stopped: {ended}");
    assert_eq!(case.releases().await, vec![case.from.release.to_string(); 3]);
    assert_eq!(fs::read_to_string(&conf).expect("readable"), "old");
}

fn next_file(member: &Member) -> PathBuf {
    member.dir.join("next.yaml")
}

/// A file that only root may read, but for its ACL, and the member runs as nobody: without the ACL it does not start.
async fn what_lets_a_members_user_read_its_file_goes_along_both_ways(system: System) {
    if !is_root() {
        return skip("two users take root");
    }
    let Some(mut case) = Case::path(system, ("3.5", "3.6"), |_| {}).await else { return };
    let flags = case.cluster.layout.members[0].configure("").expect("started again");
    case.cluster.ready().await.expect("ready again");
    let member = case.member(0).clone();
    fs::write(next_file(&member), format!("{flags}quota-backend-bytes: 3221225472\n")).expect("written");
    fs::set_permissions(member.config(), fs::Permissions::from_mode(0o600)).expect("closed");
    if rustix::fs::setxattr(member.config(), ACL, &acl_for_nobody(), rustix::fs::XattrFlags::empty()).is_err() {
        return skip("this file system keeps no ACLs");
    }
    let old = fs::read_to_string(member.config()).expect("readable");
    // From now on the agent starts it, as nobody.
    for process in Process::under(&member.bin()) {
        process.signal(rustix::process::Signal::KILL).expect("killed");
        process.ended(std::time::Duration::from_secs(30)).expect("gone");
    }
    for folder in [&case.layout().dir, &member.dir] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("opened");
    }
    give_away(&member.dir.join("data"));
    case.upgrade.runtime = |member| {
        let config = format!("--config-file={}", member.config().display());
        let log = format!("log: {}", quoted(&member.log().to_string_lossy()));
        vec![
            "kind: process".into(),
            format!("argv: [\"{{{{binary}}}}\", {}]", quoted(&config)),
            "user: nobody".into(),
            log,
        ]
    };
    case.upgrade.node = |member| {
        let [path, source] = [member.config(), next_file(member)].map(|path| quoted(&path.to_string_lossy()));
        vec![format!("files: [{{ path: {path}, source: {source}, for: \">=3.6\" }}]")]
    };
    let mut case = case.strategy(&["join_window: 0s"]);
    let sound = case.upgrade.clone();

    // Switched, and put back.
    case.upgrade = case.sick(SICK, Illness::Exits);
    run(&case, (1, "put_back")).await;
    assert_eq!(fs::read_to_string(member.config()).expect("readable"), old);
    is_up_as_nobody(&member);
    assert_eq!(case.releases().await, vec![case.from.release.to_string(); 3]);

    // Switched, for good.
    case.upgrade = sound;
    run(&case, (0, "partial")).await;
    assert!(fs::read_to_string(member.config()).expect("readable").contains("quota-backend-bytes"));
    is_up_as_nobody(&member);
    assert_eq!(case.releases().await[0], case.to.release.to_string());
}

async fn run(case: &Case, (exit, reason): (i32, &str)) {
    let playbook = case.write_one(0, &case.upgrade);
    Agent::start("run", &playbook, &[]).expect("an agent").ends().await.must_be(exit, reason);
}

fn is_up_as_nobody(member: &Member) {
    let process = member.process().expect("it runs");
    assert_eq!(fs::metadata(format!("/proc/{}", process.pid)).expect("it runs").uid(), NOBODY);
    let config = fs::metadata(member.config()).expect("there");
    assert_eq!((config.uid(), config.mode() & 0o777, acl_of(&member.config())), (0, 0o640, acl_for_nobody()));
}
