//! A page of figures, as members tell them: the text format of Prometheus.

use std::collections::BTreeMap;

use crate::Error;

/// A page; all of it is of one moment.
#[derive(Clone, Debug)]
pub struct Metrics(pub String);

impl Metrics {
    /// A figure without labels.
    ///
    /// # Errors
    /// There is none of this name, or it is no number.
    pub fn figure(&self, name: &str) -> Result<f64, Error> {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.ok_or_else(|| format!("no {name} in {}", self.0))?.parse()?)
    }

    /// The figures of one family, by the labels as they stand there; none where there is no such family.
    pub fn family(&self, name: &str) -> BTreeMap<String, f64> {
        let figure = |line: &str| {
            let (labels, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} ")?;
            Some((labels.to_owned(), value.parse().ok()?))
        };
        self.0.lines().filter_map(figure).collect()
    }
}
