//! The interventions (experiments) of `plimsoll explain` and their plans. Each intervention changes
//! exactly one property of the load, to show how the server reacts.
//!
//! Most interventions need a changed plan; some interventions only change the number of users or
//! the times of the requests.
//!
//! Not here: the choice of interventions and their meaning (`plimsoll-analysis`).

use crate::runner::PlanVariant;
use crate::runner::part_processes::FURTHER_PROCESSES;
use crate::{grpc, preflight};
use plimsoll_model::expect::Expectations;
use plimsoll_model::experiment_settings::InterventionSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::traffic::TemplateFlags;
use plimsoll_model::{
    AddressRange, ExperimentSettings, HttpChoice, Injector, Intervention, Plan, Request, Route, Spin, StatusSet,
};
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_traffic::target_url::Url;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A URL path that hardly any server has. A response to an unknown path (usually 404) costs the
/// server only the work that every request needs.
const UNKNOWN_PATH: &str = "/plimsoll-reference";
/// The HTTP statuses that count as success for the cheap reference request. Only overload (429) and
/// a proxy's own errors (502 to 504) count as failures.
const REFERENCE_OK_STATUSES: &str = "100-428,430-501,505-599";

/// The HTTP status of a response to a range request (Partial Content).
const PARTIAL_CONTENT: u16 = 206;

/// Returns the body of --other-body, and whether this body is longer than the longest body of the
/// plan. Returns `None` without the flag --other-body. Fails if no request has a body, or if the
/// body of --other-body is as long as the plan's longest body.
fn read_other_body_flag(
    plan: &Plan,
    settings: &ExperimentSettings<String>,
) -> Result<Option<(Vec<u8>, bool)>, Failure> {
    let Some(text) = &settings.interventions.other_body else { return Ok(None) };
    let longest = plan.traffic.routes.iter().map(|route| route.request.body.len()).max().unwrap_or(0);
    if longest == 0 || settings.script.is_some() {
        return Err(Failure::usage("--other-body: no request has a body to replace; add -b"));
    }
    let bytes = match text.strip_prefix('@') {
        Some(path) => files::read(path.as_ref(), FilePurpose::Body)
            .map_err(|why| Failure::cannot_start(format!("--other-body: the file '{path}' {why}")))?,
        None => text.as_bytes().to_vec(),
    };
    match bytes.len().cmp(&longest) {
        Ordering::Equal => Err(Failure::usage(format!(
            "--other-body: this body and the request body both have {longest} bytes; give a longer or a shorter body"
        ))),
        order => Ok(Some((bytes, order == Ordering::Greater))),
    }
}

/// Returns the interventions that the plan and the settings permit. No request is sent, so the
/// target may still lack support for one of the returned interventions.
pub fn interventions_possible_before_load(
    plan: &Plan,
    settings: &ExperimentSettings<String>,
) -> Result<Vec<Intervention>, Failure> {
    if settings.interventions.none {
        return Ok(Vec::new());
    }
    reference_path(plan, settings)?;
    let longer = read_other_body_flag(plan, settings)?.map(|(_, longer)| longer);
    // If later requests need values from earlier responses (captures), the plan's path and method
    // cannot be changed. The requests of a script cannot be changed.
    let scripted = settings.script.is_some();
    let alone = !scripted && plan.traffic.routes.iter().all(|route| route.captures.is_empty());
    let gets = alone && plan.traffic.routes.iter().all(|route| route.request.method == "GET");
    Ok(Intervention::ALL
        .into_iter()
        .filter(|change| match change {
            Intervention::Control => false,
            Intervention::Reference => alone,
            Intervention::Identities if scripted => false,
            Intervention::MoreUsers
            | Intervention::Bursts
            | Intervention::BurstsAtTwiceConcurrency
            | Intervention::BurstsAtConcurrency => true,
            Intervention::NewConnections => plan.connection_plan.keep_alive,
            Intervention::KeptConnections => !plan.connection_plan.keep_alive,
            Intervention::Head => gets,
            Intervention::Identities => !settings.interventions.identities.is_empty(),
            // The machines of a fleet are several generators already, and each machine has its own
            // address.
            Intervention::Sources | Intervention::SecondGenerator if settings.fleet.is_some() => false,
            Intervention::Sources => plan.connection_plan.unix.is_none() && settings.injector.sources.is_empty(),
            // The user's connection limit applies to all generator processes together, so no second
            // generator process starts.
            Intervention::SecondGenerator => !scripted && settings.connections_max.is_none(),
            Intervention::LargerBody => longer == Some(true),
            Intervention::SmallerBody => longer == Some(false),
            Intervention::SmallerAnswer => gets && settings.preflight,
            Intervention::DependencyPauses => !settings.interventions.may_signal.is_empty(),
        })
        .collect())
}

/// Returns the `possible` interventions for which the user gave a flag with a value.
pub fn explicitly_requested_interventions(
    possible: &[Intervention],
    settings: &InterventionSettings<String>,
) -> Vec<Intervention> {
    use Intervention::{DependencyPauses, Identities, LargerBody, Reference, SmallerBody};
    let is_asked_for = |change: &Intervention| match change {
        Identities | LargerBody | SmallerBody | DependencyPauses => true,
        Reference => settings.reference.is_some(),
        _ => false,
    };
    possible.iter().copied().filter(is_asked_for).collect()
}

/// Returns the changed plan and generator settings of each wanted intervention that needs a changed
/// plan. The result has no entry for an intervention that the target does not support.
pub fn intervention_variants(
    wanted: &[Intervention],
    (plan, injector): (&Plan, &Injector),
    settings: &ExperimentSettings<String>,
) -> Result<BTreeMap<Intervention, PlanVariant>, Failure> {
    let mut variants = BTreeMap::new();
    for change in wanted {
        let same = || (plan.clone(), injector.clone());
        let changed = match change {
            // Some interventions send the plan's own requests at other times or with more users, so
            // these interventions need no changed plan.
            Intervention::Control
            | Intervention::MoreUsers
            | Intervention::Bursts
            | Intervention::BurstsAtTwiceConcurrency
            | Intervention::BurstsAtConcurrency
            | Intervention::DependencyPauses => None,
            Intervention::Reference => {
                Some((plan_with_reference_path(plan, reference_path(plan, settings)?), injector.clone()))
            }
            Intervention::NewConnections if speaks_http1(plan) => {
                let (mut plan, injector) = same();
                // Connections are closed with a reset, which leaves no port in TIME-WAIT. With
                // ports in TIME-WAIT, the client's ports would run out before the server reaches
                // its limit.
                (plan.connection_plan.keep_alive, plan.connection_plan.close_reset) = (false, true);
                Some((plan, injector))
            }
            Intervention::NewConnections => None,
            Intervention::KeptConnections => {
                let (mut plan, injector) = same();
                (plan.connection_plan.keep_alive, plan.connection_plan.close_reset) = (true, false);
                Some((plan, injector))
            }
            Intervention::Head => {
                let (mut plan, injector) = same();
                for route in &mut plan.traffic.routes {
                    route.request.method = "HEAD".to_owned();
                    // A HEAD response has no content to check.
                    route.expect = Expectations::default();
                }
                Some((plan, injector))
            }
            Intervention::SecondGenerator => Some((plan.clone(), injector_for_second_generator(injector))),
            Intervention::LargerBody | Intervention::SmallerBody => {
                let Some((bytes, longer)) = read_other_body_flag(plan, settings)? else { continue };
                if longer != (*change == Intervention::LargerBody) {
                    let shorter_or_longer = if longer { "shorter" } else { "longer" };
                    return Err(Failure::usage(format!(
                        "--other-body: in the recorded run, the other body was {shorter_or_longer} than the request's \
                         own body: give the recorded body"
                    )));
                }
                Some((plan_with_other_body(plan, &bytes, settings)?, injector.clone()))
            }
            Intervention::SmallerAnswer => {
                let part = plan_with_range_requests(plan);
                let answer = preflight::send_preflight_request(&part, injector).ok().flatten();
                let is_served = answer.is_some_and(|answer| answer.status == PARTIAL_CONTENT);
                is_served.then(|| (part, injector.clone()))
            }
            Intervention::Identities => {
                Some((plan_with_identities(plan, &settings.interventions.identities), injector.clone()))
            }
            Intervention::Sources => {
                loopback_source_addresses(plan).map(|sources| (plan.clone(), Injector { sources, ..injector.clone() }))
            }
        };
        variants.extend(changed.map(|(plan, injector)| (*change, PlanVariant { plan, injector })));
    }
    Ok(variants)
}

/// Returns the `wanted` interventions that can run: interventions with a changed plan, and
/// interventions that need no changed plan.
pub fn possible_interventions(
    wanted: &[Intervention],
    variants: &BTreeMap<Intervention, PlanVariant>,
) -> Vec<Intervention> {
    use Intervention::{
        Bursts, BurstsAtConcurrency, BurstsAtTwiceConcurrency, DependencyPauses, Head, MoreUsers, SmallerAnswer,
    };
    let needs_none = |change: &Intervention| {
        matches!(change, MoreUsers | Bursts | BurstsAtTwiceConcurrency | BurstsAtConcurrency | DependencyPauses)
    };
    // If the server supports range requests, the intervention with a one-byte response replaces the
    // intervention with HEAD requests.
    let told_better = |change: &Intervention| *change == Head && variants.contains_key(&SmallerAnswer);
    let can_be = |change: &Intervention| needs_none(change) || variants.contains_key(change);
    wanted.iter().copied().filter(|change| can_be(change) && !told_better(change)).collect()
}

/// Returns the generator settings for a load next to a second generator process on this machine.
/// If the workers of all processes occupy all usable cores, no process spins (busy-waits), unless
/// the user requests spinning.
fn injector_for_second_generator(injector: &Injector) -> Injector {
    let crowded = (1 + FURTHER_PROCESSES as u32) * injector.workers >= plimsoll_sys::probe::cgroup::usable_cores();
    let spin = if crowded && injector.spin == Spin::Auto { Spin::Off } else { injector.spin };
    Injector { spin, ..injector.clone() }
}

/// Returns the plan with `bytes` as the body of every request that has a body.
fn plan_with_other_body(plan: &Plan, bytes: &[u8], settings: &ExperimentSettings<String>) -> Result<Plan, Failure> {
    let mut plan = plan.clone();
    for route in plan.traffic.routes.iter_mut().filter(|route| !route.request.body.is_empty()) {
        route.request.body = bytes.to_vec();
        route.template_flags.body = false;
        // The plan's response checks describe the response to the original body, so the checks are
        // removed.
        route.expect = Expectations::default();
    }
    grpc::encode_grpc_bodies(&mut plan, settings)
        .map_err(|failure| Failure::usage(failure.to_string().replace("--body", "--other-body")))?;
    Ok(plan)
}

/// Returns the plan with range requests: each request asks only for the first byte of the response.
fn plan_with_range_requests(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for route in &mut plan.traffic.routes {
        route.request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("range"));
        route.request.headers.push(("Range".to_owned(), "bytes=0-0".to_owned()));
        route.expect = Expectations::default();
        if !route.ok_status.contains(PARTIAL_CONTENT) {
            route.ok_status = StatusSet::parse(&PARTIAL_CONTENT.to_string()).unwrap_or_default();
        }
    }
    plan
}

/// Whether the plan uses HTTP/1.1. Over HTTP/2, a new connection for each request is meaningless.
fn speaks_http1(plan: &Plan) -> bool {
    match plan.connection_plan.http {
        HttpChoice::H1 => true,
        HttpChoice::H2 => false,
        HttpChoice::Auto => plan.connection_plan.tls.is_none(),
    }
}

/// Returns path and query of the cheap reference request: from --reference, or an unknown path.
fn reference_path(plan: &Plan, settings: &ExperimentSettings<String>) -> Result<String, Failure> {
    let Some(text) = &settings.interventions.reference else { return Ok(UNKNOWN_PATH.to_owned()) };
    if text.starts_with('/') {
        return Ok(text.clone());
    }
    let url = Url::parse(text).map_err(|failure| Failure::usage(format!("--reference: {failure}")))?;
    match url.origin == plan.traffic.origin {
        true => Ok(url.path),
        false => Err(Failure::usage(format!(
            "--reference: {reference_server} is another server than {target_server}; give a path of the same server",
            reference_server = url.origin,
            target_server = plan.traffic.origin
        ))),
    }
}

fn plan_with_reference_path(plan: &Plan, target: String) -> Plan {
    let mut plan = plan.clone();
    let asked = &plan.traffic.routes[0];
    // Header fields that describe a body are dropped together with the body.
    let describes_body = |name: &str| name.to_ascii_lowercase().starts_with("content-");
    let headers = asked.request.headers.iter().filter(|(name, _)| !describes_body(name)).cloned().collect();
    let request = Request { method: "GET".to_owned(), target, headers, body: Vec::new() };
    let template_flags = TemplateFlags { headers: asked.template_flags.headers, ..TemplateFlags::default() };
    let ok_status = StatusSet::parse(REFERENCE_OK_STATUSES).unwrap_or_default();
    plan.traffic.routes =
        vec![Route { ok_status, timeout_ns: asked.timeout_ns, template_flags, ..Route::new(request) }];
    plan.traffic.preflight = Some(0);
    plan
}

/// Returns the plan with its requests spread equally over several client identities. An identity is
/// one header field, such as another user's token. The unchanged requests of the plan count as one
/// more identity.
fn plan_with_identities(plan: &Plan, identities: &[String]) -> Plan {
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

/// Returns further local source addresses if the target is on a loopback address. Returns `None`
/// for a target that is not on loopback, because only the user can permit other source addresses.
fn loopback_source_addresses(plan: &Plan) -> Option<Vec<AddressRange>> {
    let loopback = |address: &SocketAddr| matches!(address.ip(), IpAddr::V4(v4) if v4.is_loopback());
    let addresses = &plan.connection_plan.addresses;
    if addresses.is_empty() || !addresses.iter().all(loopback) {
        return None;
    }
    let address = |last: u8| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    AddressRange::new(address(1), address(4)).map(|range| vec![range])
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape};

    fn loopback_plan() -> Plan {
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 80))];
        let mut plan = Plan::for_get_request("h", 80, addresses, LoadShape::Closed { users: LoadCurve::constant(1.0) });
        let request = &mut plan.traffic.routes[0].request;
        request.headers = vec![("X-Api-Key".into(), "one".into()), ("Content-Type".into(), "text/plain".into())];
        plan
    }

    fn settings_with_interventions(interventions: InterventionSettings<String>) -> ExperimentSettings<String> {
        ExperimentSettings { interventions, ..ExperimentSettings::default() }
    }

    fn variant_for_intervention(
        change: Intervention,
        plan: &Plan,
        settings: &ExperimentSettings<String>,
    ) -> Option<PlanVariant> {
        intervention_variants(&[change], (plan, &Injector::default()), settings).expect("can be made").remove(&change)
    }

    #[test]
    fn each_intervention_changes_one_property() {
        let (plan, settings) = (
            loopback_plan(),
            settings_with_interventions(InterventionSettings {
                identities: vec!["x-api-key: two".into()],
                ..InterventionSettings::default()
            }),
        );
        let reference = variant_for_intervention(Intervention::Reference, &plan, &settings).expect("a plan").plan;
        let route = &reference.traffic.routes[0];
        assert_eq!((route.request.target.as_str(), route.request.headers.len()), (UNKNOWN_PATH, 1));
        let counts = [200, 404, 500, 429, 502, 503, 504].map(|status| route.ok_status.contains(status));
        assert_eq!(counts, [true, true, true, false, false, false, false]);
        assert_eq!((&reference.connection_plan, &reference.load), (&plan.connection_plan, &plan.load));

        let clients = variant_for_intervention(Intervention::Identities, &plan, &settings).expect("a plan").plan;
        let values: Vec<&str> = clients
            .traffic
            .routes
            .iter()
            .flat_map(|route| &route.request.headers)
            .filter(|(name, _)| name.eq_ignore_ascii_case("x-api-key"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(values, ["one", "two"]);

        let fresh = variant_for_intervention(Intervention::NewConnections, &plan, &settings).expect("a plan").plan;
        assert!(
            !fresh.connection_plan.keep_alive && fresh.connection_plan.close_reset && fresh.traffic == plan.traffic
        );
        let sources = variant_for_intervention(Intervention::Sources, &plan, &settings).expect("a plan");
        assert_eq!((sources.plan == plan, sources.injector.sources.len()), (true, 1));
        assert!(variant_for_intervention(Intervention::MoreUsers, &plan, &settings).is_none());
        let second = variant_for_intervention(Intervention::SecondGenerator, &plan, &settings).expect("a plan");
        assert_eq!((second.plan == plan, second.injector.workers), (true, 1));
        let part = plan_with_range_requests(&Plan { traffic: plan.traffic.clone(), ..plan.clone() });
        assert_eq!(part.traffic.routes[0].request.headers.last().expect("a field").1, "bytes=0-0");
        assert!(part.traffic.routes[0].ok_status.contains(206));
    }

    #[test]
    fn another_body_must_be_longer_or_shorter() {
        let posting = |body: &str| {
            let mut plan = loopback_plan();
            plan.traffic.routes[0].request.body = body.as_bytes().to_vec();
            plan
        };
        let with_body = |text: &str| {
            settings_with_interventions(InterventionSettings {
                other_body: Some(text.to_owned()),
                ..InterventionSettings::default()
            })
        };
        let (plan, settings) = (posting("12345"), with_body("1234567"));
        let offered = |plan: &Plan, settings: &ExperimentSettings<String>| {
            let all = interventions_possible_before_load(plan, settings).expect("understood");
            (all.contains(&Intervention::LargerBody), all.contains(&Intervention::SmallerBody))
        };
        assert_eq!(offered(&plan, &settings), (true, false));
        assert_eq!(offered(&plan, &with_body("1")), (false, true));
        assert_eq!(offered(&plan, &ExperimentSettings::default()), (false, false));
        let longer = variant_for_intervention(Intervention::LargerBody, &plan, &settings).expect("a plan").plan;
        assert_eq!((longer.traffic.routes[0].request.body.len(), &longer.load), (7, &plan.load));
        // If the file of --other-body became shorter after the intervention was recorded, a rerun
        // fails.
        assert!(
            intervention_variants(&[Intervention::LargerBody], (&plan, &Injector::default()), &with_body("1")).is_err()
        );
        for (plan, text, expect) in [
            (posting("12345"), "54321", "both have 5 bytes"),
            (posting(""), "54321", "no request has a body"),
            (posting("12345"), "@/no/such/file", "--other-body"),
        ] {
            let refused = interventions_possible_before_load(&plan, &with_body(text)).expect_err(expect);
            assert!(refused.to_string().contains(expect), "{refused}");
        }
    }

    #[test]
    fn impossible_interventions_are_omitted() {
        let all =
            interventions_possible_before_load(&loopback_plan(), &ExperimentSettings::default()).expect("understood");
        assert!(all.contains(&Intervention::Reference) && !all.contains(&Intervention::Identities));
        assert!(!all.contains(&Intervention::KeptConnections) && !all.contains(&Intervention::Control));
        let none = settings_with_interventions(InterventionSettings { none: true, ..InterventionSettings::default() });
        assert_eq!(interventions_possible_before_load(&loopback_plan(), &none).expect("understood"), []);
        let mut remote = loopback_plan();
        remote.connection_plan.addresses = vec![SocketAddr::from(([10, 0, 0, 1], 80))];
        remote.connection_plan.http = HttpChoice::H2;
        let variants = intervention_variants(&all, (&remote, &Injector::default()), &ExperimentSettings::default())
            .expect("can be made");
        let made = possible_interventions(&all, &variants);
        assert!(!made.contains(&Intervention::Sources) && !made.contains(&Intervention::NewConnections));
        assert!(made.contains(&Intervention::MoreUsers) && made.contains(&Intervention::Reference));
    }

    /// Starts a server that sends the HTTP status `status` to range requests, and 400 to all other
    /// requests.
    fn start_range_server(status: &'static str) -> SocketAddr {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let (mut asked, mut bytes) = (Vec::new(), [0; 1024]);
            while !asked.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut bytes).expect("a request");
                asked.extend_from_slice(&bytes[..count]);
            }
            let asks_for_part = String::from_utf8_lossy(&asked).to_lowercase().contains("range: bytes=0-0");
            let status = if asks_for_part { status } else { "400 Bad Request" };
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 1\r\n\r\nx");
        });
        address
    }

    #[test]
    fn range_requests_need_a_server_that_supports_them() {
        for (status, is_served) in [("206 Partial Content", true), ("200 OK", false)] {
            let mut plan = loopback_plan();
            plan.connection_plan.addresses = vec![start_range_server(status)];
            let wanted = [Intervention::Head, Intervention::SmallerAnswer];
            let variants =
                intervention_variants(&wanted, (&plan, &Injector::default()), &ExperimentSettings::default())
                    .expect("can be made");
            let expect = if is_served { Intervention::SmallerAnswer } else { Intervention::Head };
            assert_eq!(possible_interventions(&wanted, &variants), [expect], "{status}");
        }
        let unasked = ExperimentSettings { preflight: false, ..ExperimentSettings::default() };
        assert!(
            !interventions_possible_before_load(&loopback_plan(), &unasked)
                .expect("understood")
                .contains(&Intervention::SmallerAnswer)
        );
    }

    /// Checks that a flag with a value requests the intervention of the flag, even if the
    /// intervention runs by default.
    #[test]
    fn flags_request_their_interventions() {
        let given = |reference: Option<&str>| InterventionSettings {
            reference: reference.map(str::to_owned),
            identities: vec!["X-Api-Key: two".into()],
            ..InterventionSettings::default()
        };
        for (reference, expect) in [
            (None, vec![Intervention::Identities]),
            (Some("/ping"), vec![Intervention::Reference, Intervention::Identities]),
        ] {
            let settings = settings_with_interventions(given(reference));
            let possible = interventions_possible_before_load(&loopback_plan(), &settings).expect("understood");
            assert_eq!(explicitly_requested_interventions(&possible, &settings.interventions), expect, "{reference:?}");
        }
    }

    #[test]
    fn a_reference_path_is_on_the_same_server() {
        let at = |text: &str| {
            settings_with_interventions(InterventionSettings {
                reference: Some(text.to_owned()),
                ..InterventionSettings::default()
            })
        };
        for (text, expect) in [("/ping", "/ping"), ("http://h/ping?x=1", "/ping?x=1")] {
            assert_eq!(reference_path(&loopback_plan(), &at(text)).expect(text), expect);
        }
        let refused = reference_path(&loopback_plan(), &at("http://other/ping")).expect_err("another server");
        assert!(refused.to_string().contains("--reference"), "{refused}");
    }
}
