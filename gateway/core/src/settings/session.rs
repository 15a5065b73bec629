//! The settings of one session: its layers over the defaults, under the policy. A change is
//! checked before it is made; an error leaves the old value. Must not know engines beyond their
//! prefixes, nor SQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::{Change, Reset, Source, Target, Unknown};
use super::defaults::{Defaults, has_prefix};
use super::frozen::Frozen;
use super::layer::{Foreign, Layer};
use super::policy::{Policy, Verdict, restricted};
use super::registry::{self, Id, KEYS, Key};
use super::value::Value;
use crate::error::{Error, Result};

/// Most keys in a session that are not ours.
const MAX_FOREIGN: usize = 1_024;
/// Longest name and longest value, in bytes.
const MAX_NAME: usize = 512;
const MAX_VALUE: usize = 64 << 10;

/// What drivers send to any server of HiveServer2's kind, in lower case.
const KEPT_PREFIXES: [&str; 4] = ["kyuubi.", "hive.", "mapred", "set:hivevar:"];

/// The settings of one session.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) defaults: Arc<Defaults>,
    pub(super) policy: Arc<Policy>,
    pub(super) user: Arc<str>,
    engine_prefixes: Vec<&'static str>,
    connection: Layer,
    session: Layer,
}

impl Settings {
    /// Settings of a new session of `user`. `engine_prefixes` are in lower case.
    pub fn new(
        defaults: Arc<Defaults>,
        policy: Arc<Policy>,
        user: &str,
        engine_prefixes: Vec<&'static str>,
    ) -> Self {
        Self {
            defaults,
            policy,
            user: user.into(),
            engine_prefixes,
            connection: Layer::default(),
            session: Layer::default(),
        }
    }

    /// Whose a key is. Names are compared in any case.
    pub fn resolve(&self, key: &str) -> Target {
        match Key::find(key) {
            Some(ours) => Target::Ours(ours),
            None if has_prefix(key, &self.engine_prefixes) => Target::Engine(key.to_owned()),
            None => Target::Unknown,
        }
    }

    /// Sets `key` for the connection or for the session, as `source` says.
    ///
    /// # Errors
    /// 42704 for an unknown name, with the nearest ones; 22023 for a wrong value, with the
    /// allowed ones, or one above its ceiling; 42501 for a restricted key; 54000 for too much.
    pub fn set(
        &mut self,
        key: &str,
        value: &str,
        source: Source,
        unknown: Unknown,
    ) -> Result<Change> {
        check_lengths(key, value)?;
        let target = self.resolve(key);
        match self.verdict(key, &target) {
            Verdict::Restricted => return Err(restricted(key)),
            Verdict::Ignored => {
                return Ok(Change::Ignored {
                    key: key.to_owned(),
                });
            }
            Verdict::Allowed => {}
        }
        match target {
            Target::Ours(ours) => {
                let read = ours.read(key, value)?;
                self.policy.check(ours, &read)?;
                self.layer(source).put_ours(ours.id, Some(read));
                Ok(Change::Ours { key: ours.name })
            }
            Target::Engine(key) => {
                self.check_room(&key)?;
                Ok(Change::Engine {
                    key,
                    value: value.to_owned(),
                })
            }
            Target::Unknown if unknown == Unknown::Keep && is_kept(key) => {
                self.check_room(key)?;
                let (key, value) = (key.to_owned(), value.to_owned());
                let kept = Change::Kept { key: key.clone() };
                self.layer(source).put_foreign(Foreign {
                    key,
                    value,
                    is_engine: false,
                });
                Ok(kept)
            }
            Target::Unknown => Err(registry::unknown(key)),
        }
    }

    /// Notes that the engine took a value of its own key.
    pub fn record_engine(&mut self, key: &str, value: &str, source: Source) {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.layer(source).put_foreign(Foreign {
            key,
            value,
            is_engine: true,
        });
    }

    /// What a new engine session has to be told: every engine setting of the defaults, the
    /// connection and the session.
    pub fn engine_settings(&self) -> Vec<(String, String)> {
        let mut pairs = BTreeMap::new();
        for (_, layer) in self.layers().into_iter().rev() {
            for (name, foreign) in layer.all_foreign().filter(|(_, foreign)| foreign.is_engine) {
                pairs.insert(name, (foreign.key.clone(), foreign.value.clone()));
            }
        }
        pairs.into_values().collect()
    }

    /// Takes back what statements of the session set: one key, or all of them. What the
    /// connection and the administrator gave comes to light again.
    ///
    /// # Errors
    /// For one key: 42704 for an unknown name, 42501 for a restricted one.
    pub fn reset(&mut self, key: Option<&str>) -> Result<Reset> {
        match key {
            Some(key) => self.reset_one(key),
            None => Ok(self.reset_all()),
        }
    }

    /// These settings with `pairs` on top, for one call.
    ///
    /// # Errors
    /// As for [`set`](Self::set); 0A000 for an engine's key, whose value lives in the engine's
    /// session.
    pub fn overlay(&self, pairs: &[(String, String)]) -> Result<Self> {
        let mut over = self.clone();
        for (key, value) in pairs {
            if let Change::Engine { key, .. } =
                over.set(key, value, Source::Session, Unknown::Refuse)?
            {
                let key = registry::echo(&key);
                let message = format!("{key} is the engine's: it is set for a session, not a call");
                return Err(Error::invalid("0A000", message));
            }
        }
        Ok(over)
    }

    /// What an operation that starts now runs with.
    pub fn freeze(&self) -> Frozen {
        let row_ceiling = match self.policy.ceiling(Id::BatchRows) {
            Some(Value::BatchRows(rows)) => Some(*rows),
            _ => None,
        };
        let mut frozen = Frozen::default();
        for key in &KEYS {
            // From the lowest layer up: a default of the codec stays known beside a wish for one.
            if let Some(default) = self.default_of(key) {
                frozen.take(key.id, default, false, row_ceiling);
            }
            for layer in [&self.connection, &self.session] {
                if let Some(value) = layer.ours(key.id) {
                    frozen.take(key.id, value.clone(), true, row_ceiling);
                }
            }
        }
        frozen
    }

    /// The value of a key without connection and session, under its ceiling.
    pub(super) fn default_of(&self, key: &Key) -> Option<Value> {
        let user = self
            .defaults
            .user(&self.user)
            .and_then(|layer| layer.ours(key.id));
        let given = user.or_else(|| self.defaults.server.ours(key.id)).cloned();
        let value = given.or_else(|| key.default_value())?;
        Some(self.policy.lowered(key.id, value))
    }

    /// The layers that hold values, the strongest first.
    pub(super) fn layers(&self) -> Vec<(Source, &Layer)> {
        let mut layers = vec![
            (Source::Session, &self.session),
            (Source::Connection, &self.connection),
        ];
        layers.extend(
            self.defaults
                .user(&self.user)
                .map(|layer| (Source::User, layer)),
        );
        layers.push((Source::Server, &self.defaults.server));
        layers
    }

    fn layer(&mut self, source: Source) -> &mut Layer {
        match source {
            Source::Connection => &mut self.connection,
            Source::Default | Source::Server | Source::User | Source::Session => &mut self.session,
        }
    }

    fn verdict(&self, key: &str, target: &Target) -> Verdict {
        match target {
            Target::Ours(ours) => self.policy.verdict_on(ours),
            Target::Engine(_) | Target::Unknown => self.policy.verdict(key),
        }
    }

    fn check_room(&self, key: &str) -> Result<()> {
        let is_known = self
            .session
            .foreign(key)
            .or_else(|| self.connection.foreign(key))
            .is_some();
        let count = self.session.foreign_count() + self.connection.foreign_count();
        match is_known || count < MAX_FOREIGN {
            true => Ok(()),
            false => {
                let message = format!("a session holds at most {MAX_FOREIGN} settings of others");
                Err(Error::invalid("54000", message))
            }
        }
    }

    fn reset_one(&mut self, key: &str) -> Result<Reset> {
        let target = self.resolve(key);
        if self.verdict(key, &target) == Verdict::Restricted {
            return Err(restricted(key));
        }
        let mut reset = Reset::default();
        match target {
            Target::Ours(ours) => self.session.put_ours(ours.id, None),
            Target::Engine(key) => {
                self.session.take_foreign(&key);
                self.give_back(key, &mut reset);
            }
            Target::Unknown => {
                let is_ignored = self.policy.verdict(key) == Verdict::Ignored;
                let is_kept = self.connection.foreign(key).is_some();
                if self.session.take_foreign(key).is_none() && !is_kept && !is_ignored {
                    return Err(registry::unknown(key));
                }
            }
        }
        Ok(reset)
    }

    fn reset_all(&mut self) -> Reset {
        let mut reset = Reset::default();
        for key in &KEYS {
            match self.policy.verdict_on(key) {
                Verdict::Restricted => reset.skipped.push(key.name.to_owned()),
                Verdict::Allowed | Verdict::Ignored => self.session.put_ours(key.id, None),
            }
        }
        let foreign: Vec<_> = self
            .session
            .all_foreign()
            .map(|(_, foreign)| foreign.clone())
            .collect();
        for Foreign { key, is_engine, .. } in foreign {
            if self.policy.verdict(&key) == Verdict::Restricted {
                reset.skipped.push(key);
                continue;
            }
            self.session.take_foreign(&key);
            if is_engine {
                self.give_back(key, &mut reset);
            }
        }
        reset
    }

    /// Says what the engine has to do so that `key` is as it was before the session set it.
    fn give_back(&self, key: String, reset: &mut Reset) {
        let below = self
            .layers()
            .into_iter()
            .find_map(|(_, layer)| layer.foreign(&key));
        match below {
            Some(foreign) => reset.engine_pairs.push((key, foreign.value.clone())),
            None => reset.engine_keys.push(key),
        }
    }
}

fn is_kept(key: &str) -> bool {
    has_prefix(key, &KEPT_PREFIXES)
}

fn check_lengths(key: &str, value: &str) -> Result<()> {
    let too_long = |what: &str, most: usize| {
        let message = format!("the {what} of a setting has at most {most} bytes");
        Err(Error::invalid("54000", message))
    };
    if key.len() > MAX_NAME {
        return too_long("name", MAX_NAME);
    }
    if value.len() > MAX_VALUE {
        return too_long("value", MAX_VALUE);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use sluice_ipc::Codec;

    use super::super::value::ResultFormat;
    use super::*;
    use crate::client::Client;
    use crate::error::ErrorKind;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn with(defaults: Defaults, policy: Policy) -> Settings {
        let prefixes = vec!["datafusion.", "spark."];
        Settings::new(Arc::new(defaults), Arc::new(policy), "ann", prefixes)
    }

    fn plain() -> Settings {
        with(Defaults::default(), Policy::default())
    }

    fn put(settings: &mut Settings, key: &str, value: &str) -> Result<Change> {
        settings.set(key, value, Source::Session, Unknown::Refuse)
    }

    fn value(settings: &Settings, key: &str) -> (String, &'static str) {
        let row = settings.row(key).unwrap();
        (row.value, row.source.name())
    }

    #[test]
    fn nothing_set_is_the_registry() {
        assert_eq!(plain().freeze(), Frozen::default());
        assert_eq!(
            value(&plain(), "ARROW.maxbytesperbatch"),
            ("8MiB".to_owned(), "default")
        );
        assert_eq!(plain().rows().len(), KEYS.len());
    }

    #[test]
    fn every_key_reaches_the_operation_under_each_of_its_names() {
        let frozen = Frozen {
            codec: Some(Codec::Zstd),
            default_codec: Codec::None,
            level: -7,
            max_records_per_batch: Some(10),
            max_bytes_per_batch: 1 << 20,
            max_rows: 5,
            timeout: Some(Duration::from_secs(2)),
            time_zone: "+08:00".to_owned(),
            engine: Some("other".to_owned()),
            result_format: ResultFormat::Arrow,
        };
        let values = [
            "auto", "-7", "10", "1m", "5", "arrow", "PT2S", "GMT+8", "other",
        ];
        for spelled in 0..3 {
            let mut settings = plain();
            for (key, value) in KEYS.iter().zip(values) {
                let names: Vec<_> = key.names().collect();
                put(&mut settings, names[spelled % names.len()], value).unwrap();
            }
            assert_eq!(settings.freeze(), frozen);
            settings.reset(None).unwrap();
            assert_eq!(settings.freeze(), Frozen::default());
        }
    }

    #[test]
    fn an_error_leaves_the_old_value() {
        let mut settings = plain();
        put(&mut settings, "arrow.compression.zstd.level", "19").unwrap();
        for wrong in ["0", "23", "-8", "abc", ""] {
            let error = put(&mut settings, "arrow.compression.level", wrong).unwrap_err();
            assert_eq!(error.sqlstate(), "22023", "{wrong}");
            assert!(error.message().contains("-7 to 22, not 0"), "{error}");
        }
        assert_eq!(settings.freeze().level, 19);
        let error = put(&mut settings, "arrow.compression.codek", "zstd").unwrap_err();
        assert_eq!(error.sqlstate(), "42704");
        assert!(
            error.message().contains("arrow.compression.codec"),
            "{error}"
        );
    }

    #[test]
    fn layers_hide_each_other_and_reset_uncovers_them() {
        let server = pairs(&[("arrow.compression.codec", "lz4"), ("query.timeout", "1h")]);
        let users = [(
            "ann".to_owned(),
            pairs(&[("arrow.compression.codec", "zstd")]),
        )];
        let defaults = Defaults::try_new(&server, &users, &[]).unwrap();
        let mut settings = with(defaults, Policy::default());
        assert_eq!(
            value(&settings, "query.timeout"),
            ("3600s".to_owned(), "server")
        );
        assert_eq!(
            value(&settings, "arrow.compression.codec"),
            ("zstd".to_owned(), "user")
        );
        let frozen = settings.freeze();
        assert_eq!((frozen.codec, frozen.default_codec), (None, Codec::Zstd));
        assert_eq!(frozen.choose_codec(&Client::default()).codec, Codec::None);

        settings
            .set("query.timeout", "5", Source::Connection, Unknown::Refuse)
            .unwrap();
        put(&mut settings, "query.timeout", "7").unwrap();
        assert_eq!(
            value(&settings, "query.timeout"),
            ("7s".to_owned(), "session")
        );
        settings
            .reset(Some("KYUUBI.operation.query.timeout"))
            .unwrap();
        assert_eq!(
            value(&settings, "query.timeout"),
            ("5s".to_owned(), "connection")
        );
        put(&mut settings, "arrow.compression.codec", "none").unwrap();
        let frozen = settings.freeze();
        assert_eq!(
            (frozen.codec, frozen.default_codec),
            (Some(Codec::None), Codec::Zstd)
        );
    }

    #[test]
    fn ceilings_hold_on_every_path() {
        let ceilings = pairs(&[
            ("arrow.compression.level", "9"),
            ("arrow.maxBytesPerBatch", "1MiB"),
            ("arrow.maxRecordsPerBatch", "1000"),
            ("result.max.rows", "100"),
            ("query.timeout", "1m"),
        ]);
        let policy = Policy::try_new(&[], &[], &ceilings).unwrap();
        let mut settings = with(Defaults::default(), policy);
        for (key, wrong) in [
            ("spark.sql.execution.arrow.compression.zstd.level", "10"),
            ("arrow.maxBytesPerBatch", "1048577"),
            ("arrow.maxRecordsPerBatch", "1001"),
            ("result.max.rows", "0"),
            ("query.timeout", "0"),
        ] {
            let error = put(&mut settings, key, wrong).unwrap_err();
            assert_eq!(error.sqlstate(), "22023", "{key}");
            assert!(error.message().contains("ceiling of"), "{error}");
            let error = settings.overlay(&pairs(&[(key, wrong)])).unwrap_err();
            assert_eq!(error.sqlstate(), "22023", "{key}");
        }
        put(&mut settings, "arrow.maxRecordsPerBatch", "-1").unwrap();
        put(&mut settings, "arrow.compression.level", "9").unwrap();
        let frozen = settings.freeze();
        assert_eq!(
            (frozen.max_bytes_per_batch, frozen.max_rows),
            (1 << 20, 100)
        );
        assert_eq!(
            (frozen.max_records_per_batch, frozen.level),
            (Some(1_000), 9)
        );
        assert_eq!(frozen.timeout, Some(Duration::from_secs(60)));
        settings.reset(None).unwrap();
        assert_eq!(settings.freeze().max_bytes_per_batch, 1 << 20);
        assert_eq!(
            value(&settings, "arrow.maxBytesPerBatch"),
            ("1MiB".to_owned(), "default")
        );
    }

    #[test]
    fn restricted_and_ignored_keys_hold_on_every_path() {
        let restrict = ["arrow.compression.*", "datafusion.runtime.*"].map(str::to_owned);
        let ignore = ["query.timeout", "kyuubi.x.*"].map(str::to_owned);
        let policy = Policy::try_new(&restrict, &ignore, &[]).unwrap();
        let mut settings = with(Defaults::default(), policy);
        for key in [
            "arrow.compression.codec",
            "SPARK.sql.execution.arrow.compression.codec",
            "arrow.compression.level",
            "datafusion.runtime.memory_limit",
        ] {
            for source in [Source::Connection, Source::Session] {
                let error = settings
                    .set(key, "zstd", source, Unknown::Keep)
                    .unwrap_err();
                assert_eq!(
                    (error.kind(), error.sqlstate()),
                    (ErrorKind::Forbidden, "42501")
                );
            }
            let error = settings.overlay(&pairs(&[(key, "zstd")])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Forbidden);
            assert_eq!(
                settings.reset(Some(key)).unwrap_err().kind(),
                ErrorKind::Forbidden
            );
        }
        for key in [
            "query.timeout",
            "kyuubi.operation.query.timeout",
            "kyuubi.x.y",
        ] {
            let change = put(&mut settings, key, "5s").unwrap();
            assert_eq!(
                change,
                Change::Ignored {
                    key: key.to_owned()
                }
            );
            assert!(settings.row(key).unwrap().description.contains("gnored"));
        }
        assert_eq!(settings.freeze(), Frozen::default());
        let skipped = settings.reset(None).unwrap().skipped;
        assert_eq!(
            skipped,
            ["arrow.compression.codec", "arrow.compression.zstd.level"]
        );
    }

    #[test]
    fn the_engine_decides_on_its_own_keys() {
        let server = pairs(&[("datafusion.a", "1")]);
        let defaults = Defaults::try_new(&server, &[], &["datafusion."]).unwrap();
        let mut settings = with(defaults, Policy::default());
        for key in ["datafusion.a", "DataFusion.b"] {
            let (owned, value) = (key.to_owned(), "2".to_owned());
            let change = put(&mut settings, key, "2").unwrap();
            assert_eq!(change, Change::Engine { key: owned, value });
            settings.record_engine(key, "2", Source::Session);
        }
        let want = pairs(&[("datafusion.a", "2"), ("DataFusion.b", "2")]);
        assert_eq!(settings.engine_settings(), want);
        let row = settings.row("datafusion.A").unwrap();
        assert_eq!(
            (row.value.as_str(), row.default.as_str(), row.is_engine),
            ("2", "1", true)
        );
        assert_eq!(settings.overlay(&want).unwrap_err().sqlstate(), "0A000");
        let reset = settings.reset(None).unwrap();
        assert_eq!(reset.engine_keys, ["DataFusion.b"]);
        assert_eq!(reset.engine_pairs, pairs(&[("datafusion.a", "1")]));
        assert_eq!(
            settings.reset(Some("datafusion.z")).unwrap().engine_keys,
            ["datafusion.z"]
        );
    }

    #[test]
    fn what_drivers_send_is_kept_where_that_is_asked_for() {
        let mut settings = plain();
        for key in [
            "kyuubi.client.version",
            "hive.exec.x",
            "mapreduce.y",
            "set:hivevar:z",
        ] {
            assert_eq!(
                put(&mut settings, key, "1").unwrap_err().sqlstate(),
                "42704"
            );
            let kept = settings
                .set(key, "1", Source::Connection, Unknown::Keep)
                .unwrap();
            assert_eq!(
                kept,
                Change::Kept {
                    key: key.to_owned()
                }
            );
            assert_eq!(settings.row(key).unwrap().effective, "(not effective)");
        }
        let other = settings.set("other.x", "1", Source::Connection, Unknown::Keep);
        assert_eq!(other.unwrap_err().sqlstate(), "42704");
        let ours = settings.set(
            "kyuubi.operation.result.max.rows",
            "9",
            Source::Session,
            Unknown::Keep,
        );
        assert_eq!(
            ours.unwrap(),
            Change::Ours {
                key: "result.max.rows"
            }
        );
    }

    #[test]
    fn secrets_are_masked_and_lengths_bounded() {
        let mut settings = plain();
        settings.record_engine("datafusion.s3.secret_key", "hush", Source::Session);
        let rows = format!("{:?}", settings.rows());
        assert!(rows.contains("***") && !rows.contains("hush"));
        let row = settings
            .row("datafusion.s3.secret_key")
            .unwrap()
            .with_engine_value("hush", "d");
        assert!(!format!("{row:?}").contains("hush"));

        let long = "x".repeat(MAX_VALUE + 1);
        assert_eq!(
            put(&mut settings, "spark.a", &long).unwrap_err().sqlstate(),
            "54000"
        );
        assert_eq!(
            put(&mut settings, &long, "1").unwrap_err().sqlstate(),
            "54000"
        );
        for number in 0..MAX_FOREIGN {
            settings.record_engine(&format!("spark.k{number}"), "1", Source::Session);
        }
        assert_eq!(
            put(&mut settings, "spark.new", "1").unwrap_err().sqlstate(),
            "54000"
        );
        assert!(put(&mut settings, "spark.k1", "2").is_ok());
    }
}
