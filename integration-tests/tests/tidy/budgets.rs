//! A first line for every file, and the sizes that files and functions may have.

use super::{Source, none, rust_files};

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;
const PARAMETERS: usize = 5;

#[test]
fn every_file_says_what_it_owns() {
    let silent = |source: &Source| {
        let first = source.text.lines().find(|line| !line.trim().is_empty());
        !first.is_some_and(|line| line.starts_with("//! "))
    };
    none(
        "files without //!",
        rust_files()
            .into_iter()
            .filter(silent)
            .map(|source| source.path)
            .collect(),
    );
}

#[test]
fn files_stay_within_their_budget() {
    let mut wrong = Vec::new();
    for source in rust_files().iter().filter(|source| !source.is_test()) {
        let lines = source.lines_of_code().count();
        if lines > FILE_LINES {
            wrong.push(format!("{}: {lines} lines without tests", source.path));
        }
    }
    none("files over their budget", wrong);
}

#[test]
fn functions_stay_within_their_budget() {
    let mut wrong = Vec::new();
    for source in rust_files().iter().filter(|source| !source.is_test()) {
        for function in functions(source) {
            if function.lines > FUNCTION_LINES {
                wrong.push(format!(
                    "{}:{}: {} has {} lines",
                    source.path, function.at, function.name, function.lines
                ));
            }
            if function.parameters > PARAMETERS {
                let (name, count) = (function.name, function.parameters);
                wrong.push(format!(
                    "{}:{}: {name} takes {count} parameters",
                    source.path, function.at
                ));
            }
        }
    }
    none("functions over their budget", wrong);
}

struct Function {
    name: String,
    at: usize,
    lines: usize,
    parameters: usize,
}

/// The functions of formatted code: one ends where a brace stands under its first letter.
fn functions(source: &Source) -> Vec<Function> {
    let lines: Vec<_> = source.lines_of_code().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = name_of(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let one_line = line.ends_with('}') || line.ends_with(';');
        let length = lines[index..]
            .iter()
            .position(|line| line.trim_end() == closing);
        let signature = lines[index..]
            .iter()
            .take_while(|line| !ends_signature(line));
        let last = lines[index..].iter().find(|line| ends_signature(line));
        let signature: String = signature.chain(last).copied().collect();
        found.push(Function {
            name: name.to_owned(),
            at: index + 1,
            lines: if one_line {
                1
            } else {
                length.map_or(1, |length| length + 1)
            },
            parameters: parameters(&signature),
        });
    }
    found
}

fn ends_signature(line: &str) -> bool {
    line.trim_end().ends_with(['{', ';', '}'])
}

fn name_of(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    while matches!(word, "async" | "const" | "pub" | "unsafe")
        || word.starts_with("pub(")
        || matches!(word, "super)" | "crate)")
    {
        word = words.next()?;
    }
    if word != "fn" {
        return None;
    }
    words
        .next()
        .map(|rest| &rest[..rest.find(['(', '<']).unwrap_or(rest.len())])
}

/// Parameters beside `self`.
fn parameters(signature: &str) -> usize {
    let start = signature.find("fn ").map_or(0, |at| at + 3);
    let (mut depth, mut angle, mut count, mut current, mut open) = (0, 0, 0, String::new(), false);
    let mut all = Vec::new();
    let mut previous = ' ';
    for c in signature[start..].chars() {
        match c {
            '<' => angle += 1,
            '>' if previous != '-' && previous != '=' => angle -= 1,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        previous = c;
        if !open {
            open = c == '(' && angle == 0;
            continue;
        }
        if depth == 0 {
            break;
        }
        if c == ',' && depth == 1 && angle == 0 {
            all.push(std::mem::take(&mut current));
        } else {
            current.push(c);
        }
    }
    all.push(current);
    for parameter in all
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
    {
        let is_self = parameter.ends_with("self")
            || parameter.starts_with("self:")
            || parameter.starts_with("mut self:");
        count += usize::from(!is_self);
    }
    count
}

#[test]
fn a_signature_is_counted_without_self() {
    let cases = [
        ("fn a() {", 0),
        (
            "pub(super) async fn b<T: Into<Vec<(u8, u8)>>>(&mut self, x: T, y: impl Fn(u8, u8) -> u8) -> u8 {",
            2,
        ),
        ("fn c(a: HashMap<String, u8>,    b: (u8, u8),    ) {", 2),
        (
            "fn d(self: Arc<Self>, &a: &u8, b: [u8; 3], c: u8, d: u8, e: u8) {",
            5,
        ),
    ];
    for (signature, expected) in cases {
        assert_eq!(parameters(signature), expected, "{signature}");
    }
    assert_eq!(
        name_of("    pub(crate) const fn name<T>(x: T) {"),
        Some("name")
    );
    assert_eq!(name_of("    let fn_name = 3;"), None);
}
