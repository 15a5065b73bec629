//! `LIKE` patterns over names.
//!
//! Owns the matching. Must not know what is named.

/// Whether a name fits a `LIKE` pattern with `\` as escape; no pattern fits every name.
pub(super) fn matches(pattern: Option<&str>, name: &str) -> bool {
    let Some(pattern) = pattern else { return true };
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        parts.push(match c {
            '%' => Part::Many,
            '_' => Part::One,
            '\\' => Part::Is(chars.next().unwrap_or('\\')),
            c => Part::Is(c),
        });
    }
    fits(&parts, &name.chars().collect::<Vec<_>>())
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Many,
    One,
    Is(char),
}

/// Goes back to the last `%` alone, so the work is bounded by the product of both lengths.
fn fits(parts: &[Part], name: &[char]) -> bool {
    let (mut part, mut at) = (0, 0);
    let mut retry = None;
    while at < name.len() {
        match parts.get(part) {
            Some(Part::Many) => {
                retry = Some((part + 1, at));
                part += 1;
            }
            Some(Part::One) => (part, at) = (part + 1, at + 1),
            Some(Part::Is(c)) if *c == name[at] => (part, at) = (part + 1, at + 1),
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (part, at) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    parts[part..].iter().all(|part| *part == Part::Many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_like() {
        for (pattern, name, expected) in [
            ("%", "", true),
            ("", "", true),
            ("", "a", false),
            ("line%", "lineitem", true),
            ("%item", "lineitem", true),
            ("%e%t%", "lineitem", true),
            ("l_neitem", "lineitem", true),
            ("l_orderkey", "lxorderkey", true),
            ("l\\_orderkey", "lxorderkey", false),
            ("l\\_orderkey", "l_orderkey", true),
            ("a\\%", "a%", true),
            ("LINEITEM", "lineitem", false),
            ("%a%b", "xaybzb", true),
        ] {
            assert_eq!(matches(Some(pattern), name), expected, "{pattern} {name}");
        }
        assert!(matches(None, "any"));
    }
}
