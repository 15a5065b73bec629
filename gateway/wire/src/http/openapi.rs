//! The OpenAPI document, and the tests that keep it whole. Must not know the server.

/// The OpenAPI document of the API, as it is served at `/api/openapi.json`.
pub const OPENAPI: &str = include_str!("openapi.json");

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Every route, and its methods.
    const ROUTES: [(&str, &[&str]); 25] = [
        ("/api/openapi.json", &["get"]),
        ("/api/v1/ping", &["get"]),
        ("/api/v1/version", &["get"]),
        ("/api/v1/query", &["post"]),
        ("/api/v1/sessions", &["get", "post"]),
        ("/api/v1/sessions/count", &["get"]),
        ("/api/v1/sessions/execPool/statistic", &["get"]),
        ("/api/v1/sessions/{session}", &["get", "delete"]),
        ("/api/v1/sessions/{session}/info/{type}", &["get"]),
        ("/api/v1/sessions/{session}/operations", &["get"]),
        ("/api/v1/sessions/{session}/operations/statement", &["post"]),
        ("/api/v1/sessions/{session}/operations/catalogs", &["post"]),
        ("/api/v1/sessions/{session}/operations/schemas", &["post"]),
        ("/api/v1/sessions/{session}/operations/tables", &["post"]),
        ("/api/v1/sessions/{session}/operations/columns", &["post"]),
        ("/api/v1/sessions/{session}/operations/functions", &["post"]),
        (
            "/api/v1/sessions/{session}/operations/tableTypes",
            &["post"],
        ),
        ("/api/v1/sessions/{session}/operations/typeInfo", &["post"]),
        ("/api/v1/operations/{operation}", &["put"]),
        ("/api/v1/operations/{operation}/event", &["get"]),
        ("/api/v1/operations/{operation}/resultsetmetadata", &["get"]),
        ("/api/v1/operations/{operation}/log", &["get"]),
        ("/api/v1/operations/{operation}/rowset", &["get"]),
        ("/api/v1/operations/{operation}/result", &["get"]),
        ("/api/v1/operations/{operation}/delivery", &["get"]),
    ];

    fn document() -> Value {
        serde_json::from_str(OPENAPI).unwrap()
    }

    #[test]
    fn every_route_is_listed() {
        let document = document();
        let mut listed = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for method in operations.as_object().unwrap().keys() {
                listed.push(format!("{method} {path}"));
            }
        }
        let mut expected: Vec<_> = ROUTES
            .iter()
            .flat_map(|(path, methods)| {
                methods.iter().map(move |method| format!("{method} {path}"))
            })
            .collect();
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn walk<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(members) => {
                    found.extend(members.get("$ref").and_then(Value::as_str));
                    members.values().for_each(|member| walk(member, found));
                }
                Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
                _ => {}
            }
        }
        let document = document();
        let mut references = Vec::new();
        walk(&document, &mut references);
        assert!(references.len() > 100);
        for reference in references {
            let target = document.pointer(reference.strip_prefix('#').unwrap());
            assert!(target.is_some(), "{reference}");
        }
    }

    #[test]
    fn every_kind_of_error_is_listed() {
        let document = document();
        let kinds = &document["components"]["schemas"]["ErrorDetail"]["properties"]["kind"]["enum"];
        assert_eq!(kinds, &serde_json::json!(super::super::kind::ALL));
    }
}
