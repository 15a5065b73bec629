//! Password hashes as PHC strings of argon2id: making, reading, checking. Must not know whose
//! they are.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};

/// What a hash may ask for at most, so that one line of a file cannot stop the gateway.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_PASSES: u32 = 16;

/// A checked argon2id hash.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hash {
    phc: PasswordHash,
    text: String,
    cost: u64,
}

impl Hash {
    /// Reads a PHC string.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let phc = PasswordHash::new(text)
            .map_err(|error| format!("not a PHC string ({error}); {HOW}"))?;
        if phc.algorithm.as_str() != "argon2id" {
            return Err(format!(
                "algorithm `{}`, allowed: `argon2id`; {HOW}",
                phc.algorithm
            ));
        }
        let params = Params::try_from(&phc).map_err(|error| format!("{error}; {HOW}"))?;
        if params.m_cost() > MAX_MEMORY_KIB || params.t_cost() > MAX_PASSES {
            return Err(format!(
                "asks for more than m={MAX_MEMORY_KIB} or t={MAX_PASSES}; {HOW}"
            ));
        }
        if phc.salt.is_none() || phc.hash.is_none() {
            return Err(format!("holds no salt or no hash; {HOW}"));
        }
        let cost = u64::from(params.m_cost()) * u64::from(params.t_cost());
        Ok(Self {
            phc,
            text: text.to_owned(),
            cost,
        })
    }

    /// The hash of a random password, which costs as much to check as `like` does.
    pub(super) fn decoy(like: Option<&Self>) -> Result<Self, String> {
        let params = like
            .and_then(|hash| Params::try_from(&hash.phc).ok())
            .unwrap_or_default();
        let mut password = [0; 32];
        getrandom::fill(&mut password).map_err(|error| error.to_string())?;
        Self::parse(&with_params(&password, params)?)
    }

    /// Whether it is `password`'s. Takes tens of milliseconds and megabytes, on purpose.
    pub(super) fn is_of(&self, password: &str) -> bool {
        Argon2::default()
            .verify_password(password.as_bytes(), &self.phc)
            .is_ok()
    }

    /// Memory times passes: what a check costs, for comparing.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// The PHC string.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

const HOW: &str = "make one with `sluice hash-password`";

/// Hashes `password` with a new salt and the parameters that OWASP recommends.
///
/// # Errors
/// When the system gives no random bytes.
pub fn hash(password: &str) -> Result<String, String> {
    with_params(password.as_bytes(), Params::default())
}

fn with_params(password: &[u8], params: Params) -> Result<String, String> {
    let argon2 = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let hash = argon2
        .hash_password(password)
        .map_err(|error| error.to_string())?;
    Ok(hash.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_its_password_alone() {
        let text = hash("s3cret").unwrap();
        assert!(
            text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{text}"
        );
        let hash = Hash::parse(&text).unwrap();
        assert!(hash.is_of("s3cret"));
        assert!(!hash.is_of("s3cret "));
    }

    #[test]
    fn a_decoy_costs_what_its_model_costs() {
        let model =
            Hash::parse(&with_params(b"x", Params::new(64, 3, 1, None).unwrap()).unwrap()).unwrap();
        assert_eq!(Hash::decoy(Some(&model)).unwrap().cost(), model.cost());
        assert_eq!(Hash::decoy(None).unwrap().cost(), 19456 * 2);
    }

    #[test]
    fn other_hashes_are_refused_with_the_way_to_make_one() {
        let huge = "$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA";
        for text in [
            "",
            "secret",
            "$2b$12$abc",
            "$argon2i$v=19$m=64,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo",
            "$argon2id$v=19$m=64,t=2,p=1",
            huge,
        ] {
            let error = Hash::parse(text).unwrap_err();
            assert!(error.contains("sluice hash-password"), "{text}: {error}");
            assert!(!error.contains("aGFzaGhh"), "no part of a hash in an error");
        }
    }
}
