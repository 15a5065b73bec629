//! Values as a person writes them: sizes, durations, addresses, settings. Must not know keys.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// Bytes: a number, or `64KiB`, `32MiB`, `1GiB`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Size(pub(super) u64);

/// A time: `500ms`, `10s`, `5m`, `2h`, `1d`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Span(pub(super) Duration);

/// An address to listen on: `127.0.0.1:8443`, `[::1]:8443`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Address(pub(super) SocketAddr);

/// The value of a SQL setting: whatever it is in TOML, it is text in SQL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Setting(pub(super) String);

const SIZES: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const SPANS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// No time in a configuration is longer: a year.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

impl Size {
    pub(super) const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let (_, factor) = SIZES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        number.checked_mul(*factor).map(Self)
    }
}

impl Span {
    pub(super) const fn seconds(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let (_, factor) = SPANS.iter().find(|(name, _)| *name == unit)?;
        let span = Duration::from_millis(number.checked_mul(*factor)?);
        (span <= LONGEST).then_some(Self(span))
    }
}

/// A number and its unit.
fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

fn largest_unit(amount: u64, units: &[(&'static str, u64)]) -> (u64, &'static str) {
    let mut fitting = units
        .iter()
        .filter(|(_, factor)| amount > 0 && amount.is_multiple_of(*factor));
    let (unit, factor) = fitting
        .by_ref()
        .max_by_key(|(_, factor)| *factor)
        .copied()
        .unwrap_or(("", 1));
    (amount / factor, unit)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match largest_unit(self.0, &SIZES) {
            (number, "B" | "") => write!(f, "{number}"),
            (number, unit) => write!(f, "{number}{unit}"),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        match largest_unit(milliseconds, &SPANS) {
            (number, "") => write!(f, "{number}s"),
            (number, unit) => write!(f, "{number}{unit}"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Takes text that `parse` understands, and numbers where `number` says what they are.
struct Text<T> {
    allowed: &'static str,
    parse: fn(&str) -> Option<T>,
    number: Option<fn(u64) -> T>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.allowed)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        match self.number {
            Some(make) => Ok(make(number)),
            None => Err(E::invalid_type(de::Unexpected::Unsigned(number), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let allowed = "a size such as 64KiB, 32MiB or 1GiB, or a number of bytes";
        deserializer.deserialize_any(Text {
            allowed,
            parse: Self::parse,
            number: Some(Self),
        })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let allowed = "a time such as 500ms, 10s, 5m, 2h or 1d";
        deserializer.deserialize_any(Text {
            allowed,
            parse: Self::parse,
            number: None,
        })
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let allowed =
            "an IP address and a port, such as 127.0.0.1:8443, [::1]:8443 or 0.0.0.0:8443";
        let parse = |text: &str| text.parse().ok().map(Self);
        deserializer.deserialize_any(Text {
            allowed,
            parse,
            number: None,
        })
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyScalar)
    }
}

struct AnyScalar;

impl Visitor<'_> for AnyScalar {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, true or false")
    }

    fn visit_str<E>(self, text: &str) -> Result<Setting, E> {
        Ok(Setting(text.to_owned()))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Setting, E> {
        Ok(Setting(flag.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Setting, E> {
        Ok(Setting(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Setting, E> {
        Ok(Setting(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Setting, E> {
        Ok(Setting(number.to_string()))
    }
}

macro_rules! serialize_as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

serialize_as_text!(Size, Span, Address, Setting);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_and_written_alike() {
        for text in ["0", "1", "1000", "64KiB", "32MiB", "3GiB"] {
            assert_eq!(
                Size::parse(&format!(
                    "{text}{}",
                    if text.ends_with('B') { "" } else { "B" }
                ))
                .unwrap()
                .to_string(),
                text
            );
        }
        for text in ["0s", "1ms", "1500ms", "90s", "5m", "36h", "2d"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Span::parse("60s").unwrap(), Span::parse("1m").unwrap());
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["", "MiB", "1.5MiB", "-1MiB", "1XB", "99999999999GiB"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
        for text in ["", "s", "10", "1y", "-1s", "9999999999999d", "400d"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }
}
