//! Arrow types in the words of JDBC: `java.sql.Types` codes, names, sizes.
//!
//! Owns that table. Must not know catalogs.

use arrow_schema::{DataType, TimeUnit};

/// A type as `DatabaseMetaData.getColumns` describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JdbcType {
    /// The constant of `java.sql.Types`.
    pub(super) code: i32,
    /// The name in DataFusion's SQL.
    pub(super) name: String,
    /// Digits, or characters, at most.
    pub(super) size: Option<i32>,
    /// Digits after the point, or of fractional seconds.
    pub(super) digits: Option<i32>,
    /// The base in which `size` counts, for numbers.
    pub(super) radix: Option<i32>,
}

impl JdbcType {
    fn new(code: i32, name: &str) -> Self {
        Self {
            code,
            name: name.to_owned(),
            size: None,
            digits: None,
            radix: None,
        }
    }

    fn sized(mut self, size: i32) -> Self {
        self.size = Some(size);
        self
    }

    fn number(mut self, size: i32, digits: i32, radix: i32) -> Self {
        (self.size, self.digits, self.radix) = (Some(size), Some(digits), Some(radix));
        self
    }

    fn fraction(mut self, unit: &TimeUnit, whole: i32) -> Self {
        let digits = match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        self.size = Some(if digits == 0 {
            whole
        } else {
            whole + 1 + digits
        });
        self.digits = Some(digits);
        self
    }

    /// The names under which SQL knows types, for `getTypeInfo`.
    pub(super) fn all() -> Vec<Self> {
        use DataType as T;
        let timestamp =
            |zone: Option<&str>| T::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
        [
            T::Boolean,
            T::Int8,
            T::Int16,
            T::Int32,
            T::Int64,
            T::Float32,
            T::Float64,
            T::Decimal128(38, 10),
            T::Utf8,
            T::Binary,
            T::Date32,
            T::Time64(TimeUnit::Nanosecond),
            timestamp(None),
            timestamp(Some("UTC")),
        ]
        .iter()
        .map(Self::of)
        .collect()
    }

    /// What JDBC has for an arrow type.
    pub(super) fn of(data_type: &DataType) -> Self {
        use DataType as T;
        match data_type {
            T::Null => Self::new(0, "NULL"),
            T::Boolean => Self::new(16, "BOOLEAN").sized(1),
            T::Int8 => Self::new(-6, "TINYINT").number(3, 0, 10),
            T::Int16 => Self::new(5, "SMALLINT").number(5, 0, 10),
            T::Int32 => Self::new(4, "INT").number(10, 0, 10),
            T::Int64 => Self::new(-5, "BIGINT").number(19, 0, 10),
            // JDBC has no unsigned types: the next larger code holds all values.
            T::UInt8 => Self::new(5, "TINYINT UNSIGNED").number(3, 0, 10),
            T::UInt16 => Self::new(4, "SMALLINT UNSIGNED").number(5, 0, 10),
            T::UInt32 => Self::new(-5, "INT UNSIGNED").number(10, 0, 10),
            T::UInt64 => Self::new(3, "BIGINT UNSIGNED").number(20, 0, 10),
            T::Float16 | T::Float32 => Self::new(7, "REAL").number(24, 0, 2),
            T::Float64 => Self::new(8, "DOUBLE").number(53, 0, 2),
            T::Decimal32(p, s) | T::Decimal64(p, s) | T::Decimal128(p, s) | T::Decimal256(p, s) => {
                Self::new(3, "DECIMAL").number((*p).into(), (*s).into(), 10)
            }
            T::Utf8 | T::LargeUtf8 | T::Utf8View => Self::new(12, "VARCHAR").sized(i32::MAX),
            T::Binary | T::LargeBinary | T::BinaryView => Self::new(-3, "BYTEA").sized(i32::MAX),
            T::FixedSizeBinary(size) => Self::new(-2, "BYTEA").sized(*size),
            T::Date32 | T::Date64 => Self::new(91, "DATE").sized(10),
            T::Time32(unit) | T::Time64(unit) => Self::new(92, "TIME").fraction(unit, 8),
            T::Timestamp(unit, None) => Self::new(93, "TIMESTAMP").fraction(unit, 19),
            T::Timestamp(unit, Some(_)) => {
                Self::new(2014, "TIMESTAMP WITH TIME ZONE").fraction(unit, 25)
            }
            T::Interval(_) | T::Duration(_) => Self::new(1111, "INTERVAL"),
            T::List(_)
            | T::LargeList(_)
            | T::ListView(_)
            | T::LargeListView(_)
            | T::FixedSizeList(_, _) => Self::new(2003, "ARRAY"),
            T::Struct(_) => Self::new(2002, "STRUCT"),
            T::Map(_, _) => Self::new(2000, "MAP"),
            T::Union(_, _) => Self::new(1111, "UNION"),
            T::Dictionary(_, value) => Self::of(value),
            T::RunEndEncoded(_, values) => Self::of(values.data_type()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_jdbc_codes() {
        let dictionary = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
        for (data_type, code, name, size, digits) in [
            (DataType::Int64, -5, "BIGINT", Some(19), Some(0)),
            (DataType::Decimal128(15, 2), 3, "DECIMAL", Some(15), Some(2)),
            (DataType::Utf8View, 12, "VARCHAR", Some(i32::MAX), None),
            (dictionary, 12, "VARCHAR", Some(i32::MAX), None),
            (
                DataType::Timestamp(TimeUnit::Microsecond, None),
                93,
                "TIMESTAMP",
                Some(26),
                Some(6),
            ),
            (
                DataType::Time32(TimeUnit::Second),
                92,
                "TIME",
                Some(8),
                Some(0),
            ),
        ] {
            let found = JdbcType::of(&data_type);
            assert_eq!(
                (found.code, found.name.as_str()),
                (code, name),
                "{data_type}"
            );
            assert_eq!((found.size, found.digits), (size, digits), "{data_type}");
        }
    }
}
