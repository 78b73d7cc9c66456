//! The exchanges in flight, ordered by deadline. An exchange is one request with its response. The
//! memory of an ended exchange is reused, so a stable concurrency needs no allocation.
//!
//! Exchanges with equal timeouts reach their deadlines in the order of their starts. The module
//! therefore has a doubly linked list (a lane) for each distinct timeout. Adding an exchange to a
//! lane, or removing it, has a constant cost. The earliest deadline is the minimum of the deadlines
//! of the first exchanges of all lanes.

use crate::source::RequestSource;
use plimsoll_model::RouteNumber;
use std::ops::{Index, IndexMut};

const NO_EXCHANGE: u32 = u32::MAX;

/// The state of one request in flight, until its response ends: its user, its times and its place
/// in the lists of exchanges. All times are absolute, ns.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// The number of the user (closed loop) or of the arrival (open loop) that sends the request.
    pub user: u64,
    /// The time at which the request was intended to start.
    pub intended_ns: u64,
    /// The time at which the first byte of the request was sent; 0 until then.
    pub sent_ns: u64,
    /// The time at which the first byte of the response arrived; 0 until then.
    pub first_byte_ns: u64,
    /// The time at which the request times out.
    pub deadline_ns: u64,
    /// The number of the exchange's connection slot.
    pub slot: u32,
    /// The route of the request.
    pub route: RouteNumber,
    /// Whether the request counts in the measured window.
    pub measured: bool,
    /// The number of times that the request was sent again.
    pub resent: u8,
    /// The number of messages (requests of one batch) of this exchange whose responses follow after
    /// the current response.
    pub later_responses: u32,
    /// The number of the previous exchange in the lane, which lists the exchanges with equal
    /// timeouts by deadline.
    previous_in_lane: u32,
    /// The number of the next exchange in the lane, which lists the exchanges with equal timeouts
    /// by deadline.
    next_in_lane: u32,
    /// The number of the next exchange in the same [`ExchangeQueue`].
    next_in_queue: u32,
}

// The size of an exchange is limited to 64 bytes, because each busy connection has an exchange, and
// there may be very many connections.
const _: () = assert!(size_of::<Exchange>() <= 64);

impl Exchange {
    /// Creates an exchange that has sent nothing yet.
    #[inline]
    pub fn new(slot: u32, user: u64, route: RouteNumber, intended_ns: u64, measured: bool) -> Exchange {
        Exchange {
            user,
            intended_ns,
            sent_ns: 0,
            first_byte_ns: 0,
            deadline_ns: 0,
            slot,
            route,
            measured,
            resent: 0,
            later_responses: 0,
            previous_in_lane: NO_EXCHANGE,
            next_in_lane: NO_EXCHANGE,
            next_in_queue: NO_EXCHANGE,
        }
    }
}

/// The queue of the exchanges that wait for the same connection, first come, first served.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeQueue {
    first: u32,
    last: u32,
    length: u32,
}

impl ExchangeQueue {
    pub const EMPTY: ExchangeQueue = ExchangeQueue { first: NO_EXCHANGE, last: NO_EXCHANGE, length: 0 };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NO_EXCHANGE
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.length
    }
}

/// A list of the exchanges with the same timeout, ordered by deadline.
#[derive(Debug, Clone, Copy)]
struct EqualTimeoutList {
    timeout_ns: u64,
    /// The deadline of the first exchange in the lane (list of exchanges); `u64::MAX` if the lane
    /// is empty.
    first_ns: u64,
    first: u32,
    last: u32,
}

/// The exchanges of a worker, by number.
#[derive(Debug)]
pub struct Exchanges {
    exchanges: Vec<Exchange>,
    free: Vec<u32>,
    lanes: Vec<EqualTimeoutList>,
    /// For each route, the index of the lane (list of exchanges) with the route's timeout.
    lane_of: Vec<u32>,
}

impl Exchanges {
    pub fn new(source: &RequestSource) -> Exchanges {
        Exchanges::with_timeouts(source.routes().iter().map(|route| route.timeout_ns))
    }

    /// Creates an empty set of exchanges for routes whose timeouts are `timeouts_ns`, ns.
    fn with_timeouts(timeouts_ns: impl Iterator<Item = u64>) -> Exchanges {
        let mut lanes: Vec<EqualTimeoutList> = Vec::new();
        let lane_of = timeouts_ns
            .map(|timeout_ns| {
                let at = lanes.iter().position(|lane| lane.timeout_ns == timeout_ns).unwrap_or_else(|| {
                    lanes.push(EqualTimeoutList {
                        timeout_ns,
                        first_ns: u64::MAX,
                        first: NO_EXCHANGE,
                        last: NO_EXCHANGE,
                    });
                    lanes.len() - 1
                });
                at as u32
            })
            .collect();
        Exchanges { exchanges: Vec::new(), free: Vec::new(), lanes, lane_of }
    }

    /// Adds an exchange and returns its number. The timeout of the exchange counts from `now_ns`,
    /// which never decreases.
    ///
    /// `begin` and `end` run once per request and are always inlined, because a call that copies
    /// the exchange would cost as much as the work.
    #[inline(always)]
    pub fn begin(&mut self, mut exchange: Exchange, now_ns: u64) -> u32 {
        let lane = &mut self.lanes[self.lane_of[usize::from(exchange.route)] as usize];
        exchange.deadline_ns = now_ns.saturating_add(lane.timeout_ns);
        exchange.previous_in_lane = lane.last;
        let number = match self.free.pop() {
            Some(number) => {
                self.exchanges[number as usize] = exchange;
                number
            }
            None => {
                self.exchanges.push(exchange);
                self.exchanges.len() as u32 - 1
            }
        };
        lane.last = number;
        match exchange.previous_in_lane {
            NO_EXCHANGE => (lane.first, lane.first_ns) = (number, exchange.deadline_ns),
            before => self.exchanges[before as usize].next_in_lane = number,
        }
        number
    }

    /// Removes an ended exchange. The data of the ended exchange stays readable until the next
    /// exchange begins.
    #[inline(always)]
    pub fn end(&mut self, number: u32) {
        let Exchange { route, previous_in_lane: before, next_in_lane: after, .. } = self.exchanges[number as usize];
        let lane = &mut self.lanes[self.lane_of[usize::from(route)] as usize];
        let mut after_ns = u64::MAX;
        match after {
            NO_EXCHANGE => lane.last = before,
            _ => {
                let next = &mut self.exchanges[after as usize];
                next.previous_in_lane = before;
                after_ns = next.deadline_ns;
            }
        }
        match before {
            NO_EXCHANGE => (lane.first, lane.first_ns) = (after, after_ns),
            _ => self.exchanges[before as usize].next_in_lane = after,
        }
        self.free.push(number);
    }

    /// Appends an exchange to `queue`, the exchanges that wait for a connection.
    pub fn append_to_queue(&mut self, queue: &mut ExchangeQueue, number: u32) {
        self.exchanges[number as usize].next_in_queue = NO_EXCHANGE;
        match queue.last {
            NO_EXCHANGE => queue.first = number,
            last => self.exchanges[last as usize].next_in_queue = number,
        }
        queue.last = number;
        queue.length += 1;
    }

    /// Removes the first exchange from `queue` and returns the number of the exchange.
    pub fn take_first(&mut self, queue: &mut ExchangeQueue) -> Option<u32> {
        let number = queue.first;
        if number == NO_EXCHANGE {
            return None;
        }
        queue.first = self.exchanges[number as usize].next_in_queue;
        if queue.first == NO_EXCHANGE {
            queue.last = NO_EXCHANGE;
        }
        queue.length -= 1;
        Some(number)
    }

    /// Removes an exchange from `queue`. Returns whether the exchange was in the queue.
    pub fn remove_from_queue(&mut self, queue: &mut ExchangeQueue, number: u32) -> bool {
        let Some(before) = self.numbers_in_queue(queue).take_while(|other| *other != number).last() else {
            return queue.first == number && self.take_first(queue).is_some();
        };
        if self.exchanges[before as usize].next_in_queue != number {
            return false;
        }
        self.exchanges[before as usize].next_in_queue = self.exchanges[number as usize].next_in_queue;
        if queue.last == number {
            queue.last = before;
        }
        queue.length -= 1;
        true
    }

    /// Iterates over the numbers of the exchanges in `queue`, in the order in which they wait.
    pub fn numbers_in_queue(&self, queue: &ExchangeQueue) -> impl Iterator<Item = u32> {
        let some = |number: u32| (number != NO_EXCHANGE).then_some(number);
        std::iter::successors(some(queue.first), move |number| some(self.exchanges[*number as usize].next_in_queue))
    }

    /// Iterates over all exchanges in flight, in no particular order.
    pub fn iter_in_flight(&self) -> impl Iterator<Item = &Exchange> {
        let at = |number: u32| (number != NO_EXCHANGE).then(|| &self.exchanges[number as usize]);
        self.lanes
            .iter()
            .flat_map(move |lane| std::iter::successors(at(lane.first), move |exchange| at(exchange.next_in_lane)))
    }

    /// Returns the earliest deadline (absolute, ns) and the number of its exchange; `None` without
    /// exchanges.
    #[inline]
    pub fn first_deadline(&self) -> Option<(u64, u32)> {
        let mut earliest = (u64::MAX, NO_EXCHANGE);
        for lane in &self.lanes {
            if lane.first_ns < earliest.0 {
                earliest = (lane.first_ns, lane.first);
            }
        }
        (earliest.1 != NO_EXCHANGE).then_some(earliest)
    }
}

impl Index<u32> for Exchanges {
    type Output = Exchange;

    #[inline]
    fn index(&self, number: u32) -> &Exchange {
        &self.exchanges[number as usize]
    }
}

impl IndexMut<u32> for Exchanges {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Exchange {
        &mut self.exchanges[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_is_right_after_starts_and_ends() {
        for timeouts_ns in [vec![50], vec![50, 50, 7], vec![1_000, 1, 300, 20]] {
            let mut rng = plimsoll_model::rng::Rng::new(3);
            let mut exchanges = Exchanges::with_timeouts(timeouts_ns.iter().copied());
            let mut expect: Vec<(u64, u32, u64)> = Vec::new();
            for now_ns in 0..10_000 {
                if expect.len() == 20 || (rng.uniform_below(2) == 0 && !expect.is_empty()) {
                    let (deadline_ns, number, user) =
                        expect.swap_remove(rng.uniform_below(expect.len() as u64) as usize);
                    let ended = exchanges[number];
                    exchanges.end(number);
                    assert_eq!((ended.deadline_ns, ended.user), (deadline_ns, user));
                } else {
                    let route = rng.uniform_below(timeouts_ns.len() as u64) as u16;
                    let number = exchanges.begin(Exchange::new(0, now_ns, route, 0, true), now_ns);
                    expect.push((now_ns + timeouts_ns[usize::from(route)], number, now_ns));
                }
                let first = exchanges.first_deadline();
                assert_eq!(first.map(|(at_ns, _)| at_ns), expect.iter().map(|e| e.0).min());
                assert!(first.is_none_or(|(at_ns, number)| expect.iter().any(|e| (e.0, e.1) == (at_ns, number))));
            }
            assert!(exchanges.exchanges.len() <= 20, "places are used again");
        }
    }

    #[test]
    fn queues_keep_their_order() {
        let mut rng = plimsoll_model::rng::Rng::new(5);
        let mut exchanges = Exchanges::with_timeouts([50].into_iter());
        let (mut line, mut expect) = (ExchangeQueue::EMPTY, Vec::new());
        let numbers: Vec<u32> = (0..9).map(|user| exchanges.begin(Exchange::new(0, user, 0, 0, true), 0)).collect();
        for _ in 0..5_000 {
            let number = numbers[rng.uniform_below(9) as usize];
            match (rng.uniform_below(3), expect.iter().position(|other| *other == number)) {
                (0, Some(at)) => {
                    expect.remove(at);
                    assert!(exchanges.remove_from_queue(&mut line, number));
                }
                (1, _) => {
                    let first = (!expect.is_empty()).then(|| expect.remove(0));
                    assert_eq!(exchanges.take_first(&mut line), first);
                }
                (_, None) => {
                    assert!(!exchanges.remove_from_queue(&mut line, number));
                    exchanges.append_to_queue(&mut line, number);
                    expect.push(number);
                }
                _ => {}
            }
            assert_eq!(exchanges.numbers_in_queue(&line).collect::<Vec<_>>(), expect);
            assert_eq!((line.len() as usize, line.is_empty()), (expect.len(), expect.is_empty()));
        }
    }

    #[test]
    fn an_unlimited_timeout_never_passes() {
        let mut exchanges = Exchanges::with_timeouts([u64::MAX].into_iter());
        for now_ns in 5..8 {
            let number = exchanges.begin(Exchange::new(0, 0, 0, 0, true), now_ns);
            assert_eq!(exchanges.first_deadline(), None);
            exchanges.end(number);
        }
    }
}
