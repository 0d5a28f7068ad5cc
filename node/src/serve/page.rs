//! Prometheus' text (prometheus.io, "Exposition formats"): each family with its help and kind before its samples.

use std::fmt::{Display, Write};

use instruments::Reading;

/// A page, as it is written.
#[derive(Default)]
pub(super) struct Page(String);

/// What a sample is of: `name="value"`, with commas between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels(String);

impl Labels {
    pub(super) fn of(pairs: &[(&str, &str)]) -> Self {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        Self(pairs.join(","))
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl Display for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

// To write into a text cannot fail.
impl Page {
    /// What was written.
    pub(super) fn text(self) -> String {
        self.0
    }

    fn head(&mut self, kind: &str, name: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &Labels, value: impl Display) {
        let _ = match labels.is_none() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn family<V: Display>(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.head(kind, name, help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.gauges(name, help, [(Labels::default(), value)]);
    }

    pub(super) fn gauges<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.family("gauge", name, help, samples);
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.counters(name, help, [(Labels::default(), value)]);
    }

    pub(super) fn counters<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.family("counter", name, help, samples);
    }

    pub(super) fn histograms(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels, Reading)>) {
        self.head("histogram", name, help);
        let bucket = format!("{name}_bucket");
        for (labels, Reading { buckets, count, sum }) in samples {
            let comma = if labels.is_none() { "" } else { "," };
            let bounds = buckets.iter().map(|(bound, count)| (bound.as_secs_f64().to_string(), *count));
            for (bound, count) in bounds.chain([("+Inf".to_owned(), count)]) {
                self.sample(&bucket, &Labels(format!("{labels}{comma}le=\"{bound}\"")), count);
            }
            self.sample(&format!("{name}_sum"), &labels, sum.as_secs_f64());
            self.sample(&format!("{name}_count"), &labels, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_page_is_prometheus_text() {
        let mut page = Page::default();
        page.gauge("size", "How large.", 1.5);
        page.counters("asked_total", "How often.", [(Labels::of(&[("by", "a\"b\\c\nd"), ("of", "me")]), 2)]);
        let ms = Duration::from_millis;
        let reading = Reading { buckets: vec![(ms(1), 1), (ms(2000), 3)], count: 4, sum: ms(5001) };
        let samples = [(Labels::default(), reading.clone()), (Labels::of(&[("To", "b")]), reading)];
        page.histograms("took_seconds", "How long.", samples);
        let expected = r#"# HELP size How large.
# TYPE size gauge
size 1.5
# HELP asked_total How often.
# TYPE asked_total counter
asked_total{by="a\"b\\c\nd",of="me"} 2
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{le="0.001"} 1
took_seconds_bucket{le="2"} 3
took_seconds_bucket{le="+Inf"} 4
took_seconds_sum 5.001
took_seconds_count 4
took_seconds_bucket{To="b",le="0.001"} 1
took_seconds_bucket{To="b",le="2"} 3
took_seconds_bucket{To="b",le="+Inf"} 4
took_seconds_sum{To="b"} 5.001
took_seconds_count{To="b"} 4
"#;
        assert_eq!(page.text(), expected);
    }
}
