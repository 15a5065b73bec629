//! Who is calling, and the trait that proves it. Must not know headers, SASL or password files.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;

/// A user whose identity was proved. Every session, operation and handle is bound to one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    user: Arc<str>,
}

impl Identity {
    /// The identity of `user`. Only authenticators make these.
    pub fn new(user: impl Into<Arc<str>>) -> Self {
        Self { user: user.into() }
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }
}

/// What a caller offers as proof. `Debug` shows no secret.
#[derive(Clone)]
pub enum Credentials {
    /// Nothing was offered.
    Anonymous,
    /// A user name and a password.
    Password {
        /// The name as it was sent.
        user: String,
        /// The secret as it was sent.
        password: String,
    },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => {
                write!(f, "Password {{ user: {user:?}, password: *** }}")
            }
        }
    }
}

/// One way to prove who is calling.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Proves `credentials`, offered from `peer`.
    ///
    /// Wrong and unknown users fail alike, with [`Unauthenticated`](crate::error::ErrorKind::Unauthenticated)
    /// and at the same cost; a full queue of checks fails with
    /// [`Overloaded`](crate::error::ErrorKind::Overloaded).
    async fn authenticate(&self, credentials: &Credentials, peer: IpAddr) -> Result<Identity>;
}
