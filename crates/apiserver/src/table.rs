//! Tables: objects as rows of cells, printed by the server so that clients need not know the kinds.

use crate::render::partial;
use object::{Value, json};
use registry::print::Printer;

/// What rows carry of their objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    pub(crate) fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("Metadata") => Some(Include::Metadata),
            Some("None") => Some(Include::None),
            Some("Object") => Some(Include::Object),
            Some(_) => None,
        }
    }
}

/// A table of objects, in a version of tables. In a watch only the first one says what its columns are.
pub(crate) fn table(
    version: &str,
    printer: &Printer,
    metadata: &Value,
    objects: impl IntoIterator<Item = Value>,
    include: Include,
    now: i64,
    with_columns: bool,
) -> Value {
    let rows = objects.into_iter().map(|object| {
        let cells = (printer.cells)(&object, now);
        let object = match include {
            Include::None => Value::Null,
            Include::Metadata => partial(version, &object),
            Include::Object => object,
        };
        json!({ "cells": cells, "object": object })
    });
    let rows: Vec<Value> = rows.collect();
    let columns = with_columns.then(|| {
        let column = |column: &registry::print::Column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        };
        printer.columns.iter().map(column).collect::<Vec<_>>()
    });
    json!({
        "kind": "Table", "apiVersion": version, "metadata": metadata,
        "columnDefinitions": columns.unwrap_or_default(), "rows": rows,
    })
}
