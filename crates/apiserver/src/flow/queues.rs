//! Who waits for a seat, and who gets the next one. Pure: no locks, no time.
//!
//! Requests wait in queues, and the queues take turns by start-time fair queueing. Each queue has the virtual time at
//! which its next request may begin, which every request that it is served moves on by the seats it takes. Whoever may
//! begin first is served, and virtual time is that of who was served last. So over time each queue that has somebody
//! waiting gets as many seats as any other, however long it is, and one that was empty gains nothing from that.
//!
//! Which queue a request waits in: its flow is dealt a hand of all queues, by a hash of its name, and takes the one of
//! them in which the fewest seats are waited for. Two flows seldom have the same hand, so one that fills all its queues
//! leaves every other flow some.

use std::collections::{BTreeSet, HashMap, VecDeque};

/// All that wait at one priority level.
#[derive(Debug)]
pub(super) struct Queues<T> {
    /// Those that were waited in since somebody last waited in any. Made when needed: a level may have millions.
    queues: HashMap<u32, Queue<T>>,
    /// For each queue that is not empty: when it may begin, the number of its first request, and which it is.
    heads: BTreeSet<(u64, u64, u32)>,
    /// Virtual time.
    now: u64,
    /// What the next request is known by.
    next_number: u64,
    requests: usize,
    seats: u32,
}

#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    seats: u32,
    /// When, in virtual time, the next request may begin.
    begins: u64,
}

#[derive(Debug)]
pub(super) struct Waiting<T> {
    number: u64,
    pub(super) seats: u32,
    pub(super) item: T,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    queue: u32,
    number: u64,
}

impl<T> Default for Queues<T> {
    fn default() -> Self {
        Queues { queues: HashMap::new(), heads: BTreeSet::new(), now: 0, next_number: 0, requests: 0, seats: 0 }
    }
}

impl<T> Queues<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// How many wait, and how many queues they wait in.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.requests, self.heads.len())
    }

    /// Seats that are waited for.
    pub(super) fn seats(&self) -> u32 {
        self.seats
    }

    /// Adds a request to one of the queues of its hand; none if that has `max_length` already.
    pub(super) fn push(&mut self, hand: &[u32], max_length: usize, seats: u32, item: T) -> Option<Place> {
        let seats_in = |queue: &u32| self.queues.get(queue).map_or(0, |queue| queue.seats);
        let index = *hand.iter().min_by_key(|queue| seats_in(queue))?;
        let now = self.now;
        let queue = self.queues.entry(index).or_insert(Queue { waiting: VecDeque::new(), seats: 0, begins: now });
        if queue.waiting.len() >= max_length {
            return None;
        }
        let number = self.next_number;
        if queue.waiting.is_empty() {
            queue.begins = queue.begins.max(now);
            self.heads.insert((queue.begins, number, index));
        }
        queue.waiting.push_back(Waiting { number, seats, item });
        queue.seats += seats;
        self.next_number += 1;
        self.requests += 1;
        self.seats += seats;
        Some(Place { queue: index, number })
    }

    /// The next request, if it is one that `fits` so many seats. Others are not let past it, or it might never fit.
    pub(super) fn pop(&mut self, fits: impl FnOnce(u32) -> bool) -> Option<Waiting<T>> {
        let &(begins, number, index) = self.heads.first()?;
        let queue = self.queues.get_mut(&index)?;
        if !fits(queue.waiting.front()?.seats) {
            return None;
        }
        let served = queue.waiting.pop_front()?;
        self.now = begins;
        queue.begins = begins + u64::from(served.seats);
        queue.seats -= served.seats;
        self.heads.remove(&(begins, number, index));
        if let Some(next) = queue.waiting.front() {
            self.heads.insert((queue.begins, next.number, index));
        }
        self.gone(served.seats);
        Some(served)
    }

    /// Takes back a request that nobody waits for any more; whether it was still there.
    pub(super) fn remove(&mut self, place: Place) -> bool {
        let Some(queue) = self.queues.get_mut(&place.queue) else { return false };
        let Some(at) = queue.waiting.iter().position(|waiting| waiting.number == place.number) else { return false };
        let Some(removed) = queue.waiting.remove(at) else { return false };
        queue.seats -= removed.seats;
        if at == 0 {
            self.heads.remove(&(queue.begins, place.number, place.queue));
            if let Some(next) = queue.waiting.front() {
                self.heads.insert((queue.begins, next.number, place.queue));
            }
        }
        self.gone(removed.seats);
        true
    }

    fn gone(&mut self, seats: u32) {
        self.requests -= 1;
        self.seats -= seats;
        if self.requests == 0 {
            // Nobody has to be fair to anybody any more.
            self.queues.clear();
            self.now = 0;
        }
    }
}

/// The hand of a flow: `size` different ones of so many queues, which follow from the hash of its name. Each card uses up
/// as much of the hash as there were cards to choose from; the rules of the kind see to it that the hash is large enough.
pub(super) fn deal(mut hash: u64, queues: u32, size: u32) -> Vec<u32> {
    // In ascending order until all are there.
    let mut dealt: Vec<u32> = Vec::new();
    for left in (1..=queues).rev().take(size as usize) {
        let mut card = u32::try_from(hash % u64::from(left)).unwrap_or(0);
        hash /= u64::from(left);
        // The card at that place of those that are left.
        let mut place = 0;
        while dealt.get(place).is_some_and(|lower| *lower <= card) {
            card += 1;
            place += 1;
        }
        dealt.insert(place, card);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(queues: &mut Queues<&'static str>, count: usize) -> String {
        (0..count).filter_map(|_| queues.pop(|_| true)).map(|served| served.item).collect()
    }

    #[test]
    fn queues_take_turns_however_long_they_are() {
        let mut queues = Queues::default();
        for _ in 0..4 {
            queues.push(&[1], 9, 1, "a");
        }
        queues.push(&[2], 9, 1, "b");
        queues.push(&[2], 9, 1, "b");
        assert_eq!((queues.counts(), queues.seats()), ((6, 2), 6));
        assert_eq!(served(&mut queues, 9), "ababaa");
        assert!(queues.is_empty() && queues.queues.is_empty() && queues.heads.is_empty());
    }

    #[test]
    fn what_takes_many_seats_waits_for_its_turn_accordingly() {
        let mut queues = Queues::default();
        for _ in 0..2 {
            queues.push(&[1], 9, 3, "L");
        }
        for _ in 0..6 {
            queues.push(&[2], 9, 1, "g");
        }
        assert_eq!(served(&mut queues, 8), "LgggLggg");
    }

    #[test]
    fn a_queue_that_is_never_long_does_not_starve_the_others() {
        let mut queues = Queues::default();
        for _ in 0..3 {
            queues.push(&[1], 9, 1, "a");
        }
        let mut order = String::new();
        for _ in 0..5 {
            queues.push(&[2], 9, 1, "b");
            order.push_str(&served(&mut queues, 1));
        }
        assert_eq!(order.matches('b').count(), 2, "{order}");
    }

    #[test]
    fn a_queue_that_was_empty_is_not_served_for_the_time_it_was() {
        let mut queues = Queues::default();
        for _ in 0..8 {
            queues.push(&[1], 9, 1, "a");
        }
        served(&mut queues, 4);
        for _ in 0..3 {
            queues.push(&[2], 9, 1, "b");
        }
        assert_eq!(served(&mut queues, 4), "baba");
    }

    #[test]
    fn a_queue_is_of_limited_length_and_the_shortest_of_the_hand_is_taken() {
        let mut queues = Queues::default();
        let places: Vec<_> = (0..5).map(|_| queues.push(&[7, 9], 2, 1, "a").map(|place| place.queue)).collect();
        assert_eq!(places, [Some(7), Some(9), Some(7), Some(9), None]);
    }

    #[test]
    fn who_goes_away_is_not_served_and_those_behind_move_up() {
        let mut queues = Queues::default();
        let first = queues.push(&[1], 9, 2, "a").unwrap();
        let last = queues.push(&[1], 9, 1, "c").unwrap();
        queues.push(&[1], 9, 1, "b");
        assert!(queues.remove(first) && !queues.remove(first) && queues.remove(last));
        assert_eq!((queues.seats(), served(&mut queues, 2).as_str()), (1, "b"));
    }

    #[test]
    fn nobody_is_let_past_a_request_that_does_not_fit_yet() {
        let mut queues = Queues::default();
        queues.push(&[1], 9, 5, "L");
        queues.push(&[2], 9, 1, "g");
        assert!(queues.pop(|seats| seats <= 4).is_none());
        assert_eq!(served(&mut queues, 2), "Lg");
    }

    #[test]
    fn a_hand_is_of_different_queues_and_any_can_be_in_it() {
        assert_eq!(deal(0, 4, 4), [0, 1, 2, 3]);
        let mut seen = BTreeSet::new();
        for hash in 0..10_000_u64 {
            let hand = deal(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15), 16, 4);
            assert!(hand.windows(2).all(|pair| pair[0] < pair[1]) && hand.len() == 4 && hand[3] < 16, "{hand:?}");
            seen.extend(hand);
        }
        assert_eq!(seen.len(), 16);
    }
}
