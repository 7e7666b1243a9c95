//! Sizes of sets: how far the new one may grow and the old ones shrink, and how they share a change of the whole.

use super::revision::{DESIRED_REPLICAS, MAX_REPLICAS};
use super::rollout::{Rollout, Set};
use crate::workload::scaled;
use kinds::Deployment;

/// What a deployment allows while it replaces pods.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// So many pods at most.
    pub(super) most: i32,
    /// So many available ones at least.
    pub(super) least: i32,
}

impl Limits {
    pub(super) fn of(deployment: &Deployment) -> Self {
        let wanted = deployment.spec.replicas;
        let (surge, unavailable) = match deployment.spec.strategy.kind.as_str() {
            "Recreate" => (0, 0),
            _ => {
                let update = &deployment.spec.strategy.rolling_update;
                let surge = scaled(&update.max_surge, wanted, true);
                let unavailable = scaled(&update.max_unavailable, wanted, false);
                // If rounding leaves neither, there has to be one less for a while: one more might not get a place.
                let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
                (surge, unavailable.min(wanted))
            }
        };
        Limits { most: wanted.saturating_add(surge), least: wanted - unavailable }
    }
}

/// Makes the new set as large as it may be. Returns whether that changes it.
pub(super) fn grow_new(rollout: &mut Rollout) -> bool {
    let (wanted, limits, total) = (rollout.deployment.spec.replicas, Limits::of(rollout.deployment), rollout.total());
    let Some(set) = &mut rollout.new else { return false };
    let before = set.replicas;
    let room = (limits.most - total).max(0);
    set.replicas = if before > wanted { wanted } else { before + room.min(wanted - before) };
    set.replicas != before
}

/// Makes old sets smaller, as far as enough pods stay available: first by what is not available anyway. What a set reports
/// may be about pods that it has lost since, if it was made smaller and larger again: then this has to wait.
pub(super) fn shrink_old(rollout: &mut Rollout) {
    if rollout.sets().any(Set::is_to_report) {
        return;
    }
    let limits = Limits::of(rollout.deployment);
    // Pods of the new set that are not available yet must not be counted twice.
    let new_unavailable = rollout.new.as_ref().map_or(0, |set| set.replicas - set.lasting());
    let mut may_go = rollout.total() - limits.least - new_unavailable;
    if may_go <= 0 {
        return;
    }
    for set in &mut rollout.old {
        let unhealthy = (set.replicas - set.lasting()).clamp(0, may_go);
        set.replicas -= unhealthy;
        may_go -= unhealthy;
    }
    let mut spare = (rollout.sets().map(Set::lasting).sum::<i32>() - limits.least).max(0);
    for set in &mut rollout.old {
        let gone = set.replicas.min(spare).max(0);
        set.replicas -= gone;
        spare -= gone;
    }
}

/// Whether somebody has changed the size of the deployment since its sets were last sized.
pub(super) fn was_rescaled(rollout: &Rollout) -> bool {
    let wanted = rollout.deployment.spec.replicas;
    let active = || rollout.sets().filter(|set| set.replicas > 0);
    // What recreates its pods has one set at a time, and nothing to share among several.
    let shares = rollout.deployment.spec.strategy.kind != "Recreate" || active().count() < 2;
    shares && active().any(|set| set.number(DESIRED_REPLICAS).is_some_and(|desired| desired != wanted))
}

/// Shares a change of the deployment's size among its sets, so that a rollout is neither hastened nor held up by it.
pub(super) fn scale_in_proportion(rollout: &mut Rollout) {
    let deployment = rollout.deployment;
    let (wanted, limits) = (deployment.spec.replicas, Limits::of(deployment));
    match rollout.active_mut().len() {
        0 => {
            let newest = rollout.new.as_mut().or(rollout.old.last_mut());
            newest.into_iter().for_each(|set| set.replicas = wanted);
        }
        1 => {
            for set in rollout.active_mut() {
                set.replicas = wanted;
                set.note_size(wanted, limits.most);
            }
        }
        _ if rollout.new.as_ref().is_some_and(|set| is_saturated(set, wanted)) => {
            rollout.old.iter_mut().for_each(|set| set.replicas = 0);
        }
        _ if deployment.spec.strategy.kind == "Recreate" => {}
        _ => {
            let before = deployment.status.replicas;
            let mut sets = rollout.active_mut();
            share(&mut sets, wanted, limits.most, before);
            sets.into_iter().for_each(|set| set.note_size(wanted, limits.most));
        }
    }
}

/// Whether the new set has everything the deployment wants.
fn is_saturated(set: &Set, wanted: i32) -> bool {
    let numbers = [Some(set.replicas), set.number(DESIRED_REPLICAS), Some(set.status.available_replicas)];
    numbers.iter().all(|number| *number == Some(wanted))
}

/// Gives each set its share of what is added or taken away, the largest first, and the remainder to that one. Of sets
/// of the same size the newer grow first and the older shrink first.
fn share(sets: &mut [&mut Set], wanted: i32, most: i32, size_before: i32) {
    let allowed = if wanted > 0 { most } else { 0 };
    let to_add = allowed - sets.iter().map(|set| set.replicas).sum::<i32>();
    if to_add == 0 {
        return;
    }
    sets.sort_by(|a, b| {
        let by_age = a.age().cmp(&b.age()).then_with(|| a.name.cmp(&b.name));
        b.replicas.cmp(&a.replicas).then(if to_add > 0 { by_age.reverse() } else { by_age })
    });
    let mut left = to_add;
    for set in sets.iter_mut() {
        let fraction = if wanted == 0 { -set.replicas } else { fraction(set, most, size_before) };
        let part = if to_add > 0 { fraction.min(left) } else { fraction.max(left) };
        set.replicas += part;
        left -= part;
    }
    if let Some(largest) = sets.first_mut() {
        largest.replicas = (largest.replicas + left).max(0);
    }
}

/// How much a set would grow or shrink if it kept its part of the whole.
fn fraction(set: &Set, most: i32, size_before: i32) -> i32 {
    let before = set.number(MAX_REPLICAS).filter(|before| *before > 0).unwrap_or(size_before);
    if before <= 0 {
        return 0;
    }
    let (product, before) = (i64::from(set.replicas) * i64::from(most), i64::from(before));
    let rounded = (2 * product + before).div_euclid(2 * before);
    i32::try_from(rounded).unwrap_or(i32::MAX) - set.replicas
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::{Labels, Object, ReplicaSetStatus};
    use object::{Value, json};

    fn deployment(replicas: i32, surge: &Value, unavailable: &Value) -> Object<Deployment> {
        let update = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": update });
        Object::of(&json!({ "metadata": { "name": "web" }, "spec": { "replicas": replicas, "strategy": strategy } }))
    }

    fn set(name: &str, replicas: i32, available: i32, most: i32) -> Set {
        Set {
            observed: None,
            name: name.to_owned(),
            replicas,
            annotations: Labels::from([(MAX_REPLICAS.to_owned(), most.to_string())]),
            min_ready_seconds: 0,
            status: ReplicaSetStatus { available_replicas: available, ..ReplicaSetStatus::default() },
        }
    }

    #[test]
    fn there_is_always_room_for_progress() {
        for (replicas, surge, unavailable, most, least) in [
            (10, json!("25%"), json!("25%"), 13, 8),
            (1, json!("25%"), json!("25%"), 2, 1),
            (2, json!("0%"), json!("1%"), 2, 1),
            (1, json!(0), json!("25%"), 1, 0),
            (3, json!(1), json!(10), 4, 0),
            (0, json!("25%"), json!("25%"), 0, 0),
        ] {
            let limits = Limits::of(&deployment(replicas, &surge, &unavailable));
            assert_eq!((limits.most, limits.least), (most, least), "{replicas} {surge} {unavailable}");
        }
    }

    #[test]
    fn old_sets_shrink_no_further_than_availability_allows() {
        // Ten wanted, at most thirteen, at least eight available.
        for (what, new, old, expected) in [
            ("nothing of the new one is there yet", (3, 0), vec![(10, 10)], vec![8]),
            ("the new one crashes, and so does an old pod", (5, 0), vec![(8, 7)], vec![8]),
            ("new ones are available", (5, 5), vec![(8, 8)], vec![3]),
            ("unhealthy old ones go first", (0, 0), vec![(8, 8), (5, 0)], vec![8, 0]),
            ("older sets shrink before newer ones", (4, 4), vec![(4, 4), (4, 4)], vec![0, 4]),
            ("an old set still reports what it is about to lose", (5, 5), vec![(4, 8)], vec![3]),
            ("so does one that is to be empty", (4, 4), vec![(0, 5), (6, 6)], vec![0, 4]),
        ] {
            let deployment = deployment(10, &json!(3), &json!(2));
            let old = old.into_iter().map(|(replicas, available)| set("old", replicas, available, 13)).collect();
            let mut rollout = Rollout { deployment: &deployment, new: Some(set("new", new.0, new.1, 13)), old };
            shrink_old(&mut rollout);
            assert_eq!(rollout.old.iter().map(|set| set.replicas).collect::<Vec<_>>(), expected, "{what}");
        }
    }

    #[test]
    fn sets_share_a_change_of_size_in_proportion_and_the_largest_gets_the_remainder() {
        for (what, sizes, most_before, wanted, most, expected) in [
            ("up from 10 to 15, surge 3", vec![5, 8], 13, 15, 18, vec![11, 7]),
            ("down from 10 to 5, surge 3", vec![5, 8], 13, 5, 8, vec![5, 3]),
            ("down to nothing", vec![5, 8], 13, 0, 3, vec![0, 0]),
            ("equal ones: the newer grows by the remainder", vec![5, 5], 10, 11, 11, vec![6, 5]),
            ("already of the right size", vec![5, 8], 13, 10, 13, vec![5, 8]),
            ("nobody knows how large it was", vec![1, 1], 0, 4, 4, vec![4, 0]),
        ] {
            let mut sets: Vec<_> =
                sizes.iter().enumerate().map(|(i, size)| set(&format!("s{i}"), *size, 0, most_before)).collect();
            let mut references: Vec<_> = sets.iter_mut().collect();
            share(&mut references, wanted, most, 0);
            let total: i32 = references.iter().map(|set| set.replicas).sum();
            if most_before > 0 {
                let shares: Vec<_> = references.iter().map(|set| set.replicas).collect();
                assert_eq!(shares, expected, "{what}");
            }
            assert_eq!(total, if wanted == 0 { 0 } else { most }, "{what}");
        }
    }
}
