//! Many measurements in a few characters.

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// `median (min–max)`, with as many digits as the median bears.
pub fn spread(values: Vec<f64>) -> String {
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    let middle = median(values);
    let digits = usize::from(middle < 100.0) + usize::from(middle < 10.0);
    match (least, most) {
        (Some(least), Some(most)) => format!("{middle:.digits$} ({least:.digits$}–{most:.digits$})"),
        _ => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_range_are_shown_with_the_digits_that_they_bear() {
        for (values, expected) in [
            (vec![], "none"),
            (vec![3.0], "3.00 (3.00–3.00)"),
            (vec![30.0, 10.0, 20.0], "20.0 (10.0–30.0)"),
            (vec![1.0, 250.0, 120.0], "120 (1–250)"),
        ] {
            assert_eq!(spread(values), expected);
        }
    }
}
