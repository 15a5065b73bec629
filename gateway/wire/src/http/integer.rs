//! Integers in JSON bodies. JSON does not tell `3` from `3.0`, and JSON Schema calls both integers,
//! so both are taken; a fraction or a number out of range is refused.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{self, Unexpected, Visitor};

/// Reads an integer, or nothing for `null`. For `deserialize_with`, together with `default`.
pub(super) fn optional<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<i64> + TryFrom<u64>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(IntegerVisitor(PhantomData))
}

struct IntegerVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i64> + TryFrom<u64>> Visitor<'_> for IntegerVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer in range, or null")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        T::try_from(value)
            .map(Some)
            .map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        T::try_from(value)
            .map(Some)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        // Beyond 2^53 a float no longer says which integer is meant.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() != 0.0 || value.abs() > EXACT {
            return Err(E::invalid_value(Unexpected::Float(value), &self));
        }
        self.visit_i64(value as i64)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read<T: TryFrom<i64> + TryFrom<u64>>(text: &str) -> Option<Option<T>> {
        optional(&mut serde_json::Deserializer::from_str(text)).ok()
    }

    #[test]
    fn integers_in_any_spelling() {
        assert_eq!(read::<u64>("18446744073709551615"), Some(Some(u64::MAX)));
        assert_eq!(read::<i64>("-9223372036854775808"), Some(Some(i64::MIN)));
        assert_eq!(read::<u64>("3.0"), Some(Some(3)));
        assert_eq!(read::<i64>("-1e3"), Some(Some(-1000)));
        assert_eq!(read::<u64>("-0.0"), Some(Some(0)));
        assert_eq!(read::<u64>("null"), Some(None));
    }

    #[test]
    fn the_rest_is_refused() {
        for text in [
            "-1",
            "0.5",
            "1e300",
            "\"3\"",
            "true",
            "[]",
            "18446744073709551616",
        ] {
            assert_eq!(read::<u64>(text), None, "{text}");
        }
        assert_eq!(read::<i64>("9223372036854775808"), None);
    }
}
