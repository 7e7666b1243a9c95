//! Documents as clients get them.

use super::sections::Section;
use crate::api::Api;
use crate::{Authentication, Authorization, Peer, SigningKey, StaticTokens};
use ambient::Ambient;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use object::{Value, json};
use registry::{Plain, Registry, Resource, SchemaRef, Verb};
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

async fn api() -> Api {
    let ambient = Ambient::seeded(1);
    let store = Arc::new(store::Memory::new(&ambient, store::Retention::default()));
    let registry = Registry::start(store, Arc::new(Plain), &ambient).await.unwrap();
    let registry = registry.serving(&"api/all=true".parse().unwrap());
    let authentication = Authentication::new(SigningKey::ephemeral(), StaticTokens::default());
    Api::new(registry, ambient, authentication, Authorization::default(), None, "127.0.0.1:6443".to_owned())
}

async fn get(api: &Api, uri: &str, headers: &[(header::HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
    let peer = Peer { user: Some(Arc::new(crate::user("admin", &["system:masters"]))), address: None };
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let response = api.handle(&peer, request.body(Full::new(Bytes::new())).unwrap()).await;
    let (parts, body) = response.into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes())
}

async fn document(api: &Api, uri: &str) -> Value {
    let (status, _, body) = get(api, uri, &[]).await;
    assert_eq!(status, StatusCode::OK, "{uri}");
    serde_json::from_slice(&body).unwrap()
}

/// Every reference in a value.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| match (key.as_str(), value.as_str()) {
            ("$ref", Some(reference)) => found.push(reference),
            _ => references(value, found),
        }),
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn assert_references_resolve(document: &Value, name: &str) {
    let mut found = Vec::new();
    references(document, &mut found);
    assert!(!found.is_empty() || document["components"]["schemas"] == json!({}), "{name}");
    for reference in found {
        let target = document.pointer(reference.trim_start_matches('#'));
        assert!(target.is_some(), "{name} refers to {reference}");
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
    let api = api().await;
    assert_references_resolve(&document(&api, "/openapi/v2").await, "v2");
    let index = document(&api, "/openapi/v3").await;
    for (path, entry) in index["paths"].as_object().unwrap() {
        let address = entry["serverRelativeURL"].as_str().unwrap();
        if !matches!(path.as_str(), ".well-known/openid-configuration" | "openid/v1/jwks") {
            assert_references_resolve(&document(&api, address).await, path);
        }
    }
}

#[tokio::test]
async fn every_resource_has_an_operation_for_each_of_its_verbs() {
    let api = api().await;
    let whole = document(&api, "/openapi/v2").await;
    let mut section = (String::new(), Value::Null);
    for row in registry::builtin() {
        let base = super::types::base_path(&row.group, &row.version);
        if section.0 != base {
            section = (base.clone(), document(&api, &format!("/openapi/v3{base}")).await);
        }
        let section = &section.1;
        let scope = if row.is_namespaced() { "namespaces/{namespace}/" } else { "" };
        for verb in row.verbs.iter() {
            let (watch, name, method) = match verb {
                Verb::Create => ("", "", "post"),
                Verb::Delete => ("", "/{name}", "delete"),
                Verb::DeleteCollection => ("", "", "delete"),
                Verb::Get => ("", "/{name}", "get"),
                Verb::List => ("", "", "get"),
                Verb::Patch => ("", "/{name}", "patch"),
                Verb::Update => ("", "/{name}", "put"),
                Verb::Watch => ("watch/", "", "get"),
            };
            let path = format!("{base}/{watch}{scope}{}{name}", row.plural);
            for document in [&whole, section] {
                let kind = &document["paths"][&path][method]["x-kubernetes-group-version-kind"];
                assert_eq!(
                    kind,
                    &json!({ "group": row.group, "version": row.version, "kind": row.kind }),
                    "{method} {path}"
                );
            }
        }
        for subresource in row.subresources.iter() {
            let path = format!("{base}/{scope}{}/{{name}}/{}", row.plural, subresource.name());
            assert!(whole["paths"][&path].is_object() && section["paths"][&path].is_object(), "{path}");
        }
    }
}

#[tokio::test]
async fn no_two_operations_have_the_same_name() {
    let whole = document(&api().await, "/openapi/v2").await;
    let (mut names, mut count) = (BTreeSet::new(), 0);
    for item in whole["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values().filter(|operation| operation.is_object()) {
            count += 1;
            assert!(names.insert(operation["operationId"].as_str().unwrap()), "{operation}");
        }
    }
    assert!(count > 700, "{count} operations");
}

#[tokio::test]
async fn kinds_are_found_by_their_definitions() {
    let api = api().await;
    let whole = document(&api, "/openapi/v2").await;
    let apps = document(&api, "/openapi/v3/apis/apps/v1").await;
    let (whole, apps) = (&whole["definitions"], &apps["components"]["schemas"]);
    let kind = |group: &str, kind: &str| json!({ "group": group, "version": "v1", "kind": kind });
    for (name, expected) in [
        ("io.k8s.api.apps.v1.Deployment", kind("apps", "Deployment")),
        ("io.k8s.api.apps.v1.DeploymentList", kind("apps", "DeploymentList")),
        ("io.k8s.api.autoscaling.v1.Scale", kind("autoscaling", "Scale")),
        ("io.k8s.api.core.v1.PersistentVolumeClaim", kind("", "PersistentVolumeClaim")),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.Status", kind("", "Status")),
    ] {
        for definitions in [whole, apps] {
            assert_eq!(definitions[name]["x-kubernetes-group-version-kind"], json!([expected]), "{name}");
        }
    }
    let options = &apps["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"];
    assert_eq!(options, &json!([kind("", "DeleteOptions"), kind("apps", "DeleteOptions")]));
    assert_eq!(apps["io.k8s.api.apps.v1.DeploymentSpec"].get("x-kubernetes-group-version-kind"), None);
}

#[tokio::test]
async fn an_address_with_a_hash_is_kept_for_good_and_a_wrong_hash_leads_to_the_right_one() {
    let api = api().await;
    let index = document(&api, "/openapi/v3").await;
    let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let (status, headers, body) = get(&api, address, &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers[header::CACHE_CONTROL], "public, immutable");
    assert!(headers[header::EXPIRES].to_str().unwrap().ends_with(" GMT"));
    assert_eq!(headers[header::ETAG].to_str().unwrap().trim_matches('"'), crate::other::digest(&body));
    assert!(address.ends_with(&crate::other::digest(&body)));

    let (status, headers, body) = get(&api, "/openapi/v3/apis/apps/v1?hash=0", &[]).await;
    assert_eq!((status, headers[header::LOCATION].to_str().unwrap()), (StatusCode::MOVED_PERMANENTLY, address));
    assert!(body.is_empty());

    let (status, headers, _) = get(&api, "/openapi/v3/apis/apps/v1", &[]).await;
    assert_eq!((status, &headers[header::CACHE_CONTROL]), (StatusCode::OK, &"no-cache, private".parse().unwrap()));
    assert_eq!(get(&api, "/openapi/v3/apis/apps/v9", &[]).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_a_client_has_is_not_sent_again() {
    let api = api().await;
    for uri in ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"] {
        let (_, headers, _) = get(&api, uri, &[]).await;
        let tag = headers[header::ETAG].to_str().unwrap().to_owned();
        for (known, expected) in [
            (tag.clone(), StatusCode::NOT_MODIFIED),
            (format!("\"x\", W/{tag}"), StatusCode::NOT_MODIFIED),
            ("\"x\"".to_owned(), StatusCode::OK),
        ] {
            let (status, headers, body) = get(&api, uri, &[(header::IF_NONE_MATCH, &known)]).await;
            assert_eq!((status, headers[header::ETAG].to_str().unwrap()), (expected, tag.as_str()), "{uri} {known}");
            assert_eq!(body.is_empty(), expected == StatusCode::NOT_MODIFIED, "{uri} {known}");
        }
    }
}

#[tokio::test]
async fn clients_get_a_form_that_they_accept() {
    let api = api().await;
    let dotted = PROTOBUF.replace('@', ".");
    let mixed = format!("application/json;q=0.5, {PROTOBUF}");
    for (uri, accept, expected) in [
        ("/openapi/v2", "application/json", Some("application/json")),
        ("/openapi/v2", "*/*", Some("application/json")),
        ("/openapi/v2", PROTOBUF, Some(dotted.as_str())),
        ("/openapi/v2", dotted.as_str(), Some(dotted.as_str())),
        ("/openapi/v2", mixed.as_str(), Some(dotted.as_str())),
        ("/openapi/v2", "text/html", None),
        (
            "/openapi/v3/api/v1",
            "application/com.github.proto-openapi.spec.v3@v1.0+protobuf, application/json",
            Some("application/json"),
        ),
        ("/openapi/v3/api/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", None),
    ] {
        let (status, headers, _) = get(&api, uri, &[(header::ACCEPT, accept)]).await;
        let found = (status == StatusCode::OK).then(|| headers[header::CONTENT_TYPE].to_str().unwrap());
        assert_eq!(found, expected, "{uri} {accept}");
        assert!(expected.is_some() || status == StatusCode::NOT_ACCEPTABLE, "{uri} {accept}: {status}");
    }
}

#[tokio::test]
async fn compressed_and_plain_documents_are_the_same() {
    let api = api().await;
    for uri in ["/openapi/v2", "/openapi/v3/api/v1"] {
        let (_, _, plain) = get(&api, uri, &[]).await;
        let (_, headers, compressed) = get(&api, uri, &[(header::ACCEPT_ENCODING, "gzip")]).await;
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, plain, "{uri}");
    }
}

#[test]
fn a_custom_resource_is_described_like_any_other() {
    let mut schema = schema::Schema::default();
    let port = schema.add(schema::Shape::Scalar(schema::Scalar::IntOrString));
    let node = schema.add(schema::Shape::Map(schema::Map { values: port, atomic: false }));
    let custom = Arc::new(Resource {
        group: "stable.example.com".into(),
        version: "v1".into(),
        kind: "CronTab".into(),
        plural: "crontabs".into(),
        schema: SchemaRef::Custom(Arc::new(schema)),
        node,
        ..(*registry::builtin()[2]).clone()
    });
    let section = Section::Version("stable.example.com".to_owned(), "v1".to_owned());
    let mut draft = super::draft::Draft::new(super::draft::Forms::Json);
    super::v3::write(&section, std::slice::from_ref(&custom), &mut draft);
    let document: Value = serde_json::from_slice(&draft.finish().unwrap().json.unpack().unwrap()).unwrap();
    assert_references_resolve(&document, "the custom section");
    let path = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}";
    let patch = &document["paths"][path]["patch"];
    assert_eq!(patch["operationId"], "patchStableExampleComV1NamespacedCronTab");
    assert_eq!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json"), None);
    let definition = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(
        definition["x-kubernetes-group-version-kind"],
        json!([{ "group": "stable.example.com", "version": "v1", "kind": "CronTab" }])
    );
    assert!(definition["properties"]["metadata"].is_object());
    assert_eq!(definition["additionalProperties"], json!({ "x-kubernetes-int-or-string": true }));

    let rows: Vec<_> = registry::builtin().iter().cloned().chain([custom]).collect();
    let mut draft = super::draft::Draft::new(super::draft::Forms::JsonAndProtobuf);
    super::v2::write(&rows, &mut draft);
    let document: Value = serde_json::from_slice(&draft.finish().unwrap().json.unpack().unwrap()).unwrap();
    assert_references_resolve(&document, "the whole with a custom resource");
}
