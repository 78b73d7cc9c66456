//! Tests of wrk's script API. Each test has a script, the responses that the script receives, and
//! the requests that the script must write. A fake network without sockets looks up host names and
//! opens connections.

use plimsoll_script::{
    Dialect, HookName, HungFunction, Program, Script, ScriptError, ScriptFigures, ScriptNetwork, ScriptSummary,
};
use plimsoll_wire::{Author, AuthorResponse, AuthorStopReason, Batch, ResponseTimes};
use std::net::SocketAddr;
use std::sync::Arc;

/// A fake network: host `h` has three addresses, of which the first refuses connections.
struct FakeNetwork;

impl ScriptNetwork for FakeNetwork {
    fn lookup(&self, host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
        let port = if service == "http" { 80 } else { service.parse().map_err(|_| "Servname not supported")? };
        match host {
            "h" => Ok((1..=3).map(|last| SocketAddr::from(([127, 0, 0, last], port))).collect()),
            "six" => Ok(vec![SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))]),
            "dead" => Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]),
            _ => Err("Name or service not known".into()),
        }
    }

    fn connect(&self, address: SocketAddr) -> bool {
        address.is_ipv6() || address.ip() != SocketAddr::from(([127, 0, 0, 1], 0)).ip()
    }
}

fn script_from_text(text: &str, url: &str, threads: usize, change: impl FnOnce(&mut Program)) -> Script {
    let mut program = Program::from_url(url).expect("a URL");
    program.name = "t.lua".into();
    program.text = Some(text.into());
    change(&mut program);
    Script::new(program, threads, &(Arc::new(FakeNetwork) as Arc<dyn ScriptNetwork>)).expect("states")
}

/// Returns the next batch of requests that a script writes, as text, and the number of its
/// messages.
fn next_request_batch(author: &mut impl Author) -> (String, usize) {
    let mut batch = Batch::default();
    author.write(&mut batch).expect("a batch");
    (String::from_utf8(batch.bytes).expect("text"), batch.head_request_flags.len())
}

fn deliver_answer(author: &mut impl Author, status: u16, head: &str, content: &str) -> Result<(), AuthorStopReason> {
    let (head, content) = (head.as_bytes(), content.as_bytes());
    let (content_bytes, times) = (content.len() as u64, ResponseTimes::default());
    author.receive_response(&AuthorResponse { status, head, content, content_bytes, mark: 0, is_last: true, times })
}

/// Returns the lines of a request with its header fields sorted, because Lua tables have no order.
fn sorted_request_lines(text: &str) -> Vec<String> {
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let mut lines: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    lines[1..].sort();
    lines.push(body.to_owned());
    lines
}

/// Checks that the first requests of a load have the lines in `expect`. As in wrk, a script's
/// `request` is called once more before the load, and the result of this extra call is not sent.
fn check(text: &str, url: &str, expect: &[&[&str]]) {
    let script = script_from_text(text, url, 1, |program| {
        program.headers = vec![("X-Given".into(), "1".into())];
        program.args.extend(["one".into(), "two words".into()]);
    });
    let mut authors = script.run_setup_hooks().unwrap_or_else(|error| panic!("{text}: {error}"));
    for expect in expect {
        assert_eq!(sorted_request_lines(&next_request_batch(&mut authors[0]).0), *expect, "{text}");
    }
}

#[test]
fn script_requests_match_wrk() {
    let url = "http://h:81/p?q=1";
    check("", url, &[&["GET /p?q=1 HTTP/1.1", "Host: h:81", "X-Given: 1", ""][..]; 2]);
    check("", "http://six:82", &[&["GET / HTTP/1.1", "Host: six:82", "X-Given: 1", ""]]);
    check("wrk.host = '::1'", url, &[&["GET /p?q=1 HTTP/1.1", "Host: [::1]:81", "X-Given: 1", ""]]);
    // Values in the table `wrk` that are not strings are written to the request as Lua formats
    // them.
    check(
        "wrk.method = 'PUT'; wrk.body = 1250; wrk.path = 7; wrk.headers = { Host = 'h', [1] = true }",
        url,
        &[&["PUT 7 HTTP/1.1", "1: true", "Content-Length: 4", "Host: h", "1250"]],
    );
    check("wrk.headers.Host = false", url, &[&["GET /p?q=1 HTTP/1.1", "Host: h:81", "X-Given: 1", ""]]);
    check(
        "wrk.method = 'POST'; wrk.body = 'a=b'; wrk.headers['Content-Type'] = 'x/y'",
        url,
        &[&["POST /p?q=1 HTTP/1.1", "Content-Length: 3", "Content-Type: x/y", "Host: h:81", "X-Given: 1", "a=b"]],
    );
    // The extra call of `request` before the load has already increased the script's counter to 1.
    check(
        "local n = 0
         request = function() n = n + 1; wrk.headers['X-Counter'] = n; return wrk.format(nil, '/' .. n) end",
        url,
        &[
            &["GET /2 HTTP/1.1", "Host: h:81", "X-Counter: 2", "X-Given: 1", ""],
            &["GET /3 HTTP/1.1", "Host: h:81", "X-Counter: 3", "X-Given: 1", ""],
        ],
    );
    check(
        "function init(args) wrk.path = '/' .. args[0]:sub(1, 4) .. '/' .. args[1] .. '/' .. args[2]:gsub(' ', '+') end",
        url,
        &[&["GET /http/one/two+words HTTP/1.1", "Host: h:81", "X-Given: 1", ""]],
    );
    // `wrk.format` adds the missing `Host` to the header fields that a script gives, and removes
    // `Content-Length` if there is no body.
    check(
        "local h = { ['Content-Length'] = 7 }
         request = function() return wrk.format('PUT', '/', h) end",
        url,
        &[&["PUT / HTTP/1.1", "Host: h:81", ""][..]; 2],
    );
    check(
        "request = function() return wrk.format('PUT', '/', { host = 'other' }, '') end",
        url,
        &[&["PUT / HTTP/1.1", "Content-Length: 0", "host: other", ""]],
    );
    // A script can load modules, and all standard libraries exist.
    check(
        "local w = require 'wrk'; assert(w == wrk); local bit = require 'bit'
         local ffi = require 'ffi'; ffi.cdef 'int abs(int);'
         wrk.path = '/' .. bit.bor(1, 4) .. ffi.C.abs(-3) .. type(debug.getinfo) .. type(os.getenv) .. type(wrk.time_us())",
        url,
        &[&["GET /53functionfunctionnumber HTTP/1.1", "Host: h:81", "X-Given: 1", ""]],
    );
}

#[test]
fn pipelined_messages_are_sent_together() {
    let text = "function init() local r = {}
          r[1] = wrk.format(nil, '/a'); r[2] = wrk.format('HEAD', '/b'); r[3] = wrk.format('POST', '/c', nil, 'xyz')
          all = table.concat(r) end
        function request() return all end";
    let script = script_from_text(text, "http://h/", 2, |_| {});
    for author in &mut script.run_setup_hooks().expect("begins") {
        assert_eq!(author.messages_per_batch(), 3);
        let mut batch = Batch::default();
        author.write(&mut batch).expect("a batch");
        assert_eq!(batch.head_request_flags, [false, true, false]);
        let first = batch.bytes.clone();
        batch.clear();
        author.write(&mut batch).expect("a batch");
        assert_eq!((batch.head_request_flags.len(), &batch.bytes), (3, &first));
    }
}

#[test]
fn script_hooks_receive_responses() {
    let text = "
        local token
        request = function() return wrk.format('GET', token and '/' .. token or '/auth') end
        response = function(status, headers, body)
           if status == 200 then token = headers['X-Token'] .. body .. #body end
           if status == 500 then response = nil end
           if status == 999 then wrk.thread:stop() end
        end";
    let script = script_from_text(text, "http://h/", 1, |_| {});
    let author = &mut script.run_setup_hooks().expect("begins")[0];
    assert!(author.wants_responses() && author.writes_every_batch() && !author.has_delays());
    assert!(next_request_batch(author).0.starts_with("GET /auth "));
    deliver_answer(author, 200, "HTTP/1.1 200 OK\r\nX-Token: a\r\nX-Token: b\r\n\r\n", "c\0d").expect("heard");
    assert!(next_request_batch(author).0.starts_with("GET /bc\0d3 "));
    deliver_answer(author, 500, "HTTP/1.1 500 No\r\n\r\n", "").expect("heard");
    // A script may remove its `response` function without an error.
    deliver_answer(author, 200, "HTTP/1.1 200 OK\r\nX-Token: z\r\n\r\n", "").expect("not heard");
    assert!(next_request_batch(author).0.starts_with("GET /bc\0d3 "));
    assert_eq!(script.failure(), None);
}

#[test]
fn threads_have_separate_states_and_exchange_copies() {
    let text = "
        local threads, count = {}, 0
        function setup(thread)
           count = count + 1
           assert(thread:get('left') == nil)
           thread:set('id', count)
           thread:set('deep', { 1, { a = { true, 'x\\0y' } }, [2.5] = 'n' })
           thread:set('gone', nil)
           assert(not pcall(thread.set, thread, 'f', print))
           assert(not pcall(function() thread.other = 1 end))
           assert(thread.nothing == nil)
           table.insert(threads, thread)
        end
        function init() left = { id = id, { deep[2].a[2] } }; wrk.path = '/' .. id .. #deep[2].a[2] .. deep[2.5] end
        function done()
           for i, thread in ipairs(threads) do
              local left = thread:get('left')
              io.write(left.id, ':', #left[1][1], ' ')
              assert(left.id == i and #left[1][1] == 3)
           end
           local knot = {}; knot.me = knot
           threads[1]:set('knot', knot)
           local back = threads[1]:get('knot'); assert(back.me == back and back ~= knot)
        end";
    let script = script_from_text(text, "http://h/", 3, |_| {});
    let mut authors = script.run_setup_hooks().expect("begins");
    let paths: Vec<String> = authors.iter_mut().map(|author| next_request_batch(author).0[..8].to_owned()).collect();
    assert_eq!(paths, ["GET /13n", "GET /23n", "GET /33n"]);
    // The threads' Lua states outlive the request authors (`authors`).
    drop(authors);
    let none = ScriptFigures::new([]);
    script.run_done_hook(&ScriptSummary::default(), none.clone(), none).expect("done");
}

#[test]
fn script_addresses_are_resolved_and_set() {
    let text = "
        local addrs
        function setup(thread)
           addrs = addrs or wrk.lookup(wrk.host, wrk.port or 'http')
           assert(#addrs == 3 and not wrk.connect(addrs[1]) and wrk.connect(addrs[2]))
           assert(tostring(thread.addr) == '127.0.0.2:80', tostring(thread.addr))
           thread.addr = addrs[3]
        end
        function init() wrk.path = '/' .. tostring(wrk.thread.addr) end";
    let script = script_from_text(text, "http://h/", 2, |_| {});
    let mut authors = script.run_setup_hooks().expect("begins");
    assert!(next_request_batch(&mut authors[1]).0.starts_with("GET /127.0.0.3:80 "));
    let expect = Some(SocketAddr::from(([127, 0, 0, 3], 80)));
    assert_eq!(script.addresses(), [expect, expect]);
}

#[test]
fn lua_modules_of_the_distribution_are_found() {
    let text = "for _, wanted in ipairs({ '/usr/local/share/lua/5.1/?.lua', '/usr/share/lua/5.1/?.lua' }) do
           assert(package.path:find(wanted, 1, true), wanted) end
        assert(package.cpath:find('/usr/lib/[%w_]+%-linux%-gnu/lua/5.1/%?.so'), package.cpath)
        -- The table `wrk` has what wrk's has, and of wrk2's the clock.
        local names = {}
        for name in pairs(wrk) do names[#names + 1] = name end
        table.sort(names)
        assert(table.concat(names, ' ') ==
           'connect format headers host init lookup method path resolve scheme setup time_us', table.concat(names, ' '))";
    script_from_text(text, "http://h/", 1, |_| {}).run_setup_hooks().expect("begins");
}

#[test]
fn script_delays_are_milliseconds() {
    for (text, expect) in [
        ("return 5", 5_000_000),
        ("return '2.5'", 2_500_000),
        ("return -1", 0),
        ("return 0/0", 0),
        ("", 0),
        ("return 1e300", 86_400_000_000_000),
    ] {
        let script = script_from_text(&format!("function delay() {text} end"), "http://h/", 1, |_| {});
        let mut authors = script.run_setup_hooks().expect("begins");
        assert!(authors[0].has_delays());
        assert_eq!(authors[0].delay_ns(), Ok(expect), "{text}");
    }
    let script =
        script_from_text("function delay() return 5 end", "http://h/", 1, |program| program.dialect = Dialect::Wrk2);
    assert!(!script.run_setup_hooks().expect("begins")[0].has_delays());
}

#[test]
fn the_done_hook_gets_the_summary() {
    let text = "
        function done(summary, latency, requests)
           local e = summary.errors
           assert(summary.duration == 2000000 and summary.requests == 10 and summary.bytes == 300)
           assert(e.connect == 1 and e.read == 2 and e.write == 3 and e.status == 4 and e.timeout == 5)
           assert(latency.min == 10 and latency.max == 30 and latency.mean == 15 and latency.stdev > 7)
           assert(latency:percentile(50) == 10 and latency:percentile(99.9) == 30 and latency:percentile(100) == 30)
           local value, count = latency(1)
           assert(value == 10 and count == 6 and latency(9) == 0 and latency.nothing == nil)
           assert(#latency == LENGTH and requests.max == 7 and latency[2] == 20)
        end";
    let summary = ScriptSummary {
        duration_us: 2_000_000,
        requests: 10,
        bytes: 300,
        errors_connect: 1,
        errors_read: 2,
        errors_write: 3,
        errors_status: 4,
        errors_timeout: 5,
    };
    for (dialect, length) in [(Dialect::Wrk, "3"), (Dialect::Wrk2, "10")] {
        let script =
            script_from_text(&text.replace("LENGTH", length), "http://h/", 1, |program| program.dialect = dialect);
        script.run_setup_hooks().expect("begins");
        let latency = ScriptFigures::new([(10, 6), (20, 3), (30, 1)]);
        assert!(script.defines_done());
        assert_eq!(script.run_done_hook(&summary, latency, ScriptFigures::new([(7, 1)])), Ok(()));
    }
}

#[test]
fn a_script_error_message_is_one_line() {
    for (text, url, expect) in [
        ("x = = 1", "http://h/", "t.lua:1: unexpected symbol near '='"),
        ("#!/usr/bin/wrk\nnil_function()", "http://h/", "t.lua:2: attempt to call global 'nil_function' (a nil value)"),
        ("function init() error('oh') end", "http://h/", "init(): t.lua:1: oh"),
        (
            "function request()\nlocal text = wrk.format(nil, nil, 'A: b')\nreturn text end",
            "http://h/",
            "request(): t.lua:2: wrk.format() wants a table of headers, got a string",
        ),
        ("wrk.body = {}", "http://h/", "init(): wrk.format() wants a text as body, got a table"),
        (
            "\nfunction setup(t)\nt:set('a', print) end",
            "http://h/",
            "setup(): t.lua:3: cannot transfer 'function' to thread",
        ),
        ("function request() end", "http://h/", "request() returned no HTTP request: incomplete request at 1:1"),
        (
            "function request() return 'GET / HTTP/1.1\\r\\nA b\\r\\n\\r\\n' end",
            "http://h/",
            "request() returned no HTTP request: invalid character in header at 2:2",
        ),
        ("", "http://dead:9/", "unable to connect to dead:9"),
        ("", "http://nobody/", "unable to resolve nobody:http Name or service not known"),
        ("wrk.lookup('nobody', '80')", "http://h/", "t.lua:1: unable to resolve nobody:80 Name or service not known"),
    ] {
        let script = script_from_text(text, url, 2, |_| {});
        let error = script.run_setup_hooks().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expect) && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn a_script_error_ends_the_load_and_is_recorded() {
    let text = "local n = 0
        function request() n = n + 1; if n > 2 then error({}) end; return wrk.format() end";
    let script = script_from_text(text, "http://h/", 1, |_| {});
    let author = &mut script.run_setup_hooks().expect("begins")[0];
    next_request_batch(author);
    let mut batch = Batch::default();
    assert_eq!(author.write(&mut batch), Err(AuthorStopReason::Failed));
    assert!(matches!(script.failure(), Some(ScriptError::Hook { hook: HookName::Request, .. })));
}

#[test]
fn a_stopped_thread_sends_no_more_requests() {
    let text = "local n = 0
        function setup(thread) thread:stop() end
        function response() n = n + 1; if n == 2 then wrk.thread:stop() end end";
    let script = script_from_text(text, "http://h/", 2, |_| {});
    let mut authors = script.run_setup_hooks().expect("begins");
    next_request_batch(&mut authors[0]);
    assert_eq!(deliver_answer(&mut authors[0], 200, "", ""), Ok(()));
    assert_eq!(deliver_answer(&mut authors[0], 200, "", ""), Err(AuthorStopReason::Requested));
    assert_eq!(authors[0].write(&mut Batch::default()), Err(AuthorStopReason::Requested));
    assert_eq!(deliver_answer(&mut authors[1], 200, "", ""), Ok(()));
    assert_eq!(script.failure(), None);
}

#[test]
fn a_failed_call_is_not_reported_as_hung() {
    let text = "function response() while go() do end end";
    let script = script_from_text(text, "http://h/", 1, |_| {});
    let mut watch = script.hung_call_watch();
    let author = script.run_setup_hooks().expect("begins").pop();
    assert_eq!((watch.find_hung_function(0, 10), watch.find_hung_function(20, 10)), (None, None));
    // The call of `response` fails because `go` is not defined. A call that has ended is not
    // reported as hanging.
    assert_eq!(deliver_answer(&mut author.expect("one"), 200, "", ""), Err(AuthorStopReason::Failed));
    assert_eq!(watch.find_hung_function(40, 10), None::<HungFunction>);
}

#[test]
fn script_memory_is_bounded() {
    let text = "function init() local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end end";
    let error = script_from_text(text, "http://h/", 1, |program| program.memory_bytes_max = 32 << 20);
    let error = error.run_setup_hooks().expect_err("too much").to_string();
    assert!(error.contains("exceeds its memory limit"), "{error}");
}
