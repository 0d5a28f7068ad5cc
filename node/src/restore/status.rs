//! What a saved file holds, as `etcdutl snapshot status` prints it.

use proto::etcdserverpb::RangeRequest;
use serde::Serialize;

use super::Saved;
use crate::cluster::FIRST_WITH_GATES;

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Simple,
    Table,
    Json,
    Fields,
}

/// In the names and the order of etcd's `Status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// CRC-32C of what was saved: equal for equal files.
    pub hash: u32,
    pub revision: i64,
    /// Those that are there at that revision.
    pub total_key: i64,
    /// In bytes, without the hash at the end.
    pub total_size: u64,
    /// The storage version; empty below 3.6, which has none.
    pub version: String,
}

impl Status {
    pub fn of(saved: &Saved) -> Self {
        let Saved { state, hash, size_bytes, .. } = saved;
        let all = RangeRequest { key: vec![0], range_end: vec![0], count_only: true, ..RangeRequest::default() };
        // 3.6 is the first with a storage version as with gates.
        let version = state.cluster.version.filter(|version| *version >= FIRST_WITH_GATES);
        Self {
            hash: *hash,
            revision: state.keys.revision().0,
            // The newest revision can always be read.
            total_key: state.keys.range(&all).map_or(0, |found| found.count),
            total_size: *size_bytes,
            version: version.map(|version| format!("{version}.0")).unwrap_or_default(),
        }
    }

    /// The text, with its last line's end.
    pub fn text(&self, format: Format) -> String {
        let Self { hash, revision, total_key, total_size, version } = self;
        match format {
            Format::Simple => format!("{}\n", self.cells().join(", ")),
            Format::Table => table(&["HASH", "REVISION", "TOTAL KEYS", "TOTAL SIZE", "VERSION"], &self.cells()),
            // Numbers and a version: there is always a text.
            Format::Json => format!("{}\n", serde_json::to_string(self).unwrap_or_default()),
            Format::Fields => format!(
                "\"Hash\" : {hash}\n\"Revision\" : {revision}\n\"Keys\" : {total_key}\n\"Size\" : {total_size}\n\
                 \"Version\" : {version}\n"
            ),
        }
    }

    fn cells(&self) -> [String; 5] {
        let Self { hash, revision, total_key, total_size, version } = self;
        [format!("{hash:x}"), revision.to_string(), total_key.to_string(), for_people(*total_size), version.clone()]
    }
}

/// A row below its head, as etcd's tables are (tablewriter).
fn table(head: &[&str; 5], row: &[String; 5]) -> String {
    let widths: Vec<usize> = head.iter().zip(row).map(|(head, cell)| head.len().max(cell.len())).collect();
    let line: String = widths.iter().map(|width| format!("+{}", "-".repeat(width + 2))).collect();
    let cells = |cell: &dyn Fn(usize, usize) -> String| -> String {
        widths.iter().enumerate().map(|(at, width)| format!("| {} ", cell(at, *width))).collect()
    };
    let head = cells(&|at, width| format!("{:^width$}", head[at]));
    let row = cells(&|at, width| format!("{:>width$}", row[at]));
    format!("{line}+\n{head}|\n{line}+\n{row}|\n{line}+\n")
}

/// As go-humanize writes bytes: thousands, two digits where the first is alone.
fn for_people(bytes: u64) -> String {
    if bytes < 10 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1000.0 {
        value /= 1000.0;
        unit += 1;
    }
    let rounded = (value * 10.0 + 0.5).floor() / 10.0;
    let unit = ["B", "kB", "MB", "GB", "TB", "PB", "EB"][unit];
    if rounded < 10.0 { format!("{rounded:.1} {unit}") } else { format!("{rounded:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_etcdutl_writes_them() {
        for (bytes, text) in [
            (0, "0 B"),
            (9, "9 B"),
            (10, "10 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (1_536, "1.5 kB"),
            (20_480, "20 kB"),
            (94_371_840, "94 MB"),
            (2_147_483_648, "2.1 GB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(for_people(bytes), text);
        }
    }

    #[test]
    fn each_format_is_that_of_etcdutl() {
        let status = Status {
            hash: 0x07ef_846e,
            revision: 485_261,
            total_key: 11_642,
            total_size: 94_371_840,
            version: "3.6.0".into(),
        };
        assert_eq!(status.text(Format::Simple), "7ef846e, 485261, 11642, 94 MB, 3.6.0\n");
        assert_eq!(
            status.text(Format::Json),
            "{\"hash\":133137518,\"revision\":485261,\"totalKey\":11642,\"totalSize\":94371840,\"version\":\"3.6.0\"}\n"
        );
        assert_eq!(
            status.text(Format::Fields),
            "\"Hash\" : 133137518\n\"Revision\" : 485261\n\"Keys\" : 11642\n\"Size\" : 94371840\n\"Version\" : 3.6.0\n"
        );
        let table = "\
+---------+----------+------------+------------+---------+
|  HASH   | REVISION | TOTAL KEYS | TOTAL SIZE | VERSION |
+---------+----------+------------+------------+---------+
| 7ef846e |   485261 |      11642 |      94 MB |   3.6.0 |
+---------+----------+------------+------------+---------+
";
        assert_eq!(status.text(Format::Table), table);
    }
}
