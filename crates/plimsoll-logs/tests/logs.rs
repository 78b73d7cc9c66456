//! Tests of log lines as the documentation of each server shows them.

use plimsoll_logs::access_log::{Entry, Format, FormatError, LineBuffers, TimestampMeaning, find_format};
use plimsoll_logs::survey::Survey;

/// Formats an entry for comparison: start in ms since the epoch, duration in us, method, path,
/// status, bytes, client, user agent.
fn format_entry(entry: &Entry) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    format!(
        "{} {} {} {} {} {} {} {}",
        entry.start_ns / 1_000_000,
        number(entry.duration_ns.map(|ns| ns / 1_000)),
        text(entry.method),
        text(entry.target),
        number(entry.status.map(u64::from)),
        number(entry.bytes),
        text(entry.client),
        text(entry.user_agent),
    )
}

fn check(format: &Format, line: &str, expect: Option<&str>) {
    let mut buffer = LineBuffers::default();
    let entry = format.parse(line.as_bytes(), &mut buffer);
    assert_eq!(entry.as_ref().map(format_entry).as_deref(), expect, "{}: {line}", format.name());
}

const COMBINED: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?x=1 HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)""#;
const AWS_ALB_LOG_LINE: &str = r#"http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/a?b=1 HTTP/1.1" "curl/7.46.0" - - arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#;
const AWS_CLASSIC_BALANCER_LOG_LINE: &str = r#"2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -"#;
const ENVOY: &str = r#"[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#;
const ISTIO: &str = r#"[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 4 4 "-" "curl/7.73.0-DEV" "84961386-6d84-929d-98bd-c5aee93b5c88" "httpbin:8000" "10.44.1.27:80" outbound|8000||httpbin.foo.svc.cluster.local 10.44.1.23:37652 10.0.45.184:8000 10.44.1.23:46520 - default"#;
const TRAEFIK: &str = r#"10.42.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /whoami HTTP/1.1" 200 412 "-" "curl/8.0" 17 "whoami@docker" "http://172.18.0.3:80" 12ms"#;
const CADDY: &str = r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=1","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false,"version":772}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}"#;
const TRAEFIK_JSON: &str = r#"{"ClientAddr":"10.0.0.9:40742","ClientHost":"10.0.0.9","DownstreamContentSize":412,"DownstreamStatus":200,"Duration":1530442,"OriginDuration":1417112,"RequestMethod":"GET","RequestPath":"/who?a=1\u0026b=2","RequestProtocol":"HTTP/1.1","StartLocal":"2023-03-28T10:05:00.1234567Z","StartUTC":"2023-03-28T10:05:00.1234567Z","level":"info","msg":"","request_User-Agent":"curl/8.0","time":"2023-03-28T10:05:01Z"}"#;
const ENVOY_JSON: &str = r#"{"authority":"httpbin:8000","bytes_received":0,"bytes_sent":135,"downstream_remote_address":"10.44.1.23:46520","duration":4,"method":"GET","path":"/status/418","protocol":"HTTP/1.1","response_code":418,"start_time":"2020-11-25T21:26:18.409Z","user_agent":"curl/7.73.0","x_forwarded_for":null}"#;

#[test]
fn log_formats_are_detected_from_lines() {
    for (line, name, stamp, expect) in [
        (
            COMBINED,
            "combined log format",
            TimestampMeaning::End,
            "971211336000 - GET /apache_pb.gif?x=1 200 2326 127.0.0.1 Mozilla/4.08 [en] (Win98; I ;Nav)",
        ),
        (
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 304 -"#,
            "common log format",
            TimestampMeaning::End,
            "971211336000 - GET / 304 - 127.0.0.1 ",
        ),
        (
            r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 304 - 1234"#,
            "common log format with further fields",
            TimestampMeaning::End,
            "971211336000 - GET / 304 - ::1 ",
        ),
        (
            r#"h.test:80 10.1.2.3 - ann b [10/Oct/2000:13:55:36 -0700] "POST /a HTTP/1.1" 201 5 "-" "a \"b\" c""#,
            "combined log format with the virtual host",
            TimestampMeaning::Start,
            r#"971211336000 - POST /a 201 5 10.1.2.3 a \"b\" c"#,
        ),
        (
            r#"10.1.2.3 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5 "-" "x" 0.250"#,
            "combined log format and $request_time",
            TimestampMeaning::End,
            "971211335750 250000 GET /a 200 5 10.1.2.3 x",
        ),
        // The microseconds that Apache logs at the end of a line must not be read as nginx's
        // seconds.
        (
            r#"10.1.2.3 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5 "-" "x" 2500"#,
            "combined log format",
            TimestampMeaning::End,
            "971211336000 - GET /a 200 5 10.1.2.3 x",
        ),
        (
            r#"10.1.2.3 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 59 "-" "x" 89 0.250 [shop-web-80] [] 10.0.0.5:80 59 0.249 200 529a0079"#,
            "nginx with the log format of the Kubernetes ingress",
            TimestampMeaning::End,
            "971211335750 250000 GET /a 200 59 10.1.2.3 x",
        ),
        // Servers also log bytes that are not a request, such as a TLS handshake.
        (
            r#"10.1.2.3 - - [10/Oct/2000:13:55:36 -0700] "\x16\x03\x01" 400 157 "-" "-" "-""#,
            "combined log format",
            TimestampMeaning::End,
            "971211336000 -   400 157 10.1.2.3 ",
        ),
        (
            AWS_ALB_LOG_LINE,
            "AWS application load balancer",
            TimestampMeaning::Start,
            "1530570168364 1000 GET /a?b=1 200 366 192.168.131.39 curl/7.46.0",
        ),
        (
            AWS_CLASSIC_BALANCER_LOG_LINE,
            "AWS classic load balancer",
            TimestampMeaning::Start,
            "1431560383945 1178 GET / 200 29 192.168.131.39 curl/7.38.0",
        ),
        (
            ENVOY,
            "Envoy",
            TimestampMeaning::Start,
            "1460751420310 226000 POST /api/v1/locations 204 0 10.0.35.28 nsq2http",
        ),
        (
            ISTIO,
            "Envoy with the log format of Istio",
            TimestampMeaning::Start,
            "1606339578409 4000 GET /status/418 418 135  curl/7.73.0-DEV",
        ),
        (
            TRAEFIK,
            "Traefik's common log format",
            TimestampMeaning::Start,
            "971211336000 12000 GET /whoami 200 412 10.42.0.1 curl/8.0",
        ),
        (CADDY, "Caddy", TimestampMeaning::End, "1646861401523 929 GET /a?b=1 200 10900 127.0.0.1 curl/7.82.0"),
        (
            TRAEFIK_JSON,
            "Traefik",
            TimestampMeaning::End,
            "1679997900123 1530 GET /who?a=1&b=2 200 412 10.0.0.9 curl/8.0",
        ),
        (
            ENVOY_JSON,
            "Envoy, JSON",
            TimestampMeaning::Start,
            "1606339578409 4000 GET /status/418 418 135 10.44.1.23 curl/7.73.0",
        ),
        (
            r#"{"time_local":"10/Oct/2000:13:55:36 -0700","remote_addr":"10.0.0.7","request":"GET /a HTTP/1.1","status": "200","body_bytes_sent":"5","request_time":"0.250","http_user_agent":"x"}"#,
            "JSON lines (time_local, request, status, body_bytes_sent, remote_addr, http_user_agent, request_time)",
            TimestampMeaning::End,
            "971211335750 250000 GET /a 200 5 10.0.0.7 x",
        ),
        (
            r#"{"@timestamp":"2000-10-10T20:55:36.500Z","url":{"path":"/a"},"http":{"request":{"method":"GET"},"response":{"status_code":200}},"event":{"duration":2000000},"source":{"ip":"10.0.0.7"}}"#,
            "JSON lines (@timestamp, url.path, http.request.method, http.response.status_code, source.ip, event.duration)",
            TimestampMeaning::End,
            "971211336498 2000 GET /a 200 - 10.0.0.7 ",
        ),
        (
            r#"{"level":30,"time":971211336500,"req":{"method":"GET","url":"/a?b"},"res":{"statusCode":200},"responseTime":4,"msg":"request completed"}"#,
            "JSON lines (time, req.url, req.method, res.statusCode, responseTime)",
            TimestampMeaning::End,
            "971211336496 4000 GET /a?b 200 -  ",
        ),
        (
            r#"{"time":"2000-10-10T20:55:36.5Z","remote_ip":"10.0.0.7","method":"GET","uri":"/a","status":200,"latency":1234567,"latency_human":"1.234567ms","bytes_out":7}"#,
            "JSON lines (time, uri, method, status, bytes_out, remote_ip, latency_human)",
            TimestampMeaning::End,
            "971211336498 1234 GET /a 200 7 10.0.0.7 ",
        ),
    ] {
        let format = find_format(&[line.as_bytes()], None).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!((format.name(), format.timestamp_meaning()), (name, stamp), "{line}");
        check(&format, line, Some(expect));
        // A truncated line does not match the format.
        for length in [line.len() / 5, line.len() / 4] {
            check(&format, &line[..length], None);
        }
    }
}

#[test]
fn log_lines_behind_foreign_prefixes_are_parsed() {
    const LINE: &str = r#"203.0.113.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5 "-" "x""#;
    const EXPECTED_ENTRY: &str = "971211336000 - GET /a 200 5 203.0.113.7 x";
    let json = LINE.replace('"', "\\\"");
    let docker = format!(r#"{{"log":"{json}\n","stream":"stdout","time":"2025-10-10T13:55:30.1Z"}}"#);
    for (line, name) in [
        (format!("Oct 10 13:55:30 web nginx[123]: {LINE}"), "combined log format, behind syslog"),
        (format!("Oct 10 13:55:30 10.0.0.5 nginx: {LINE}"), "combined log format, behind syslog"),
        (format!("<190>Oct 10 13:55:30 www.example.com nginx: {LINE}"), "combined log format, behind syslog"),
        (format!("2025-10-10T13:55:30.123456789Z stdout F {LINE}"), "combined log format, behind Kubernetes (CRI)"),
        (docker, "combined log format, behind Docker's JSON"),
        (format!("web-1  | {LINE}"), "combined log format, behind docker compose"),
        (format!("web.1  | 2025-10-10T13:55:30.1Z {LINE}"), "combined log format, behind docker compose and a time"),
        (format!("default {LINE}"), "combined log format with the virtual host before it"),
        (format!("www.example.com {LINE}"), "combined log format with the virtual host before it"),
        (LINE.to_owned(), "combined log format"),
    ] {
        let format = find_format(&[line.as_bytes()], None).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(format.name(), name, "{line}");
        check(&format, &line, Some(EXPECTED_ENTRY));
        // A log format that the user chose also parses log lines with a prefix, such as the prefix
        // of syslog.
        if !line.starts_with("default") && !line.starts_with("www") {
            let said = Format::from_text("combined", None).expect("a name").add_missing_prefixes(&[line.as_bytes()]);
            check(&said, &line, Some(EXPECTED_ENTRY));
        }
    }
    // The log line within Docker's JSON line is also JSON, and its texts have escapes.
    let inner = CADDY.replace("/a?b=1", "/a?b=\\u0031").replace('\\', "\\\\").replace('"', "\\\"");
    let line = format!(r#"{{"log":"{inner}\n","stream":"stderr","time":"2025-10-10T13:55:30.1Z"}}"#);
    let format = find_format(&[line.as_bytes()], None).unwrap_or_else(|error| panic!("{line}: {error}"));
    check(&format, &line, Some("1646861401523 929 GET /a?b=1 200 10900 127.0.0.1 curl/7.82.0"));
}

#[test]
fn proxy_and_cloud_log_formats_are_known() {
    for (line, name, expect) in [
        (
            r#"10.0.1.2:33317 [10/Oct/2000:20:55:36.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html?a=1 HTTP/1.1""#,
            "HAProxy",
            "971211336655 109000 GET /index.html?a=1 200 2750 10.0.1.2 ",
        ),
        (
            r#"10.0.1.2:33317 [10/Oct/2000:20:55:36.655] http-in static/<NOSRV> 10/-1/-1/-1/+8 -1 0 - - CR-- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#,
            "HAProxy",
            "971211336655 8000 GET / - 0 10.0.1.2 ",
        ),
        (
            r#"79a59df900b9 bucket [10/Oct/2000:20:55:36 +0000] 192.0.2.3 79a59df900b9 3E57427F3EXAMPLE REST.GET.OBJECT a.txt "GET /bucket/a.txt HTTP/1.1" 200 - 113 113 7 5 "-" "S3Console/0.4" - id= SigV4 x AuthHeader s3.amazonaws.com TLSv1.2 - -"#,
            "AWS S3",
            "971211336000 7000 GET /bucket/a.txt 200 113 192.0.2.3 S3Console/0.4",
        ),
        (
            r#"[10/Oct/2000:20:55:36 +0000] - 200 200 - GET https example.com "/path?a=b" [Client 203.0.113.1] [Length 1234] [Gzip -] [Sent-to 10.0.0.5] "Mozilla/5.0" "-""#,
            "Nginx Proxy Manager",
            "971211336000 - GET /path?a=b 200 1234 203.0.113.1 Mozilla/5.0",
        ),
        (
            r#"[10/Oct/2000:20:55:36 +0000] 404 - GET http localhost-nginx-proxy-manager "/" [Client 203.0.113.1] [Length 548] [Gzip -] "x" "-""#,
            "Nginx Proxy Manager, its own host",
            "971211336000 - GET / 404 548 203.0.113.1 x",
        ),
    ] {
        let format = find_format(&[line.as_bytes()], None).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(format.name(), name, "{line}");
        check(&format, line, Some(expect));
    }
    let iis = [
        "#Software: Microsoft Internet Information Services 10.0",
        "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status \
         sc-substatus sc-win32-status time-taken",
        "2000-10-10 20:55:36 10.0.0.1 GET /a.aspx b=1 80 - 203.0.113.7 Mozilla/5.0+(x) - 200 0 0 15",
    ];
    let cloudfront = [
        "#Version: 1.0",
        "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) \
         cs-uri-query time-taken",
        "2000-10-10\t20:55:36\tLAX1\t2390\t203.0.113.7\tGET\td.cloudfront.net\t/i.html\t200\t-\tMozilla/5.0\t-\t0.001",
    ];
    for (lines, name, expect) in [
        (
            iis,
            "W3C with the fields of its #Fields line",
            "971211335985 15000 GET /a.aspx?b=1 200 - 203.0.113.7 Mozilla/5.0+(x)",
        ),
        (cloudfront, "AWS CloudFront", "971211335999 1000 GET /i.html 200 2390 203.0.113.7 Mozilla/5.0"),
    ] {
        let bytes: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        let mut format = find_format(&bytes, None).unwrap_or_else(|error| panic!("{lines:?}: {error}"));
        assert_eq!(format.name(), name);
        check(&format, lines[2], Some(expect));
        assert!(format.consume_non_request_line(bytes[0]) && !format.consume_non_request_line(bytes[2]));
        // A second `#Fields` directive defines the fields of later lines.
        assert!(format.consume_non_request_line(b"#Fields: date time cs-uri-stem sc-status"));
        check(&format, "2000-10-10 20:55:36 /b 204", Some("971211336000 -  /b 204 -  "));
    }
}

#[test]
fn servers_are_detected_from_their_logs_by_default() {
    for (line, name, expect) in [
        (
            r#"127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 12 "-" "curl/8.0""#,
            "combined log format",
            "971211336000 - GET /a 200 12 127.0.0.1 curl/8.0",
        ),
        (
            r#"[GIN] 2000/10/10 - 20:55:36 | 200 |      53.5µs |       127.0.0.1 | GET      "/a?x=1""#,
            "Gin",
            "971211335999 53 GET /a?x=1 200 - 127.0.0.1 ",
        ),
        (
            "[GIN] 2000/10/10 - 20:55:36 |\u{1b}[97;42m 200 \u{1b}[0m|  2ms |  ::1 |\u{1b}[97;44m POST    \u{1b}[0m \"/a\"",
            "Gin",
            "971211335998 2000 POST /a 200 - ::1 ",
        ),
        (
            r#"2000/10/10 20:55:36 "GET http://localhost:3000/a HTTP/1.1" from 127.0.0.1:5001 - 200 12B in 2ms"#,
            "chi",
            "971211335998 2000 GET /a 200 - 127.0.0.1 ",
        ),
        (
            r#"2000/10/10 20:55:36 [h/AbC-000001] "GET http://h/a HTTP/1.1" from [::1]:5001 - 404 12B in 2ms"#,
            "chi",
            "971211335998 2000 GET /a 404 - ::1 ",
        ),
        (
            "[pid: 12|app: 0|req: 1/1] 127.0.0.1 () {28 vars in 400 bytes} [Tue Oct 10 20:55:36 2000] GET /a?x=1 => \
             generated 123 bytes in 4 msecs (HTTP/1.1 200) 2 headers in 79 bytes (1 switches on core 0)",
            "uWSGI",
            "971211336000 4000 GET /a?x=1 200 123 127.0.0.1 ",
        ),
        (
            r#"[10/Oct/2000 20:55:36] "GET /a HTTP/1.1" 200 1234"#,
            "Django's own server",
            "971211336000 - GET /a 200 1234  ",
        ),
        (
            r#"127.0.0.1 [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 167 "-" "curl/8""#,
            "aiohttp",
            "971211336000 - GET /a 200 167 127.0.0.1 curl/8",
        ),
        (
            r#"127.0.0.1:5000 - - [10/Oct/2000:20:55:36] "GET /a" 200 12"#,
            "common log format",
            "971211336000 - GET /a 200 12 127.0.0.1 ",
        ),
        (
            r#"127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 - 0.0034"#,
            "common log format with the duration in seconds (Puma, Rack)",
            "971211335996 3400 GET /a 200 - 127.0.0.1 ",
        ),
        (
            r#"127.0.0.1 -  10/Oct/2000:20:55:36 +0000 "GET /index.php" 200"#,
            "PHP-FPM",
            "971211336000 - GET /index.php 200 - 127.0.0.1 ",
        ),
        (
            "[Tue Oct 10 20:55:36 2000] 127.0.0.1:50001 [200]: GET /a",
            "PHP's own server",
            "971211336000 - GET /a 200 - 127.0.0.1 ",
        ),
        (
            "971211336.123     45 127.0.0.1 TCP_MISS/200 1234 GET http://h/a - HIER_DIRECT/10.0.0.1 text/html",
            "Squid",
            "971211336078 45000 GET /a 200 1234 127.0.0.1 ",
        ),
        (
            "2000-10-10 20:55:36 +0000 - (sanic.access)[INFO][127.0.0.1:5000]: GET http://h:8000/a  200 12",
            "Sanic",
            "971211336000 - GET /a 200 12 127.0.0.1 ",
        ),
        (
            r#"Started GET "/a?x=1" for 127.0.0.1 at 2000-10-10 20:55:36 +0000"#,
            "Rails",
            "971211336000 - GET /a?x=1 - - 127.0.0.1 ",
        ),
        (
            r#"I, [2000-10-10T20:55:36.123456 #1]  INFO -- : [6ba7b810-9dad] Started GET "/a" for ::1 at 2000-10-10 20:55:36 +0000"#,
            "Rails, behind a time and tags",
            "971211336000 - GET /a - - ::1 ",
        ),
        (
            "I, [2000-10-10T20:55:36.500 #1]  INFO -- : method=GET path=/a format=html controller=A action=b status=200 \
             duration=5.25 view=1.2",
            "Rails (lograge), behind a time",
            "971211336494 5250 GET /a 200 -  ",
        ),
        (
            r#"2000-10-10T20:55:36.5+00:00 heroku[router]: at=info method=GET path="/a?b=1" host=h fwd="204.0.0.20" dyno=web.1 connect=1ms service=18ms status=200 bytes=13"#,
            "Heroku's router, behind syslog",
            "971211336482 18000 GET /a?b=1 200 13 204.0.0.20 ",
        ),
        (
            r#"time=2000-10-10T20:55:36.500Z level=INFO msg="a request" method=GET path="/a?b=1" status=200 duration=1.5ms remote_ip=10.0.0.1"#,
            "logfmt lines (time, path, method, status, remote_ip, duration)",
            "971211336498 1500 GET /a?b=1 200 - 10.0.0.1 ",
        ),
        (
            "2000/10/10 20:55:36.5\tINFO\thttp.log.access\thandled request\t{\"request\": {\"remote_ip\": \"10.0.0.1\", \
             \"proto\": \"HTTP/1.1\", \"method\": \"GET\", \"uri\": \"/a\"}, \"duration\": 0.002, \"size\": 12, \"status\": 200}",
            "Caddy, behind a time and a level",
            "971211336498 2000 GET /a 200 12 10.0.0.1 ",
        ),
    ] {
        let format = find_format(&[line.as_bytes()], None).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(format.name(), name, "{line}");
        check(&format, line, Some(expect));
    }
    // Rails logs several lines for each request. Only the first line is parsed as a request, and
    // the other lines do not count as unreadable.
    let lines =
        ["Started GET \"/a\" for ::1 at 2000-10-10 20:55:36 +0000", "Processing by A#b as HTML", "Completed 200 OK"];
    let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
    let mut format = find_format(&lines, None).expect("Rails");
    assert_eq!(lines.iter().map(|line| format.consume_non_request_line(line)).collect::<Vec<_>>(), [false, true, true]);
    for name in ["gin", "chi", "uwsgi", "django", "aiohttp", "squid", "rails", "gunicorn"] {
        assert!(Format::from_text(name, None).is_ok(), "{name}");
    }
}

#[test]
fn lines_without_times_use_the_prefix_time() {
    const TIME: &str = "2000-10-10T20:55:36.5Z";
    for (line, name, expect) in [
        (r#"INFO:     127.0.0.1:5000 - "GET /a HTTP/1.1" 200 OK"#, "uvicorn", "971211336500 - GET /a 200 - 127.0.0.1 "),
        (r#"127.0.0.1:5000 - "GET /a HTTP/1.1" 200"#, "uvicorn", "971211336500 - GET /a 200 - 127.0.0.1 "),
        ("GET /a 200 5.25 ms - 12", "morgan, dev", "971211336494 5250 GET /a 200 12  "),
        ("GET /a - - ms - -", "morgan, dev", "971211336500 - GET /a - -  "),
        (
            "\u{1b}[0mGET /a \u{1b}[32m200\u{1b}[0m 5.25 ms - 12\u{1b}[0m",
            "morgan, dev",
            "971211336494 5250 GET /a 200 12  ",
        ),
        ("GET /a 200 12 - 5.25 ms", "morgan, tiny", "971211336494 5250 GET /a 200 12  "),
        ("::1 - GET /a HTTP/1.1 200 12 - 5.25 ms", "morgan, short", "971211336494 5250 GET /a 200 12 ::1 "),
        (
            r#"10.0.0.1 "GET /a HTTP/1.1" 200 12 "-" "curl/8" 0.005250"#,
            "Actix",
            "971211336494 5250 GET /a 200 12 10.0.0.1 curl/8",
        ),
        (r#"10.0.0.1 - "GET /a HTTP/1.1" 200 5.25"#, "Granian", "971211336494 5250 GET /a 200 - 10.0.0.1 "),
        ("20:55:36 | 200 | 5ms | 10.0.0.1 | GET | /a | -", "Fiber", "971211336495 5000 GET /a 200 - 10.0.0.1 "),
        (" GET /a 200 in 5ms", "Next.js", "971211336495 5000 GET /a 200 -  "),
        (
            r#"{"method":"GET","path":"/a","status":200,"duration_ms":5}"#,
            "JSON lines (path, method, status, duration_ms)",
            "971211336495 5000 GET /a 200 -  ",
        ),
    ] {
        let json = serde_json::json!({ "log": format!("{line}\n"), "stream": "stdout", "time": TIME }).to_string();
        for (carried, behind) in [
            (format!("{TIME} stdout F {line}"), "Kubernetes (CRI)"),
            (json, "Docker's JSON"),
            (format!("{TIME} {line}"), "a time"),
            (format!("2000-10-10 20:55:36,500 {line}"), "a time"),
            (format!("web-1  | {TIME} {line}"), "docker compose and a time"),
        ] {
            let format = find_format(&[carried.as_bytes()], None).unwrap_or_else(|error| panic!("{carried}: {error}"));
            let level = if line.starts_with("INFO") { " and a level" } else { "" };
            assert_eq!(format.name(), format!("{name}, behind {behind}{level}"), "{carried}");
            check(&format, &carried, Some(expect));
        }
        let error = find_format(&[line.as_bytes()], None).expect_err(line).to_string();
        assert!(error.contains("the access log has no times"), "{line}: {error}");
    }
    // The log lines have the formats of the loggers of uvicorn and gunicorn.
    for line in [
        r#"2000-10-10 20:55:36,500 - uvicorn.access - INFO - 127.0.0.1:5000 - "GET /a HTTP/1.1" 200"#,
        r#"2000-10-10 20:55:36.500 | INFO     | uvicorn.protocols:send:447 - 127.0.0.1:5000 - "GET /a HTTP/1.1" 200"#,
        r#"[2000-10-10 20:55:36.5 +0000] [8] [INFO] 127.0.0.1:5000 - "GET /a HTTP/1.1" 200"#,
    ] {
        let format = find_format(&[line.as_bytes()], None).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(format.name(), "uvicorn, behind a time and a level", "{line}");
        check(&format, line, Some("971211336500 - GET /a 200 - 127.0.0.1 "));
    }
}

#[test]
fn impossible_values_rule_out_a_format() {
    for line in [
        // The first log line has a client that is not an address. The second and third log lines
        // have statuses of two and four digits.
        r#"stdout - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5 "-" "x""#,
        r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 20 5 "-" "x""#,
        r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 2000 5"#,
    ] {
        let error = find_format(&[line.as_bytes()], None).expect_err(line).to_string();
        assert!(error.contains("no known format (plimsoll knows the log formats common, combined"), "{line}: {error}");
    }
    for line in [
        r#"INFO:     127.0.0.1:52155 - "GET / HTTP/1.1" 200 OK"#,
        r#"web-1  | INFO: 10.0.0.1:1 - "GET / HTTP/1.1" 200"#,
    ] {
        let error = find_format(&[line.as_bytes()], None).expect_err(line).to_string();
        assert!(error.contains("the access log has no times"), "{line}: {error}");
    }
}

#[test]
fn user_defined_log_formats_are_parsed() {
    for (given, line, expect) in [
        (
            r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" rt=$request_time"#,
            r#"10.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" rt=0.250"#,
            Some("971211335750 250000 GET /a 200 5 10.0.0.1 x"),
        ),
        (
            "$msec $request_time $request_method $scheme://$host$request_uri $status",
            "971211336.500 0.100 GET http://h/a?b 200",
            Some("971211336400 100000 GET /a?b 200 -  "),
        ),
        (
            "$time_local $remote_addr \"$request\"",
            "10/Oct/2000:20:55:36 +0000 ::1 \"GET /a HTTP/1.1\"",
            Some("971211336000 - GET /a - - ::1 "),
        ),
        (
            "$time_iso8601|$request_method|$uri$is_args$args|${status}",
            "2000-10-10T20:55:36+00:00|GET|/a?b=1|200",
            Some("971211336000 - GET /a?b=1 200 -  "),
        ),
        (
            "log_format json escape=json '{\"t\":\"$msec\",' '\"r\":\"$request\",\"s\":$status}';",
            r#"{"t":"971211336.5","r":"GET /a HTTP/1.1","s":200}"#,
            Some("971211336500 - GET /a 200 -  "),
        ),
        (
            r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %D"#,
            r#"10.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 - "-" "x" 2500"#,
            Some("971211336000 2500 GET /a 200 - 10.0.0.1 x"),
        ),
        (
            "LogFormat \"%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t %a %m %U%q %>s %O %{ms}T\" mine",
            "10/Oct/2000:20:55:36.042 +0000 10.0.0.1 GET /a?b 200 70 12",
            Some("971211336042 12000 GET /a?b 200 70 10.0.0.1 "),
        ),
        (
            "%{end:msec}t %D \"%r\" %!200,304>s",
            "971211336500 100000 \"GET /a HTTP/1.1\" -",
            Some("971211336400 100000 GET /a - -  "),
        ),
        (
            "[%START_TIME(%s.%3f)%] %REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %RESPONSE_CODE% %DURATION% %DOWNSTREAM_REMOTE_ADDRESS%",
            "[971211336.500] GET /a 200 7 10.0.0.1:80",
            Some("971211336500 7000 GET /a 200 - 10.0.0.1 "),
        ),
        // If nginx tried several upstream servers, some fields are lists.
        (
            r#"$remote_addr [$time_local] "$request" $status $upstream_addr $upstream_response_time $request_time"#,
            r#"203.0.113.1 [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 10.0.0.1:80, 10.0.0.2:80 : 10.0.1.1:80 0.010, 0.020 : 0.003 0.900"#,
            Some("971211335100 900000 GET /a 200 - 203.0.113.1 "),
        ),
        (
            r#"$http_x_forwarded_for [$time_local] "$request" $status $upstream_addr $upstream_status $request_time"#,
            r#"203.0.113.1, 10.0.0.9 [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 10.0.0.1:80, 10.0.0.2:80 502, 200 0.900"#,
            Some("971211335100 900000 GET /a 200 - 203.0.113.1 "),
        ),
        ("combined", "nothing of the kind", None),
        (
            "combined",
            COMBINED,
            Some("971211336000 - GET /apache_pb.gif?x=1 200 2326 127.0.0.1 Mozilla/4.08 [en] (Win98; I ;Nav)"),
        ),
        ("caddy", CADDY, Some("1646861401523 929 GET /a?b=1 200 10900 127.0.0.1 curl/7.82.0")),
    ] {
        let format = Format::from_text(given, None).unwrap_or_else(|error| panic!("{given}: {error}"));
        check(&format, line, expect);
    }
    assert!(Format::from_text("$msec$status $request", None).is_err());
    let format = Format::from_json_mapping("path=.q.url,time=.at,duration_ms=.took,client=.who,start=.began", None)
        .expect("a mapping");
    check(
        &format,
        r#"{"q":{"url":"/a"},"at":971211336.5,"took":12.5,"who":"ann"}"#,
        Some("971211336487 12500  /a - - ann "),
    );
    check(
        &format,
        r#"{"q":{"url":"/a"},"at":971211336.5,"began":971211336.25}"#,
        Some("971211336250 250000  /a - -  "),
    );
    check(&format, r#"{"q":{"url":"/a"}}"#, None);
}

#[test]
fn sessions_are_separated_as_requested() {
    let session = |format: &Format, line: &str| {
        let mut buffer = LineBuffers::default();
        format.parse(line.as_bytes(), &mut buffer).map(|entry| String::from_utf8_lossy(entry.session).into_owned())
    };
    let format = find_format(&[CADDY.as_bytes()], Some(".request.host")).expect("Caddy");
    assert_eq!(session(&format, CADDY).as_deref(), Some("localhost"));
    let format = Format::from_text("$msec $cookie_sid \"$request\"", Some("$cookie_sid")).expect("a format");
    assert_eq!(session(&format, "971211336.5 abc \"GET / HTTP/1.1\"").as_deref(), Some("abc"));
    assert!(matches!(find_format(&[COMBINED.as_bytes()], Some(".user")), Err(FormatError::Session(..))));
    let format = find_format(&[COMBINED.as_bytes()], Some("client")).expect("a format");
    assert_eq!(session(&format, COMBINED).as_deref(), Some("127.0.0.1"));
}

#[test]
fn unknown_log_formats_are_refused() {
    for lines in [&["hello", "world"][..], &["{\"a\":1}"], &["{}"], &["", "\0\0"], &["time,path,status", "1,/a,200"]] {
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        assert_eq!(find_format(&lines, None).err(), Some(FormatError::Unknown), "{lines:?}");
    }
    // A few lines that are not requests do not prevent the detection of the log format.
    let lines = [COMBINED.as_bytes(), b"starting up", COMBINED.as_bytes()];
    assert!(find_format(&lines, None).is_ok());
}

proptest::proptest! {
    #[test]
    fn any_request_is_surveyed_without_a_panic(
        requests in proptest::collection::vec((0u64..u64::MAX / 2, proptest::option::of(proptest::num::u64::ANY), "[/a-z0-9-]{0,9}"), 0..40),
        near in proptest::bool::ANY,
    ) {
        let mut survey = Survey::new(None);
        for (at, duration_ns, path) in &requests {
            let start_ns = if near { 1_700_000_000_000_000_000 + at % 3_000_000_000_000 } else { *at };
            let entry = Entry {
                stamp_ns: start_ns,
                start_ns,
                duration_ns: duration_ns.map(|ns| if near { ns % 2_000_000_000_000 } else { ns }),
                target: path.as_bytes(),
                bytes: Some(*at),
                client: b"c",
                ..Entry::default()
            };
            survey.add(&entry, TimestampMeaning::Start);
        }
        let figures = survey.finish();
        proptest::prop_assert_eq!(figures.requests, requests.len() as u64);
        let placed: u64 = figures.intervals.iter().map(|moment| moment.arrivals).sum();
        proptest::prop_assert_eq!(placed + figures.late_requests, figures.requests);
        proptest::prop_assert!(figures.concurrency.is_none_or(|c| c.mean.is_finite()));
    }

    #[test]
    fn any_log_line_parses_without_a_panic(cut in 0usize..400, at in 0usize..400, byte in proptest::num::u8::ANY, which in 0usize..9) {
        let line = [COMBINED, AWS_ALB_LOG_LINE, AWS_CLASSIC_BALANCER_LOG_LINE, ENVOY, ISTIO, TRAEFIK, CADDY, TRAEFIK_JSON, ENVOY_JSON][which];
        let format = find_format(&[line.as_bytes()], None).expect("a format");
        let mut line = line.as_bytes().to_vec();
        if let Some(place) = line.get_mut(at) {
            *place = byte;
        }
        line.truncate(cut);
        let _ = format.parse(&line, &mut LineBuffers::default());
        let _ = find_format(&[&line], None);
    }

    #[test]
    fn any_log_format_parses_without_a_panic(format in "(\\$[a-z_{}]{0,14}|%[{}a-zA-Z>!,0-9:]{0,8}|%[A-Z_]{1,9}(\\([:a-z%?]{0,5}\\))?%|[ \"\\[]){0,8}", line in ".{0,60}") {
        if let Ok(format) = Format::from_text(&format, None) {
            let _ = format.parse(line.as_bytes(), &mut LineBuffers::default());
        }
    }
}

#[test]
fn popularity_is_found_for_items_without_numbers() {
    for (names, expect) in [(200u64, true), (20, false)] {
        let mut survey = Survey::new(None);
        for rank in 1..=names {
            let syllables = ["ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su"];
            let word: String = [100, 10, 1].iter().map(|place| syllables[(rank / place % 10) as usize]).collect();
            let path = format!("/shop/{word}");
            for number in 0..4_000 / rank {
                let start_ns = 1_700_000_000_000_000_000 + number * 1_000_000_000;
                let entry =
                    Entry { stamp_ns: start_ns, start_ns, method: b"GET", target: path.as_bytes(), ..Entry::default() };
                survey.add(&entry, TimestampMeaning::Start);
            }
        }
        let popularity = survey.finish().popularity;
        assert_eq!(popularity.is_some(), expect, "{names}");
        if let Some(popularity) = popularity {
            assert_eq!((popularity.template.as_str(), popularity.ids), ("/shop/*", names));
            assert!(
                popularity.zipf_exponent.is_some_and(|a| (0.95..1.05).contains(&a)),
                "{:?}",
                popularity.zipf_exponent
            );
        }
    }
}
