//! Intervals as ISO 8601 durations. Must not know other types.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
};
use arrow_array::{Array, PrimitiveArray};
use arrow_schema::IntervalUnit;

use super::cells::{BoxCells, Cells, Printed, push};

/// ISO 8601 durations, each field with a sign of its own: months, days and nanoseconds do not
/// convert into each other.
pub(super) fn cells(array: &dyn Array, unit: IntervalUnit) -> BoxCells<'_> {
    match unit {
        IntervalUnit::YearMonth => {
            let array = array.as_primitive::<IntervalYearMonthType>();
            Box::new(Intervals(array, |months| (months, 0, 0)))
        }
        IntervalUnit::DayTime => {
            let array = array.as_primitive::<IntervalDayTimeType>();
            Box::new(Intervals(array, |value| {
                (0, value.days, i64::from(value.milliseconds) * 1_000_000)
            }))
        }
        IntervalUnit::MonthDayNano => {
            let array = array.as_primitive::<IntervalMonthDayNanoType>();
            Box::new(Intervals(array, |value| {
                (value.months, value.days, value.nanoseconds)
            }))
        }
    }
}

struct Intervals<'a, T: ArrowPrimitiveType>(
    &'a PrimitiveArray<T>,
    /// Months, days, nanoseconds.
    fn(T::Native) -> (i32, i32, i64),
);

impl<T: ArrowPrimitiveType> Cells for Intervals<'_, T> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        out.push('"');
        self.value_csv(row, out)?;
        out.push('"');
        Ok(())
    }

    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        let (months, days, nanos) = (self.1)(self.0.value(row));
        out.push('P');
        let start = out.len();
        for (amount, unit) in [(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')] {
            if amount != 0 {
                push(out, format_args!("{amount}{unit}"));
            }
        }
        if nanos != 0 || out.len() == start {
            clock(nanos, out);
        }
        Ok(())
    }
}

/// `T1H2M3.5S`; `T0S` for none.
fn clock(nanos: i64, out: &mut String) {
    const SECOND: u64 = 1_000_000_000;
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    let (seconds, fraction) = (total / SECOND, total % SECOND);
    out.push('T');
    for (amount, unit) in [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M')] {
        if amount != 0 {
            push(out, format_args!("{sign}{amount}{unit}"));
        }
    }
    let second = seconds % 60;
    if fraction != 0 {
        let digits = format!("{fraction:09}");
        push(
            out,
            format_args!("{sign}{second}.{}S", digits.trim_end_matches('0')),
        );
    } else if second != 0 || total == 0 {
        push(out, format_args!("{sign}{second}S"));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_array::types::{IntervalDayTime, IntervalMonthDayNano};
    use arrow_array::{IntervalDayTimeArray, IntervalMonthDayNanoArray, IntervalYearMonthArray};

    use super::super::cells::cells;
    use super::*;

    fn shown(array: &dyn Array) -> Vec<String> {
        let cells = cells(array).unwrap();
        let shown = (0..array.len()).map(|row| {
            let (mut json, mut csv) = (String::new(), String::new());
            cells.json(row, &mut json).unwrap();
            cells.csv(row, &mut csv).unwrap();
            assert_eq!(json, format!("\"{csv}\""));
            csv
        });
        shown.collect()
    }

    #[test]
    fn each_field_has_its_own_sign() {
        let array = IntervalYearMonthArray::from(vec![14, -14, 0]);
        assert_eq!(shown(&array), ["P1Y2M", "P-1Y-2M", "PT0S"]);
        let array = IntervalDayTimeArray::from(vec![IntervalDayTime::new(3, -90_500)]);
        assert_eq!(shown(&array), ["P3DT-1M-30.5S"]);
        let value = IntervalMonthDayNano::new(1, 2, 3_600_000_000_001);
        let least = IntervalMonthDayNano::new(i32::MIN, 0, i64::MIN);
        assert_eq!(
            shown(&IntervalMonthDayNanoArray::from(vec![value, least])),
            [
                "P1M2DT1H0.000000001S",
                "P-178956970Y-8MT-2562047H-47M-16.854775808S"
            ]
        );
    }
}
