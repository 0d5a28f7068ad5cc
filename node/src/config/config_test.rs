use super::*;
use crate::features::FEATURES;

pub(super) fn read(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let own = |text: &&str| (*text).to_owned();
    let variables = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::read(arguments.iter().map(own), variables, FEATURES)
}

#[test]
fn nothing_said_is_one_member_on_this_machine() {
    let config = read(&[], &[("PATH", "/bin"), ("ETCD_UNSUPPORTED_ARCH", "arm")]).unwrap();
    assert_eq!((&*config.name, config.data_dir.to_str()), ("default", Some("default.etcd")));
    assert_eq!(config.initial_cluster["default"], config.listen_peer_urls);
    assert_eq!(config.advertise_client_urls, config.listen_client_urls);
    assert_eq!((config.heartbeat_interval.as_millis(), config.election_timeout.as_millis()), (100, 1000));
}

#[test]
fn a_flag_comes_before_its_variable_and_a_file_before_both() {
    let variables = [("ETCD_NAME", "v"), ("ETCD_SNAPSHOT_COUNT", "7")];
    for flags in [&["--name", "f"][..], &["--name=f"], &["-name", "f"]] {
        let config = read(flags, &variables).unwrap();
        assert_eq!((&*config.name, config.snapshot_count), ("f", 7), "{flags:?}");
    }
    let folder = std::env::temp_dir().join(format!("node-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("node.yaml");
    let text = "name: y\nsnapshot-count: 9\nlisten-client-urls: [http://127.0.0.1:1, \"http://[::1]:2\"]\n";
    std::fs::write(&file, text).unwrap();
    let config = read(&["--config-file", file.to_str().unwrap(), "--name", "f"], &variables).unwrap();
    assert_eq!((&*config.name, config.snapshot_count, config.listen_client_urls.len()), ("y", 9, 2));
    for (written, seconds) in [("60000000000", 60), ("1m", 60), ("0", 0)] {
        std::fs::write(&file, format!("corrupt-check-time: {written}\n")).unwrap();
        let config = read(&["--config-file", file.to_str().unwrap()], &[]).unwrap();
        assert_eq!(config.corrupt_check_time.unwrap_or_default().as_secs(), seconds, "{written}");
    }
    std::fs::write(&file, "nam: y\n").unwrap();
    let error = read(&["--config-file", file.to_str().unwrap()], &[]).unwrap_err().to_string();
    assert!(error.ends_with("`nam`: there is no such setting; is it `name`?"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// As etcd (`SetFlagsFromEnv`); grpc-go takes 0 streams for no bound.
#[test]
fn an_empty_variable_is_none_and_no_streams_are_no_bound() {
    let variables = [("ETCD_HEARTBEAT_INTERVAL", ""), ("ETCD_CONFIG_FILE", ""), ("ETCD_NAME", "")];
    let config = read(&["--config-file=", "--max-concurrent-streams=0"], &variables).unwrap();
    assert_eq!((&*config.name, config.heartbeat_interval.as_millis()), ("default", 100));
    assert_eq!(config.max_concurrent_streams, u32::MAX);
}

#[test]
fn a_file_that_need_not_end_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let [pipe, large] = ["pipe", "large"].map(|name| folder.path().join(name));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::write(&large, format!("name: y\n#{}\n", " ".repeat(1 << 20))).unwrap();
    for (file, why) in [
        (&*pipe, "it is no regular file"),
        ("/dev/zero".as_ref(), "it is no regular file"),
        (folder.path(), "it is no regular file"),
        (&large, "it is larger than 1 MiB"),
    ] {
        let error = read(&["--config-file", file.to_str().unwrap()], &[]).unwrap_err();
        assert_eq!(error.to_string(), format!("--config-file {}: {why}", file.display()));
    }
}

#[test]
fn a_duration_is_written_as_go_writes_it() {
    for (text, seconds) in [
        ("1h", 3600.0),
        ("90s", 90.0),
        ("1h30m", 5400.0),
        ("1500ms", 1.5),
        ("1m2s", 62.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
    ] {
        let config = read(&["--corrupt-check-time", text], &[]).unwrap();
        assert_eq!(config.corrupt_check_time.map(|time| time.as_secs_f64()), Some(seconds), "{text}");
    }
    for none in ["0", "0s", "0h0m"] {
        assert_eq!(read(&["--corrupt-check-time", none], &[]).unwrap().corrupt_check_time, None, "{none}");
    }
    for wrong in ["", "1", "s", "1d", "-1s", ".s", "1.2.3s", "99999999999999999999h", "9999999999999999h"] {
        let error = read(&["--corrupt-check-time", wrong], &[]).unwrap_err().to_string();
        assert!(error.ends_with("expected a duration, such as 30s or 1h30m"), "{wrong}: {error}");
    }
}

/// As with etcd (its e2e tests TestEtcdMultiPeer and TestEtcdUnixPeers).
#[test]
fn any_port_and_unix_sockets_are_listened_at() {
    let (any, socket) = ("http://127.0.0.1:0", "unix://etcd.unix:1");
    let clients = format!("--listen-client-urls={any},{any},unix://localhost:2380");
    let members = format!("--initial-cluster=default={socket}");
    let config = read(&[&clients, &format!("--listen-peer-urls={socket}"), &members], &[]).unwrap();
    let written = |urls: &[Url]| urls.iter().map(Url::to_string).collect::<Vec<_>>();
    assert_eq!(written(&config.listen_client_urls), [any, any, "unix://localhost:2380"]);
    assert_eq!(written(&config.initial_advertise_peer_urls), [socket]);
    let config = read(&[&format!("--listen-peer-urls={any},{any}")], &[]).unwrap();
    assert_eq!(written(&config.initial_cluster["default"]), [any; 2]);
    for (flag, words) in [
        ("--listen-client-urls=unix://a,unixs://a", "expected an address that nothing else of this member listens at"),
        ("--listen-metrics-urls=unixs://a", "(--cert-file, --key-file) must be provided for metrics secure url"),
    ] {
        let error = read(&[flag], &[]).unwrap_err().to_string();
        assert!(error.ends_with(words), "{error}");
    }
}

/// Every flag of etcd 3.6 is known (`etcd --help`), and with its own default it asks for nothing.
#[test]
fn what_etcd_takes_is_taken_with_a_warning_or_refused_by_name() {
    let known: Vec<_> = SETTINGS.iter().chain(ETCD_FLAGS).collect();
    for flag in include_str!("etcd-3.6-flags.txt").lines() {
        assert!(known.iter().any(|setting| setting.name == flag), "--{flag}");
    }
    for setting in ETCD_FLAGS.iter().filter(|setting| !matches!(setting.role, Role::Renamed(_) | Role::Feature(_))) {
        let config = read(&[&format!("--{}={}", setting.name, setting.default)], &[]);
        let config = config.unwrap_or_else(|error| panic!("--{}: {error}", setting.name));
        assert_eq!(config.warnings, [""; 0], "--{}", setting.name);
    }
    let list = include_str!("../../README.md");
    for setting in ETCD_FLAGS.iter().filter(|setting| !setting.name.starts_with("experimental-")) {
        assert!(list.contains(&format!("`{}`", setting.name)), "the README lacks --{}", setting.name);
    }
    let config = read(&["--max-wals=9", "--enable-pprof", "--cors=*"], &[]).unwrap();
    let expected = [
        "--enable-pprof is not used: there are no profiles",
        "--max-wals is not used: the node itself decides how many files it keeps",
    ];
    assert_eq!(config.warnings, expected);
}

#[test]
fn an_older_name_is_the_newer_one() {
    let flags = ["--experimental-watch-progress-notify-interval=5s", "--experimental-snapshot-catchup-entries", "7"];
    let config = read(&flags, &[]).unwrap();
    assert_eq!((config.progress_interval.as_secs(), config.snapshot_catchup_entries), (5, 7));
    for (flag, expected) in [
        ("--warning-apply-duration=1us", (1, 300_000)),
        ("--experimental-warning-apply-duration=1us", (1, 300_000)),
        ("--warning-unary-request-duration=2us", (100_000, 2)),
        ("--experimental-warning-unary-request-duration=2us", (100_000, 2)),
        ("--warning-unary-request-duration=0s", (100_000, 300_000)),
    ] {
        let config = read(&[flag], &[]).unwrap();
        assert_eq!((config.warning_apply.as_micros(), config.warning_unary_request.as_micros()), expected, "{flag}");
    }
    // etcd refuses it as well, and takes all others twice.
    let both = ["--experimental-warning-unary-request-duration=1s", "--warning-unary-request-duration=1s"];
    let error = read(&both, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--experimental-warning-unary-request-duration: not here: --warning-unary-request-duration is given, too; use that one"
    );
    let both = ["--experimental-corrupt-check-time=5s", "--corrupt-check-time=7s"];
    assert_eq!(read(&both, &[]).unwrap().corrupt_check_time.map(|time| time.as_secs()), Some(7));
}

#[test]
fn etcds_lease_checkpoint_is_this_members_wish() {
    let wish =
        |flags: &[&str]| read(flags, &[]).unwrap().cluster_feature_gates.0.get("ClusterLeaseCheckpoint").copied();
    for (flags, expected) in [
        (&[][..], None),
        (&["--feature-gates=LeaseCheckpoint=true"], Some(true)),
        (&["--experimental-enable-lease-checkpoint"], Some(true)),
        (&["--experimental-enable-lease-checkpoint=false"], Some(false)),
        (&["--experimental-enable-lease-checkpoint", "--feature-gates=LeaseCheckpoint=false"], Some(false)),
        (&["--feature-gates=AllAlpha=true"], Some(true)),
        (
            &["--feature-gates=LeaseCheckpoint=true", "--cluster-feature-gates=ClusterLeaseCheckpoint=false"],
            Some(false),
        ),
    ] {
        assert_eq!(wish(flags), expected, "{flags:?}");
    }
    let config = read(&["--feature-gates=CompactHashCheck=true,TxnModeWriteWithSharedBuffer=true"], &[]).unwrap();
    assert_eq!(config.warnings, ["--feature-gates: CompactHashCheck is known and changes nothing here"]);
}

#[test]
fn what_is_kept_of_the_history_is_said_as_with_etcd() {
    let hours = |hours: u64| AutoCompaction::Periodic(Duration::from_secs(hours * 3600));
    for (mode, retention, expected) in [
        ("periodic", "0", AutoCompaction::Off),
        ("periodic", "0s", AutoCompaction::Off),
        ("periodic", "2", hours(2)),
        ("periodic", "5m", AutoCompaction::Periodic(Duration::from_secs(300))),
        ("revision", "0", AutoCompaction::Off),
        ("revision", "1000", AutoCompaction::Revisions(1000)),
    ] {
        let flags = [format!("--auto-compaction-mode={mode}"), format!("--auto-compaction-retention={retention}")];
        let config = read(&flags.each_ref().map(String::as_str), &[]).unwrap();
        assert_eq!(config.auto_compaction, expected, "{flags:?}");
    }
}

#[test]
fn the_file_has_sections_for_tls_and_keys_without_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("etcd.yml");
    let text = "
wal-dir:
log-outputs: [stderr, /var/log/node.log]
discovery-fallback: 'exit'
client-transport-security:
  cert-file: c.pem
  key-file: c.key
  client-cert-auth: true
  trusted-ca-file: ca.pem
peer-transport-security:
  cert-file: p.pem
  key-file: p.key
  allowed-cn: [m1, m2]
  trusted-ca-file: ca.pem
";
    let read_it = |text: &str| {
        std::fs::write(&file, text).unwrap();
        read(&["--config-file", file.to_str().unwrap()], &[])
    };
    assert_eq!(read_it("\u{feff}name: m1\ninitial-cluster: m1=http://localhost:2380").unwrap().name, "m1");
    let config = read_it(text).unwrap();
    assert!(config.client_tls.wants_certificates);
    assert_eq!(config.peer_tls.allowed, Allowed::CommonNames(vec!["m1".into(), "m2".into()]));
    assert_eq!(config.log.outputs, [LogOutput::Stderr, LogOutput::File("/var/log/node.log".into())]);
    for (text, words) in [
        ("peer-transport-security: {cert: p}", "`peer-transport-security.cert`: there is no such setting"),
        ("peer-transport-security: p", "expected a mapping"),
        (
            "client-transport-security: {auto-tls: 7}",
            "`client-transport-security.auto-tls`: `7` is wrong: expected true",
        ),
        ("name: {a: b}", "expected a text"),
        ("name: a\nname: b", "duplicate entry with key \"name\""),
    ] {
        let error = read_it(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_certificate_is_made_where_no_files_are_named() {
    let https =
        ["--listen-client-urls=https://localhost:1,https://[::1]:2", "--listen-metrics-urls=https://127.0.0.1:3"];
    let made =
        |flags: &[&str]| read(&[&https[..], flags].concat(), &[]).map(|config| (config.client_tls, config.warnings));
    let (settings, warnings) = made(&["--auto-tls", "--data-dir=/d", "--self-signed-cert-validity=3"]).unwrap();
    let own = settings.self_signed.clone().unwrap();
    assert_eq!((own.hosts, own.years), (["127.0.0.1", "::1", "localhost"].map(str::to_owned).to_vec(), 3));
    let identity = Identity { cert: "/d/fixtures/client/cert.pem".into(), key: "/d/fixtures/client/key.pem".into() };
    assert_eq!((settings.identity, warnings), (Some(identity), Vec::new()));
    let (settings, warnings) = made(&["--auto-tls", "--cert-file=c", "--key-file=k"]).unwrap();
    assert_eq!((settings.self_signed, settings.identity.unwrap().cert), (None, "c".into()));
    assert_eq!(warnings, ["--auto-tls is not used: --cert-file and --key-file are given"]);
    let peers = read(&[], &[("ETCD_PEER_AUTO_TLS", "true")]).unwrap().peer_tls;
    assert_eq!(peers.identity.unwrap().key, std::path::Path::new("default.etcd/fixtures/peer/key.pem"));
    for (flags, words) in [
        (&["--auto-tls", "--self-signed-cert-validity=0"][..], "`0` is wrong: expected 1 to 100 years"),
        (&["--auto-tls", "--self-signed-cert-validity=101"], "`101` is wrong: expected 1 to 100 years"),
        (&["--auto-tls", "--cert-file=c"], "--key-file: `` is wrong"),
        (&["--auto-tls", "--trusted-ca-file=a"], "by --auto-tls nobody is asked for a certificate"),
        (&["--auto-tls", "--client-cert-auth"], "by --auto-tls nobody is asked for a certificate"),
        (&["--auto-tls", "--peer-auto-tls", "--peer-cert-allowed-cn=m"], "by --peer-auto-tls nobody is asked"),
        (
            &["--auto-tls", "--peer-auto-tls", "--peer-client-cert-file=c", "--peer-client-key-file=k"],
            "--peer-client-cert-file: `c` is wrong: expected --peer-cert-file and --peer-key-file with it",
        ),
    ] {
        let error = made(flags).unwrap_err().to_string();
        assert!(error.contains(words), "{flags:?}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("etcd.yml");
    std::fs::write(&file, "peer-transport-security: {auto-tls: true}\nself-signed-cert-validity: 0\n").unwrap();
    let config = read(&["--config-file", file.to_str().unwrap()], &[]).unwrap();
    assert_eq!((config.peer_tls.self_signed.unwrap().years, config.client_tls.self_signed), (1, None));
}

/// As a release is asked whether it takes some flags.
#[test]
fn who_asks_with_flags_hears_of_features_that_there_are_not() {
    let check = |flags: &[&str]| Config::check_flags(flags.iter().map(ToString::to_string), FEATURES);
    let wishes = check(&["--cluster-feature-gates=ClusterLeaseCheckpoint=true"]).unwrap();
    assert_eq!(wishes.0.get("ClusterLeaseCheckpoint"), Some(&true));
    for (flag, expected) in [
        ("--cluster-feature-gates=ClusterLeaseCheckpiont=true", "one of ClusterLeaseCheckpoint"),
        ("--feature-gates=ClusterLeaseCheckpoint=true", "--cluster-feature-gates"),
        ("--feature-gates=NoSuch=true", "one of CompactHashCheck"),
    ] {
        let error = check(&[flag]).unwrap_err();
        assert!(error.is_of_a_flag(), "it ends with 2: {error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
