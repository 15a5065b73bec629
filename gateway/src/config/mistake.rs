//! What is wrong with a configuration: all of it, each with its key. Must not know how a mistake
//! is found.

use std::fmt;

/// One mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// The key, such as `server.listen`.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub text: String,
    /// Where the value came from, when it was given.
    pub origin: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text)?;
        match &self.origin {
            Some(origin) => write!(f, " ({origin})"),
            None => Ok(()),
        }
    }
}

/// All that is wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Notes what is wrong with `key`, unless something was said of it before: what follows from
    /// a mistake is not another one.
    pub(super) fn add(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.add_from(key, text, None);
    }

    /// The same, with where the value came from.
    pub(super) fn add_from(
        &mut self,
        key: impl Into<String>,
        text: impl Into<String>,
        origin: Option<String>,
    ) {
        let key = key.into();
        if !self.names(&key) {
            self.0.push(Mistake {
                key,
                text: text.into(),
                origin,
            });
        }
    }

    /// Fills in where values came from, as far as `origin` knows.
    pub(super) fn locate(&mut self, origin: impl Fn(&str) -> Option<String>) {
        for mistake in self.0.iter_mut().filter(|mistake| mistake.origin.is_none()) {
            mistake.origin = origin(&mistake.key);
        }
    }

    /// Whether something is wrong with `key`.
    pub(super) fn names(&self, key: &str) -> bool {
        self.0.iter().any(|mistake| mistake.key == key)
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mistakes, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 {
            "mistake"
        } else {
            "mistakes"
        };
        write!(f, "{} {plural} in the configuration", self.0.len())?;
        self.0
            .iter()
            .try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl std::error::Error for Mistakes {}
