//! Addresses as data: ranges of local addresses, their parser, and which target addresses plimsoll
//! may load without `--allow-public`.
//!
//! Not here: host names (resolved before a plan exists) and sockets.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses from `first` to `last`, which are both included and of one family (IPv4 or IPv6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

/// Why a range of addresses could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a range of addresses; write for example 10.0.0.5, 10.0.0.5-10.0.0.9 or 10.0.0.0/24")]
pub struct AddressRangeError(String);

fn address_as_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

impl AddressRange {
    /// Creates the range from `first` to `last`. Returns `None` if the two addresses are of
    /// different families (IPv4, IPv6) or in the wrong order.
    pub fn new(first: IpAddr, last: IpAddr) -> Option<AddressRange> {
        (first.is_ipv4() == last.is_ipv4() && first <= last).then_some(AddressRange { first, last })
    }

    /// Parses a list whose items are an address, `FIRST-LAST` or `ADDRESS/BITS`. In `ADDRESS/BITS`
    /// the network's own address and the IPv4 broadcast address are left out if other addresses
    /// remain.
    pub fn parse_list(text: &str) -> Result<Vec<AddressRange>, AddressRangeError> {
        text.split(',').map(|part| AddressRange::parse(part.trim())).collect()
    }

    fn parse(text: &str) -> Result<AddressRange, AddressRangeError> {
        let error = || AddressRangeError(text.to_owned());
        let address = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| error());
        if let Some((first, last)) = text.split_once('-') {
            return AddressRange::new(address(first)?, address(last)?).ok_or_else(error);
        }
        let Some((base, bits)) = text.split_once('/') else {
            let one = address(text)?;
            return Ok(AddressRange { first: one, last: one });
        };
        let base = address(base)?;
        // Only digits are accepted, because `+24` would parse as a number.
        let bits: u32 = bits.parse().ok().filter(|_| bits.bytes().all(|b| b.is_ascii_digit())).ok_or_else(error)?;
        let width = if base.is_ipv4() { 32 } else { 128 };
        let host_bits = u32::checked_sub(width, bits).ok_or_else(error)?;
        let mask = 1u128.checked_shl(host_bits).unwrap_or(0).wrapping_sub(1);
        let (mut first, mut last) = (address_as_number(base) & !mask, address_as_number(base) | mask);
        if host_bits >= 2 {
            first += 1;
            last -= u128::from(base.is_ipv4());
        }
        let range = AddressRange { first: base, last: base };
        Ok(AddressRange { first: range.address_from_number(first), last: range.address_from_number(last) })
    }

    fn address_from_number(&self, number: u128) -> IpAddr {
        match self.first {
            IpAddr::V4(_) => Ipv4Addr::from(number as u32).into(),
            IpAddr::V6(_) => Ipv6Addr::from(number).into(),
        }
    }

    /// Returns whether an address lies in this range. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.is_ipv4() && self.first <= address && address <= self.last
    }

    /// Returns whether the range has IPv4 addresses.
    pub fn is_ipv4(&self) -> bool {
        self.first.is_ipv4()
    }

    /// Returns the number of addresses of the range, from 1 to u64::MAX; a larger range counts as
    /// u64::MAX.
    pub fn count(&self) -> u64 {
        u64::try_from(address_as_number(self.last) - address_as_number(self.first))
            .unwrap_or(u64::MAX)
            .saturating_add(1)
    }

    /// Returns address number `index` of `0..count()`; larger numbers wrap around.
    pub fn nth(&self, index: u64) -> IpAddr {
        self.address_from_number(address_as_number(self.first) + u128::from(index % self.count()))
    }

    /// Returns address number `index` of several ranges in sequence; larger numbers wrap around.
    /// Returns `None` if the list of ranges is empty.
    pub fn nth_address(ranges: &[AddressRange], index: u64) -> Option<IpAddr> {
        let total = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.count()));
        let mut index = index.checked_rem(total)?;
        for range in ranges {
            if index < range.count() {
                return Some(range.nth(index));
            }
            index -= range.count();
        }
        None
    }
}

impl std::fmt::Display for AddressRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// IPv6 addresses of cloud metadata services. The IPv4 addresses of cloud metadata services are
/// link-local.
const METADATA_SERVICE_IPV6: [Ipv6Addr; 6] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// Returns whether an address is a cloud metadata service, which offers keys and configuration to
/// the machine. The address of a metadata service is link-local over IPv4, or one of a few known
/// addresses over IPv6. A load must never target a metadata service, although its address is
/// private.
pub fn is_metadata_service(address: &IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => METADATA_SERVICE_IPV6.contains(&v6),
    }
}

/// Returns whether a load may target an address without `--allow-public`. The result is true for
/// loopback, private and unspecified addresses and for link-local IPv6 addresses, except cloud
/// metadata services.
pub fn is_private(address: &IpAddr) -> bool {
    if is_metadata_service(address) {
        return false;
    }
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_unspecified(),
    }
}

/// Returns the address that a connection to `address` reaches: 0.0.0.0 and [::] become loopback
/// addresses.
pub fn connection_destination(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn address_ranges_are_parsed_or_refused() {
        for (text, expect) in [
            ("10.0.0.5", Some((1, "10.0.0.5", "10.0.0.5"))),
            ("10.0.0.5-10.0.0.9", Some((5, "10.0.0.5", "10.0.0.9"))),
            ("10.0.0.250-10.0.1.5", Some((12, "10.0.0.250", "10.0.1.5"))),
            ("10.0.0.0/24", Some((254, "10.0.0.1", "10.0.0.254"))),
            ("10.0.0.77/24", Some((254, "10.0.0.1", "10.0.0.254"))),
            ("10.0.0.4/31", Some((2, "10.0.0.4", "10.0.0.5"))),
            ("10.0.0.4/32", Some((1, "10.0.0.4", "10.0.0.4"))),
            ("127.0.0.0/8", Some((16_777_214, "127.0.0.1", "127.255.255.254"))),
            ("0.0.0.0/0", Some((4_294_967_294, "0.0.0.1", "255.255.255.254"))),
            ("fd00::/126", Some((3, "fd00::1", "fd00::3"))),
            ("::/0", Some((u64::MAX, "::1", "::ffff:ffff:ffff:ffff"))),
            ("", None),
            ("10.0.0", None),
            ("10.0.0.9-10.0.0.5", None),
            ("10.0.0.1-::1", None),
            ("10.0.0.0/33", None),
            ("10.0.0.0/-1", None),
            ("10.0.0.0/+8", None),
            ("10.0.0.0/", None),
            ("fd00::/129", None),
            ("localhost", None),
        ] {
            let got = AddressRange::parse(text);
            match (got, expect) {
                (Ok(range), Some((count, first, last))) => {
                    let ends = (range.nth(0).to_string(), range.nth(range.count() - 1).to_string());
                    // If a range has more than u64::MAX addresses, only its first u64::MAX
                    // addresses are used.
                    let last = if count == u64::MAX { ends.1.clone() } else { last.to_owned() };
                    assert_eq!((range.count(), ends), (count, (first.to_owned(), last)), "{text}");
                }
                (Err(error), None) => assert!(error.to_string().contains(text), "{text}"),
                (got, expect) => panic!("{text}: {got:?}, expected {expect:?}"),
            }
        }
        let list = AddressRange::parse_list("10.0.0.1, 10.0.1.0/30").expect("a list");
        let turn: Vec<String> =
            (0..4).filter_map(|i| AddressRange::nth_address(&list, i)).map(|a| a.to_string()).collect();
        assert_eq!(turn, ["10.0.0.1", "10.0.1.1", "10.0.1.2", "10.0.0.1"]);
        assert_eq!(AddressRange::nth_address(&[], 3), None);
    }

    #[test]
    fn public_addresses_need_permission() {
        for (text, private) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("0.0.0.0", true),
            ("::", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:0.0.0.0", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("192.168.0.1", true),
            ("::ffff:10.0.0.1", true),
            ("fd12::1", true),
            ("fe80::1", true),
            ("169.254.169.254", false),
            ("169.254.170.2", false),
            ("::ffff:169.254.169.254", false),
            ("fd00:ec2::254", false),
            ("fd20:ce::254", false),
            ("fe80::a9fe:a9fe", false),
            ("::a9fe:a9fe", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("2002:a9fe:a9fe::", false),
            ("100.100.100.200", false),
            ("93.184.216.34", false),
            ("::ffff:93.184.216.34", false),
            ("2606:2800::1", false),
        ] {
            assert_eq!(is_private(&text.parse().expect(text)), private, "{text}");
        }
        for (text, expect) in
            [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("::ffff:0.0.0.0", "127.0.0.1"), ("10.0.0.1", "10.0.0.1")]
        {
            assert_eq!(connection_destination(text.parse().expect(text)).to_string(), expect);
        }
    }

    proptest! {
        #[test]
        fn an_address_range_contains_each_of_its_addresses(a: u32, b: u32, index: u64) {
            let (first, last) = (Ipv4Addr::from(a.min(b)), Ipv4Addr::from(a.max(b)));
            let range = AddressRange::parse(&format!("{first}-{last}")).expect("a range");
            prop_assert_eq!(range.count(), u64::from(a.max(b) - a.min(b)) + 1);
            let address = range.nth(index);
            prop_assert!(IpAddr::from(first) <= address && address <= IpAddr::from(last));
        }

        #[test]
        fn any_range_text_is_parsed_or_refused(text in "[0-9a-f.:/, -]{0,40}") {
            let _ = AddressRange::parse_list(&text);
        }
    }
}
