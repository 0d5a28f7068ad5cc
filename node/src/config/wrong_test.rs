//! What is said of settings that cannot be used.

use super::tests::read;

#[test]
fn what_is_wrong_is_named_with_what_was_expected() {
    for (arguments, words) in [
        (&["--name"][..], "--name: expected a value"),
        (&["start"], "`start`: expected a flag such as --name"),
        (&["--nmae", "a"], "--nmae: there is no such setting; is it `name`?"),
        (&["--colour", "a"], "--colour: there is no such setting"),
        (&["--snapshot-count", "many"], "--snapshot-count: `many` is wrong: expected a whole number"),
        (
            &["--heartbeat-interval=0"],
            "--heartbeat-interval: `0` is wrong: expected a whole number of milliseconds above 0",
        ),
        (&["--election-timeout=300"], "--election-timeout: `300` is wrong: expected 500 or more: 5 heartbeats"),
        (&["--election-timeout=50001"], "--election-timeout: `50001` is wrong: expected 50000 or less"),
        (
            &["--election-timeout=18446744073709551615", "--heartbeat-interval=18446744073709551615"],
            "--election-timeout: `18446744073709551615` is wrong: expected 50000 or less",
        ),
        (&["--initial-cluster-state=old"], "--initial-cluster-state: `old` is wrong: expected new or existing"),
        (
            &["--listen-client-urls=https://127.0.0.1:1"],
            "--listen-client-urls: TLS key/cert (--cert-file, --key-file) must be provided for client url https://127.0.0.1:1 \
             with HTTPS scheme",
        ),
        (
            &["--listen-metrics-urls=https://127.0.0.1:1"],
            "--listen-metrics-urls: client TLS key/cert (--cert-file, --key-file) must be provided for metrics secure url",
        ),
        (
            &["--listen-peer-urls=https://127.0.0.1:1"],
            "--listen-peer-urls: TLS key/cert (--peer-cert-file, --peer-key-file) must be provided for peer url \
             https://127.0.0.1:1 with HTTPS scheme",
        ),
        (
            &["--listen-client-http-urls=http://127.0.0.1:1", "--listen-client-urls=http://127.0.0.1:1"],
            "--listen-client-http-urls: `http://127.0.0.1:1` is wrong: expected an address that nothing else of this member \
             listens at",
        ),
        (
            &["--listen-client-http-urls=https://127.0.0.1:1"],
            "--listen-client-http-urls: TLS key/cert (--cert-file, --key-file) must be provided for client url \
             https://127.0.0.1:1 with HTTPS scheme",
        ),
        (&["--cert-file=c"], "--key-file: `` is wrong: expected the key of --cert-file"),
        (&["--peer-key-file=k"], "--peer-cert-file: `` is wrong: expected the certificate of --peer-key-file"),
        (&["--client-cert-auth"], "--client-cert-auth: `true` is wrong: expected --trusted-ca-file with it"),
        (&["--client-cert-auth=T"], "--client-cert-auth: `T` is wrong: expected --trusted-ca-file with it"),
        (&["--client-cert-auth=yes"], "--client-cert-auth: `yes` is wrong: expected true or false"),
        (&["--peer-client-cert-auth="], "--peer-client-cert-auth: `` is wrong: expected true or false"),
        (&["--peer-crl-file=r"], "--peer-crl-file: `r` is wrong: expected --peer-trusted-ca-file with it"),
        (
            &["--peer-cert-allowed-cn=a", "--peer-cert-allowed-hostname=b"],
            "--peer-cert-allowed-hostname: `b` is wrong: expected nothing, or nothing in --peer-cert-allowed-cn",
        ),
        (&["--tls-min-version=TLS1.1"], "--tls-min-version: `TLS1.1` is wrong: expected TLS1.2 or TLS1.3"),
        (
            &["--require-peer-tls", "--listen-peer-urls=http://0.0.0.0:2380"],
            "--listen-peer-urls: `http://0.0.0.0:2380` is wrong: expected https, as --require-peer-tls says",
        ),
        (
            &["--listen-peer-urls=http://127.0.0.1"],
            "--listen-peer-urls: `http://127.0.0.1` is wrong: expected a URL with a port, such as \
             http://10.0.0.1:2379",
        ),
        (
            &["--listen-client-urls=http://0.0.0.0:2379"],
            "--advertise-client-urls: `` is wrong: expected where clients shall come, as this listens for more than \
             this machine",
        ),
        (&["--name="], "--name: `` is wrong: expected a name"),
        (
            &["--listen-client-urls=http://127.0.0.1:1,http://127.0.0.1:1"],
            "--listen-client-urls: `http://127.0.0.1:1` is wrong: expected an address that nothing else of this member listens \
             at",
        ),
        (
            &["--listen-client-urls=http://localhost:2380"],
            "--listen-client-urls: `http://localhost:2380` is wrong: expected an address that nothing else of this member \
             listens at",
        ),
        (
            &["--initial-cluster=default=http://localhost:2380,b=http://localhost:2380"],
            "--initial-cluster: `http://localhost:2380` is wrong: expected each address once",
        ),
        (
            &["--initial-cluster=a=http://localhost:2380"],
            "--name: `default` is wrong: expected one of --initial-cluster: a",
        ),
        (
            &["--initial-cluster=default=http://localhost:1"],
            "--initial-advertise-peer-urls: `http://localhost:2380` is wrong: expected what --initial-cluster has for \
             default: http://localhost:1",
        ),
        (
            &["--cluster-feature-gates=LeaseCheckpoint"],
            "--cluster-feature-gates: `LeaseCheckpoint` is wrong: expected Name=true or Name=false, with commas between \
             several",
        ),
        (
            &["--feature-gates==true"],
            "--feature-gates: `=true` is wrong: expected Name=true or Name=false, with commas between several",
        ),
        (
            &["--cluster-feature-gates=LeaseCheckpoin=true"],
            "--cluster-feature-gates: `LeaseCheckpoin` is wrong: expected one of ClusterLeaseCheckpoint, ClusterSnapshotCompression, ClusterCounters",
        ),
        (
            &["--feature-gates=ClusterLeaseCheckpoint=true"],
            "--feature-gates: `ClusterLeaseCheckpoint` is wrong: expected it in --cluster-feature-gates, where this feature \
             belongs",
        ),
        (
            &["--cluster-feature-gates=LeaseCheckpoint=true"],
            "--cluster-feature-gates: `LeaseCheckpoint` is wrong: expected it in --feature-gates, where this feature belongs",
        ),
        (
            &["--discovery=http://x"],
            "--discovery: not here: there is no discovery; name the members in --initial-cluster",
        ),
        (
            &["--force-new-cluster"],
            "--force-new-cluster: not here: a cluster that has lost its quorum is restored from a snapshot",
        ),
        (&["--max-wals=many"], "--max-wals: `many` is wrong: expected a whole number"),
        (&["--max-request-bytes=0"], "--max-request-bytes: `0` is wrong: expected 1 to 33554432"),
        (
            &["--auto-compaction-retention=5x"],
            "--auto-compaction-retention: `5x` is wrong: expected hours, or a duration such as 30m",
        ),
        (
            &["--auto-compaction-mode=revision", "--auto-compaction-retention=5m"],
            "--auto-compaction-retention: `5m` is wrong: expected a number of revisions",
        ),
        (
            &["--tls-min-version=TLS1.3", "--tls-max-version=TLS1.2"],
            "--tls-max-version: `TLS1.2` is wrong: expected --tls-min-version or a newer one",
        ),
        (&["--logger=capnslog"], "--logger: `capnslog` is wrong: expected zap"),
        (&["--config-file=/none"], "--config-file /none: No such file or directory (os error 2)"),
    ] {
        let checked = read(arguments, &[]).and_then(|config| config.check_first_start());
        assert_eq!(checked.unwrap_err().to_string(), words, "{arguments:?}");
    }
    let error = read(&[], &[("ETCD_LOG_LEVEL", "loud")]).unwrap_err().to_string();
    assert_eq!(
        error,
        "ETCD_LOG_LEVEL: `loud` is wrong: expected debug or info or warn or error or dpanic or panic or fatal"
    );
}
