//! OpenAPI documents, made when they are first asked for.

#[derive(Debug, Default)]
pub(crate) struct Documents {}
