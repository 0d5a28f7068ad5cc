//! What is wrong between two sides that reach each other and cannot speak: certificates, and TLS on one side alone.
//!
//! Pure: reads an error. What is none of these is silence or a broken connection, which starting a member may cure.

use std::{error::Error, io};

use rustls::{AlertDescription, CertificateError, InvalidMessage};
/// A sentence on it, to stand behind the address; `None` where it is something else.
pub(super) fn in_words(error: &(dyn Error + 'static)) -> Option<String> {
    of_tls(error).map(tls)
}

/// Whether this is how somebody answers who speaks TLS.
pub(super) fn is_tls(error: &(dyn Error + 'static)) -> bool {
    matches!(of_tls(error), Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_)))
}

/// Whether a connection was taken and ended in the middle, as by somebody who speaks another protocol.
pub(super) fn is_hung_up(error: &(dyn Error + 'static)) -> bool {
    let ended = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof];
    causes(error).any(|cause| match cause.downcast_ref::<io::Error>() {
        Some(error) => ended.contains(&error.kind()),
        None => cause.to_string().contains("closed because of a broken pipe"),
    })
}

fn of_tls<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => "it speaks no TLS".into(),
        rustls::Error::InvalidCertificate(error) => certificate(error),
        rustls::Error::AlertReceived(alert) => alerted(*alert),
        other => format!("no TLS connection: {other}"),
    }
}

fn certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is not signed by an authority in `cluster.tls.ca`".into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("its certificate has expired: {error}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("its certificate is not valid yet: {error}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is not for this host: {error}")
        }
        other => format!("its certificate cannot be trusted: {other}"),
    }
}

/// What the other side says of our certificate.
fn alerted(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::CertificateRequired => "it wants a certificate of the agent, `cluster.tls.cert`",
        AlertDescription::UnknownCA | AlertDescription::BadCertificate => {
            "it does not take the agent's certificate, `cluster.tls.cert`, or wants one"
        }
        // What etcd says of one that is not valid yet, too.
        AlertDescription::CertificateExpired => {
            "by its clock the agent's certificate, `cluster.tls.cert`, has ended or is not valid yet"
        }
        // Go's servers say so where they have no signature that the client takes.
        AlertDescription::HandshakeFailure => {
            "it refuses the TLS connection; the key of its certificate may be of a curve that this agent does not speak: P-256 and \
             P-384 it does, P-521, as etcd's `--auto-tls` makes it, it does not"
        }
        _ => "it refuses the TLS connection",
    };
    format!("{words} (alert {alert:?})")
}

/// An error and what led to it. An [`io::Error`] does not name the error that it was made of as its source.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    /// As tonic hands it on: inside of an I/O error, inside of a status.
    fn status(error: rustls::Error) -> Status {
        Status::from_error(Box::new(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    #[test]
    fn a_fault_between_the_two_sides_is_told_from_silence() {
        let certificate = |fault| rustls::Error::InvalidCertificate(fault);
        for (error, words, tls) in [
            (certificate(CertificateError::UnknownIssuer), "is not signed by an authority", true),
            (certificate(CertificateError::Expired), "has expired", true),
            (certificate(CertificateError::NotValidYet), "is not valid yet", true),
            (certificate(CertificateError::NotValidForName), "is not for this host", true),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "wants a certificate of the agent",
                true,
            ),
            (rustls::Error::AlertReceived(AlertDescription::CertificateExpired), "the agent's certificate", true),
            (rustls::Error::AlertReceived(AlertDescription::HandshakeFailure), "P-521", true),
            (rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType), "speaks no TLS", false),
        ] {
            let status = status(error);
            assert!(in_words(&status).is_some_and(|found| found.contains(words)), "{status:?}");
            assert_eq!(is_tls(&status), tls, "{status:?}");
        }
        let refused = Status::from_error(Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)));
        assert_eq!(in_words(&refused), None);
        assert!(!is_hung_up(&refused) && !is_hung_up(&Status::unavailable("etcdserver: no leader")));
        assert!(is_hung_up(&Status::from_error(Box::new(io::Error::from(io::ErrorKind::BrokenPipe)))));
        assert_eq!(in_words(&Status::unavailable("etcdserver: no leader")), None);
    }
}
