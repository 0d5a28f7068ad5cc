//! What a newer Go refuses of certificates and handshakes. Each patch of etcd is built with some Go; the first with each was read off
//! its tags (`go.mod`): 1.16 3.4.19 and 3.5.0, 1.19 3.4.25 and 3.5.8, 1.20 3.4.28 and 3.5.10, 1.21 3.4.31 and 3.5.13, 1.22 3.4.34 and
//! 3.5.16, 1.23 3.4.36, 3.5.19 and 3.6.0, 1.24 3.4.38, 3.5.23 and 3.6.5, 1.25 3.4.42, 3.5.28 and 3.6.9, 1.26 3.7.0. Who builds etcd
//! himself may take another, and have it take what an older one did: a run reads that off the executable (`host/program/go_build.rs`).

use super::{
    Act::{Refuse, Tell, Warn},
    Hazard,
    Place::{Certificates, Nowhere, Settings},
    Proof::{Heard, Reported, Seen, Source},
};

pub(super) const HAZARDS: &[Hazard] = &[
    Hazard::way(
        "tls-cn-only",
        ">=3.4.0, <3.4.19",
        ">=3.4.19",
        "certificates with a common name alone are refused: neither peers nor clients connect",
    )
    .when(Certificates, "a certificate has no subject alternative name")
    .act(Refuse, "issue it again, with its names and addresses")
    .known(&[Reported], &["kopeio/etcd-manager#399"]),
    Hazard::way(
        "tls-118",
        "<3.4.25 || >=3.5.0, <3.5.8",
        ">=3.4.25, <3.5.0 || >=3.5.8",
        "certificates that are signed by SHA-1 are refused: neither peers nor clients connect",
    )
    .when(Certificates, "a certificate is signed so, and is no root")
    .act(Refuse, "issue it again, signed by SHA-256; `GODEBUG=x509sha1=1` takes it up to Go 1.23")
    .known(&[Seen, Heard], &["Go 1.18 release notes"]),
    Hazard::run("certificate-not-valid", "*", "a member that was restarted connects anew, and nobody lets it in")
        .when(Certificates, "a member's certificate has ended, is not valid yet, cannot be read, has another key, or is not signed by the peers' authority")
        .act(Refuse, "renew it: a member reads the new file by itself")
        .known(&[Seen], &["etcd's documentation, \"Transport security model\""]),
    Hazard::way(
        "tls-122",
        "<3.4.34 || >=3.5.0, <3.5.16",
        ">=3.4.34, <3.5.0 || >=3.5.16",
        "servers want TLS 1.2 at least, and RSA key exchange is off: old clients are refused",
    )
    .when(Certificates, "clients speak TLS 1.0 or 1.1, or have no other cipher suite")
    .act(Warn, "renew the clients; `GODEBUG=tls10server=1,tlsrsakex=1` lets them in for a while")
    .known(&[Source], &["golang/go#62459", "golang/go#68528"]),
    Hazard::way(
        "tls-123",
        "<3.4.36 || >=3.5.0, <3.5.19",
        ">=3.4.36, <3.5.0 || >=3.5.19",
        "certificates with a negative serial number are refused, and 3DES is off",
    )
    .when(Certificates, "a certificate has a negative serial number")
    .act(Refuse, "issue it again; `GODEBUG=x509negativeserial=1` takes it for a while")
    .known(&[Seen, Heard], &["Go 1.23 release notes"]),
    Hazard::way(
        "tls-124",
        "<3.4.38 || >=3.5.0, <3.5.23 || >=3.6.0, <3.6.5",
        ">=3.4.38, <3.5.0 || >=3.5.23, <3.6.0 || >=3.6.5",
        "RSA keys below 1024 bits are refused, and what is signed by SHA-1 for good; hellos are larger",
    )
    .when(Certificates, "a key is that short")
    .act(Refuse, "issue it again, with a longer key; `GODEBUG=rsa1024min=0` takes short ones for a while")
    .known(&[Seen, Heard], &["Go 1.24 release notes"]),
    Hazard::way(
        "tls-125",
        "<3.4.42 || >=3.5.0, <3.5.28 || >=3.6.0, <3.6.9",
        ">=3.4.42, <3.5.0 || >=3.5.28, <3.6.0 || >=3.6.9",
        "handshakes of TLS 1.2 signed by SHA-1 are refused; etcd takes as many processors as its cgroup allows",
    )
    .when(Certificates, "clients sign by SHA-1")
    .act(Warn, "renew the clients; `GODEBUG=tlssha1=1` lets them in for a while")
    .known(&[Heard], &["Go 1.25 release notes"]),
    Hazard::way(
        "crl-enforced",
        "<3.5.32 || >=3.6.0, <3.6.13",
        ">=3.5.32, <3.6.0 || >=3.6.13",
        "clients whose certificates are revoked are refused on the HTTP port, too, where they were let in",
    )
    .when(Settings, "`--client-crl-file` and `--listen-client-http-urls` are set")
    .act(Tell, "renew what is revoked and still in use")
    .known(&[Source], &["etcd#22021", "etcd#22024", "etcd#22025"]),
    Hazard::way(
        "handshake-10s",
        "<3.5.33 || >=3.6.0, <3.6.14 || =3.7.0",
        ">=3.5.33, <3.6.0 || >=3.6.14, <3.7.0 || >=3.7.1",
        "a handshake that takes more than 10 s is cut off",
    )
    .when(Nowhere, "clients are that slow")
    .known(&[Source], &["etcd#22141", "etcd#22142", "etcd#22160"]),
    Hazard::way(
        "connection-header",
        "<3.4.28 || >=3.5.0, <3.5.10",
        ">=3.4.28, <3.5.0 || >=3.5.10",
        "calls with a `connection` header are refused, which some proxies send",
    )
    .when(Nowhere, "a proxy stands between clients and members")
    .act(Tell, "have the proxy leave it out")
    .known(&[Source], &["etcd#16625", "etcd#16997"]),
];
