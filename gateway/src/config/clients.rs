//! `clients.toml`: what programs are known to read, by name and version. Must not know how a
//! program presents itself on the wire.

use serde::Deserialize;
use sluice_core::client::Ability;
use sluice_core::profile::{ClientProfiles, Profile, Version};

/// The file as it is shipped.
const BUILT_IN: &str = include_str!("../../../conf/clients.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    client: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    from: Option<String>,
    before: Option<String>,
    lz4: Option<bool>,
    zstd: Option<bool>,
    dictionaries: Option<bool>,
    views: Option<bool>,
}

/// The clients that are known without a file.
pub fn built_in() -> ClientProfiles {
    // The shipped file is read by a test.
    read(BUILT_IN).unwrap_or_default()
}

/// Reads the text of a file.
///
/// # Errors
/// What is wrong with it, by line or by client.
pub(super) fn read(text: &str) -> Result<ClientProfiles, String> {
    let file: File =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    file.client
        .into_iter()
        .map(profile)
        .collect::<Result<_, _>>()
        .map(ClientProfiles::new)
}

fn profile(entry: Entry) -> Result<Profile, String> {
    if entry.name.is_empty() {
        return Err("a client's name is empty".to_owned());
    }
    let version = |text: Option<String>| match text {
        None => Ok(None),
        Some(text) => Version::parse(&text).map(Some).ok_or_else(|| {
            format!(
                "client `{}`: `{text}` is not a version such as \"1.2\"",
                entry.name
            )
        }),
    };
    Ok(Profile {
        from: version(entry.from)?,
        before: version(entry.before)?,
        lz4: ability(entry.lz4),
        zstd: ability(entry.zstd),
        dictionaries: ability(entry.dictionaries),
        views: ability(entry.views),
        name: entry.name,
    })
}

fn ability(said: Option<bool>) -> Ability {
    match said {
        Some(true) => Ability::Able,
        Some(false) => Ability::Unable,
        None => Ability::Unknown,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_is_good() {
        let profiles = read(BUILT_IN).unwrap();
        assert_eq!(
            profiles
                .of("JDBC Flight SQL Driver 19.0.0 grpc-java-netty/1.71.0")
                .zstd,
            Ability::Unable
        );
        assert_eq!(profiles.of("sluice-client/0.1.0").zstd, Ability::Able);
        assert_eq!(profiles.of("curl/8.5.0").zstd, Ability::Unknown);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(
            read("[[client]]\nname = \"x\"\nsnappy = true")
                .unwrap_err()
                .contains("snappy")
        );
        assert!(
            read("[[client]]\nname = \"x\"\nfrom = \"new\"")
                .unwrap_err()
                .contains("client `x`")
        );
        assert!(
            read("[[client]]\nname = \"\"")
                .unwrap_err()
                .contains("empty")
        );
    }
}
