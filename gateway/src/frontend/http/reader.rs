//! What the program at the other end reads: what it declares in this request, over what is known
//! of it by its name. Must not know how a result is written.

use axum::extract::FromRequestParts;
use http::header::{ACCEPT, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Version};
use serde::Deserialize;
use sluice_core::client::{Ability, Client};
use sluice_core::profile::ClientProfiles;
use sluice_core::result::Form as Wish;
use sluice_ipc::Codec;
use sluice_wire::http::media::{self, Form, QueryParameters, Refusal, Wanted};

use super::Shared;
use super::decode::Parameters;
use super::error::Failure;

/// Bytes of a batch that is rendered as text: rows come soon, and little is held.
const TEXT_BATCH_BYTES: u64 = 1 << 20;

/// What a request for rows says of the form that it wants and of its reader.
pub(super) struct Asked {
    pub(super) form: Form,
    pub(super) client: Client,
}

impl FromRequestParts<Shared> for Asked {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, door: &Shared) -> Result<Self, Failure> {
        can_be_broken(parts.version)?;
        let Parameters(query) = Parameters::from_request_parts(parts, door).await?;
        let wanted = wanted(&parts.headers, &query)?;
        let client = client(&parts.headers, &door.settings.clients, &wanted);
        Ok(Self {
            form: wanted.form,
            client,
        })
    }
}

/// HTTP/1.0 ends a body by closing the connection, so that a broken one looks complete.
fn can_be_broken(version: Version) -> Result<(), Failure> {
    if version >= Version::HTTP_11 {
        return Ok(());
    }
    let message = "results are sent over HTTP/1.1 and HTTP/2 only";
    Err(Failure::request(
        StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        message,
    ))
}

/// Query parameters of everything that answers with rows.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultParameters {
    format: Option<String>,
    codecs: Option<String>,
    types: Option<String>,
}

/// Which form the rows are wanted in.
fn wanted(headers: &HeaderMap, query: &ResultParameters) -> Result<Wanted, Failure> {
    // A value that is not text matches nothing that there is.
    let accept = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let query = QueryParameters {
        format: query.format.as_deref(),
        codecs: query.codecs.as_deref(),
        types: query.types.as_deref(),
    };
    Wanted::negotiate(accept, query).map_err(|refusal| {
        let status = match refusal {
            Refusal::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Refusal::Parameter { .. } => StatusCode::BAD_REQUEST,
        };
        Failure::request(status, refusal.to_string())
    })
}

/// What a program declares of itself when it opens a session: what `Accept` says of Arrow
/// streams, beside whatever form it wants this answer in.
pub(super) fn declared(headers: &HeaderMap, profiles: &ClientProfiles) -> Client {
    let arrow = ResultParameters {
        format: Some("arrow".to_owned()),
        ..ResultParameters::default()
    };
    match wanted(headers, &arrow) {
        Ok(wanted) => client(headers, profiles, &wanted),
        Err(_) => known(headers, profiles),
    }
}

/// What is known of the program by its name.
fn known(headers: &HeaderMap, profiles: &ClientProfiles) -> Client {
    let name = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    profiles.of(name.unwrap_or_default())
}

/// What the program reads in this request.
fn client(headers: &HeaderMap, profiles: &ClientProfiles, wanted: &Wanted) -> Client {
    let mut client = known(headers, profiles);
    if let Some(codecs) = &wanted.codecs {
        let able = |codec| {
            if codecs.contains(&codec) {
                Ability::Able
            } else {
                Ability::Unable
            }
        };
        client.lz4 = able(media::Codec::Lz4);
        client.zstd = able(media::Codec::Zstd);
        client.preferred = codecs.first().map(|codec| match codec {
            media::Codec::Lz4 => Codec::Lz4,
            media::Codec::Zstd => Codec::Zstd,
        });
    }
    if let Some(types) = wanted.types {
        let able = |takes| {
            if takes {
                Ability::Able
            } else {
                Ability::Unable
            }
        };
        client.dictionaries = able(types.dictionaries);
        client.views = able(types.views);
    }
    client
}

/// What is asked of the core for rows in `form`.
pub(super) fn wish(form: Form, client: Client, max_row_bytes: u64) -> Wish {
    match form {
        Form::Arrow => Wish {
            codec: None,
            client,
            max_batch_bytes: u64::MAX,
            max_row_bytes,
        },
        Form::Json | Form::NdJson | Form::Csv => own_wish(max_row_bytes),
    }
}

/// What is asked of the core for rows that the door itself reads.
pub(super) fn own_wish(max_row_bytes: u64) -> Wish {
    let client = Client {
        dictionaries: Ability::Able,
        views: Ability::Able,
        ..Client::default()
    };
    Wish {
        codec: Some(Codec::None),
        client,
        max_batch_bytes: TEXT_BATCH_BYTES,
        max_row_bytes,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(accept: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(USER_AGENT, HeaderValue::from_static("reader/1.0"));
        headers
    }

    #[test]
    fn what_is_declared_is_complete() {
        let headers =
            headers(r#"application/vnd.apache.arrow.stream; codecs="zstd"; types="views""#);
        let wanted = wanted(&headers, &ResultParameters::default()).unwrap();
        let client = client(&headers, &ClientProfiles::default(), &wanted);
        assert_eq!((client.zstd, client.lz4), (Ability::Able, Ability::Unable));
        assert_eq!(client.preferred, Some(Codec::Zstd));
        assert_eq!(
            (client.views, client.dictionaries),
            (Ability::Able, Ability::Unable)
        );
        assert_eq!(client.name, "reader/1.0");
    }

    #[test]
    fn what_is_not_declared_is_not_known() {
        let headers = headers("*/*");
        let wanted = wanted(&headers, &ResultParameters::default()).unwrap();
        let client = client(&headers, &ClientProfiles::default(), &wanted);
        assert_eq!(
            (client.zstd, client.lz4, client.preferred),
            Default::default()
        );
    }

    #[test]
    fn refusals_have_their_status() {
        let status = |accept, query| wanted(&headers(accept), &query).unwrap_err().status();
        assert_eq!(
            status("text/html", ResultParameters::default()),
            StatusCode::NOT_ACCEPTABLE
        );
        let query = ResultParameters {
            codecs: Some("gzip".to_owned()),
            ..ResultParameters::default()
        };
        assert_eq!(status("*/*", query), StatusCode::BAD_REQUEST);
    }
}
