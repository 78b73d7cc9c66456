//! Redaction: this module alone decides how much of a text that could contain a secret appears in a
//! record, report or message.
//!
//! Redaction hides every text that is not known to be harmless. Plain text stays: words and
//! numbers, paths of words and numbers, and the values of a few harmless headers. All text that is
//! not plain is replaced by [`REDACTED`] or shortened, since no list of secrets is complete. Every
//! redacting function is idempotent, except [`redact_command_to_program`] and
//! [`redact_command_line`].
//!
//! Not here: which command-line arguments can contain secrets (`plimsoll/src/secrets.rs`).

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The text that replaces a secret in records, reports and messages.
pub const REDACTED: &str = "[redacted]";

/// Which texts are redacted in records and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedactionLevel {
    /// Redact everything that is not plainly harmless.
    #[default]
    Secrets,
    /// Redact as `Secrets` does, and also redact every query value and every header value.
    All,
    /// Redact as `Secrets` does, but keep the content of failed responses.
    SecretsButBodies,
}

/// Header fields whose values are shown, because such values are no secrets.
const HARMLESS_HEADERS: [&str; 14] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-type",
    "expect",
    "host",
    "pragma",
    "te",
    "user-agent",
];

/// Words that mark a value as a secret if the value's name has such a word as one part: `key` in
/// `api_key` or `apiKey`.
const SECRET_NAME_PARTS: [&str; 18] = [
    "pass", "pwd", "pw", "pin", "otp", "sig", "sid", "key", "keys", "jwt", "auth", "oauth", "cred", "creds", "code",
    "hmac", "sas", "pat",
];
/// Texts that mark a value as a secret if the value's name contains the text anywhere, even inside
/// a word.
const SECRET_NAME_SUBSTRINGS: [&str; 16] = [
    "password",
    "passwd",
    "mnemonic",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "credential",
    "signature",
    "authorization",
    "session",
    "cookie",
    "bearer",
    "license",
];
/// Longest path segment or value that can stay unshortened, in characters.
const SHOWN_CHARS_MAX: usize = 64;
/// Number of leading characters that remain of a shortened text.
const SHORTENED_PREFIX_CHARS: usize = 2;

/// Returns whether a name marks its value as a secret: `token`, `X-Amz-Signature`, `apiKey`.
pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if SECRET_NAME_SUBSTRINGS.iter().any(|within| lower.contains(within)) {
        return true;
    }
    // Split the name at capitals and at punctuation: `apiKey` has the parts `api` and `key`.
    let mut parts = vec![String::new()];
    let mut before_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before_lower) {
            parts.push(String::new());
        }
        if let (true, Some(part)) = (c.is_alphanumeric(), parts.last_mut()) {
            part.extend(c.to_lowercase());
        }
        before_lower = c.is_lowercase();
    }
    parts.iter().any(|part| SECRET_NAME_PARTS.contains(&part.as_str()))
}

/// Returns whether a run of letters looks like a word: consistent capitals, few consonants in
/// sequence, and a limited number of letters.
fn looks_like_word(word: &str) -> bool {
    let count = word.chars().count();
    let uppers = word.chars().filter(|c| c.is_uppercase()).count();
    if uppers == count && count > 1 {
        return count <= 12;
    }
    if uppers > 3 {
        return has_joined_words(word);
    }
    if count > 24 {
        return false;
    }
    let vowel = |c: char| !c.is_ascii() || "aeiouyAEIOUY".contains(c);
    let run_max = word.split(vowel).map(|run| run.chars().count()).max().unwrap_or(0);
    count <= 5 || (run_max <= 6 && word.chars().filter(|c| vowel(*c)).count() * 6 >= count)
}

/// Returns whether a run of letters looks like joined words, as in the gRPC method name
/// `ListUserAccountBalances`. Random letters change between upper and lower case far more often
/// than joined words.
fn has_joined_words(word: &str) -> bool {
    let mut humps: Vec<usize> = Vec::new();
    for c in word.chars() {
        match humps.last_mut() {
            Some(length) if !c.is_uppercase() => *length += 1,
            _ => humps.push(1),
        }
    }
    let long = humps.iter().filter(|length| **length >= 3).count();
    let vowels = word.chars().filter(|c| "aeiouyAEIOUY".contains(*c)).count();
    let count = word.chars().count();
    count <= 48 && count * 2 >= humps.len() * 7 && long * 2 >= humps.len() && vowels * 4 >= count
}

/// Returns whether a text is a plain word or number: `items`, `42`, `page2`, `10ms`. A text with
/// another order of letters and digits is plain up to a length of `mixed_max` characters.
fn is_plain_word(word: &str, mixed_max: usize) -> bool {
    let letter = char::is_alphabetic;
    let digit = |c: char| c.is_ascii_digit();
    if !word.chars().all(|c| letter(c) || digit(c)) {
        return false;
    }
    let digits = word.chars().filter(|c| digit(*c)).count();
    let letters = word.chars().count() - digits;
    match (letters, digits) {
        (0, digits) => digits <= 10,
        (_, 0) => looks_like_word(word),
        _ if word.chars().skip(letters).all(digit) => {
            digits <= 4 && letters <= 16 && looks_like_word(&word[..word.len() - digits])
        }
        _ if word.chars().take(digits).all(digit) => digits <= 6 && letters <= 3,
        _ => letters + digits <= mixed_max,
    }
}

/// Returns whether a text looks like a secret code in groups, such as `A1B2-C3D4-E5F6`. A single
/// group of a code may look like a plain word or number. Two or more groups that each mix letters
/// and digits are a code. Whether groups of equal length count as a code depends on the number, the
/// length and the capitals of the groups.
fn is_grouped_code(text: &str) -> bool {
    let groups: Vec<&str> = text.split(['-', '_', '.', ' ', ':', '+', '~']).filter(|group| !group.is_empty()).collect();
    let is_mixed =
        |group: &&&str| group.contains(|c: char| c.is_alphabetic()) && group.contains(|c: char| c.is_ascii_digit());
    let mixed = groups.iter().filter(is_mixed).count();
    let Some(length) = groups.first().map(|group| group.chars().count()) else { return false };
    let is_even = groups.len() > 1 && length >= 3 && groups.iter().all(|group| group.chars().count() == length);
    let has_small = text.contains(char::is_lowercase);
    match groups.len() {
        0 | 1 => false,
        2 => mixed == 2 || (is_even && length >= 4 && mixed == 1 && !has_small),
        count => mixed >= 2 || (is_even && (!has_small || mixed == 1 || (count >= 4 && length >= 4))),
    }
}

/// Returns whether a text is a short list of ordinary words and numbers, which cannot be a secret,
/// separated by any of the characters `separators`. `mixed_max` is the maximum length of a plain
/// word that mixes letters and digits, as in [`is_plain_word`].
fn is_plain(text: &str, separators: &str, mixed_max: usize) -> bool {
    let decoded = percent_decode(text);
    let Ok(decoded) = std::str::from_utf8(&decoded) else { return false };
    decoded.chars().count() <= SHOWN_CHARS_MAX
        && decoded.split(|c: char| separators.contains(c)).count() <= 16
        && has_plain_words(decoded, separators, mixed_max)
}

/// Returns whether every word of a text is plain. Unlike [`is_plain`], the text may have any number
/// of words, because an article's title in a path may have twenty words.
fn has_plain_words(decoded: &str, separators: &str, mixed_max: usize) -> bool {
    !is_grouped_code(decoded)
        && decoded.split(|c: char| separators.contains(c)).all(|word| is_plain_word(word, mixed_max))
}

/// Decodes `%41` to `A`; invalid escapes stay.
pub fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

/// Returns the first characters of a redacted text, with a mark that the rest is missing.
fn shorten_text_to_prefix(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphanumeric).take(SHORTENED_PREFIX_CHARS).chain("...".chars()).collect()
}

/// Redacts a word of a message or command line. A plain word stays; any other word is shortened.
pub fn redact_word(text: &str) -> Cow<'_, str> {
    match is_plain(text, "-_.,:/+~@=<>%^* ", 4) {
        true => text.into(),
        false => shorten_text_to_prefix(text).into(),
    }
}

/// Redacts an argument of a script; `name=value` is redacted like a query parameter.
pub fn redact_argument(text: &str, how: RedactionLevel) -> String {
    match (how, text.contains('=')) {
        (RedactionLevel::All, _) => REDACTED.to_owned(),
        (RedactionLevel::Secrets | RedactionLevel::SecretsButBodies, true) => redact_query_parameter(text, how),
        (RedactionLevel::Secrets | RedactionLevel::SecretsButBodies, false) => redact_word(text).into_owned(),
    }
}

/// Redacts a path of a URL or file: random-looking segments are shortened.
pub fn redact_path(path: &str) -> String {
    let segment = |segment: &str| {
        let bare = segment.strip_prefix('@').unwrap_or(segment);
        if is_plain(bare, PATH_SEPARATORS, 4) { segment.to_owned() } else { shorten_text_to_prefix(segment) }
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Characters that separate words in a path segment.
const PATH_SEPARATORS: &str = "-_.,~+:!*(){}$ ";

/// Returns whether a path segment has the suffix of a static file. The digest in the name of a
/// static file (`main.3f2a9b1c.js`) is no secret.
fn is_static_file_name(segment: &str) -> bool {
    const ASSET_SUFFIXES: [&str; 8] = [".js", ".mjs", ".css", ".map", ".woff", ".woff2", ".ttf", ".wasm"];
    ASSET_SUFFIXES.iter().any(|suffix| segment.ends_with(suffix))
}

/// Redacts the name of a request. In the name, [`redact_url`] redacts words that are URLs,
/// [`redact_target`] redacts words that are paths, and [`redact_line`] redacts all other words.
pub fn redact_request_name(name: &str) -> String {
    let word = |word: &str| match word {
        _ if word.contains("://") => redact_url(word, RedactionLevel::Secrets),
        _ if word.contains('/') || (word.contains('?') && word.contains('=')) => {
            redact_target(word, RedactionLevel::Secrets)
        }
        _ => redact_line(word),
    };
    name.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Replaces each part of a path and query that looks like a key by `replacement`. A path segment, a
/// query name or a query value looks like a key if its words are not plain. A query value also
/// counts as a key if its name marks a secret. Names of static files (`main.3f2a9b1c.js`) stay
/// unchanged. The result is the target of a request, not a text for display.
pub fn replace_keys(target: &str, mut replacement: impl FnMut(&str) -> String) -> String {
    let (before, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let is_known = |text: &str, separators: &str, mixed_max: usize| {
        std::str::from_utf8(&percent_decode(text)).is_ok_and(|text| has_plain_words(text, separators, mixed_max))
    };
    let mut out = String::with_capacity(target.len());
    for (number, segment) in before.split('/').enumerate() {
        out.push_str(if number > 0 { "/" } else { "" });
        let bare = segment.strip_prefix('@').unwrap_or(segment);
        match is_known(bare, PATH_SEPARATORS, 4) || is_static_file_name(segment) {
            true => out.push_str(segment),
            false => out.push_str(&replacement(segment)),
        }
    }
    for (number, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if number > 0 { '&' } else { '?' });
        let (name, value) = pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value)));
        let is_known = |text: &str| is_known(text, QUERY_SEPARATORS, 3);
        match is_known(name) {
            true => out.push_str(name),
            false => out.push_str(&replacement(name)),
        }
        let Some(value) = value else { continue };
        out.push('=');
        match value.is_empty() || (!is_secret_name(name) && is_known(value)) {
            true => out.push_str(value),
            false => out.push_str(&replacement(value)),
        }
    }
    out
}

/// Characters that separate words in a query value.
const QUERY_SEPARATORS: &str = "-_.,:/+ ~*[]";

/// Redacts one query parameter, `name=value`.
fn redact_query_parameter(pair: &str, how: RedactionLevel) -> String {
    match pair.split_once('=') {
        Some((name, value)) => {
            let shown = how != RedactionLevel::All && !is_secret_name(name) && is_plain(value, "-_.,:/+ ~*", 3);
            let name = redact_word(name);
            if shown { format!("{name}={value}") } else { format!("{name}={REDACTED}") }
        }
        None if pair.is_empty() => String::new(),
        // A query parameter without a value can be a token or a switch, so the whole parameter is
        // redacted.
        None => REDACTED.to_owned(),
    }
}

/// Redacts a path and query. Random-looking path segments are shortened. A query value is replaced
/// by [`REDACTED`] if the value is not plain, or if its name marks a secret.
pub fn redact_target(target: &str, how: RedactionLevel) -> String {
    let target = target.split('#').next().unwrap_or_default();
    match target.split_once('?') {
        None => redact_path(target),
        Some((before, query)) => {
            let pairs = query.split('&').map(|it| redact_query_parameter(it, how));
            format!("{}?{}", redact_path(before), pairs.collect::<Vec<_>>().join("&"))
        }
    }
}

/// Redacts a URL, or a text given as a URL. Scheme and host stay, [`redact_target`] redacts path
/// and query, and user and password are always dropped.
pub fn redact_url(url: &str, how: RedactionLevel) -> String {
    let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let scheme = scheme.map_or_else(String::new, |scheme| format!("{}://", redact_word(scheme)));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_host = host.chars().all(|c| c.is_alphanumeric() || "-._[]:%".contains(c)) && host.len() <= 255;
    let is_port = port.is_none_or(|port| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()));
    // A URL without a valid host and port may begin with a password that contains a slash, so
    // invalid parts are redacted.
    let authority = match (is_host, is_port) {
        (true, true) => authority.to_owned(),
        (true, false) if !rest.contains('@') => format!("{host}:{REDACTED}"),
        _ => return format!("{scheme}{REDACTED}"),
    };
    format!("{scheme}{authority}{}", redact_target(after, how))
}

/// Redacts the value of a header field; the value of a harmless field stays.
pub fn redact_header_value<'a>(name: &str, value: &'a str, how: RedactionLevel) -> &'a str {
    let harmless = HARMLESS_HEADERS.iter().any(|harmless| name.trim().eq_ignore_ascii_case(harmless));
    if harmless && how != RedactionLevel::All { value } else { REDACTED }
}

/// Returns the first 4 bytes of the SHA-256 digest in hexadecimal: enough to distinguish two texts,
/// too few to reconstruct a text.
pub fn short_digest(bytes: &[u8]) -> String {
    let whole = ring::digest::digest(&ring::digest::SHA256, bytes);
    whole.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Redacts a shell command to the program's name and a digest of the command. The arguments are
/// dropped, because only a shell could split the command into words reliably.
pub fn redact_command_to_program(text: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let assigned = |word: &'_ str| -> Option<String> {
        word.split_once('=').filter(|(name, _)| name.chars().all(is_name)).map(|(_, to)| to.to_owned())
    };
    let mut words = text.split_whitespace();
    let name = loop {
        let Some(word) = words.next() else { break "" };
        match assigned(word) {
            // Stop at a value with quotation marks or shell syntax, because only a shell can find
            // the end of such a value.
            Some(value) if value.contains(['"', '\'', '\\', '$', '`', '(']) => break "",
            Some(_) => {}
            None => break word.rsplit('/').next().unwrap_or_default(),
        }
    };
    // Keep the program's name only if the name is plain. A name that is not plain may be a secret,
    // or a piece of a quoted text.
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && name == redact_word(name);
    let name = if plain && !name.is_empty() { name } else { "command" };
    format!("{name} (sha256 {})", short_digest(text.as_bytes()))
}

/// Longest command that can stay as typed, in characters.
const UNREDACTED_COMMAND_CHARS_MAX: usize = 160;

/// Redacts a shell command. The command stays as typed if every word is plain, no word names a
/// secret, and no word is nested shell code. Any other command, and a command longer than
/// `UNREDACTED_COMMAND_CHARS_MAX`, is redacted by [`redact_command_to_program`].
pub fn redact_command_line(text: &str) -> String {
    let is_plain_word = |typed: &str| {
        let inner = typed.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(typed);
        let harmless = inner.chars().all(|c| c.is_alphanumeric() || "-_.,:/+~@=%^".contains(c));
        harmless && !inner.is_empty() && redact_word(inner) == inner && !inner.split('=').any(is_secret_name)
    };
    let shown = text.split_whitespace().all(is_plain_word) && text.chars().count() <= UNREDACTED_COMMAND_CHARS_MAX;
    let words: Vec<&str> = text.split_whitespace().collect();
    if shown && !words.is_empty() { words.join(" ") } else { redact_command_to_program(text) }
}

/// The rule that finds the end of a secret value whose name precedes the value in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretEnd {
    /// The secret value ends after its first word: `token=abc`, `Bearer abc`.
    Word,
    /// The secret value ends with its closing quotation mark, since a quoted passphrase may have
    /// several words.
    Quote(char),
    /// The secret value ends with a delimiter such as a comma: `Passphrase: several words`.
    Delimiter,
}

/// Redacts a line of foreign text, such as a server's last output or the beginning of a response. A
/// value after the name of a secret is replaced by [`REDACTED`]. Random-looking words are
/// shortened, and control characters are replaced by blanks.
pub fn redact_line(text: &str) -> String {
    const SECRET_DELIMITERS: &str = ",;&<>\"'}])|\n\r";
    let in_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // `secret` is the rule that finds the end of the current secret. `is_stated` says whether
    // [`REDACTED`] was already written for the current secret.
    let (mut secret, mut is_stated) = (None, false);
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| in_word(c) != in_word(first)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        if !in_word(first) {
            let is_over = match secret {
                // The name of a secret applies to the value after `:` or `=`, with optional blanks
                // and quotes.
                Some(SecretEnd::Word) => run.chars().any(|c| !" :=\"'\\".contains(c)),
                Some(SecretEnd::Quote(quote)) => is_stated && run.contains(quote),
                Some(SecretEnd::Delimiter) => is_stated && run.contains(|c| SECRET_DELIMITERS.contains(c)),
                None => false,
            };
            if is_over {
                secret = None;
            }
            // Separators inside a secret are dropped together with the secret.
            if secret.is_none() || !is_stated {
                out.extend(run.chars().map(|c| if c.is_control() { ' ' } else { c }));
            }
            continue;
        }
        let scheme = ["bearer", "basic", "digest"].iter().any(|scheme| run.eq_ignore_ascii_case(scheme));
        let bare = after.trim_start_matches(['"', '\'', '\\', ' ']);
        let named = bare.starts_with([':', '=']);
        let is_name = (scheme && !is_stated) || (is_secret_name(run) && (named || secret == Some(SecretEnd::Word)));
        if is_name && (secret.is_none() || !is_stated) {
            out.push_str(run);
            let value = bare.trim_start_matches([':', '=', ' ']).trim_start_matches('\\');
            secret = Some(match value.chars().next() {
                Some(quote @ ('"' | '\'')) if named => SecretEnd::Quote(quote),
                _ if named && bare.starts_with(':') => SecretEnd::Delimiter,
                _ => SecretEnd::Word,
            });
            is_stated = false;
        } else if secret.is_some() || after.starts_with('@') {
            if !is_stated {
                out.push_str(REDACTED);
            }
            is_stated = secret.is_some() && secret != Some(SecretEnd::Word);
            secret = secret.filter(|end| *end != SecretEnd::Word);
        } else {
            out.push_str(&shorten_if_key(run));
        }
    }
    out
}

/// Length of the shortest word of foreign text that may be a key, in characters. A word below this
/// length always stays.
const KEY_CHARS_MIN: usize = 8;

/// Returns `run`, a sequence of letters, digits and `-_.`. The result is shortened if `run` looks
/// like a key.
fn shorten_if_key(run: &str) -> Cow<'_, str> {
    match run.chars().count() < KEY_CHARS_MIN || is_plain(run, "-_.", 5) {
        true => run.into(),
        false => shorten_text_to_prefix(run).into(),
    }
}

/// Redacts a text that the user typed and that a message repeats. Words that look like keys are
/// shortened, as by [`redact_line`]. A value after the name of a secret stays, since a typed text
/// may be a sentence such as `the token is wrong`.
pub fn redact_typed_text(text: &str) -> String {
    let in_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| in_word(c) != in_word(first)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        match in_word(first) {
            true => out.push_str(&shorten_if_key(run)),
            false => out.push_str(run),
        }
    }
    out
}

/// Longest word of an excerpt, in characters; a longer word may be a key.
const EXCERPT_WORD_CHARS_MAX: usize = 11;

/// Redacts the beginning of an arbitrary text, so that a reader can still recognise the text. The
/// text is first redacted by [`redact_line`]. Then long words, and words that mix letters and
/// digits, are replaced by [`REDACTED`].
pub fn redact_excerpt(text: &str) -> String {
    let in_word = |c: char| c.is_alphanumeric() || "-_.+~%$".contains(c);
    let line = redact_line(text);
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    // Marks of earlier redactions ([`REDACTED`]) stay in the text.
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(REDACTED) {
            out.push_str(REDACTED);
            rest = after;
            continue;
        }
        let end = rest.find(|c| in_word(c) != in_word(first)).unwrap_or(rest.len());
        // End the word at the mark of an earlier redaction, because the mark may directly follow
        // the word.
        let end = rest.find(REDACTED).map_or(end, |at| end.min(at));
        let (run, after) = rest.split_at(end);
        rest = after;
        let (letters, digits) = (run.contains(|c: char| c.is_alphabetic()), run.contains(|c: char| c.is_ascii_digit()));
        let is_long = run.chars().filter(|c| c.is_alphanumeric()).count() > EXCERPT_WORD_CHARS_MAX;
        // A mix of only two characters, such as `h1`, is no key.
        let is_mixed = letters && digits && run.chars().count() > 2;
        match in_word(first) && (is_long || is_mixed) {
            true => out.push_str(REDACTED),
            false => out.push_str(run),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Typical tokens and keys. No redaction may leave a whole token or key.
    const SECRET_CANARIES: [&str; 8] = [
        "Zq7xK2mW9vLp4TnR8sYd",
        "s3cret",
        "8f14e45fceea167a5a36dedd4bea2543",
        "550e8400-e29b-41d4-a716-446655440000",
        "AAF-xyz_1a2b3cd4ef5GhIjKl",
        "XXXXXXXXXXXXXXXXXXXXXXXX",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",
        "qzxkjvbwpmtrhgfdslcn",
    ];

    #[test]
    fn plain_urls_are_not_redacted() {
        for (url_given, expect) in [
            ("http://h:1/items?id=5", "http://h:1/items?id=5"),
            ("http://h/api/v1/users/42/index.html", "http://h/api/v1/users/42/index.html"),
            ("http://h/a?page=2&sort=created_at&q=green+tea", "http://h/a?page=2&sort=created_at&q=green+tea"),
            ("http://h/burn/100?n=1.5&since=2026-11-22", "http://h/burn/100?n=1.5&since=2026-11-22"),
            ("http://me:s3cret@h:1/p?k=s3cret#f", "http://h:1/p?k=[redacted]"),
            ("me:s3cret@h/p", "h/p"),
            ("http://u:12/3@h/", "http://u:12/3.../"),
            ("http://u:p/w@h/", "http://[redacted]"),
            (
                "http://h/?token=abc&apiKey=x&X-Amz-Signature=1",
                "http://h/?token=[redacted]&apiKey=[redacted]&X-Amz-Signature=[redacted]",
            ),
            ("http://h/?key=1&keyword=tea&design=new", "http://h/?key=[redacted]&keyword=tea&design=new"),
            ("http://h/?s3cret", "http://h/?[redacted]"),
            ("http://h/a?k=a=b", "http://h/a?k=[redacted]"),
            ("http://h/?mail=a@b.c", "http://h/?mail=[redacted]"),
            ("https://api.telegram.org/bot123456:AAF-xyz_1/send", "https://api.telegram.org/bo.../send"),
            (
                "https://hooks.slack.com/services/T024BE7LD1/B0HF1X1A/x1y2z3a4",
                "https://hooks.slack.com/services/T0.../B0.../x1...",
            ),
            ("http://[::1]:80/@scope/pkg", "http://[::1]:80/@scope/pkg"),
            ("http://127.0.0.1:99999/", "http://127.0.0.1:99999/"),
            ("", ""),
        ] {
            assert_eq!(redact_url(url_given, RedactionLevel::Secrets), expect, "{url_given}");
            assert_eq!(redact_url(expect, RedactionLevel::Secrets), expect, "again: {url_given}");
        }
        assert_eq!(redact_url("http://h/a?id=5&q=x", RedactionLevel::All), "http://h/a?id=[redacted]&q=[redacted]");
    }

    #[test]
    fn redaction_leaves_no_whole_secret() {
        for canary in SECRET_CANARIES {
            for text in [
                format!("http://{canary}@h/"),
                format!("http://u:{canary}@h/"),
                format!("http://u:{canary}/x@h/"),
                format!("http://h/{canary}/x"),
                format!("http://h/a;jsessionid={canary}"),
                format!("http://h/bot12:{canary}/send"),
                format!("http://h/?{canary}"),
                format!("http://h/?q={canary}"),
                format!("http://h/?{canary}=1"),
                format!("http://h/#{canary}"),
                format!("h/?token={canary}"),
            ] {
                for how in [RedactionLevel::Secrets, RedactionLevel::All] {
                    let shown = redact_url(&text, how);
                    assert!(!shown.contains(canary), "{text}: {shown}");
                    assert_eq!(redact_url(&shown, how), shown, "{text}");
                }
            }
            for text in [
                format!("password={canary}"),
                format!("{{\"access_token\":\"{canary}\",\"id\":5}}"),
                format!("Authorization: Bearer {canary} (basic)"),
                format!("cannot log in as postgres://u:{canary}@db/x"),
                format!("Set-Cookie: {canary}; Path=/"),
            ] {
                assert!(!redact_line(&text).contains(canary), "{text}: {}", redact_line(&text));
            }
            assert!(!redact_path(&format!("/tmp/{canary}/x")).contains(canary));
            assert!(!redact_word(canary).contains(canary));
            assert_eq!(redact_header_value("X-Any", canary, RedactionLevel::Secrets), REDACTED);
        }
    }

    #[test]
    fn request_names_contain_no_keys_of_paths() {
        for (given, expect) in [
            ("GET /items/{id}", "GET /items/{id}"),
            ("POST /p.S/ListUserAccountBalances", "POST /p.S/ListUserAccountBalances"),
            ("POST /reset/Zq7xK2mW9vLp4TnR8sYd (2)", "POST /reset/Zq... (2)"),
            ("https://u:p@h/reset?token=abc", "https://h/reset?token=[redacted]"),
            ("log in (EU) as user2 and/or admin", "log in (EU) as user2 and/or admin"),
            ("what is it?", "what is it?"),
            ("order for k0CNgwNiCMNBxZNazLqc", "order for k0..."),
            ("Basic search, 2nd page", "Basic search, 2nd page"),
            ("", ""),
        ] {
            assert_eq!(redact_request_name(given), expect, "{given}");
            assert_eq!(redact_request_name(expect), expect, "again: {given}");
        }
    }

    #[test]
    fn joined_words_are_not_redacted() {
        for plain in ["GetCustomerOrderHistoryByDate", "ListUserAccountBalances", "updateOrCreateUserProfileById"] {
            assert_eq!(redact_path(plain), plain);
        }
        for random in
            ["VRsrBvfCmCagAwoGqaYrVnA", "eEcTfGGFukuewyPyLtxqmvB", "QwErTyUiOpAsDfGhJkLz", "AbcDefGhjKlmNpqRst"]
        {
            assert_ne!(redact_path(random), random);
        }
    }

    #[test]
    fn keys_in_paths_and_queries_are_replaced() {
        for (given, expect) in [
            ("/items/42?page=2", "/items/42?page=2"),
            ("/reset/Zq7xK2mW9vLp4TnR8sYd/x", "/reset/<20>/x"),
            ("/invite/A1B2-C3D4-E5F6", "/invite/<14>"),
            ("/u?token=abc&q=green+tea&f[kind]=x", "/u?token=<3>&q=green+tea&f[kind]=x"),
            ("/u?Zq7xK2mW9vLp4TnR8sYd", "/u?<20>"),
            ("/u?Zq7xK2mW9vLp4TnR8sYd=1&&a", "/u?<20>=1&&a"),
            ("/u?token=&reverse", "/u?token=&reverse"),
            ("/static/main.3f2a9b1c.js?v=5", "/static/main.3f2a9b1c.js?v=5"),
            (
                "/blog/how-i-learned-to-stop-worrying-and-love-the-very-long-title-of-a-post-of-2024",
                "/blog/how-i-learned-to-stop-worrying-and-love-the-very-long-title-of-a-post-of-2024",
            ),
            ("/?", "/?"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(replace_keys(given, |key| format!("<{}>", key.len())), expect, "{given}");
        }
        for canary in SECRET_CANARIES {
            for target in [
                format!("/{canary}"),
                format!("/a/{canary}/b?c=d"),
                format!("/a?{canary}"),
                format!("/a?q={canary}"),
                format!("/a?{canary}=1"),
                format!("/a;jsessionid={canary}"),
            ] {
                let shown = replace_keys(&target, |_| "k".to_owned());
                assert!(!shown.contains(canary), "{target}: {shown}");
            }
        }
    }

    #[test]
    fn grouped_codes_are_shortened() {
        for code in [
            "A1B2-C3D4-E5F6-G7H8",
            "AB12-34CD",
            "QWER-TYUI-ASDF",
            "1234-5678-9012-3456",
            "ab12-cdef-ghij",
            "XKCD_QW3R",
            "A1B2.C3D4",
            "K7QX-M2PL-88ZT",
        ] {
            for text in
                [format!("http://h/invite/{code}"), format!("http://h/a?q={code}"), format!("http://h/{code}/x")]
            {
                assert!(!redact_url(&text, RedactionLevel::Secrets).contains(code), "{text}");
            }
        }
        for plain in ["created_at", "2026-11-22", "page2", "list-of-items", "v1.2.3", "item-42", "one-two-six", "10ms"]
        {
            assert_eq!(redact_path(&format!("/a/{plain}")), format!("/a/{plain}"));
        }
    }

    #[test]
    fn secrets_of_several_words_are_redacted_whole() {
        for (text, expect) in [
            ("{\"passphrase\":\"correct horse battery\",\"id\":5}", "{\"passphrase\":\"[redacted]\",\"id\":5}"),
            ("Passphrase: correct horse battery; try again", "Passphrase: [redacted]; try again"),
            ("token=abc is wrong", "token=[redacted] is wrong"),
            ("password = 'a b c' was given", "password = '[redacted]' was given"),
            ("Authorization: Bearer abc def", "Authorization: Bearer [redacted] def"),
            ("no such user me@x", "no such user [redacted]@x"),
        ] {
            assert_eq!(redact_line(text), expect, "{text}");
        }
    }

    #[test]
    fn excerpts_keep_only_plain_words() {
        for (text, expect) in [
            ("no such item 42", "no such item 42"),
            ("<h1>key a1b is wrong</h1>", "<h1>key [redacted] is wrong</h1>"),
            ("A1B2-C3D4 and aGVsbG8+d29ybGQ=", "[redacted] and [redacted]="),
            ("internationalisation failed", "[redacted] failed"),
            ("{\"error\":\"busy\",\"id\":5}", "{\"error\":\"busy\",\"id\":5}"),
            ("token=abc is wrong", "token=[redacted] is wrong"),
            ("<b>QWERTYUIOPAS</b>", "<b>[redacted]</b>"),
        ] {
            assert_eq!(redact_excerpt(text), expect, "{text}");
        }
        for canary in SECRET_CANARIES {
            for text in
                [canary.to_owned(), format!("<a href='/x/{canary}'>"), format!("a {canary}, b"), format!("x{canary}")]
            {
                // The test searches for the whole token, because a piece of six letters can look
                // like a word and stay in the excerpt.
                assert!(!redact_excerpt(&text).contains(canary), "{text}: {}", redact_excerpt(&text));
            }
        }
    }

    #[test]
    fn commands_are_shortened_to_their_program() {
        for (text, expect) in [
            ("./server -p 8080", "server (sha256 "),
            ("PASSWORD=s3cret /opt/new/api -v", "api (sha256 "),
            ("Zq7xK2mW9vLp4TnR8sYd", "command (sha256 "),
            ("mysql -ps3cret", "mysql (sha256 "),
            ("OPENAI_KEY='s3 cret x' ./server", "command (sha256 "),
            ("OPENAI_KEY=s3\\ cret ./server", "command (sha256 "),
            ("'my secret'", "command (sha256 "),
            ("./x:s3cret", "command (sha256 "),
            ("s3cret", "command (sha256 "),
            ("", "command (sha256 "),
        ] {
            let shown = redact_command_to_program(text);
            assert!(shown.starts_with(expect) && !shown.contains("s3cret"), "{text}: {shown}");
        }
        assert_ne!(redact_command_to_program("./a 1"), redact_command_to_program("./a 2"));
    }

    #[test]
    fn a_command_of_plain_words_is_shown_as_it_was_typed() {
        for (typed, expect) in [
            ("./server --pool 20", "./server --pool 20"),
            (" '/opt/new/api'  -p 8080 --listen 127.0.0.1:8080 ", "'/opt/new/api' -p 8080 --listen 127.0.0.1:8080"),
            ("python3 app.py --workers=4", "python3 app.py --workers=4"),
            ("PASSWORD=hunter ./server", "server (sha256 "),
            ("./server --api-key hunter", "server (sha256 "),
            ("mysql -ps3cret", "mysql (sha256 "),
            ("./a; ./b", "command (sha256 "),
            ("echo $HOME", "echo (sha256 "),
            ("", "command (sha256 "),
        ] {
            let shown = redact_command_line(typed);
            assert!(shown == expect || (expect.ends_with("(sha256 ") && shown.starts_with(expect)), "{typed}: {shown}");
        }
        for canary in SECRET_CANARIES {
            for typed in [canary.to_owned(), format!("./server {canary}"), format!("./server --x={canary}")] {
                assert!(!redact_command_line(&typed).contains(canary), "{typed}: {}", redact_command_line(&typed));
            }
        }
    }

    #[test]
    fn plain_lines_and_headers_are_not_redacted() {
        for text in [
            "listen tcp 127.0.0.1:8080: bind: address already in use",
            "{\"error\":\"no such item\",\"id\":5}",
            "token expired",
        ] {
            assert_eq!(redact_line(text), text);
        }
        assert_eq!(redact_line("a\u{1b}[31mb\n"), "a [31mb ");
        assert_eq!(
            redact_header_value("Content-Type", "application/json", RedactionLevel::Secrets),
            "application/json"
        );
        assert_eq!(redact_header_value("Content-Type", "application/json", RedactionLevel::All), REDACTED);
    }
}
