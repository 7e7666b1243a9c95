//! Which nodes a pod or a volume may be on, by their labels and their names.

use crate::Node;
use object::selector::{Requirement, Test};
use object::{Value, View};
use std::collections::BTreeSet;

/// The only field of a node that can be selected by.
const NAME: &str = "metadata.name";

/// Any of its terms has to hold; without terms nothing is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeSelector {
    terms: Vec<NodeTerm>,
}

/// All of it has to hold. One that requires nothing holds for no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeTerm {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

impl NodeSelector {
    /// As it stands in affinities and volumes: `nodeSelectorTerms`.
    pub fn read(selector: &Value) -> Self {
        NodeSelector { terms: selector.items("nodeSelectorTerms").iter().map(NodeTerm::read).collect() }
    }

    pub fn matches(&self, node: &Node) -> bool {
        self.terms.iter().any(|term| term.matches(node))
    }

    /// The only nodes that come into question, where each term names some.
    pub fn names(&self) -> Option<BTreeSet<&str>> {
        let mut names = BTreeSet::new();
        for term in &self.terms {
            names.extend(term.fields.iter().find_map(|field| match &field.test {
                Test::In(values) if field.key == NAME => Some(values.iter().map(String::as_str)),
                _ => None,
            })?);
        }
        Some(names)
    }
}

impl NodeTerm {
    pub fn read(term: &Value) -> Self {
        let all = |field: &str| term.items(field).iter().map(requirement).collect();
        NodeTerm { labels: all("matchExpressions"), fields: all("matchFields") }
    }

    pub fn matches(&self, node: &Node) -> bool {
        let meta = &node.metadata;
        let labels = |one: &Requirement| one.matches(meta.labels.get(&one.key).map(String::as_str));
        let fields = |one: &Requirement| one.matches((one.key == NAME).then_some(meta.name.as_str()));
        let is_empty = self.labels.is_empty() && self.fields.is_empty();
        !is_empty && self.labels.iter().all(labels) && self.fields.iter().all(fields)
    }
}

/// The server has checked it; an operator that is not known holds for nothing.
fn requirement(expression: &Value) -> Requirement {
    let values = || -> BTreeSet<String> {
        expression.items("values").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let bound = || values().first().and_then(|value| value.parse().ok());
    let never = Test::In(BTreeSet::new());
    let test = match expression.text("operator") {
        "In" => Test::In(values()),
        "NotIn" => Test::NotIn(values()),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::DoesNotExist,
        "Gt" => bound().map_or(never, Test::GreaterThan),
        "Lt" => bound().map_or(never, Test::LessThan),
        _ => never,
    };
    Requirement { key: expression.text("key").to_owned(), test }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn any_term_selects_and_all_of_a_term_has_to_hold() {
        let node: Node =
            object::from_value(&json!({ "metadata": { "name": "n1", "labels": { "zone": "a", "cores": "8" } } }))
                .unwrap();
        let expression = |key: &str, operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] });
        let name =
            |name: &str| json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [name] }] });
        for (terms, expected) in [
            (json!([]), false),
            (json!([{}]), false),
            (json!([expression("zone", "In", &["a", "b"])]), true),
            (json!([expression("zone", "NotIn", &["a"])]), false),
            (json!([expression("rack", "NotIn", &["a"])]), true),
            (json!([expression("rack", "Exists", &[]), expression("zone", "Exists", &[])]), true),
            (json!([expression("cores", "Gt", &["7"])]), true),
            (json!([expression("cores", "Lt", &["8"])]), false),
            (json!([expression("cores", "Unheard", &["8"])]), false),
            (json!([name("n1")]), true),
            (json!([name("n2")]), false),
        ] {
            let selector = NodeSelector::read(&json!({ "nodeSelectorTerms": terms }));
            assert_eq!(selector.matches(&node), expected, "{terms}");
        }
        let named = NodeSelector::read(&json!({ "nodeSelectorTerms": [name("a"), name("b")] }));
        assert_eq!(named.names(), Some(["a", "b"].into()));
        let mixed = json!({ "nodeSelectorTerms": [name("a"), expression("zone", "Exists", &[])] });
        assert_eq!(NodeSelector::read(&mixed).names(), None);
    }
}
