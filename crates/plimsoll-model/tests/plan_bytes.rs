//! Tests of plans as bytes: a decoded plan equals the encoded plan, secrets included, and invalid
//! bytes are refused.

use plimsoll_model::data::{RowChoice, ValueTable};
use plimsoll_model::expect::{CaptureSource, Expectations, JsonExpectation, ResponseCapture, TextExpectation};
use plimsoll_model::json_path::JsonPath;
use plimsoll_model::plan_bytes::PlanError;
use plimsoll_model::rng::Rng;
use plimsoll_model::session::{Scenario, SessionOp, ThinkTime};
use plimsoll_model::traffic::{RouteChoice, TemplateFlags};
use plimsoll_model::*;
use proptest::prelude::*;
use std::sync::Arc;

fn random_text(rng: &mut Rng) -> String {
    (0..rng.uniform_below(8))
        .map(|_| ['a', 'Z', '0', '/', ' ', 'ä', '\n', '%'][rng.uniform_below(8) as usize])
        .collect()
}

fn random_bytes(rng: &mut Rng) -> Vec<u8> {
    let length = [0, 1, 127, 128, 5_000][rng.uniform_below(5) as usize];
    (0..length).map(|_| rng.next_u64() as u8).collect()
}

fn random_option<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    (rng.uniform_below(2) == 0).then(|| make(rng))
}

fn random_list<T>(rng: &mut Rng, least: u64, make: impl Fn(&mut Rng) -> T) -> Vec<T> {
    (0..least + rng.uniform_below(4)).map(|_| make(rng)).collect()
}

fn random_route(rng: &mut Rng) -> Route {
    Route {
        label: random_text(rng),
        request: Request {
            method: random_text(rng),
            target: random_text(rng),
            headers: random_list(rng, 0, |rng| (random_text(rng), random_text(rng))),
            body: random_bytes(rng),
        },
        weight: rng.uniform_below(1 << 32) as u32,
        ok_status: StatusSet::parse(["2xx", "100-399", "200, 404"][rng.uniform_below(3) as usize]).expect("a set"),
        timeout_ns: rng.uniform_below(1 << 50),
        template_flags: TemplateFlags {
            target: rng.uniform_below(2) == 0,
            headers: rng.uniform_below(2) == 0,
            body: rng.uniform_below(2) == 0,
        },
        expect: Expectations {
            response_time_ns_max: random_option(rng, |rng| rng.uniform_below(1 << 50)),
            headers: random_list(rng, 0, |rng| (random_text(rng), random_text_expectation(rng))),
            json: random_list(rng, 0, |rng| (random_json_path(rng), random_json_expectation(rng))),
            body: random_option(rng, random_text_expectation),
        },
        captures: random_list(rng, 0, |rng| ResponseCapture {
            name: random_text(rng),
            from: match rng.uniform_below(4) {
                0 => CaptureSource::Json(random_json_path(rng)),
                1 => CaptureSource::Regex(random_text(rng)),
                2 => CaptureSource::Header("Location".into()),
                _ => CaptureSource::Cookie("sid".into()),
            },
            default: random_option(rng, random_text),
        }),
        redirects_max: rng.uniform_below(1 + u64::from(Route::FOLLOW_REDIRECTS_MAX)) as u8,
        grpc: random_option(rng, |rng| GrpcCall {
            ok: GrpcStatusSet::parse(["OK", "0,5,16", "UNAVAILABLE"][rng.uniform_below(3) as usize]).expect("a set"),
            content: random_option(rng, random_bytes),
            descriptor_set: random_option(rng, |rng| random_bytes(rng).into()),
            returns_stream: rng.uniform_below(2) == 1,
            in_turn: rng.uniform_below(2) == 1,
        }),
    }
}

/// A scenario that contains every kind of operation.
fn random_scenario(rng: &mut Rng, routes: u64) -> Scenario {
    let ns = |rng: &mut Rng| rng.uniform_below(1 << 40);
    let mut ops =
        vec![SessionOp::Send { route: rng.uniform_below(routes) as u16, may_continue: rng.uniform_below(2) == 0 }];
    for _ in 0..rng.uniform_below(6) {
        let at = ops.len() as u32;
        ops.push(match rng.uniform_below(9) {
            8 => SessionOp::Think(ThinkTime::Pick(random_list(rng, 1, ns).into())),
            0 => SessionOp::Think(ThinkTime::Fixed(ns(rng))),
            1 => SessionOp::Think(ThinkTime::Uniform(5, 5 + ns(rng))),
            2 => SessionOp::Think(ThinkTime::Exponential(ns(rng))),
            3 => SessionOp::Think(ThinkTime::LogNormal(ns(rng), rng.uniform_below(10_000) as u32)),
            4 => SessionOp::JumpUnlessText { text: random_text(rng), empty: rng.uniform_below(2) == 0, to: at + 1 },
            5 => SessionOp::JumpUnlessFirstSession { to: at + 1 },
            6 => SessionOp::JumpIfSucceeded { to: at + 1 },
            _ => SessionOp::Repeat {
                times: 1 + rng.uniform_below(9) as u32,
                from: rng.uniform_below(at.into()) as u32,
                depth: at as u8,
            },
        });
    }
    let (own_connection, cookies) = (rng.uniform_below(2) == 0, rng.uniform_below(2) == 0);
    Scenario { name: random_text(rng), weight: 1 + rng.uniform_below(9) as u32, own_connection, cookies, ops }
}

fn random_json_path(rng: &mut Rng) -> JsonPath {
    JsonPath::parse(["$", "$.a[0]['b c']", "$..id", "$.items[*].id"][rng.uniform_below(4) as usize]).expect("a path")
}

fn random_text_expectation(rng: &mut Rng) -> TextExpectation {
    if rng.uniform_below(2) == 0 {
        TextExpectation::Contains(random_text(rng))
    } else {
        TextExpectation::Matches(random_text(rng))
    }
}

fn random_json_expectation(rng: &mut Rng) -> JsonExpectation {
    match rng.uniform_below(4) {
        0 => JsonExpectation::Null,
        1 => JsonExpectation::Flag(rng.uniform_below(2) == 0),
        2 => JsonExpectation::Number("12.50".into()),
        _ => JsonExpectation::Text(random_text(rng)),
    }
}

fn random_data_table(rng: &mut Rng) -> Arc<ValueTable> {
    let pick = [
        RowChoice::Sequential,
        RowChoice::Random,
        RowChoice::Unique,
        RowChoice::Zipf { exponent_milli: rng.uniform_below(5_000) as u32 },
    ];
    let mut data = ValueTable::new(
        random_text(rng),
        random_list(rng, 1, random_text),
        pick[rng.uniform_below(4) as usize],
        rng.uniform_below(2) == 0,
    );
    for _ in 0..rng.uniform_below(5) {
        let cells: Vec<String> = data.columns.iter().map(|_| random_text(rng)).collect();
        data.push(cells.iter().map(String::as_str)).expect("room");
    }
    Arc::new(data)
}

fn random_load_shape(rng: &mut Rng) -> LoadShape {
    let level = |rng: &mut Rng| rng.next_f64() * 1e6;
    let stage = |rng: &mut Rng| LoadStage {
        from: level(rng),
        to: level(rng),
        duration_ns: random_option(rng, |rng| rng.uniform_below(1 << 40)),
    };
    let curve = LoadCurve { stages: random_list(rng, 1, stage) };
    match rng.uniform_below(3) {
        0 => LoadShape::Closed { users: curve },
        1 => LoadShape::Open { rate: curve, arrivals: ArrivalSpacing::Constant },
        _ => LoadShape::Open { rate: curve, arrivals: ArrivalSpacing::Poisson },
    }
}

fn random_socket_address(rng: &mut Rng) -> std::net::SocketAddr {
    let port = rng.uniform_below(1 << 16) as u16;
    match rng.uniform_below(2) {
        0 => (std::net::Ipv4Addr::from(rng.next_u64() as u32), port).into(),
        _ => {
            let ip = std::net::Ipv6Addr::from(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()));
            std::net::SocketAddrV6::new(ip, port, rng.next_u64() as u32, rng.next_u64() as u32).into()
        }
    }
}

fn random_tls_options(rng: &mut Rng) -> TlsSpec {
    TlsSpec {
        server_name: random_text(rng),
        verify: rng.uniform_below(2) == 0,
        resume: rng.uniform_below(2) == 0,
        alpn: random_list(rng, 0, random_text),
        roots: random_list(rng, 0, random_bytes),
        certificate_pem: random_option(rng, random_bytes),
        key_pem: random_option(rng, random_bytes),
    }
}

/// Gives the plan a list of arrival times, and in half of the cases also a request list.
fn add_replayed_arrivals(rng: &mut Rng, plan: &mut Plan) {
    let mut starts_ns = random_list(rng, 1, |rng| rng.uniform_below(1 << 40));
    starts_ns.sort_unstable();
    plan.load.warmup_ns = starts_ns[0];
    let end_ns = starts_ns[starts_ns.len() - 1] + 1_000_000_000;
    let count = starts_ns.len();
    plan.load.shape = LoadShape::ArrivalTimes {
        arrivals: ArrivalTimes::new(starts_ns, plan.load.warmup_ns, end_ns).expect("moments"),
    };
    if rng.uniform_below(2) == 0 {
        return;
    }
    let mut targets = RequestTargets::default();
    for target in &random_list(rng, 1, random_text) {
        let _ = targets.push(target);
    }
    let entry = |rng: &mut Rng| RequestListEntry {
        target: rng.uniform_below(targets.len() as u64) as u32,
        route: rng.uniform_below(plan.traffic.routes.len() as u64) as u16,
        status: rng.uniform_below(600) as u16,
    };
    let entries = (0..count).map(|_| entry(rng)).collect();
    let facts = ReplayFacts {
        speed_milli: rng.next_u64(),
        scale_milli: rng.next_u64(),
        lines: rng.next_u64(),
        skip_counts: random_list(rng, 0, |rng| (random_text(rng), rng.next_u64())).into_iter().collect(),
        has_whole_seconds: rng.uniform_below(2) == 0,
        sessions: (rng.uniform_below(2) == 0).then(|| LogSessionsFacts {
            sessions: rng.next_u64(),
            span_ns: rng.next_u64(),
            busiest_minute_requests: rng.next_u64(),
            busiest_second_requests: rng.next_u64(),
        }),
    };
    let sessions = (rng.uniform_below(2) == 0).then(|| {
        let mut starts_ns: Vec<u64> = (0..count).map(|_| rng.uniform_below(1 << 40)).collect();
        starts_ns.sort_unstable();
        let half = (count as u32 / 2).max(1);
        let ends = if half < count as u32 { vec![half, count as u32] } else { vec![count as u32] };
        // The first session has the second half of the requests.
        let by_session = (0..count as u32).map(|at| (at + half) % count as u32).collect();
        LogSessions::new(starts_ns, by_session, ends)
    });
    let sessions = sessions.flatten();
    if sessions.is_some() && rng.uniform_below(2) == 0 {
        plan.load.shape =
            LoadShape::Open { rate: LoadCurve::constant(rng.next_f64() + 1.0), arrivals: ArrivalSpacing::Replayed };
    }
    plan.traffic.choice = RouteChoice::RequestList;
    plan.traffic.scenarios.clear();
    plan.traffic.request_list = Some(Arc::new(RequestList { targets: targets.into(), entries, sessions, facts }));
}

/// A random executable plan.
fn random_plan(seed: u64) -> Plan {
    let rng = &mut Rng::new(seed);
    let mut plan = Plan::for_get_request(
        &random_text(rng),
        rng.uniform_below(1 << 16) as u16,
        random_list(rng, 0, random_socket_address),
        random_load_shape(rng),
    );
    plan.traffic.origin.scheme = random_text(rng);
    plan.traffic.routes = random_list(rng, 1, random_route);
    plan.traffic.routes[0].weight |= 1;
    plan.traffic.data = random_list(rng, 0, random_data_table);
    plan.traffic.variables = random_list(rng, 0, |rng| (random_text(rng), random_text(rng)));
    if rng.uniform_below(2) == 0 {
        plan.traffic.choice = RouteChoice::Scenarios;
        plan.traffic.scenarios = random_list(rng, 1, |rng| random_scenario(rng, 1));
    }
    let once = |rng: &mut Rng| OneOffRoute {
        route: random_route(rng),
        times: 1 + rng.uniform_below(9) as u32,
        may_fail: rng.uniform_below(2) == 0,
    };
    plan.traffic.setup_teardown = SetupTeardown {
        setup: random_list(rng, 0, once),
        teardown: random_list(rng, 0, once),
        captured_values: random_list(rng, 0, |rng| (random_text(rng), random_text(rng))),
    };
    plan.traffic.preflight = random_option(rng, |rng| rng.uniform_below(1 << 16) as u16);
    plan.traffic.redact =
        [RedactionLevel::Secrets, RedactionLevel::All, RedactionLevel::SecretsButBodies][rng.uniform_below(3) as usize];
    plan.load.seed = rng.next_u64();
    plan.load.requests_max = random_option(rng, |rng| rng.uniform_below(1 << 50));
    plan.load.duration_ns = random_option(rng, |rng| rng.uniform_below(1 << 50));
    plan.load.warmup_ns = rng.uniform_below(1 << 50);
    plan.load.grace_ns = rng.uniform_below(1 << 50);
    plan.load.new_users = rng.uniform_below(2) == 0;
    plan.load.connections_ready = rng.uniform_below(1 << 32) as u32;
    plan.load.interval_ns = (1 + rng.uniform_below(20)) * Plan::TICK_NS;
    if rng.uniform_below(4) == 0 {
        add_replayed_arrivals(rng, &mut plan);
    }
    plan.connection_plan.unix = random_option(rng, random_text);
    plan.connection_plan.resolve = random_option(rng, |rng| ResolveSpec {
        host: random_text(rng),
        port: rng.uniform_below(1 << 16) as u16,
        every_ns: rng.next_u64(),
        public: rng.uniform_below(2) == 0,
    });
    plan.connection_plan.tls = random_option(rng, random_tls_options);
    plan.connection_plan.http = [HttpChoice::Auto, HttpChoice::H1, HttpChoice::H2][rng.uniform_below(3) as usize];
    plan.connection_plan.streams_max = 1 + rng.uniform_below(1 << 31) as u32;
    plan.connection_plan.keep_alive = rng.uniform_below(2) == 0;
    plan.connection_plan.close_reset = rng.uniform_below(2) == 0;
    plan.connection_plan.connections_max = rng.uniform_below(1 << 32) as u32;
    plan
}

proptest! {
    #[test]
    fn a_plan_round_trips(seed in any::<u64>()) {
        let plan = random_plan(seed);
        prop_assert!(plan.is_within_limits());
        prop_assert_eq!(Plan::from_bytes(&plan.to_bytes()), Ok(plan));
    }

    #[test]
    fn a_truncated_plan_is_refused(seed in any::<u64>(), at in any::<prop::sample::Index>()) {
        let bytes = random_plan(seed).to_bytes();
        prop_assert_eq!(Plan::from_bytes(&bytes[..at.index(bytes.len())]), Err(PlanError::NotAPlan));
    }

    /// Checks that damaged bytes which still decode give a valid plan. A valid plan can be encoded
    /// again, and its numbers are bounded.
    #[test]
    fn damaged_plan_bytes_are_a_valid_plan_or_refused(seed in any::<u64>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = random_plan(seed).to_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(other) = Plan::from_bytes(&bytes) {
            prop_assert!(other.is_within_limits());
            prop_assert_eq!(Plan::from_bytes(&other.to_bytes()), Ok(other));
        }
    }

    #[test]
    fn any_plan_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(plan) = Plan::from_bytes(&bytes) {
            prop_assert!(plan.is_within_limits());
        }
    }
}

#[test]
fn invalid_plan_bytes_are_refused() {
    let whole = random_plan(1).to_bytes();
    let with = |extra: &[u8]| [&whole[..], extra].concat();
    let mut other = whole.clone();
    other[2] = 99;
    for (bytes, expect) in [
        (Vec::new(), PlanError::NotAPlan),
        (b"hello, world".to_vec(), PlanError::NotAPlan),
        // A plan in another format version is refused, whatever its content.
        (other, PlanError::OtherVersion),
        (vec![1, 1, 9], PlanError::OtherVersion),
        // An unknown field, and a field that occurs twice, are refused.
        (with(&[9, 1, 0]), PlanError::NotAPlan),
        (with(&whole[3..]), PlanError::NotAPlan),
    ] {
        assert_eq!(Plan::from_bytes(&bytes), Err(expect), "{bytes:?}");
    }
}

#[test]
fn a_plan_without_requests_is_refused() {
    let mut none = random_plan(2);
    none.traffic.routes.clear();
    assert_eq!(Plan::from_bytes(&none.to_bytes()), Err(PlanError::NotAPlan));
    let mut never = random_plan(2);
    never.traffic.routes.iter_mut().for_each(|route| route.weight = 0);
    assert_eq!(Plan::from_bytes(&never.to_bytes()), Err(PlanError::NotAPlan));
}
