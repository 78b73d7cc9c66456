//! Tests of records: an executable experiment becomes a record and is restored. The record lacks
//! only secrets, which the user must give again. Inputs that differ from the original inputs are
//! refused.

use plimsoll_model::completion::{
    RerunInputs, RerunUrl, RestoreError, TrafficFromFile, missing_inputs, number_equal_targets, restore_experiment,
};
use plimsoll_model::experiment_settings::{
    LogReadingSettings, OutputSettings, ProfilesSettings, ReplaySettings, TrafficFileSettings,
};
use plimsoll_model::traffic::RouteChoice;
use plimsoll_model::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// A secret that looks like a typical token and must never be in a record.
const SECRET_TOKEN: &str = "Zq7xK2mW9vLp4TnR8sYd";

fn post_plan(target: &str, headers: &[(&str, &str)], body: &str) -> Plan {
    let mut plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(3.0) });
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (method, target) = ("POST".to_owned(), target.to_owned());
    plan.traffic.routes = vec![Route::new(Request { method, target, headers, body: body.into() })];
    plan.load.seed = 7;
    plan
}

fn run_spec_with_plan(plan: Plan) -> ExperimentSpec<Plan> {
    ExperimentSpec::Run(RunSpec { plan, stop_if: Some("errors>5%".into()), profiles: None })
}

fn comparison_spec(a: Plan, b: Plan) -> ExperimentSpec<Plan> {
    let arm = |name: &str, plan| Arm { name: name.into(), plan, is_started_per_load: false };
    let blocks = BlocksSpec {
        arms: vec![arm("a", a), arm("b", b)],
        users: Some(4),
        rate: None,
        arrivals: ArrivalSpacing::Constant,
        load_ns: None,
        warmup_ns: None,
        budget_ns: 1,
        blocks_max: None,
        answers_may_differ: false,
    };
    ExperimentSpec::Prove(ProveSpec { blocks, criterion: Criterion::Goodput, margin: 0.02, profiles: None })
}

fn default_settings_with_targets(asked: &ExperimentSpec<Plan>, user_info: &[bool]) -> ExperimentSettings<String> {
    ExperimentSettings { targets: number_equal_targets(asked.plans(), user_info), ..ExperimentSettings::default() }
}

fn rerun_url(target: &str) -> RerunUrl {
    let origin = Origin { scheme: "http".into(), host: "h".into(), port: 80 };
    RerunUrl { text: format!("{origin}{target}"), origin, target: target.into(), authorization: None }
}

/// A reader of traffic files that finds no file.
fn read_no_traffic_file(_: &ExperimentSettings<String>) -> Option<Vec<TrafficFromFile>> {
    None
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

fn text_body_input(text: &str) -> Option<(BodySource<String>, Vec<u8>)> {
    Some((BodySource::Text, text.into()))
}

fn inputs_from_texts(given: &[(TextKind, &str)]) -> RerunInputs {
    let mut texts = RerunInputs::default();
    for (kind, text) in given {
        texts.texts.entry(*kind).or_default().push_back((*text).to_owned());
    }
    texts
}

/// Checks that the record of an experiment contains no secret and lacks the inputs `expect`. The
/// function also checks that the inputs `given` restore the experiment.
fn assert_restored(
    name: &str,
    asked: &ExperimentSpec<Plan>,
    settings: &ExperimentSettings<String>,
    given: RerunInputs,
    expect: &[TextKind],
) {
    let (record, recorded) = (asked.record(), settings.record());
    let json = format!(
        "{}{}",
        serde_json::to_string(&record).expect("serialises"),
        serde_json::to_string(&recorded).expect("serialises")
    );
    assert!(!json.contains(SECRET_TOKEN) && !json.contains("s3cret"), "{name}: {json}");
    let kinds: Vec<TextKind> = missing_inputs(&record, &recorded).iter().map(|it| it.kind).collect();
    assert_eq!(kinds, expect, "{name}");
    let (again, settings_again) = restore_experiment(&record, &recorded, given, &mut read_no_traffic_file)
        .unwrap_or_else(|why| panic!("{name}: {why:?}"));
    assert_eq!((&again, &settings_again), (asked, settings), "{name}");
    assert_eq!((again.record(), settings_again.record()), (record.clone(), recorded.clone()), "{name}");
    if !expect.is_empty() {
        assert_eq!(
            restore_experiment(&record, &recorded, RerunInputs::default(), &mut read_no_traffic_file),
            Err(RestoreError::Missing),
            "{name}"
        );
    }
}

#[test]
fn a_record_is_restored_with_its_inputs() {
    let plain = run_spec_with_plan(post_plan("/items?id=5", &[("Accept", "a/b")], ""));
    assert_restored(
        "nothing is left out",
        &plain,
        &default_settings_with_targets(&plain, &[]),
        RerunInputs::default(),
        &[],
    );
    let query = format!("/items?token={SECRET_TOKEN}");
    let headers = [("Accept", "a/b"), ("X-Any", "s3cret"), ("Cookie", "s3cret1"), ("x-any", "s3cret2")];
    let secret = run_spec_with_plan(post_plan(&query, &headers, "s3cret body"));
    let given = RerunInputs {
        urls: [rerun_url(&query)].into(),
        // The user may give headers in a different order than the record, except headers with the
        // same name.
        headers: vec![header("X-Any", "s3cret"), header("x-any", "s3cret2"), header("Cookie", "s3cret1")],
        body: text_body_input("s3cret body"),
        ..RerunInputs::default()
    };
    let with_body = ExperimentSettings { body: Some(BodySource::Text), ..default_settings_with_targets(&secret, &[]) };
    let kinds = [TextKind::Url, TextKind::Header, TextKind::Header, TextKind::Header, TextKind::Body];
    assert_restored("request", &secret, &with_body, given.clone(), &kinds);
    // A file name without secrets stays in the record, and the file is read again.
    let file = ExperimentSettings { body: Some(BodySource::File("/tmp/order.json".to_owned())), ..with_body.clone() };
    let from_file =
        RerunInputs { body: Some((BodySource::File("/tmp/order.json".into()), b"s3cret body".into())), ..given };
    assert_restored("file", &secret, &file, from_file, &kinds[..4]);
    let mut unix = post_plan("/", &[], "");
    unix.connection_plan.unix = Some(format!("/run/{SECRET_TOKEN}"));
    unix.connection_plan.tls = Some(TlsSpec { server_name: "h".into(), verify: false, ..TlsSpec::default() });
    let unix = run_spec_with_plan(unix);
    let complete = ExperimentSettings {
        issuers: Some(format!("/{SECRET_TOKEN}/ca.pem")),
        certificate: Some(format!("/{SECRET_TOKEN}/own.pem")),
        key: Some("/run/key.pem".to_owned()),
        profiles: Some(ProfilesSettings {
            endpoint: EndpointChoice::At(vec!["http://h/a".to_owned(), format!("http://u:{SECRET_TOKEN}@h/")]),
            seconds: 5,
        }),
        output: OutputSettings {
            json: true,
            file: Some("/tmp/x".to_owned()),
            ..default_settings_with_targets(&unix, &[]).output
        },
        ..default_settings_with_targets(&unix, &[])
    };
    let mut complete_with = complete.clone();
    complete_with.builds.a = Some("KEY=s3cret ./a".into());
    complete_with.builds.before_block = Some("true".into());
    complete_with.probes.metrics = Some(EndpointChoice::At(vec![format!("http://h/?k={SECRET_TOKEN}")]));
    complete_with.probes.cgroup = Some(SECRET_TOKEN.into());
    complete_with.interventions.reference = Some(format!("http://h/?r={SECRET_TOKEN}"));
    // The two header fields that identify clients have the same name. Each header field is a
    // separate input, and the inputs keep their order.
    complete_with.interventions.identities =
        vec![format!("x-api-key: {SECRET_TOKEN}"), format!("x-api-key: {SECRET_TOKEN}2")];
    let given = inputs_from_texts(&[
        (TextKind::Unix, &format!("/run/{SECRET_TOKEN}")),
        (TextKind::Issuers, &format!("/{SECRET_TOKEN}/ca.pem")),
        (TextKind::Certificate, &format!("/{SECRET_TOKEN}/own.pem")),
        (TextKind::Cgroup, SECRET_TOKEN),
        (TextKind::Metrics, &format!("http://h/?k={SECRET_TOKEN}")),
        (TextKind::Profiles, "http://h/a"),
        (TextKind::Profiles, &format!("http://u:{SECRET_TOKEN}@h/")),
        (TextKind::Reference, &format!("http://h/?r={SECRET_TOKEN}")),
        (TextKind::Identity, &format!("x-api-key: {SECRET_TOKEN}")),
        (TextKind::Identity, &format!("x-api-key: {SECRET_TOKEN}2")),
        (TextKind::BuildA, "KEY=s3cret ./a"),
        (TextKind::BeforeBlock, "true"),
    ]);
    let kinds = [
        TextKind::Unix,
        TextKind::Issuers,
        TextKind::Certificate,
        TextKind::Cgroup,
        TextKind::Metrics,
        TextKind::Profiles,
        TextKind::Reference,
        TextKind::Identity,
        TextKind::BuildA,
        TextKind::BeforeBlock,
    ];
    assert_restored("settings", &unix, &complete_with, given, &kinds);
    let whole =
        ExperimentSettings { builds: complete_with.builds.clone(), ..default_settings_with_targets(&plain, &[]) };
    let mut whole = ExperimentSettings { ..whole };
    whole.builds.record_commands = true;
    whole.builds.a = Some("./a --port 1".into());
    assert_restored("whole commands", &plain, &whole, RerunInputs::default(), &[]);
    let mut demo = default_settings_with_targets(&plain, &[]);
    demo.demo = true;
    assert_restored("demo", &plain, &demo, RerunInputs::default(), &[]);
}

#[test]
fn urls_with_a_user_are_requested_again() {
    let side = |target: &str, value: &str| post_plan(target, &[("X-Any", "s3cret"), ("Authorization", value)], "");
    let (a, b) = ("Basic s3cret1", "Basic s3cret2");
    let asked = comparison_spec(side("/", a), side("/", b));
    let settings = default_settings_with_targets(&asked, &[true, true]);
    let with = |value: &str| RerunUrl { authorization: Some(value.into()), ..rerun_url("/") };
    let given = |urls: &[RerunUrl]| RerunInputs {
        urls: urls.iter().cloned().collect(),
        headers: vec![header("X-Any", "s3cret")],
        ..RerunInputs::default()
    };
    assert_restored(
        "users",
        &asked,
        &settings,
        given(&[with(a), with(b)]),
        &[TextKind::Url, TextKind::Header, TextKind::Url],
    );
    let (record, recorded) = (asked.record(), settings.record());
    for (urls, expect) in [
        (vec![with(a), with(a)], RestoreError::TargetEqualityChanged),
        (vec![with(a)], RestoreError::Missing),
        (vec![with(a), with(b), with(b)], RestoreError::Superfluous(TextKind::Url)),
    ] {
        assert_eq!(restore_experiment(&record, &recorded, given(&urls), &mut read_no_traffic_file), Err(expect));
    }
    for urls in [[with(a), rerun_url("/")], [with(a), RerunUrl { target: "/x".into(), ..with(b) }]] {
        assert!(
            matches!(restore_experiment(&record, &recorded, given(&urls), &mut read_no_traffic_file), Err(RestoreError::Differs(it)) if it.kind == TextKind::Url)
        );
    }
}

#[test]
fn a_rerun_with_different_inputs_is_refused() {
    let (secret, other) = ("/?token=abc", "/?token=def");
    let plain = run_spec_with_plan(post_plan("/", &[("Accept", "a/b")], ""));
    let hidden = run_spec_with_plan(post_plan(secret, &[("X-Any", "s3cret")], "four"));
    let header = |name: &str| vec![header(name, "x")];
    let good = RerunInputs {
        urls: [rerun_url(secret)].into(),
        headers: header("X-Any"),
        body: text_body_input("four"),
        ..RerunInputs::default()
    };
    let urls = |all: &[RerunUrl]| all.iter().cloned().collect::<VecDeque<_>>();
    let elsewhere =
        RerunUrl { origin: Origin { scheme: "http".into(), host: "i".into(), port: 80 }, ..rerun_url(secret) };
    for (name, asked, given, expect) in [
        (
            "a target for none",
            &plain,
            RerunInputs { urls: urls(&[rerun_url("/")]), ..RerunInputs::default() },
            "Superfluous(Url)",
        ),
        (
            "a header for none",
            &plain,
            RerunInputs { headers: header("Accept"), ..RerunInputs::default() },
            "Superfluous(Header)",
        ),
        (
            "a body for none",
            &plain,
            RerunInputs { body: text_body_input("x"), ..RerunInputs::default() },
            "Superfluous(Body)",
        ),
        ("a socket for none", &plain, inputs_from_texts(&[(TextKind::Unix, "/x")]), "Superfluous(Unix)"),
        ("a command for none", &plain, inputs_from_texts(&[(TextKind::BuildB, "true")]), "Superfluous(BuildB)"),
        (
            "another path",
            &hidden,
            RerunInputs { urls: urls(&[rerun_url("/x?token=abc")]), ..good.clone() },
            "Differs(MissingInput { kind: Url",
        ),
        (
            "another host",
            &hidden,
            RerunInputs { urls: urls(&[elsewhere]), ..good.clone() },
            "Differs(MissingInput { kind: Url",
        ),
        (
            "no secret",
            &hidden,
            RerunInputs { urls: urls(&[rerun_url("/")]), ..good.clone() },
            "Differs(MissingInput { kind: Url",
        ),
        ("another header", &hidden, RerunInputs { headers: header("Y"), ..good.clone() }, "Missing"),
        (
            "a body of another length",
            &hidden,
            RerunInputs { body: text_body_input("five5"), ..good.clone() },
            "Differs(MissingInput { kind: Body",
        ),
        (
            "another body",
            &hidden,
            RerunInputs { body: text_body_input("fear"), ..good.clone() },
            "Differs(MissingInput { kind: Body",
        ),
    ] {
        let settings = ExperimentSettings { body: Some(BodySource::Text), ..default_settings_with_targets(asked, &[]) };
        let outcome =
            restore_experiment(&asked.record(), &settings.record(), given, &mut read_no_traffic_file).map(|_| ());
        assert!(format!("{outcome:?}").starts_with(&format!("Err({expect}")), "{name}: {outcome:?}");
    }
    let side = |target: &str| post_plan(target, &[], "");
    for (asked, given, good) in [
        (comparison_spec(side(secret), side(other)), [secret, other], true),
        (comparison_spec(side(secret), side(other)), [secret, secret], false),
        (comparison_spec(side(secret), side(secret)), [secret, secret], true),
        (comparison_spec(side(secret), side(secret)), [secret, other], false),
    ] {
        let given = RerunInputs { urls: given.into_iter().map(rerun_url).collect(), ..RerunInputs::default() };
        let outcome = restore_experiment(
            &asked.record(),
            &default_settings_with_targets(&asked, &[]).record(),
            given,
            &mut read_no_traffic_file,
        );
        assert_eq!(outcome.is_ok(), good, "{outcome:?}");
    }
}

/// Checks that a rerun repeats a number of connections that the user requested, but not a number
/// that plimsoll adapted to the machine.
#[test]
fn a_requested_number_of_connections_is_repeated() {
    for (asked_for, expect) in [(None, 10_000), (Some(32), 32)] {
        let mut fitted = post_plan("/", &[], "");
        fitted.connection_plan.connections_max = 32;
        let asked = run_spec_with_plan(fitted);
        let settings = ExperimentSettings { connections_max: asked_for, ..default_settings_with_targets(&asked, &[]) };
        let (again, _) =
            restore_experiment(&asked.record(), &settings.record(), RerunInputs::default(), &mut read_no_traffic_file)
                .expect("whole");
        assert_eq!(again.plans()[0].connection_plan.connections_max, expect);
    }
}

/// Checks that a rerun reads the traffic file again, and refuses the file if its traffic differs
/// from the recorded traffic.
#[test]
fn a_rerun_reads_the_traffic_file_again() {
    let mut mixed = post_plan("/items?token=abc", &[("X-Any", "s3cret")], "s3cret body");
    mixed.traffic.routes.push(Route::new(Request::get_root()));
    (mixed.traffic.preflight, mixed.connection_plan.unix) = (None, Some("/run/api.sock".into()));
    let asked = run_spec_with_plan(mixed.clone());
    let mix = TrafficFileSettings {
        file: format!("/tmp/{SECRET_TOKEN}/mix.toml"),
        bases: vec!["http://h/?token=abc".to_owned()],
        headers: vec!["Accept: a/b".to_owned(), "X-Any: s3cret".to_owned()],
        ok_status: StatusSet::default(),
        ok_grpc: None,
        in_turn: false,
        timeout_ns: 1,
    };
    let settings = ExperimentSettings { mix: Some(mix.clone()), ..default_settings_with_targets(&asked, &[]) };
    let (record, recorded) = (asked.record(), settings.record());
    let json = serde_json::to_string(&recorded).expect("serialises");
    assert!(!json.contains(SECRET_TOKEN) && !json.contains("s3cret") && json.contains("a/b"), "{json}");
    let kinds: Vec<TextKind> = missing_inputs(&record, &recorded).iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [TextKind::Url, TextKind::Header, TextKind::Traffic]);
    let given = RerunInputs {
        urls: [RerunUrl { text: "http://h/?token=abc".into(), ..rerun_url("/?token=abc") }].into(),
        headers: vec![header("X-Any", "s3cret")],
        ..inputs_from_texts(&[(TextKind::Traffic, &mix.file)])
    };
    let from = |traffic: &Traffic| Some(vec![TrafficFromFile { traffic: traffic.clone(), arrivals: None }]);
    let mut of_file =
        |read: &ExperimentSettings<String>| from(&mixed.traffic).filter(|_| read.mix.as_ref() == Some(&mix));
    assert_eq!(restore_experiment(&record, &recorded, given.clone(), &mut of_file), Ok((asked, settings)));
    let mut other = mixed.traffic.clone();
    other.routes[0].request.body = b"s3cret bode".to_vec();
    let outcome = restore_experiment(&record, &recorded, given.clone(), &mut |_| from(&other));
    assert!(matches!(outcome, Err(RestoreError::Differs(it)) if it.kind == TextKind::Traffic));
    let mut more = mixed.traffic.clone();
    more.setup_teardown.setup.push(OneOffRoute { route: Route::new(Request::get_root()), times: 1, may_fail: false });
    let outcome = restore_experiment(&record, &recorded, given.clone(), &mut |_| from(&more));
    assert!(matches!(outcome, Err(RestoreError::Differs(it)) if it.kind == TextKind::Traffic));
    assert_eq!(
        restore_experiment(&record, &recorded, given.clone(), &mut read_no_traffic_file),
        Err(RestoreError::UnreadableTraffic)
    );
    for (name, given, expect) in [
        ("no file", RerunInputs { texts: Default::default(), ..given.clone() }, RestoreError::Missing),
        ("no base", RerunInputs { urls: VecDeque::new(), ..given.clone() }, RestoreError::Missing),
        ("no header", RerunInputs { headers: vec![], ..given.clone() }, RestoreError::Missing),
        (
            "a header too many",
            RerunInputs { headers: vec![header("X-Any", "s3cret"), header("Y", "x")], ..given },
            RestoreError::Superfluous(TextKind::Header),
        ),
    ] {
        assert_eq!(restore_experiment(&record, &recorded, given, &mut of_file), Err(expect), "{name}");
    }
}

/// Creates a load that replays four requests from an access log.
fn log_replay_plan(last_ns: u64, status: u16) -> Plan {
    let mut plan = post_plan("/items?token=abc", &[("X-Any", "s3cret")], "");
    let mut targets = RequestTargets::default();
    let entry = |target: &str| RequestListEntry { target: targets.push(target).expect("room"), route: 0, status };
    let entries = ["/items?token=abc", "/a", "/b", "/c"].map(entry).to_vec();
    plan.traffic.request_list =
        Some(Arc::new(RequestList { targets: targets.into(), entries, sessions: None, facts: ReplayFacts::default() }));
    plan.traffic.choice = RouteChoice::RequestList;
    let arrivals = ArrivalTimes::new(vec![0, 5, 5, last_ns], 0, 100).expect("moments");
    (plan.load.shape, plan.load.duration_ns) = (LoadShape::ArrivalTimes { arrivals }, Some(100));
    plan
}

#[test]
fn a_rerun_needs_the_same_log() {
    let asked = run_spec_with_plan(log_replay_plan(9, 200));
    let replay = ReplaySettings {
        logs: vec!["access.log".to_owned(), format!("/tmp/{SECRET_TOKEN}/access.log")],
        target: "http://h/".to_owned(),
        headers: vec!["X-Any: s3cret".to_owned()],
        ok_status: StatusSet::default(),
        timeout_ns: 1,
        reading: LogReadingSettings::default(),
        speed_milli: 1000,
        scale_milli: 1000,
        only: vec![],
        skip: vec!["png$".to_owned()],
        with_unsafe: false,
        length_ns: None,
        draws_sessions: false,
    };
    let settings = ExperimentSettings { replay: Some(replay), ..default_settings_with_targets(&asked, &[]) };
    let (record, recorded) = (asked.record(), settings.record());
    let json = serde_json::to_string(&(&record, &recorded)).expect("serialises");
    assert!(!json.contains(SECRET_TOKEN) && !json.contains("s3cret") && !json.contains("abc"), "{json}");
    let given = RerunInputs {
        headers: vec![header("X-Any", "s3cret")],
        // If the record does not name one of the logs, the user must give all logs again.
        ..inputs_from_texts(&[
            (TextKind::Log, "access.log"),
            (TextKind::Log, &format!("/tmp/{SECRET_TOKEN}/access.log")),
        ])
    };
    let read = |last_ns: u64, status: u16| {
        let plan = log_replay_plan(last_ns, status);
        let LoadShape::ArrivalTimes { arrivals } = plan.load.shape else { panic!("no moments") };
        move |_: &ExperimentSettings<String>| {
            Some(vec![TrafficFromFile { traffic: plan.traffic.clone(), arrivals: Some(arrivals.clone()) }])
        }
    };
    let again = restore_experiment(&record, &recorded, given.clone(), &mut read(9, 200));
    assert_eq!(again, Ok((asked, settings)));
    for (last_ns, status) in [(10, 200), (9, 404)] {
        let outcome = restore_experiment(&record, &recorded, given.clone(), &mut read(last_ns, status));
        assert!(matches!(outcome, Err(RestoreError::Differs(it)) if it.kind == TextKind::Log), "{last_ns} {status}");
    }
}
