//! What is asked of settings and what comes of it: sources, targets, changes, resets. Must not
//! know how they are kept.

use super::registry::Key;

/// Who gave a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// Nobody: the registry's default.
    Default,
    /// The administrator, for all.
    Server,
    /// The administrator, for this user.
    User,
    /// The connection's properties.
    Connection,
    /// A statement of the session.
    Session,
}

impl Source {
    /// The source in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Server => "server",
            Self::User => "user",
            Self::Connection => "connection",
            Self::Session => "session",
        }
    }
}

/// What becomes of names that neither we nor an engine know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unknown {
    /// They are errors.
    Refuse,
    /// Those that Hive and Kyuubi drivers send are kept, without effect. Others are errors.
    Keep,
}

/// Whose a key is.
#[derive(Clone, Debug)]
pub enum Target {
    /// The gateway's own.
    Ours(&'static Key),
    /// The engine's, by its prefix.
    Engine(String),
    /// Nobody's.
    Unknown,
}

/// What a `set` did, or leaves to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A key of ours has its new value.
    Ours {
        /// The canonical name.
        key: &'static str,
    },
    /// Nothing was changed yet: the engine decides. The caller takes the value there and then
    /// calls [`Settings::record_engine`](super::Settings::record_engine).
    Engine {
        /// The name as it was written.
        key: String,
        /// The value as it was written.
        value: String,
    },
    /// The administrator's policy drops the key.
    Ignored {
        /// The name as it was written.
        key: String,
    },
    /// Kept for a driver's sake, without effect.
    Kept {
        /// The name as it was written.
        key: String,
    },
}

/// What a `reset` did, and leaves to do in the engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reset {
    /// Restricted keys, which stay as they are.
    pub skipped: Vec<String>,
    /// Keys of the engine that go back to its own default.
    pub engine_keys: Vec<String>,
    /// Keys of the engine that go back to a value of the connection or of the defaults.
    pub engine_pairs: Vec<(String, String)>,
}
