//! Shared helpers of the tests: running the binary, starting servers, reading documents.

use plimsoll_bench::servers::RunningServer;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The longest time that a command of these tests may take on any machine, before the test kills
/// it.
pub const COMMAND_DURATION_MAX: Duration = Duration::from_secs(120);

/// The outcome of one run of the binary.
pub struct CommandOutcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Repeats a load until the generator was not the limit, and returns the document of the last run.
/// On a busy machine this may take several runs.
pub fn run_until_generator_is_not_limit(args: &[&str]) -> Value {
    let mut document = run_to_json(args);
    for _ in 0..5 {
        if document["generator"]["limited"] == false {
            break;
        }
        document = run_to_json(args);
    }
    document
}

impl CommandOutcome {
    /// Parses standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one JSON document: {error}\n{}\n{}", self.stdout, self.stderr))
    }
}

/// Returns the command that runs the binary in a new folder. The command restores the default
/// effect of ^C. A test suite in a shell's background ignores ^C, and child processes of the test
/// suite would also ignore ^C.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,QUIT", env!("CARGO_BIN_EXE_plimsoll")]);
    command.args(arguments).current_dir(create_new_folder("work")).stdin(Stdio::null());
    command
}

/// The number of heavy measurements that may run at the same time. Two measurements disturb each
/// other no more than other programs would, and every test must pass while other programs run.
const MEASUREMENTS_MAX: usize = 2;

/// The number of measurements that may still begin, and the signal that a measurement has ended.
static MEASUREMENT_TURNS_LEFT: (Mutex<usize>, Condvar) = (Mutex::new(MEASUREMENTS_MAX), Condvar::new());

/// Permission to run one heavy measurement. Dropping this value allows the next measurement to
/// begin.
struct MeasurementTurn;

impl MeasurementTurn {
    fn wait() -> MeasurementTurn {
        let (free, ended) = &MEASUREMENT_TURNS_LEFT;
        let free = free.lock().unwrap_or_else(PoisonError::into_inner);
        *ended.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner) -= 1;
        MeasurementTurn
    }
}

impl Drop for MeasurementTurn {
    fn drop(&mut self) {
        let (free, ended) = &MEASUREMENT_TURNS_LEFT;
        *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        ended.notify_one();
    }
}

/// The highest rate of a light load, 1/s. At this rate plimsoll and a test server use a few percent
/// of a core.
const LIGHT_LOAD_RPS_MAX: f64 = 500.0;

/// Whether a command line searches, compares or explains with loads above [`LIGHT_LOAD_RPS_MAX`].
fn is_heavy_measurement(arguments: &[&str]) -> bool {
    let measures = arguments.first().is_some_and(|word| ["find", "prove", "explain", "overload"].contains(word));
    let is_light = arguments.windows(2).any(|words| {
        ["--line", "--max-rate", "--rate"].contains(&words[0])
            && words[1].parse().is_ok_and(|rps: f64| rps <= LIGHT_LOAD_RPS_MAX)
    });
    measures && !is_light && !arguments.contains(&"--help")
}

/// The commands that make loads and have the flag `--spin`.
const LOAD_COMMANDS: [&str; 7] = ["run", "find", "prove", "explain", "overload", "replay", "sweep"];

/// Adds `--spin=off` to a command that makes a load, unless the command sets the flag or asks for
/// help. Workers that spin (wait in a busy loop) would take CPU time from other tests that run at
/// the same time. Tests of the default value set `--spin=auto` or use [`command`].
fn without_spinning<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let is_load = arguments.first().is_some_and(|command| LOAD_COMMANDS.contains(command));
    let is_set = arguments.iter().any(|word| word.starts_with("--spin") || *word == "--help" || *word == "-h");
    match arguments {
        [command, rest @ ..] if is_load && !is_set => [&[*command, "--spin=off"], rest].concat(),
        _ => arguments.to_vec(),
    }
}

/// Runs the binary to its end; loads do not spin. A heavy measurement first waits for its turn.
pub fn plimsoll(arguments: &[&str]) -> CommandOutcome {
    let _turn = is_heavy_measurement(arguments).then(MeasurementTurn::wait);
    plimsoll_without_turn(arguments)
}

/// Runs the binary to its end, also while another command measures; loads do not spin.
pub fn plimsoll_without_turn(arguments: &[&str]) -> CommandOutcome {
    let arguments = without_spinning(arguments);
    wait_for_exit(command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts"))
}

/// Waits for the end of a started binary, and kills the process after [`COMMAND_DURATION_MAX`].
pub fn wait_for_exit(mut child: Child) -> CommandOutcome {
    let (mut stdout, mut stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).map(|_| text)
    });
    let watchdog = Watchdog::watch_process(child.id());
    let mut out = String::new();
    stdout.read_to_string(&mut out).expect("text");
    let status = child.wait().expect("ends");
    drop(watchdog);
    let stderr = errors.join().expect("no panic").expect("text");
    CommandOutcome { code: status.code().unwrap_or(-1), stdout: out, stderr }
}

/// Kills a process that hangs, so that the test fails instead of waiting forever.
struct Watchdog {
    /// Dropping this sender ends the watchdog's thread.
    _done: std::sync::mpsc::Sender<()>,
}

impl Watchdog {
    fn watch_process(pid: u32) -> Watchdog {
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            if wait.recv_timeout(COMMAND_DURATION_MAX) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                signal(pid, "KILL");
            }
        });
        Watchdog { _done: done }
    }
}

/// Sends a signal to a process that a test started.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.is_ok_and(|s| s.success()), "kill -{name} {pid}");
}

/// Runs a command with `--json --quiet` and returns its document. Exit codes 1 (nothing succeeded)
/// and 3 (no verdict) are accepted; `gates.rs` tests these codes.
pub fn run_to_json(arguments: &[&str]) -> Value {
    let done = plimsoll(&[arguments, &["--json", "--quiet"]].concat());
    assert!(done.code < 2 || done.code == 3, "{arguments:?}: {} {}", done.code, done.stderr);
    done.json()
}

/// Returns a number of a document by its path, such as `ledger.failed.timeout`.
pub fn number_at_path(document: &Value, path: &str) -> f64 {
    path.split('.')
        .fold(document, |value, key| &value[key])
        .as_f64()
        .unwrap_or_else(|| panic!("no number at {path} in {document:#}"))
}

/// Returns the upper end of the load line's interval, 1/s. Only a search that other programs
/// disturbed may find no upper end; the function then returns infinity. A search has no upper end
/// if a rate near its end met the SLO, and the budget was too small for a higher rate.
pub fn load_line_upper_rps(document: &Value) -> f64 {
    let upper = &document["load_line_rps"]["upper"];
    assert!(upper.is_number() || document["disturbed"] == true, "no upper end: {document:#}");
    upper.as_f64().unwrap_or(f64::INFINITY)
}

/// Asserts that scheduled = succeeded + failed + unsent + in flight, and that the totals agree.
pub fn assert_ledger_closes(document: &Value, what: &str) {
    let failed: f64 = document["ledger"]["failed"]
        .as_object()
        .expect("failures by kind")
        .values()
        .map(|count| count.as_f64().expect("a count"))
        .sum();
    let succeeded = number_at_path(document, "ledger.succeeded");
    let sum =
        succeeded + failed + number_at_path(document, "ledger.unsent") + number_at_path(document, "ledger.in_flight");
    assert_eq!(number_at_path(document, "ledger.scheduled"), sum, "{what}: {:#}", document["ledger"]);
    assert_eq!(number_at_path(document, "requests"), succeeded + failed, "{what}");
}

/// Copies a run file that `scripts/record` made into a new folder, and returns its path. Tests that
/// read run files use such a copy instead of a load of their own.
pub fn copy_recorded_run_file(name: &str) -> String {
    let file = format!("{name}.plimsoll");
    let copy = path_in_new_folder("recorded", &file);
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded")).join(file);
    std::fs::copy(&kept, &copy).unwrap_or_else(|error| panic!("{}: {error} (scripts/record)", kept.display()));
    copy
}

/// Creates a new folder for one use, under the build's temporary folder.
pub fn create_new_folder(name: &str) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder");
    path
}

/// Returns the path of a file with this name in a new folder, as text.
pub fn path_in_new_folder(name: &str, file: &str) -> String {
    create_new_folder(name).join(file).into_os_string().into_string().expect("text")
}

/// A server in its own process. Dropping this value ends the server.
pub struct Server {
    child: Child,
    pub url: String,
    /// Whether the server gets SIGTERM before it is killed, because its children would otherwise
    /// survive.
    has_children: bool,
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server now, so that its port is free again.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.has_children) {
            signal(self.child.id(), "TERM");
            let deadline = Instant::now() + Duration::from_secs(10);
            while Instant::now() < deadline && self.child.try_wait().is_ok_and(|status| status.is_none()) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a server that responds to 500 requests/s at most, to any path. A load on this server
/// needs little CPU time, whatever the command. Tests of output use this server; tests of rates
/// need faster servers.
pub fn slow_server() -> RunningServer {
    plimsoll_bench::servers::start_slots_server(2, 4.0).expect("starts")
}

/// Starts `plimsoll baseline` on a free port.
pub fn start_baseline(threads: u32) -> Server {
    baseline_at("127.0.0.1:0", threads)
}

/// Starts `plimsoll baseline` on this address.
pub fn baseline_at(listen: &str, threads: u32) -> Server {
    baseline_with_flags(&["--listen", listen, "--threads", &threads.to_string()])
}

/// Starts `plimsoll baseline` with TLS on a free port.
pub fn baseline_tls(certificate: &Path, key: &Path) -> Server {
    let [certificate, key] = [certificate, key].map(|path| path.to_str().expect("text"));
    baseline_with_flags(&["--listen", "127.0.0.1:0", "--threads", "1", "--cert", certificate, "--key", key])
}

fn baseline_with_flags(flags: &[&str]) -> Server {
    let mut child =
        command(&[&["baseline"], flags].concat()).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let url = first_line(&mut child);
    Server { child, url, has_children: false }
}

/// Starts a server that prints its URL first. `what` names the required program in errors.
pub fn start_server_process(command: &mut Command, what: &str) -> Server {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{what} is needed for the end-to-end tests: {error}"));
    let url = first_line(&mut child);
    Server { child, url, has_children: false }
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("an address");
    assert!(!line.is_empty(), "the server printed no address");
    line.trim().to_owned()
}

/// Starts Go's net/http on a free port.
pub fn go_server() -> Server {
    go_server_with_flags("http", &[])
}

/// Starts Go's net/http with TLS.
pub fn go_server_tls(certificate: &Path, key: &Path) -> Server {
    go_server_with_flags("https", &[certificate, key])
}

/// Builds a server with Go's net/http, once, and returns its path.
pub fn go_binary() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let binary = create_new_folder("go-server").join("go-server");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/go-server/main.go");
        let Output { status, stderr, .. } = Command::new("go")
            // The flags equal the flags in scripts/needs, so Go reuses its compiled standard
            // library.
            .args(["build", "-trimpath", "-o"])
            .arg(&binary)
            .arg(source)
            .env("CGO_ENABLED", "0")
            .output()
            .expect("go is needed for the end-to-end tests (install Go 1.24 or newer)");
        assert!(status.success(), "go build: {}", String::from_utf8_lossy(&stderr));
        binary
    })
}

fn go_server_with_flags(scheme: &str, arguments: &[&Path]) -> Server {
    let binary = go_binary();
    let mut child =
        Command::new(binary).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let url = format!("{scheme}://{}", first_line(&mut child));
    Server { child, url, has_children: false }
}

/// Starts nginx in one process on a free port.
pub fn nginx() -> Server {
    nginx_with_config(NGINX_ONE_PROCESS_CONFIG, "http", "", "")
}

const NGINX_ONE_PROCESS_CONFIG: &str = "master_process off; worker_processes 1;";

/// Starts nginx as usual: a parent process that forks workers.
pub fn nginx_with_workers(workers: u32) -> Server {
    nginx_with_config(&format!("worker_processes {workers};"), "http", "", "")
}

/// Starts nginx with TLS.
pub fn nginx_tls(certificate: &Path, key: &Path) -> Server {
    let lines = format!("ssl_certificate {}; ssl_certificate_key {};", certificate.display(), key.display());
    nginx_with_config(NGINX_ONE_PROCESS_CONFIG, "https", " ssl", &lines)
}

/// Starts nginx that speaks HTTP/2 without TLS.
pub fn nginx_h2() -> Server {
    nginx_with_config(NGINX_ONE_PROCESS_CONFIG, "http", " http2", "")
}

/// Starts nginx that also listens on a unix socket.
pub fn nginx_unix(path: &Path) -> Server {
    nginx_with_config(NGINX_ONE_PROCESS_CONFIG, "http", "", &format!("listen unix:{};", path.display()))
}

fn nginx_with_config(processes: &str, scheme: &str, listen_more: &str, lines: &str) -> Server {
    let folder = create_new_folder("nginx");
    let shown = folder.display();
    // nginx cannot choose and report a free port, so the test finds a free port first. If another
    // process takes the port, nginx ends and another port is tried.
    for _ in 0..5 {
        let free = plimsoll_sys::tcp::unused_loopback_address().expect("a free port");
        let text = format!(
            "daemon off; {processes} pid {shown}/pid; error_log {shown}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {shown}/body; proxy_temp_path {shown}/proxy;\n\
               fastcgi_temp_path {shown}/fastcgi; uwsgi_temp_path {shown}/uwsgi; scgi_temp_path {shown}/scgi;\n\
               keepalive_requests 1000; default_type text/plain;\n\
               server {{ listen {free}{listen_more}; {lines} location / {{ return 200 'hello'; }} location /gone {{ return 410; }} }} }}\n"
        );
        let configuration = folder.join("nginx.conf");
        std::fs::write(&configuration, text).expect("written");
        let binary = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
        let mut child = Command::new(binary)
            .arg("-p")
            .arg(&folder)
            .arg("-c")
            .arg(&configuration)
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx is needed for the end-to-end tests (apt-get install nginx-light)");
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline && child.try_wait().expect("a child").is_none() {
            if std::net::TcpStream::connect(free).is_ok() {
                return Server { child, url: format!("{scheme}://{free}"), has_children: true };
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("nginx does not start; see {shown}/error.log");
}

/// A request that a test server received: the lines of its head, and its body.
pub struct ReceivedRequest {
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// Reads the next request of a connection; `None` if the client has closed it.
    pub fn next(lines: &mut impl BufRead) -> std::io::Result<Option<ReceivedRequest>> {
        let mut heard = ReceivedRequest { head: Vec::new(), body: Vec::new() };
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line.trim_end().is_empty() {
                break;
            }
            heard.head.push(line.trim_end().to_owned());
        }
        heard.body.resize(heard.field("content-length").parse().unwrap_or(0), 0);
        lines.read_exact(&mut heard.body)?;
        Ok(Some(heard))
    }

    /// Returns the value of a header field; empty without the field.
    pub fn field(&self, name: &str) -> &str {
        let mut fields = self.head.iter().filter_map(|line| line.split_once(": "));
        fields.find(|field| field.0.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}
