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
        Of::NotValidForName | Of::NotValidForNameContext { .. } => {
            format!("its certificate is not for this host: {error}")
        }
        Of::Revoked => "its certificate is revoked".into(),
        Of::ApplicationVerificationFailure => "its certificate is of none who is allowed".into(),
        other => format!("its certificate cannot be trusted: {other}"),
    }
}

/// What the other side says of the certificate that it was shown.
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
    format!("{words} (alert {alert:?})")
}
