//! What the program at the other end can read. Front ends fill this in from what a client
//! declares or from `conf/clients.toml`; the core decides by it. Must not know headers.

use sluice_ipc::Codec;

/// Whether a client reads something.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Ability {
    Able,
    Unable,
    /// Nobody said. Only an explicit wish of the session is honoured.
    #[default]
    Unknown,
}

impl Ability {
    /// The ability in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Able => "able",
            Self::Unable => "unable",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known of one client: its name, and what it reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// Name and version as it presented itself, such as a user agent; empty when it did not.
    pub name: String,
    /// LZ4 frame compressed buffers.
    pub lz4: Ability,
    /// Zstandard compressed buffers.
    pub zstd: Ability,
    /// The first codec that the client itself declared: its own preference.
    pub preferred: Option<Codec>,
    /// Dictionary-encoded columns. Others get plain values.
    pub dictionaries: Ability,
    /// `Utf8View` and `BinaryView` columns. Others get `Utf8` and `Binary`.
    pub views: Ability,
}

impl Client {
    /// Whether the client reads messages compressed with `codec`.
    pub fn reads(&self, codec: Codec) -> Ability {
        match codec {
            Codec::None => Ability::Able,
            Codec::Lz4 => self.lz4,
            Codec::Zstd => self.zstd,
        }
    }
}
