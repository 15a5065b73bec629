//! Time zones: IANA names and fixed offsets, in the spelling that Arrow and the engines read.
//! Must not know how a session uses them.

use chrono_tz::{TZ_VARIANTS, Tz};

/// The farthest offset that anyone uses, as Java and Spark bound it.
const FARTHEST_HOURS: u32 = 18;

/// The canonical spelling of a zone: the IANA name in its own case, or `±HH:MM`. `None` when it
/// is neither.
pub(crate) fn read(text: &str) -> Option<String> {
    if text.eq_ignore_ascii_case("z") {
        return Some("UTC".to_owned());
    }
    offset(text).or_else(|| iana(text).map(|zone| zone.name().to_owned()))
}

fn iana(text: &str) -> Option<Tz> {
    text.parse().ok().or_else(|| {
        TZ_VARIANTS
            .iter()
            .copied()
            .find(|zone| zone.name().eq_ignore_ascii_case(text))
    })
}

/// `+8`, `-05:30`, `+0530`, also after `UTC` or `GMT`. The sign is that of ISO 8601: east is plus.
fn offset(text: &str) -> Option<String> {
    let bare = ["utc", "gmt", "ut"].iter().find_map(|prefix| {
        let head = text.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix)
            .then(|| &text[prefix.len()..])
    });
    let bare = bare.unwrap_or(text);
    let (sign, digits) = match bare.split_at_checked(1)? {
        (sign @ ("+" | "-"), digits) => (sign, digits),
        _ => return None,
    };
    let (hours, minutes) = match (digits.split_once(':'), digits.len()) {
        (Some(parts), _) => parts,
        (None, 4) => digits.split_at_checked(2)?,
        (None, _) => (digits, "00"),
    };
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(hours.len(), 1 | 2) || minutes.len() != 2 {
        return None;
    }
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
    let is_near = hours < FARTHEST_HOURS || (hours == FARTHEST_HOURS && minutes == 0);
    (is_near && minutes < 60).then(|| format!("{sign}{hours:02}:{minutes:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (text, want) in [
            ("UTC", Some("UTC")),
            ("utc", Some("UTC")),
            ("Z", Some("UTC")),
            ("GMT", Some("GMT")),
            ("Europe/Berlin", Some("Europe/Berlin")),
            ("asia/kathmandu", Some("Asia/Kathmandu")),
            ("+08:00", Some("+08:00")),
            ("+8", Some("+08:00")),
            ("-0530", Some("-05:30")),
            ("GMT+8", Some("+08:00")),
            ("UTC-03:30", Some("-03:30")),
            ("gmt+0", Some("+00:00")),
            ("+18:00", Some("+18:00")),
            ("Etc/GMT+8", Some("Etc/GMT+8")),
            ("+18:30", None),
            ("+19", None),
            ("+08:60", None),
            ("+", None),
            ("UTC+", None),
            ("+8:0", None),
            ("+é8", None),
            ("é", None),
            ("", None),
            ("Mars/Olympus", None),
            ("Europe/Berlin'; DROP", None),
        ] {
            assert_eq!(read(text).as_deref(), want, "{text:?}");
        }
    }
}
