//! The whole API as a document of Swagger 2.0, which is OpenAPI's second version.

use super::draft::Draft;
use super::operation::{Body, Content, Operation, Route};
use super::parameters::{Parameter, Place};
use super::sections::Section;
use super::types;
use object::{Map, Value, json};
use registry::Resource;
use schema::openapi::Dialect;
use std::sync::Arc;

pub(super) fn write(rows: &[Arc<Resource>], draft: &mut Draft) {
    draft.member("swagger", &json!("2.0"));
    draft.member("info", &super::info());
    let mut shared = Shared::default();
    draft.open("paths");
    for section in Section::all(rows) {
        for route in section.routes(&section.rows(rows)) {
            draft.member(&route.path, &shared.path_item(&route));
        }
    }
    draft.close();
    let definitions = types::definitions(rows, &["APIGroupList", "APIVersions"], Dialect::V2);
    draft.members("definitions", definitions.chain([types::version_info()]));
    draft.members("parameters", shared.0);
    draft.member("security", &json!([{ "BearerToken": [] }]));
    draft.member("securityDefinitions", &super::security_schemes());
}

/// The parameters that were referred to: most stand at hundreds of operations, so that they are said only once.
#[derive(Default)]
struct Shared(Map);

impl Shared {
    fn path_item(&mut self, route: &Route) -> Value {
        let common = route.common();
        let mut item = Map::new();
        for operation in &route.operations {
            item.insert(operation.method.to_owned(), self.operation(operation, &common));
        }
        if !common.is_empty() {
            item.insert("parameters", common.iter().map(|common| self.parameter(common)).collect());
        }
        Value::Object(item)
    }

    fn operation(&mut self, operation: &Operation, common: &[Parameter]) -> Value {
        let mut parameters: Vec<Value> = body(&operation.body).into_iter().collect();
        let own = operation.parameters.iter().filter(|own| !common.contains(own));
        parameters.extend(own.map(|own| self.parameter(own)));
        let consumes = match &operation.body {
            Body::Patch { media } => media,
            Body::None | Body::Object { .. } => &["*/*"][..],
        };
        let mut described = json!({
            "operationId": operation.id, "description": operation.description, "tags": [operation.tag],
            "schemes": ["https"], "consumes": consumes, "produces": operation.answer.media,
            "responses": responses(operation),
        });
        if !parameters.is_empty() {
            described["parameters"] = json!(parameters);
        }
        super::add_extensions(&mut described, operation);
        described
    }

    fn parameter(&mut self, parameter: &Parameter) -> Value {
        let key = parameter.key();
        let reference = json!({ "$ref": format!("#/parameters/{key}") });
        self.0.entry(key).or_insert_with(|| {
            let mut described = json!({
                "name": parameter.name, "description": parameter.description,
                "type": parameter.kind, "uniqueItems": true,
            });
            match parameter.place {
                Place::Path => {
                    described["in"] = json!("path");
                    described["required"] = json!(true);
                }
                Place::Query => described["in"] = json!("query"),
            }
            described
        });
        reference
    }
}

fn body(body: &Body) -> Option<Value> {
    let (name, required) = match body {
        Body::None => return None,
        Body::Object { name, required } => (name.clone(), *required),
        Body::Patch { .. } => (types::meta("Patch"), true),
    };
    let mut described = json!({ "name": "body", "in": "body", "schema": Dialect::V2.reference(&name) });
    if required {
        described["required"] = json!(true);
    }
    Some(described)
}

fn responses(operation: &Operation) -> Value {
    let schema = match &operation.answer.content {
        Content::Type(name) => Dialect::V2.reference(name),
        Content::Text => json!({ "type": "string" }),
    };
    let mut responses = Map::new();
    for code in operation.answer.codes {
        responses.insert(code.to_string(), json!({ "description": super::meaning(*code), "schema": schema }));
    }
    responses.insert("401", json!({ "description": super::meaning(401) }));
    Value::Object(responses)
}
