//! What bodies of creations mean, for whoever sends the same again.
//!
//! A ReplicaSet makes its pods from one template: a thousand requests with one body. What that is as an object, complete
//! with its defaults, is worked out for the first two of them, and for the others only copied.

use bytes::Bytes;
use object::Value;
use parking_lot::Mutex;
use registry::Resource;
use std::collections::VecDeque;
use std::sync::Arc;

/// So many bodies are remembered, the last ones.
const MAX_DRAFTS: usize = 16;
/// Larger ones are not.
const MAX_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct Drafts(Mutex<VecDeque<Draft>>);

#[derive(Debug)]
struct Draft {
    resource: Arc<Resource>,
    body: Bytes,
    /// Kept only once the body has come again: most come once, and an object that is shared costs more to change.
    value: Option<Value>,
}

impl Drafts {
    /// The object that a body means. `read` reads it, and says whether there is nothing else to say of it.
    pub(crate) fn object<E>(
        &self,
        resource: &Arc<Resource>,
        body: &Bytes,
        read: impl FnOnce() -> Result<(Value, bool), E>,
    ) -> Result<Value, E> {
        let is_it = |draft: &Draft| Arc::ptr_eq(&draft.resource, resource) && draft.body == *body;
        let known = self.0.lock().iter().find(|draft| is_it(draft)).map(|draft| draft.value.clone());
        if let Some(Some(value)) = known {
            return Ok(value);
        }
        let (value, is_clean) = read()?;
        if is_clean && body.len() <= MAX_BYTES {
            let mut drafts = self.0.lock();
            let again = known.is_some();
            drafts.retain(|draft| !is_it(draft));
            drafts.truncate(MAX_DRAFTS - 1);
            let value = again.then(|| value.clone());
            drafts.push_front(Draft { resource: resource.clone(), body: body.clone(), value });
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use std::convert::Infallible;

    fn read(drafts: &Drafts, resource: &Arc<Resource>, body: &str, is_clean: bool) -> bool {
        let mut was_read = false;
        let value = drafts.object(resource, &Bytes::from(body.to_owned()), || {
            was_read = true;
            Ok::<_, Infallible>((json!({ "is": body }), is_clean))
        });
        assert_eq!(value.unwrap_or_default(), json!({ "is": body }));
        was_read
    }

    #[test]
    fn a_body_is_read_until_it_has_come_again_and_then_no_more() {
        let drafts = Drafts::default();
        let rows = registry::builtin();
        assert_eq!([1, 2, 3, 4].map(|_| read(&drafts, &rows[0], "a", true)), [true, true, false, false]);
        assert!(read(&drafts, &rows[1], "a", true), "of another resource it means something else");
        assert_eq!([1, 2, 3].map(|_| read(&drafts, &rows[0], "warned of", false)), [true; 3]);
        let large = "x".repeat(MAX_BYTES + 1);
        assert_eq!([1, 2, 3].map(|_| read(&drafts, &rows[0], &large, true)), [true; 3]);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let drafts = Drafts::default();
        for number in 0..100 {
            read(&drafts, &registry::builtin()[0], &number.to_string(), true);
        }
        assert_eq!(drafts.0.lock().len(), MAX_DRAFTS);
    }
}
