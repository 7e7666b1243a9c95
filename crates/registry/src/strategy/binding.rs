//! Bindings: a pod is told its node.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy};
use object::Value;
use object::field::Errors;

pub const STRATEGY: Strategy = Strategy { validate: Some(validate), ..PLAIN };

/// Everything that is wrong with a binding; also for the subresource of pods.
pub fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let target = Place::field_of(new, "target");
    let kind = target.field("kind");
    if !matches!(kind.text(), "" | "Node") {
        kind.not_supported_value(errors, kind.text(), &["Node", "<empty>"]);
    }
    target.field("name").require(errors);
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::each_mistake_has_its_message;
    use object::json;

    #[test]
    fn only_nodes_can_be_bound_to() {
        let good = json!({ "target": { "kind": "Node", "name": "a" } });
        each_mistake_has_its_message(
            "core.v1.Binding",
            &good,
            &[
                (
                    "target.kind",
                    json!("Pod"),
                    &["target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\""],
                ),
                ("target.name", json!(""), &["target.name: Required value"]),
            ],
        );
    }
}
