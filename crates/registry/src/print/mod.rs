//! How objects look in a table: the columns of each kind, and the cells of one object.

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

/// A kind without columns of its own.
pub const PLAIN: Printer = Printer {
    columns: &[
        Column { name: "Name", kind: "string", format: "name", description: "Name of the object", priority: 0 },
        Column {
            name: "Created At",
            kind: "date",
            format: "",
            description: "When the server stored the object first",
            priority: 0,
        },
    ],
    cells: |object, _| {
        let metadata = object.at("metadata");
        vec![metadata.at("name").clone(), metadata.at("creationTimestamp").clone()]
    },
};
