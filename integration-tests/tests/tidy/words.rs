//! Names at the top, and words that have no place in the repository.

use std::collections::BTreeSet;
use std::fs;

use super::{files, none, root};

const TOP: [&str; 10] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "LICENSE-binary",
    "README.md",
    "client-sdk",
    "conf",
    "deploy",
    "gateway",
    "integration-tests",
];

#[test]
fn the_top_level_holds_what_the_map_names() {
    let names = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let found: BTreeSet<_> = names
        .filter(|name| name != "target" && !name.starts_with('.'))
        .collect();
    assert_eq!(found, TOP.map(str::to_owned).into_iter().collect());
}

/// Text files, without lock files, which name where a package came from by themselves.
fn texts() -> Vec<(String, String)> {
    let own = "integration-tests/tests/tidy/words.rs";
    let all = files()
        .into_iter()
        .filter(|path| path != own && !path.ends_with("Cargo.lock"));
    all.filter_map(|path| Some((fs::read_to_string(root().join(&path)).ok()?, path)))
        .map(|(text, path)| (path, text))
        .collect()
}

fn lines_with(words: &[&str], only: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in texts().into_iter().filter(|(path, _)| only(path)) {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                found.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    found
}

#[test]
fn packages_are_named_without_the_host_that_serves_them() {
    let hosts = [
        "crates.io",
        "pypi.org",
        "pythonhosted.org",
        "npmjs.org",
        "npmjs.com",
        "yarnpkg.com",
        "proxy.golang.org",
        "sum.golang.org",
        "maven.org",
        "maven.apache.org",
        "deb.debian.org",
    ];
    none("hosts of registries", lines_with(&hosts, |_| true));
}

#[test]
fn nothing_is_left_for_later() {
    let words = [
        "todo!(",
        "unimplemented!(",
        "#[ignore",
        "FIXME",
        "XXX",
        "TODO",
    ];
    none(
        "unfinished",
        lines_with(&words, |path| path.ends_with(".rs")),
    );
}

#[test]
fn no_path_of_a_machine_is_in_the_repository() {
    none(
        "paths of a machine",
        lines_with(&["/work/", "/root/", "/home/"], |path| {
            !path.starts_with("deploy/")
        }),
    );
}
