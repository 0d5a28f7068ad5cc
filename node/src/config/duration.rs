//! A duration as Go writes it (`time.ParseDuration`): `1h30m`, `1.5s`, `100us`.

use std::time::Duration;

/// Numbers, each with its unit. At most as long as Go can say, some 292 years; none below 0.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut nanos) = (text, 0_u128);
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, behind) = rest.split_at(rest.find(|c| !is_number(c))?);
        let (unit, behind) = behind.split_at(behind.find(is_number).unwrap_or(behind.len()));
        nanos = nanos.checked_add(times(number, nanos_of(unit)?)?)?;
        rest = behind;
    }
    let nanos = i64::try_from(nanos).ok().filter(|_| !text.is_empty())?;
    Some(Duration::from_nanos(nanos.unsigned_abs()))
}

fn nanos_of(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        _ => return None,
    })
}

/// So many units, as `2`, `2.5`, `.5` or `2.`.
fn times(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok().map(u128::from) };
    // More digits say nothing more.
    let fraction = fraction.get(..fraction.len().min(18))?;
    let part = digits(fraction)?.checked_mul(unit)? / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    digits(whole)?.checked_mul(unit)?.checked_add(part)
}
