//! Delivery reports as a table for people, several side by side. Owns its lines. Must not know
//! where reports come from.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use sluice_wire::http::DeliveryReport;

/// One line of the table: its name, and what a report has there.
type Line = (&'static str, fn(&DeliveryReport) -> String);

const LINES: [Line; 19] = [
    ("verdict", |report| report.verdict.clone()),
    ("codec", |report| report.codec.clone()),
    ("level", |report| {
        report
            .level
            .map_or_else(|| "-".to_owned(), |level| level.to_string())
    }),
    ("rows", |report| {
        grouped(report.rows) + if report.truncated { " (cut)" } else { "" }
    }),
    ("batches from engine", |report| grouped(report.batches_in)),
    ("batches sent", |report| grouped(report.batches_out)),
    ("bytes from engine", |report| grouped(report.bytes_engine)),
    ("bytes before encoding", |report| grouped(report.bytes_raw)),
    ("bytes after encoding", |report| {
        grouped(report.bytes_encoded)
    }),
    ("bytes on the socket", |report| grouped(report.bytes_sent)),
    ("ratio", |report| {
        report
            .ratio
            .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
    }),
    ("share of bytes", share),
    ("time in all", |report| milliseconds(report.time_total)),
    ("waiting for engine", |report| {
        milliseconds(report.time_engine)
    }),
    ("waiting for codec", |report| {
        milliseconds(report.time_codec)
    }),
    ("waiting for network", |report| {
        milliseconds(report.time_network)
    }),
    ("processor on codec", |report| {
        milliseconds(report.cpu_codec)
    }),
    ("first row after", |report| {
        report
            .first_row
            .map_or_else(|| "-".to_owned(), milliseconds)
    }),
    ("most bytes held", |report| grouped(report.peak_memory)),
];

/// The reports side by side, each under its label; ends in a newline.
pub fn table(reports: &[(&str, &DeliveryReport)]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(std::iter::once("").chain(reports.iter().map(|(label, _)| *label)));
    for (name, value) in LINES {
        let values = reports.iter().map(|(_, report)| value(report));
        table.add_row(std::iter::once(name.to_owned()).chain(values));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}

fn share(report: &DeliveryReport) -> String {
    if report.bytes_raw == 0 {
        return "-".to_owned();
    }
    format!(
        "{:.1} %",
        100.0 * report.bytes_encoded as f64 / report.bytes_raw as f64
    )
}

fn milliseconds(milliseconds: f64) -> String {
    format!("{milliseconds:.1} ms")
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A delivery of 1,234,567 rows.
    fn report() -> DeliveryReport {
        DeliveryReport {
            operation_id: "7".to_owned(),
            verdict: "complete".to_owned(),
            error: None,
            rows: 1_234_567,
            batches_in: 150,
            batches_out: 20,
            bytes_engine: 100_000_000,
            bytes_raw: 99_000_000,
            bytes_encoded: 24_750_000,
            bytes_sent: 24_750_168,
            ratio: Some(4.0),
            digest: "0".repeat(16),
            truncated: false,
            codec: "zstd".to_owned(),
            level: Some(3),
            time_total: 812.34,
            time_engine: 400.0,
            time_codec: 300.0,
            time_network: 112.34,
            cpu_codec: 900.0,
            first_row: Some(12.5),
            peak_memory: 33_554_432,
        }
    }

    #[test]
    fn reports_stand_side_by_side() {
        let plain = DeliveryReport {
            codec: "none".to_owned(),
            level: None,
            truncated: true,
            ..report()
        };
        let text = table(&[("none", &plain), ("zstd 3", &report())]);
        for part in [
            "1,234,567 (cut)",
            "24,750,000",
            "4.00",
            "25.0 %",
            "812.3 ms",
            "12.5 ms",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }
}
