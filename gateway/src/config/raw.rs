//! The shape of the file: one struct a section, its built-in defaults, unknown keys refused. Must
//! not know what a value means, nor other modules.

use std::collections::BTreeMap;

use config::Value;
use serde::{Deserialize, Serialize};
use serde_path_to_error::{Path, Segment};

use super::layers;
use super::mistake::Mistakes;
use super::values::{Address, Setting, Size, Span};

/// Mistakes that are looked for before the reader has enough to do.
const MOST_MISTAKES: usize = 200;

/// Sections that are in the plan and not in this version.
const LATER_SECTIONS: [&str; 1] = ["hive2"];
/// Kinds of engine that are in the plan and not in this version.
const LATER_KINDS: [&str; 4] = ["ballista", "spark_connect", "flight_sql", "adbc"];
/// Methods of authentication that are in the plan and not in this version.
const LATER_METHODS: [&str; 2] = ["ldap", "jwt"];

/// Reads `tree`, noting all that does not fit. What does not fit keeps its default, so that
/// checks can go on.
pub(super) fn read(tree: &Value, mistakes: &mut Mistakes) -> Raw {
    let mut rest: serde_json::Value = match tree.clone().try_deserialize() {
        Ok(rest) => rest,
        Err(error) => {
            mistakes.add("configuration", error.to_string());
            return Raw::default();
        }
    };
    for _ in 0..MOST_MISTAKES {
        match serde_path_to_error::deserialize::<_, Raw>(rest.clone()) {
            Ok(raw) => return raw,
            Err(error) => {
                let path = steps(error.path());
                let text = explain(&path, &error.inner().to_string());
                let origin = layers::origin(tree, path.iter().map(String::as_str));
                mistakes.add_from(path.join("."), text, origin);
                if !remove(&mut rest, &path) {
                    break;
                }
            }
        }
    }
    Raw::default()
}

fn steps(path: &Path) -> Vec<String> {
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { variant } => Some(variant.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Unknown => None,
        })
        .collect()
}

/// Takes away what was wrong; with a wrong kind of engine also the rest of that engine, whose
/// keys are of that kind.
fn remove(tree: &mut serde_json::Value, path: &[String]) -> bool {
    let depth = if matches!(path, [engines, _, kind] if engines == "engines" && kind == "kind") {
        2
    } else {
        path.len()
    };
    let Some((last, above)) = path[..depth].split_last() else {
        return false;
    };
    let parent = above.iter().try_fold(tree, |at, step| match at {
        serde_json::Value::Object(table) => table.get_mut(step),
        serde_json::Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    });
    match parent {
        Some(serde_json::Value::Object(table)) => table.remove(last).is_some(),
        Some(serde_json::Value::Array(items)) => match last.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Serde's message in the words of a person who reads a configuration.
fn explain(path: &[String], message: &str) -> String {
    let name = path.last().map(String::as_str).unwrap_or_default();
    if message.starts_with("unknown field") {
        if path.len() == 1 && LATER_SECTIONS.contains(&name) {
            return "not in this version".to_owned();
        }
        // The first name in the message is the unknown one itself.
        let known: Vec<_> = back_ticked(message).skip(1).collect();
        let hint = match nearest(name, &known) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        return format!("unknown key; {hint}allowed: {}", known.join(", "));
    }
    if message.starts_with("unknown variant") {
        let mut names = back_ticked(message);
        let given = names.next().unwrap_or_default();
        let later = LATER_KINDS
            .iter()
            .chain(&LATER_METHODS)
            .any(|later| *later == given);
        let what = if later {
            "is not in this version"
        } else {
            "is not allowed"
        };
        return format!(
            "`{given}` {what}; allowed: {}",
            names.collect::<Vec<_>>().join(", ")
        );
    }
    in_plain_words(message)
}

fn in_plain_words(message: &str) -> String {
    let Some((given, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let given = given
        .trim_start_matches("invalid type: ")
        .trim_start_matches("invalid value: ");
    let expected = match expected {
        "usize" | "u64" | "u32" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        text if text.starts_with("struct ") => "a table",
        text if text.starts_with("string or map") => "a string",
        text => text,
    };
    format!("{given} is not allowed; allowed: {expected}")
}

fn back_ticked(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |known: &str| strsim::damerau_levenshtein(name, known);
    let near = known.iter().copied().min_by_key(|known| distance(known))?;
    (distance(near) <= 2.max(near.len() / 3)).then_some(near)
}

/// The whole file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) server: Server,
    pub(super) admin: Admin,
    pub(super) tls: Tls,
    pub(super) auth: Auth,
    pub(super) limits: Limits,
    pub(super) settings: BTreeMap<String, Setting>,
    pub(super) users: BTreeMap<String, User>,
    pub(super) policy: Policy,
    pub(super) log: Log,
    pub(super) engines: BTreeMap<String, Engine>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Server {
    pub(super) listen: Address,
    pub(super) insecure_listen_without_auth: bool,
    pub(super) max_connections: usize,
    pub(super) handshake_timeout: Span,
    pub(super) header_timeout: Span,
    pub(super) request_body_limit: Size,
    pub(super) drain_timeout: Span,
    pub(super) codec_threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clients_file: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Admin {
    pub(super) listen: Address,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tls {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Auth {
    pub(super) method: Method,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) users_file: Option<String>,
    pub(super) max_concurrent_checks: usize,
    pub(super) check_queue: usize,
    pub(super) cache: Span,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Method {
    #[default]
    None,
    File,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) sessions: usize,
    pub(super) sessions_per_user: usize,
    pub(super) operations: usize,
    pub(super) operations_per_user: usize,
    pub(super) session_idle_timeout: Span,
    pub(super) result_idle_timeout: Span,
    pub(super) operation_retention: Span,
    pub(super) operation_memory: Size,
    pub(super) max_row_bytes: Size,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct User {
    pub(super) defaults: BTreeMap<String, Setting>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) restrict: Vec<String>,
    pub(super) ignore: Vec<String>,
    pub(super) max: BTreeMap<String, Setting>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Log {
    pub(super) format: LogFormat,
    pub(super) filter: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Engine {
    pub(super) kind: Kind,
    pub(super) default: bool,
    pub(super) allow: Vec<String>,
    pub(super) memory_limit: Size,
    pub(super) query_memory_limit: Size,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spill_dir: Option<String>,
    pub(super) spill_limit: Size,
    pub(super) threads: usize,
    pub(super) tables: BTreeMap<String, String>,
    pub(super) store_options: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tpch: Option<Tpch>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    #[default]
    Embedded,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tpch {
    pub(super) scale_factor: f64,
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            server: Server::default(),
            admin: Admin::default(),
            tls: Tls::default(),
            auth: Auth::default(),
            limits: Limits::default(),
            settings: BTreeMap::new(),
            users: BTreeMap::new(),
            policy: Policy::default(),
            log: Log::default(),
            engines: BTreeMap::from([(
                "embedded".to_owned(),
                Engine {
                    default: true,
                    ..Engine::default()
                },
            )]),
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: Address(([127, 0, 0, 1], 8443).into()),
            insecure_listen_without_auth: false,
            max_connections: 4096,
            handshake_timeout: Span::seconds(10),
            header_timeout: Span::seconds(10),
            request_body_limit: Size::mib(4),
            drain_timeout: Span::seconds(30),
            codec_threads: 0,
            clients_file: None,
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: Address(([127, 0, 0, 1], 9099).into()),
        }
    }
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            method: Method::None,
            users_file: None,
            max_concurrent_checks: 2,
            check_queue: 256,
            cache: Span::seconds(300),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1000,
            sessions_per_user: 100,
            operations: 200,
            operations_per_user: 50,
            session_idle_timeout: Span::seconds(1800),
            result_idle_timeout: Span::seconds(600),
            operation_retention: Span::seconds(600),
            operation_memory: Size::mib(32),
            max_row_bytes: Size::mib(256),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            filter: "info".to_owned(),
        }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            kind: Kind::Embedded,
            default: false,
            allow: Vec::new(),
            memory_limit: Size::mib(1024),
            query_memory_limit: Size::mib(512),
            spill_dir: None,
            spill_limit: Size::mib(10 * 1024),
            threads: 0,
            tables: BTreeMap::new(),
            store_options: BTreeMap::new(),
            tpch: None,
        }
    }
}
