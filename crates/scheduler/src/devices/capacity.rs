//! How much of a device a request takes. Of one that is given to one alone it takes all; the device still has to have as
//! much as was asked for.

use super::ledger::Amounts;
use kinds::{CapacityRange, Device, DeviceCapacity};
use object::Quantity;

/// What a request takes of each capacity; none if the device cannot give it, even to nobody else.
pub(super) fn taken(requests: &Amounts, device: &Device) -> Option<Amounts> {
    if !requests.keys().all(|name| device.capacity.contains_key(name)) {
        return None;
    }
    let take = |(name, capacity): (&String, &DeviceCapacity)| {
        let amount = amount(requests.get(name).copied(), capacity)?;
        (amount <= capacity.value).then(|| (name.clone(), amount))
    };
    device.capacity.iter().map(take).collect()
}

/// Whether a device has as much left besides what others take.
pub(super) fn has_left(device: &Device, taken: &Amounts, by_others: &[&Amounts]) -> bool {
    device.capacity.iter().all(|(name, capacity)| {
        let of = |amounts: &Amounts| amounts.get(name).copied().unwrap_or_default();
        of(taken) + by_others.iter().map(|amounts| of(amounts)).sum() <= capacity.value
    })
}

/// What is asked for, made to what the device allows: rounded up, or what is usual. None if it allows nothing like it.
fn amount(wanted: Option<Quantity>, capacity: &DeviceCapacity) -> Option<Quantity> {
    let Some(policy) = &capacity.request_policy else { return Some(wanted.unwrap_or(capacity.value)) };
    let Some(wanted) = wanted else { return Some(policy.default.unwrap_or(capacity.value)) };
    if policy.default == Some(wanted) {
        return Some(wanted);
    }
    match &policy.valid_range {
        Some(range) => in_range(wanted, range),
        None if policy.valid_values.is_empty() => Some(wanted),
        None => policy.valid_values.iter().copied().find(|valid| wanted <= *valid),
    }
}

fn in_range(wanted: Quantity, range: &CapacityRange) -> Option<Quantity> {
    let min = range.min.unwrap_or_default();
    let amount = match range.step {
        _ if wanted < min => min,
        Some(step) if step.units() > 0 => {
            let missing = i128::from(min.units()) - i128::from(wanted.units());
            let over = missing.rem_euclid(i128::from(step.units()));
            let amount = i64::try_from(i128::from(wanted.units()) + over).ok()?;
            // Written as the step is.
            step + Quantity::from_units(amount - step.units())
        }
        _ => wanted,
    };
    range.max.is_none_or(|max| amount <= max).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::{Object, ResourceSlice};
    use object::{Value, json};

    fn device(policy: &Value) -> Device {
        let device = json!({ "name": "a", "capacity": { "memory": { "value": "16Gi", "requestPolicy": policy } } });
        let slice: Object<ResourceSlice> = Object::of(&json!({ "spec": { "devices": [device] } }));
        slice.spec.devices[0].clone()
    }

    #[test]
    fn what_is_asked_for_is_made_to_what_the_device_allows() {
        let range = json!({ "default": "1Gi", "validRange": { "min": "2Gi", "step": "2Gi", "max": "8Gi" } });
        let values = json!({ "default": "4Gi", "validValues": ["4Gi", "8Gi"] });
        for (policy, wanted, expected) in [
            (json!(null), None, Some("16Gi")),
            (json!(null), Some("3Gi"), Some("3Gi")),
            (json!(null), Some("17Gi"), None),
            (range.clone(), None, Some("1Gi")),
            (range.clone(), Some("1Mi"), Some("2Gi")),
            (range.clone(), Some("3Gi"), Some("4Gi")),
            (range.clone(), Some("4Gi"), Some("4Gi")),
            (range.clone(), Some("9223372036854775807"), None),
            (range, Some("9Gi"), None),
            (values.clone(), None, Some("4Gi")),
            (values.clone(), Some("5Gi"), Some("8Gi")),
            (values, Some("9Gi"), None),
        ] {
            let requests = wanted.map(|amount: &str| ("memory".to_owned(), amount.parse().unwrap()));
            let taken = taken(&requests.into_iter().collect(), &device(&policy));
            let expected = expected.map(|amount| amount.parse::<Quantity>().unwrap());
            assert_eq!(taken.map(|taken| taken["memory"]), expected, "{policy} {wanted:?}");
        }
        assert_eq!(taken(&[("cores".to_owned(), Quantity::from_units(1))].into(), &device(&json!(null))), None);
    }

    #[test]
    fn what_is_rounded_up_is_written_like_the_step() {
        for (step, wanted, expected) in [("1k", "1500", "2k"), ("1Ki", "1500", "2Ki"), ("250", "1200", "1250")] {
            let policy = json!({ "default": "0", "validRange": { "min": "0", "step": step } });
            let taken = taken(&[("memory".to_owned(), wanted.parse().unwrap())].into(), &device(&policy));
            assert_eq!(taken.unwrap()["memory"].to_string(), expected, "{step}");
        }
    }

    #[test]
    fn shares_are_given_until_nothing_is_left() {
        let share: Amounts = [("memory".to_owned(), "6Gi".parse().unwrap())].into();
        let device = device(&json!(null));
        assert!(has_left(&device, &share, &[&share]));
        assert!(!has_left(&device, &share, &[&share, &share]));
    }
}
