//! Settings in a JSON body: an object of scalars, in the order in which they were written. Must
//! not know which keys there are.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Keys and values of `configs` and `confOverlay`. `null` is no settings; a number or a boolean
/// counts as its text, since clients write both `3` and `"3"`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Configs(pub Vec<(String, String)>);

impl Configs {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, String)> for Configs {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(pairs: T) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Serialize for Configs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Configs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConfigsVisitor)
    }
}

struct ConfigsVisitor;

impl<'de> Visitor<'de> for ConfigsVisitor {
    type Value = Configs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of settings, such as {\"arrow.compression.codec\": \"zstd\"}")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Configs, E> {
        Ok(Configs::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Configs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, Scalar(value))) = map.next_entry::<String, Scalar>()? {
            pairs.push((key, value));
        }
        Ok(Configs(pairs))
    }
}

/// One value, as text.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a boolean as a setting's value")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar(value.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn order_and_scalars_are_kept() {
        let text = r#"{"b": "x=1", "a": 3, "c": true, "d": -0.5}"#;
        let configs: Configs = serde_json::from_str(text).unwrap();
        let expected = [("b", "x=1"), ("a", "3"), ("c", "true"), ("d", "-0.5")];
        assert_eq!(
            configs,
            expected
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into_iter()
                .collect()
        );
        assert_eq!(
            serde_json::to_string(&configs).unwrap(),
            r#"{"b":"x=1","a":"3","c":"true","d":"-0.5"}"#
        );
        assert!(serde_json::from_str::<Configs>("null").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for text in [
            r#"{"a": null}"#,
            r#"{"a": []}"#,
            r#"{"a": {}}"#,
            "[]",
            "3",
            r#""a=b""#,
        ] {
            assert!(serde_json::from_str::<Configs>(text).is_err(), "{text}");
        }
    }
}
