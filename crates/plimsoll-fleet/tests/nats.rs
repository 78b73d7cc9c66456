//! Tests of coordinators and agents on a real `nats-server`, with loads on a real server. Each
//! completed request of an agent counts exactly once, even if the bus or the coordinator fails.
//!
//! In this file, coordinators and agents are threads of one process. In the tests of
//! `plimsoll/tests/e2e/fleet_nats.rs`, coordinators and agents are separate processes.

#![forbid(unsafe_code)]

use plimsoll_engine::Tick;
use plimsoll_fleet::fleet_load::FleetOptions;
use plimsoll_fleet::fleet_location::BusAddress;
use plimsoll_fleet::nats_bus::NatsBus;
use plimsoll_fleet::roster::AgentChoice;
use plimsoll_fleet::{AllowList, BusAccess, BusJoinOptions, FetchedRun, FleetLoad, fetch_run_file, join_bus};
use plimsoll_model::{
    AgentLossPolicy, ArrivalSpacing, EarlyStopReason, LoadCurve, LoadEnd, LoadShape, Plan, Run, Spin, codec,
};
use plimsoll_study::runner::RemoteLoad;
use plimsoll_sys::clock::monotonic_ns;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const SECOND_NS: u64 = 1_000_000_000;

fn create_test_folder(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}-{name}", std::process::id()));
    fs::create_dir_all(&path).expect("a folder");
    path
}

/// A `nats-server` process on a free port. The process is killed when the value is dropped.
struct NatsTestServer {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl NatsTestServer {
    /// Starts the server. Returns `None` and prints a message if this machine has no `nats-server`.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn start() -> Option<NatsTestServer> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            eprintln!("SKIPPED: no nats-server on this machine (scripts/needs nats-server)");
            return None;
        }
        let folder = create_test_folder("nats");
        let child = NatsTestServer::spawn(&folder, "127.0.0.1:-1");
        let mut nats = NatsTestServer { child, folder, url: String::new() };
        nats.url = nats.wait_for_url();
        Some(nats)
    }

    fn spawn(folder: &Path, listen: &str) -> Child {
        let store = "jetstream { store_dir: \"store\", sync_interval: always }";
        let config = format!("listen: \"{listen}\"\nports_file_dir: \"{}\"\n{store}\n", folder.display());
        fs::write(folder.join("nats.conf"), config).expect("written");
        let mut command = Command::new("nats-server");
        command.args(["-c", "nats.conf"]).current_dir(folder).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nats-server starts")
    }

    fn wait_for_url(&self) -> String {
        let ports = self.folder.join(format!("nats-server_{}.ports", self.child.id()));
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let text = fs::read(&ports).unwrap_or_default();
            let document: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            if let Some(url) = document["nats"][0].as_str() {
                return url.to_owned();
            }
            assert!(Instant::now() < deadline, "nats-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn restart_server(&mut self, away: Duration) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ends");
        std::thread::sleep(away);
        self.child = NatsTestServer::spawn(&self.folder, self.url.trim_start_matches("nats://"));
        assert_eq!(self.wait_for_url(), self.url);
    }

    fn bus_access(&self) -> BusAccess {
        BusAccess { address: BusAddress::parse(&self.url).expect("an address"), creds: None, ca: None }
    }

    /// Starts an agent in a thread that ends with the process, and waits until the agent has joined
    /// the bus. Returns the folder of the agent's spool (its stored intervals).
    fn start_agent(&self, name: &str) -> PathBuf {
        let spool = create_test_folder("spool");
        let allow = AllowList::parse("127.0.0.1").expect("a list");
        let settings = BusJoinOptions {
            access: self.bus_access(),
            name: name.to_owned(),
            allow,
            verifier: None,
            spool: spool.clone(),
            connect_timeout: Duration::from_secs(5),
        };
        let (sender, joined) = channel();
        std::thread::spawn(move || {
            let failed = sender.clone();
            if let Err(failure) = join_bus(settings, &mut || _ = sender.send(Ok(()))) {
                let _ = failed.send(Err(failure.to_string()));
            }
        });
        let joined = joined.recv_timeout(Duration::from_secs(20)).expect("it joins or refuses");
        joined.unwrap_or_else(|why| panic!("{why}"));
        spool
    }

    fn claim_agents(&self, choice: &str) -> Result<FleetLoad<NatsBus>, String> {
        let choice = AgentChoice::parse(choice).expect("a choice");
        let wait = Some(Duration::from_secs(5));
        let (bus, names) = NatsBus::open(&self.bus_access(), &choice, wait).map_err(|failure| failure.to_string())?;
        let wishes = FleetOptions {
            workers: Some(1),
            spin: Spin::Off,
            preflight: true,
            on_loss: AgentLossPolicy::Continue,
            skew_ns_max: SECOND_NS,
            system: String::new(),
            key: None,
        };
        FleetLoad::wait_for_agents(bus, &names, wishes).map_err(|failure| failure.to_string())
    }
}

impl Drop for NatsTestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server that counts its responses.
fn start_counting_server() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, count) = (listener.local_addr().expect("bound"), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, counted) = (stream.expect("a connection"), Arc::clone(&counted));
            std::thread::spawn(move || {
                let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
                while let Ok(read) = stream.read(&mut piece)
                    && read > 0
                {
                    bytes.extend_from_slice(&piece[..read]);
                    while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                        bytes.drain(..end + 4);
                        counted.fetch_add(1, Ordering::Relaxed);
                        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (address, count)
}

fn constant_rate_plan(address: SocketAddr, rate: f64, seconds: u64) -> Plan {
    let rate = LoadCurve::constant(rate);
    let shape = LoadShape::Open { rate, arrivals: ArrivalSpacing::Constant };
    let mut plan = Plan::for_get_request("127.0.0.1", address.port(), vec![address], shape);
    (plan.load.duration_ns, plan.load.warmup_ns) = (Some(seconds * SECOND_NS), 0);
    plan
}

fn on_tick(_: &Tick) -> ControlFlow<EarlyStopReason> {
    ControlFlow::Continue(())
}

fn run(fleet: &mut FleetLoad<NatsBus>, plan: &Plan) -> Run {
    fleet.connect(plan, true, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
    let origin_ns = monotonic_ns() + fleet.start_ahead_ns();
    fleet.run(plan, origin_ns, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Returns the files of a spool folder that contain an agent's stored intervals.
fn spool_files(spool: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(spool).expect("a folder").flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "spool")).collect()
}

fn wait_until_true(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(40);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn three_agents_of_a_bus_make_one_load() {
    let Some(nats) = NatsTestServer::start() else { return };
    let (address, responses) = start_counting_server();
    let spools = ["a1", "a2", "a3"].map(|name| nats.start_agent(name));
    let mut fleet = nats.claim_agents("3").unwrap_or_else(|why| panic!("{why}"));
    // While the agents work for one coordinator, no other coordinator can claim them.
    let refused = nats.claim_agents("a2").err().expect("an agent that is taken");
    assert!(refused.contains("agent a2 works for another coordinator"), "{refused}");
    let mut count = 0;
    for _ in 0..2 {
        let run = run(&mut fleet, &constant_rate_plan(address, 300.0, 2));
        let ledger = run.totals().routes_sum.ledger;
        // On a busy machine, an agent may send fewer requests than scheduled. Requests that an
        // agent did not send count as unsent.
        assert!(ledger.counts_add_up() && ledger.scheduled == 600, "{ledger:?}");
        assert_eq!(ledger.succeeded + ledger.unsent, 600, "{ledger:?}");
        assert_eq!(run.ending, Some(LoadEnd::Finished));
        let names: Vec<&str> = run.agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["a1", "a2", "a3"]);
        assert!(run.agents.iter().all(|agent| agent.loss_reason.is_none() && agent.ledger.scheduled == 200));
        count += ledger.succeeded;
        assert_eq!(responses.load(Ordering::Relaxed), count);
    }
    drop(fleet);
    wait_until_true("intervals stay in a spool", || spools.iter().all(|spool| spool_files(spool).is_empty()));
    // After their coordinator has ended, the agents are free again. A second agent is refused if
    // another agent already uses its name.
    drop(nats.claim_agents("a1,a2,a3").unwrap_or_else(|why| panic!("{why}")));
    let second = BusJoinOptions {
        access: nats.bus_access(),
        name: "a1".to_owned(),
        allow: AllowList::default(),
        verifier: None,
        spool: create_test_folder("spool"),
        connect_timeout: Duration::ZERO,
    };
    let refused = join_bus(second, &mut || {}).expect_err("two of one name").to_string();
    assert!(refused.contains("another agent with the name a1 is already on the bus"), "{refused}");
}

#[test]
fn a_bus_that_is_killed_and_restarted_loses_no_interval() {
    let Some(mut nats) = NatsTestServer::start() else { return };
    let (address, responses) = start_counting_server();
    let spools = ["b1", "b2"].map(|name| nats.start_agent(name));
    let mut fleet = nats.claim_agents("2").unwrap_or_else(|why| panic!("{why}"));
    let plan = constant_rate_plan(address, 200.0, 8);
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| run(&mut fleet, &plan));
        std::thread::sleep(Duration::from_secs(2));
        nats.restart_server(Duration::from_millis(200));
        std::thread::sleep(Duration::from_secs(2));
        nats.restart_server(Duration::from_millis(1_500));
        run.join().expect("a run")
    });
    let ledger = run.totals().routes_sum.ledger;
    assert!(ledger.counts_add_up() && ledger.scheduled == 1_600 && ledger.unsent == 0, "{ledger:?}");
    assert!(run.agents.iter().all(|agent| agent.loss_reason.is_none()), "{:?}", run.agents);
    assert_eq!(responses.load(Ordering::Relaxed), ledger.succeeded);
    drop(fleet);
    wait_until_true("intervals stay in a spool", || spools.iter().all(|spool| spool_files(spool).is_empty()));
}

#[test]
fn completed_intervals_survive_a_lost_coordinator() {
    let Some(nats) = NatsTestServer::start() else { return };
    let (address, responses) = start_counting_server();
    let spools = ["c1", "c2"].map(|name| nats.start_agent(name));
    let mut fleet = nats.claim_agents("2").unwrap_or_else(|why| panic!("{why}"));
    let plan = constant_rate_plan(address, 200.0, 4);
    // The coordinator hangs forever in the middle of the load, so it records no further intervals.
    std::thread::spawn(move || {
        fleet.connect(&plan, true, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        let origin_ns = monotonic_ns() + fleet.start_ahead_ns();
        let _ = fleet.run(&plan, origin_ns, &mut |tick| {
            if tick.end_ns > SECOND_NS {
                loop {
                    std::thread::park();
                }
            }
            ControlFlow::Continue(())
        });
    });
    wait_until_true("no load begins", || spools.iter().all(|spool| spool_files(spool).len() == 1));
    let name = spool_files(&spools[0])[0].file_stem().expect("a name").to_string_lossy().into_owned();
    std::thread::sleep(Duration::from_secs(7));
    let path = create_test_folder("fetched").join("run.plimsoll");
    let fetched = fetch_run_file(&nats.bus_access(), &name, &path).unwrap_or_else(|failure| panic!("{failure}"));
    let FetchedRun::Recovered { intervals, unfinished } = fetched else { panic!("{fetched:?}") };
    assert!(intervals >= 80 && unfinished.is_empty(), "{intervals} {unfinished:?}");
    let file = codec::decode(&fs::read(&path).expect("written")).expect("a run file");
    let run = &file.experiment.trials[0].run;
    let ledger = run.totals().routes_sum.ledger;
    assert!(ledger.counts_add_up() && ledger.scheduled == 800 && ledger.succeeded == 800, "{ledger:?}");
    assert_eq!(responses.load(Ordering::Relaxed), 800);
    // Intervals that are recorded in a run file are removed from the spools.
    wait_until_true("intervals stay in a spool", || spools.iter().all(|spool| spool_files(spool).is_empty()));
}
