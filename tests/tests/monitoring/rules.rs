//! The rules, as Prometheus' own tool sees them.

use std::path::Path;

use crate::prometheus::{is_fine, programs_or_skip, shipped};

fn text(path: &Path) -> &str {
    path.to_str().expect("a text")
}

#[test]
fn the_rules_are_sound() {
    let Some(programs) = programs_or_skip() else { return };
    is_fine(&programs.join("promtool"), &["check", "rules", text(&shipped("rules.yml"))], None);
}

#[test]
fn each_rule_says_in_time_what_it_is_for() {
    let Some(programs) = programs_or_skip() else { return };
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/monitoring/rules.test.yml");
    is_fine(&programs.join("promtool"), &["test", "rules", text(&cases)], None);
}

#[test]
fn alertmanagers_part_is_sound() {
    let Some(programs) = programs_or_skip() else { return };
    is_fine(&programs.join("amtool"), &["check-config", text(&shipped("alertmanager.yml"))], None);
}
