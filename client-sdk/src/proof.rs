//! The proof that a result is complete: what was read against what the gateway says it sent. Owns
//! the comparison. Must not know how either came about.

use http::HeaderMap;
use sluice_wire::http::{DeliveryReport, headers, verdict};

use crate::error::{Error, Result};

/// Figures of a result, as one side has them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) batches: u64,
    /// Metadata and bodies of the messages, without framing.
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
}

/// What the gateway says of a result that it sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Claim {
    pub(crate) totals: Totals,
    pub(crate) truncated: bool,
}

impl Claim {
    /// Reads the trailers of a body. `None` when none of them is the gateway's, as behind a proxy
    /// that drops them.
    pub(crate) fn of_trailers(trailers: &HeaderMap) -> Result<Option<Self>> {
        let names = [
            headers::ROWS,
            headers::BATCHES,
            headers::BYTES,
            headers::DIGEST,
        ];
        if !names.iter().any(|name| trailers.contains_key(*name)) {
            return Ok(None);
        }
        let text = |name: &'static str| {
            let value = trailers.get(name).and_then(|value| value.to_str().ok());
            value.ok_or_else(|| unreadable(name))
        };
        let number = |name| text(name)?.parse().map_err(|_| unreadable(name));
        let totals = Totals {
            rows: number(headers::ROWS)?,
            batches: number(headers::BATCHES)?,
            bytes: number(headers::BYTES)?,
            digest: digest(text(headers::DIGEST)?)?,
        };
        let truncated = trailers
            .get(headers::TRUNCATED)
            .is_some_and(|value| value == "true");
        Ok(Some(Self { totals, truncated }))
    }

    /// Reads the verdict on a delivery.
    pub(crate) fn of_report(report: &DeliveryReport) -> Result<Self> {
        if report.verdict != verdict::COMPLETE {
            let message = format!("the gateway says that the delivery is {}", report.verdict);
            return Err(Error::incomplete(message));
        }
        let totals = Totals {
            rows: report.rows,
            batches: report.batches_out,
            bytes: report.bytes_encoded,
            digest: digest(&report.digest)?,
        };
        Ok(Self {
            totals,
            truncated: report.truncated,
        })
    }

    /// Compares it with what was read.
    pub(crate) fn check(&self, read: &Totals) -> Result<()> {
        let sent = &self.totals;
        let figures = [
            ("rows", sent.rows, read.rows),
            ("batches", sent.batches, read.batches),
            ("bytes", sent.bytes, read.bytes),
        ];
        for (name, sent, read) in figures {
            if sent != read {
                return Err(Error::incomplete(format!(
                    "the gateway sent {sent} {name}, but {read} were read"
                )));
            }
        }
        if sent.digest != read.digest {
            return Err(Error::incomplete(format!(
                "what was read is not what was sent: its hash is {:016x} and not {:016x}",
                read.digest, sent.digest
            )));
        }
        Ok(())
    }
}

fn digest(text: &str) -> Result<u64> {
    let is_hash = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = u64::from_str_radix(text, 16).ok().filter(|_| is_hash);
    value.ok_or_else(|| unreadable(headers::DIGEST))
}

fn unreadable(name: &str) -> Error {
    Error::incomplete(format!("the proof of the result is not readable: {name}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::error::ErrorKind;

    fn trailers() -> HeaderMap {
        let mut trailers = HeaderMap::new();
        let values = [
            (headers::ROWS, "5"),
            (headers::BATCHES, "2"),
            (headers::BYTES, "100"),
            (headers::DIGEST, "00000000000000ab"),
            (headers::TRUNCATED, "true"),
        ];
        for (name, value) in values {
            trailers.insert(name, HeaderValue::from_static(value));
        }
        trailers
    }

    #[test]
    fn every_figure_counts() {
        let claim = Claim::of_trailers(&trailers()).unwrap().unwrap();
        let read = Totals {
            rows: 5,
            batches: 2,
            bytes: 100,
            digest: 0xab,
        };
        assert_eq!(
            claim,
            Claim {
                totals: read,
                truncated: true
            }
        );
        claim.check(&read).unwrap();
        let others = [
            Totals { rows: 4, ..read },
            Totals { batches: 1, ..read },
            Totals { bytes: 99, ..read },
            Totals {
                digest: 0xac,
                ..read
            },
        ];
        for other in others {
            assert_eq!(
                claim.check(&other).unwrap_err().kind(),
                ErrorKind::Incomplete
            );
        }
    }

    #[test]
    fn half_a_proof_is_none_and_foreign_trailers_are_not_one() {
        for name in [
            headers::ROWS,
            headers::BATCHES,
            headers::BYTES,
            headers::DIGEST,
        ] {
            let mut trailers = trailers();
            trailers.remove(name);
            assert!(Claim::of_trailers(&trailers).is_err(), "{name}");
            trailers.insert(name, HeaderValue::from_static("-1"));
            assert!(Claim::of_trailers(&trailers).is_err(), "{name}");
        }
        let mut foreign = HeaderMap::new();
        foreign.insert("server-timing", HeaderValue::from_static("x"));
        assert_eq!(Claim::of_trailers(&foreign).unwrap(), None);
    }
}
