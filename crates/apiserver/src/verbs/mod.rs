//! The verbs: a file each, the same for every resource.

mod create;
mod delete;
mod get;
mod list;
mod patch;
mod update;
mod watch;

pub(crate) use create::create;
pub(crate) use delete::{DeleteRequest, answers_with_the_object, delete, delete_collection, delete_object};
pub(crate) use get::get;
pub(crate) use list::{list, selection};
pub(crate) use patch::{patch, patch_value};
pub(crate) use update::update;
pub(crate) use watch::watch;
pub use watch::{Live, Stream};

use crate::body::Body;
use crate::context::Context;
use crate::write::Stored;
use http::{Response, StatusCode};

/// Answers with what was stored.
pub(crate) fn stored(ctx: &Context, code: StatusCode, stored: Stored) -> Response<Body> {
    match stored {
        Stored::Object(object) => ctx.viewer.object(code, &object),
        Stored::Dry(mut value) => {
            ctx.viewer.serve(&mut value);
            ctx.viewer.value(code, value)
        }
    }
}
