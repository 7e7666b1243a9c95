//! `metadata.managedFields` in typed form: who owns which fields.

use super::set::FieldSet;
use object::{Map, Value};

/// How somebody came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    /// Created, updated or patched.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// An owner. The same program owns separately what it applies and what it updates, and what it writes through each
/// subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub manager: String,
    pub operation: Operation,
    /// The version that the fields are in.
    pub api_version: String,
    /// Empty: the resource itself.
    pub subresource: String,
}

impl Identity {
    /// Who applies in another version than before is still the same; who updates is not.
    pub fn is(&self, other: &Identity) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

/// An entry of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Managed {
    pub owner: Identity,
    /// RFC 3339 in UTC, in seconds; compared as text.
    pub time: Option<String>,
    pub fields: FieldSet,
}

impl Managed {
    fn decode(value: &Value, at: usize) -> Result<Self, ManagersError> {
        let Value::Object(entry) = value else { return Err(ManagersError::Type { at, field: "", expected: "object" }) };
        let text = |field: &'static str| match entry.get(field) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(ManagersError::Type { at, field, expected: "string" }),
        };
        let operation = match text("operation")?.as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagersError::Operation),
        };
        let api_version = text("apiVersion")?;
        if api_version.is_empty() {
            return Err(ManagersError::ApiVersion);
        }
        match text("fieldsType")?.as_str() {
            "FieldsV1" => {}
            "" => return Err(ManagersError::NoFieldsType { at }),
            other => return Err(ManagersError::FieldsType { at, found: other.to_owned() }),
        }
        let fields = match entry.get("fieldsV1") {
            None => FieldSet::default(),
            Some(fields) => {
                FieldSet::from_value(fields).map_err(|error| ManagersError::Fields { at, why: error.to_string() })?
            }
        };
        let owner = Identity { manager: text("manager")?, operation, api_version, subresource: text("subresource")? };
        Ok(Managed { owner, time: Some(text("time")?).filter(|time| !time.is_empty()), fields })
    }

    fn encode(&self) -> Value {
        let texts = [
            ("apiVersion", self.owner.api_version.as_str()),
            ("manager", &self.owner.manager),
            ("operation", self.owner.operation.name()),
            ("subresource", &self.owner.subresource),
            ("time", self.time.as_deref().unwrap_or_default()),
        ];
        let mut entry = Map::new();
        entry.insert("fieldsType", "FieldsV1".into());
        entry.insert("fieldsV1", self.fields.to_value());
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            entry.insert(name, text.into());
        }
        Value::Object(entry)
    }
}

/// The owners of the fields of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers {
    /// No two are of the same owner. Sorted as clients see them: what was applied first, then by time.
    pub(super) entries: Vec<Managed>,
}

/// `managedFields` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagersError {
    #[error("managedFields must be a list")]
    NoList,
    #[error("managed fields entry {at}: {field} must be a {expected}")]
    Type { at: usize, field: &'static str, expected: &'static str },
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("missing fieldsType in managed fields entry {at}")]
    NoFieldsType { at: usize },
    #[error("invalid fieldsType {found:?} in managed fields entry {at}")]
    FieldsType { at: usize, found: String },
    #[error("error decoding set in managed fields entry {at}: {why}")]
    Fields { at: usize, why: String },
}

impl Managers {
    /// Reads `metadata.managedFields`.
    pub fn decode(managed_fields: Option<&Value>) -> Result<Self, ManagersError> {
        let entries = match managed_fields {
            None | Some(Value::Null) => return Ok(Managers::default()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(ManagersError::NoList),
        };
        let mut managers = Managers { entries: Vec::with_capacity(entries.len()) };
        for (at, entry) in entries.iter().enumerate() {
            let entry = Managed::decode(entry, at)?;
            // Of two entries of one owner the later one counts.
            managers.remove(&entry.owner);
            managers.entries.push(entry);
        }
        managers.sort();
        Ok(managers)
    }

    /// The owners that an update starts from, given those that are stored and `managedFields` of the object in the
    /// request. A client may edit them, and clear them by sending an empty list or one empty entry. One that leaves
    /// them out or sends nonsense does not know them and changes nothing; nor does one that writes a subresource.
    pub fn for_update(self, sent: Option<&Value>, subresource: &str) -> Self {
        if !subresource.is_empty() {
            return self;
        }
        let blank = |entry: &Value| entry.as_object().is_some_and(|fields| fields.values().all(Value::is_null));
        match sent {
            Some(Value::Array(entries)) if entries.is_empty() => Managers::default(),
            Some(Value::Array(entries)) if matches!(entries.as_slice(), [entry] if blank(entry)) => Managers::default(),
            sent => match Managers::decode(sent) {
                Ok(managers) if !managers.is_empty() => managers,
                Ok(_) | Err(_) => self,
            },
        }
    }

    /// `metadata.managedFields`; none if nobody owns anything.
    pub fn encode(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::Array(self.entries.iter().map(Managed::encode).collect()))
    }

    /// To be called after every change of owners or times.
    pub(super) fn sort(&mut self) {
        self.entries.sort_by(|a, b| {
            let (first, second) = (&a.owner, &b.owner);
            first.operation.cmp(&second.operation).then_with(|| a.time.cmp(&b.time)).then_with(|| first.cmp(second))
        });
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Managed> {
        self.entries.iter()
    }

    pub fn get(&self, owner: &Identity) -> Option<&Managed> {
        self.entries.iter().find(|entry| entry.owner.is(owner))
    }

    pub(super) fn remove(&mut self, owner: &Identity) -> Option<Managed> {
        let at = self.entries.iter().position(|entry| entry.owner.is(owner))?;
        Some(self.entries.remove(at))
    }

    /// Whether the same owners own the same fields, whenever they wrote. A write that changes nothing else need not
    /// be stored.
    pub fn same_but_times(&self, other: &Managers) -> bool {
        let known = |entry: &Managed| {
            other.get(&entry.owner).is_some_and(|o| o.owner == entry.owner && o.fields == entry.fields)
        };
        self.entries.len() == other.entries.len() && self.entries.iter().all(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn entry(manager: &str, operation: &str, version: &str, time: &str) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": version, "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": {} },
        })
    }

    #[test]
    fn entries_are_written_in_order() {
        let sorted = json!([
            entry("z", "Apply", "v1", "2024-01-01T00:00:00Z"),
            entry("a", "Apply", "v1", "2024-01-02T00:00:00Z"),
            entry("b", "Update", "v1", "2024-01-01T00:00:00Z"),
            entry("b", "Update", "v2", "2024-01-01T00:00:00Z"),
        ]);
        let mut shuffled = sorted.clone();
        shuffled.as_array_mut().unwrap().reverse();
        let managers = Managers::decode(Some(&shuffled)).unwrap();
        assert_eq!(managers.encode(), Some(sorted));
        assert_eq!(Managers::default().encode(), None);
    }

    #[test]
    fn who_applies_in_another_version_is_the_same_and_who_updates_is_not() {
        for (operation, count) in [("Apply", 1), ("Update", 2)] {
            let list = json!([entry("a", operation, "v1", ""), entry("a", operation, "v2", "")]);
            assert_eq!(Managers::decode(Some(&list)).unwrap().iter().count(), count);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let with = |field: &str, value: Value| {
            let mut entry = entry("a", "Update", "v1", "");
            entry[field] = value;
            Managers::decode(Some(&json!([entry]))).map_err(|error| error.to_string())
        };
        assert!(with("other", json!(1)).is_ok());
        assert!(with("fieldsV1", json!(null)).is_ok());
        for (field, value, expected) in [
            ("operation", json!("Patch"), "operation must be `Apply` or `Update`"),
            ("apiVersion", json!(""), "apiVersion must not be empty"),
            ("fieldsType", json!(null), "missing fieldsType in managed fields entry 0"),
            ("fieldsType", json!("FieldsV2"), "invalid fieldsType \"FieldsV2\" in managed fields entry 0"),
            ("manager", json!(1), "managed fields entry 0: manager must be a string"),
        ] {
            assert_eq!(with(field, value).unwrap_err(), expected);
        }
        assert!(with("fieldsV1", json!({ "nonsense": {} })).is_err());
        assert!(Managers::decode(Some(&json!({}))).is_err());
        assert!(Managers::decode(Some(&json!([1]))).is_err());
    }

    #[test]
    fn clients_may_edit_and_clear_managed_fields_but_not_by_accident() {
        let stored = json!([entry("stored", "Update", "v1", "")]);
        let sent = json!([entry("sent", "Update", "v1", "")]);
        for (why, sent, subresource, expected) in [
            ("edited", Some(sent.clone()), "", Some("sent")),
            ("a subresource has no say", Some(sent), "status", Some("stored")),
            ("left out", None, "", Some("stored")),
            ("null", Some(json!(null)), "", Some("stored")),
            ("nonsense", Some(json!([{ "manager": "x" }])), "", Some("stored")),
            ("cleared", Some(json!([])), "", None),
            ("cleared by an empty entry", Some(json!([{}])), "", None),
            ("a subresource clears nothing", Some(json!([])), "status", Some("stored")),
        ] {
            let stored = Managers::decode(Some(&stored)).unwrap();
            let managers = stored.for_update(sent.as_ref(), subresource);
            assert_eq!(managers.iter().next().map(|entry| entry.owner.manager.as_str()), expected, "{why}");
        }
    }
}
