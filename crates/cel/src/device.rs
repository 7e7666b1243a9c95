//! Selectors of devices: expressions over one variable, `device`, that say whether it does.
//!
//! Attributes and capacities are maps of maps, by domain and name. A name without a domain is in that of the driver, and
//! a domain that a device has nothing of is an empty map, so that `device.attributes["domain"].name` fails at the name.

use crate::declaration::{Declaration, Shape};
use crate::environment::Environment;
use crate::functions::quantities::QUANTITY;
use crate::functions::semver::Version;
use crate::program::{Budget, Program, Variables};
use crate::types::Type;
use crate::value::{Error, Fields, Key, Map, Text, Value};
use object::{Quantity, Value as Json, View};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

/// What a selector may cost, estimated and when it is evaluated.
const MAX_COST: u64 = 1_000_000;
const MAX_DOMAIN: u64 = 63;
const MAX_NAME: u64 = 32;
const MAX_DRIVER: u64 = 63;
const MAX_ATTRIBUTE: u64 = 64;
/// So many attributes and capacities a device can have.
const MAX_PROPERTIES: u64 = 32;

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let text = |max_size| Declaration::plain(Type::String).at_most(max_size);
    let attribute = Declaration::plain(Type::Dyn).at_most(MAX_ATTRIBUTE);
    let quantity = Declaration::plain(Type::Abstract(QUANTITY.into()));
    let fields = [
        ("driver", text(MAX_DRIVER)),
        ("allowMultipleAllocations", Declaration::plain(Type::Bool).at_most(1)),
        ("attributes", by_key(text(MAX_DOMAIN), by_key(text(MAX_NAME), attribute))),
        ("capacity", by_key(text(MAX_DOMAIN), by_key(text(MAX_NAME), quantity))),
    ];
    let fields = fields.map(|(name, declared)| (name.to_owned(), declared));
    Environment::new().variable("device", Declaration::object("kubernetes.DRADevice", fields)).with_bindings()
});

fn by_key(keys: Declaration, values: Declaration) -> Declaration {
    let shape = Shape::Map { keys: Arc::new(keys), values: Arc::new(values) };
    Declaration { shape, max_size: MAX_PROPERTIES, min_bytes: 2, nullable: false }
}

/// What a selector looks at.
#[derive(Clone, Debug)]
pub struct Device<'a> {
    pub driver: &'a str,
    pub allows_multiple_allocations: bool,
    /// As in a ResourceSlice: `{"model": {"string": "a100"}}`.
    pub attributes: &'a Json,
    pub capacity: Vec<(&'a str, Quantity)>,
}

/// A selector that has been compiled.
#[derive(Debug)]
pub struct DeviceSelector(Program);

impl DeviceSelector {
    /// An error says what is wrong with the expression.
    pub fn compile(expression: &str) -> Result<Self, String> {
        let program = ENVIRONMENT.compile(expression).map_err(|issues| format!("compilation failed: {issues}"))?;
        match program.output_type() {
            Type::Bool | Type::Dyn => Ok(DeviceSelector(program)),
            other => Err(format!("must evaluate to bool or the unknown type, not {other}")),
        }
    }

    /// Whether it may cost more than it is allowed to.
    pub fn is_too_complex(&self) -> bool {
        self.0.estimate().max > MAX_COST
    }

    pub fn matches(&self, device: &Device<'_>) -> Result<bool, Error> {
        let attributes = by_domain(device.driver, attributes(device)?);
        let capacity = device.capacity.iter().map(|(name, quantity)| (*name, Value::opaque(*quantity)));
        let capacity = by_domain(device.driver, capacity);
        let fields = [
            ("driver", Value::String(Text::Borrowed(device.driver))),
            ("allowMultipleAllocations", Value::Bool(device.allows_multiple_allocations)),
            ("attributes", attributes),
            ("capacity", capacity),
        ];
        let fields = fields.map(|(name, value)| (Key::String(Text::Borrowed(name)), value));
        let variables = Variables::new().value("device", Value::map(fields.into()));
        let result = self.0.evaluate(&variables, &mut Budget::new(MAX_COST).per_call(MAX_COST))?;
        result.as_bool().ok_or_else(|| {
            let of = result.type_name();
            Error::new(format!(
                "CEL result of type {of} could not be converted to bool: type conversion error from '{of}' to 'bool'"
            ))
        })
    }
}

fn attributes<'a>(device: &Device<'a>) -> Result<Vec<(&'a str, Value<'a>)>, Error> {
    let entries = device.attributes.as_object().into_iter().flatten();
    let read = |(name, attribute): (&'a object::FieldName, &'a Json)| match attribute_value(attribute) {
        Ok(value) => Ok((name.as_str(), value)),
        Err(error) => Err(Error::new(format!("attribute {name}: {error}"))),
    };
    entries.map(read).collect()
}

fn attribute_value(attribute: &Json) -> Result<Value<'_>, Error> {
    if let Some(value) = attribute.int("int") {
        return Ok(Value::Int(value));
    }
    match (attribute.at("bool"), attribute.at("string"), attribute.at("version")) {
        (Json::Bool(value), ..) => Ok(Value::Bool(*value)),
        (_, Json::String(text), _) => Ok(Value::String(Text::Borrowed(text))),
        (.., Json::String(text)) => match Version::parse(text) {
            Ok(version) => Ok(Value::opaque(version)),
            Err(error) => Err(Error::new(format!("parse semantic version: {error}"))),
        },
        _ => Err(Error::new("unsupported attribute value")),
    }
}

type Properties<'a> = BTreeMap<Key<'a>, Value<'a>>;

#[derive(Debug)]
struct ByDomain<'a>(BTreeMap<&'a str, Value<'a>>);

fn by_domain<'a>(driver: &'a str, properties: impl IntoIterator<Item = (&'a str, Value<'a>)>) -> Value<'a> {
    let mut domains: BTreeMap<&'a str, Properties<'a>> = BTreeMap::new();
    for (name, value) in properties {
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        domains.entry(domain).or_default().insert(Key::String(Text::Borrowed(name)), value);
    }
    let domains = domains.into_iter().map(|(domain, properties)| (domain, Value::map(properties)));
    Value::Map(Map::Lazy(Rc::new(ByDomain(domains.collect()))))
}

impl<'a> Fields<'a> for ByDomain<'a> {
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        Some(Ok(self.0.get(name).cloned().unwrap_or_else(|| Value::map(BTreeMap::new()))))
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn names(&self) -> Vec<Text<'a>> {
        self.0.keys().map(|name| Text::Borrowed(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn result(expression: &str, attributes: &Json) -> String {
        let selector = DeviceSelector::compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let memory: Quantity = "40Gi".parse().unwrap();
        let device = Device {
            driver: "gpu.example.com",
            allows_multiple_allocations: true,
            attributes,
            capacity: vec![("memory", memory), ("other.example.com/slots", Quantity::from_units(2))],
        };
        selector.matches(&device).map_or_else(|error| error.to_string(), |matches| matches.to_string())
    }

    #[test]
    fn a_selector_looks_at_attributes_and_capacities_by_their_domain() {
        let attributes = json!({
            "model": { "string": "a100" }, "cores": { "int": 8 }, "shared": { "bool": true },
            "firmware": { "version": "1.10.0" }, "other.example.com/model": { "string": "x" },
        });
        for (expression, expected) in [
            ("device.driver == 'gpu.example.com' && device.allowMultipleAllocations", "true"),
            ("device.attributes['gpu.example.com'].model == 'a100'", "true"),
            ("device.attributes['other.example.com'].model == 'x'", "true"),
            ("device.attributes['gpu.example.com'].shared", "true"),
            ("device.attributes['gpu.example.com'].firmware.isGreaterThan(semver('1.9.0'))", "true"),
            ("device.capacity['gpu.example.com'].memory.isLessThan(quantity('32Gi'))", "false"),
            ("device.capacity['other.example.com'].slots.asInteger() == 2", "true"),
            (
                "cel.bind(gpu, device.attributes['gpu.example.com'], gpu.cores >= 8 && gpu.model.startsWith('a'))",
                "true",
            ),
            ("'none.example.com' in device.attributes", "false"),
            ("device.attributes.exists_one(domain, domain == 'other.example.com')", "true"),
            ("device.attributes['gpu.example.com'].size() == 4", "true"),
            ("device.attributes['none.example.com'].?model.hasValue()", "false"),
            ("device.attributes['none.example.com'].model == 'x'", "no such key: model"),
            ("device.attributes['gpu.example.com'].cores == 'x'", "false"),
            (
                "device.attributes['gpu.example.com'].model",
                "CEL result of type string could not be converted to bool: type conversion error from 'string' to 'bool'",
            ),
        ] {
            assert_eq!(result(expression, &attributes), expected, "{expression}");
        }
    }

    #[test]
    fn attributes_that_cannot_be_read_are_an_error() {
        let lists = json!({ "models": { "strings": ["a"] } });
        assert_eq!(result("true", &lists), "attribute models: unsupported attribute value");
        let version = result("true", &json!({ "firmware": { "version": "1" } }));
        assert!(version.starts_with("attribute firmware: parse semantic version: "), "{version}");
    }

    #[test]
    fn what_is_no_condition_about_a_device_does_not_compile() {
        let message = |expression: &str| DeviceSelector::compile(expression).unwrap_err();
        assert_eq!(message("1"), "must evaluate to bool or the unknown type, not int");
        assert_eq!(
            message("device.name == 'x'"),
            "compilation failed: ERROR: <input>:1:7: undefined field 'name'\n | device.name == 'x'\n | ......^"
        );
    }

    #[test]
    fn a_selector_that_may_cost_too_much_is_known_before_it_is_used() {
        let is_too_complex = |expression: &str| DeviceSelector::compile(expression).unwrap().is_too_complex();
        assert!(!is_too_complex("device.attributes['gpu.example.com'].model.matches('a.*')"));
        let each = |inner: &str| format!("device.attributes.all(a, device.attributes.all(b, {inner}))");
        assert!(is_too_complex(&each(&each(&each("a == b")))));
    }
}
