//! Who sends a request.

use authz::User;
use object::{Value, json};

pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// A user known by name and groups.
pub fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.to_owned(), groups: groups.iter().map(|group| (*group).to_owned()).collect(), ..User::default() }
}

pub(crate) fn anonymous() -> User {
    user("system:anonymous", &[UNAUTHENTICATED])
}

/// As reviews and admission show it.
pub(crate) fn to_value(user: &User) -> Value {
    let mut value = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        value["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        value["extra"] = json!(user.extra);
    }
    value
}
