//! What is wrong between two sides that cannot shake hands, in a sentence on the other one.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

pub(super) fn in_words(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(error) => of_tls(error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "it hung up in the handshake".into(),
        None => error.to_string(),
    }
}

/// As etcd logs it, where somebody may look for that (etcd, `TLSInfo.baseConfig` in client/pkg/transport/listener.go).
pub(super) fn in_words_of_etcd(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Error::InvalidCertificate(CertificateError::NotValidForName)) => {
            "client certificate authentication failed".into()
        }
        _ => error.to_string(),
    }
}

fn of_tls(error: &Error) -> String {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => "it does not speak TLS".into(),
        Error::NoCertificatesPresented => "it shows no certificate".into(),
        Error::InvalidCertificate(error) => certificate(error),
        Error::AlertReceived(alert) => alerted(*alert),
        Error::PeerIncompatible(error) => format!("it speaks another TLS: {error:?}"),
        other => format!("no TLS connection: {other}"),
    }
}

fn certificate(error: &CertificateError) -> String {
    use CertificateError as Of;
    match error {
        Of::UnknownIssuer | Of::BadSignature => "its certificate is not signed by a trusted authority".into(),
        Of::Expired | Of::ExpiredContext { .. } => format!("its certificate has expired: {error}"),
        Of::NotValidYet | Of::NotValidYetContext { .. } => format!("its certificate is not valid yet: {error}"),
        Of::NotValidForNameContext { .. } => format!("its certificate is not for this host: {error}"),
        Of::Revoked => "its certificate is revoked".into(),
        // Only `Admitted` says it without names.
        Of::NotValidForName => "its certificate is of none who is allowed".into(),
        other => format!("its certificate cannot be trusted: {other}"),
    }
}

/// What the other side says of the certificate that it was shown; the second half is how Go's members say it.
fn alerted(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::CertificateRequired => "it wants a certificate",
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => "it does not take the certificate of this side",
        AlertDescription::CertificateExpired => "the certificate of this side has expired",
        AlertDescription::CertificateRevoked => "the certificate of this side is revoked",
        _ => "it refuses the TLS connection",
    };
    format!("{words} (remote error: tls: {})", in_words_of_go(alert))
}

/// Go's crypto/tls, `alertText`: what whoever reads etcd's logs looks for.
fn in_words_of_go(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::UnexpectedMessage => "unexpected message",
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::DecodeError => "error decoding message",
        AlertDescription::DecryptError => "error decrypting message",
        AlertDescription::ProtocolVersion => "protocol version not supported",
        AlertDescription::InternalError => "internal error",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::NoApplicationProtocol => "no application protocol",
        other => return format!("{other:?}"),
    };
    words.into()
}
