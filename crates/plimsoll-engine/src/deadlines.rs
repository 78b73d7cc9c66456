//! Deadlines of requests under way. All requests of a plan have the same timeout, so the queue of deadlines is the queue
//! of starts: a doubly linked list through the connection slots, with everything at constant cost and no allocation.

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    at_ns: u64,
    queued: bool,
}

/// Slots in the order of their deadlines.
#[derive(Debug)]
pub struct Deadlines {
    links: Vec<Link>,
    first: u32,
    last: u32,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines { links: Vec::new(), first: NONE, last: NONE }
    }
}

impl Deadlines {
    /// Makes room for one more slot.
    pub fn add_slot(&mut self) {
        self.links.push(Link { before: NONE, after: NONE, at_ns: 0, queued: false });
    }

    /// Sets the deadline of `slot`, which must not have one, no earlier than those set before.
    #[inline]
    pub fn push(&mut self, slot: u32, at_ns: u64) {
        debug_assert!(!self.links[slot as usize].queued);
        self.links[slot as usize] = Link { before: self.last, after: NONE, at_ns, queued: true };
        match self.last {
            NONE => self.first = slot,
            last => self.links[last as usize].after = slot,
        }
        self.last = slot;
    }

    /// Takes the deadline of `slot` away, if it has one.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        let link = self.links[slot as usize];
        if !link.queued {
            return;
        }
        match link.before {
            NONE => self.first = link.after,
            before => self.links[before as usize].after = link.after,
        }
        match link.after {
            NONE => self.last = link.before,
            after => self.links[after as usize].before = link.before,
        }
        self.links[slot as usize].queued = false;
    }

    /// The deadline of `slot`, if it has one.
    #[inline]
    pub fn of(&self, slot: u32) -> Option<u64> {
        let link = &self.links[slot as usize];
        link.queued.then_some(link.at_ns)
    }

    /// The earliest deadline and its slot.
    #[inline]
    pub fn first(&self) -> Option<(u64, u32)> {
        (self.first != NONE).then(|| (self.links[self.first as usize].at_ns, self.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn is_a_queue_with_removal_from_anywhere() {
        let mut rng = plimsoll_model::rng::Rng::new(3);
        let mut deadlines = Deadlines::default();
        (0..20).for_each(|_| deadlines.add_slot());
        let mut expect: VecDeque<(u64, u32)> = VecDeque::new();
        for at_ns in 0..10_000 {
            let slot = rng.below(20) as u32;
            if expect.iter().any(|(_, s)| *s == slot) {
                deadlines.remove(slot);
                expect.retain(|(_, s)| *s != slot);
            } else {
                deadlines.remove(slot);
                deadlines.push(slot, at_ns);
                expect.push_back((at_ns, slot));
            }
            assert_eq!(deadlines.first(), expect.front().copied());
        }
    }
}
