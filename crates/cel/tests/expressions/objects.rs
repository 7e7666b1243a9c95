//! Expressions about objects, as they were declared.

use crate::shown;
use cel::{
    Budget, Cost, Declaration, Environment, Error, Fields, Key, Map, Opaque, Program, Text, Type, Value, Variables,
};
use object::{Quantity, View, json};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

fn schema() -> object::Value {
    json!({
        "type": "object",
        "properties": {
            "replicas": { "type": "integer" },
            "ratio": { "type": "number" },
            "port": { "x-kubernetes-int-or-string": true },
            "when": { "type": "string", "format": "date-time" },
            "day": { "type": "string", "format": "date" },
            "every": { "type": "string", "format": "duration" },
            "blob": { "type": "string", "format": "byte" },
            "namespace": { "type": "string" },
            "a-b": { "type": "string" },
            "gone": { "type": "string", "nullable": true },
            "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "plain": { "type": "array", "items": { "type": "string" } },
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": { "type": "object", "properties": {
                    "name": { "type": "string" }, "number": { "type": "integer" },
                } },
            },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    })
}

fn old() -> object::Value {
    json!({
        "replicas": 3, "ratio": 2, "port": 80, "when": "2026-01-02T03:04:05Z", "day": "2026-01-02",
        "every": "1h", "blob": "aGk=", "namespace": "x", "a-b": "y", "gone": null,
        "tags": ["a", "b"], "plain": ["a", "b"], "labels": { "app": "web" },
        "ports": [{ "name": "http", "number": 80 }, { "name": "dns", "number": 53 }],
        "unknown": 1, "metadata": { "name": "n", "labels": {} },
    })
}

fn evaluated(source: &str) -> String {
    let declared = Arc::new(Declaration::from_schema(&schema(), true).unwrap());
    let environment = Environment::new().variable("self", declared.clone()).variable("oldSelf", declared);
    let program = match environment.compile(source) {
        Ok(program) => program,
        Err(issues) => return issues.iter().next().map(|issue| issue.message.clone()).unwrap_or_default(),
    };
    let (old, mut new) = (old(), old());
    new["tags"] = json!(["b", "a"]);
    new["plain"] = json!(["b", "a"]);
    new["ports"] = json!([{ "name": "dns", "number": 53 }, { "name": "http", "number": 80 }]);
    let variables = Variables::new().json("self", &new).json("oldSelf", &old);
    shown(program.evaluate(&variables, &mut Budget::default()))
}

#[test]
fn fields_have_their_declared_types() {
    for source in [
        "self.replicas == 3 && self.ratio == 2.0",
        "self.port == 80 && type(self.port) == int",
        "self.when > timestamp('2026-01-01T00:00:00Z') && self.when.getHours() == 3",
        "self.day == timestamp('2026-01-02T00:00:00Z')",
        "self.every == duration('60m')",
        "self.blob == b'hi' && string(self.blob) == 'hi'",
        "self.__namespace__ == 'x' && self.a__dash__b == 'y' && has(self.a__dash__b)",
        "self.metadata.name == 'n' && !has(self.metadata.generateName) && !has(self.kind)",
        "self.labels.app == 'web' && self.labels['app'] == 'web' && 'app' in self.labels && !has(self.labels.x)",
        "self.labels.all(k, self.labels[k].size() > 0) && size(self.labels) == 1",
        "self.ports.exists(p, p.name == 'dns' && p.number == 53)",
        "!has(self.gone) && self.?gone.orValue('x') == 'x'",
        "self.?kind.orValue('none') == 'none'",
        "self == self && self.ports[0] == oldSelf.ports[1]",
    ] {
        assert_eq!(evaluated(source), "true", "{source}");
    }
}

#[test]
fn lists_are_compared_and_joined_as_their_kind_asks_for() {
    for (source, expected) in [
        ("self.tags == oldSelf.tags", "true"),
        ("self.ports == oldSelf.ports", "true"),
        ("self.plain == oldSelf.plain", "false"),
        ("self.tags == ['b', 'a'] && self.tags + ['a', 'c'] == ['b', 'a', 'c']", "true"),
        ("self.plain + ['a']", r#"["b","a","a"]"#),
        ("(self.ports + oldSelf.ports).size()", "2"),
    ] {
        assert_eq!(evaluated(source), expected, "{source}");
    }
}

#[test]
fn what_cannot_be_looked_at_makes_a_difference() {
    let declared =
        Declaration::from_schema(&json!({ "type": "object", "properties": { "a": { "type": "object" } } }), false);
    let environment = Environment::new().variable("self", Arc::new(Declaration::list(declared.unwrap())));
    let program = environment.compile("self[0] == self[1]").unwrap();
    for (one, other, expected) in [
        (json!({ "a": { "x": 1 } }), json!({ "a": { "x": 1 } }), "true"),
        (json!({ "a": { "x": 1 } }), json!({ "a": { "x": 2 } }), "false"),
        (json!({ "b": 1 }), json!({ "b": 2 }), "false"),
    ] {
        let both = json!([one, other]);
        let value = program.evaluate(&Variables::new().json("self", &both), &mut Budget::default());
        assert_eq!(shown(value), expected);
    }
}

#[test]
fn what_is_not_declared_cannot_be_looked_at() {
    for (source, expected) in [
        ("self.unknown == 1", "undefined field 'unknown'"),
        ("self.metadata.labels.size() == 0", "undefined field 'labels'"),
        ("self.namespace == 'x'", "undefined field 'namespace'"),
        ("self.replicas == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        (
            "self.ports[0] == self.labels",
            "found no matching overload for '_==_' applied to \
          '(selfType.ports.@items, map(string, string))'",
        ),
        ("self.kind", "error: no such key: kind"),
    ] {
        assert_eq!(evaluated(source), expected, "{source}");
    }
}

#[test]
fn what_is_not_as_declared_is_an_error_where_it_is_looked_at() {
    let declared = Declaration::from_schema(&schema(), true).unwrap();
    let environment = Environment::new().variable("self", declared);
    let broken = json!({ "replicas": "three", "when": "soon", "ports": {}, "tags": null, "plain": [null], "ratio": 1 });
    for (source, expected) in [
        ("self.replicas > 1", "error: invalid data, expected int"),
        ("self.when.getHours()", "error: Invalid date-time formatted string soon"),
        ("self.ports.size()", "error: invalid data, expected an array for the provided schema with type=array"),
        ("self.tags.size()", "error: no such key: tags"),
        ("self.plain[0]", "error: invalid data, got null for schema with nullable=false"),
        ("self.ratio == 1.0 || self.replicas > 1", "true"),
    ] {
        let program = environment.compile(source).unwrap();
        let value = program.evaluate(&Variables::new().json("self", &broken), &mut Budget::default());
        assert_eq!(shown(value), expected, "{source}");
    }
}

#[test]
fn what_is_read_from_an_object_is_not_copied() {
    let declared = Declaration::from_schema(&schema(), true).unwrap();
    let environment = Environment::new().variable("self", declared);
    let program = environment.compile("self.ports.filter(p, p.name == 'dns')[0].name").unwrap();
    let object = old();
    let value = program.evaluate(&Variables::new().json("self", &object), &mut Budget::default()).unwrap();
    let within = object.at("ports")[1].text("name");
    assert_eq!(value.as_str().map(str::as_ptr), Some(within.as_ptr()));
}

/// The values of an object that nothing is declared about, as admission policies see it.
#[test]
fn objects_without_declaration_are_what_they_are() {
    let environment = Environment::new().typed("object", Type::Dyn).open_object("Object");
    let object =
        json!({ "metadata": { "namespace": "x" }, "spec": { "replicas": 3, "ratio": 1.5, "items": [1, "a"] } });
    for (source, expected) in [
        ("object.metadata.namespace == 'x' && object.spec.replicas <= 5", "true"),
        ("object.spec.items[1] == 'a' && !has(object.status)", "true"),
        ("object.spec.ratio", "1.5"),
        ("object.spec.missing", "error: no such key: missing"),
        (
            "Object{spec: Object.spec{replicas: object.spec.replicas + 1, ?x: optional.none()}}",
            r#"{"spec":{"replicas":4}}"#,
        ),
    ] {
        let program = environment.compile(source).unwrap();
        let value = program.evaluate(&Variables::new().json("object", &object), &mut Budget::default());
        assert_eq!(shown(value), expected, "{source}");
    }
}

#[test]
fn declared_objects_are_put_together_with_their_fields_only() {
    let fields = [("op", Type::String), ("path", Type::String), ("value", Type::Dyn)];
    let fields = fields.map(|(name, of)| (name.to_owned(), Declaration::plain(of)));
    let environment = Environment::new().object(Declaration::object("JSONPatch", fields));
    let mistake = |source: &str| environment.compile(source).unwrap_err().iter().next().unwrap().message.clone();
    assert_eq!(mistake("JSONPatch{what: 1}"), "undefined field 'what'");
    assert_eq!(mistake("JSONPatch{op: 1}"), "expected type of field 'op' is 'string' but provided type is 'int'");
    let program = environment.compile("[JSONPatch{op: 'add', path: '/a', value: 1}]").unwrap();
    let value = program.evaluate(&Variables::new(), &mut Budget::default());
    assert_eq!(shown(value), r#"[{"op":"add","path":"/a","value":1}]"#);
}

/// A selector of devices: maps by domain, in which there is nothing for a domain that is not there.
#[test]
fn selectors_of_devices_look_at_attributes_and_capacities() {
    #[derive(Debug)]
    struct ByDomain<'a>(BTreeMap<String, Value<'a>>);
    impl<'a> Fields<'a> for ByDomain<'a> {
        fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
            Some(Ok(self.0.get(name).cloned().unwrap_or_else(|| Value::map(BTreeMap::new()))))
        }
        fn contains(&self, name: &str) -> bool {
            self.0.contains_key(name)
        }
    }
    let quantity = Declaration::plain(Type::Abstract("kubernetes.Quantity".into()));
    let fields = [
        ("driver", Declaration::plain(Type::String)),
        ("attributes", Declaration::map(Declaration::map(Declaration::plain(Type::Dyn)))),
        ("capacity", Declaration::map(Declaration::map(quantity))),
    ];
    let fields = fields.map(|(name, declared)| (name.to_owned(), declared));
    let device = Declaration::object("kubernetes.DRADevice", fields);
    let environment = Environment::new().variable("device", device).with_bindings();

    let rows = [
        ("device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'a100'", "true"),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('32Gi'))", "true"),
        ("cel.bind(gpu, device.attributes['gpu.example.com'], gpu.cores >= 8 && gpu.model.startsWith('a'))", "true"),
        ("device.attributes['other.example.com'].?model.hasValue()", "false"),
        ("'gpu.example.com' in device.attributes && !('other.example.com' in device.attributes)", "true"),
        ("device.attributes['other.example.com'].model == 'x'", "error: no such key: model"),
    ];
    let programs = rows.map(|(source, _)| environment.compile(source).unwrap_or_else(|issues| panic!("{issues}")));
    let attributes = json!({ "model": "a100", "cores": 8 });
    let memory: Quantity = "40Gi".parse().unwrap();
    let capacity = Value::map([(Key::String(Text::Borrowed("memory")), Value::opaque(memory))].into());
    let by_domain = |of| Value::Map(Map::Lazy(Rc::new(ByDomain([("gpu.example.com".to_owned(), of)].into()))));
    let fields = BTreeMap::from([
        ("driver".to_owned(), Value::string("gpu.example.com")),
        ("attributes".to_owned(), by_domain(Value::from_json(&attributes))),
        ("capacity".to_owned(), by_domain(capacity)),
    ]);
    let device = Value::Map(Map::Lazy(Rc::new(fields)));
    for ((source, expected), program) in rows.iter().zip(&programs) {
        let value = program.evaluate(&Variables::new().value("device", device.clone()), &mut Budget::default());
        assert_eq!(shown(value), *expected, "{source}");
    }
}

/// The variables of an admission policy: worked out when they are first looked at, each from those before it.
#[test]
fn variables_can_be_expressions_themselves() {
    #[derive(Debug)]
    struct Policy<'a> {
        object: &'a object::Value,
        programs: &'a [(&'static str, Program)],
        known: RefCell<BTreeMap<&'static str, Result<Value<'a>, Error>>>,
        itself: Weak<Policy<'a>>,
    }
    impl<'a> Policy<'a> {
        fn evaluate(&self, program: &'a Program) -> Result<Value<'a>, Error> {
            let itself: Rc<dyn Fields<'a> + 'a> = self.itself.upgrade().expect("it is there while it is asked");
            let variables =
                Variables::new().json("object", self.object).value("variables", Value::Map(Map::Lazy(itself)));
            program.evaluate(&variables, &mut Budget::default())
        }
    }
    impl<'a> Fields<'a> for Policy<'a> {
        fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
            if let Some(value) = self.known.borrow().get(name) {
                return Some(value.clone());
            }
            let (name, program) = self.programs.iter().find(|(known, _)| *known == name)?;
            let value = self.evaluate(program);
            self.known.borrow_mut().insert(name, value.clone());
            Some(value)
        }
    }
    let fields = ["replicas", "many", "broken"].map(|name| (name.to_owned(), Declaration::plain(Type::Dyn)));
    let environment = Environment::new()
        .typed("object", Type::Dyn)
        .variable("variables", Declaration::object("kubernetes.variables", fields));
    let compile = |source: &str| environment.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
    let programs = [
        ("replicas", compile("object.spec.replicas")),
        ("many", compile("variables.replicas > 2")),
        ("broken", compile("1 / (object.spec.replicas - 3)")),
    ];
    let rule = compile("variables.many && variables.replicas == 3 || variables.broken == 1");
    let failing = compile("variables.broken == 1");
    let object = json!({ "spec": { "replicas": 3 } });
    let policy = Rc::new_cyclic(|itself| Policy {
        object: &object,
        programs: &programs,
        known: RefCell::default(),
        itself: itself.clone(),
    });
    assert_eq!(shown(policy.evaluate(&rule)), "true");
    assert_eq!(policy.known.borrow().keys().copied().collect::<Vec<_>>(), ["many", "replicas"]);
    assert_eq!(shown(policy.evaluate(&failing)), "error: division by zero");
}

#[test]
fn the_object_before_may_be_one_that_was_not_there() {
    let declared = Arc::new(Declaration::from_schema(&schema(), true).unwrap());
    let environment =
        Environment::new().variable("self", declared.clone()).typed("oldSelf", Type::optional(declared.of_type()));
    let program = environment.compile("oldSelf.optMap(o, o.replicas).orValue(0) < self.replicas").unwrap();
    let (old, new) = (json!({ "replicas": 1 }), json!({ "replicas": 2 }));
    for (before, expected) in [(None, "true"), (Some(&old), "true"), (Some(&new), "false")] {
        let before = before.map(|before| Value::read(before, &declared).unwrap());
        let before = before.map_or(Value::Optional(None), Value::some);
        let variables = Variables::new().json("self", &new).value("oldSelf", before);
        assert_eq!(shown(program.evaluate(&variables, &mut Budget::default())), expected);
    }
}

/// Whoever embeds the language can add values that only functions look into.
#[test]
fn an_authorizer_is_a_value_with_functions_of_its_own() {
    #[derive(Debug)]
    struct Authorizer(&'static str);
    impl Opaque for Authorizer {
        fn type_name(&self) -> &str {
            "kubernetes.authorization.Authorizer"
        }
        fn equals(&self, other: &dyn Opaque) -> bool {
            other.as_any().downcast_ref::<Authorizer>().is_some_and(|other| other.0 == self.0)
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }
    let of = "kubernetes.authorization.Authorizer";
    let environment = Environment::new().typed("authorizer", Type::Abstract(of.into())).function(
        "allows",
        &format!("{of}.(string) -> bool"),
        Cost::Fixed(350_000),
        |args| match args {
            [authorizer, Value::String(verb)] => {
                let authorizer: Option<&Authorizer> = authorizer.as_opaque();
                Ok(Value::Bool(authorizer.is_some_and(|authorizer| authorizer.0 == &**verb)))
            }
            _ => Err(Error::new("no such overload")),
        },
    );
    let evaluate = |source: &str| {
        let program = environment.compile(source).unwrap();
        let variables = Variables::new().value("authorizer", Value::opaque(Authorizer("get")));
        shown(program.evaluate(&variables, &mut Budget::default()))
    };
    assert_eq!(evaluate("authorizer.allows('get') && !authorizer.allows('list')"), "true");
    let thrice = "authorizer.allows('a') || authorizer.allows('b') || authorizer.allows('c')";
    assert_eq!(evaluate(thrice), "error: operation cancelled: actual cost limit exceeded");
}

#[test]
fn a_program_tells_what_it_uses_and_gives() {
    let declared = Arc::new(Declaration::from_schema(&schema(), true).unwrap());
    let environment = Environment::new().variable("self", declared.clone()).variable("oldSelf", declared);
    let program = environment.compile("self.replicas >= oldSelf.replicas").unwrap();
    assert!(program.uses("oldSelf") && *program.output_type() == Type::Bool);
    assert!(!environment.compile("self.replicas > 1").unwrap().uses("oldSelf"));
    assert!(schema().has("properties"));
}
