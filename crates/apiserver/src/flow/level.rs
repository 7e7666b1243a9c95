//! A priority level at work: how many seats are taken, and who waits for one. Who waits for how long, and what they are
//! told, is left to who asks.
//!
//! A lock is held for a few operations on numbers where nobody waits, and nobody is called with it.

use super::queues::{Place, Queues, deal};
use super::shares::{Bounds, Share, widest};
use object::{Value, View};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// What a PriorityLevelConfiguration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) uid: String,
    pub(super) share: Share,
    pub(super) response: Response,
}

/// What becomes of a request that there is no seat for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// There always is one.
    Exempt,
    Reject,
    Queue {
        queues: u32,
        hand: u32,
        length: usize,
    },
}

impl Terms {
    pub(super) fn read(object: &Value) -> Self {
        let spec = object.at("spec");
        let exempt = spec.text("type") == "Exempt";
        let settings = spec.at(if exempt { "exempt" } else { "limited" });
        let number = |of: &Value, field: &str| of.int(field).and_then(|number| u32::try_from(number).ok());
        let queuing = settings.at("limitResponse").at("queuing");
        Terms {
            uid: object.at("metadata").text("uid").to_owned(),
            share: Share {
                shares: number(settings, "nominalConcurrencyShares").unwrap_or_default(),
                lendable_percent: number(settings, "lendablePercent").unwrap_or_default(),
                borrowing_percent: number(settings, "borrowingLimitPercent"),
            },
            response: match number(queuing, "queues") {
                _ if exempt => Response::Exempt,
                Some(queues) if queues > 0 => Response::Queue {
                    queues,
                    hand: number(queuing, "handSize").unwrap_or_default().clamp(1, queues),
                    length: number(queuing, "queueLengthLimit").unwrap_or_default() as usize,
                },
                _ => Response::Reject,
            },
        }
    }
}

#[derive(Debug)]
pub(super) struct Level {
    pub(super) name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    response: Response,
    bounds: Bounds,
    /// Seats that may be taken now: within the bounds.
    limit: u32,
    taken: u32,
    /// The most seats that were taken and waited for at once since somebody last asked.
    demand: u32,
    tally: Tally,
    /// Everybody who waits is told by being sent something.
    queues: Queues<oneshot::Sender<()>>,
}

/// What a request finds that wants to be worked on.
#[derive(Debug)]
pub(super) enum Entry {
    Seat,
    /// Its turn comes when the receiver is told, or its place is given up.
    Wait(Place, oneshot::Receiver<()>),
    /// Neither; why, in a word of upstream's.
    Refused(&'static str),
}

/// Requests, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) executing: usize,
    pub(super) dispatched: u64,
    /// Those that gave up included.
    pub(super) rejected: u64,
    /// Waited for too long, or whose client went away.
    pub(super) gave_up: u64,
}

/// How a level is doing, for who wants to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) limit: u32,
    pub(super) taken: u32,
    pub(super) waiting: usize,
    /// Those that somebody waits in.
    pub(super) queues: usize,
    pub(super) tally: Tally,
}

impl Level {
    pub(super) fn new(name: &str) -> Self {
        let (bounds, tally, queues) = (Bounds::default(), Tally::default(), Queues::default());
        let state = State { response: Response::Reject, bounds, limit: 0, taken: 0, demand: 0, tally, queues };
        Level { name: name.to_owned(), state: Mutex::new(state) }
    }

    /// From now on, with nothing lent or borrowed. Whoever waits goes on waiting where they are.
    pub(super) fn configure(&self, response: Response, bounds: Bounds) {
        let mut state = self.state.lock();
        if (state.response, state.bounds) != (response, bounds) {
            (state.response, state.bounds, state.limit) = (response, bounds, bounds.nominal);
            state.seat_more();
        }
    }

    pub(super) fn set_limit(&self, limit: u32) {
        let mut state = self.state.lock();
        state.limit = limit;
        state.seat_more();
    }

    /// Demand since the last call. An exempt level has none beyond its nominal limit: it is served without any seats.
    pub(super) fn take_demand(&self) -> u32 {
        let mut state = self.state.lock();
        let now = state.taken + state.queues.seats();
        let demand = std::mem::replace(&mut state.demand, now);
        if state.response == Response::Exempt { demand.min(state.bounds.nominal) } else { demand }
    }

    /// The most seats that one request may ask for.
    pub(super) fn widest(&self) -> u32 {
        let state = self.state.lock();
        let hand = if let Response::Queue { hand, .. } = state.response { hand } else { 1 };
        widest(state.bounds.nominal, hand)
    }

    /// Takes so many seats, or a place in a queue. The hash of the flow is worked out only if it matters.
    pub(super) fn enter(&self, seats: u32, flow: impl FnOnce() -> u64) -> Entry {
        let mut state = self.state.lock();
        let wanted = state.taken + state.queues.seats() + seats;
        state.demand = state.demand.max(wanted);
        if state.queues.is_empty() && state.room()(seats) {
            state.seat(seats);
            return Entry::Seat;
        }
        let Response::Queue { queues, hand, length } = state.response else {
            state.tally.rejected += 1;
            return Entry::Refused("concurrency-limit");
        };
        let (sender, receiver) = oneshot::channel();
        match state.queues.push(&deal(flow(), queues, hand), length, seats, sender) {
            Some(place) => Entry::Wait(place, receiver),
            None => {
                state.tally.rejected += 1;
                Entry::Refused("queue-full")
            }
        }
    }

    /// Gives a place up. If it is gone, its owner has been given seats, which it now has.
    pub(super) fn give_up(&self, place: Place) -> bool {
        let mut state = self.state.lock();
        let waited = state.queues.remove(place);
        state.tally.gave_up += u64::from(waited);
        state.tally.rejected += u64::from(waited);
        // Those behind it may be easier to seat.
        state.seat_more();
        waited
    }

    pub(super) fn leave(&self, seats: u32) {
        let mut state = self.state.lock();
        state.taken -= seats;
        state.tally.executing -= 1;
        state.seat_more();
    }

    pub(super) fn digest(&self) -> Digest {
        let state = self.state.lock();
        let (waiting, queues) = state.queues.counts();
        Digest { limit: state.limit, taken: state.taken, waiting, queues, tally: state.tally }
    }
}

impl State {
    /// Whether there are so many seats. A request that wants more than there are at all is served alone; where there are
    /// none, nobody is.
    fn room(&self) -> impl Fn(u32) -> bool + use<> {
        let (exempt, taken, limit) = (self.response == Response::Exempt, self.taken, self.limit);
        move |seats| exempt || taken + seats <= limit || taken == 0 && limit > 0
    }

    fn seat(&mut self, seats: u32) {
        self.taken += seats;
        self.tally.executing += 1;
        self.tally.dispatched += 1;
    }

    fn seat_more(&mut self) {
        while let Some(next) = self.queues.pop(self.room()) {
            self.seat(next.seats);
            // Somebody who is just going away notices that their place is gone, and gives the seats back.
            let _ = next.item.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Response = Response::Queue { queues: 1, hand: 1, length: 2 };

    fn level(response: Response, limit: u32) -> Level {
        let level = Level::new("a");
        level.configure(response, Bounds { nominal: limit, least: limit, most: limit });
        level
    }

    fn wait(level: &Level, seats: u32) -> (Place, oneshot::Receiver<()>) {
        match level.enter(seats, || 0) {
            Entry::Wait(place, receiver) => (place, receiver),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_level_that_rejects_has_so_many_seats_and_no_more() {
        let level = level(Response::Reject, 2);
        assert!(matches!(level.enter(2, || 0), Entry::Seat));
        assert!(matches!(level.enter(1, || 0), Entry::Refused("concurrency-limit")));
        level.leave(2);
        assert!(matches!(level.enter(1, || 0), Entry::Seat));
        assert_eq!((level.take_demand(), level.take_demand()), (3, 1));
    }

    #[test]
    fn whoever_waits_is_seated_when_somebody_leaves_and_a_full_queue_refuses() {
        let level = level(QUEUE, 1);
        assert!(matches!(level.enter(1, || 0), Entry::Seat));
        let (_, mut first) = wait(&level, 1);
        let (_, mut second) = wait(&level, 1);
        assert!(matches!(level.enter(1, || 0), Entry::Refused("queue-full")));
        assert!(first.try_recv().is_err());
        level.leave(1);
        assert!(first.try_recv().is_ok() && second.try_recv().is_err());
        level.set_limit(2);
        assert!(second.try_recv().is_ok());
        let tally = Tally { executing: 2, dispatched: 3, rejected: 1, gave_up: 0 };
        assert_eq!(level.digest(), Digest { limit: 2, taken: 2, waiting: 0, queues: 0, tally });
    }

    #[test]
    fn a_place_that_is_given_up_is_free_and_one_that_is_gone_has_become_a_seat() {
        let level = level(QUEUE, 2);
        assert!(matches!(level.enter(1, || 0), Entry::Seat));
        let (wide, _held) = wait(&level, 2);
        let (narrow, mut receiver) = wait(&level, 1);
        assert!(level.give_up(wide));
        assert!(receiver.try_recv().is_ok() && !level.give_up(narrow));
        assert_eq!(level.digest().taken, 2);
    }

    #[test]
    fn who_wants_more_than_there_is_is_served_alone_and_without_seats_nobody_is() {
        let narrow = level(Response::Reject, 2);
        assert!(matches!(narrow.enter(5, || 0), Entry::Seat));
        assert!(matches!(narrow.enter(1, || 0), Entry::Refused(_)));
        let jail = level(QUEUE, 0);
        let (_, mut held) = wait(&jail, 1);
        assert!(held.try_recv().is_err());
        let exempt = level(Response::Exempt, 0);
        assert!((0..1000).all(|_| matches!(exempt.enter(1, || 0), Entry::Seat)));
        assert_eq!(exempt.take_demand(), 0);
    }
}
