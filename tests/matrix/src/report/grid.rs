//! A page with a grid: a row per path and size, a column per kind of fault, and below it every plan with its record. One
//! file that needs nothing else, in light and in dark.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{junit::escaped, words};
use crate::{
    model::Column,
    verdict::{Outcome, Verdict},
};

const STYLE: &str = include_str!("grid.css");

pub fn grid(name: &str, file: &str, outcomes: &[Outcome]) -> String {
    let title = escaped(&format!("{name}: {}", words::tally(outcomes)));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{}{}</body>\n</html>\n",
        table(outcomes),
        plans(file, outcomes),
    )
}

fn table(outcomes: &[Outcome]) -> String {
    let columns: Vec<Column> = Column::ALL
        .into_iter()
        .filter(|column| outcomes.iter().any(|outcome| outcome.plan.cell.column == *column))
        .collect();
    let mut rows: BTreeMap<usize, (String, BTreeMap<Column, Vec<usize>>)> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        let cell = &outcome.plan.cell;
        let row = cell.row();
        let place = order.iter().position(|known| *known == row).unwrap_or_else(|| {
            order.push(row.clone());
            order.len() - 1
        });
        let (_, cells) = rows.entry(place).or_insert_with(|| (row, BTreeMap::new()));
        cells.entry(cell.column).or_default().push(index);
    }
    let heads: String = columns.iter().map(|column| format!("<th scope=\"col\">{}</th>", column.name())).collect();
    let mut text = format!("<table>\n<tr><th></th>{heads}</tr>\n");
    for (row, cells) in rows.values() {
        let cells: String =
            columns.iter().map(|column| cell(cells.get(column).map_or(&[][..], Vec::as_slice), outcomes)).collect();
        // To a String nothing fails.
        let _ = writeln!(text, "<tr><th scope=\"row\">{}</th>{cells}</tr>", escaped(row));
    }
    text + "</table>\n"
}

/// The worst of its plans gives a cell its colour; a link leads to that plan.
fn cell(indexes: &[usize], outcomes: &[Outcome]) -> String {
    let severity = |index: &&usize| match outcomes[**index].verdict {
        Verdict::Passed if !outcomes[**index].is_partial() => 0,
        Verdict::Passed => 1,
        Verdict::NotInjected => 2,
        Verdict::NotRun => 3,
        Verdict::Failed(_) => 4,
    };
    let Some(worst) = indexes.iter().max_by_key(severity) else { return "<td></td>".into() };
    let verdict = &outcomes[*worst].verdict;
    let partial = indexes.iter().filter(|index| outcomes[**index].is_partial()).count();
    let alike = indexes.iter().filter(|index| outcomes[**index].verdict.name() == verdict.name()).count();
    let words = match indexes.len() {
        1 => verdict.name().to_owned(),
        all => format!("{alike} of {all} {}", verdict.name()),
    };
    let fewer = if partial > 0 { format!(", {partial} with fewer faults than planned") } else { String::new() };
    format!("<td class=\"{}\"><a href=\"#plan-{worst}\">{words}{fewer}</a></td>", class(&outcomes[*worst]))
}

fn class(outcome: &Outcome) -> &'static str {
    match outcome.verdict {
        Verdict::Passed if outcome.is_partial() => "partial",
        Verdict::Passed => "passed",
        Verdict::NotInjected => "missed",
        Verdict::NotRun => "unrun",
        Verdict::Failed(_) => "failed",
    }
}

fn plans(file: &str, outcomes: &[Outcome]) -> String {
    let mut text = String::from("<h2>Plans</h2>\n");
    for (index, outcome) in outcomes.iter().enumerate() {
        let verdict = &outcome.verdict;
        let open = if matches!(verdict, Verdict::Failed(_)) { " open" } else { "" };
        let told = match verdict {
            Verdict::Failed(failure) => words::failure(failure, &outcome.plan, file),
            Verdict::Passed | Verdict::NotInjected | Verdict::NotRun => String::new(),
        };
        let _ = writeln!(
            text,
            "<details id=\"plan-{index}\" class=\"{}\"{open}><summary>{}</summary>\n<pre>{}{}</pre>\n<pre>{}</pre></details>",
            class(outcome),
            escaped(&words::line(outcome)),
            escaped(&outcome.plan.to_string()),
            escaped(&words::record(outcome)),
            escaped(&told),
        );
    }
    text
}
