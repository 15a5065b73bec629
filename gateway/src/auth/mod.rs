//! Proving who is calling: one authenticator a file, behind the core's trait. Must not know
//! headers, SASL or sessions.

pub mod file;
pub mod hash;
pub mod none;
mod remembered;
mod same;
mod slowdown;

use std::sync::Arc;

use sluice_core::auth::Authenticator;

/// How callers prove who they are.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    /// They do not: everybody is who they say.
    None,
    /// Names and argon2id hashes in a file.
    File(file::Config),
}

/// An authenticator, and how its source is read again.
pub enum Built {
    /// Nothing to read again.
    None(Arc<none::NoAuthentication>),
    /// A file of users.
    File(Arc<file::FileAuthenticator>),
}

impl Built {
    /// Builds what `config` asks for.
    ///
    /// # Errors
    /// What is wrong with the file of users, all of it.
    pub fn new(config: Config) -> Result<Self, file::Error> {
        Ok(match config {
            Config::None => Self::None(Arc::new(none::NoAuthentication)),
            Config::File(config) => Self::File(Arc::new(file::FileAuthenticator::load(config)?)),
        })
    }

    /// The authenticator.
    pub fn authenticator(&self) -> Arc<dyn Authenticator> {
        match self {
            Self::None(none) => Arc::clone(none) as Arc<dyn Authenticator>,
            Self::File(file) => Arc::clone(file) as Arc<dyn Authenticator>,
        }
    }

    /// Reads the source again and says how many users there are, where there are any.
    ///
    /// # Errors
    /// What is wrong with it; what was known before stays in force.
    pub fn reload(&self) -> Result<Option<usize>, file::Error> {
        match self {
            Self::None(_) => Ok(None),
            Self::File(file) => file.reload().map(Some),
        }
    }
}
