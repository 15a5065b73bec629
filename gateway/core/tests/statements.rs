//! The corpus of statements in `statements/*.toml`: what each text parses to. Must not know how
//! statements are run.

#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use proptest::prelude::*;
use serde::Deserialize;
use sluice_core::engine::Dialect;
use sluice_core::statement::{
    ExplainDelivery, Query, Reset, Set, SetTimeZone, Show, ShowAll, Statement, Use, literal_limit,
    parse,
};

/// Fewest cases that the corpus has, so that a file that is not found is noticed.
const FEWEST: usize = 80;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    cases: Vec<Case>,
}

/// A text, and exactly one expectation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    text: String,
    /// Key and value.
    set: Option<[String; 2]>,
    zone: Option<String>,
    show: Option<String>,
    show_all: Option<bool>,
    #[serde(default)]
    verbose: bool,
    show_delivery: Option<bool>,
    show_client: Option<bool>,
    /// A key, or empty for all.
    reset: Option<String>,
    /// Catalog and schema, each empty when it is kept.
    r#use: Option<[String; 2]>,
    explain: Option<String>,
    /// Goes to the engine as it is.
    query: Option<bool>,
    /// Goes to the engine as it is and has this literal limit; -1 for none.
    limit: Option<i64>,
    /// The SQLSTATE.
    error: Option<String>,
    /// Words in the error's text.
    says: Option<String>,
}

impl Case {
    fn statement(&self) -> Option<Statement> {
        let named = |name: &String| (!name.is_empty()).then(|| name.clone());
        let verbose = self.verbose;
        let mut wanted = Vec::new();
        wanted.extend(
            self.set
                .clone()
                .map(|[key, value]| Statement::Set(Set { key, value })),
        );
        wanted.extend(
            self.zone
                .clone()
                .map(|zone| Statement::SetTimeZone(SetTimeZone { zone })),
        );
        wanted.extend(
            self.show
                .clone()
                .map(|key| Statement::Show(Show { key, verbose })),
        );
        wanted.extend(
            self.show_all
                .map(|_| Statement::ShowAll(ShowAll { verbose })),
        );
        wanted.extend(self.show_delivery.map(|_| Statement::ShowDelivery));
        wanted.extend(self.show_client.map(|_| Statement::ShowClient));
        wanted.extend(
            self.reset
                .as_ref()
                .map(|key| Statement::Reset(Reset { key: named(key) })),
        );
        wanted.extend(self.r#use.as_ref().map(|[catalog, schema]| {
            Statement::Use(Use {
                catalog: named(catalog),
                schema: named(schema),
            })
        }));
        wanted.extend(
            self.explain
                .clone()
                .map(|statement| Statement::ExplainDelivery(ExplainDelivery { statement })),
        );
        let text = self.text.clone();
        let is_query = self.query.is_some() || self.limit.is_some();
        wanted.extend(is_query.then_some(Statement::Query(Query { text })));
        assert_eq!(
            wanted.len() + usize::from(self.error.is_some()),
            1,
            "{self:?}"
        );
        wanted.pop()
    }

    /// What is not as expected.
    fn fault(&self) -> Option<String> {
        let text = &self.text;
        match (parse(text), self.statement()) {
            (Ok(statement), Some(wanted)) if statement == wanted => {}
            (Err(error), None) => {
                let says = self.says.as_deref().unwrap_or_default();
                let fits = Some(error.sqlstate()) == self.error.as_deref();
                if !fits || !error.message().contains(says) {
                    return Some(format!("{text:?} gave {} {error}", error.sqlstate()));
                }
            }
            (got, _) => return Some(format!("{text:?} gave {got:?}")),
        }
        let limit = self.limit.map(|limit| u64::try_from(limit).ok());
        let found = literal_limit(text, Dialect::DataFusion);
        let differs = limit.is_some_and(|limit| limit != found);
        differs.then(|| format!("{text:?} has the limit {found:?}"))
    }
}

#[test]
fn every_statement_of_the_corpus_parses_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements");
    let (mut count, mut faults) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let corpus: Corpus =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        faults.extend(corpus.cases.iter().filter_map(Case::fault));
        count += corpus.cases.len();
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= FEWEST, "{count} cases");
}

/// Text that is dense in what a parser may trip over.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "\\PC{0,3}",
        4 => prop::sample::select(vec![
            "SET", "RESET", "SHOW", "USE", "EXPLAIN", "DELIVERY", "TIME", "ZONE", "ALL", "LIMIT",
            "SELECT", "a.b", "=", "TO", "-v", ";", "'", "''", "\"", "`", "--", "/*", "*/", "\n",
            "$$", "$x$", "E'", "\\", ".", "\u{a0}", "\u{feff}", "é", "\u{1f600}", "\0",
        ]).prop_map(str::to_owned),
        2 => Just(" ".to_owned()),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in text()) {
        match parse(&text) {
            Ok(Statement::Query(query)) => prop_assert_eq!(query.text, text),
            Ok(_) => {}
            Err(error) => prop_assert!(matches!(error.sqlstate(), "42601" | "0A000" | "54000")),
        }
    }

    #[test]
    fn a_quoted_value_comes_back_whole(value in "(\\PC|['\"`;=\n\\-/*])*") {
        let text = format!("SET `a.b` = '{}' -- ; '", value.replace('\'', "''"));
        let wanted = Statement::Set(Set { key: "a.b".to_owned(), value });
        prop_assert_eq!(parse(&text).unwrap(), wanted);
    }

    #[test]
    fn a_quoted_name_comes_back_whole(name in "\\PC+") {
        for quote in ['`', '"'] {
            let doubled = name.replace(quote, &format!("{quote}{quote}"));
            let text = format!("/* a */ USE {quote}{doubled}{quote};");
            let wanted = Statement::Use(Use { catalog: None, schema: Some(name.clone()) });
            prop_assert_eq!(parse(&text).unwrap(), wanted);
        }
    }
}
