//! What `plimsoll explain` may change to tell causes apart, and the plans with one thing changed: everything else of them stays
//! as it was asked.
//!
//! Not here: which changes are made and what they say (`plimsoll-analysis`).

use crate::args::ChangeArgs;
use crate::failure::Failure;
use crate::quantity::flag;
use crate::runner::{PLACE, Variant};
use crate::target::Url;
use plimsoll_model::expect::Expectations;
use plimsoll_model::intervention::VARIED_MAX;
use plimsoll_model::terms::ChangeTerms;
use plimsoll_model::traffic::Filled;
use plimsoll_model::units::parse_number;
use plimsoll_model::{AddressRange, HttpChoice, Injector, Intervention, Plan, Request, Route, StatusSet, Terms};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A path that hardly any server has: what answers it is what every request meets.
const NOWHERE: &str = "/plimsoll-reference";
/// Any answer of a path that does little will do, but that it is too much.
const ANY_ANSWER: &str = "100-428,430-502,504-599";

/// What the flags say.
pub fn terms(args: &ChangeArgs) -> Result<ChangeTerms<String>, Failure> {
    let identities = args.identities.iter().map(|text| identity(text)).collect::<Result<_, Failure>>()?;
    let vary = args.vary.clone();
    if vary.as_ref().is_some_and(|command| !command.contains(PLACE)) {
        return Err(Failure::usage(format!("--vary: it has no {PLACE}, where the value goes")));
    }
    Ok(ChangeTerms { none: args.no_intervene, reference: args.reference.clone(), identities, vary })
}

/// A header field by which another client names itself, as it is recorded.
pub fn identity(text: &str) -> Result<String, Failure> {
    // The text may hold a secret: it is not repeated.
    let (name, value) = text.split_once(':').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
        Failure::usage("--identity: write it as 'Name: value', a header by which another client names itself")
    })?;
    Ok(format!("{}: {}", name.trim(), value.trim()))
}

/// The values of a setting that are tried.
pub fn values(args: &ChangeArgs) -> Result<Vec<f64>, Failure> {
    let Some(text) = &args.values else { return Ok(Vec::new()) };
    let values: Vec<f64> =
        text.split(',').map(|value| flag("--values", parse_number(value.trim()))).collect::<Result<_, _>>()?;
    match values.iter().all(|value| *value > 0.0) && (2..=VARIED_MAX).contains(&values.len()) {
        true => Ok(values),
        false => Err(Failure::usage(format!("--values: give 2 to {VARIED_MAX} values above 0, such as 2,4,8"))),
    }
}

/// What may be changed of this request, as far as it can be told before anybody is asked.
pub fn possible(plan: &Plan, terms: &Terms<String>) -> Result<Vec<Intervention>, Failure> {
    if terms.changes.none {
        return Ok(Vec::new());
    }
    reference(plan, terms)?;
    // What one answer gives the next request is not in that of another path, nor in that of a HEAD; and what a script asks is asked
    // in no other way.
    let scripted = terms.script.is_some();
    let alone = !scripted && plan.traffic.routes.iter().all(|route| route.captures.is_empty());
    let gets = alone && plan.traffic.routes.iter().all(|route| route.request.method == "GET");
    Ok(Intervention::ALL
        .into_iter()
        .filter(|change| match change {
            Intervention::Control => false,
            Intervention::Reference => alone,
            Intervention::Identities if scripted => false,
            Intervention::MoreUsers | Intervention::Bursts => true,
            Intervention::NewConnections => plan.carriage.keep_alive,
            Intervention::KeptConnections => !plan.carriage.keep_alive,
            Intervention::Head => gets,
            Intervention::Identities => !terms.changes.identities.is_empty(),
            Intervention::Sources => plan.carriage.unix.is_none() && terms.injector.sources.is_empty(),
        })
        .collect())
}

/// The plans of those that need another one; who has none here and needs one cannot be made of this target, and is left out.
pub fn variants(
    wanted: &[Intervention],
    (plan, injector): (&Plan, &Injector),
    terms: &Terms<String>,
) -> Result<BTreeMap<Intervention, Variant>, Failure> {
    let mut variants = BTreeMap::new();
    for change in wanted {
        let same = || (plan.clone(), injector.clone());
        let changed = match change {
            Intervention::Control | Intervention::MoreUsers | Intervention::Bursts => None,
            Intervention::Reference => Some((of_reference(plan, reference(plan, terms)?), injector.clone())),
            Intervention::NewConnections if speaks_http1(plan) => {
                let (mut plan, injector) = same();
                // A reset leaves no port behind: ours would end before the server does.
                (plan.carriage.keep_alive, plan.carriage.close_reset) = (false, true);
                Some((plan, injector))
            }
            Intervention::NewConnections => None,
            Intervention::KeptConnections => {
                let (mut plan, injector) = same();
                (plan.carriage.keep_alive, plan.carriage.close_reset) = (true, false);
                Some((plan, injector))
            }
            Intervention::Head => {
                let (mut plan, injector) = same();
                for route in &mut plan.traffic.routes {
                    route.request.method = "HEAD".to_owned();
                    // Its answer has no content of which anything could be expected.
                    route.expect = Expectations::default();
                }
                Some((plan, injector))
            }
            Intervention::Identities => Some((of_identities(plan, &terms.changes.identities), injector.clone())),
            Intervention::Sources => {
                sources(plan).map(|sources| (plan.clone(), Injector { sources, ..injector.clone() }))
            }
        };
        variants.extend(changed.map(|(plan, injector)| (*change, Variant { plan, injector })));
    }
    Ok(variants)
}

/// Those of `wanted` that can be made: their plan is there, or they need none of their own.
pub fn made(wanted: &[Intervention], variants: &BTreeMap<Intervention, Variant>) -> Vec<Intervention> {
    let needs_none = |change: &Intervention| matches!(change, Intervention::MoreUsers | Intervention::Bursts);
    wanted.iter().copied().filter(|change| needs_none(change) || variants.contains_key(change)).collect()
}

/// Over HTTP/2 a connection for each request is nobody's way.
fn speaks_http1(plan: &Plan) -> bool {
    match plan.carriage.http {
        HttpChoice::H1 => true,
        HttpChoice::H2 => false,
        HttpChoice::Auto => plan.carriage.tls.is_none(),
    }
}

/// Path and query of what does little.
fn reference(plan: &Plan, terms: &Terms<String>) -> Result<String, Failure> {
    let Some(text) = &terms.changes.reference else { return Ok(NOWHERE.to_owned()) };
    if text.starts_with('/') {
        return Ok(text.clone());
    }
    let url = Url::read(text).map_err(|failure| Failure::usage(format!("--reference: {failure}")))?;
    match url.origin == plan.traffic.origin {
        true => Ok(url.path),
        false => Err(Failure::usage(format!(
            "--reference: {} is another server than {}; give a path of the same one",
            url.origin, plan.traffic.origin
        ))),
    }
}

fn of_reference(plan: &Plan, target: String) -> Plan {
    let mut plan = plan.clone();
    let asked = &plan.traffic.routes[0];
    // What describes a body goes with it.
    let describes_body = |name: &str| name.to_ascii_lowercase().starts_with("content-");
    let headers = asked.request.headers.iter().filter(|(name, _)| !describes_body(name)).cloned().collect();
    let request = Request { method: "GET".to_owned(), target, headers, body: Vec::new() };
    let filled = Filled { headers: asked.filled.headers, ..Filled::default() };
    let ok_status = StatusSet::parse(ANY_ANSWER).unwrap_or_default();
    plan.traffic.routes = vec![Route { ok_status, timeout_ns: asked.timeout_ns, filled, ..Route::new(request) }];
    plan.traffic.first = Some(0);
    plan
}

/// Each request by the client that was asked with, and by the others, in equal parts.
fn of_identities(plan: &Plan, identities: &[String]) -> Plan {
    let mut plan = plan.clone();
    let own = plan.traffic.routes.clone();
    for (number, identity) in identities.iter().enumerate() {
        let Some((name, value)) = identity.split_once(": ") else { continue };
        plan.traffic.routes.extend(own.iter().map(|route| {
            let mut route = route.clone();
            let headers = &mut route.request.headers;
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            headers.push((name.to_owned(), value.to_owned()));
            route.label = format!("{} (client {})", route.label, number + 2);
            route
        }));
    }
    plan
}

/// Other addresses of this machine from which the target is reached: those of the loopback only, as nobody has leave for others.
fn sources(plan: &Plan) -> Option<Vec<AddressRange>> {
    let loopback = |address: &SocketAddr| matches!(address.ip(), IpAddr::V4(v4) if v4.is_loopback());
    let addresses = &plan.carriage.addresses;
    if addresses.is_empty() || !addresses.iter().all(loopback) {
        return None;
    }
    let address = |last: u8| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    AddressRange::new(address(1), address(4)).map(|range| vec![range])
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Curve, LoadShape};

    fn plan() -> Plan {
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 80))];
        let mut plan = Plan::get("h", 80, addresses, LoadShape::Closed { users: Curve::constant(1.0) });
        let request = &mut plan.traffic.routes[0].request;
        request.headers = vec![("X-Api-Key".into(), "one".into()), ("Content-Type".into(), "text/plain".into())];
        plan
    }

    fn with(changes: ChangeTerms<String>) -> Terms<String> {
        Terms { changes, ..Terms::default() }
    }

    fn changed(change: Intervention, plan: &Plan, terms: &Terms<String>) -> Option<Variant> {
        variants(&[change], (plan, &Injector::default()), terms).expect("can be made").remove(&change)
    }

    #[test]
    fn one_thing_is_changed() {
        let (plan, terms) =
            (plan(), with(ChangeTerms { identities: vec!["x-api-key: two".into()], ..ChangeTerms::default() }));
        let reference = changed(Intervention::Reference, &plan, &terms).expect("a plan").plan;
        let route = &reference.traffic.routes[0];
        assert_eq!((route.request.target.as_str(), route.request.headers.len()), (NOWHERE, 1));
        assert!(route.ok_status.contains(404) && !route.ok_status.contains(429) && !route.ok_status.contains(503));
        assert_eq!((&reference.carriage, &reference.load), (&plan.carriage, &plan.load));

        let clients = changed(Intervention::Identities, &plan, &terms).expect("a plan").plan;
        let values: Vec<&str> = clients
            .traffic
            .routes
            .iter()
            .flat_map(|route| &route.request.headers)
            .filter(|(name, _)| name.eq_ignore_ascii_case("x-api-key"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(values, ["one", "two"]);

        let fresh = changed(Intervention::NewConnections, &plan, &terms).expect("a plan").plan;
        assert!(!fresh.carriage.keep_alive && fresh.carriage.close_reset && fresh.traffic == plan.traffic);
        let sources = changed(Intervention::Sources, &plan, &terms).expect("a plan");
        assert_eq!((sources.plan == plan, sources.injector.sources.len()), (true, 1));
        assert!(changed(Intervention::MoreUsers, &plan, &terms).is_none());
    }

    #[test]
    fn what_cannot_be_made_is_left_out() {
        let all = possible(&plan(), &Terms::default()).expect("understood");
        assert!(all.contains(&Intervention::Reference) && !all.contains(&Intervention::Identities));
        assert!(!all.contains(&Intervention::KeptConnections) && !all.contains(&Intervention::Control));
        let none = with(ChangeTerms { none: true, ..ChangeTerms::default() });
        assert_eq!(possible(&plan(), &none).expect("understood"), []);
        let mut remote = plan();
        remote.carriage.addresses = vec![SocketAddr::from(([10, 0, 0, 1], 80))];
        remote.carriage.http = HttpChoice::H2;
        let variants = variants(&all, (&remote, &Injector::default()), &Terms::default()).expect("can be made");
        let made = made(&all, &variants);
        assert!(!made.contains(&Intervention::Sources) && !made.contains(&Intervention::NewConnections));
        assert!(made.contains(&Intervention::MoreUsers) && made.contains(&Intervention::Reference));
    }

    #[test]
    fn a_reference_is_on_the_same_server() {
        let at = |text: &str| with(ChangeTerms { reference: Some(text.to_owned()), ..ChangeTerms::default() });
        for (text, expect) in [("/ping", "/ping"), ("http://h/ping?x=1", "/ping?x=1")] {
            assert_eq!(reference(&plan(), &at(text)).expect(text), expect);
        }
        let refused = reference(&plan(), &at("http://other/ping")).expect_err("another server");
        assert!(refused.to_string().contains("--reference"), "{refused}");
    }
}
