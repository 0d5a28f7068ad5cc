//! From when to when the agent's own certificate is valid.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use crate::calendar::rfc3339;

/// By this host's clock everything is judged; the members have theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    /// The file that holds the certificate.
    pub path: PathBuf,
    pub from: SystemTime,
    pub end: SystemTime,
}

impl Validity {
    /// While all of these are valid; `None` where none of them can be read.
    pub(super) fn of(path: PathBuf, chain: &[CertificateDer<'static>]) -> Option<Self> {
        let read = |der: &CertificateDer<'_>| {
            let (_, certificate) = X509Certificate::from_der(der).ok()?;
            let validity = certificate.validity();
            Some((time(validity.not_before)?, time(validity.not_after)?))
        };
        let all: Vec<_> = chain.iter().filter_map(read).collect();
        let from = all.iter().map(|(from, _)| *from).max()?;
        let end = all.iter().map(|(_, end)| *end).min()?;
        Some(Self { path, from, end })
    }

    /// What is wrong with it now, if anything.
    pub fn fault(&self, now: SystemTime) -> Option<String> {
        (now < self.from || self.end <= now).then(|| self.in_words(now))
    }

    /// When it ends; where it is not valid yet, when it will be.
    pub fn in_words(&self, now: SystemTime) -> String {
        let its = format!("the agent's certificate {}", self.path.display());
        match () {
            () if self.end <= now => format!("{its} ended at {}", rfc3339(self.end)),
            () if now < self.from => {
                format!(
                    "{its} is valid from {} only, and by this host's clock it is {}",
                    rfc3339(self.from),
                    rfc3339(now)
                )
            }
            () => format!("{its} ends at {}", rfc3339(self.end)),
        }
    }
}

/// Before 1970 is 1970: no clock of a host that runs is earlier.
fn time(of: ASN1Time) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(of.timestamp()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_its_dates_is_said() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let validity = Validity { path: "/etc/client.pem".into(), from: at(100), end: at(200) };
        for (now, fault) in [
            (
                99,
                Some(
                    " is valid from 1970-01-01T00:01:40.000Z only, and by this host's clock it is 1970-01-01T00:01:39.000Z",
                ),
            ),
            (100, None),
            (199, None),
            (200, Some(" ended at 1970-01-01T00:03:20.000Z")),
        ] {
            let fault = fault.map(|fault| format!("the agent's certificate /etc/client.pem{fault}"));
            assert_eq!(validity.fault(at(now)), fault, "{now}");
        }
        assert!(validity.in_words(at(150)).ends_with(" ends at 1970-01-01T00:03:20.000Z"));
    }
}
