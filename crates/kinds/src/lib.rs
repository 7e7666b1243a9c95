//! The built-in kinds as the loops read them.
//!
//! A view holds what some loop looks at, and nothing else: a pod of 3 KB is read in a few microseconds and takes a
//! fraction of that in memory. Absent fields read as Go's zero values, which the rules of Kubernetes are written in;
//! where the difference between absent and empty matters, the field is an `Option`. What is only passed on, such as
//! the template of a pod, stays JSON. Views are never written back: a loop edits the JSON of [`Object::json`] or sends
//! a patch, so fields that no view knows survive.
//!
//! A field that a loop needs is added to its view; a kind is a struct and a line of [`kind!`].

mod amounts;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod compact;
mod container;
mod coordination;
mod core;
mod discovery;
mod event;
mod meta;
mod node;
mod node_selector;
mod object;
mod pod;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod shared;
mod storage;
mod time;

pub use self::amounts::Amounts;
pub use self::apps::*;
pub use self::autoscaling::*;
pub use self::batch::*;
pub use self::certificates::*;
pub use self::compact::{Dict, List};
pub use self::container::*;
pub use self::coordination::*;
pub use self::core::*;
pub use self::discovery::*;
pub use self::event::*;
pub use self::meta::{LabelSelector, Labels, Meta, OwnerReference, Selector};
pub use self::node::*;
pub use self::node_selector::*;
pub use self::object::{Id, Index, Key, Kind, Object, Partial, Raw, Unreadable};
pub use self::pod::*;
pub use self::policy::*;
pub use self::rbac::*;
pub use self::resource::*;
pub use self::scheduling::*;
pub use self::shared::{Empty, Shared};
pub use self::storage::*;
pub use self::time::Time;

/// Says which resource a view is of: `kind!(Pod, "v1", "pods", namespaced);`, with the indexes its caches keep.
#[macro_export]
macro_rules! kind {
    ($view:ident, $version:literal, $plural:literal, namespaced $(, $index:literal => $of:expr)*) => {
        $crate::kind!(@ $view, $version, $plural, true $(, $index => $of)*);
    };
    ($view:ident, $version:literal, $plural:literal, cluster $(, $index:literal => $of:expr)*) => {
        $crate::kind!(@ $view, $version, $plural, false $(, $index => $of)*);
    };
    (@ $view:ident, $version:literal, $plural:literal, $namespaced:literal $(, $index:literal => $of:expr)*) => {
        impl $crate::Kind for $view {
            const ID: $crate::Id = $crate::Id::new($version, stringify!($view), $plural, $namespaced);
            const INDEXES: &'static [$crate::Index<Self>] = &[$(($index, $of)),*];
            fn meta(&self) -> &$crate::Meta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut $crate::Meta {
                &mut self.metadata
            }
        }
    };
}
