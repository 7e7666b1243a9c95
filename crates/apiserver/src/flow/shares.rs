//! How the seats of a server are shared out among priority levels, and lent. Pure arithmetic.
//!
//! Each level has a nominal limit, in proportion to its shares. What it may lend and borrow bounds its limit at any time:
//! it never has less than the nominal limit without what is lendable, nor more than it with what it may borrow. Between
//! the two it follows demand, which is the most seats that were taken and waited for at once since the last look: a level
//! lends what it did not need, and only if another needs more than its nominal limit. So where nobody is short everybody
//! has the nominal limit, and one that gets busy again has it back at the next look.
//!
//! Kubernetes follows an average of demand with a half-life of minutes instead, and looks every ten seconds. The bounds
//! are the same.

/// Requests that are worked on at once, all levels together: upstream's 400 that read and 200 that change.
pub(super) const SERVER_SEATS: u32 = 600;
/// One request takes at most so many.
const MAX_SEATS: u32 = 10;
/// A list takes a seat for so many objects.
const OBJECTS_PER_SEAT: usize = 100;

/// What a level says of its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) shares: u32,
    pub(super) lendable_percent: u32,
    /// None: as much as there is.
    pub(super) borrowing_percent: Option<u32>,
}

/// What follows for its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) nominal: u32,
    pub(super) least: u32,
    pub(super) most: u32,
}

/// The bounds of each level. Nominal limits are rounded up, so together they may be a little more than there is.
pub(super) fn bounds(levels: &[Share]) -> Vec<Bounds> {
    let all: u64 = levels.iter().map(|level| u64::from(level.shares)).sum();
    let of = |level: &Share| {
        let nominal = fraction(SERVER_SEATS, level.shares, all, Rounding::Up);
        let percent = |percent| fraction(nominal, percent, 100, Rounding::Nearest);
        let borrowable = level.borrowing_percent.map_or(SERVER_SEATS, percent);
        Bounds {
            nominal,
            least: nominal - percent(level.lendable_percent.min(100)),
            most: nominal.saturating_add(borrowable),
        }
    };
    levels.iter().map(of).collect()
}

/// The limit of each level for now, from its bounds and its demand.
pub(super) fn balance(levels: &[(Bounds, u32)]) -> Vec<u32> {
    let spare = |&(bounds, demand): &(Bounds, u32)| bounds.nominal - demand.clamp(bounds.least, bounds.nominal);
    let wanted = |&(bounds, demand): &(Bounds, u32)| demand.min(bounds.most).saturating_sub(bounds.nominal);
    let sum = |of: &dyn Fn(&(Bounds, u32)) -> u32| levels.iter().map(|level| u64::from(of(level))).sum::<u64>();
    let (all_spare, all_wanted) = (sum(&spare), sum(&wanted));
    let lent = u32::try_from(all_spare.min(all_wanted)).unwrap_or(u32::MAX);
    let limit = |level: &(Bounds, u32)| {
        // Rounded so that what is lent is never less than what is borrowed.
        let gets = fraction(lent, wanted(level), all_wanted, Rounding::Down);
        let gives = fraction(lent, spare(level), all_spare, Rounding::Up);
        level.0.nominal + gets - gives
    };
    levels.iter().map(limit).collect()
}

#[derive(Clone, Copy)]
enum Rounding {
    Up,
    Down,
    Nearest,
}

/// `whole * part / of`; nothing of nothing.
fn fraction(whole: u32, part: u32, of: u64, rounding: Rounding) -> u32 {
    let product = u64::from(whole) * u64::from(part);
    let result = match rounding {
        _ if of == 0 => 0,
        Rounding::Up => product.div_ceil(of),
        Rounding::Down => product / of,
        Rounding::Nearest => (product + of / 2) / of,
    };
    u32::try_from(result).unwrap_or(u32::MAX)
}

/// The most seats that one request takes at a level: few enough that a flow can have one in each queue of its hand.
pub(super) fn widest(nominal: u32, hand: u32) -> u32 {
    let some = fraction(nominal, 15, 100, Rounding::Up);
    some.min(nominal / hand.max(1)).clamp(1, MAX_SEATS)
}

/// The seats of a list: by the objects that have to be looked at, as far as that is known beforehand. Upstream goes by
/// their size as well.
pub(super) fn seats_of_list(stored: usize, limit: usize, selective: bool, widest: u32) -> u32 {
    let looked_at = match limit {
        _ if selective => stored,
        0 => stored,
        limit => stored.min(limit),
    };
    u32::try_from(looked_at.div_ceil(OBJECTS_PER_SEAT)).unwrap_or(u32::MAX).clamp(1, widest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(shares: u32, lendable_percent: u32, borrowing_percent: Option<u32>) -> Share {
        Share { shares, lendable_percent, borrowing_percent }
    }

    #[test]
    fn seats_are_shared_out_in_proportion_and_lending_is_bounded() {
        // The levels of a new cluster.
        let levels = [(0, 0), (5, 0), (20, 50), (10, 0), (40, 25), (30, 33), (40, 50), (100, 90)];
        let limits = bounds(&levels.map(|(shares, lendable)| share(shares, lendable, None)));
        let nominal: Vec<u32> = limits.iter().map(|bounds| bounds.nominal).collect();
        let least: Vec<u32> = limits.iter().map(|bounds| bounds.least).collect();
        assert_eq!(nominal, [0, 13, 49, 25, 98, 74, 98, 245]);
        assert_eq!(least, [0, 13, 24, 25, 73, 50, 49, 24]);
        assert!(limits.iter().all(|bounds| bounds.most == bounds.nominal + SERVER_SEATS));
        let jail = bounds(&[share(0, 0, Some(0)), share(1, 100, Some(50))]);
        assert_eq!(jail[0], Bounds::default());
        assert_eq!(jail[1], Bounds { nominal: 600, least: 0, most: 900 });
    }

    #[test]
    fn a_level_lends_what_it_does_not_need_and_only_if_somebody_does() {
        let of = |nominal, least, most| Bounds { nominal, least, most };
        let (lender, firm, borrower, modest) = (of(100, 10, 700), of(50, 50, 700), of(40, 40, 640), of(40, 40, 45));
        for (levels, limits) in [
            // Nobody is short.
            (vec![(lender, 0), (firm, 3), (borrower, 40)], vec![100, 50, 40]),
            // As much as is wanted, as much as is spare, as much as may be borrowed.
            (vec![(lender, 0), (firm, 0), (borrower, 60)], vec![80, 50, 60]),
            (vec![(lender, 0), (firm, 0), (borrower, 4000)], vec![10, 50, 130]),
            (vec![(lender, 0), (firm, 0), (modest, 4000)], vec![95, 50, 45]),
            // What the lender needs itself it keeps, and it has all of it back once it needs that.
            (vec![(lender, 70), (borrower, 4000)], vec![70, 70]),
            (vec![(lender, 100), (borrower, 4000)], vec![100, 40]),
            (vec![(lender, 500), (borrower, 0)], vec![100, 40]),
            // Those who are short share by what they want.
            (vec![(lender, 0), (borrower, 640), (borrower, 340)], vec![10, 100, 70]),
            (vec![], vec![]),
        ] {
            assert_eq!(balance(&levels), limits, "{levels:?}");
        }
    }

    #[test]
    fn no_more_is_borrowed_than_is_lent_and_every_limit_is_within_its_bounds() {
        let random = ambient::Random::seeded(7);
        let below = |bound: u64| u32::try_from(random.below(bound)).unwrap();
        for _ in 0..2_000 {
            let shares: Vec<Share> =
                (0..1 + below(9)).map(|_| share(below(200), below(101), (below(2) == 0).then(|| below(300)))).collect();
            let levels: Vec<(Bounds, u32)> = bounds(&shares).into_iter().map(|bounds| (bounds, below(900))).collect();
            let limits = balance(&levels);
            for ((bounds, demand), limit) in levels.iter().zip(&limits) {
                assert!((bounds.least..=bounds.most).contains(limit), "{bounds:?} {demand} {limit}");
                assert!(
                    *limit >= bounds.nominal.min(*demand),
                    "nobody lends what they need: {bounds:?} {demand} {limit}"
                );
            }
            let nominal: u32 = levels.iter().map(|(bounds, _)| bounds.nominal).sum();
            assert!(limits.iter().sum::<u32>() <= nominal, "{levels:?} {limits:?}");
        }
    }

    #[test]
    fn a_list_takes_seats_by_what_it_has_to_look_at() {
        for (stored, limit, selective, seats) in [
            (0, 0, false, 1),
            (100, 0, false, 1),
            (101, 0, false, 2),
            (50_000, 0, false, 8),
            (50_000, 500, false, 5),
            (50_000, 500, true, 8),
        ] {
            assert_eq!(seats_of_list(stored, limit, selective, 8), seats, "{stored} {limit} {selective}");
        }
        let widths = [(600, 6), (49, 6), (98, 6), (13, 1), (3, 8), (0, 0)].map(|(nominal, hand)| widest(nominal, hand));
        assert_eq!(widths, [10, 8, 10, 2, 1, 1]);
    }
}
