//! What is wrong with a body before anybody looks at the object in it.

use super::row::{CONFIG_MAPS, Row, config_map, dry_run, json_body, row};
use http::{Method, header};
use object::{Value, json};
use testkit::https::{get, with_body};

/// The bytes that a body may have.
const LIMIT: usize = 3_145_728;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = sizes();
    rows.extend(patches());
    rows.extend(depths());
    rows.extend(formats());
    rows.extend(fields());
    rows
}

fn sizes() -> Vec<Row> {
    let large = |size: usize| {
        let empty = json!({ "data": { "a": "" } }).to_string().len();
        json!({ "data": { "a": "x".repeat(size - empty) } }).to_string()
    };
    vec![
        row("a body over the limit", json_body(Method::POST, CONFIG_MAPS, large(LIMIT + 1)), 413, "limit is 3145728"),
        row(
            "a body at the limit, which is too large for other reasons",
            json_body(Method::POST, CONFIG_MAPS, large(LIMIT)),
            422,
            "Too long",
        ),
        row("no body", json_body(Method::POST, CONFIG_MAPS, ""), 400, ""),
        row("no JSON", json_body(Method::POST, CONFIG_MAPS, "{"), 400, ""),
        row("no object", json_body(Method::POST, CONFIG_MAPS, "[]"), 400, ""),
    ]
}

fn patches() -> Vec<Row> {
    let path = format!("{CONFIG_MAPS}/there");
    let patch =
        |operations: &Value| with_body(Method::PATCH, &path, "application/json-patch+json", operations.to_string());
    let many: Vec<Value> = vec![json!({ "op": "test", "path": "/kind", "value": "ConfigMap" }); 10_001];
    let mut copies = vec![json!({ "op": "add", "path": "/data", "value": { "a": "x".repeat(1_000_000) } })];
    copies.extend(
        ["b", "c", "d", "e"].map(|to| json!({ "op": "copy", "from": "/data/a", "path": format!("/data/{to}") })),
    );
    let failing = json!([{ "op": "remove", "path": "/data/nothing" }]);
    vec![
        row("a JSON patch of many operations", patch(&json!(many)), 413, "10000"),
        row("a JSON patch whose copies are large", patch(&json!(copies)), 422, ""),
        row("a JSON patch that cannot be applied", patch(&failing), 422, "the server rejected our request"),
        row("a JSON patch that is none", patch(&json!({ "op": "remove" })), 400, ""),
        row(
            "a patch of an unknown type",
            with_body(Method::PATCH, &path, "application/magic-patch+json", "{}"),
            415,
            "application/merge-patch+json",
        ),
    ]
}

fn depths() -> Vec<Row> {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let yaml = |text: String| with_body(Method::POST, CONFIG_MAPS, "application/yaml", text);
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    vec![
        row("deep JSON", json_body(Method::POST, CONFIG_MAPS, deep.clone()), 400, ""),
        row("deep YAML", yaml(deep.clone()), 400, ""),
        row("YAML whose aliases explode", yaml(bomb), 400, ""),
        row(
            "a deep patch",
            with_body(Method::PATCH, &format!("{CONFIG_MAPS}/there"), "application/merge-patch+json", deep.clone()),
            400,
            "",
        ),
        row(
            "something deep applied",
            with_body(
                Method::PATCH,
                &format!("{CONFIG_MAPS}/there?fieldManager=me"),
                "application/apply-patch+yaml",
                deep,
            ),
            400,
            "",
        ),
    ]
}

fn formats() -> Vec<Row> {
    let mut exotic = get(&format!("{CONFIG_MAPS}/there"));
    exotic.headers_mut().insert(header::ACCEPT, "application/magic".parse().expect("a header's value"));
    vec![
        row(
            "a body in an unknown format",
            with_body(Method::POST, CONFIG_MAPS, "text/magic", config_map("a").to_string()),
            415,
            "accepted media types include",
        ),
        row("an answer in an unknown format", exotic, 406, "only the following media types are accepted"),
        row(
            "protobuf that is none",
            with_body(Method::POST, CONFIG_MAPS, "application/vnd.kubernetes.protobuf", "k8s\0nonsense"),
            400,
            "",
        ),
    ]
}

fn fields() -> Vec<Row> {
    let strict = format!("{CONFIG_MAPS}?dryRun=All&fieldValidation=Strict");
    let mut unknown = config_map("unknown");
    unknown["dada"] = json!({});
    let twice = r#"{"metadata":{"name":"twice"},"data":{"a":"1"},"data":{"a":"2"}}"#;
    vec![
        row("an unknown field", dry_run(&unknown), 201, r#"unknown field \"dada\""#),
        row("an unknown field, strictly", json_body(Method::POST, &strict, unknown.to_string()), 400, "unknown field"),
        row(
            "a field given twice",
            json_body(Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"), twice),
            201,
            r#"duplicate field \"data\""#,
        ),
        row("a field given twice, strictly", json_body(Method::POST, &strict, twice), 400, "duplicate field"),
        row(
            "a validation of an unknown kind",
            json_body(Method::POST, &format!("{CONFIG_MAPS}?fieldValidation=Maybe"), config_map("a").to_string()),
            422,
            "Unsupported value",
        ),
    ]
}
