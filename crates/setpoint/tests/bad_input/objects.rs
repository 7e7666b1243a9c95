//! Objects that break the rules that hold for all objects, or for their size.

use super::row::{CONFIG_MAPS, Row, config_map, dry_run, json_body, row};
use http::Method;
use object::{Value, json};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = sizes();
    rows.extend(names());
    rows.extend(places());
    rows
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

fn with_metadata(mut object: Value, field: &str, value: Value) -> Value {
    object["metadata"][field] = value;
    object
}

fn sizes() -> Vec<Row> {
    let text = "x".repeat(1 << 20);
    let secret = json!({ "metadata": { "name": "large" }, "stringData": { "a": text, "b": "x" } });
    let annotations = json!({ "a": "x".repeat(256 << 10) });
    let container = json!({ "name": "a", "image": "x", "args": ["x".repeat(1_600_000)] });
    let template = json!({
        "metadata": { "name": "large" },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [container] } },
    });
    vec![
        row(
            "a ConfigMap over 1 MiB",
            dry_run(&with(config_map("large"), "data", json!({ "a": text, "b": "x" }))),
            422,
            "Too long",
        ),
        row(
            "a Secret over 1 MiB",
            json_body(Method::POST, "/api/v1/namespaces/default/secrets", secret.to_string()),
            422,
            "Too long",
        ),
        row(
            "annotations over 256 KiB",
            dry_run(&with_metadata(config_map("large"), "annotations", annotations)),
            422,
            "metadata.annotations: Too long",
        ),
        row(
            "an object that is too large to store",
            json_body(Method::POST, "/api/v1/namespaces/default/podtemplates", template.to_string()),
            413,
            "1572864",
        ),
    ]
}

fn names() -> Vec<Row> {
    let namespace = json!({ "metadata": { "name": "n".repeat(64) } }).to_string();
    let mut rows: Vec<Row> = [(".", "."), ("..", ".."), ("a/b", "a/b"), ("a%2fb", "a%2fb"), ("UPPER", "UPPER")]
        .map(|(what, name)| row(what, dry_run(&config_map(name)), 422, "metadata.name: Invalid value"))
        .into();
    rows.extend([
        row("a name over 253", dry_run(&config_map(&"n".repeat(254))), 422, "must be no more than 253 "),
        row(
            "a namespace over 63",
            json_body(Method::POST, "/api/v1/namespaces", namespace),
            422,
            "must be no more than 63 ",
        ),
        row(
            "a label's value over 63",
            dry_run(&with_metadata(config_map("labelled"), "labels", json!({ "a": "x".repeat(64) }))),
            422,
            "must be no more than 63 ",
        ),
        row(
            "neither a name nor how to make one",
            dry_run(&json!({ "metadata": {} })),
            422,
            "name or generateName is required",
        ),
        row(
            "a long name to be generated",
            dry_run(&json!({ "metadata": { "generateName": "g".repeat(59) } })),
            201,
            "gggggggggg",
        ),
    ]);
    rows
}

fn places() -> Vec<Row> {
    let there = format!("{CONFIG_MAPS}/there");
    let put = |object: Value| json_body(Method::PUT, &there, object.to_string());
    vec![
        row(
            "another name than that of the URL",
            put(config_map("elsewhere")),
            400,
            "does not match the name on the URL",
        ),
        row(
            "another namespace than that of the URL",
            dry_run(&with_metadata(config_map("a"), "namespace", json!("kube-system"))),
            400,
            "does not match the namespace",
        ),
        row(
            "another version than that of the URL",
            put(with(config_map("there"), "apiVersion", json!("v2"))),
            400,
            "does not match the expected API version",
        ),
        row("another kind than that of the URL", put(with(config_map("there"), "kind", json!("Secret"))), 400, ""),
        row(
            "what was read before somebody else changed it",
            put(with_metadata(config_map("there"), "resourceVersion", json!("1"))),
            409,
            "the object has been modified",
        ),
        row(
            "what is there already",
            json_body(Method::POST, CONFIG_MAPS, config_map("there").to_string()),
            409,
            "AlreadyExists",
        ),
        row(
            "what is in no namespace",
            json_body(Method::POST, "/api/v1/namespaces/nowhere/configmaps", config_map("a").to_string()),
            404,
            "namespaces \\\"nowhere\\\" not found",
        ),
    ]
}
