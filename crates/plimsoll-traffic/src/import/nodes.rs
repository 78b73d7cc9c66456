//! Reads values from the trees of imported documents, and parses URLs of imported documents. A
//! value of an unexpected type counts as absent.

use super::host::host_to_ascii;
use crate::file::tree::{TreeKey, TreeNode, TreeValue};
use plimsoll_model::redact::percent_decode;
use std::fmt::Write;

/// Returns the value of a key; null counts as absent.
pub fn field<'a>(node: &'a TreeNode, key: &str) -> Option<&'a TreeNode> {
    let TreeValue::Table(entries) = &node.value else { return None };
    let value = entries.get(key)?;
    (value.value != TreeValue::Null).then_some(value)
}

/// Returns the value at the end of a path of keys.
pub fn node_at<'a>(node: &'a TreeNode, keys: &[&str]) -> Option<&'a TreeNode> {
    keys.iter().try_fold(node, |node, key| field(node, key))
}

/// Returns the value of a key as text, if it is a text, number or boolean.
pub fn scalar_field_text<'a>(node: &'a TreeNode, key: &str) -> Option<&'a str> {
    field(node, key).and_then(scalar_text)
}

/// Returns the value as text, if it is a text, number or boolean.
pub fn scalar_text(node: &TreeNode) -> Option<&str> {
    node.text("").ok()
}

pub fn is_field_true(node: &TreeNode, key: &str) -> bool {
    field(node, key).is_some_and(|node| node.value == TreeValue::Flag(true))
}

pub fn field_number(node: &TreeNode, key: &str) -> Option<f64> {
    scalar_field_text(node, key)?.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Returns the items of the list at a key; empty if there is no list.
pub fn items<'a>(node: &'a TreeNode, key: &str) -> &'a [TreeNode] {
    match field(node, key).map(|node| &node.value) {
        Some(TreeValue::List(items)) => items,
        _ => &[],
    }
}

/// Returns the entries of a table; empty if the value is not a table.
pub fn entries(node: &TreeNode) -> &[(TreeKey, TreeNode)] {
    match &node.value {
        TreeValue::Table(entries) => entries,
        _ => &[],
    }
}

/// The parts of an absolute HTTP URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlParts<'a> {
    /// The scheme, `http` or `https`.
    pub scheme: String,
    /// The host and optional port, in lower case and without the default port.
    pub authority: String,
    /// The path and query. The path begins with `/`.
    pub target: std::borrow::Cow<'a, str>,
    /// The user and password as written in the URL.
    pub user: Option<&'a str>,
}

impl UrlParts<'_> {
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Returns the `Authorization` value for the user info in the URL. A missing password becomes
    /// empty, because RFC 7617 requires the colon.
    pub fn authorization(&self) -> Option<String> {
        let mut pair = percent_decode(self.user.filter(|user| !user.is_empty())?);
        if !pair.contains(&b':') {
            pair.push(b':');
        }
        Some(format!("Basic {}", base64(&pair)))
    }
}

/// Returns whether a URL is a valid HTTP URL with a valid host and port.
pub fn is_valid_origin(url: &str) -> bool {
    // Browsers read a backslash as a slash, and no valid host contains a backslash.
    let is_written = !url.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\');
    is_written
        && url::Url::parse(url)
            .is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host() && url.port() != Some(0))
        // The function `url`, which later splits targets, must accept the URL too.
        && self::split_http_url(url).is_some_and(|parts| {
            let host = match parts.authority.rfind(']') {
                Some(end) => &parts.authority[..=end],
                None => parts.authority.split(':').next().unwrap_or_default(),
            };
            host_to_ascii(host).is_ok()
        })
}

/// Splits an absolute HTTP URL into its parts; `None` for any other text.
pub fn split_http_url(text: &str) -> Option<UrlParts<'_>> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !["http", "https"].contains(&scheme.as_str()) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (user, authority) = match rest[..end].rsplit_once('@') {
        Some((user, authority)) => (Some(user), authority.to_ascii_lowercase()),
        None => (None, rest[..end].to_ascii_lowercase()),
    };
    let default = if scheme == "http" { ":80" } else { ":443" };
    let authority = authority.strip_suffix(default).unwrap_or(&authority).to_owned();
    if authority.is_empty() || authority.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return None;
    }
    let target = rest[end..].split('#').next().unwrap_or_default();
    let target = match target.starts_with('/') {
        true => target.into(),
        false => format!("/{target}").into(),
    };
    Some(UrlParts { scheme, authority, target, user })
}

/// Returns whether a text is a valid token, as methods and names of header fields must be (RFC
/// 9110, section 5.6.2).
pub fn is_http_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Percent-encodes a text for a query.
pub fn percent_encode_text(text: &str) -> String {
    percent_encoded(text.as_bytes())
}

/// Percent-encodes all bytes except letters, digits and `-._~`.
pub fn percent_encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

/// Returns the name of the environment variable for a name of an imported document, such as
/// `base_url` for `base url`. The case stays, so that `user` does not become the shell's `USER`.
pub fn variable_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(64).collect();
    let plain = plain.trim_matches('_');
    match plain.chars().next() {
        None => "value".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("v{plain}"),
        Some(_) => plain.to_owned(),
    }
}

/// Converts a name to a valid name for captures and data tables: letters, digits, `_` and `-`.
pub fn plain_name(name: &str) -> String {
    let plain: String = name
        .trim()
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .take(64)
        .collect();
    match plain.chars().next() {
        None => "value".to_owned(),
        Some(first) if first.is_alphabetic() || first == '_' => plain,
        Some(_) => format!("v{plain}"),
    }
}

/// Encodes bytes in base64 (RFC 4648), for `Authorization: Basic`.
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_urls_are_split() {
        for (text, origin, target) in [
            ("http://h/a?b=c#d", "http://h", "/a?b=c"),
            ("HTTPS://u:p@H:443", "https://h", "/"),
            ("http://[::1]:8080?a", "http://[::1]:8080", "/?a"),
            ("http://h:80/", "http://h", "/"),
        ] {
            let parts = split_http_url(text).expect(text);
            assert_eq!(
                (format!("{}://{}", parts.scheme, parts.authority), &*parts.target),
                (origin.to_owned(), target),
                "{text}"
            );
        }
        for text in ["", "/a", "ws://h/", "data:text/plain,a", "http://", "http:///a", "http://a b/"] {
            assert_eq!(split_http_url(text), None, "{text}");
        }
    }

    #[test]
    fn users_of_urls_become_authorization_headers() {
        for (text, expect) in [
            ("http://h/", None),
            ("http://@h/", None),
            ("http://key7@h/", Some("Basic a2V5Nzo=")),
            ("http://u:p%40@h/", Some("Basic dTpwQA==")),
        ] {
            assert_eq!(split_http_url(text).expect(text).authorization().as_deref(), expect, "{text}");
        }
        for (text, expect) in [
            ("http://h", true),
            ("https://b\u{fc}cher.example:8443/v1", true),
            ("http://[::1]:80/", true),
            ("http://h:99999/", false),
            ("http://h:0/", false),
            ("http://a b/", false),
            ("ftp://h/", false),
            ("http://a^b/", false),
            ("http://[1,2]/", false),
            ("http://\u{200b}/", false),
            ("http://%zz/", false),
        ] {
            assert_eq!(is_valid_origin(text), expect, "{text}");
        }
    }

    #[test]
    fn words_become_variable_names() {
        for (name, variable) in [("base Url", "base_Url"), ("2fa", "v2fa"), ("", "value"), ("-", "value")] {
            assert_eq!(variable_name(name), variable, "{name}");
        }
    }

    #[test]
    fn base64_matches_the_rfc() {
        for (bytes, expect) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), expect);
        }
    }
}
