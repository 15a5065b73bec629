//! What is known of clients by the name and version with which they present themselves. Must not
//! know where that is written down, nor in which header it comes.

use crate::client::{Ability, Client};

/// Longer presentations are not looked at beyond this.
const MAX_PRESENTED: usize = 512;

/// What one program reads, over a range of its versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The name as the program presents itself, compared without case.
    pub name: String,
    /// The first version that this is known of; absent: any.
    pub from: Option<Version>,
    /// The first version that this is no longer true of; absent: none.
    pub before: Option<Version>,
    /// LZ4 frame compressed buffers.
    pub lz4: Ability,
    /// Zstandard compressed buffers.
    pub zstd: Ability,
    /// Dictionary-encoded columns.
    pub dictionaries: Ability,
    /// View columns.
    pub views: Ability,
}

/// A version by its numbers: `1.10` is after `1.9`.
#[derive(Clone, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub struct Version(Vec<u32>);

/// All programs that are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientProfiles(Vec<Profile>);

impl Version {
    /// Reads the numbers at the start of `text`; `None` when there are none.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text
            .find(|letter: char| letter != '.' && !letter.is_ascii_digit())
            .unwrap_or(text.len());
        let mut numbers = Vec::new();
        for number in text[..end].trim_end_matches('.').split('.') {
            numbers.push(number.parse().ok()?);
        }
        while numbers.len() > 1 && numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(Self(numbers))
    }
}

impl ClientProfiles {
    /// The profiles; of several that fit, the first counts.
    pub fn new(profiles: Vec<Profile>) -> Self {
        Self(profiles)
    }

    /// What the program that presents itself so reads: `Unknown` for what nobody wrote down.
    pub fn of(&self, presented: &str) -> Client {
        let end = presented.floor_char_boundary(MAX_PRESENTED);
        let presented = &presented[..end];
        let mut client = Client {
            name: presented.to_owned(),
            ..Client::default()
        };
        if let Some(known) = self.0.iter().find(|profile| profile.fits(presented)) {
            client.lz4 = known.lz4;
            client.zstd = known.zstd;
            client.dictionaries = known.dictionaries;
            client.views = known.views;
        }
        client
    }
}

impl Profile {
    /// Whether `presented` holds the name as a product, as in `name/1.2` or `name 1.2`.
    fn fits(&self, presented: &str) -> bool {
        let (presented, name) = (
            presented.to_ascii_lowercase(),
            self.name.to_ascii_lowercase(),
        );
        let mut found = presented.match_indices(&name).filter_map(|(at, _)| {
            let (before, after) = (&presented[..at], &presented[at + name.len()..]);
            let begins = before.is_empty() || before.ends_with(' ');
            let ends = after.is_empty() || after.starts_with(['/', ' ']);
            (begins && ends).then(|| after.trim_start_matches(['/', ' ', 'v']))
        });
        found
            .next()
            .is_some_and(|version| self.covers(Version::parse(version).as_ref()))
    }

    fn covers(&self, version: Option<&Version>) -> bool {
        let Some(version) = version else {
            return self.from.is_none() && self.before.is_none();
        };
        self.from.as_ref().is_none_or(|from| version >= from)
            && self.before.as_ref().is_none_or(|before| version < before)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn profiles() -> ClientProfiles {
        ClientProfiles::new(vec![
            Profile {
                name: "JDBC Flight SQL Driver".to_owned(),
                zstd: Ability::Unable,
                ..Profile::default()
            },
            Profile {
                name: "reader".to_owned(),
                from: Version::parse("1.9"),
                before: Version::parse("2"),
                zstd: Ability::Able,
                ..Profile::default()
            },
        ])
    }

    #[test]
    fn names_and_versions_decide() {
        for (presented, zstd) in [
            (
                "JDBC Flight SQL Driver 19.0.0 grpc-java-netty/1.2",
                Ability::Unable,
            ),
            ("reader/1.9", Ability::Able),
            ("Reader/1.10.3 (linux)", Ability::Able),
            ("proxy/7 reader/v1.9.0-beta", Ability::Able),
            ("reader/1.8.9", Ability::Unknown),
            ("reader/2.0", Ability::Unknown),
            ("reader", Ability::Unknown),
            ("newsreader/1.9", Ability::Unknown),
            ("readers/1.9", Ability::Unknown),
            ("", Ability::Unknown),
        ] {
            let client = profiles().of(presented);
            assert_eq!((client.zstd, client.name.as_str()), (zstd, presented));
        }
    }

    #[test]
    fn a_long_presentation_is_cut() {
        assert_eq!(profiles().of(&"é".repeat(10_000)).name.len(), MAX_PRESENTED);
    }
}
