//! Parsers of three log format languages: nginx's `log_format` (`$name`), Apache's `LogFormat`
//! (`%x`), and Envoy's format strings (`%NAME%`). Each parser returns the fields and fixed texts
//! from which a [`super::pattern::Pattern`] is built.

use super::entry::{FieldMeaning, TimestampMeaning};
use super::pattern::FormatPiece;
use plimsoll_model::timestamp::{TimestampFormat, TimestampToken, parse_strftime_tokens};
use plimsoll_model::units::{MS, SECOND};

/// A parsed log format: its fields and fixed texts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParsedFormat {
    pub pieces: Vec<FormatPiece>,
    /// Whether the timestamp is the start or the end of a request.
    pub stamp: TimestampMeaning,
    /// The name of the program whose format language is used: nginx, Apache or Envoy.
    pub language: &'static str,
}

/// Parses a log format in the language of nginx, Apache or Envoy. `session` is the directive that
/// identifies sessions.
///
/// # Errors
/// Returns a text if the format is invalid or lacks a required field. The text continues a message
/// that begins with "--log-format".
pub(super) fn parse_log_format(format: &str, session: Option<&str>) -> Result<ParsedFormat, String> {
    let format = strip_config_syntax(format);
    let is_envoy = format.split('%').skip(1).step_by(2).any(|name| {
        let word = name.split(['(', ':']).next().unwrap_or_default();
        word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit())
    });
    let said = if is_envoy {
        ParsedFormat {
            pieces: parse_envoy_format(&format, session)?,
            stamp: TimestampMeaning::Start,
            language: "Envoy",
        }
    } else if format.contains('$') {
        ParsedFormat { pieces: parse_nginx_format(&format, session)?, stamp: TimestampMeaning::End, language: "nginx" }
    } else if format.contains('%') {
        ParsedFormat {
            pieces: parse_apache_format(&format, session)?,
            stamp: TimestampMeaning::Start,
            language: "Apache",
        }
    } else {
        return Err(format!(
            "{log_format} has no fields; write nginx's log_format ($...), Apache's LogFormat (%...) or Envoy's \
             format (%...%)",
            log_format = format_beginning(&format)
        ));
    };
    let place = |wanted: fn(&FieldMeaning) -> bool| {
        said.pieces.iter().any(|piece| matches!(piece, FormatPiece::Field(place) if wanted(place)))
    };
    if !place(|p| matches!(p, FieldMeaning::Time(_) | FieldMeaning::Start(_) | FieldMeaning::End(_))) {
        return Err(format!(
            "{log_format} has no time field, such as $msec, $time_iso8601, %t or %START_TIME%",
            log_format = format_beginning(&format)
        ));
    }
    if !place(|p| matches!(p, FieldMeaning::Target | FieldMeaning::Request)) {
        return Err(format!(
            "{log_format} has no request field, such as $request, $request_uri, %r or %REQ(:PATH)%",
            log_format = format_beginning(&format)
        ));
    }
    if let Some(session) = session.filter(|_| !place(|p| *p == FieldMeaning::Session)) {
        return Err(format!(
            "{log_format} has no '{session}', the field that identifies a session",
            log_format = format_beginning(&format)
        ));
    }
    Ok(said)
}

/// Returns the beginning of a log format in quotation marks, for error messages.
pub(super) fn format_beginning(format: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    let beginning: String = format.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect();
    let dots = if format.chars().count() > SHOWN_CHARS_MAX { "..." } else { "" };
    format!("'{beginning}{dots}'")
}

/// Returns the format without the syntax of a configuration file, for a pasted line such as
/// `log_format main '...' '...';` or `LogFormat "..." name`.
fn strip_config_syntax(given: &str) -> String {
    let text = given.trim();
    let (is_nginx, rest) = match (text.strip_prefix("log_format "), text.strip_prefix("LogFormat ")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        (None, None) => return given.to_owned(),
    };
    let mut out = String::new();
    let mut quote = None;
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => {
                quote = None;
                if !is_nginx {
                    break;
                }
            }
            (Some(_), '\\') => match chars.next() {
                Some('t') => out.push('\t'),
                Some('n') => {}
                Some(next) => out.push(next),
                None => break,
            },
            (Some(_), c) => out.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, _) => {}
        }
    }
    out
}

fn push_text(pieces: &mut Vec<FormatPiece>, more: &str) {
    match pieces.last_mut() {
        _ if more.is_empty() => {}
        Some(FormatPiece::Text(text)) => text.extend_from_slice(more.as_bytes()),
        _ => pieces.push(FormatPiece::Text(more.as_bytes().to_vec())),
    }
}

/// Appends a field. Consecutive ignored fields become one field.
fn push_field(pieces: &mut Vec<FormatPiece>, place: FieldMeaning) {
    let is_other = |place: &FieldMeaning| matches!(place, FieldMeaning::Ignored | FieldMeaning::UpstreamList);
    if is_other(&place) && matches!(pieces.last(), Some(FormatPiece::Field(last)) if is_other(last)) {
        return;
    }
    pieces.push(FormatPiece::Field(place));
}

fn push_query_field(pieces: &mut Vec<FormatPiece>) {
    match pieces.as_slice() {
        [.., FormatPiece::Field(FieldMeaning::Target)] => {}
        [.., FormatPiece::Field(FieldMeaning::Target), FormatPiece::Text(mark)] if mark == b"?" => _ = pieces.pop(),
        _ => push_field(pieces, FieldMeaning::Ignored),
    }
}

fn parse_nginx_format(format: &str, session: Option<&str>) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        push_text(&mut pieces, &rest[..at]);
        rest = &rest[at + 1..];
        let (name, after) = match rest.strip_prefix('{') {
            Some(inner) => inner.split_once('}').ok_or("has a '${' without its '}'")?,
            None => {
                let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
                rest.split_at(length)
            }
        };
        if name.is_empty() {
            return Err("has a '$' without a name".into());
        }
        rest = after;
        let auto = || TimestampFormat::Auto;
        match name {
            _ if session.is_some_and(|session| session.trim_start_matches('$') == name) => {
                push_field(&mut pieces, FieldMeaning::Session);
            }
            "time_local" if !ends_with_bracket(&pieces) => {
                let writing = parse_strftime_tokens("%d/%b/%Y:%T %z").map_or_else(auto, TimestampFormat::Pattern);
                push_field(&mut pieces, FieldMeaning::End(writing));
            }
            "time_local" | "time_iso8601" | "msec" => push_field(&mut pieces, FieldMeaning::End(auto())),
            "request" => push_field(&mut pieces, FieldMeaning::Request),
            "request_method" => push_field(&mut pieces, FieldMeaning::Method),
            "request_uri" | "uri" | "document_uri" => push_field(&mut pieces, FieldMeaning::Target),
            "is_args" | "args" | "query_string" => push_query_field(&mut pieces),
            "status" => push_field(&mut pieces, FieldMeaning::Status),
            "body_bytes_sent" => push_field(&mut pieces, FieldMeaning::Bytes),
            "bytes_sent" if !format.contains("$body_bytes_sent") => push_field(&mut pieces, FieldMeaning::Bytes),
            "request_time" => push_field(&mut pieces, FieldMeaning::Duration(SECOND)),
            "remote_addr" => push_field(&mut pieces, FieldMeaning::Client),
            "http_x_forwarded_for" | "http_x_real_ip" | "realip_remote_addr" if !format.contains("$remote_addr") => {
                push_field(&mut pieces, FieldMeaning::Client);
            }
            "http_user_agent" => push_field(&mut pieces, FieldMeaning::UserAgent),
            name if name.starts_with("upstream_") || name == "http_x_forwarded_for" => {
                push_field(&mut pieces, FieldMeaning::UpstreamList);
            }
            _ => push_field(&mut pieces, FieldMeaning::Ignored),
        }
    }
    push_text(&mut pieces, rest);
    Ok(pieces)
}

/// Returns whether the last fixed text ends in an opening bracket. The next field then ends at a
/// closing bracket.
fn ends_with_bracket(pieces: &[FormatPiece]) -> bool {
    matches!(pieces.last(), Some(FormatPiece::Text(text)) if text.last() == Some(&b'['))
}

fn parse_apache_format(format: &str, session: Option<&str>) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    // A timestamp may consist of several directives, which are joined into one field.
    let mut stamp: Option<(Vec<TimestampToken>, TimestampMeaning)> = None;
    loop {
        let at = rest.find('%').unwrap_or(rest.len());
        let (before, after) = rest.split_at(at);
        let Some(after) = after.strip_prefix('%') else {
            push_pending_timestamp(&mut pieces, &mut stamp);
            push_text(&mut pieces, before);
            return Ok(pieces);
        };
        // The parser skips Apache's modifiers for statuses and redirects, as in `%!200,304s` and
        // `%>s`.
        let plain = after.trim_start_matches(|c: char| c.is_ascii_digit() || "!,<>".contains(c));
        let (argument, letter) = match plain.strip_prefix('{') {
            Some(inner) => inner.split_once('}').map(|(a, l)| (Some(a), l)).ok_or("has a '%{' without its '}'")?,
            None => (None, plain),
        };
        let name = letter.chars().next().ok_or("ends with a '%'")?;
        // `%^ti` and `%^to` (trailers) have names of three characters.
        let name_bytes = if name == '^' { 3.min(letter.len()) } else { name.len_utf8() };
        let written = &after[..after.len() - letter.len() + name_bytes];
        rest = letter.get(name_bytes..).unwrap_or_default();
        if name == 't'
            && let Some(argument) = argument
        {
            let (meaning, argument) = match argument.split_once(':') {
                Some(("begin", format)) => (TimestampMeaning::Start, format),
                Some(("end", format)) => (TimestampMeaning::End, format),
                _ => (TimestampMeaning::Start, argument),
            };
            let parts = stamp_tokens(argument).ok_or_else(|| {
                format!(
                    "{log_format} has '%{{{argument}}}t', a time format that plimsoll does not support",
                    log_format = format_beginning(format)
                )
            })?;
            match &mut stamp {
                Some((tokens, _)) => {
                    if !before.is_empty() {
                        tokens.push(TimestampToken::Text(before.as_bytes().to_vec()));
                    }
                    tokens.extend(parts);
                }
                None => {
                    push_text(&mut pieces, before);
                    stamp = Some((parts, meaning));
                }
            }
            continue;
        }
        push_pending_timestamp(&mut pieces, &mut stamp);
        push_text(&mut pieces, before);
        let header = argument.map(str::to_ascii_lowercase);
        if session.is_some_and(|session| session.trim_start_matches('%') == written) {
            push_field(&mut pieces, FieldMeaning::Session);
            continue;
        }
        match (name, header.as_deref()) {
            ('%', None) => push_text(&mut pieces, "%"),
            ('t', _) => {
                push_text(&mut pieces, "[");
                push_field(&mut pieces, FieldMeaning::Start(TimestampFormat::Auto));
                push_text(&mut pieces, "]");
            }
            ('h' | 'a', _) => push_field(&mut pieces, FieldMeaning::Client),
            ('r', _) => push_field(&mut pieces, FieldMeaning::Request),
            ('m', _) => push_field(&mut pieces, FieldMeaning::Method),
            ('U', _) => push_field(&mut pieces, FieldMeaning::Target),
            ('q', _) => push_query_field(&mut pieces),
            ('s', _) => push_field(&mut pieces, FieldMeaning::Status),
            ('b' | 'B', _) => push_field(&mut pieces, FieldMeaning::Bytes),
            // A log format may have two response sizes. The size of the content takes precedence
            // over the size with header fields (`%O`).
            ('O', _) if !pieces.contains(&FormatPiece::Field(FieldMeaning::Bytes)) => {
                push_field(&mut pieces, FieldMeaning::Bytes);
            }
            ('D', _) => push_field(&mut pieces, FieldMeaning::Duration(1_000)),
            ('T', Some("ms")) => push_field(&mut pieces, FieldMeaning::Duration(MS)),
            ('T', Some("us")) => push_field(&mut pieces, FieldMeaning::Duration(1_000)),
            // If the format also has microseconds (`%D`), the duration in whole seconds is ignored.
            ('T', _) if !format.contains("%D") => push_field(&mut pieces, FieldMeaning::Duration(SECOND)),
            ('i', Some("user-agent")) => push_field(&mut pieces, FieldMeaning::UserAgent),
            ('i', Some("x-forwarded-for")) if !format.contains("%h") && !format.contains("%a") => {
                push_field(&mut pieces, FieldMeaning::Client);
            }
            _ => push_field(&mut pieces, FieldMeaning::Ignored),
        }
    }
}

/// Appends the field of a timestamp that consists of one or several directives.
fn push_pending_timestamp(pieces: &mut Vec<FormatPiece>, stamp: &mut Option<(Vec<TimestampToken>, TimestampMeaning)>) {
    if let Some((tokens, meaning)) = stamp.take() {
        let writing = TimestampFormat::Pattern(tokens);
        push_field(
            pieces,
            if meaning == TimestampMeaning::Start { FieldMeaning::Start(writing) } else { FieldMeaning::End(writing) },
        );
    }
}

/// Returns the tokens of an Apache time format. The format is one of Apache's own words, such as
/// `msec`, or a `strftime` format. Returns `None` if plimsoll does not support the format.
fn stamp_tokens(format: &str) -> Option<Vec<TimestampToken>> {
    Some(match format {
        "" => parse_strftime_tokens("[%d/%b/%Y:%T %z]")?,
        "sec" => vec![TimestampToken::Epoch(SECOND)],
        "msec" => vec![TimestampToken::Epoch(MS)],
        "usec" => vec![TimestampToken::Epoch(1_000)],
        "msec_frac" => vec![TimestampToken::Fraction(3)],
        "usec_frac" => vec![TimestampToken::Fraction(6)],
        format => parse_strftime_tokens(format)?,
    })
}

fn parse_envoy_format(format: &str, session: Option<&str>) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        push_text(&mut pieces, &rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            push_text(&mut pieces, "%");
            rest = after;
            continue;
        }
        let cannot = || {
            format!(
                "{log_format} has a '%' without a closing '%'; Envoy's operators are written %NAME%",
                log_format = format_beginning(format)
            )
        };
        // The closing percent sign is searched after the parentheses, because a time format may
        // contain percent signs.
        let opened = rest.find('(').filter(|open| rest.find('%').is_none_or(|end| *open < end));
        let end = match opened {
            Some(open) => {
                let closed = open + rest[open..].find(')').ok_or_else(cannot)?;
                closed + rest[closed..].find('%').ok_or_else(cannot)?
            }
            None => rest.find('%').ok_or_else(cannot)?,
        };
        let (operator, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        let (name, argument) = match operator.split_once('(') {
            Some((name, argument)) => (name, argument.split(')').next().unwrap_or_default()),
            None => (operator.split(':').next().unwrap_or_default(), ""),
        };
        let header = argument.to_ascii_lowercase();
        let header = header.split(':').next().filter(|h| !h.is_empty()).unwrap_or(&header);
        match (name, header) {
            _ if session.is_some_and(|session| session.trim_matches('%') == operator) => {
                push_field(&mut pieces, FieldMeaning::Session);
            }
            ("START_TIME", "") => push_field(&mut pieces, FieldMeaning::Start(TimestampFormat::Auto)),
            ("START_TIME", _) => {
                let cannot = || {
                    format!(
                        "{log_format} has '%{operator}%', a time format that plimsoll does not support",
                        log_format = format_beginning(format)
                    )
                };
                push_field(
                    &mut pieces,
                    FieldMeaning::Start(TimestampFormat::Pattern(parse_strftime_tokens(argument).ok_or_else(cannot)?)),
                );
            }
            ("REQ", _) if argument.eq_ignore_ascii_case(":method") => push_field(&mut pieces, FieldMeaning::Method),
            ("REQ", _) if argument.to_ascii_lowercase().ends_with(":path") => {
                push_field(&mut pieces, FieldMeaning::Target)
            }
            ("PATH", _) => push_field(&mut pieces, FieldMeaning::Target),
            ("RESPONSE_CODE", _) => push_field(&mut pieces, FieldMeaning::Status),
            ("BYTES_SENT", _) => push_field(&mut pieces, FieldMeaning::Bytes),
            ("DURATION", _) => push_field(&mut pieces, FieldMeaning::Duration(MS)),
            ("DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" | "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT", _)
                if !format.contains("%REQ(X-FORWARDED-FOR)%") =>
            {
                push_field(&mut pieces, FieldMeaning::Client);
            }
            ("DOWNSTREAM_REMOTE_ADDRESS", _) if !format.contains("%REQ(X-FORWARDED-FOR)%") => {
                push_field(&mut pieces, FieldMeaning::ClientWithPort);
            }
            ("REQ", "x-forwarded-for") => push_field(&mut pieces, FieldMeaning::Client),
            ("REQ", "user-agent") => push_field(&mut pieces, FieldMeaning::UserAgent),
            _ => push_field(&mut pieces, FieldMeaning::Ignored),
        }
    }
    push_text(&mut pieces, rest);
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_formats_without_required_fields_are_refused() {
        for (format, session, expect) in [
            ("hello", None, "has no fields"),
            ("$remote_addr $request", None, "no time"),
            ("$msec $status", None, "no request"),
            ("$msec $", None, "without a name"),
            ("${msec $request", None, "without its '}'"),
            ("%h %{%Q}t %r", None, "does not support"),
            ("%h %t %r %", None, "ends with a '%'"),
            ("%START_TIME% %REQ(:PATH", None, "without a closing '%'"),
            ("$msec $request", Some("$cookie_sid"), "no '$cookie_sid'"),
        ] {
            let error = parse_log_format(format, session).expect_err(format);
            assert!(error.contains(expect), "{format}: {error}");
        }
    }

    #[test]
    fn a_server_configuration_line_is_a_log_format() {
        for (given, expect) in [
            ("log_format main '$msec ' '\"$request\"';", "$msec \"$request\""),
            ("LogFormat \"%h %t \\\"%r\\\"\" common", "%h %t \"%r\""),
            ("$msec $request", "$msec $request"),
        ] {
            assert_eq!(strip_config_syntax(given), expect);
        }
    }
}
