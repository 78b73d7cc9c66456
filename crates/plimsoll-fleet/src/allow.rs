//! The addresses to which an agent may send load ([`AllowList`]). The list is set on the agent, so
//! no plan can extend the list. An empty list permits nothing. Addresses of cloud metadata services
//! are never permitted.
//!
//! The target addresses of a plan are checked before any connection opens. Options that could lead
//! to other addresses during the load (repeated name resolution, unix sockets) are refused.

use plimsoll_model::addresses::{connection_destination, is_metadata_service};
use plimsoll_model::{AddressRange, Plan};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// The addresses and ports to which an agent may send load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<AllowEntry>,
    /// Addresses that are never permitted, even if an entry of the list contains them: the
    /// addresses of the agent's own message bus.
    excluded: Vec<SocketAddr>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowEntry {
    addresses: AddressRange,
    ports: RangeInclusive<u16>,
}

impl AllowList {
    /// Parses a list such as `10.0.0.0/8:8080,192.168.1.5,[::1]:80-90`. An entry without a port
    /// permits all ports.
    pub fn parse(text: &str) -> Result<AllowList, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(AllowEntry::parse);
        Ok(AllowList { entries: entries.collect::<Result<_, _>>()?, excluded: Vec::new() })
    }

    /// Returns the list without the addresses in `excluded`, which are then never permitted.
    pub fn without_addresses(self, excluded: Vec<SocketAddr>) -> AllowList {
        AllowList { excluded, ..self }
    }

    /// Returns the text of a list that permits exactly these addresses.
    pub fn list_text(addresses: &[SocketAddr]) -> String {
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// Whether the list permits nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_permitted(&self, address: &SocketAddr) -> bool {
        let ip = connection_destination(address.ip()).to_canonical();
        let is_there = |entry: &AllowEntry| {
            // A range ADDRESS/BITS does not contain its network and broadcast addresses, which are
            // not valid targets.
            entry.addresses.contains(ip) && entry.ports.contains(&address.port())
        };
        !is_metadata_service(&ip) && !self.is_excluded(address) && self.entries.iter().any(is_there)
    }

    fn is_excluded(&self, address: &SocketAddr) -> bool {
        let place = |address: &SocketAddr| (connection_destination(address.ip()).to_canonical(), address.port());
        self.excluded.iter().any(|excepted| place(excepted) == place(address))
    }

    /// Checks whether the list permits the target addresses of a plan. An error is a sentence to
    /// which the coordinator adds the agent's name.
    pub fn check(&self, plan: &Plan) -> Result<(), String> {
        let connection_plan = &plan.connection_plan;
        if connection_plan.unix.is_some() {
            return Err("the agent never sends load to unix sockets: name a host and port".to_owned());
        }
        if connection_plan.resolve.is_some() {
            return Err("the agent sends load only to addresses that the agent checked before the load: leave \
                --resolve-every out"
                .to_owned());
        }
        if connection_plan.addresses.is_empty() {
            return Err("the load plan has no target address".to_owned());
        }
        match connection_plan.addresses.iter().find(|address| !self.is_permitted(address)) {
            None => Ok(()),
            Some(address) if is_metadata_service(&address.ip()) => Err(format!(
                "the agent never sends load to {address}, where clouds serve a machine's credentials: choose \
                 another target"
            )),
            Some(address) if self.is_excluded(address) => Err(format!(
                "the agent never sends load to {address}, its own bus (NATS server): choose another target"
            )),
            Some(address) => Err(format!(
                "the agent does not permit load on {address}: start the agent with --allow {address}, or choose \
                 another target"
            )),
        }
    }
}

impl AllowEntry {
    fn parse(text: &str) -> Result<AllowEntry, String> {
        let error = || {
            format!(
                "'{text}' is not an address to allow; write for example 10.0.0.0/8:8080, 10.0.0.5 or \
                [::1]:80"
            )
        };
        let (address, ports) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']').ok_or_else(error)?;
                match (after, after.strip_prefix(':')) {
                    ("", _) => (address, None),
                    (_, Some(ports)) => (address, Some(ports)),
                    _ => return Err(error()),
                }
            }
            None => match text.split_once(':') {
                Some((address, ports)) if !ports.contains(':') => (address, Some(ports)),
                _ => (text, None),
            },
        };
        let [addresses] = AddressRange::parse_list(address).map_err(|_| error())?[..] else { return Err(error()) };
        let port = |text: &str| text.parse::<u16>().map_err(|_| error());
        let ports = match ports.map(|ports| ports.split_once('-').unwrap_or((ports, ports))) {
            None => 0..=u16::MAX,
            Some((first, last)) => port(first)?..=port(last)?,
        };
        if ports.is_empty() { Err(error()) } else { Ok(AllowEntry { addresses, ports }) }
    }
}

/// Whether an IP address belongs to this machine.
pub fn is_on_this_machine(ip: &IpAddr) -> bool {
    plimsoll_sys::tcp::is_local(ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape, ResolveSpec};

    fn plan_with_addresses(addresses: &str) -> Plan {
        let addresses = addresses.split_whitespace().map(|address| address.parse().expect(address)).collect();
        Plan::for_get_request("h", 80, addresses, LoadShape::Closed { users: LoadCurve::constant(1.0) })
    }

    #[test]
    fn load_is_permitted_only_on_listed_addresses() {
        for (allow, addresses, refused) in [
            ("", "127.0.0.1:80", Some("--allow 127.0.0.1:80")),
            ("127.0.0.1", "127.0.0.1:80", None),
            ("127.0.0.1:80", "127.0.0.1:80", None),
            ("127.0.0.1:80", "127.0.0.1:81", Some("127.0.0.1:81")),
            ("127.0.0.1:80-90", "127.0.0.1:85", None),
            ("10.0.0.0/8:8080", "10.1.2.3:8080", None),
            ("10.0.0.0/8:8080", "10.1.2.3:8080 11.0.0.1:8080", Some("11.0.0.1:8080")),
            ("10.0.0.0/8, [::1]:80", "[::1]:80", None),
            ("::1", "[::1]:80", None),
            // Different notations of one address count as the same address.
            ("10.0.0.1", "[::ffff:10.0.0.1]:80", None),
            ("127.0.0.1", "0.0.0.0:80", None),
            ("0.0.0.1-255.255.255.254", "169.254.169.254:80", Some("credentials")),
            ("0.0.0.1-255.255.255.254", "[::ffff:169.254.169.254]:80", Some("credentials")),
            ("127.0.0.1", "", Some("no target address")),
        ] {
            let list = AllowList::parse(allow).expect(allow);
            match (list.check(&plan_with_addresses(addresses)), refused) {
                (Ok(()), None) => {}
                (Err(said), Some(part)) => assert!(said.contains(part), "{allow}: {said}"),
                (got, expect) => panic!("{allow} {addresses}: {got:?}, expected {expect:?}"),
            }
        }
    }

    #[test]
    fn the_message_bus_is_never_a_load_target() {
        let bus = "127.0.0.1:4222".parse().expect("an address");
        let list = AllowList::parse("127.0.0.1").expect("a list").without_addresses(vec![bus]);
        for (address, is_refused) in
            [("127.0.0.1:4222", true), ("[::ffff:127.0.0.1]:4222", true), ("127.0.0.1:4223", false)]
        {
            let refused = list.check(&plan_with_addresses(address)).is_err_and(|said| said.contains("its own bus"));
            assert_eq!(refused, is_refused, "{address}");
        }
    }

    #[test]
    fn plans_that_may_reach_other_addresses_are_refused() {
        let list = AllowList::parse("127.0.0.1").expect("a list");
        let mut named = plan_with_addresses("127.0.0.1:80");
        named.connection_plan.resolve = Some(ResolveSpec { host: "h".into(), port: 80, every_ns: 1, public: false });
        let mut unix = plan_with_addresses("127.0.0.1:80");
        unix.connection_plan.unix = Some("/run/x".into());
        assert!(list.check(&named).is_err_and(|said| said.contains("--resolve-every")));
        assert!(list.check(&unix).is_err_and(|said| said.contains("unix")));
    }

    #[test]
    fn invalid_allow_lists_are_refused() {
        for text in ["host", "10.0.0.1:x", "10.0.0.1:90-80", "[::1", "[::1]80", "10.0.0.1:80:90", "10.0.0.0/40", ":80"]
        {
            assert!(AllowList::parse(text).is_err_and(|said| said.contains(text)), "{text}");
        }
        let addresses: Vec<SocketAddr> = ["127.0.0.1:80", "[::1]:81"].iter().map(|it| it.parse().expect(it)).collect();
        assert_eq!(AllowList::parse(&AllowList::list_text(&addresses)).expect("a list").entries.len(), 2);
        assert!(AllowList::parse(" ").expect("a list").is_empty());
    }
}
