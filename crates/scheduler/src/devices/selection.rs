//! Which devices an expression selects. Each is compiled once, and asked once about each device: what a slice says of its
//! devices does not change, another version of it is another slice.

use super::inventory::Offer;
use cel::DeviceSelector;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// So many expressions are remembered.
const MAX_SELECTIONS: usize = 1024;

type Verdict = Result<bool, String>;

#[derive(Debug)]
pub(crate) struct Selection {
    selector: Result<DeviceSelector, String>,
    /// By the number of an offer, for each of its devices.
    verdicts: Mutex<HashMap<u64, Vec<Option<Verdict>>>>,
}

impl Selection {
    /// Whether it selects a device; an error says why that cannot be told.
    pub(crate) fn selects(&self, offer: &Offer, at: usize) -> Verdict {
        let selector = self.selector.as_ref().map_err(|error| format!("CEL compile error: {error}"))?;
        let devices = &offer.slice.spec.devices;
        let Some(device) = devices.get(at) else { return Ok(false) };
        let mut verdicts = self.verdicts.lock();
        let verdict = &mut verdicts.entry(offer.number).or_insert_with(|| vec![None; devices.len()])[at];
        let judge = || {
            let capacity = device.capacity.iter().map(|(name, capacity)| (name.as_str(), capacity.value));
            let device = cel::Device {
                driver: &offer.slice.spec.driver,
                allows_multiple_allocations: device.allow_multiple_allocations,
                attributes: &device.attributes,
                capacity: capacity.collect(),
            };
            selector.matches(&device).map_err(|error| format!("CEL runtime error: {error}"))
        };
        verdict.get_or_insert_with(judge).clone()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Selections(Mutex<HashMap<String, Arc<Selection>>>);

impl Selections {
    pub(crate) fn of(&self, expression: &str) -> Arc<Selection> {
        let mut known = self.0.lock();
        if let Some(selection) = known.get(expression) {
            return selection.clone();
        }
        if known.len() >= MAX_SELECTIONS {
            known.clear();
        }
        let selection = Selection { selector: DeviceSelector::compile(expression), verdicts: Mutex::default() };
        let selection = Arc::new(selection);
        known.insert(expression.to_owned(), selection.clone());
        selection
    }

    /// An offer that is not made any more.
    pub(crate) fn forget(&self, offer: u64) {
        self.0.lock().values().for_each(|selection| drop(selection.verdicts.lock().remove(&offer)));
    }
}
