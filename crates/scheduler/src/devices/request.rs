//! What a claim asks for, with everything looked up that the search needs.

use super::selection::{Selection, Selections};
use kinds::{DeviceClaim, DeviceClass, DeviceSelection, ExactDeviceRequest, Key, Object};
use runtime::Caches;
use std::sync::Arc;

/// A claim that has no devices yet.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub key: Key,
    /// Its own, or that of the pod it is to be made for.
    pub uid: String,
    pub spec: DeviceClaim,
    pub requests: Vec<Vec<Alternative>>,
}

/// A request, or one of several of which the first that can be had counts.
#[derive(Debug)]
pub(crate) struct Alternative {
    /// As others refer to it: `request` or `request/alternative`.
    pub name: String,
    pub request: String,
    pub class: Arc<Object<DeviceClass>>,
    pub asked: ExactDeviceRequest,
    /// All of them have to select a device; each with what is said when it fails.
    pub selections: Vec<(String, Arc<Selection>)>,
    /// How many came before it: the fewer the better.
    pub rank: usize,
}

impl Wanted {
    /// An error is what stands in the way on every node.
    pub(crate) fn read(
        key: Key,
        uid: &str,
        spec: &DeviceClaim,
        caches: &Caches,
        selections: &Selections,
    ) -> Result<Self, String> {
        let mut requests = Vec::new();
        for request in &spec.requests {
            let exactly = request.exactly.iter().map(|asked| (request.name.clone(), asked));
            let several =
                request.first_available.iter().map(|asked| (format!("{}/{}", request.name, asked.name), asked));
            let mut alternatives = Vec::new();
            for (rank, (name, asked)) in exactly.chain(several).enumerate() {
                let class = caches.of::<DeviceClass>().get(&Key::cluster(asked.device_class_name.as_str()));
                let missing = || format!("request {name}: device class {} does not exist", asked.device_class_name);
                let class = class.ok_or_else(missing)?;
                let of_class = each(&class.spec.selectors, &format!("class {}", class.metadata.name), selections);
                let of_claim = each(&asked.selectors, &format!("claim {key}"), selections);
                alternatives.push(Alternative {
                    name,
                    request: request.name.clone(),
                    asked: asked.clone(),
                    selections: [of_class, of_claim].concat(),
                    class,
                    rank,
                });
            }
            if alternatives.is_empty() {
                return Err(format!("resource claim {key}, request {}: unknown request type", request.name));
            }
            requests.push(alternatives);
        }
        Ok(Wanted { key, uid: uid.to_owned(), spec: spec.clone(), requests })
    }

    /// Whether nodes can be better or worse for it.
    pub(crate) fn has_preferences(&self) -> bool {
        self.requests.iter().any(|alternatives| alternatives.len() > 1)
    }
}

fn each(selectors: &[DeviceSelection], whose: &str, selections: &Selections) -> Vec<(String, Arc<Selection>)> {
    let expressions = selectors.iter().map(|selector| selector.cel.as_ref().map_or("", |cel| &cel.expression));
    let numbered = expressions.enumerate();
    numbered.map(|(at, expression)| (format!("{whose}: selector #{at}"), selections.of(expression))).collect()
}

impl Alternative {
    pub(crate) fn takes_all(&self) -> bool {
        self.asked.allocation_mode == "All"
    }

    /// As messages call it.
    pub(crate) fn own_name(&self) -> &str {
        if self.asked.name.is_empty() { &self.request } else { &self.asked.name }
    }

    /// Whether a list of names, as in constraints and configurations, means it.
    pub(crate) fn is_meant_by(&self, names: &[String]) -> bool {
        names.iter().any(|name| *name == self.name || *name == self.request)
    }
}
