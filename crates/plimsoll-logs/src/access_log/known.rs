//! Tables of known log formats and field names. This file contains data only.

use super::entry::{FieldMeaning, TimestampMeaning};
use plimsoll_model::timestamp::TimestampFormat;
use plimsoll_model::units::{MS, SECOND};

/// The formats whose lines end in a duration in seconds, each with its number of decimals. In other
/// formats, a duration at the end of the line is a whole number in another unit.
pub(super) const FORMATS_ENDING_IN_SECONDS: [(&str, usize); 2] =
    [("combined log format and $request_time", 3), ("common log format with the duration in seconds (Puma, Rack)", 4)];

/// The name of the Rails format. Rails logs a request in several lines; the first line has method,
/// path, client and time.
pub(super) const RAILS_FORMAT_NAME: &str = "Rails";
/// The beginning of the first line of a Rails request.
pub(super) const RAILS_BEGIN: &[u8] = b"Started ";

/// The short format names that the command line accepts, each with the full name of the format.
pub(super) const SHORT_NAMES: [(&str, &str); 25] = [
    ("combined", "combined log format"),
    ("nginx", "combined log format"),
    ("apache", "combined log format"),
    ("gunicorn", "combined log format"),
    ("common", "common log format"),
    ("ingress-nginx", "nginx with the log format of the Kubernetes ingress"),
    ("vhost_combined", "combined log format with the virtual host"),
    ("traefik-common", "Traefik's common log format"),
    ("alb", "AWS application load balancer"),
    ("elb", "AWS classic load balancer"),
    ("envoy", "Envoy"),
    ("istio", "Envoy with the log format of Istio"),
    ("haproxy", "HAProxy"),
    ("s3", "AWS S3"),
    ("nginx-proxy-manager", "Nginx Proxy Manager"),
    ("gin", "Gin"),
    ("chi", "chi"),
    ("uwsgi", "uWSGI"),
    ("django", "Django's own server"),
    ("aiohttp", "aiohttp"),
    ("squid", "Squid"),
    ("rails", RAILS_FORMAT_NAME),
    ("caddy", "Caddy"),
    ("traefik", "Traefik"),
    ("envoy-json", "Envoy, JSON"),
];

/// The known text formats, more specific formats first. Each entry has a name, the meaning of the
/// timestamp, the fields (`<...>`) with fixed texts, and whether more text may follow the last
/// field. A format without a timestamp matches only lines that have a prefix with a timestamp.
pub(super) const KNOWN_TEXT_FORMATS: [(&str, TimestampMeaning, &str, bool); 38] = [
    (
        "Traefik's common log format",
        TimestampMeaning::Start,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\" <> \"<>\" \"<>\" <ms>",
        false,
    ),
    (
        "AWS application load balancer",
        TimestampMeaning::Start,
        "<> <end> <> <client:port> <> <s> <s> <s> <status> <> <> <bytes> \"<request>\" \"<agent>\" <> <> <> \"<>\" \"<>\" \
         \"<>\" <> <start> ",
        true,
    ),
    (
        "AWS classic load balancer",
        TimestampMeaning::Start,
        "<time> <> <client:port> <> <s> <s> <s> <status> <> <> <bytes> \"<request>\" \"<agent>\" ",
        true,
    ),
    (
        "Envoy",
        TimestampMeaning::Start,
        "[<time>] \"<request>\" <status> <> <> <bytes> <ms> <> \"<client>\" \"<agent>\" \"<>\" \"<>\" \"<>\"",
        true,
    ),
    (
        "Envoy with the log format of Istio",
        TimestampMeaning::Start,
        "[<time>] \"<request>\" <status> <> <> <> \"<>\" <> <bytes> <ms> <> \"<client>\" \"<agent>\" ",
        true,
    ),
    (
        "combined log format with the virtual host",
        TimestampMeaning::Start,
        "<word>:<word> <client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\"",
        true,
    ),
    (
        "combined log format and $request_time",
        TimestampMeaning::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\" <s>",
        false,
    ),
    (
        "nginx with the log format of the Kubernetes ingress",
        TimestampMeaning::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\" <> <s> [<>] [<>] ",
        true,
    ),
    (
        "combined log format",
        TimestampMeaning::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\"",
        true,
    ),
    (
        "common log format with the duration in seconds (Puma, Rack)",
        TimestampMeaning::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> <s>",
        false,
    ),
    ("common log format", TimestampMeaning::End, "<client> <word> <> [<time>] \"<request>\" <status> <bytes>", false),
    (
        "common log format with further fields",
        TimestampMeaning::End,
        "<client> <word> <> [<time>] \"<request>\" <status> <bytes> ",
        true,
    ),
    (
        "combined log format with the virtual host before it",
        TimestampMeaning::End,
        "<word> <client> <word> <> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\"",
        true,
    ),
    (
        "common log format with the virtual host before it",
        TimestampMeaning::End,
        "<word> <client> <word> <> [<time>] \"<request>\" <status> <bytes>",
        true,
    ),
    (
        "HAProxy",
        TimestampMeaning::Start,
        "<client:port> [<time>] <> <> <proxy> <status> <bytes> <> <> <> <> <>\"<request>\"",
        true,
    ),
    (
        "AWS S3",
        TimestampMeaning::Start,
        "<> <> [<time>] <client> <> <> <> <> \"<request>\" <status> <> <bytes> <> <ms> <> \"<>\" \"<agent>\"",
        true,
    ),
    (
        "Nginx Proxy Manager",
        TimestampMeaning::End,
        "[<time>] <> <list> <status> - <method> <> <> \"<target>\" [Client <client>] [Length <bytes>] [Gzip <>] [Sent-to <>] \
         \"<agent>\" \"<>\"",
        true,
    ),
    (
        "Nginx Proxy Manager, its own host",
        TimestampMeaning::End,
        "[<time>] <status> - <method> <> <> \"<target>\" [Client <client>] [Length <bytes>] [Gzip <>] \"<agent>\" \"<>\"",
        true,
    ),
    ("Gin", TimestampMeaning::End, "[GIN] <time> |<status>|<s>|<client>|<verb>\"<path>\"", true),
    ("chi", TimestampMeaning::End, "<time> \"<request>\" from <client:port> - <status> <>B in <s>", false),
    ("chi", TimestampMeaning::End, "<time> [<>] \"<request>\" from <client:port> - <status> <>B in <s>", false),
    (
        "uWSGI",
        TimestampMeaning::Start,
        "[pid: <>] <client> (<>) {<>} [<time>] <verb> <path> => generated <bytes> bytes in <ms> msecs (<> <status>)",
        true,
    ),
    ("Django's own server", TimestampMeaning::End, "[<time>] \"<request>\" <status> <bytes>", false),
    ("aiohttp", TimestampMeaning::Start, "<client> [<time>] \"<request>\" <status> <bytes> \"<>\" \"<agent>\"", true),
    ("PHP-FPM", TimestampMeaning::Start, "<client> - <> <time> \"<request>\" <status>", true),
    ("PHP's own server", TimestampMeaning::End, "[<time>] <client:port> [<status>]: <verb> <path>", false),
    ("Squid", TimestampMeaning::End, "<time> <ms> <client> <>/<status> <bytes> <verb> <target> <> <> <>", false),
    (
        "Sanic",
        TimestampMeaning::End,
        "<time> - (sanic.access)[<>][<client:port>]: <verb> <path> <> <status> <bytes>",
        true,
    ),
    (RAILS_FORMAT_NAME, TimestampMeaning::Start, "Started <verb> \"<path>\" for <client> at <time>", false),
    ("Actix", TimestampMeaning::End, "<client> \"<request>\" <status> <bytes> \"<>\" \"<agent>\" <s>", false),
    ("Granian", TimestampMeaning::End, "<client> - \"<request>\" <status> <ms>", false),
    ("uvicorn", TimestampMeaning::End, "<client:port> - \"<request>\" <status> <>", false),
    ("uvicorn", TimestampMeaning::End, "<client:port> - \"<request>\" <status>", false),
    ("morgan, dev", TimestampMeaning::End, "<verb> <path> <status> <ms> ms - <bytes>", false),
    ("morgan, tiny", TimestampMeaning::End, "<verb> <path> <status> <bytes> - <ms> ms", false),
    ("morgan, short", TimestampMeaning::End, "<client> <> <verb> <path> HTTP/<> <status> <bytes> - <ms> ms", false),
    ("Fiber", TimestampMeaning::End, "<> |<status>|<s>|<client>|<verb>|<path>|<>", false),
    ("Next.js", TimestampMeaning::End, "<verb> <path> <status> in <s>", false),
];

/// A known format of names and values: JSON or logfmt.
pub(super) struct KnownPairFormat {
    pub name: &'static str,
    /// Whether the timestamp is the start or the end of a request.
    pub stamp: TimestampMeaning,
    /// The paths of names by which detection recognises the format: at least one line must have a
    /// value at every path.
    pub marker_paths: &'static [&'static str],
    /// The paths of the values to extract, each with the meaning of the value.
    pub paths: &'static [(&'static str, FieldMeaning)],
}

/// The known JSON formats with fixed field names.
pub(super) const JSON_FORMATS: [KnownPairFormat; 4] = [
    KnownPairFormat {
        name: "Caddy",
        stamp: TimestampMeaning::End,
        marker_paths: &["request.uri", "request.proto"],
        paths: &[
            ("ts", FieldMeaning::Time(TimestampFormat::Auto)),
            ("request.method", FieldMeaning::Method),
            ("request.uri", FieldMeaning::Target),
            ("request.remote_addr", FieldMeaning::ClientWithPort),
            ("request.remote_ip", FieldMeaning::Client),
            ("request.client_ip", FieldMeaning::Client),
            ("request.headers.User-Agent", FieldMeaning::UserAgent),
            ("duration", FieldMeaning::Duration(SECOND)),
            ("size", FieldMeaning::Bytes),
            ("status", FieldMeaning::Status),
        ],
    },
    KnownPairFormat {
        name: "Traefik",
        stamp: TimestampMeaning::End,
        marker_paths: &["RequestPath", "DownstreamStatus"],
        paths: &[
            ("StartUTC", FieldMeaning::Start(TimestampFormat::Auto)),
            ("time", FieldMeaning::Time(TimestampFormat::Auto)),
            ("RequestMethod", FieldMeaning::Method),
            ("RequestPath", FieldMeaning::Target),
            ("ClientHost", FieldMeaning::Client),
            ("request_User-Agent", FieldMeaning::UserAgent),
            ("Duration", FieldMeaning::Duration(1)),
            ("DownstreamContentSize", FieldMeaning::Bytes),
            ("DownstreamStatus", FieldMeaning::Status),
        ],
    },
    KnownPairFormat {
        name: "Envoy, JSON",
        stamp: TimestampMeaning::Start,
        marker_paths: &["start_time", "response_code"],
        paths: &[
            ("start_time", FieldMeaning::Time(TimestampFormat::Auto)),
            ("method", FieldMeaning::Method),
            ("path", FieldMeaning::Target),
            ("downstream_remote_address", FieldMeaning::ClientWithPort),
            ("x_forwarded_for", FieldMeaning::Client),
            ("x-forwarded-for", FieldMeaning::Client),
            ("user_agent", FieldMeaning::UserAgent),
            ("user-agent", FieldMeaning::UserAgent),
            ("duration", FieldMeaning::Duration(MS)),
            ("bytes_sent", FieldMeaning::Bytes),
            ("response_code", FieldMeaning::Status),
        ],
    },
    KnownPairFormat {
        name: "Google Cloud load balancer",
        stamp: TimestampMeaning::Start,
        marker_paths: &["httpRequest.requestUrl"],
        paths: &[
            ("timestamp", FieldMeaning::Time(TimestampFormat::Auto)),
            ("httpRequest.requestMethod", FieldMeaning::Method),
            ("httpRequest.requestUrl", FieldMeaning::Target),
            ("httpRequest.remoteIp", FieldMeaning::Client),
            ("httpRequest.userAgent", FieldMeaning::UserAgent),
            ("httpRequest.latency", FieldMeaning::Duration(SECOND)),
            ("httpRequest.responseSize", FieldMeaning::Bytes),
            ("httpRequest.status", FieldMeaning::Status),
        ],
    },
];

/// The known logfmt formats with fixed field names.
pub(super) const LOGFMT_FORMATS: [KnownPairFormat; 2] = [
    KnownPairFormat {
        name: "Heroku's router",
        stamp: TimestampMeaning::End,
        marker_paths: &["dyno", "service"],
        paths: &[
            ("method", FieldMeaning::UppercaseMethod),
            ("path", FieldMeaning::Path),
            ("fwd", FieldMeaning::Client),
            ("service", FieldMeaning::Duration(MS)),
            ("bytes", FieldMeaning::Bytes),
            ("status", FieldMeaning::Status),
        ],
    },
    KnownPairFormat {
        name: "Rails (lograge)",
        stamp: TimestampMeaning::End,
        marker_paths: &["controller", "action"],
        paths: &[
            ("time", FieldMeaning::Time(TimestampFormat::Auto)),
            ("timestamp", FieldMeaning::Time(TimestampFormat::Auto)),
            ("@timestamp", FieldMeaning::Time(TimestampFormat::Auto)),
            ("method", FieldMeaning::UppercaseMethod),
            ("path", FieldMeaning::Path),
            ("remote_ip", FieldMeaning::Client),
            ("ip", FieldMeaning::Client),
            ("duration", FieldMeaning::Duration(MS)),
            ("status", FieldMeaning::Status),
        ],
    },
];

/// The usual names of fields in logs of unknown programs, by meaning. For each meaning, the first
/// name that occurs in the log is used. If the unit of a duration in this table is 0, the logged
/// text must state the unit, such as `12ms`.
pub(super) const FIELD_NAMES_BY_MEANING: [(FieldMeaning, &[&str]); 16] = [
    (FieldMeaning::End(TimestampFormat::Auto), &["msec", "time_iso8601", "time_local", "end_time", "finished_at"]),
    (FieldMeaning::Start(TimestampFormat::Auto), &["start_time", "started_at", "start"]),
    (
        FieldMeaning::Time(TimestampFormat::Auto),
        &["@timestamp", "timestamp", "time", "ts", "datetime", "date", "log_time", "request_timestamp", "time_unix"],
    ),
    (
        FieldMeaning::Target,
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
    (FieldMeaning::Request, &["request", "request_line", "http_request"]),
    (
        FieldMeaning::Method,
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
        FieldMeaning::Status,
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
        FieldMeaning::Bytes,
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
        FieldMeaning::Client,
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
        FieldMeaning::UserAgent,
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
        FieldMeaning::Duration(SECOND),
        &["request_time", "duration_s", "duration_seconds", "latency_s", "elapsed_s", "request_time_s"],
    ),
    (
        FieldMeaning::Duration(MS),
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
    (FieldMeaning::Duration(1_000), &["duration_us", "latency_us", "elapsed_us", "response_time_us"]),
    (FieldMeaning::Duration(1), &["duration_ns", "latency_ns", "event.duration", "elapsed_ns"]),
    (FieldMeaning::Duration(0), &["latency_human"]),
    (FieldMeaning::Duration(0), &["duration", "latency", "elapsed", "response_time", "took"]),
];
