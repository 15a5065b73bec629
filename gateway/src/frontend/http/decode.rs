//! From a request to values: JSON bodies within their bounds, query parameters, handles in paths,
//! settings in headers. Must not know what is done with them.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use sluice_core::error::Error;
use sluice_core::handle::Handle;
use sluice_core::settings::KEYS;

use super::Shared;
use super::error::Failure;

/// A JSON body.
pub(super) struct Decoded<T>(pub(super) T);

/// A JSON body that may be left out.
pub(super) struct DecodedOrDefault<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Decoded<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, door: &Shared) -> Result<Self, Failure> {
        match json_body(request, door).await? {
            Some(body) => parse(&body).map(Self),
            None => Err(Failure::bad("the request needs a JSON body")),
        }
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Shared> for DecodedOrDefault<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, door: &Shared) -> Result<Self, Failure> {
        match json_body(request, door).await? {
            Some(body) => parse(&body).map(Self),
            None => Ok(Self(T::default())),
        }
    }
}

/// Every body here is an object; serde alone would also take an array of the fields' values.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Failure::bad("the body must be a JSON object"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Failure::bad(format!("the body is not what is expected here: {error}")))
}

/// The body, if there is one that is JSON; refused before it is read where its head says enough.
async fn json_body(request: Request, door: &Shared) -> Result<Option<Bytes>, Failure> {
    let (parts, body) = request.into_parts();
    let limit = door.settings.max_body;
    let declared = parts
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    if declared
        .and_then(|length| length.parse::<u64>().ok())
        .is_some_and(|length| length > limit)
    {
        return Err(too_large(limit));
    }
    if parts
        .headers
        .get(CONTENT_ENCODING)
        .is_some_and(|coding| coding != "identity")
    {
        return Err(unsupported(
            "request bodies are taken without Content-Encoding",
        ));
    }
    let body = read(body, limit, door).await?;
    match &parts.headers.get(CONTENT_TYPE) {
        _ if body.is_empty() => Ok(None),
        Some(value) if is_json(value.as_bytes()) => Ok(Some(body)),
        _ => Err(unsupported(
            "the body must be application/json, and Content-Type must say so",
        )),
    }
}

async fn read(body: Body, limit: u64, door: &Shared) -> Result<Bytes, Failure> {
    let limited = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
    match tokio::time::timeout(door.settings.body_timeout, limited.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Ok(Err(_)) => Err(Failure::bad("the body broke off")),
        Err(_) => Err(Failure::request(
            StatusCode::REQUEST_TIMEOUT,
            "the body came too slowly",
        )),
    }
}

fn too_large(limit: u64) -> Failure {
    let message = format!("the body is larger than server.request_body_limit ({limit} bytes)");
    Failure::request(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn unsupported(message: &str) -> Failure {
    Failure::request(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
}

/// `application/json` and `…+json`, whatever the parameters.
fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    let essence = essence.trim_ascii().to_ascii_lowercase();
    essence == b"application/json"
        || (essence.starts_with(b"application/") && essence.ends_with(b"+json"))
}

/// Query parameters; unknown ones are refused by name where `T` does.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Parameters<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Failure> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(rejection) => Err(Failure::bad(rejection.body_text())),
        }
    }
}

/// The handle in the path. What cannot be a handle names nothing that there is.
pub(super) struct Named(pub(super) Handle);

impl FromRequestParts<Shared> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, door: &Shared) -> Result<Self, Failure> {
        let path = Path::<String>::from_request_parts(parts, door).await;
        let handle = path.ok().and_then(|Path(text)| text.parse().ok());
        Ok(Self(handle.ok_or_else(|| Error::not_found("handle"))?))
    }
}

/// Settings among the headers: those whose name is in the registry, in any case.
pub(super) fn settings_of(headers: &HeaderMap) -> Result<Vec<(String, String)>, Failure> {
    let names = KEYS
        .iter()
        .flat_map(|key| std::iter::once(&key.name).chain(key.synonyms));
    let mut found = Vec::new();
    for name in names {
        // Names of headers are in lower case by now.
        for value in headers.get_all(name.to_ascii_lowercase()) {
            let value = value.to_str().map_err(|_| {
                Failure::bad(format!(
                    "header {name} holds characters that no setting has"
                ))
            })?;
            found.push(((*name).to_owned(), value.to_owned()));
        }
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn json_by_its_media_type() {
        for text in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/x+json",
        ] {
            assert!(is_json(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "text/plain",
            "application/jsonx",
            "text/json",
            "application/json/x",
        ] {
            assert!(!is_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn only_objects_are_bodies() {
        use sluice_wire::http::SchemasRequest;
        assert!(parse::<SchemasRequest>(b" {} ").is_ok());
        for text in ["[]", "[null,null]", "null", "", "{", "{} {}", "{\"x\":1}"] {
            let failure = parse::<SchemasRequest>(text.as_bytes()).unwrap_err();
            assert_eq!(failure.status(), StatusCode::BAD_REQUEST, "{text}");
        }
    }

    #[test]
    fn only_names_of_the_registry_are_settings() {
        let mut headers = HeaderMap::new();
        headers.insert("arrow.compression.codec", HeaderValue::from_static("zstd"));
        headers.insert(
            "spark.sql.session.timezone",
            HeaderValue::from_static("UTC"),
        );
        headers.insert("arrow.compression.codex", HeaderValue::from_static("x"));
        headers.insert("x-request-id", HeaderValue::from_static("7"));
        let found = settings_of(&headers).unwrap();
        let expected = [
            ("arrow.compression.codec", "zstd"),
            ("spark.sql.session.timeZone", "UTC"),
        ];
        assert_eq!(found, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));

        headers.insert("query.timeout", HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(
            settings_of(&headers).unwrap_err().status(),
            StatusCode::BAD_REQUEST
        );
    }
}
