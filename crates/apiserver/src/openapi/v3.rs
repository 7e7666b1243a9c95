//! A section as a document of OpenAPI 3.0.

use super::draft::Draft;
use super::operation::{Body, Content, Operation, Route};
use super::parameters::{Parameter, Place};
use super::sections::Section;
use super::types;
use object::{Map, Value, json};
use registry::Resource;
use schema::openapi::Dialect;
use std::sync::Arc;

/// `rows` are those of the section.
pub(super) fn write(section: &Section, rows: &[Arc<Resource>], draft: &mut Draft) {
    draft.member("openapi", &json!("3.0.0"));
    draft.member("info", &super::info());
    draft.members("paths", section.routes(rows).into_iter().map(|route| (route.path.clone(), path_item(&route))));
    draft.open("components");
    draft.members("schemas", section.definitions(rows, Dialect::V3));
    draft.member("securitySchemes", &super::security_schemes());
    draft.close();
}

fn path_item(route: &Route) -> Value {
    let common = route.common();
    let mut item: Map =
        route.operations.iter().map(|each| (each.method.to_owned(), operation(each, &common))).collect();
    if !common.is_empty() {
        item.insert("parameters", common.iter().map(parameter).collect());
    }
    Value::Object(item)
}

fn operation(operation: &Operation, common: &[Parameter]) -> Value {
    let mut described = json!({
        "operationId": operation.id, "description": operation.description, "tags": [operation.tag],
        "responses": responses(operation),
    });
    let own: Vec<Value> = operation.parameters.iter().filter(|own| !common.contains(own)).map(parameter).collect();
    if !own.is_empty() {
        described["parameters"] = json!(own);
    }
    if let Some(body) = request_body(&operation.body) {
        described["requestBody"] = body;
    }
    super::add_extensions(&mut described, operation);
    described
}

fn request_body(body: &Body) -> Option<Value> {
    match body {
        Body::None => None,
        Body::Object { name, required } => {
            let mut described = json!({ "content": content(&["*/*"], &Dialect::V3.reference(name)) });
            if *required {
                described["required"] = json!(true);
            }
            Some(described)
        }
        Body::Patch { media } => {
            let patch = Dialect::V3.reference(&types::meta("Patch"));
            Some(json!({ "content": content(media, &patch), "required": true }))
        }
    }
}

fn responses(operation: &Operation) -> Value {
    let answer = &operation.answer;
    let schema = match &answer.content {
        Content::Type(name) => Dialect::V3.reference(name),
        Content::Text => json!({ "type": "string" }),
    };
    let mut responses = Map::new();
    for code in answer.codes {
        let described = json!({ "description": super::meaning(*code), "content": content(answer.media, &schema) });
        responses.insert(code.to_string(), described);
    }
    responses.insert("401", json!({ "description": super::meaning(401) }));
    Value::Object(responses)
}

/// The same schema in all of these media types.
fn content(media: &[&str], schema: &Value) -> Value {
    Value::Object(media.iter().map(|media| ((*media).to_owned(), json!({ "schema": schema }))).collect())
}

fn parameter(parameter: &Parameter) -> Value {
    let mut described = json!({
        "name": parameter.name, "description": parameter.description,
        "schema": { "type": parameter.kind, "uniqueItems": true },
    });
    match parameter.place {
        Place::Path => {
            described["in"] = json!("path");
            described["required"] = json!(true);
        }
        Place::Query => described["in"] = json!("query"),
    }
    described
}
