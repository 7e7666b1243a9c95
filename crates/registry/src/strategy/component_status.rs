//! ComponentStatuses: they can be read, and nobody should.

use crate::strategy::{PLAIN, Strategy};

pub const STRATEGY: Strategy =
    Strategy { warn: Some(|_, _| vec!["v1 ComponentStatus is deprecated in v1.19+".to_owned()]), ..PLAIN };
