//! Authentication switched off: everybody is who they say. Allowed on loopback only, which the
//! configuration sees to.

use std::net::IpAddr;

use async_trait::async_trait;
use sluice_core::auth::{Authenticator, Credentials, Identity};
use sluice_core::error::{Error, Result};

/// The user that a caller without a name is.
const ANONYMOUS: &str = "anonymous";

/// Longer names are refused: they are kept with every session and shown in every log line.
pub(super) const MAX_NAME: usize = 256;

/// Takes every caller at their word; a password is not looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAuthentication;

#[async_trait]
impl Authenticator for NoAuthentication {
    async fn authenticate(&self, credentials: &Credentials, _peer: IpAddr) -> Result<Identity> {
        let name = match credentials {
            Credentials::Password { user, .. } if !user.is_empty() => user.as_str(),
            Credentials::Password { .. } | Credentials::Anonymous => ANONYMOUS,
        };
        if name.len() > MAX_NAME {
            return Err(Error::invalid(
                "28000",
                format!("the user name is longer than {MAX_NAME} bytes"),
            ));
        }
        Ok(Identity::new(name))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn a_caller_is_who_they_say_or_anonymous() {
        let peer = IpAddr::from(Ipv4Addr::LOCALHOST);
        let name = |user: &str| Credentials::Password {
            user: user.to_owned(),
            password: "x".to_owned(),
        };
        let of = async |credentials| NoAuthentication.authenticate(&credentials, peer).await;
        assert_eq!(
            of(Credentials::Anonymous).await.unwrap().user(),
            "anonymous"
        );
        assert_eq!(of(name("")).await.unwrap().user(), "anonymous");
        assert_eq!(of(name("ann")).await.unwrap().user(), "ann");
        assert!(of(name(&"n".repeat(257))).await.is_err());
    }
}
