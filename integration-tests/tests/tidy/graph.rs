//! The dependency graph of what is shipped: its licences are listed and compatible, it has one
//! arrow, and one provider of cryptography.
//!
//! `UPDATE=1` writes LICENSE-binary anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{none, root};

/// The packages whose binaries are shipped.
const SHIPPED: [&str; 2] = ["sluice", "sluice-client"];

/// Licences that a binary under Apache-2.0 may carry.
const ALLOWED: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

/// A package in the graph.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Package {
    name: String,
    version: String,
    licence: String,
}

/// What is linked into the binaries on the platform that is shipped for.
fn shipped() -> Vec<Package> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();

    let packages: BTreeMap<_, _> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    let nodes: BTreeMap<_, _> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let members: BTreeSet<_> = list(&metadata["workspace_members"])
        .iter()
        .map(text)
        .collect();
    let mut open: Vec<_> = members
        .iter()
        .filter(|id| SHIPPED.contains(&&*text(&packages[*id]["name"])))
        .cloned()
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let linked = |dependency: &Value| {
            list(&dependency["dep_kinds"])
                .iter()
                .any(|kind| kind["kind"].is_null())
        };
        open.extend(
            list(&nodes[&id]["deps"])
                .iter()
                .filter(|dependency| linked(dependency))
                .map(|d| text(&d["pkg"])),
        );
        if !seen.insert(id) {
            open.retain(|id| !seen.contains(id));
        }
    }
    let mut all: Vec<_> = seen
        .difference(&members)
        .map(|id| &packages[id])
        .map(|package| Package {
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence: text(&package["license"]),
        })
        .collect();
    all.sort();
    all
}

#[test]
fn licence_binary_lists_what_is_shipped() {
    let file = root().join("LICENSE-binary");
    let expected = document(&shipped());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (have, want) = (lines(&stored), lines(&expected));
    let differences = want
        .difference(&have)
        .map(|line| format!("missing: {line}"));
    let differences = differences.chain(
        have.difference(&want)
            .map(|line| format!("too much: {line}")),
    );
    none(
        "LICENSE-binary is not that of the graph; run this test with UPDATE=1",
        differences.collect(),
    );
    assert_eq!(
        stored, expected,
        "LICENSE-binary has its lines in another order; run this test with UPDATE=1"
    );
}

fn document(packages: &[Package]) -> String {
    let mut by_licence: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        // An old way of writing OR.
        let licence = package.licence.replace(" / ", " OR ").replace('/', " OR ");
        by_licence
            .entry(licence)
            .or_default()
            .push(format!("    {} {}", package.name, package.version));
    }
    let mut text = String::from(
        "The binaries of Sluice are made from its own source, under the Apache License, Version 2.0 (see\n\
         LICENSE), and from the Rust packages below, each under the licence that stands above it. Their\n\
         source packages carry the texts of their licences and the names of their authors.\n",
    );
    for (licence, names) in by_licence {
        text += &format!("\n{licence}\n{}\n", names.join("\n"));
    }
    text
}

#[test]
fn licences_go_together_with_ours() {
    let wrong = shipped()
        .into_iter()
        .filter(|package| !is_allowed(&package.licence));
    none(
        "licences",
        wrong
            .map(|package| {
                format!(
                    "{} {}: {:?}",
                    package.name, package.version, package.licence
                )
            })
            .collect(),
    );
}

/// Reads an SPDX expression: some choice of it is allowed as a whole.
fn is_allowed(licence: &str) -> bool {
    let spaced = licence
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut at = 0;
    let allowed = any_of(&words, &mut at);
    allowed && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = all_of(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= all_of(words, at);
    }
    allowed
}

fn all_of(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = one_of(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one_of(words, at);
    }
    allowed
}

fn one_of(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let allowed = any_of(words, at);
        *at += 1;
        return allowed;
    }
    if words.get(*at) == Some(&"WITH") {
        // An exception only ever allows more.
        *at += 2;
    }
    ALLOWED.contains(word)
}

#[test]
fn expressions_are_read_as_spdx_has_them() {
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(MIT OR GPL-3.0) AND ISC",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND GPL-3.0",
        "MIT MIT",
    ] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn there_is_one_arrow() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in shipped() {
        let is_one = package.name.starts_with("arrow")
            || matches!(&*package.name, "datafusion" | "parquet" | "rustls");
        if is_one {
            versions
                .entry(package.name)
                .or_default()
                .insert(package.version);
        }
    }
    assert!(versions.contains_key("arrow-ipc"), "{versions:?}");
    let several = versions
        .into_iter()
        .filter(|(_, versions)| versions.len() > 1);
    none(
        "in several versions",
        several
            .map(|(name, versions)| format!("{name}: {versions:?}"))
            .collect(),
    );
}

#[test]
fn there_is_one_provider_of_cryptography() {
    let foreign = |name: &str| {
        name.starts_with("aws-lc") || matches!(name, "native-tls" | "openssl" | "openssl-sys")
    };
    none(
        "beside ring",
        shipped()
            .into_iter()
            .map(|package| package.name)
            .filter(|name| foreign(name))
            .collect(),
    );
}
