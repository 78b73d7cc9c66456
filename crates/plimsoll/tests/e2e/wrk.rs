//! Tests `plimsoll wrk`: a script must send the same requests as under wrk, and the output must
//! equal wrk's output line for line. A test server records every message.

use crate::test_support::{create_new_folder, path_in_new_folder, plimsoll};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that records all requests, with one thread for each connection.
struct RequestLogServer {
    url: String,
    log: Arc<Mutex<Vec<Vec<String>>>>,
}

impl RequestLogServer {
    /// Starts a server that responds without delay.
    fn start() -> RequestLogServer {
        RequestLogServer::start_with_delay(Duration::ZERO)
    }

    /// Starts a server that takes 4 ms for each response, so that a closed loop needs little CPU
    /// time.
    fn start_slow() -> RequestLogServer {
        RequestLogServer::start_with_delay(Duration::from_millis(4))
    }

    fn start_with_delay(delay: Duration) -> RequestLogServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let log: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let writing = Arc::clone(&log);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&writing);
                std::thread::spawn(move || serve_connection(&stream, &log, delay));
            }
        });
        RequestLogServer { url, log }
    }

    /// Returns the messages received since the last call of this function: for each message its
    /// lines with sorted header fields, and its content.
    fn take_messages(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.log.lock().expect("no panic"))
    }
}

fn serve_connection(stream: &TcpStream, log: &Mutex<Vec<Vec<String>>>, delay: Duration) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    let mut count = 0u32;
    loop {
        let mut lines = Vec::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                return;
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.parse().expect("a length");
            }
            lines.push(line);
        }
        let mut content = vec![0; length];
        if reader.read_exact(&mut content).is_err() {
            return;
        }
        lines[1..].sort();
        lines.push(String::from_utf8_lossy(&content).into_owned());
        let status = if lines[0].contains(" /missing") { "404 Not Found" } else { "200 OK" };
        {
            let mut log = log.lock().expect("no panic");
            if log.len() < 20_000 {
                log.push(lines);
            }
        }
        count += 1;
        std::thread::sleep(delay);
        let answer = format!("HTTP/1.1 {status}\r\nX-Token: t{}\r\nContent-Length: 2\r\n\r\nok", count.min(1));
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Writes a script into a new folder.
fn write_script_file(name: &str, text: &str) -> String {
    let path = create_new_folder("wrk").join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("a name in UTF-8").to_owned()
}

#[test]
fn the_output_matches_wrk() {
    let server = RequestLogServer::start_slow();
    let done = plimsoll(&["wrk", "-t1", "-c2", "-d1s", "--latency", &server.url]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines: Vec<&str> = done.stdout.lines().collect();
    let starts = [
        &format!("Running 1s test @ {}", server.url),
        "  1 threads and 2 connections",
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev",
        "    Latency   ",
        "    Req/Sec   ",
        "  Latency Distribution",
        "     50%  ",
        "     75%  ",
        "     90%  ",
        "     99%  ",
        "  ",
        "Requests/sec: ",
        "Transfer/sec: ",
    ];
    assert_eq!(lines.len(), starts.len(), "{}", done.stdout);
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line:?} is not {start:?}: {}", done.stdout);
    }
    // Users' scripts extract the number of requests and the rate with awk.
    let requests: f64 = lines[10].split_whitespace().next().expect("a number").parse().expect("a number");
    let rate: f64 = lines[11].split_whitespace().nth(1).expect("a number").parse().expect("a number");
    assert!(requests > 0.0 && (rate / requests - 1.0).abs() < 0.1, "{requests} in a second are {rate} a second");
    // There is no preflight request, and a static request is always the same.
    let asked = server.take_messages();
    assert!(asked.iter().all(|lines| lines == &asked[0]) && asked[0][0] == "GET / HTTP/1.1", "{:?}", asked[0]);
}

#[test]
fn scripts_send_the_intended_requests() {
    let server = RequestLogServer::start_slow();
    let host = server.url.trim_start_matches("http://").to_owned();
    let rows: [(&str, &str, &[&[&str]]); 5] = [
        (
            "post.lua",
            "wrk.method = 'POST'; wrk.body = 'foo=bar&baz=quux'
             wrk.headers['Content-Type'] = 'application/x-www-form-urlencoded'",
            &[&[
                "POST /p HTTP/1.1",
                "Content-Length: 16",
                "Content-Type: application/x-www-form-urlencoded",
                "HOST",
                "foo=bar&baz=quux",
            ][..]; 2],
        ),
        (
            "counter.lua",
            "counter = 0
             request = function() wrk.headers['X-Counter'] = counter; counter = counter + 1
                return wrk.format(nil, '/' .. counter) end",
            &[&["GET /2 HTTP/1.1", "HOST", "X-Counter: 1", ""], &["GET /3 HTTP/1.1", "HOST", "X-Counter: 2", ""]],
        ),
        (
            "auth.lua",
            "local token, path = nil, '/authenticate'
             request = function() return wrk.format('GET', path) end
             response = function(status, headers, body)
                if not token and status == 200 then
                   token = headers['X-Token']; path = '/resource/' .. body; wrk.headers['X-Token'] = token end end",
            &[&["GET /authenticate HTTP/1.1", "HOST", ""], &["GET /resource/ok HTTP/1.1", "HOST", "X-Token: t1", ""]],
        ),
        (
            "pipeline.lua",
            "init = function(args) local r = {}
                r[1] = wrk.format(nil, '/?foo'); r[2] = wrk.format(nil, '/?bar'); r[3] = wrk.format(nil, '/?baz')
                req = table.concat(r) end
             request = function() return req end",
            &[
                &["GET /?foo HTTP/1.1", "HOST", ""],
                &["GET /?bar HTTP/1.1", "HOST", ""],
                &["GET /?baz HTTP/1.1", "HOST", ""],
                &["GET /?foo HTTP/1.1", "HOST", ""],
            ],
        ),
        (
            "args.lua",
            "function init(args) wrk.path = '/' .. args[1] .. (#args) end",
            &[&["GET /-c2 HTTP/1.1", "HOST", ""]],
        ),
    ];
    for (name, text, expect) in rows {
        let path = write_script_file(name, text);
        let url = format!("{}/p", server.url);
        let done = plimsoll(&["wrk", "-t1", "-c1", "-d300ms", "-s", &path, &url, "--", "-c", "two words"]);
        assert_eq!(done.code, 0, "{name}: {}{}", done.stdout, done.stderr);
        let asked = server.take_messages();
        for (number, lines) in expect.iter().enumerate() {
            let lines: Vec<String> = lines.iter().map(|line| line.replace("HOST", &format!("Host: {host}"))).collect();
            assert_eq!(asked.get(number), Some(&lines), "{name}");
        }
    }
}

/// Checks that scripts can load C modules such as cjson and socket, which take Lua's functions from
/// the program.
#[test]
fn scripts_can_load_a_module_in_c() {
    let server = RequestLogServer::start_slow();
    let module = create_new_folder("modules");
    let source = module.join("counted.c");
    let text = "typedef struct lua_State lua_State;
        void lua_pushinteger(lua_State *, long); long luaL_checkinteger(lua_State *, int);
        void lua_pushcclosure(lua_State *, int (*)(lua_State *), int);
        static int twice(lua_State *L) { lua_pushinteger(L, 2 * luaL_checkinteger(L, 1)); return 1; }
        int luaopen_counted(lua_State *L) { lua_pushcclosure(L, twice, 0); return 1; }";
    std::fs::write(&source, text).expect("written");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(module.join("counted.so")).arg(&source).status();
    assert!(built.expect("a C compiler, as for LuaJIT").success());
    let text = format!(
        "package.cpath = '{}/?.so;' .. package.cpath
         local twice, n = require 'counted', 0
         function request() n = n + 1; return wrk.format(nil, '/' .. twice(n)) end",
        module.display()
    );
    let done = plimsoll(&["wrk", "-t1", "-c1", "-d200ms", "-s", &write_script_file("in_c.lua", &text), &server.url]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let asked = server.take_messages();
    assert_eq!((asked[0][0].as_str(), asked[1][0].as_str()), ("GET /4 HTTP/1.1", "GET /6 HTTP/1.1"));
}

#[test]
fn script_threads_are_set_up_stopped_and_summed() {
    let server = RequestLogServer::start();
    let text = "
        local threads, counter = {}, 1
        function setup(thread) thread:set('id', counter); table.insert(threads, thread); counter = counter + 1 end
        function init() requests, responses = 0, 0 end
        function request() requests = requests + 1; return wrk.request() end
        function response() responses = responses + 1; if responses == 10 * id then wrk.thread:stop() end end
        function done(summary, latency, rate)
           for _, thread in ipairs(threads) do
              io.write(('thread %d made %d\\n'):format(thread:get('id'), thread:get('responses')))
           end
           io.write(('%d %s %s\\n'):format(summary.requests, summary.duration < 5e6, latency:percentile(100) == latency.max))
        end";
    let done = plimsoll(&["wrk", "-t2", "-c2", "-d8s", "-s", &write_script_file("threads.lua", text), &server.url]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.ends_with("thread 1 made 10\nthread 2 made 20\n30 true true\n"), "{}", done.stdout);
    assert_eq!(server.take_messages().len(), 30);
}

#[test]
fn wrk_errors_are_reported() {
    let server = RequestLogServer::start();
    for (text, code, expect) in [
        ("x = = 1", 2, "9wrong.lua:1: unexpected symbol near '='"),
        ("function request() return 'GET' end", 2, "incomplete request at 1:4"),
        ("function request() return 5 end", 2, "invalid HTTP method at 1:1"),
        (
            "local n = 0 function request() n = n + 1; if n > 5 then error('oh') end; return wrk.format() end",
            1,
            "9wrong.lua:1: oh",
        ),
        ("function done() error('late') end", 1, "9wrong.lua:1: late"),
    ] {
        let path = write_script_file("9wrong.lua", text);
        let done = plimsoll(&["wrk", "-t1", "-c1", "-d300ms", "-s", &path, &server.url]);
        assert_eq!(done.code, code, "{text}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(expect), "{text}: {}", done.stderr);
        // A run prints figures if its load began before the script failed.
        assert_eq!(done.stdout.contains("Requests/sec:"), code == 1, "{text}: {}", done.stdout);
    }
    assert_eq!(plimsoll(&["wrk", "-c1", "-t2", &server.url]).code, 1);
    assert_eq!(plimsoll(&["wrk2", &server.url]).code, 1);
    let missing = plimsoll(&["wrk", "-t1", "-c1", "-d300ms", &format!("{}/missing", server.url)]);
    assert!(missing.stdout.contains("  Non-2xx or 3xx responses: "), "{}", missing.stdout);
}

/// Returns the output of a program with each number and unit replaced by `#`, and repeated blanks
/// joined.
fn mask_numbers(text: &str) -> String {
    // wrk prints nan for a mean without samples, if a run ends immediately.
    let text = text.replace("-nan", "0.00").replace("nan", "0.00");
    let mut shape = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '0'..='9' => {
                while chars.next_if(|c| c.is_ascii_digit() || *c == '.').is_some() {}
                for unit in ["us", "ms", "s", "m", "k", "KB", "MB", "GB", "B", "M"] {
                    let rest: String = chars.clone().take(unit.len() + 1).collect();
                    if rest.starts_with(unit) && !rest[unit.len()..].starts_with(char::is_alphanumeric) {
                        (0..unit.len()).for_each(|_| chars.next().map_or((), |_| ()));
                        break;
                    }
                }
                shape.push('#');
            }
            ' ' if shape.ends_with(' ') => {}
            c => shape.push(c),
        }
    }
    shape
}

/// Runs a script under wrk and under plimsoll, each with its own server. Asserts that the requests,
/// their order, and the output are the same.
fn compare_with_wrk(name: &str, path: &str, words: &[&str]) {
    let (server, other) = (RequestLogServer::start_slow(), RequestLogServer::start_slow());
    let line = |url: &str| {
        let line = ["-t1", "-c1", "-d1s", "-s", path, url].map(str::to_owned);
        line.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>()
    };
    let mut wrk = Command::new("wrk");
    let wrk = wrk.args(line(&server.url)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let theirs = wrk.spawn().expect("wrk is there: make needs");
    let ours = line(&other.url);
    let ours = plimsoll(&[&["wrk"][..], &ours.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    let theirs = theirs.wait_with_output().expect("wrk ends");
    assert_eq!(theirs.status.code(), Some(ours.code), "{name}: {}", ours.stderr);
    let place = |url: &str| url.trim_start_matches("http://").to_owned();
    let (by_wrk, by_us) = (server.take_messages(), other.take_messages());
    let count = by_wrk.len().min(by_us.len()).min(200);
    assert!(count > 10, "{name}: {count} {}", ours.stdout);
    for (number, (theirs, ours)) in by_wrk.iter().zip(&by_us).take(count).enumerate() {
        let ours: Vec<String> = ours.iter().map(|line| line.replace(&place(&other.url), &place(&server.url))).collect();
        assert_eq!(*theirs, ours, "{name}: request {number}");
    }
    let theirs = mask_numbers(&String::from_utf8_lossy(&theirs.stdout));
    assert_eq!(theirs, mask_numbers(&ours.stdout), "{name}: {}", ours.stdout);
}

/// Checks that the nine scripts of wrk's package behave as under wrk.
#[test]
fn packaged_wrk_scripts_behave_as_under_wrk() {
    let folder = Path::new("/usr/share/doc/wrk/examples/scripts");
    assert!(folder.is_dir(), "{} is missing: install wrk (make needs)", folder.display());
    std::thread::scope(|scope| {
        for name in ["addr", "auth", "counter", "delay", "pipeline", "post", "report", "setup", "stop"] {
            scope.spawn(move || {
                let path = folder.join(format!("{name}.lua"));
                compare_with_wrk(name, path.to_str().expect("a name in UTF-8"), &[]);
            });
        }
    });
}

/// Checks that further scripts, which together use the whole API, behave as under wrk.
#[test]
fn scripts_that_use_the_whole_api_behave_as_under_wrk() {
    let module = create_new_folder("modules");
    std::fs::write(module.join("paths.lua"), "local m = {} function m.of(n) return '/m' .. n % 3 end return m")
        .expect("written");
    let rows: [(&str, String); 10] = [
        ("arguments", "function init(args)
            for i = 0, 3 do io.write(i, ' ', (tostring(args[i]):gsub('%d+', 'N')), '\\n') end
            wrk.path = '/' .. args[1] .. '/' .. args[3]:gsub(' ', '+') end".into()),
        ("format", "local n = 0
            function request() n = n + 1
               if n % 3 == 0 then return wrk.format() end
               if n % 3 == 1 then return wrk.format('PUT', '/put?n=' .. n, { ['X-N'] = n, ['Content-Length'] = 99 }, 'body ' .. n) end
               return wrk.format('DELETE', nil, { ['X-Only'] = 'this' }) end".into()),
        ("fields", "wrk.method = 'PATCH'; wrk.path = '/else'; wrk.body = ('x'):rep(3000); wrk.headers['X-A'] = 1.5
            assert(wrk.scheme == 'http' and wrk.host == '127.0.0.1' and tonumber(wrk.port) > 0)".into()),
        ("module", format!("package.path = '{}/?.lua;' .. package.path
            local paths, n = require 'paths', 0
            function request() n = n + 1; return wrk.format(nil, paths.of(n)) end", module.display())),
        ("answers", "local path, count = '/start', 0
            function response(status, headers, body)
               count = count + 1
               assert(status == 200 or status == 404)
               path = count % 5 == 0 and '/missing' or '/' .. status .. '/' .. body .. '/' .. headers['X-Token'] .. '/' .. headers['Content-Length']
            end
            function request() return wrk.format(nil, path) end".into()),
        ("batches", "local first = true
            function init() local all = {}
               for i = 1, 5 do all[i] = wrk.format(i % 2 == 0 and 'POST' or 'GET', '/' .. i, nil, i % 2 == 0 and 'b' .. i or nil) end
               batch = table.concat(all) end
            function request() return batch end
            function response(status, headers, body) assert(body == 'ok') end".into()),
        ("transfer", "local threads = {}
            function setup(thread)
               thread:set('number', 2.5); thread:set('yes', true); thread:set('text', 'a b'); thread:set('flat', { 1, two = 'b' })
               table.insert(threads, thread) end
            function init() assert(number == 2.5 and yes == true and nothing == nil and flat[1] == 1 and flat.two == 'b')
               wrk.path = '/' .. text:gsub(' ', '_'); left = 'left behind' end
            function done() for _, thread in ipairs(threads) do print(thread:get('left'), thread:get('number'), thread:get('missing')) end end".into()),
        ("places", "function setup(thread)
               local all = wrk.lookup(wrk.host, wrk.port)
               print(#all > 0, wrk.connect(all[1]), type(all[1]), (tostring(all[1]):gsub('%d+', 'N')))
               thread.addr = all[#all] end
            function init() print((tostring(wrk.thread.addr):gsub('%d+', 'N'))) end".into()),
        ("figures", "function done(summary, latency, requests)
               print(summary.duration > 9e5, summary.requests > 10, summary.bytes > 100)
               for _, kind in ipairs({ 'connect', 'read', 'write', 'status', 'timeout' }) do print(kind, type(summary.errors[kind])) end
               print(latency.min <= latency.mean, latency.mean <= latency.max, latency.stdev >= 0, requests.max > 0)
               print(latency:percentile(50) <= latency:percentile(99.9), #latency > 0)
               local value, count = latency(1); print(value > 0, count > 0, type(requests(1)))
            end".into()),
        ("libraries", "local ffi, bit = require 'ffi', require 'bit'
            ffi.cdef 'int abs(int);'
            local each = coroutine.wrap(function() local n = 0 while true do n = n + 1; coroutine.yield('/c' .. n) end end)
            function delay() return 1 end
            function request() return wrk.format(nil, each() .. '/' .. bit.band(7, 5) .. ffi.C.abs(-2) .. os.date('!%Y', 0)) end".into()),
    ];
    std::thread::scope(|scope| {
        for (name, text) in &rows {
            scope.spawn(move || {
                compare_with_wrk(
                    name,
                    &write_script_file(&format!("{name}.lua"), text),
                    &["--", "one", "-c", "two words"],
                )
            });
        }
    });
}

#[test]
fn wrk2_keeps_a_rate_and_prints_its_percentiles() {
    let server = RequestLogServer::start();
    let text = "function done(summary, latency, requests) print(latency[1] > 0, latency(1) > 0, #latency, wrk.time_us() > 1e15) end";
    let done = plimsoll(&[
        "wrk2",
        "-t1",
        "-c4",
        "-d1s",
        "-R",
        "200",
        "-U",
        "-s",
        &write_script_file("done.lua", text),
        &server.url,
    ]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for wanted in [
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n",
        "\n  Detailed Percentile spectrum:\n",
        "#[Mean    = ",
        "  Latency Distribution (HdrHistogram - Uncorrected Latency",
    ] {
        assert!(done.stdout.contains(wanted), "{wanted}: {}", done.stdout);
    }
    // The last few of 200 messages may be in flight at the end, or too late on a busy machine.
    let counted = (195..=200).find(|count| done.stdout.contains(&format!("true\ttrue\t{count}\ttrue\n")));
    assert!(counted.is_some_and(|it| done.stdout.contains(&format!("\n  {it} requests in "))), "{}", done.stdout);
    assert!((195..=200).contains(&server.take_messages().len()), "{}", server.take_messages().len());
}

#[test]
fn batches_are_timed_as_a_whole_on_request() {
    let server = RequestLogServer::start();
    let text = "function request() return wrk.format(nil, '/a') .. wrk.format(nil, '/b') .. wrk.format(nil, '/c') end
        function done(summary, latency) print(summary.requests, #latency) end";
    let script = write_script_file("batch.lua", text);
    // On a busy machine, the last few batches may be late or in flight at the end.
    let batches = 80..=100;
    for (flag, messages) in [("-L", 3), ("-B", 1), ("--batch_latency", 1)] {
        let done = plimsoll(&["wrk2", "-t2", "-c4", "-d1s", "-R", "300", flag, "-s", &script, &server.url]);
        let values = |count: usize| format!("{}\t{}\n", 3 * count, messages * count);
        let counted = batches.clone().any(|count| done.stdout.ends_with(&values(count)));
        assert!(done.code == 0 && counted, "{flag}: {}{}", done.stdout, done.stderr);
    }
    assert!((720..=900).contains(&server.take_messages().len()), "{}", server.take_messages().len());
    // A static request is a batch of one message. A batch whose response was lost also counts as a
    // batch.
    let done = plimsoll(&["wrk2", "-t1", "-c1", "-d1s", "-R", "50", "-B", "-L", &server.url]);
    let counts = |count| done.stdout.contains(&format!("Total count    =           {count}]\n"));
    // On a busy machine, the last few requests may be late.
    assert!((40..=50).any(counts), "{}", done.stdout);
}

#[test]
fn a_connection_broken_while_sending_is_detected_on_read() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The server closes the connection while much data is in flight, so the client's next
            // piece of data gets a reset.
            let _ = (&stream).read(&mut [0; 1000]);
        }
    });
    let text = "wrk.method = 'POST'; wrk.body = ('x'):rep(16000000)
        function done(summary) local e = summary.errors; print(e.read > 0, e.write, e.connect, summary.requests) end";
    let path = write_script_file("breaks.lua", text);
    let line = ["-t1", "-c1", "-d1s", "-s", &path, &url];
    let ours = plimsoll(&[&["wrk"][..], &line].concat());
    let theirs = Command::new("wrk").args(line).output().expect("wrk is there: make needs");
    let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
    assert!(ours.stdout.contains(", write 0, timeout 0\n"), "{}", ours.stdout);
    for told in [&ours.stdout, &theirs] {
        // In rare cases the reset arrives already with the first piece of data. wrk counts a reset
        // with the first piece as a write error.
        let rare = ["0", "1", "2", "3"].iter().any(|write| told.ends_with(&format!("true\t{write}\t0\t0\n")));
        assert!(rare, "{told}");
    }
}

#[test]
fn plimsoll_commands_accept_a_script_as_traffic() {
    let server = RequestLogServer::start();
    let text = "local n = 0
        function init(args) first = args[1] or 'none' end
        function request() n = n + 1; return wrk.format('GET', '/' .. first) .. wrk.format('POST', '/b', nil, 'x') end
        function delay() return 5 end
        function done(summary) print('told', summary.requests) end";
    let path = &write_script_file("like.lua", text);
    // The rate of `--rate` counts single messages, even if the script sends two messages in one
    // batch.
    let file = &path_in_new_folder("scripts", "run.plimsoll");
    let done =
        plimsoll(&["run", "--lua", path, "--rate", "100", "-d1s", "-t1", &server.url, "-qo", file, "--", "word"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert!(
        done.stderr.contains("delay() has no effect") && done.stdout.ends_with("told\t100\n"),
        "{}{}",
        done.stdout,
        done.stderr
    );
    let asked = server.take_messages();
    let messages = asked.iter().filter(|lines| ["GET /word HTTP/1.1", "POST /b HTTP/1.1"].contains(&lines[0].as_str()));
    assert_eq!((asked.len(), messages.count()), (100, 100));
    // The record contains the script's digest: a rerun executes the same script, and refuses
    // another script.
    let refused = plimsoll(&["rerun", file]);
    assert!(refused.code == 2 && refused.stderr.contains("run a script"), "{}", refused.stderr);
    let again = plimsoll(&["rerun", file, "--yes"]);
    assert_eq!((again.code, server.take_messages().len()), (0, 100), "{}{}", again.stdout, again.stderr);
    assert!(again.stderr.contains("like.lua") && again.stderr.contains("-- word"), "{}", again.stderr);
    std::fs::write(path, "-- another").expect("written");
    let differs = plimsoll(&["rerun", file, "--yes"]);
    assert!(differs.code == 2 && differs.stderr.contains("differs from the recorded script"), "{}", differs.stderr);
    std::fs::write(path, text).expect("written");
    // The script is used in a search and in a comparison.
    for words in
        [&["find", "--budget", "3s", "--max-rate", "500"][..], &["prove", "--for", "100ms", "--blocks", "1", "-c", "2"]]
    {
        let urls = if words[0] == "prove" { vec![server.url.as_str(); 2] } else { vec![server.url.as_str()] };
        let done = plimsoll(&[words, &["--lua", path, "-q"], &urls, &["--", "searched"]].concat());
        assert!([0, 1, 3].contains(&done.code), "{words:?}: {}{}", done.stdout, done.stderr);
        assert!(!done.stdout.contains("told"), "{words:?}: {}", done.stdout);
        let asked = server.take_messages();
        assert!(asked.len() > 20, "{words:?}: {}{}", done.stdout, done.stderr);
        // At the end, a search checks whether the server has metrics.
        let known = ["GET /searched ", "POST /b ", "GET /metrics ", "GET /debug/"];
        for lines in &asked {
            assert!(known.iter().any(|known| lines[0].starts_with(known)), "{words:?}: {}", lines[0]);
        }
    }
    let failing = &write_script_file(
        "failing.lua",
        "local n = 0 function request() n = n + 1; if n > 5 then error('oh') end return wrk.format() end",
    );
    let done = plimsoll(&["find", "--budget", "3s", "--lua", failing, "-q", &server.url]);
    assert!(done.code > 0 && done.stderr.contains("failing.lua:1: oh"), "{} {}{}", done.code, done.stdout, done.stderr);
    for (words, said) in [
        (&["--lua", "/no/such.lua"][..], "/no/such.lua"),
        (&["--lua", path, "-b", "x"], "--body"),
        (&["--lua", path, "--http", "2"], "scripts write HTTP/1.1"),
        (&["--", "word"], "--lua"),
    ] {
        let done = plimsoll(&[&["run", &server.url], words].concat());
        assert!(done.code == 2 && done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}

#[test]
fn an_endless_script_function_ends_the_run() {
    let server = RequestLogServer::start_slow();
    // The function waits in C for ever, so it takes no CPU time, and Lua cannot interrupt it.
    let text = "local ffi, began = require 'ffi', os.time()
        ffi.cdef 'int poll(void *, unsigned long, int);'
        function response() if os.time() - began > 1 then while true do ffi.C.poll(nil, 0, -1) end end end
        function done(summary) print('done', summary.requests) end";
    let done = plimsoll(&["wrk", "-t1", "-c1", "-d60s", "-s", &write_script_file("endless.lua", text), &server.url]);
    assert!(done.code == 1 && done.stderr.contains("response() has not ended after 10 s"), "{}", done.stderr);
    let told = done.stdout.lines().find_map(|line| line.strip_prefix("done\t"));
    let told: u64 = told.expect("it is called").parse().expect("a number");
    assert!(told > 0 && done.stdout.contains(&format!("  {told} requests in ")), "{}", done.stdout);
}
