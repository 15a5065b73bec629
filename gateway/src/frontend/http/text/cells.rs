//! The values of one column as text, one at a time: JSON values, and fields of CSV. Every Arrow
//! type has a form here. Must not know rows, nor what is written around a value.
//!
//! | Arrow | JSON | CSV |
//! |---|---|---|
//! | integers | number, all digits | the same |
//! | floats | shortest number that reads back equal; `"NaN"`, `"Infinity"`, `"-Infinity"` | the same, unquoted |
//! | decimals | string, all digits | the same, unquoted |
//! | dates, times, timestamps, durations, intervals | string, ISO 8601 | the same, unquoted |
//! | strings | string | quoted where RFC 4180 needs it, and when empty |
//! | binary | string, base64 | hexadecimal |
//! | lists | array | JSON text |
//! | structs, maps with string keys | object | JSON text |
//! | other maps | array of `[key, value]` | JSON text |
//! | unions, dictionaries, runs | the value itself | the value itself |
//! | NULL | `null` | empty field |

use std::fmt::{Display, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, PrimitiveArray};
use arrow_cast::display::{ArrayFormatter, DurationFormat, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{intervals, nested};

/// How arrow's own formatter writes what is left to it.
const FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_display_error(false)
    .with_duration_format(DurationFormat::ISO8601);

/// A value that has no text, such as a date beyond the calendar.
#[derive(Debug)]
pub(in super::super) struct Unprintable(pub(in super::super) String);

impl From<ArrowError> for Unprintable {
    fn from(error: ArrowError) -> Self {
        Self(error.to_string())
    }
}

pub(in super::super) type Printed = Result<(), Unprintable>;

/// The values of a column.
pub(in super::super) trait Cells {
    /// Whether the value is NULL.
    fn is_null(&self, row: usize) -> bool;

    /// Appends the value, which is not NULL, as a JSON value.
    fn value_json(&self, row: usize, out: &mut String) -> Printed;

    /// Appends the value, which is not NULL, as a field of CSV. Nested values are JSON text.
    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        let mut json = String::new();
        self.value_json(row, &mut json)?;
        csv_text(&json, out);
        Ok(())
    }

    /// Appends the value as a JSON value.
    fn json(&self, row: usize, out: &mut String) -> Printed {
        if self.is_null(row) {
            out.push_str("null");
            return Ok(());
        }
        self.value_json(row, out)
    }

    /// Appends the value as a field of CSV; nothing for NULL.
    fn csv(&self, row: usize, out: &mut String) -> Printed {
        if self.is_null(row) {
            Ok(())
        } else {
            self.value_csv(row, out)
        }
    }
}

pub(in super::super) type BoxCells<'a> = Box<dyn Cells + 'a>;

/// The values of `array`.
pub(in super::super) fn cells(array: &dyn Array) -> Result<BoxCells<'_>, Unprintable> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(Nulls),
        DataType::Boolean => bare(array.as_boolean(), |value, out| push(out, value)),
        DataType::Int8 => integers::<Int8Type>(array),
        DataType::Int16 => integers::<Int16Type>(array),
        DataType::Int32 => integers::<Int32Type>(array),
        DataType::Int64 => integers::<Int64Type>(array),
        DataType::UInt8 => integers::<UInt8Type>(array),
        DataType::UInt16 => integers::<UInt16Type>(array),
        DataType::UInt32 => integers::<UInt32Type>(array),
        DataType::UInt64 => integers::<UInt64Type>(array),
        DataType::Float16 => Box::new(Floats(array.as_primitive::<Float16Type>())),
        DataType::Float32 => Box::new(Floats(array.as_primitive::<Float32Type>())),
        DataType::Float64 => Box::new(Floats(array.as_primitive::<Float64Type>())),
        DataType::Utf8 => Box::new(Strings(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(Strings(array.as_string::<i64>())),
        DataType::Utf8View => Box::new(Strings(array.as_string_view())),
        DataType::Binary => Box::new(Binaries(array.as_binary::<i32>())),
        DataType::LargeBinary => Box::new(Binaries(array.as_binary::<i64>())),
        DataType::BinaryView => Box::new(Binaries(array.as_binary_view())),
        DataType::FixedSizeBinary(_) => Box::new(Binaries(array.as_fixed_size_binary())),
        DataType::Interval(unit) => intervals::cells(array, *unit),
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Box::new(Formatted {
            array,
            format: ArrayFormatter::try_new(array, &FORMAT)?,
        }),
        _ => nested::cells(array)?,
    })
}

/// Appends `text` as a JSON string.
pub(in super::super) fn json_text(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            byte => push(out, format_args!("\\u{byte:04x}")),
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Appends `text` as a field of CSV, quoted where RFC 4180 needs it. An empty text is quoted too:
/// an empty field is NULL.
pub(super) fn csv_text(text: &str, out: &mut String) {
    let special = |byte| matches!(byte, b'"' | b',' | b'\r' | b'\n');
    if !text.is_empty() && !text.bytes().any(special) {
        return out.push_str(text);
    }
    out.push('"');
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            out.push_str("\"\"");
        }
        out.push_str(part);
    }
    out.push('"');
}

/// Appends what is shown; a string takes everything.
pub(super) fn push(out: &mut String, shown: impl Display) {
    let _ = write!(out, "{shown}");
}

struct Nulls;

impl Cells for Nulls {
    fn is_null(&self, _: usize) -> bool {
        true
    }

    fn value_json(&self, _: usize, out: &mut String) -> Printed {
        out.push_str("null");
        Ok(())
    }
}

/// Values whose text is the same in JSON and in CSV, and needs no quotes.
struct Bare<A, F> {
    array: A,
    write: F,
}

impl<A: ArrayAccessor, F: Fn(A::Item, &mut String)> Cells for Bare<A, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        (self.write)(self.array.value(row), out);
        Ok(())
    }

    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        self.value_json(row, out)
    }
}

fn bare<'a, A: ArrayAccessor + 'a>(
    array: A,
    write: impl Fn(A::Item, &mut String) + 'a,
) -> BoxCells<'a> {
    Box::new(Bare { array, write })
}

fn integers<'a, T: ArrowPrimitiveType<Native: Display>>(array: &'a dyn Array) -> BoxCells<'a> {
    bare(array.as_primitive::<T>(), |value, out| push(out, value))
}

/// Floats by their width, which decides what the shortest text is.
trait FloatType: ArrowPrimitiveType {
    /// The shortest text that reads back equal; for finite values.
    fn shortest(value: Self::Native) -> serde_json::Result<String>;
    /// The same value, wide enough to be looked at.
    fn widened(value: Self::Native) -> f64;
}

impl FloatType for Float16Type {
    fn shortest(value: Self::Native) -> serde_json::Result<String> {
        serde_json::to_string(&value.to_f32())
    }

    fn widened(value: Self::Native) -> f64 {
        value.to_f64()
    }
}

impl FloatType for Float32Type {
    fn shortest(value: f32) -> serde_json::Result<String> {
        serde_json::to_string(&value)
    }

    fn widened(value: f32) -> f64 {
        value.into()
    }
}

impl FloatType for Float64Type {
    fn shortest(value: f64) -> serde_json::Result<String> {
        serde_json::to_string(&value)
    }

    fn widened(value: f64) -> f64 {
        value
    }
}

struct Floats<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T: FloatType> Floats<'_, T> {
    fn write(&self, row: usize, quote: &str, out: &mut String) -> Printed {
        let value = self.0.value(row);
        let special = match T::widened(value) {
            wide if wide.is_nan() => "NaN",
            wide if wide == f64::INFINITY => "Infinity",
            wide if wide == f64::NEG_INFINITY => "-Infinity",
            _ => {
                let text = T::shortest(value).map_err(|error| Unprintable(error.to_string()))?;
                out.push_str(&text);
                return Ok(());
            }
        };
        push(out, format_args!("{quote}{special}{quote}"));
        Ok(())
    }
}

impl<T: FloatType> Cells for Floats<'_, T> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        self.write(row, "\"", out)
    }

    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        self.write(row, "", out)
    }
}

struct Strings<A>(A);

impl<'a, A: ArrayAccessor<Item = &'a str>> Cells for Strings<A> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        json_text(self.0.value(row), out);
        Ok(())
    }

    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        csv_text(self.0.value(row), out);
        Ok(())
    }
}

struct Binaries<A>(A);

impl<'a, A: ArrayAccessor<Item = &'a [u8]>> Cells for Binaries<A> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        out.push('"');
        STANDARD.encode_string(self.0.value(row), out);
        out.push('"');
        Ok(())
    }

    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        let bytes = self.0.value(row);
        if bytes.is_empty() {
            out.push_str("\"\"");
        }
        bytes
            .iter()
            .for_each(|byte| push(out, format_args!("{byte:02x}")));
        Ok(())
    }
}

/// What arrow's formatter writes as ISO 8601 or with all digits: no character in it needs an
/// escape.
struct Formatted<'a> {
    array: &'a dyn Array,
    format: ArrayFormatter<'a>,
}

impl Cells for Formatted<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        out.push('"');
        self.format.value(row).write(out)?;
        out.push('"');
        Ok(())
    }

    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        Ok(self.format.value(row).write(out)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow_array::*;

    use super::*;

    fn shown(array: &dyn Array) -> Vec<(String, String)> {
        let cells = cells(array).unwrap();
        (0..array.len())
            .map(|row| {
                let (mut json, mut csv) = (String::new(), String::new());
                cells.json(row, &mut json).unwrap();
                cells.csv(row, &mut csv).unwrap();
                serde_json::from_str::<serde_json::Value>(&json).unwrap();
                (json, csv)
            })
            .collect()
    }

    fn check(array: &dyn Array, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(json, csv)| ((*json).to_owned(), (*csv).to_owned()))
            .collect();
        assert_eq!(shown(array), expected, "{}", array.data_type());
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let (least, most) = (i64::MIN.to_string(), i64::MAX.to_string());
        let array = Int64Array::from(vec![Some(i64::MIN), Some(i64::MAX), None]);
        check(&array, &[(&least, &least), (&most, &most), ("null", "")]);
        let most = u64::MAX.to_string();
        check(&UInt64Array::from(vec![u64::MAX]), &[(&most, &most)]);
        check(&Int8Array::from(vec![-128]), &[("-128", "-128")]);
        check(
            &BooleanArray::from(vec![true, false]),
            &[("true", "true"), ("false", "false")],
        );
        check(&NullArray::new(1), &[("null", "")]);
    }

    #[test]
    fn floats_are_short_and_special_ones_are_text() {
        let array = Float64Array::from(vec![0.1, -0.0, 1e300, f64::NAN, f64::INFINITY]);
        let special = [("\"NaN\"", "NaN"), ("\"Infinity\"", "Infinity")];
        let plain = [("0.1", "0.1"), ("-0.0", "-0.0"), ("1e+300", "1e+300")];
        check(&array, &[plain.as_slice(), &special].concat());
        let array = Float32Array::from(vec![0.1, f32::NEG_INFINITY]);
        check(&array, &[("0.1", "0.1"), ("\"-Infinity\"", "-Infinity")]);
    }

    #[test]
    fn decimals_are_exact() {
        let array = Decimal128Array::from(vec![12_345_678_901_234_567_890_123_456_789_i128, -5])
            .with_precision_and_scale(38, 2)
            .unwrap();
        let long = "123456789012345678901234567.89";
        check(
            &array,
            &[(&format!("\"{long}\""), long), ("\"-0.05\"", "-0.05")],
        );
        let array = Decimal256Array::from(vec![arrow_buffer_i256(7)]);
        check(
            &array.with_precision_and_scale(76, 10).unwrap(),
            &[("\"0.0000000007\"", "0.0000000007")],
        );
    }

    fn arrow_buffer_i256(value: i128) -> <types::Decimal256Type as ArrowPrimitiveType>::Native {
        <types::Decimal256Type as ArrowPrimitiveType>::Native::from_i128(value)
    }

    #[test]
    fn strings_are_escaped() {
        let array = StringArray::from(vec!["a", "", "a,b", "say \"x\"\n", "\u{1}\\é"]);
        let expected = [
            ("\"a\"", "a"),
            ("\"\"", "\"\""),
            ("\"a,b\"", "\"a,b\""),
            ("\"say \\\"x\\\"\\n\"", "\"say \"\"x\"\"\n\""),
            ("\"\\u0001\\\\é\"", "\u{1}\\é"),
        ];
        check(&array, &expected);
        check(
            &StringViewArray::from(vec!["a", "b,"]),
            &[("\"a\"", "a"), ("\"b,\"", "\"b,\"")],
        );
        check(&LargeStringArray::from(vec![None::<&str>]), &[("null", "")]);
    }

    #[test]
    fn bytes_are_base64_and_hexadecimal() {
        let array = BinaryArray::from(vec![Some(&b"\x00\xff"[..]), Some(b""), None]);
        check(
            &array,
            &[("\"AP8=\"", "00ff"), ("\"\"", "\"\""), ("null", "")],
        );
        let array = FixedSizeBinaryArray::try_from(vec![&[1_u8, 2][..]]).unwrap();
        check(&array, &[("\"AQI=\"", "0102")]);
        check(
            &BinaryViewArray::from(vec![&b"\x10"[..]]),
            &[("\"EA==\"", "10")],
        );
    }

    #[test]
    fn dates_and_times_are_iso() {
        let same = |text: &'static str| {
            let json: &'static str = Box::leak(format!("\"{text}\"").into_boxed_str());
            (json, text)
        };
        check(&Date32Array::from(vec![-1]), &[same("1969-12-31")]);
        check(
            &Time64MicrosecondArray::from(vec![1_500_000]),
            &[same("00:00:01.500")],
        );
        let array = TimestampMicrosecondArray::from(vec![1_670_433_335_000_000]);
        check(&array.clone(), &[same("2022-12-07T17:15:35")]);
        check(
            &array.with_timezone("+08:00"),
            &[same("2022-12-08T01:15:35+08:00")],
        );
        check(
            &DurationMillisecondArray::from(vec![1500]),
            &[same("PT1.5S")],
        );
    }

    #[test]
    fn a_date_beyond_the_calendar_is_an_error() {
        let array: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        let mut out = String::new();
        assert!(cells(&array).unwrap().json(0, &mut out).is_err());
    }
}
