//! Users and argon2id hashes in a file. Owns the bounds that keep a storm of log-ins, or a
//! guesser, from taking the machine. Must not know how credentials came.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use sluice_core::auth::{Authenticator, Credentials, Identity};
use sluice_core::error::{Error as CoreError, ErrorKind, Result as CoreResult};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::info;

use super::hash::{Hash, Memory};
use super::none::MAX_NAME;
use super::remembered::{Proof, Remembered};
use super::same::Same;
use super::slowdown::Slowdown;

/// Longer passwords are wrong: nobody can have set one.
const MAX_PASSWORD: usize = 1024;

/// Where users are, and how many log-ins are checked at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// TOML: `name = "$argon2id$…"`, a line a user.
    pub users_file: PathBuf,
    /// Checks at one time; each takes a processor and about 20 MiB.
    pub max_concurrent_checks: usize,
    /// Checks that may wait for their turn.
    pub check_queue: usize,
    /// How long a right log-in is remembered.
    pub remember: Duration,
}

/// What is wrong with a file of users.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("cannot read {path}: {cause}")]
    Read {
        path: PathBuf,
        cause: std::io::Error,
    },
    #[error("{path} is not a TOML table of `name = \"$argon2id$…\"`: {cause}")]
    Shape {
        path: PathBuf,
        cause: toml::de::Error,
    },
    #[error("{path}: {}", mistakes.join("; "))]
    Users {
        path: PathBuf,
        mistakes: Vec<String>,
    },
    #[error("cannot set up password checks: {0}")]
    Random(String),
}

/// Checks passwords against a file.
pub struct FileAuthenticator {
    config: Config,
    users: RwLock<Arc<Users>>,
    /// Places for checks that run or wait.
    places: Arc<Semaphore>,
    /// Turns for checks that run.
    turns: Arc<Semaphore>,
    /// What checks work in: as many as run at one time.
    memory: Arc<Mutex<Vec<Memory>>>,
    same: Same<Proof>,
    remembered: Mutex<Remembered>,
    slowdown: Mutex<Slowdown>,
    #[cfg(test)]
    checks: std::sync::atomic::AtomicUsize,
}

/// A place in the queue, and a turn.
type Turn = [OwnedSemaphorePermit; 2];

/// The file as it was last good.
#[derive(Debug)]
struct Users {
    hashes: BTreeMap<String, Arc<Hash>>,
    /// What an unknown user's password is checked against, so that it takes as long.
    decoy: Arc<Hash>,
}

/// Whether the file at `path` is good.
///
/// # Errors
/// What is wrong with it: every bad line, by user.
pub fn check(path: &Path) -> Result<(), Error> {
    Users::read(path).map(drop)
}

impl FileAuthenticator {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it: every bad line, by user.
    pub fn load(config: Config) -> Result<Self, Error> {
        let users = Users::read(&config.users_file)?;
        info!(file = %config.users_file.display(), users = users.hashes.len(), "users read");
        Ok(Self {
            users: RwLock::new(Arc::new(users)),
            places: Arc::new(Semaphore::new(
                config.max_concurrent_checks + config.check_queue,
            )),
            turns: Arc::new(Semaphore::new(config.max_concurrent_checks)),
            remembered: Mutex::new(Remembered::new(config.remember).map_err(Error::Random)?),
            memory: Arc::default(),
            same: Same::default(),
            slowdown: Mutex::default(),
            config,
            #[cfg(test)]
            checks: std::sync::atomic::AtomicUsize::new(0),
        })
    }

    /// Reads the file again and says how many users it holds.
    ///
    /// # Errors
    /// What is wrong with it; the users known before stay in force.
    pub fn reload(&self) -> Result<usize, Error> {
        let users = Users::read(&self.config.users_file)?;
        let count = users.hashes.len();
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(users);
        info!(file = %self.config.users_file.display(), users = count, "users read again");
        Ok(count)
    }

    async fn prove(&self, user: &str, password: &str, peer: IpAddr) -> CoreResult<Identity> {
        let users = Arc::clone(&self.users.read().unwrap_or_else(PoisonError::into_inner));
        let known = users
            .hashes
            .get(user)
            .filter(|_| password.len() <= MAX_PASSWORD);
        let hash = Arc::clone(known.unwrap_or(&users.decoy));
        let proof = self.remembered().proof(user, password, hash.text());
        if self.remembered().holds(&proof) {
            return Ok(Identity::new(user));
        }
        // Many connections of one program log in at once: the first check answers for all.
        let _ahead = self.same.go_ahead(proof).await;
        if self.remembered().holds(&proof) {
            return Ok(Identity::new(user));
        }
        self.refuse_while_slowed(user, peer)?;
        let turn = self.turn().await?;
        let right = self.check(hash, password, turn).await?;
        if right && known.is_some() {
            Ok(self.let_in(user, peer, proof))
        } else {
            lock(&self.slowdown).failed(user, peer);
            Err(refused())
        }
    }

    fn refuse_while_slowed(&self, user: &str, peer: IpAddr) -> CoreResult<()> {
        let wait = lock(&self.slowdown).wait(user, peer);
        if wait.is_zero() {
            return Ok(());
        }
        let seconds = wait.as_secs() + 1;
        let text = format!("too many failed log-ins; try again in {seconds} s");
        Err(CoreError::new(ErrorKind::Overloaded, text).with_sqlstate("28000"))
    }

    /// A turn to check, after those that wait already.
    async fn turn(&self) -> CoreResult<Turn> {
        let full = |_| {
            CoreError::new(
                ErrorKind::Overloaded,
                "too many log-ins wait to be checked; try again later",
            )
        };
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(full)?;
        let turn = Arc::clone(&self.turns)
            .acquire_owned()
            .await
            .map_err(|cause| {
                CoreError::new(ErrorKind::Internal, "password checks are closed").with_cause(cause)
            })?;
        Ok([place, turn])
    }

    /// Checks on a thread that may block, which has the turn meanwhile: a caller that goes away
    /// does not end the work, so it does not free the turn either.
    async fn check(&self, hash: Arc<Hash>, password: &str, turn: Turn) -> CoreResult<bool> {
        #[cfg(test)]
        self.checks
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // What is too long is cut: it is wrong either way.
        let password = password
            .get(..MAX_PASSWORD.min(password.len()))
            .unwrap_or_default()
            .to_owned();
        let spare = Arc::clone(&self.memory);
        let checked = tokio::task::spawn_blocking(move || {
            let mut memory = lock(&spare).pop().unwrap_or_default();
            let right = hash.is_of(&password, &mut memory);
            lock(&spare).push(memory);
            drop(turn);
            right
        });
        checked.await.map_err(|cause| {
            CoreError::new(ErrorKind::Internal, "the password check failed").with_cause(cause)
        })
    }

    fn let_in(&self, user: &str, peer: IpAddr, proof: Proof) -> Identity {
        self.remembered().add(proof);
        lock(&self.slowdown).succeeded(user, peer);
        Identity::new(user)
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        lock(&self.remembered)
    }
}

#[async_trait]
impl Authenticator for FileAuthenticator {
    async fn authenticate(&self, credentials: &Credentials, peer: IpAddr) -> CoreResult<Identity> {
        match credentials {
            Credentials::Password { user, password }
                if !user.is_empty() && user.len() <= MAX_NAME =>
            {
                self.prove(user, password, peer).await
            }
            Credentials::Password { .. } => Err(refused()),
            Credentials::Anonymous => Err(CoreError::new(
                ErrorKind::Unauthenticated,
                "a user name and a password are needed",
            )),
        }
    }
}

impl Users {
    fn read(path: &Path) -> Result<Self, Error> {
        let path = path.to_path_buf();
        let text = std::fs::read_to_string(&path).map_err(|cause| Error::Read {
            path: path.clone(),
            cause,
        })?;
        let table: BTreeMap<String, String> =
            toml::from_str(&text).map_err(|cause| Error::Shape {
                path: path.clone(),
                cause: without_text(cause),
            })?;
        let (mut hashes, mut mistakes) = (BTreeMap::new(), Vec::new());
        for (user, text) in table {
            match Hash::parse(&text) {
                _ if user.is_empty() || user.len() > MAX_NAME => {
                    mistakes.push(format!(
                        "a user name has 1 to {MAX_NAME} bytes, `{user}` has {}",
                        user.len()
                    ));
                }
                Ok(hash) => drop(hashes.insert(user, Arc::new(hash))),
                Err(mistake) => mistakes.push(format!("user `{user}`: {mistake}")),
            }
        }
        if !mistakes.is_empty() {
            return Err(Error::Users { path, mistakes });
        }
        let dearest = hashes.values().max_by_key(|hash| hash.cost());
        let decoy = Hash::decoy(dearest.map(Arc::as_ref)).map_err(Error::Random)?;
        Ok(Self {
            hashes,
            decoy: Arc::new(decoy),
        })
    }
}

/// Without the lines around the mistake, which hold hashes.
fn without_text(mut error: toml::de::Error) -> toml::de::Error {
    error.set_input(None);
    error
}

/// The same words for a wrong password and for a user that is not known.
fn refused() -> CoreError {
    CoreError::new(ErrorKind::Unauthenticated, "user name or password is wrong")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each table is whole between two calls, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::Ordering;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    /// `pw` with parameters that take no time.
    fn cheap(password: &str) -> String {
        use argon2::password_hash::PasswordHasher as _;
        let params = argon2::Params::new(8, 1, 1, None).unwrap();
        let argon2 =
            argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        argon2
            .hash_password(password.as_bytes())
            .unwrap()
            .to_string()
    }

    fn config(folder: &tempfile::TempDir, users: &[(&str, &str)]) -> Config {
        let users_file = folder.path().join("users.toml");
        let lines: Vec<_> = users
            .iter()
            .map(|(name, hash)| format!("{name} = \"{hash}\"\n"))
            .collect();
        std::fs::write(&users_file, lines.concat()).unwrap();
        Config {
            users_file,
            max_concurrent_checks: 2,
            check_queue: 1,
            remember: Duration::from_secs(300),
        }
    }

    fn ann() -> (tempfile::TempDir, FileAuthenticator) {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&folder, &[("ann", &cheap("pw"))]);
        (folder, FileAuthenticator::load(config).unwrap())
    }

    async fn log_in(users: &FileAuthenticator, user: &str, password: &str) -> CoreResult<Identity> {
        let credentials = Credentials::Password {
            user: user.to_owned(),
            password: password.to_owned(),
        };
        users.authenticate(&credentials, PEER).await
    }

    fn checks(users: &FileAuthenticator) -> usize {
        users.checks.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn the_right_password_lets_in_and_is_remembered() {
        let (_folder, users) = ann();
        assert_eq!(log_in(&users, "ann", "pw").await.unwrap().user(), "ann");
        assert_eq!(log_in(&users, "ann", "pw").await.unwrap().user(), "ann");
        assert_eq!(checks(&users), 1);
    }

    #[tokio::test]
    async fn wrong_and_unknown_are_alike_and_each_cost_a_check() {
        let (_folder, users) = ann();
        let wrong = log_in(&users, "ann", "nope").await.unwrap_err();
        let unknown = log_in(&users, "eve", "nope").await.unwrap_err();
        let long = log_in(&users, "ann", &"p".repeat(2 * MAX_PASSWORD))
            .await
            .unwrap_err();
        for error in [&wrong, &unknown, &long] {
            assert_eq!(error.kind(), ErrorKind::Unauthenticated);
            assert_eq!(error.message(), wrong.message());
        }
        assert_eq!(checks(&users), 3);
        {
            let known = users.users.read().unwrap();
            assert_eq!(known.decoy.cost(), known.hashes["ann"].cost());
        }
        let nobody = users
            .authenticate(&Credentials::Anonymous, PEER)
            .await
            .unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::Unauthenticated);
    }

    #[tokio::test]
    async fn a_full_queue_is_overloaded_at_once() {
        let (_folder, users) = ann();
        let _running = Arc::clone(&users.turns)
            .acquire_many_owned(2)
            .await
            .unwrap();
        let _places = Arc::clone(&users.places)
            .acquire_many_owned(3)
            .await
            .unwrap();
        let error = log_in(&users, "ann", "pw").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overloaded);
        assert!(error.retryable());
        assert_eq!(checks(&users), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_log_ins_of_one_user_cost_few_checks() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            check_queue: 0,
            ..config(&folder, &[("ann", &cheap("pw"))])
        };
        let users = FileAuthenticator::load(config).unwrap();
        let all = futures::future::join_all((0..1000).map(|_| log_in(&users, "ann", "pw"))).await;
        assert!(all.iter().all(CoreResult::is_ok));
        assert_eq!(checks(&users), 1);
        assert_eq!(users.places.available_permits(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_guesser_is_slowed_without_a_check() {
        let (_folder, users) = ann();
        for _ in 0..6 {
            log_in(&users, "ann", "guess").await.unwrap_err();
        }
        let slowed = log_in(&users, "ann", "pw").await.unwrap_err();
        assert_eq!(slowed.kind(), ErrorKind::Overloaded);
        assert_eq!(checks(&users), 6);
        tokio::time::advance(Duration::from_secs(2)).await;
        log_in(&users, "ann", "pw").await.unwrap();
    }

    #[tokio::test]
    async fn a_reload_changes_passwords_at_once_and_a_bad_file_changes_nothing() {
        let (folder, users) = ann();
        log_in(&users, "ann", "pw").await.unwrap();
        config(&folder, &[("ann", &cheap("new")), ("bob", "plain")]);
        let error = users.reload().unwrap_err().to_string();
        assert!(
            error.contains("user `bob`") && error.contains("hash-password"),
            "{error}"
        );
        log_in(&users, "ann", "pw").await.unwrap();

        config(&folder, &[("ann", &cheap("new"))]);
        assert_eq!(users.reload().unwrap(), 1);
        log_in(&users, "ann", "pw").await.unwrap_err();
        log_in(&users, "ann", "new").await.unwrap();
    }

    #[tokio::test]
    async fn every_bad_line_is_named_and_no_hash_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(
            &folder,
            &[("ann", "x"), ("bob", "$2b$secret"), ("eve", &cheap("pw"))],
        );
        let error = FileAuthenticator::load(config.clone())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("`ann`") && error.contains("`bob`") && !error.contains("`eve`"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
        std::fs::write(&config.users_file, "ann = \"$argon2id$secret\nbob").unwrap();
        let error = FileAuthenticator::load(config).err().unwrap().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
