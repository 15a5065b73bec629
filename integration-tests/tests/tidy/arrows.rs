//! Who may import whom: between packages by their dependencies, inside the server by `use` lines.

use std::fs;

use super::{Source, none, root, rust_files};

/// Each package, and which of ours it may depend on.
const PACKAGES: [(&str, &str, &[&str]); 6] = [
    (
        "gateway",
        "sluice",
        &["sluice-client", "sluice-core", "sluice-ipc", "sluice-wire"],
    ),
    ("gateway/ipc", "sluice-ipc", &[]),
    ("gateway/core", "sluice-core", &["sluice-ipc"]),
    ("gateway/wire", "sluice-wire", &[]),
    (
        "client-sdk",
        "sluice-client",
        &["sluice-ipc", "sluice-wire"],
    ),
    (
        "integration-tests",
        "sluice-integration-tests",
        &[
            "sluice",
            "sluice-client",
            "sluice-core",
            "sluice-ipc",
            "sluice-wire",
        ],
    ),
];

/// Packages that a package must stay free of, with the reason.
const FOREIGN: [(&str, &[&str], &str); 3] = [
    (
        "gateway/ipc",
        &[
            "tokio",
            "hyper",
            "axum",
            "sqlparser",
            "datafusion",
            "rustls",
        ],
        "no runtime, no sockets, no SQL",
    ),
    (
        "gateway/wire",
        &[
            "tokio",
            "hyper",
            "axum",
            "arrow-array",
            "datafusion",
            "rustls",
        ],
        "no IO and no arrays",
    ),
    (
        "gateway/core",
        &["hyper", "axum", "http", "datafusion", "rustls", "socket2"],
        "no protocol, no engine",
    ),
];

/// Modules of the server, and which of its modules each may name beside itself. The command line
/// and the composition root may name all, and nobody names those two.
const MODULES: [(&str, &[&str]); 7] = [
    ("auth", &[]),
    ("config", &["auth", "engine", "frontend", "net", "observe"]),
    ("engine", &[]),
    ("frontend", &["net"]),
    ("net", &[]),
    ("observe", &[]),
    ("demo", &["app", "config", "net"]),
];

/// Modules of the server, and which of our packages each may name.
const PACKAGES_OF_MODULES: [(&str, &[&str]); 6] = [
    ("auth", &["sluice_core"]),
    ("config", &["sluice_core", "sluice_ipc"]),
    ("engine", &["sluice_core", "sluice_ipc", "sluice_wire"]),
    ("frontend", &["sluice_core", "sluice_ipc", "sluice_wire"]),
    ("net", &[]),
    ("observe", &["sluice_core", "sluice_ipc"]),
];

fn dependencies(folder: &str, table: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    manifest
        .get(table)
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn packages_depend_on_whom_they_may() {
    let mut wrong = Vec::new();
    for (folder, name, allowed) in PACKAGES {
        let ours = |table| {
            dependencies(folder, table)
                .into_iter()
                .filter(|name| name.starts_with("sluice"))
        };
        for found in ours("dependencies").chain(ours("dev-dependencies")) {
            if !allowed.contains(&found.as_str()) {
                wrong.push(format!("{name} depends on {found}"));
            }
        }
    }
    for (folder, foreign, reason) in FOREIGN {
        // A core that is paused and cancelled needs tokio's time and sync, and nothing else of it.
        for found in dependencies(folder, "dependencies")
            .iter()
            .filter(|name| foreign.contains(&name.as_str()))
        {
            wrong.push(format!("{folder} depends on {found}: {reason}"));
        }
    }
    none("arrows between packages", wrong);
}

#[test]
fn every_package_is_in_the_table() {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let members: Vec<_> = manifest["workspace"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(toml::Value::as_str)
        .collect();
    assert_eq!(members, PACKAGES.map(|(folder, ..)| folder));
}

#[test]
fn modules_of_the_server_name_whom_they_may() {
    let mut wrong = Vec::new();
    for source in rust_files()
        .iter()
        .filter(|source| source.path.starts_with("gateway/src/"))
    {
        let steps = steps_of(source);
        let module = steps[0].as_str();
        if matches!(module, "app" | "lib" | "main") {
            continue;
        }
        for path in named(source, "crate") {
            let target = path[0].as_str();
            let allowed = MODULES
                .iter()
                .find(|(name, _)| *name == module)
                .map_or(&[][..], |(_, allowed)| allowed);
            let sibling = target == module
                && matches!(module, "frontend" | "engine")
                && is_sibling(&steps, &path);
            if (target != module && !allowed.contains(&target)) || sibling {
                wrong.push(format!("{} names crate::{}", source.path, path.join("::")));
            }
        }
        let packages = PACKAGES_OF_MODULES.iter().find(|(name, _)| *name == module);
        for package in ["sluice_client", "sluice_core", "sluice_ipc", "sluice_wire"] {
            let foreign = packages.is_some_and(|(_, allowed)| !allowed.contains(&package));
            if foreign && !named(source, package).is_empty() {
                wrong.push(format!("{} names {package}", source.path));
            }
        }
    }
    none("arrows between modules of the server", wrong);
}

/// Two front ends, or two engines, that are not the same one. What lies directly in the folder of
/// all of them is common to all.
fn is_sibling(steps: &[String], path: &[String]) -> bool {
    let own = steps.get(1).map(String::as_str).unwrap_or_default();
    let other = path.get(1).map(String::as_str).unwrap_or_default();
    let is_one = |name: &str| {
        let folder = root().join("gateway/src").join(&steps[0]);
        folder.join(name).is_dir()
            || (steps[0] == "engine" && folder.join(format!("{name}.rs")).exists())
    };
    own != other && own != "mod" && is_one(own) && is_one(other)
}

/// `gateway/src/frontend/http/mod.rs` as `frontend`, `http`, `mod`.
fn steps_of(source: &Source) -> Vec<String> {
    let path = source
        .path
        .trim_start_matches("gateway/src/")
        .trim_end_matches(".rs");
    path.split('/').map(str::to_owned).collect()
}

/// The paths that begin with `start::` in the code of `source`, without it.
fn named(source: &Source, start: &str) -> Vec<Vec<String>> {
    let prefix = format!("{start}::");
    let mut found = Vec::new();
    for line in source
        .text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        for (at, _) in line.match_indices(&prefix) {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let rest = &line[at + prefix.len()..];
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
                .unwrap_or(rest.len());
            found.push(rest[..end].split("::").map(str::to_owned).collect());
        }
    }
    found
}
