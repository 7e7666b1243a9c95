//! How objects look in a table: the columns of each kind, and the cells of one object.
//!
//! A printer is a list of columns, each beside what it shows, in the file of its family; the texts that several kinds
//! share are in `text.rs`. Names of columns and texts of cells are Kubernetes' own, because scripts match on them.

mod access;
mod cluster;
mod devices;
mod network;
mod pod;
mod pod_group;
mod policy;
mod scaling;
mod storage;
mod text;
mod workloads;

pub use access::{CERTIFICATE_SIGNING_REQUEST, CONFIG_MAP, ROLE_BINDING, SECRET, SERVICE_ACCOUNT};
pub use cluster::{
    API_SERVICE, COMPONENT_STATUS, EVENT, LEASE, NAMESPACE, NODE, NODE_METRICS, POD_METRICS, PRIORITY_CLASS,
    RUNTIME_CLASS, STATUS,
};
pub use devices::{DEVICE_CLASS, DEVICE_TAINT_RULE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE};
pub use network::{
    ENDPOINT_SLICE, ENDPOINTS, INGRESS, INGRESS_CLASS, IP_ADDRESS, NETWORK_POLICY, SERVICE, SERVICE_CIDR,
};
pub use pod::POD;
pub use pod_group::{POD_GROUP, WORKLOAD};
pub use policy::{
    ADMISSION_POLICY_BINDING, FLOW_SCHEMA, MUTATING_ADMISSION_POLICY, POD_DISRUPTION_BUDGET, PRIORITY_LEVEL,
    RESOURCE_QUOTA, VALIDATING_ADMISSION_POLICY, WEBHOOK_CONFIGURATION,
};
pub use scaling::{HORIZONTAL_POD_AUTOSCALER, HORIZONTAL_POD_AUTOSCALER_V1, SCALE};
pub use storage::{
    CSI_DRIVER, CSI_NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
};
pub use workloads::{
    CONTROLLER_REVISION, CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, POD_TEMPLATE, REPLICA_SET, REPLICATION_CONTROLLER,
    STATEFUL_SET,
};

use object::{Value, View};

#[derive(Clone, Copy, Debug)]
pub struct Printer {
    pub columns: &'static [Column],
    /// As many cells as there are columns; `now` is in seconds since 1970.
    pub cells: fn(object: &Value, now: i64) -> Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `boolean`, `date`.
    pub kind: &'static str,
    /// `name` for the name of the object, otherwise mostly empty.
    pub format: &'static str,
    pub description: &'static str,
    /// Those above zero are shown only when asked for: `-o wide`.
    pub priority: i32,
}

impl Column {
    const fn new(kind: &'static str, name: &'static str, description: &'static str) -> Self {
        Column { name, kind, format: "", description, priority: 0 }
    }

    /// Shown only when asked for.
    const fn wide(self) -> Self {
        Column { priority: 1, ..self }
    }

    /// Shows a name.
    const fn named(self) -> Self {
        Column { format: "name", ..self }
    }
}

const fn string(name: &'static str, description: &'static str) -> Column {
    Column::new("string", name, description)
}

const fn integer(name: &'static str, description: &'static str) -> Column {
    Column::new("integer", name, description)
}

const fn boolean(name: &'static str, description: &'static str) -> Column {
    Column::new("boolean", name, description)
}

const NAME: Column = string("Name", "Name of the object").named();
const AGE: Column = string("Age", "Time since the object was created");
const CONTAINERS: Column = string("Containers", "Names of the containers").wide();
const IMAGES: Column = string("Images", "Images of the containers").wide();
const SELECTOR: Column = string("Selector", "Labels of the pods it is about").wide();

/// A printer as a list of `column => cell`, so that neither can be without the other.
macro_rules! printer {
    ($(#[$doc:meta])* $name:ident = |$object:ident, $now:ident| { $($column:expr => $cell:expr),* $(,)? }) => {
        $(#[$doc])*
        pub const $name: $crate::print::Printer = $crate::print::Printer {
            columns: &[$($column),*],
            cells: |$object, $now| vec![$(object::Value::from($cell)),*],
        };
    };
}
use printer;

/// A kind without columns of its own.
pub const PLAIN: Printer = Printer {
    columns: &[NAME, Column::new("date", "Created At", "When the server stored the object first")],
    cells: |object, _| {
        let metadata = object.at("metadata");
        vec![metadata.at("name").clone(), metadata.at("creationTimestamp").clone()]
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    /// Midnight of the day on which all objects of the tests are looked at.
    pub(super) const NOW: &str = "2026-03-01T00:00:00Z";

    /// The cells of an object called `x` that was created a day before [`NOW`].
    pub(super) fn cells(printer: &Printer, mut object: Value) -> Vec<Value> {
        use object::Edit;
        let metadata = object.object_or_new("metadata");
        metadata.set_default("name", "x");
        metadata.set_default("creationTimestamp", "2026-02-28T00:00:00Z");
        (printer.cells)(&object, object::time::parse(NOW).unwrap().0)
    }

    /// Compares the cells between the name and the age with what is expected.
    pub(super) fn check(printer: &Printer, cases: &[(Value, Value)]) {
        let name = printer.columns.iter().position(|column| *column == NAME);
        let age = printer.columns.iter().position(|column| *column == AGE);
        for (object, expected) in cases {
            let mut shown: Vec<(usize, Value)> = cells(printer, object.clone()).into_iter().enumerate().collect();
            for (at, value) in &shown {
                assert!(Some(*at) != age || value == "24h", "{object}: age {value}");
            }
            shown.retain(|(at, _)| Some(*at) != name && Some(*at) != age);
            let shown: Value = shown.into_iter().map(|(_, value)| value).collect();
            assert_eq!(&shown, expected, "{object}");
        }
    }

    #[test]
    fn every_row_has_a_cell_for_every_column_even_if_the_object_is_empty() {
        for resource in crate::builtin() {
            let printer = resource.printer;
            assert_eq!((printer.cells)(&json!({}), 0).len(), printer.columns.len(), "{}", resource.kind);
            assert!(printer.columns.iter().all(|column| !column.description.is_empty()), "{}", resource.kind);
        }
    }

    #[test]
    fn every_stored_kind_that_kubernetes_has_columns_for_has_them_here() {
        let plain = ["LimitRange", "Role", "ClusterRole", "CSIStorageCapacity", "CustomResourceDefinition"];
        for resource in crate::builtin().iter().filter(|resource| resource.verbs != crate::Verbs::CREATE_ONLY) {
            let is_plain = resource.printer.columns == PLAIN.columns;
            assert_eq!(is_plain, plain.contains(&&*resource.kind), "{}", resource.kind);
        }
    }
}
