//! One request about a resource: everything the verbs need to know of it.

use crate::api::Api;
use crate::media::Format;
use crate::options::{FieldValidation, Options};
use crate::render::Viewer;
use crate::request::{Info, Query, Target};
use crate::{decode, media};
use authz::User;
use http::HeaderMap;
use object::{ApiError, Edit, Value, View, time};
use parking_lot::Mutex;
use registry::Resource;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) api: Api,
    pub(crate) info: Info,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) user: Arc<User>,
    /// The version that was asked for.
    pub(crate) resource: Arc<Resource>,
    /// The version that is stored: admission, rules and storage see only this one.
    pub(crate) hub: Arc<Resource>,
    pub(crate) viewer: Viewer,
    warnings: Mutex<Vec<String>>,
    /// The time of the request as objects carry it, once somebody has asked.
    now: OnceLock<String>,
}

impl Context {
    pub(crate) fn new(
        api: Api,
        info: Info,
        query: Query,
        headers: HeaderMap,
        user: Arc<User>,
        resource: Arc<Resource>,
        viewer: Viewer,
    ) -> Self {
        let hub = api.registry.resources().stored(&resource);
        let target = info.target.clone().unwrap_or_default();
        Context {
            api,
            info,
            target,
            query,
            headers,
            user,
            resource,
            hub,
            viewer,
            warnings: Mutex::default(),
            now: OnceLock::new(),
        }
    }

    /// The same request, about another resource: what an action on one object means for another.
    pub(crate) fn redirected(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        name: &str,
        subresource: &str,
    ) -> Result<Context, ApiError> {
        let resources = self.api.registry.resources();
        let resource = resources.get(group, version, plural).ok_or_else(crate::pipeline::not_served)?.clone();
        let viewer = Viewer { resource: resource.clone(), ..self.viewer.clone() };
        let mut info = self.info.clone();
        info.target = Some(Target {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: self.target.namespace.clone(),
            resource: plural.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            rest: String::new(),
        });
        let (query, headers, user) = (self.query.clone(), self.headers.clone(), self.user.clone());
        Ok(Context::new(self.api.clone(), info, query, headers, user, resource, viewer))
    }

    pub(crate) fn header(&self, name: http::header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn warn(&self, text: impl Into<String>) {
        let (mut warnings, text) = (self.warnings.lock(), text.into());
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }

    /// What the body is written in.
    pub(crate) fn body_format(&self) -> Result<Format, ApiError> {
        media::content_type(self.header(http::header::CONTENT_TYPE))
    }

    /// The body as an object of the resource; its mistakes become warnings or an error.
    pub(crate) fn decode(&self, body: &[u8], validation: FieldValidation) -> Result<Value, ApiError> {
        let decoded = decode::object(&self.resource, self.body_format()?, body)?;
        self.accept(decoded, validation)
    }

    pub(crate) fn accept(&self, decoded: decode::Decoded, validation: FieldValidation) -> Result<Value, ApiError> {
        let mut warnings = Vec::new();
        let value = decoded.accept(&self.resource, validation, &mut warnings)?;
        warnings.into_iter().for_each(|warning| self.warn(warning));
        Ok(value)
    }

    /// Fills in the defaults of the version that was asked for, and turns the object into the one that is stored.
    pub(crate) fn to_hub(&self, value: &mut Value) {
        self.to_hub_changed(value, &Value::Null);
    }

    /// The same for an object that was made from another, which is complete.
    pub(crate) fn to_hub_changed(&self, value: &mut Value, known: &Value) {
        complete_changed(&self.resource, value, known);
        if self.viewer.is_converted() {
            self.resource.to_stored(value);
            complete(&self.hub, value);
        }
    }

    /// The name the author of a write goes by: as given, or after the client's program.
    pub(crate) fn manager(&self, options: &Options) -> String {
        if !options.manager.is_empty() {
            return options.manager.clone();
        }
        let agent = self.header(http::header::USER_AGENT).unwrap_or_default();
        agent.split('/').next().unwrap_or_default().chars().take(128).collect()
    }

    /// Wall time as objects carry it.
    pub(crate) fn now(&self) -> String {
        self.now.get_or_init(|| time::format(self.now_seconds()).unwrap_or_default()).clone()
    }

    pub(crate) fn now_seconds(&self) -> i64 {
        i64::try_from(self.api.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX)
    }

    /// Waits until the cache shows everything that has been committed.
    pub(crate) async fn catch_up(&self) -> Result<(), ApiError> {
        self.api.registry.catch_up().await
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.resource.group, &self.resource.plural, &self.target.name)
    }

    pub(crate) fn conflict(&self, name: &str, cause: &str) -> ApiError {
        ApiError::conflict(&self.resource.group, &self.resource.plural, name, cause)
    }

    /// The name in the body must be that of the URL, if it says one; so must the namespace.
    pub(crate) fn check_place(&self, value: &mut Value) -> Result<(), ApiError> {
        let target = &self.target;
        let metadata = value.object_or_new("metadata");
        if self.resource.is_namespaced() {
            match metadata.text("namespace") {
                "" => metadata.set("namespace", target.namespace.as_str()),
                namespace if namespace == target.namespace => {}
                namespace => {
                    return Err(ApiError::bad_request(format!(
                        "the namespace of the provided object does not match the namespace sent on the request: {namespace:?} is not {:?}",
                        target.namespace
                    )));
                }
            }
        }
        if !target.name.is_empty() {
            match metadata.text("name") {
                "" => metadata.set("name", target.name.as_str()),
                name if name == target.name => {}
                name => {
                    return Err(ApiError::bad_request(format!(
                        "the name of the object ({name}) does not match the name on the URL ({})",
                        target.name
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Fills in what the schema and the rules of the kind say of fields that were left out.
pub(crate) fn complete(resource: &Resource, value: &mut Value) {
    complete_changed(resource, value, &Value::Null);
}

fn complete_changed(resource: &Resource, value: &mut Value, known: &Value) {
    schema::fill_changed(resource.schema(), resource.node, value, known);
    if let Some(default) = resource.strategy.default {
        default(value);
    }
}
