//! The grammar of `Accept` (RFC 9110, section 12.5.1): media ranges with their parameters. Must not
//! know how one is chosen.

use std::cmp::Reverse;

use super::media::{Codec, Form, Types, codec_of, lenient, type_of};

/// One media range of `Accept`.
pub(super) struct Range {
    media: String,
    /// 1: `*/*`, 2: `type/*`, 3: `type/subtype`.
    pub(super) precision: u8,
    /// Thousandths.
    pub(super) quality: u16,
    pub(super) codecs: Option<Vec<Codec>>,
    pub(super) types: Option<Types>,
}

impl Range {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = split(text, ';');
        let media = parts.next()?.trim().to_ascii_lowercase();
        let precision = match media.split_once('/')? {
            ("*", "*") => 1,
            (kind, "*") if is_token(kind) => 2,
            (kind, subtype) if is_token(kind) && is_token(subtype) => 3,
            _ => return None,
        };
        let mut range = Self {
            media,
            precision,
            quality: 1000,
            codecs: None,
            types: None,
        };
        for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            let value = unquote(value.trim())?;
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => range.quality = quality(&value)?,
                "codecs" => range.codecs = Some(lenient(&value, codec_of)),
                "types" => range.types = Some(Types::of(&lenient(&value, type_of))),
                _ => {}
            }
        }
        Some(range)
    }

    /// The most precise range that covers `form`, and its position; of two alike the better one.
    pub(super) fn for_form(ranges: &[Self], form: Form) -> Option<(usize, &Self)> {
        let covering = ranges
            .iter()
            .enumerate()
            .filter(|(_, range)| range.covers(form));
        covering.min_by_key(|(at, range)| (Reverse(range.precision), Reverse(range.quality), *at))
    }

    fn covers(&self, form: Form) -> bool {
        let media = form.media_type();
        match self.precision {
            1 => true,
            2 => media.split('/').next() == self.media.split('/').next(),
            _ => {
                media == self.media || (form == Form::NdJson && self.media == "application/ndjson")
            }
        }
    }
}

/// RFC 9110, section 12.4.2, in thousandths.
fn quality(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1000),
        _ => None,
    }
}

fn is_token(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(allowed)
}

/// A token as it is, or a quoted string without quotes and escapes.
fn unquote(text: &str) -> Option<String> {
    let Some(inner) = text.strip_prefix('"') else {
        return (!text.contains('"')).then(|| text.to_owned());
    };
    let inner = inner.strip_suffix('"')?;
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => plain.push(chars.next()?),
            '"' => return None,
            char => plain.push(char),
        }
    }
    Some(plain)
}

/// Splits at `separator`, except within quoted strings.
pub(super) fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |char: char| {
        if escaped {
            escaped = false;
        } else if char == '\\' && quoted {
            escaped = true;
        } else if char == '"' {
            quoted = !quoted;
        } else {
            return char == separator && !quoted;
        }
        false
    })
}
