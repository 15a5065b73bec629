//! Password hashes as PHC strings of argon2id: making, reading, checking. Must not know whose
//! they are.

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use subtle::ConstantTimeEq;

/// What a hash may ask for at most, so that one line of a file cannot stop the gateway.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_PASSES: u32 = 16;

/// A checked argon2id hash.
#[derive(Clone)]
pub(super) struct Hash {
    text: String,
    params: Params,
    salt: Vec<u8>,
    output: Vec<u8>,
}

/// What a check works in. Megabytes that are allocated anew for each check, and aligned, tear
/// holes into the heap that are never filled again; so they are kept and lent.
#[derive(Default)]
pub(super) struct Memory(Vec<Block>);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash(***)")
    }
}

impl Hash {
    /// Reads a PHC string.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |text: &dyn std::fmt::Display| format!("{text}; {HOW}");
        let phc = PasswordHash::new(text).map_err(|error| wrong(&error))?;
        let (algorithm, version) = (phc.algorithm.as_str(), phc.version);
        if algorithm != "argon2id" || version != Some(Version::V0x13.into()) {
            return Err(wrong(&format!(
                "algorithm `{algorithm}`, allowed: argon2id with v=19"
            )));
        }
        let params = Params::try_from(&phc).map_err(|error| wrong(&error))?;
        if params.m_cost() > MAX_MEMORY_KIB || params.t_cost() > MAX_PASSES {
            let most = format!("allowed: up to m={MAX_MEMORY_KIB} and t={MAX_PASSES}");
            return Err(wrong(&most));
        }
        let (Some(salt), Some(output)) = (phc.salt, phc.hash) else {
            return Err(wrong(&"holds no salt or no hash"));
        };
        let (salt, output) = (salt.as_ref().to_vec(), output.as_bytes().to_vec());
        Ok(Self {
            text: text.to_owned(),
            params,
            salt,
            output,
        })
    }

    /// The hash of a random password, which costs as much to check as `like` does.
    pub(super) fn decoy(like: Option<&Self>) -> Result<Self, String> {
        let params = like.map(|hash| hash.params.clone()).unwrap_or_default();
        let mut password = [0; 32];
        getrandom::fill(&mut password).map_err(|error| error.to_string())?;
        Self::parse(&with_params(&password, params)?)
    }

    /// Whether it is `password`'s. Takes tens of milliseconds and megabytes, on purpose.
    pub(super) fn is_of(&self, password: &str, memory: &mut Memory) -> bool {
        let blocks = self.params.block_count();
        if memory.0.len() < blocks {
            memory.0 = vec![Block::default(); blocks];
        }
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone());
        let mut output = vec![0; self.output.len()];
        let hashed = argon2.hash_password_into_with_memory(
            password.as_bytes(),
            &self.salt,
            &mut output,
            &mut memory.0[..blocks],
        );
        hashed.is_ok() && output.ct_eq(&self.output).into()
    }

    /// Memory times passes: what a check costs, for comparing.
    pub(super) fn cost(&self) -> u64 {
        u64::from(self.params.m_cost()) * u64::from(self.params.t_cost())
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
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash = argon2
        .hash_password(password)
        .map_err(|error| error.to_string())?;
    Ok(hash.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use argon2::password_hash::PasswordVerifier;

    use super::*;

    #[test]
    fn a_hash_is_of_its_password_alone() {
        let text = hash("s3cret").unwrap();
        assert!(
            text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{text}"
        );
        let hash = Hash::parse(&text).unwrap();
        let mut memory = Memory::default();
        for _ in 0..2 {
            assert!(hash.is_of("s3cret", &mut memory));
            assert!(!hash.is_of("s3cret ", &mut memory));
        }
        let phc = PasswordHash::new(&text).unwrap();
        Argon2::default().verify_password(b"s3cret", &phc).unwrap();
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
