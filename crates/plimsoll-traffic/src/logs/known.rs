//! The formats of logs that are known, and the names by which fields are looked for: tables,
//! nothing else.

use super::entry::{LinePlace, Stamp};
use super::stamp::StampFormat;
use plimsoll_model::units::{MS, SECOND};

/// The format whose lines end in seconds and thousandths, which only nginx writes so: others end in
/// whole numbers of another unit.
pub(super) const ENDS_IN_SECONDS: &str = "combined log format and $request_time";

/// Formats of text, the more particular first: name, meaning of the stamp, places (`<...>`),
/// whether more may follow.
pub(super) const TEXTS: [(&str, Stamp, &str, bool); 17] = [
    (
        "Traefik's common log format",
        Stamp::Start,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\" <> \"<>\" \"<>\" <ms>",
        false,
    ),
    (
        "AWS application load balancer",
        Stamp::Start,
        "<> <end> <> <client:port> <> <s> <s> <s> <status> <> <> <bytes> \"<request>\" \"<agent>\" <> <> <> \"<>\" \"<>\" \
         \"<>\" <> <start> ",
        true,
    ),
    (
        "AWS classic load balancer",
        Stamp::Start,
        "<time> <> <client:port> <> <s> <s> <s> <status> <> <> <bytes> \"<request>\" \"<agent>\" ",
        true,
    ),
    (
        "Envoy",
        Stamp::Start,
        "[<time>] \"<request>\" <status> <> <> <bytes> <ms> <> \"<client>\" \"<agent>\" \"<>\" \"<>\" \"<>\"",
        true,
    ),
    (
        "Envoy, as Istio sets it",
        Stamp::Start,
        "[<time>] \"<request>\" <status> <> <> <> \"<>\" <> <bytes> <ms> <> \"<client>\" \"<agent>\" ",
        true,
    ),
    (
        "combined log format with the virtual host",
        Stamp::Start,
        "<word>:<word> <client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\"",
        true,
    ),
    (
        ENDS_IN_SECONDS,
        Stamp::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\" <s>",
        false,
    ),
    (
        "nginx, as Kubernetes' ingress sets it",
        Stamp::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\" <> <s> [<>] [<>] ",
        true,
    ),
    (
        "combined log format",
        Stamp::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\"",
        true,
    ),
    ("common log format", Stamp::End, "<client> <word> <> [<time>] \"<request>\" <status> <bytes>", false),
    ("common log format and more", Stamp::End, "<client> <word> <> [<time>] \"<request>\" <status> <bytes> ", true),
    (
        "combined log format with the virtual host before it",
        Stamp::End,
        "<word> <client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\"",
        true,
    ),
    (
        "common log format with the virtual host before it",
        Stamp::End,
        "<word> <client> <word> <> [<time>] \"<request>\" <status> <bytes>",
        true,
    ),
    (
        "HAProxy",
        Stamp::Start,
        "<client:port> [<time>] <> <> <proxy> <status> <bytes> <> <> <> <> <>\"<request>\"",
        true,
    ),
    (
        "AWS S3",
        Stamp::Start,
        "<> <> [<time>] <client> <> <> <> <> \"<request>\" <status> <> <bytes> <> <ms> <> \"<>\" \"<agent>\"",
        true,
    ),
    (
        "Nginx Proxy Manager",
        Stamp::End,
        "[<time>] <> <list> <status> - <method> <> <> \"<target>\" [Client <client>] [Length <bytes>] [Gzip <>] [Sent-to <>] \
         \"<agent>\" \"<>\"",
        true,
    ),
    (
        "Nginx Proxy Manager, its own host",
        Stamp::End,
        "[<time>] <status> - <method> <> <> \"<target>\" [Client <client>] [Length <bytes>] [Gzip <>] \"<agent>\" \"<>\"",
        true,
    ),
];

/// A format of JSON.
pub(super) struct KnownJson {
    pub name: &'static str,
    /// What its stamps mean.
    pub stamp: Stamp,
    /// Paths that tell it.
    pub telling: &'static [&'static str],
    /// What stands where.
    pub paths: &'static [(&'static str, LinePlace)],
}

/// Formats of JSON whose names are fixed.
pub(super) const JSONS: [KnownJson; 4] = [
    KnownJson {
        name: "Caddy",
        stamp: Stamp::End,
        telling: &["request.uri", "ts"],
        paths: &[
            ("ts", LinePlace::Time(StampFormat::Auto)),
            ("request.method", LinePlace::Method),
            ("request.uri", LinePlace::Target),
            ("request.remote_addr", LinePlace::ClientPort),
            ("request.remote_ip", LinePlace::Client),
            ("request.client_ip", LinePlace::Client),
            ("request.headers.User-Agent", LinePlace::UserAgent),
            ("duration", LinePlace::Duration(SECOND)),
            ("size", LinePlace::Bytes),
            ("status", LinePlace::Status),
        ],
    },
    KnownJson {
        name: "Traefik",
        stamp: Stamp::End,
        telling: &["RequestPath", "DownstreamStatus"],
        paths: &[
            ("StartUTC", LinePlace::Start(StampFormat::Auto)),
            ("time", LinePlace::Time(StampFormat::Auto)),
            ("RequestMethod", LinePlace::Method),
            ("RequestPath", LinePlace::Target),
            ("ClientHost", LinePlace::Client),
            ("request_User-Agent", LinePlace::UserAgent),
            ("Duration", LinePlace::Duration(1)),
            ("DownstreamContentSize", LinePlace::Bytes),
            ("DownstreamStatus", LinePlace::Status),
        ],
    },
    KnownJson {
        name: "Envoy, JSON",
        stamp: Stamp::Start,
        telling: &["start_time", "response_code"],
        paths: &[
            ("start_time", LinePlace::Time(StampFormat::Auto)),
            ("method", LinePlace::Method),
            ("path", LinePlace::Target),
            ("downstream_remote_address", LinePlace::ClientPort),
            ("x_forwarded_for", LinePlace::Client),
            ("x-forwarded-for", LinePlace::Client),
            ("user_agent", LinePlace::UserAgent),
            ("user-agent", LinePlace::UserAgent),
            ("duration", LinePlace::Duration(MS)),
            ("bytes_sent", LinePlace::Bytes),
            ("response_code", LinePlace::Status),
        ],
    },
    KnownJson {
        name: "Google Cloud load balancer",
        stamp: Stamp::Start,
        telling: &["httpRequest.requestUrl"],
        paths: &[
            ("timestamp", LinePlace::Time(StampFormat::Auto)),
            ("httpRequest.requestMethod", LinePlace::Method),
            ("httpRequest.requestUrl", LinePlace::Target),
            ("httpRequest.remoteIp", LinePlace::Client),
            ("httpRequest.userAgent", LinePlace::UserAgent),
            ("httpRequest.latency", LinePlace::Duration(SECOND)),
            ("httpRequest.responseSize", LinePlace::Bytes),
            ("httpRequest.status", LinePlace::Status),
        ],
    },
];

/// Names by which values are looked for in JSON of nobody in particular; of each kind the first
/// that is there. A duration of unit 0 is taken only where it is written with a unit.
pub(super) const NAMES: [(LinePlace, &[&str]); 16] = [
    (LinePlace::End(StampFormat::Auto), &["msec", "time_iso8601", "time_local", "end_time", "finished_at"]),
    (LinePlace::Start(StampFormat::Auto), &["start_time", "started_at", "start"]),
    (
        LinePlace::Time(StampFormat::Auto),
        &["@timestamp", "timestamp", "time", "ts", "datetime", "date", "log_time", "request_timestamp", "time_unix"],
    ),
    (
        LinePlace::Target,
        &[
            "request_uri",
            "url.original",
            "req.url",
            "request.uri",
            "request.url",
            "uri",
            "url",
            "request_path",
            "url.path",
            "path",
            "request.path",
            "http.url",
            "http.target",
            "endpoint",
        ],
    ),
    (LinePlace::Request, &["request", "request_line", "http_request"]),
    (
        LinePlace::Method,
        &[
            "request_method",
            "http.request.method",
            "req.method",
            "request.method",
            "method",
            "http.method",
            "verb",
            "http_method",
        ],
    ),
    (
        LinePlace::Status,
        &[
            "status",
            "status_code",
            "statusCode",
            "http.response.status_code",
            "res.statusCode",
            "response.status",
            "response_status",
            "response_code",
            "code",
            "http.status_code",
            "http_status",
        ],
    ),
    (
        LinePlace::Bytes,
        &[
            "body_bytes_sent",
            "bytes_sent",
            "bytes_out",
            "http.response.body.bytes",
            "response_size",
            "response_bytes",
            "size",
            "bytes",
            "content_length",
            "length",
        ],
    ),
    (
        LinePlace::Client,
        &[
            "client_ip",
            "remote_addr",
            "client.ip",
            "source.ip",
            "remote_ip",
            "req.remoteAddress",
            "ip",
            "client",
            "client.address",
            "clientip",
            "remote_host",
            "remote_address",
            "host.ip",
        ],
    ),
    (
        LinePlace::UserAgent,
        &[
            "http_user_agent",
            "user_agent",
            "user_agent.original",
            "userAgent",
            "user-agent",
            "req.headers.user-agent",
            "agent",
        ],
    ),
    (
        LinePlace::Duration(SECOND),
        &["request_time", "duration_s", "duration_seconds", "latency_s", "elapsed_s", "request_time_s"],
    ),
    (
        LinePlace::Duration(MS),
        &[
            "duration_ms",
            "latency_ms",
            "elapsed_ms",
            "response_time_ms",
            "request_time_ms",
            "took_ms",
            "time_ms",
            "responseTime",
            "durationMs",
            "latencyMs",
        ],
    ),
    (LinePlace::Duration(1_000), &["duration_us", "latency_us", "elapsed_us", "response_time_us"]),
    (LinePlace::Duration(1), &["duration_ns", "latency_ns", "event.duration", "elapsed_ns"]),
    (LinePlace::Duration(0), &["latency_human"]),
    (LinePlace::Duration(0), &["duration", "latency", "elapsed", "response_time", "took"]),
];
