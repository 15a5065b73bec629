//! Who is calling: HTTP Basic proved by the authenticator, or the token of a session. Must not
//! know how a password is checked.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sluice_core::auth::{Credentials, Identity};
use sluice_core::error::{Error, ErrorKind};
use sluice_wire::http::credentials::Authorization;

use super::Shared;
use super::error::Failure;

/// Where a request comes from; the door puts it on each request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// The caller, proved. As an argument of a handler it stands before the body, which is not read
/// for strangers.
pub(super) struct Caller {
    pub(super) identity: Identity,
    pub(super) peer: IpAddr,
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, door: &Shared) -> Result<Self, Failure> {
        let Some(Peer(peer)) = parts.extensions.get().copied() else {
            return Err(Error::new(ErrorKind::Internal, "the request has no peer").into());
        };
        let identity = match authorization(parts)? {
            Some(Authorization::Bearer(token)) => {
                door.gateway.session_of_token(&token)?.identity().clone()
            }
            Some(Authorization::Basic { user, password }) => {
                let credentials = Credentials::Password { user, password };
                door.authenticator.authenticate(&credentials, peer).await?
            }
            None => {
                door.authenticator
                    .authenticate(&Credentials::Anonymous, peer)
                    .await?
            }
        };
        Ok(Self { identity, peer })
    }
}

fn authorization(parts: &Parts) -> Result<Option<Authorization>, Error> {
    let mut values = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let refused = |message: String| Error::new(ErrorKind::Unauthenticated, message);
    if values.next().is_some() {
        return Err(refused("more than one Authorization header".to_owned()));
    }
    let parsed = Authorization::parse(value.as_bytes());
    parsed
        .map(Some)
        .map_err(|malformed| refused(malformed.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::Request;

    use super::*;

    fn of(values: &[&str]) -> Result<Option<Authorization>, Error> {
        let mut request = Request::builder();
        for value in values {
            request = request.header(AUTHORIZATION, *value);
        }
        authorization(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn one_header_or_none() {
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(
            of(&["Bearer x"]).unwrap(),
            Some(Authorization::Bearer("x".to_owned()))
        );
        for values in [&["Bearer x", "Bearer y"][..], &["Digest x"], &["Basic !"]] {
            assert_eq!(of(values).unwrap_err().kind(), ErrorKind::Unauthenticated);
        }
    }
}
