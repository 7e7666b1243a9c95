//! Documents come in sections, one for each version of each group and one for each URL that is about no resource.
//!
//! The third version of OpenAPI serves every section by itself, the second serves all of them in one.

use super::operation::{self, Answer, Content, Route};
use super::paths;
use super::types;
use object::Value;
use registry::Resource;
use schema::openapi::Dialect;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A part of the API that is described by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    /// `/api`: the versions of the core group.
    Core,
    /// `/apis`: the groups.
    Groups,
    /// `/apis/apps`: the versions of a group.
    Group(String),
    /// `/apis/apps/v1`: the resources of a version of a group.
    Version(String, String),
    /// `/version`.
    Server,
    /// `/.well-known/openid-configuration`.
    Issuer,
    /// `/openid/v1/jwks`.
    Keys,
}

impl Section {
    /// All sections of a server with these resources.
    pub(super) fn all(rows: &[Arc<Resource>]) -> BTreeSet<Section> {
        let mut sections =
            BTreeSet::from([Section::Core, Section::Groups, Section::Server, Section::Issuer, Section::Keys]);
        for row in rows {
            sections.insert(Section::Version(row.group.to_string(), row.version.to_string()));
            if !row.group.is_empty() {
                sections.insert(Section::Group(row.group.to_string()));
            }
        }
        sections
    }

    /// The path that it describes, without the slash in front: `apis/apps/v1`.
    pub(super) fn path(&self) -> String {
        match self {
            Section::Core => "api".to_owned(),
            Section::Groups => "apis".to_owned(),
            Section::Group(group) => format!("apis/{group}"),
            Section::Version(group, version) => types::base_path(group, version)[1..].to_owned(),
            Section::Server => "version".to_owned(),
            Section::Issuer => ".well-known/openid-configuration".to_owned(),
            Section::Keys => "openid/v1/jwks".to_owned(),
        }
    }

    /// The rows that it is made of: while these are the same, so is the section.
    pub(super) fn rows(&self, rows: &[Arc<Resource>]) -> Vec<Arc<Resource>> {
        let Section::Version(group, version) = self else { return Vec::new() };
        rows.iter().filter(|row| row.group == *group && row.version == *version).cloned().collect()
    }

    pub(super) fn routes(&self, rows: &[Arc<Resource>]) -> Vec<Route> {
        let path = format!("/{}/", self.path());
        let text = |media| Answer { content: Content::Text, media, codes: &[200] };
        let (id, tag, answer, description) = match self {
            Section::Core => (
                "getCoreAPIVersions",
                "core".to_owned(),
                Answer::meta("APIVersions"),
                "Lists the versions of the core group.",
            ),
            Section::Groups => ("getAPIVersions", "apis".to_owned(), Answer::meta("APIGroupList"), "Lists the groups."),
            Section::Group(group) => (
                &*format!("get{}APIGroup", operation::group_id(group)),
                operation::group_tag(group),
                Answer::meta("APIGroup"),
                "Lists the versions of the group.",
            ),
            Section::Version(group, version) => {
                let tag = format!("{}_{version}", operation::group_tag(group));
                let id = format!("get{}{}APIResources", operation::group_id(group), operation::capitalized(version));
                let description = "Lists the resources of the version.";
                let own = operation::plain(&path, &id, &tag, Answer::meta("APIResourceList"), description);
                return std::iter::once(own).chain(rows.iter().flat_map(|row| paths::of_resource(row))).collect();
            }
            Section::Server => (
                "getCodeVersion",
                "version".to_owned(),
                Answer { content: Content::Type(types::VERSION_INFO.to_owned()), ..text(operation::JSON) },
                "Says which version this is.",
            ),
            Section::Issuer => (
                "getServiceAccountIssuerOpenIDConfiguration",
                "WellKnown".to_owned(),
                text(operation::JSON),
                "Says who issues the tokens of service accounts, and where the keys are.",
            ),
            Section::Keys => (
                "getServiceAccountIssuerOpenIDKeyset",
                "openid".to_owned(),
                text(&["application/jwk-set+json"]),
                "Shows the keys that tokens of service accounts are checked with.",
            ),
        };
        vec![operation::plain(&path, id, &tag, answer, description)]
    }

    /// The types that its routes name, and all that these refer to.
    pub(super) fn definitions<'a>(
        &self,
        rows: &'a [Arc<Resource>],
        dialect: Dialect,
    ) -> Box<dyn Iterator<Item = (String, Value)> + 'a> {
        match self {
            Section::Core => Box::new(types::definitions(&[], &["APIVersions"], dialect)),
            Section::Groups => Box::new(types::definitions(&[], &["APIGroupList"], dialect)),
            Section::Group(_) => Box::new(types::definitions(&[], &["APIGroup"], dialect)),
            Section::Version(..) => Box::new(types::definitions(rows, &[], dialect)),
            Section::Server => Box::new(std::iter::once(types::version_info())),
            Section::Issuer | Section::Keys => Box::new(std::iter::empty()),
        }
    }
}
