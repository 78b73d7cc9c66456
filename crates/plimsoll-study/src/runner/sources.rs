//! Chooses the loopback source address of the next load. Closed connections keep their ports for a
//! minute (TIME-WAIT), and the kernel searches for free ports one by one. If most ports of an
//! address are in TIME-WAIT, this search would delay the requests of the next load. A loopback
//! target is reachable from other loopback addresses, and each loopback address has its own ports.
//!
//! Not here: several addresses within one load (`capacity`), and the check that the target responds
//! from an address (`preflight`).

use plimsoll_model::{AddressRange, ConnectionPlan, Injector, Plan};
use std::net::{IpAddr, Ipv4Addr};

/// The number of closed connections from one address after which the next load uses another
/// address.
const TIME_WAIT_CONNECTIONS_MAX: u64 = 2_000;
/// The number of addresses that are used in turn, 127.0.0.1 first. Using all addresses once takes
/// longer than a port stays in TIME-WAIT (one minute).
const LOCAL_ADDRESS_COUNT: u8 = 254;

/// The local addresses of successive loads, used in turn.
#[derive(Debug, Default)]
pub struct SourceAddressRotation {
    /// Whether successive loads may use different source addresses.
    is_enabled: bool,
    /// The number of the current source address, from 0.
    number: u8,
    /// The number of closed connections that earlier loads opened from the current address.
    closed_connections: u64,
    /// The number of addresses that loads have used so far.
    used_address_count: u64,
    /// Whether the target responds to requests from loopback addresses other than 127.0.0.1; `None`
    /// before the check.
    is_served: Option<bool>,
}

impl SourceAddressRotation {
    /// Creates source addresses that may change from load to load.
    pub fn with_changes_between_loads() -> SourceAddressRotation {
        SourceAddressRotation { is_enabled: true, ..SourceAddressRotation::default() }
    }

    /// Counts the connections of an ended load as closed connections of the current source address.
    pub fn record_closed_connections(&mut self, connections: u64) {
        self.closed_connections = self.closed_connections.saturating_add(connections);
    }

    /// Returns the generator settings with a source address for the next load; `None` if the
    /// settings `injector` stay as they are. `is_served` checks whether the target responds to
    /// requests from an address, and returns `None` if the check has no result now.
    ///
    /// If the target does not respond to requests from another address, no further address is
    /// tried.
    pub fn injector_for_next_load(
        &mut self,
        plan: &Plan,
        injector: &Injector,
        is_served: impl FnOnce(&Injector) -> Option<bool>,
    ) -> Option<Injector> {
        if !self.is_enabled || !can_change_source_address(&plan.connection_plan) || !injector.sources.is_empty() {
            return None;
        }
        let from = |number: u8| {
            let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + number));
            Injector { sources: AddressRange::new(address, address).into_iter().collect(), ..injector.clone() }
        };
        if self.closed_connections > TIME_WAIT_CONNECTIONS_MAX && self.is_served != Some(false) {
            let other = (self.number + 1) % LOCAL_ADDRESS_COUNT;
            if self.is_served.is_none() {
                self.is_served = is_served(&from(other));
            }
            if self.is_served == Some(true) {
                (self.number, self.closed_connections) = (other, 0);
                self.used_address_count = self.used_address_count.max(u64::from(other) + 1);
            }
        }
        (self.number > 0).then(|| from(self.number))
    }

    /// Returns the number of addresses that loads have used so far, including the addresses in
    /// `injector`. Loads use loopback addresses in ascending order, so the largest number so far
    /// counts all used addresses. The number is recorded, because each source address has its own
    /// local ports.
    pub fn record_addresses_used(&mut self, injector: &Injector) -> u64 {
        let given = injector.sources.iter().fold(0u64, |sum, range| sum.saturating_add(range.count()));
        self.used_address_count = self.used_address_count.max(given).max(u64::from(self.number) + 1);
        self.used_address_count
    }
}

/// Whether loads may move to other loopback addresses because closed connections leave ports in
/// TIME-WAIT. Loads without keep-alive do not move, because `capacity` already gives these loads
/// many addresses.
fn can_change_source_address(connection_plan: &ConnectionPlan) -> bool {
    let is_loopback = |ip: IpAddr| matches!(ip, IpAddr::V4(v4) if v4.is_loopback());
    let addresses = &connection_plan.addresses;
    let on_loopback = !addresses.is_empty() && addresses.iter().all(|address| is_loopback(address.ip()));
    on_loopback && connection_plan.unix.is_none() && connection_plan.keep_alive && !connection_plan.close_reset
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape};

    fn plan_with_address(address: &str) -> Plan {
        let addresses = vec![address.parse().expect("an address")];
        Plan::for_get_request("h", 80, addresses, LoadShape::Closed { users: LoadCurve::constant(1.0) })
    }

    fn last_source_octet(injector: Option<Injector>) -> u8 {
        let Some(injector) = injector else { return 0 };
        match AddressRange::nth_address(&injector.sources, 0) {
            Some(IpAddr::V4(v4)) => v4.octets()[3],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_load_changes_source_address_when_many_ports_are_used() {
        let (plan, injector) = (plan_with_address("127.0.0.1:80"), Injector::default());
        let mut sources = SourceAddressRotation::with_changes_between_loads();
        let mut asked = 0;
        let mut next = |sources: &mut SourceAddressRotation| {
            last_source_octet(sources.injector_for_next_load(&plan, &injector, |from| {
                asked += 1;
                assert_eq!(last_source_octet(Some(from.clone())), 2);
                Some(true)
            }))
        };
        assert_eq!(next(&mut sources), 0);
        for (left, from) in [(1_000, 0), (1_000, 0), (1, 2), (10_000, 3), (5, 3), (1_995, 3), (1, 4)] {
            sources.record_closed_connections(left);
            assert_eq!(next(&mut sources), from, "{left}");
        }
        assert_eq!(sources.record_addresses_used(&injector), 4);
        for turn in 4..=LOCAL_ADDRESS_COUNT {
            sources.record_closed_connections(10_000);
            // After the last address, the system chooses the address again, as for the very first
            // load.
            assert_eq!(next(&mut sources), if turn == LOCAL_ADDRESS_COUNT { 0 } else { turn + 1 });
        }
        assert_eq!((asked, sources.record_addresses_used(&injector)), (1, u64::from(LOCAL_ADDRESS_COUNT)));
    }

    #[test]
    fn source_addresses_of_loads_are_counted() {
        let from =
            |list: &str| Injector { sources: AddressRange::parse_list(list).expect(list), ..Injector::default() };
        let mut sources = SourceAddressRotation::with_changes_between_loads();
        for (number, injector, so_far) in [
            (0, Injector::default(), 1),
            (1, from("127.0.0.2"), 2),
            // All four source addresses of an intervention count, and 127.0.0.1, which the first
            // load used, is one of the four addresses.
            (1, from("127.0.0.1-127.0.0.4"), 4),
            (2, from("127.0.0.3"), 4),
            (6, from("127.0.0.7"), 7),
            (0, Injector::default(), 7),
        ] {
            sources.number = number;
            assert_eq!(sources.record_addresses_used(&injector), so_far, "{injector:?}");
        }
    }

    #[test]
    fn source_addresses_change_only_where_useful_and_served() {
        let own = Injector {
            sources: AddressRange::new(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()).into_iter().collect(),
            ..Injector::default()
        };
        let changed = |change: fn(&mut ConnectionPlan)| {
            let mut plan = plan_with_address("127.0.0.1:80");
            change(&mut plan.connection_plan);
            plan
        };
        for (plan, injector) in [
            (plan_with_address("10.0.0.1:80"), Injector::default()),
            (plan_with_address("[::1]:80"), Injector::default()),
            (plan_with_address("127.0.0.1:80"), own),
            (changed(|connection_plan| connection_plan.keep_alive = false), Injector::default()),
            (changed(|connection_plan| connection_plan.close_reset = true), Injector::default()),
            (changed(|connection_plan| connection_plan.unix = Some("/run/x".into())), Injector::default()),
        ] {
            let mut sources = SourceAddressRotation::with_changes_between_loads();
            sources.record_closed_connections(100_000);
            assert!(
                sources.injector_for_next_load(&plan, &injector, |_| panic!("nothing is asked")).is_none(),
                "{:?}",
                plan.connection_plan
            );
        }
        let (plan, injector) = (plan_with_address("127.0.0.1:80"), Injector::default());
        let mut sources = SourceAddressRotation::with_changes_between_loads();
        for (said, from, asked) in
            [(None, 0, true), (None, 0, true), (Some(false), 0, true), (Some(true), 0, false), (Some(true), 0, false)]
        {
            sources.record_closed_connections(10_000);
            let mut is_asked = false;
            let next = sources.injector_for_next_load(&plan, &injector, |_| {
                is_asked = true;
                said
            });
            assert_eq!((last_source_octet(next), is_asked), (from, asked));
        }
    }
}
