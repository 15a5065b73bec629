//! Where a gateway is and what to start with there: `sluice://user@host:port/catalog.schema?key=value`.
//! Owns the grammar of the URL. Must not know how a connection is made.

use http::Uri;
use http::uri::Authority;

use crate::error::{Error, Result};

/// The port that a gateway listens on when nobody says otherwise.
const DEFAULT_PORT: u16 = 8443;

/// A parsed URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Address {
    /// `host:port`.
    pub(crate) authority: Authority,
    pub(crate) user: Option<String>,
    pub(crate) catalog: Option<String>,
    pub(crate) schema: Option<String>,
    /// Settings from the query part, in their order.
    pub(crate) settings: Vec<(String, String)>,
}

impl Address {
    /// Reads a URL. `sluice` and `https` mean the same: there is no way without TLS.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let uri: Uri = url.parse().map_err(|_| wrong(url, "it is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("sluice" | "https")) {
            return Err(wrong(
                url,
                "it must begin with sluice:// or https:// (TLS is always on)",
            ));
        }
        let given = uri
            .authority()
            .ok_or_else(|| wrong(url, "it names no host"))?;
        let user = user_of(given).map_err(|reason| wrong(url, reason))?;
        let (catalog, schema) = place_of(uri.path()).map_err(|reason| wrong(url, reason))?;
        Ok(Self {
            authority: host_and_port(given).ok_or_else(|| wrong(url, "host or port is wrong"))?,
            user,
            catalog,
            schema,
            settings: settings_of(uri.query()).map_err(|reason| wrong(url, reason))?,
        })
    }
}

fn wrong(url: &str, reason: &str) -> Error {
    // What stands before the `@` may be a password that somebody put there.
    let shown = match url
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'))
    {
        Some((_, rest)) => format!("…@{rest}"),
        None => url.to_owned(),
    };
    Error::configuration(format!(
        "{shown:?} is no address: {reason}; expected sluice://host:port/catalog.schema"
    ))
}

fn host_and_port(given: &Authority) -> Option<Authority> {
    let host = given.host();
    let bare = given
        .as_str()
        .rsplit_once('@')
        .map_or(given.as_str(), |(_, rest)| rest);
    let port = match bare.strip_prefix(host)? {
        "" => DEFAULT_PORT,
        rest => rest.strip_prefix(':')?.parse().ok()?,
    };
    if host.is_empty() {
        return None;
    }
    format!("{host}:{port}").parse().ok()
}

fn user_of(authority: &Authority) -> std::result::Result<Option<String>, &'static str> {
    let Some((user, _)) = authority.as_str().rsplit_once('@') else {
        return Ok(None);
    };
    if user.contains(':') {
        return Err("a password does not belong in a URL, which ends up in logs and process lists");
    }
    percent_decoded(user).map(Some)
}

type Place = (Option<String>, Option<String>);

/// `/catalog.schema`, or `/schema`.
fn place_of(path: &str) -> std::result::Result<Place, &'static str> {
    let path = path.trim_start_matches('/').trim_end_matches('/');
    if path.contains('/') {
        return Err("the path has more than catalog.schema");
    }
    let named = |part: &str| match percent_decoded(part)? {
        name if name.is_empty() => Err("a name in catalog.schema is empty"),
        name => Ok(Some(name)),
    };
    match path.split_once('.') {
        None if path.is_empty() => Ok((None, None)),
        None => Ok((None, named(path)?)),
        Some((catalog, schema)) => Ok((named(catalog)?, named(schema)?)),
    }
}

fn settings_of(query: Option<&str>) -> std::result::Result<Vec<(String, String)>, &'static str> {
    let pairs = query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or("a setting needs key=value")?;
            Ok((percent_decoded(key)?, percent_decoded(value)?))
        })
        .collect()
}

/// RFC 3986, section 2.1. A `+` is a plus sign: this is no HTML form.
fn percent_decoded(text: &str) -> std::result::Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let digits = tail
            .get(..2)
            .filter(|pair| pair.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(byte.ok_or("a % is not followed by two hexadecimal digits")?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| "an escape is not UTF-8")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_url_is_read() {
        let address =
            Address::parse("sluice://ada@db.example:9443/lake.tpch?a.b=1%26x&c=%C3%A4").unwrap();
        assert_eq!(address.authority.as_str(), "db.example:9443");
        assert_eq!(address.user.as_deref(), Some("ada"));
        assert_eq!(address.catalog.as_deref(), Some("lake"));
        assert_eq!(address.schema.as_deref(), Some("tpch"));
        let expected = [("a.b", "1&x"), ("c", "ä")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(address.settings, expected);
    }

    #[test]
    fn port_and_place_may_be_left_out() {
        let address = Address::parse("https://[::1]").unwrap();
        assert_eq!(address.authority.as_str(), "[::1]:8443");
        assert_eq!((address.catalog, address.schema), (None, None));
        let address = Address::parse("sluice://h/only%2Eone/").unwrap();
        assert_eq!(
            (address.catalog, address.schema),
            (None, Some("only.one".to_owned()))
        );
    }

    #[test]
    fn wrong_urls_are_refused_with_a_reason_and_without_the_password() {
        let cases = [
            ("localhost:8443", "sluice://"),
            ("http://localhost:8443", "TLS"),
            ("sluice://u:secret@h/", "password"),
            ("sluice://h:99999/", "port"),
            ("sluice://h:x/", "no address"),
            ("sluice://h/a/b", "catalog.schema"),
            ("sluice://h/a.", "empty"),
            ("sluice://h/?a", "key=value"),
            ("sluice://h/%zz", "hexadecimal"),
            ("", "not a URL"),
        ];
        for (url, part) in cases {
            let error = Address::parse(url).unwrap_err();
            assert!(error.message().contains(part), "{url}: {error}");
            assert!(!error.message().contains("secret"), "{error}");
        }
    }
}
