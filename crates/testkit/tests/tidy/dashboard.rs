//! The dashboard is one by Grafana's own types, of which `dashboard.schema.json` is made: its first line says how.
//!
//! The schema is read here, as far as it goes: it has nine keywords, and another one would be a finding. The crate for
//! it would have every test built with another `serde_json` than what is shipped.

use serde_json::{Map, Value};

use crate::{check, workspace::read};

const DASHBOARD: &str = "ops/grafana/tidings.json";

/// Collects where values differ from a schema.
struct Reader<'a> {
    definitions: &'a Map<String, Value>,
    findings: Vec<String>,
}

impl Reader<'_> {
    /// What a value has against a schema.
    fn against(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut reader = Reader { definitions: self.definitions, findings: Vec::new() };
        reader.read(schema, value, at);
        reader.findings
    }

    fn read(&mut self, schema: &Value, value: &Value, at: &str) {
        for (keyword, wanted) in schema.as_object().unwrap() {
            match keyword.as_str() {
                "$schema" | "$comment" | "definitions" => {}
                "$ref" => {
                    let name = wanted.as_str().unwrap().strip_prefix("#/definitions/").unwrap();
                    let schema = &self.definitions[name];
                    self.findings.extend(self.against(schema, value, at));
                }
                "type" => {
                    let is_one = |name: &Value| is_of_type(value, name.as_str().unwrap());
                    let is_right = wanted.as_array().map_or_else(|| is_one(wanted), |names| names.iter().any(is_one));
                    self.expect(is_right, at, || format!("is no {wanted}"));
                }
                "const" => self.expect(value == wanted, at, || format!("is not {wanted}")),
                "enum" => {
                    self.expect(wanted.as_array().unwrap().contains(value), at, || format!("is none of {wanted}"))
                }
                "required" => {
                    for name in wanted.as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
                        let is_there = value.as_object().is_none_or(|fields| fields.contains_key(name));
                        self.expect(is_there, at, || format!("has no `{name}`"));
                    }
                }
                "properties" | "additionalProperties" => {}
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.findings.extend(self.against(wanted, item, &format!("{at}/{number}")));
                    }
                }
                "anyOf" => {
                    let tries = wanted.as_array().unwrap().iter().map(|schema| self.against(schema, value, at));
                    // What it comes nearest to says best what is wrong.
                    let nearest = tries.min_by_key(Vec::len).unwrap();
                    self.findings.extend(nearest);
                }
                _ => self.findings.push(format!("the schema has `{keyword}`; teach this test what it means")),
            }
        }
        self.read_fields(schema, value, at);
    }

    fn read_fields(&mut self, schema: &Value, value: &Value, at: &str) {
        for (name, field) in value.as_object().into_iter().flatten() {
            let at = format!("{at}/{name}");
            let found = match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(known), _) => self.against(known, field, &at),
                (None, Value::Bool(false)) => vec![format!("{at}: is not known")],
                (None, Value::Null | Value::Bool(true)) => Vec::new(),
                (None, other) => self.against(other, field, &at),
            };
            self.findings.extend(found);
        }
    }

    fn expect(&mut self, is_right: bool, at: &str, what: impl FnOnce() -> String) {
        if !is_right {
            self.findings.push(format!("{at}: {}", what()));
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => panic!("the schema has the type `{name}`; teach this test what it means"),
    }
}

fn findings(dashboard: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&read("crates/testkit/tests/tidy/dashboard.schema.json")).unwrap();
    let definitions = schema["definitions"].as_object().unwrap();
    Reader { definitions, findings: Vec::new() }.against(&schema, dashboard, DASHBOARD)
}

#[test]
fn the_dashboard_is_one_by_grafanas_own_types() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    check("What Grafana reads has the shape of Grafana's types.", findings(&dashboard));
    for (path, wrong, found) in [
        ("/panels/1/title", Value::from(7), "is no \"string\""),
        ("/panels/1/gridPos", serde_json::json!({ "h": 1, "w": 1, "x": 0 }), "has no `y`"),
        ("/templating/list/0", serde_json::json!({ "type": "job", "name": "job" }), "is none of"),
        ("/time", serde_json::json!({ "from": "now", "to": "now", "since": "now" }), "/time/since: is not known"),
    ] {
        let mut other = dashboard.clone();
        *other.pointer_mut(path).unwrap() = wrong;
        let said = findings(&other);
        assert!(said.len() == 1 && said[0].contains(found), "{path}: {said:?}");
    }
}
