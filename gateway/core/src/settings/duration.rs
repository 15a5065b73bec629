//! Durations as people and other systems write them: `30s`, `5m`, `PT30S`, a plain number. Must
//! not know what they are used for.

use std::fmt;
use std::time::Duration;

use super::value::PlainUnit;

/// The longest duration that is taken: about 136 years, far from any overflow of a deadline.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// Reads a duration; `None` when it is not one.
pub(crate) fn read(text: &str, plain: PlainUnit) -> Option<Duration> {
    let lower = text.to_ascii_lowercase();
    let duration = match lower.strip_prefix('p') {
        Some(rest) => iso(rest)?,
        None => with_unit(&lower, plain)?,
    };
    (duration <= LONGEST).then_some(duration)
}

/// Writes whole seconds as such, and milliseconds where there are any.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, duration: Duration) -> fmt::Result {
    if duration.is_zero() {
        f.write_str("0")
    } else if duration.subsec_nanos() == 0 {
        write!(f, "{}s", duration.as_secs())
    } else {
        write!(f, "{}ms", duration.as_millis())
    }
}

fn with_unit(text: &str, plain: PlainUnit) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let milliseconds = match (unit.trim_start(), plain) {
        ("", PlainUnit::Milliseconds) | ("ms" | "millis" | "milliseconds", _) => 1,
        ("", PlainUnit::Seconds) | ("s" | "sec" | "second" | "seconds", _) => 1_000,
        ("m" | "min" | "minute" | "minutes", _) => 60_000,
        ("h" | "hour" | "hours", _) => 3_600_000,
        ("d" | "day" | "days", _) => 86_400_000,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(milliseconds)
        .map(Duration::from_millis)
}

/// ISO 8601 as `java.time.Duration` has it: `P1DT2H3M4.5S`, without signs, days of 24 hours.
fn iso(text: &str) -> Option<Duration> {
    let (days, time) = match text.split_once('t') {
        Some((days, time)) if !time.is_empty() => (days, time),
        Some(_) => return None,
        None => (text, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    let units = [
        (days, &[('d', 86_400)][..]),
        (time, &[('h', 3_600), ('m', 60), ('s', 1)][..]),
    ];
    for (mut part, allowed) in units {
        for (letter, seconds) in allowed {
            if let Some((number, rest)) = part.split_once(*letter) {
                total =
                    total.checked_add(decimal(number, *letter == 's')?.checked_mul(*seconds)?)?;
                part = rest;
            }
        }
        if !part.is_empty() {
            return None;
        }
    }
    Some(total)
}

/// A number of seconds, with up to nine digits of fraction where those are allowed.
fn decimal(text: &str, fraction_allowed: bool) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    if text.contains('.') && (!fraction_allowed || fraction.is_empty()) {
        return None;
    }
    let nanoseconds = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(whole.parse().ok()?, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (text, milliseconds) in [
            ("0", Some(0)),
            ("30", Some(30_000)),
            ("30s", Some(30_000)),
            ("30 s", Some(30_000)),
            ("250ms", Some(250)),
            ("5M", Some(300_000)),
            ("5 min", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("2d", Some(172_800_000)),
            ("PT30S", Some(30_000)),
            ("pt1.5s", Some(1_500)),
            ("PT1H30M", Some(5_400_000)),
            ("P1D", Some(86_400_000)),
            ("P1DT1S", Some(86_401_000)),
            ("", None),
            ("P", None),
            ("PT", None),
            ("P1", None),
            ("P1M", None),
            ("PT1S2M", None),
            ("PT1.5M", None),
            ("PT-5S", None),
            ("PT.5S", None),
            ("-5s", None),
            ("1.5s", None),
            ("5 parsecs", None),
            ("99999999999999999999", None),
            ("9999999999d", None),
        ] {
            let read = read(text, PlainUnit::Seconds).map(|duration| duration.as_millis());
            assert_eq!(read, milliseconds, "{text:?}");
        }
        assert_eq!(
            read("1500", PlainUnit::Milliseconds),
            Some(Duration::from_millis(1_500))
        );
        assert_eq!(
            read("2s", PlainUnit::Milliseconds),
            Some(Duration::from_secs(2))
        );
    }
}
