//! The rules of the house, checking themselves: arrows between packages and modules, a first line
//! for every file, size budgets, names at the top, licences of what is shipped. Reads the source
//! as text; must not build or run anything of it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod arrows;
mod budgets;
mod graph;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// A file, by its path from the top.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Whether it is a test of its own, and not a file with tests in it.
    fn is_test(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.contains("_tests/")
    }

    /// The lines before the tests at the file's end.
    fn lines_of_code(&self) -> impl Iterator<Item = &str> {
        let lines: Vec<_> = self.text.lines().collect();
        let end = lines
            .windows(2)
            .position(|pair| pair[0].trim() == "#[cfg(test)]" && !pair[1].trim().ends_with(';'));
        let end = end.unwrap_or(lines.len());
        lines.into_iter().take(end)
    }
}

/// All Rust files.
fn rust_files() -> Vec<Source> {
    let all = files().into_iter().filter(|path| path.ends_with(".rs"));
    all.map(|path| Source {
        text: fs::read_to_string(root().join(&path)).unwrap(),
        path,
    })
    .collect()
}

/// All files that are not build output, by their paths from the top.
fn files() -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if matches!(
                &*name,
                ".git" | ".work" | "__pycache__" | "node_modules" | "target"
            ) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(
                    path.strip_prefix(root())
                        .unwrap()
                        .to_string_lossy()
                        .into_owned(),
                );
            }
        }
    }
    found.sort();
    found
}

/// Fails with all findings at once.
fn none(what: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{what}:\n  {}", findings.join("\n  "));
}
