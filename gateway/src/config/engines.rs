//! `[engines.NAME]`: tables, what SQL may touch, memory. Must not know how an engine runs.

use std::path::PathBuf;

use super::mistake::Mistakes;
use super::raw::{self, Kind, Raw};
use super::resolve::{Place, check_readable, threads};
use crate::engine::{self, embedded};

/// Scale factors that the generator of TPC-H tables takes.
const SCALE_FACTORS: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

/// Less memory than this is of no use.
const LEAST_MEMORY: u64 = 16 << 20;

/// The engines, and which is the default.
pub(super) struct Engines {
    pub(super) all: Vec<(String, engine::Config)>,
    pub(super) default: Option<String>,
    /// Prefixes of settings that are some engine's own.
    pub(super) setting_prefixes: Vec<&'static str>,
}

pub(super) fn resolve(
    raw: &Raw,
    own_files: &[PathBuf],
    place: &Place,
    mistakes: &mut Mistakes,
) -> Engines {
    let mut engines = Engines {
        all: Vec::new(),
        default: default_engine(raw, mistakes),
        setting_prefixes: Vec::new(),
    };
    for (name, engine) in &raw.engines {
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        {
            mistakes.add(
                format!("engines.{name}"),
                "not a name of an engine; allowed: letters, digits, _ and -",
            );
        }
        let mut section = Section {
            key: format!("engines.{name}"),
            place,
            mistakes,
        };
        let (config, prefix) = match engine.kind {
            Kind::Embedded => (
                engine::Config::Embedded(section.embedded(engine, own_files)),
                "datafusion.",
            ),
        };
        engines.all.push((name.clone(), config));
        engines.setting_prefixes.push(prefix);
    }
    engines
}

/// The one engine, or the one that says so.
fn default_engine(raw: &Raw, mistakes: &mut Mistakes) -> Option<String> {
    let said: Vec<_> = raw
        .engines
        .iter()
        .filter(|(_, engine)| engine.default)
        .map(|(name, _)| name.clone())
        .collect();
    let names: Vec<_> = raw.engines.keys().cloned().collect();
    match (said.as_slice(), names.as_slice()) {
        ([one], _) | ([], [one]) => return Some(one.clone()),
        // An engine with a mistake was set aside: it may be the one that is missed here.
        _ if mistakes
            .iter()
            .any(|mistake| mistake.key.starts_with("engines.")) => {}
        (_, []) => mistakes.add("engines", "missing; allowed: at least one [engines.NAME]"),
        ([], _) => mistakes.add(
            "engines",
            format!(
                "no default; one of {} needs default = true",
                names.join(", ")
            ),
        ),
        (several, _) => mistakes.add(
            "engines",
            format!("several defaults: {}; allowed: one", several.join(", ")),
        ),
    }
    None
}

/// One `[engines.NAME]`.
struct Section<'a> {
    key: String,
    place: &'a Place,
    mistakes: &'a mut Mistakes,
}

impl Section<'_> {
    fn embedded(&mut self, engine: &raw::Engine, own_files: &[PathBuf]) -> embedded::Config {
        self.check_memory(engine);
        let spill_dir = self.spill_dir(engine);
        let tables = engine.tables.iter();
        let tables = tables.map(|(name, at)| (name.clone(), self.location("tables", name, at)));
        let tables = tables.collect();
        let allow = engine.allow.iter().enumerate();
        let allow = allow.map(|(index, at)| self.location("allow", &index.to_string(), at));
        let allow = allow.collect();
        embedded::Config {
            tables,
            allow,
            own_files: own_files.iter().cloned().chain(spill_dir.clone()).collect(),
            tpch_scale_factor: self.scale_factor(engine),
            memory_limit: engine.memory_limit.0,
            query_memory_limit: engine.query_memory_limit.0,
            spill_dir,
            spill_limit: engine.spill_limit.0,
            target_partitions: threads(engine.threads),
            store_options: engine.store_options.clone().into_iter().collect(),
        }
    }

    fn check_memory(&mut self, engine: &raw::Engine) {
        let (all, one) = (engine.memory_limit, engine.query_memory_limit);
        for (name, size) in [("memory_limit", all), ("query_memory_limit", one)] {
            if size.0 < LEAST_MEMORY {
                self.wrong(
                    name,
                    format!("{size} is too little; allowed: from 16MiB up"),
                );
            }
        }
        if one.0 > all.0 {
            let text = format!("{one} is more than memory_limit; allowed: up to {all}");
            self.wrong("query_memory_limit", text);
        }
    }

    fn spill_dir(&mut self, engine: &raw::Engine) -> Option<PathBuf> {
        let folder = self.place.path(engine.spill_dir.as_ref()?);
        if !folder.is_dir() {
            self.wrong("spill_dir", format!("{} is not a folder", folder.display()));
        }
        Some(folder)
    }

    fn scale_factor(&mut self, engine: &raw::Engine) -> Option<f64> {
        let factor = engine.tpch.as_ref()?.scale_factor;
        if !SCALE_FACTORS.contains(&factor) {
            let (low, high) = (SCALE_FACTORS.start(), SCALE_FACTORS.end());
            self.wrong(
                "tpch.scale_factor",
                format!("allowed: a number from {low} to {high}"),
            );
        }
        Some(factor)
    }

    /// A URL as it is; a path made whole, with its closing slash, and looked at.
    fn location(&mut self, table: &str, key: &str, at: &str) -> String {
        if at.contains("://") {
            return at.to_owned();
        }
        let path = self.place.path(at);
        if let Err(text) = check_readable(&path) {
            self.wrong(&format!("{table}.{key}"), text);
        }
        let mut whole = path.to_string_lossy().into_owned();
        if at.ends_with('/') && !whole.ends_with('/') {
            whole.push('/');
        }
        whole
    }

    fn wrong(&mut self, key: &str, text: String) {
        self.mistakes.add(format!("{}.{key}", self.key), text);
    }
}
