//! Which codec a client gets: what is wished for, held against what the client reads. No driver
//! gets bytes that it is known not to open, and none is compressed for by surprise. Must not know
//! sessions.

use std::fmt;

use sluice_ipc::Codec;

use crate::client::{Ability, Client};

/// The codec of a result, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chosen {
    /// What batches are encoded with.
    pub codec: Codec,
    /// Why, for `SHOW CLIENT`.
    pub why: Why,
}

/// Why a client gets a codec.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// What was wanted, and by whom; the client reads it, or was told to.
    Granted(Wanted),
    /// What was wanted, which the client is known not to read.
    Unreadable(Wanted, Codec),
    /// What was wanted without being asked for in the session, and nobody knows whether the
    /// client reads it.
    Unproved(Wanted, Codec),
}

/// Who wants a codec.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wanted {
    /// The session, by a setting.
    Session,
    /// The client, which declared it first.
    Client,
    /// The administrator's default.
    Default,
}

/// Chooses a codec for `client`: the session's explicit `wish`, else what the client declares
/// first, else `default`.
pub fn choose(wish: Option<Codec>, client: &Client, default: Codec) -> Chosen {
    let (wanted, codec) = match (wish, client.preferred) {
        (Some(codec), _) => (Wanted::Session, codec),
        (None, Some(codec)) => (Wanted::Client, codec),
        (None, None) => (Wanted::Default, default),
    };
    match (client.reads(codec), wanted) {
        (Ability::Able, _) | (Ability::Unknown, Wanted::Session) => Chosen {
            codec,
            why: Why::Granted(wanted),
        },
        (Ability::Unknown, _) => Chosen {
            codec: Codec::None,
            why: Why::Unproved(wanted, codec),
        },
        (Ability::Unable, _) => Chosen {
            codec: best_readable(client),
            why: Why::Unreadable(wanted, codec),
        },
    }
}

fn best_readable(client: &Client) -> Codec {
    let best = [Codec::Zstd, Codec::Lz4].into_iter();
    best.into_iter()
        .find(|codec| client.reads(*codec) == Ability::Able)
        .unwrap_or(Codec::None)
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "the session's setting",
            Self::Client => "the client's own preference",
            Self::Default => "the default",
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(wanted) => write!(f, "{wanted}"),
            Self::Unreadable(wanted, codec) => {
                write!(f, "{wanted} is {codec}, which this client cannot read")
            }
            Self::Unproved(wanted, codec) => write!(
                f,
                "{wanted} is {codec}, but nobody said that this client reads it; \
                 SET arrow.compression.codec asks for it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABILITIES: [Ability; 3] = [Ability::Able, Ability::Unable, Ability::Unknown];
    const CODECS: [Codec; 3] = [Codec::None, Codec::Lz4, Codec::Zstd];
    const WISHES: [Option<Codec>; 4] =
        [None, Some(Codec::None), Some(Codec::Lz4), Some(Codec::Zstd)];

    fn every_case(mut check: impl FnMut(Option<Codec>, &Client, Codec, Chosen)) {
        for lz4 in ABILITIES {
            for zstd in ABILITIES {
                for preferred in WISHES {
                    let client = Client {
                        lz4,
                        zstd,
                        preferred,
                        ..Client::default()
                    };
                    for wish in WISHES {
                        for default in CODECS {
                            check(wish, &client, default, choose(wish, &client, default));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_known_to_be_unreadable_is_never_sent() {
        every_case(|_, client, _, chosen| {
            assert_ne!(client.reads(chosen.codec), Ability::Unable, "{client:?}");
        });
    }

    #[test]
    fn what_is_unknown_is_sent_on_an_explicit_wish_alone() {
        every_case(|wish, client, _, chosen| {
            if client.reads(chosen.codec) == Ability::Unknown {
                assert_eq!(wish, Some(chosen.codec), "{client:?}");
            }
        });
    }

    #[test]
    fn the_first_of_wish_preference_and_default_counts() {
        every_case(|wish, client, default, chosen| {
            let wanted = wish.or(client.preferred).unwrap_or(default);
            let ability = client.reads(wanted);
            if ability == Ability::Able || (ability == Ability::Unknown && wish.is_some()) {
                assert_eq!(chosen.codec, wanted, "{client:?}");
            } else if ability == Ability::Unknown {
                assert_eq!(chosen.codec, Codec::None, "{client:?}");
            } else {
                assert_ne!(chosen.codec, wanted, "{client:?}");
            }
        });
    }

    #[test]
    fn spelled_out() {
        use Ability::{Able, Unable, Unknown};
        use Codec::{Lz4, None as Plain, Zstd};
        // wish, (lz4, zstd, preferred), default -> codec, words of the reason
        for (wish, (lz4, zstd, preferred), default, codec, words) in [
            (None, (Unknown, Unknown, None), Plain, Plain, "the default"),
            (None, (Unknown, Unknown, None), Zstd, Plain, "nobody said"),
            (None, (Unknown, Able, None), Zstd, Zstd, "the default"),
            (None, (Able, Able, Some(Lz4)), Zstd, Lz4, "own preference"),
            (
                None,
                (Able, Able, Some(Plain)),
                Zstd,
                Plain,
                "own preference",
            ),
            (
                Some(Zstd),
                (Unknown, Unknown, None),
                Plain,
                Zstd,
                "session's setting",
            ),
            (Some(Zstd), (Able, Unable, None), Plain, Lz4, "cannot read"),
            (
                Some(Zstd),
                (Unknown, Unable, None),
                Plain,
                Plain,
                "cannot read",
            ),
            (
                Some(Lz4),
                (Unable, Able, Some(Zstd)),
                Plain,
                Zstd,
                "cannot read",
            ),
            (
                Some(Plain),
                (Able, Able, Some(Zstd)),
                Zstd,
                Plain,
                "session's setting",
            ),
            (None, (Unable, Unable, None), Zstd, Plain, "cannot read"),
        ] {
            let client = Client {
                lz4,
                zstd,
                preferred,
                ..Client::default()
            };
            let chosen = choose(wish, &client, default);
            assert_eq!(chosen.codec, codec, "{wish:?} {client:?} {default:?}");
            let why = chosen.why.to_string();
            assert!(why.contains(words), "{why:?} has no {words:?}");
        }
    }
}
