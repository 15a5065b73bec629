//! The types that values have: how each is read from text and written back in one canonical
//! spelling. Must not know which key has which type, nor what a session is.

use std::fmt;
use std::time::Duration;

use sluice_ipc::Codec;

use super::{duration, zone};

/// How the HiveServer2 front end sends rows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ResultFormat {
    /// Rows as Thrift columns, which every driver reads.
    #[default]
    Thrift,
    /// Arrow batches inside Thrift.
    Arrow,
}

impl ResultFormat {
    /// The name that the setting uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thrift => "thrift",
            Self::Arrow => "arrow",
        }
    }
}

/// A codec as it is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CodecWish {
    Fixed(Codec),
    /// The gateway chooses. For now that is zstd at the session's level.
    Auto,
}

impl CodecWish {
    /// The codec that batches are encoded with.
    pub(crate) fn codec(self) -> Codec {
        match self {
            Self::Fixed(codec) => codec,
            Self::Auto => Codec::Zstd,
        }
    }
}

/// A type of value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Codec,
    /// A zstd level: -7 to 22, not 0.
    Level,
    /// Rows in a batch; zero and less mean the administrator's ceiling.
    BatchRows,
    /// A size, at least one byte.
    Bytes,
    /// A bound on rows; zero means none.
    RowBound,
    Format,
    /// Zero means no end.
    Duration,
    TimeZone,
    Name,
}

/// A value that was checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Codec(CodecWish),
    Level(i32),
    BatchRows(i64),
    Bytes(u64),
    RowBound(u64),
    Format(ResultFormat),
    Duration(Duration),
    TimeZone(String),
    Name(String),
}

/// What a number without a unit means where a duration is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PlainUnit {
    Seconds,
    Milliseconds,
}

impl Kind {
    /// Reads `text`. `None` means that it is not of this type; the caller names what is allowed.
    pub(crate) fn read(self, text: &str, plain: PlainUnit) -> Option<Value> {
        let text = text.trim();
        match self {
            Self::Codec => codec(text).map(Value::Codec),
            Self::Level => {
                let level = text.parse().ok()?;
                (level != 0 && (-7..=22).contains(&level)).then_some(Value::Level(level))
            }
            Self::BatchRows => text.parse().ok().map(Value::BatchRows),
            Self::Bytes => bytes(text).filter(|bytes| *bytes > 0).map(Value::Bytes),
            Self::RowBound => text.parse().ok().map(Value::RowBound),
            Self::Format => match text.to_ascii_lowercase().as_str() {
                "thrift" => Some(Value::Format(ResultFormat::Thrift)),
                "arrow" => Some(Value::Format(ResultFormat::Arrow)),
                _ => None,
            },
            Self::Duration => duration::read(text, plain).map(Value::Duration),
            Self::TimeZone => zone::read(text).map(Value::TimeZone),
            Self::Name => (!text.is_empty()).then(|| Value::Name(text.to_owned())),
        }
    }

    /// Whether a ceiling makes sense for values of this type.
    pub(crate) fn has_order(self) -> bool {
        match self {
            Self::Level | Self::BatchRows | Self::Bytes | Self::RowBound | Self::Duration => true,
            Self::Codec | Self::Format | Self::TimeZone | Self::Name => false,
        }
    }
}

impl Value {
    /// Whether the value is above `ceiling`. "No bound" is above every bound.
    pub(crate) fn exceeds(&self, ceiling: &Self) -> bool {
        match (self, ceiling) {
            (Self::Level(value), Self::Level(most)) => value > most,
            // Zero and less ask for the ceiling itself.
            (Self::BatchRows(value), Self::BatchRows(most)) => value > most,
            (Self::Bytes(value), Self::Bytes(most)) => value > most,
            (Self::RowBound(value), Self::RowBound(most)) => *value == 0 || value > most,
            (Self::Duration(value), Self::Duration(most)) => value.is_zero() || value > most,
            _ => false,
        }
    }

    /// Whether the value bounds anything, as a ceiling has to.
    pub(crate) fn is_bound(&self) -> bool {
        match self {
            Self::BatchRows(rows) => *rows > 0,
            Self::RowBound(rows) => *rows > 0,
            Self::Duration(duration) => !duration.is_zero(),
            _ => true,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec(CodecWish::Fixed(codec)) => f.write_str(codec.name()),
            Self::Codec(CodecWish::Auto) => f.write_str("auto"),
            Self::Level(level) => write!(f, "{level}"),
            Self::BatchRows(rows) => write!(f, "{rows}"),
            Self::Bytes(bytes) => write_bytes(f, *bytes),
            Self::RowBound(rows) => write!(f, "{rows}"),
            Self::Format(format) => f.write_str(format.name()),
            Self::Duration(duration) => duration::write(f, *duration),
            Self::TimeZone(text) | Self::Name(text) => f.write_str(text),
        }
    }
}

fn codec(text: &str) -> Option<CodecWish> {
    Some(match text.to_ascii_lowercase().as_str() {
        "none" => CodecWish::Fixed(Codec::None),
        "lz4" => CodecWish::Fixed(Codec::Lz4),
        "zstd" => CodecWish::Fixed(Codec::Zstd),
        "auto" => CodecWish::Auto,
        _ => return None,
    })
}

/// All units are powers of 1024, whichever way they are written, as in Spark and the JVM.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >> shift > 0 && bytes.trailing_zeros() >= shift {
            return write!(f, "{}{unit}", bytes >> shift);
        }
    }
    write!(f, "{bytes}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn canonical(kind: Kind, text: &str) -> Option<String> {
        kind.read(text, PlainUnit::Seconds)
            .map(|value| value.to_string())
    }

    #[test]
    fn values_have_one_spelling() {
        for (kind, text, want) in [
            (Kind::Codec, "ZSTD", Some("zstd")),
            (Kind::Codec, " lz4 ", Some("lz4")),
            (Kind::Codec, "auto", Some("auto")),
            (Kind::Codec, "gzip", None),
            (Kind::Codec, "", None),
            (Kind::Level, "22", Some("22")),
            (Kind::Level, "-7", Some("-7")),
            (Kind::Level, "+3", Some("3")),
            (Kind::Level, "0", None),
            (Kind::Level, "23", None),
            (Kind::Level, "-8", None),
            (Kind::Level, "3.0", None),
            (Kind::Level, "abc", None),
            (Kind::BatchRows, "-1", Some("-1")),
            (Kind::BatchRows, "65536", Some("65536")),
            (Kind::BatchRows, "1e3", None),
            (Kind::Bytes, "8MiB", Some("8MiB")),
            (Kind::Bytes, "64m", Some("64MiB")),
            (Kind::Bytes, "1024 kb", Some("1MiB")),
            (Kind::Bytes, "1g", Some("1GiB")),
            (Kind::Bytes, "1000", Some("1000")),
            (Kind::Bytes, "0", None),
            (Kind::Bytes, "-1", None),
            (Kind::Bytes, "MiB", None),
            (Kind::Bytes, "8 Mbit", None),
            (Kind::Bytes, "99999999999999999999", None),
            (Kind::Bytes, "18446744073709551615k", None),
            (Kind::RowBound, "0", Some("0")),
            (Kind::RowBound, "-1", None),
            (Kind::Format, "Arrow", Some("arrow")),
            (Kind::Format, "csv", None),
            (Kind::Name, "spark", Some("spark")),
            (Kind::Name, "", None),
        ] {
            assert_eq!(canonical(kind, text).as_deref(), want, "{kind:?} {text:?}");
        }
    }

    #[test]
    fn no_bound_is_above_every_ceiling() {
        let (one, none) = (Value::RowBound(1), Value::RowBound(0));
        assert!(none.exceeds(&one) && !one.exceeds(&one) && Value::RowBound(2).exceeds(&one));
        assert!(!Value::BatchRows(0).exceeds(&Value::BatchRows(10)));
        assert!(Value::Duration(Duration::ZERO).exceeds(&Value::Duration(Duration::from_secs(1))));
        assert!(Value::Level(10).exceeds(&Value::Level(9)));
    }
}
