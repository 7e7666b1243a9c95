//! Reviews: questions about who somebody is and what they may do. They are answered and not stored.

use super::{Answer, answer};
use crate::authorization::Question;
use crate::context::Context;
use crate::identity;
use authz::{Granted, Rule, User};
use http::StatusCode;
use object::field::{Error, Path};
use object::selector::FieldSelector;
use object::{ApiError, Edit, Value, View, json};
use std::collections::BTreeMap;

pub(super) fn is_review(table: &str) -> bool {
    matches!(table.split_once('.'), Some((_, "authorization.k8s.io" | "authentication.k8s.io")))
}

pub(super) async fn create(ctx: &Context, body: &[u8]) -> Answer {
    let options = crate::options::Options::parse(&ctx.query, "CreateOptions")?;
    let mut review = ctx.decode(body, options.validation)?;
    schema::fill(ctx.resource.schema(), ctx.resource.node, &mut review);
    let status = match ctx.resource.kind.as_ref() {
        "SelfSubjectReview" => json!({ "userInfo": identity::to_value(&ctx.user) }),
        "SelfSubjectRulesReview" => rules(ctx, &review).await?,
        "SelfSubjectAccessReview" => access(ctx, &review, &ctx.user.clone()).await?,
        "SubjectAccessReview" => access(ctx, &review, &subject(ctx, &review)?).await?,
        "LocalSubjectAccessReview" => {
            check_namespace(ctx, &review)?;
            access(ctx, &review, &subject(ctx, &review)?).await?
        }
        "TokenReview" if review.at("spec").text("token").is_empty() => {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        "TokenReview" => crate::authn::review(&ctx.api, review.at("spec")),
        other => return Err(ApiError::internal(format!("{other} is no review"))),
    };
    review.set("status", status);
    // Only the answer about oneself says when it was given.
    let given = if ctx.resource.kind == "SelfSubjectReview" { ctx.now().into() } else { Value::Null };
    review.object_or_new("metadata").set("creationTimestamp", given);
    Ok(answer(ctx, StatusCode::CREATED, &review))
}

fn check_namespace(ctx: &Context, review: &Value) -> Result<(), ApiError> {
    let namespace = &ctx.target.namespace;
    let asked = review.path(&["spec", "resourceAttributes", "namespace"]).as_str().unwrap_or_default();
    if asked == namespace {
        return Ok(());
    }
    let path = Path::new("spec.resourceAttributes.namespace");
    let detail = format!("must match metadata.namespace: {namespace}");
    Err(invalid(ctx, Error::invalid(&path, asked, detail)))
}

fn invalid(ctx: &Context, error: Error) -> ApiError {
    ApiError::invalid(&ctx.resource.group, &ctx.resource.kind, "", &[error])
}

/// The user that a review is about.
fn subject(ctx: &Context, review: &Value) -> Result<User, ApiError> {
    let spec = review.at("spec");
    let groups: Vec<String> = texts(spec.items("groups"));
    if spec.text("user").is_empty() && groups.is_empty() {
        let path = Path::new("spec.user");
        return Err(invalid(ctx, Error::invalid(&path, "", "at least one of user or group must be specified")));
    }
    let extra: BTreeMap<_, _> = spec
        .entries("extra")
        .map(|(key, values)| (key.to_owned(), texts(values.as_array().map_or(&[], Vec::as_slice))))
        .collect();
    Ok(User { name: spec.text("user").to_owned(), uid: spec.text("uid").to_owned(), groups, extra })
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

async fn access(ctx: &Context, review: &Value, user: &User) -> Result<Value, ApiError> {
    let spec = review.at("spec");
    let (resource, path) = (spec.at("resourceAttributes"), spec.at("nonResourceAttributes"));
    if resource.is_null() == path.is_null() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(invalid(ctx, Error::invalid(&Path::new("spec.resourceAttributes"), resource.clone(), detail)));
    }
    let text = |name: &str| resource.text(name).to_owned();
    let question = match path {
        Value::Null => Question {
            verb: text("verb"),
            group: text("group"),
            version: text("version"),
            resource: text("resource"),
            subresource: text("subresource"),
            name: text("name"),
            namespace: text("namespace"),
            path: None,
            fields: field_selector(resource),
        },
        path => Question {
            verb: path.text("verb").to_owned(),
            path: Some(path.text("path").to_owned()),
            ..Question::default()
        },
    };
    let verdict = ctx.api.authorization.verdict(&ctx.api, user, &question).await?;
    let mut status = json!({ "allowed": verdict.allowed });
    if !verdict.reason.is_empty() {
        status.set("reason", verdict.reason);
    }
    Ok(status)
}

/// A field selector, where it is given as text.
fn field_selector(resource: &Value) -> Option<FieldSelector> {
    let raw = resource.path(&["fieldSelector", "rawSelector"]).as_str()?;
    FieldSelector::parse(raw).ok()
}

async fn rules(ctx: &Context, review: &Value) -> Result<Value, ApiError> {
    let namespace = review.at("spec").text("namespace");
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    ctx.catch_up().await?;
    let Granted { resource_rules, non_resource_rules, incomplete, errors, .. } =
        ctx.api.authorization.granted(&ctx.user, namespace);
    let mut resource_rules: Vec<Value> = resource_rules.iter().map(Rule::to_value).collect();
    let mut non_resource_rules: Vec<Value> = non_resource_rules.iter().map(Rule::to_value).collect();
    if ctx.user.is_in(authz::MASTERS) {
        resource_rules.insert(0, json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
        non_resource_rules.insert(0, json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
    }
    let mut status =
        json!({ "resourceRules": resource_rules, "nonResourceRules": non_resource_rules, "incomplete": incomplete });
    if !errors.is_empty() {
        status.set("evaluationError", errors.join(", "));
    }
    Ok(status)
}
