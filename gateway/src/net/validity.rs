//! When a certificate ends: the one field of X.509 that the gateway reads itself (RFC 5280,
//! section 4.1), for the log and the metrics. Must not be asked whether a certificate is good.

use chrono::{DateTime, NaiveDateTime, Utc};

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `notAfter` of a DER certificate; `None` when that cannot be found.
pub(super) fn not_after(certificate: &[u8]) -> Option<DateTime<Utc>> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = any(rest)?.2;
    }
    // Serial number, signature algorithm and issuer stand before the validity.
    for _ in 0..3 {
        rest = any(rest)?.2;
    }
    let (validity, _) = element(rest, SEQUENCE)?;
    let (_, _, after) = any(validity)?;
    let (tag, time, _) = any(after)?;
    date(tag, std::str::from_utf8(time).ok()?)
}

fn date(tag: u8, text: &str) -> Option<DateTime<Utc>> {
    let text = text.strip_suffix('Z')?;
    let full = match tag {
        // Two digits of a year are of 1950 to 2049.
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    NaiveDateTime::parse_from_str(&full, "%Y%m%d%H%M%S")
        .ok()
        .map(|time| time.and_utc())
}

/// The content of the first element, which has `tag`, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(der)?;
    (found == tag).then_some((content, rest))
}

/// Tag and content of the first element, and what follows it.
fn any(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = der.split_first_chunk::<2>()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let digits;
        (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.is_empty() || digits.len() > 4 {
            return None;
        }
        length = digits
            .iter()
            .fold(0, |length, digit| length << 8 | usize::from(*digit));
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_date_are_read() {
        assert_eq!(
            date(UTC_TIME, "491231235959Z").unwrap().to_string(),
            "2049-12-31 23:59:59 UTC"
        );
        assert_eq!(
            date(UTC_TIME, "500101000000Z").unwrap().to_string(),
            "1950-01-01 00:00:00 UTC"
        );
        assert_eq!(
            date(GENERALIZED_TIME, "20500101000000Z")
                .unwrap()
                .to_string(),
            "2050-01-01 00:00:00 UTC"
        );
        assert_eq!(date(UTC_TIME, "é91231235959Z"), None);
    }

    #[test]
    fn every_cut_of_a_certificate_is_harmless() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2061, 2, 3);
        let der = params.self_signed(&key).unwrap().der().to_vec();
        assert_eq!(
            not_after(&der).unwrap().to_string(),
            "2061-02-03 00:00:00 UTC"
        );
        for end in 0..der.len() {
            assert_eq!(not_after(&der[..end]), None, "{end}");
        }
    }
}
