//! What holds for server-side apply whatever is applied to whatever, in a schema with every kind of place.

use object::{Map, Value, json};
use proptest::prelude::*;
use schema::apply::{ApplyError, Author, FieldSet, Kind, Managers, apply, compare, fields_of, update};
use schema::{Field, List, ListMerge, NodeId, Patch, Scalar, Schema, Shape, Struct};

fn field(name: &str, node: NodeId, default: Option<Value>) -> Field {
    let patch = Patch::default();
    Field {
        name: name.into(),
        node,
        required: false,
        number: Vec::new(),
        default,
        keeps_zero: true,
        granular: false,
        patch,
    }
}

fn structure(schema: &mut Schema, atomic: bool, mut fields: Vec<Field>) -> NodeId {
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    schema.add(Shape::Struct(Struct { fields, atomic, open: false }))
}

fn schema() -> (Schema, NodeId) {
    let mut schema = Schema::default();
    let text = schema.add(Shape::Scalar(Scalar::String));
    let any = schema.add(Shape::Any);
    let list = |schema: &mut Schema, items, merge| schema.add(Shape::List(List { items, merge }));
    let map = schema.add(Shape::Map(schema::Map { values: text, atomic: false }));
    let atomic_map = schema.add(Shape::Map(schema::Map { values: text, atomic: true }));
    let set = list(&mut schema, text, ListMerge::Set);
    let atomic = list(&mut schema, text, ListMerge::Atomic);
    let inner = structure(&mut schema, false, vec![field("a", text, None), field("x", text, None)]);
    let item = vec![
        field("name", text, None),
        field("protocol", text, Some(json!("TCP"))),
        field("value", text, None),
        field("inner", inner, None),
    ];
    let item = structure(&mut schema, false, item);
    let keys = vec!["name".into(), "protocol".into()];
    let items = list(&mut schema, item, ListMerge::Map(keys));
    let whole = structure(&mut schema, true, vec![field("a", text, None)]);
    let mut fields = Vec::new();
    for (name, node) in [("text", text), ("list", atomic), ("map", atomic_map), ("whole", whole)] {
        // One for each of two managers who keep out of each other's way.
        fields.extend(["a", "x"].map(|half| field(&format!("{half}-{name}"), node, None)));
    }
    for (name, node) in [("labels", map), ("set", set), ("items", items), ("any", any), ("inner", inner)] {
        fields.push(field(name, node, None));
    }
    let root = structure(&mut schema, false, fields);
    (schema, root)
}

fn text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["1", "2"]).prop_map(Value::from)
}

fn keyed(names: &'static [&'static str], value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    let fields = prop::collection::btree_map(prop::sample::select(names.to_vec()), value, 1..3);
    fields
        .prop_map(|fields| Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
        .boxed()
}

fn item(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let protocol = prop::option::of(prop::sample::select(vec!["TCP", "UDP"]));
    let inner = prop::option::of(keyed(&names[..1], text()));
    (prop::sample::select(names.to_vec()), protocol, prop::option::of(text()), inner).prop_map(
        |(name, protocol, value, inner)| {
            let mut item = json!({ "name": name });
            let fields = [("protocol", protocol.map(Value::from)), ("value", value), ("inner", inner)];
            for (field, value) in fields {
                if let Some(value) = value {
                    item[field] = value;
                }
            }
            item
        },
    )
}

/// Each item once, as objects that are applied must have them.
fn distinct(items: Vec<Value>) -> Value {
    let key = |item: &Value| match item {
        Value::Object(item) => (item["name"].clone(), item.get("protocol").cloned().unwrap_or("TCP".into())),
        other => (other.clone(), Value::Null),
    };
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.iter().any(|other| key(other) == key(&item)) {
            kept.push(item);
        }
    }
    Value::Array(kept)
}

/// An object whose names are among these, the first of which begins the names of its fields.
fn object(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let words = prop::sample::select(names.to_vec()).prop_map(Value::from);
    let own = |name: &str| format!("{}-{name}", names[0]);
    let fields: Vec<(String, BoxedStrategy<Value>)> = vec![
        (own("text"), text().boxed()),
        (own("list"), prop::collection::vec(text(), 0..3).prop_map(Value::from).boxed()),
        (own("map"), keyed(&["a", "b"], text())),
        (own("whole"), keyed(&["a"], text())),
        ("labels".to_owned(), keyed(names, text())),
        ("set".to_owned(), prop::collection::vec(words, 1..4).prop_map(distinct).boxed()),
        ("items".to_owned(), prop::collection::vec(item(names), 1..4).prop_map(distinct).boxed()),
        ("any".to_owned(), keyed(names, prop_oneof![text(), keyed(&["p", "q"], text()), Just(json!([1, 2]))])),
        ("inner".to_owned(), keyed(&names[..1], text())),
    ];
    let (names, values): (Vec<String>, Vec<_>) = fields.into_iter().unzip();
    let values: Vec<_> = values.into_iter().map(|value| prop::option::weighted(0.6, value)).collect();
    values.prop_map(move |values| {
        let present = names.iter().zip(values).filter_map(|(name, value)| Some((name.clone(), value?)));
        Value::Object(present.collect::<Map>())
    })
}

const LEFT: &[&str] = &["a", "b", "c"];
const RIGHT: &[&str] = &["x", "y", "z"];

struct World {
    schema: Schema,
    node: NodeId,
    reset: FieldSet,
}

type State = (Value, Managers);

impl World {
    fn new() -> Self {
        let (schema, node) = schema();
        World { schema, node, reset: FieldSet::default() }
    }

    fn kind(&self) -> Kind<'_> {
        Kind { schema: &self.schema, node: self.node, api_version: "v1", alike: &[], reset: &self.reset }
    }

    fn apply(
        &self,
        (live, managers): &State,
        manager: &str,
        applied: &Value,
        force: bool,
    ) -> Result<State, ApplyError> {
        let author = Author { manager, subresource: "", time: "2024-01-01T00:00:00Z" };
        apply(&self.kind(), &author, Some(live), applied, managers.clone(), force)
    }

    fn update(&self, (old, managers): &State, manager: &str, new: Value) -> State {
        let author = Author { manager, subresource: "", time: "2024-01-01T00:00:00Z" };
        let mut managers = managers.clone();
        update(&self.kind(), &author, Some(old), &new, &mut managers).unwrap();
        (new, managers)
    }

    fn created(&self, object: &Value) -> State {
        let author = Author { manager: "creator", subresource: "", time: "2024-01-01T00:00:00Z" };
        let mut managers = Managers::default();
        update(&self.kind(), &author, None, object, &mut managers).unwrap();
        (object.clone(), managers)
    }

    fn fields(&self, object: &Value) -> FieldSet {
        fields_of(&self.schema, self.node, object).unwrap()
    }
}

#[derive(Clone, Debug)]
enum Write {
    Apply(&'static str, Value, bool),
    Update(&'static str, Value),
}

fn write() -> impl Strategy<Value = Write> {
    let manager = || prop::sample::select(vec!["m", "n", "o"]);
    prop_oneof![
        (manager(), object(LEFT), any::<bool>())
            .prop_map(|(manager, object, force)| Write::Apply(manager, object, force)),
        (manager(), object(LEFT)).prop_map(|(manager, object)| Write::Update(manager, object)),
    ]
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(live in object(LEFT), applied in object(LEFT)) {
        let world = World::new();
        let once = world.apply(&world.created(&live), "m", &applied, true).unwrap();
        let twice = world.apply(&once, "m", &applied, false).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn everything_applied_is_in_the_object_and_has_the_applied_value(live in object(LEFT), applied in object(LEFT)) {
        let world = World::new();
        let state = world.apply(&world.created(&live), "m", &applied, true).unwrap();
        prop_assert!(world.fields(&applied).difference(&world.fields(&state.0)).is_empty());
        // Somebody else who applies the same changes nothing, and is in nobody's way.
        let other = world.apply(&state, "n", &applied, false).unwrap();
        prop_assert_eq!(other.0, state.0);
    }

    #[test]
    fn who_shares_no_field_has_no_conflict_and_leaves_no_trace(left in object(LEFT), right in object(RIGHT)) {
        let world = World::new();
        let empty = (json!({}), Managers::default());
        let alone = world.apply(&empty, "m", &left, false).unwrap();
        let both = world.apply(&alone, "n", &right, false).unwrap();
        let again = world.apply(&both, "m", &left, false).unwrap();
        prop_assert_eq!(&again, &both);
        let after = world.apply(&both, "n", &json!({}), false).unwrap();
        prop_assert_eq!(after, alone);
    }

    #[test]
    fn nobody_owns_what_is_not_there_and_no_entry_is_empty(writes in prop::collection::vec(write(), 1..8)) {
        let world = World::new();
        let mut state = world.created(&json!({ "a-text": "1" }));
        for write in writes {
            state = match write {
                Write::Apply(manager, object, force) => match world.apply(&state, manager, &object, force) {
                    Ok(state) => state,
                    Err(ApplyError::Conflicts(_)) if !force => continue,
                    Err(error) => return Err(TestCaseError::fail(error.to_string())),
                },
                Write::Update(manager, object) => world.update(&state, manager, object),
            };
            let there = compare(&world.schema, world.node, &json!({}), &state.0).unwrap().added;
            for entry in state.1.iter() {
                prop_assert!(!entry.fields.is_empty());
                let missing = entry.fields.clone().difference(&there);
                prop_assert!(missing.is_empty(), "{} owns\n{missing}\nwhich is not in {}", entry.owner, state.0);
            }
            let encoded = state.1.encode();
            let decoded = Managers::decode(encoded.as_ref()).unwrap();
            prop_assert_eq!(&decoded, &state.1);
            prop_assert!(decoded.same_but_times(&state.1));
        }
    }

    #[test]
    fn the_difference_between_two_objects_is_told_completely(old in object(LEFT), new in object(LEFT)) {
        let world = World::new();
        let changes = compare(&world.schema, world.node, &old, &new).unwrap();
        prop_assert!(compare(&world.schema, world.node, &new, &new).unwrap().is_empty());
        let back = compare(&world.schema, world.node, &new, &old).unwrap();
        prop_assert_eq!((&back.added, &back.removed, &back.modified), (&changes.removed, &changes.added, &changes.modified));
        let before = world.fields(&old).difference(&changes.removed);
        let after = world.fields(&new).difference(&changes.added);
        // What is neither new nor gone is the same set of fields, up to structures that have become empty.
        prop_assert_eq!(before.leaves().difference(&changes.modified), after.leaves().difference(&changes.modified));
    }
}
