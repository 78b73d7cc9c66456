//! Collects the elements that apply to a level of a JMeter test plan: defaults, header fields,
//! credentials, cookies, timers and assertions.

use super::super::draft::DraftText;
use super::super::nodes::base64;
use super::reader::JmxReader;
use super::xml::{self, Element, property, short_text};
use crate::file::TextPosition;

/// The cost of looking up one property in the request defaults, in bytes of the import's memory
/// budget.
const DEFAULT_LOOKUP_COST_BYTES: usize = 8;

/// The elements of one level of the plan, which apply to the requests of this level and below.
#[derive(Debug, Default)]
pub struct TestLevel<'a, 'i> {
    pub defaults: Vec<Element<'a, 'i>>,
    /// The cost of looking up the request defaults once, in bytes of the import's memory budget.
    pub defaults_bytes: usize,
    pub headers: Vec<(String, DraftText)>,
    pub credentials: Vec<LevelCredentials>,
    pub cookies: Vec<LevelCookie>,
    /// Whether the level has a cookie manager. JMeter sends cookies only with a cookie manager.
    pub keeps_cookies: bool,
    pub timers: Vec<Element<'a, 'i>>,
    pub assertions: Vec<Element<'a, 'i>>,
}

/// One entry of an authorization manager: credentials, and the prefix of the URLs to which JMeter
/// sends the credentials.
#[derive(Debug)]
pub struct LevelCredentials {
    at: TextPosition,
    url: DraftText,
    /// The prefix of the URLs that get the credentials.
    url_prefix: String,
    /// The value of the `Authorization` field. `None` for a scheme other than Basic.
    authorization: Option<DraftText>,
}

/// A cookie that a JMeter cookie manager sets before the first request.
#[derive(Debug)]
pub struct LevelCookie {
    at: TextPosition,
    name: String,
    value: DraftText,
    /// The length of the cookie in a `Cookie` field, bytes.
    bytes: usize,
    /// The domain in lower case, without a leading dot.
    domain: String,
    path: String,
    is_secure: bool,
}

/// The URL of a request, which decides the credentials and cookies of the request.
#[derive(Debug)]
pub struct RequestUrl {
    pub scheme: String,
    pub host: DraftText,
    /// The port; empty for the default port of the scheme.
    pub port: String,
    pub target: DraftText,
}

impl RequestUrl {
    /// Returns the URL as two texts, without and with the default port. If the URL has another
    /// port, both texts contain this port.
    fn url_text_variants(&self) -> [String; 2] {
        let own = if self.scheme.eq_ignore_ascii_case("https") { "443" } else { "80" };
        let of = |port: &str| {
            let mut text = DraftText::literal(&format!("{}://", self.scheme));
            text.append(&self.host);
            text.push(port);
            text.append(&self.target);
            text.file_text(false)
        };
        match self.port.as_str() {
            "" => [of(""), of(&format!(":{own}"))],
            port if port == own => [of(""), of(&format!(":{own}"))],
            port => [of(&format!(":{port}")), of(&format!(":{port}"))],
        }
    }
}

impl LevelCredentials {
    /// Returns whether JMeter sends the credentials of this authorization manager to a URL. JMeter
    /// compares URL prefixes (`AuthManager.getAuthForURL`).
    fn applies_to_url(&self, urls: &[String; 2]) -> bool {
        urls.iter().any(|url| url.starts_with(&self.url_prefix))
    }
}

impl LevelCookie {
    /// Returns whether the cookie is sent to a URL: domain, path and TLS must match, as in browsers
    /// (RFC 6265, 5.4).
    fn is_sent_to(&self, request_target: &CookieTarget) -> bool {
        let CookieTarget { host, is_host_name: is_name, path: asked_path, is_secure } = request_target;
        let domain = self.domain.as_str();
        let of_host = host == domain
            || *is_name && !domain.is_empty() && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        let path = if self.path.is_empty() { "/" } else { &self.path };
        let of_path = asked_path
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || path.ends_with('/') || rest.starts_with('/'));
        of_host && of_path && (!self.is_secure || *is_secure)
    }
}

/// The parts of a URL that decide which cookies are sent.
struct CookieTarget {
    host: String,
    is_host_name: bool,
    path: String,
    is_secure: bool,
}

impl CookieTarget {
    fn new(request_url: &RequestUrl) -> CookieTarget {
        let host = request_url.host.file_text(false).to_ascii_lowercase();
        let is_name = host.parse::<std::net::IpAddr>().is_err();
        let mut path = request_url.target.file_text(false);
        path.truncate(path.find('?').unwrap_or(path.len()));
        CookieTarget { host, is_host_name: is_name, path, is_secure: request_url.scheme.eq_ignore_ascii_case("https") }
    }
}

impl JmxReader {
    /// Returns the `Authorization` value for a request. Only the innermost level with credentials
    /// applies.
    pub fn authorization_header(&mut self, levels: &[TestLevel], request_url: &RequestUrl) -> Option<DraftText> {
        let users = levels.iter().rev().map(|level| &level.credentials).find(|users| !users.is_empty())?;
        // The URL of each request is compared with the URL prefix of each user, so each comparison
        // is charged to the memory budget.
        let bytes: usize = users.iter().map(|user| user.url_prefix.len()).sum();
        if !self.values.spend_budget_for(bytes, "this JMeter plan has too many credentials in authorization managers") {
            return None;
        }
        let urls = request_url.url_text_variants();
        let user = users.iter().find(|user| user.applies_to_url(&urls));
        if user.is_none() {
            for user in users.iter().filter(|user| user.url.as_literal().is_none()) {
                let text = "credentials of a JMeter authorization manager are not sent: their URL has a placeholder, \
                     so plimsoll does not know this URL";
                self.draft.note_repeated_omission(user.at, text);
            }
        }
        user?.authorization.clone()
    }

    /// Returns the `Cookie` value for a request. Only the innermost level with cookies applies.
    pub fn cookie_header(&mut self, levels: &[TestLevel], request_url: &RequestUrl) -> Option<DraftText> {
        let cookies = levels.iter().rev().map(|level| &level.cookies).find(|cookies| !cookies.is_empty())?;
        let (mut sent, scope) = (DraftText::default(), CookieTarget::new(request_url));
        for cookie in cookies {
            // Each request gets a copy of each cookie, or a note, so each cookie is charged to the
            // memory budget.
            if !self.values.spend_budget_for(cookie.bytes, "this JMeter plan has too many cookies in cookie managers") {
                break;
            }
            if !cookie.is_sent_to(&scope) {
                let text = format!(
                    "the cookie '{name}' belongs to another host or path, or to https only: this cookie is not sent \
                     to the target",
                    name = short_text(&cookie.name)
                );
                self.draft.note_repeated_omission(cookie.at, text);
                continue;
            }
            sent.push(if sent.is_empty() { "" } else { "; " });
            sent.push(&format!("{}=", cookie.name));
            sent.append(&cookie.value);
        }
        (!sent.is_empty()).then_some(sent)
    }

    /// Collects the elements that apply to a level of the plan.
    pub fn collect_level<'a, 'i>(&mut self, elements: &[Element<'a, 'i>]) -> TestLevel<'a, 'i> {
        let mut level = TestLevel::default();
        for element in elements {
            match element.kind() {
                "ConfigTestElement" if element.node.attribute("guiclass") == Some("HttpDefaultsGui") => {
                    self.note_ignored_properties(element, &short_text(element.name()));
                    level.defaults.push(*element);
                    level.defaults_bytes += DEFAULT_LOOKUP_COST_BYTES * (1 + element.node.children().count());
                }
                "HeaderManager" => {
                    for header in element.collection_items("HeaderManager.headers") {
                        let part = |name: &str| property(header, name).unwrap_or_default().trim();
                        let (name, value) = (part("Header.name"), part("Header.value"));
                        let lower = name.to_ascii_lowercase();
                        if name.is_empty() || ["host", "content-length", "connection"].contains(&lower.as_str()) {
                            continue;
                        }
                        if name.contains("${") {
                            let text = "a header whose name has a placeholder is not imported";
                            self.draft.note_omission(xml::provisional_position(header), text);
                            continue;
                        }
                        let value = self.text(value, xml::provisional_position(header));
                        level.headers.push((name.to_owned(), value));
                    }
                }
                "CookieManager" => {
                    level.keeps_cookies = true;
                    for cookie in element.collection_items("CookieManager.cookies") {
                        let (at, part) = (xml::provisional_position(cookie), |name: &str| {
                            property(cookie, name).unwrap_or_default()
                        });
                        let value = self.text(part("Cookie.value").trim(), at);
                        let domain = self.text(part("Cookie.domain").trim(), at);
                        let name = cookie.attribute("name").unwrap_or_default().to_owned();
                        let domain = domain.map_literal_text(str::to_ascii_lowercase).file_text(false);
                        level.cookies.push(LevelCookie {
                            at,
                            bytes: name.len() + value.bytes() + domain.len(),
                            name,
                            value,
                            domain: domain.strip_prefix('.').unwrap_or(&domain).to_owned(),
                            path: self
                                .values
                                .text_without_templates(part("Cookie.path"))
                                .unwrap_or_default()
                                .trim()
                                .to_owned(),
                            is_secure: part("Cookie.secure").trim() == "true",
                        });
                    }
                    if !level.cookies.is_empty() {
                        let text = "the cookies of the JMeter cookie manager replace the cookies that responses set";
                        self.draft.note_repeated_omission(element.place(), text);
                    }
                    if element.is_property_true("CookieManager.clearEachIteration") {
                        let text =
                            "in plimsoll, unlike in this JMeter plan, a user keeps its cookies for the next session";
                        self.draft.note_repeated_omission(element.place(), text);
                    }
                }
                "AuthManager" => self.read_authorization_manager(element, &mut level),
                "CacheManager" => {
                    let text = "a JMeter cache manager is not imported: plimsoll has no cache";
                    self.draft.note_repeated_omission(element.place(), text);
                }
                kind if kind.ends_with("ThroughputTimer") => self.read_throughput_timer(element),
                kind if kind.ends_with("Timer") => level.timers.push(*element),
                kind if kind.ends_with("Assertion") => level.assertions.push(*element),
                _ => {}
            }
        }
        level
    }

    fn read_authorization_manager(&mut self, element: &Element, level: &mut TestLevel) {
        for user in element.collection_items("AuthManager.auth_list") {
            let part = |name: &str| property(user, name).unwrap_or_default();
            let at = xml::provisional_position(user);
            let url = self.text(part("Authorization.url").trim(), at);
            let mechanism = part("Authorization.mechanism").trim();
            if !["", "BASIC", "BASIC_DIGEST"].contains(&mechanism) {
                let text = format!(
                    "credentials of a JMeter authorization manager with the mechanism {mechanism} are not imported",
                    mechanism = short_text(mechanism)
                );
                self.draft.note_repeated_omission(at, text);
                let url_prefix = url.file_text(false);
                level.credentials.push(LevelCredentials { at, url, url_prefix, authorization: None });
                continue;
            }
            let [name, password] = ["Authorization.username", "Authorization.password"]
                .map(|name| self.values.text_without_templates(part(name)));
            let mut authorization = DraftText::literal("Basic ");
            match (name, password) {
                (Some(name), Some(password)) => authorization.push(&base64(format!("{name}:{password}").as_bytes())),
                _ => {
                    authorization.push_value("env.BASIC_AUTH");
                    let text = "the user and password of a request have placeholders: set the environment variable \
                         BASIC_AUTH to USER:PASSWORD in base64";
                    self.draft.note_repeated_omission(at, text);
                }
            }
            let url_prefix = url.file_text(false);
            level.credentials.push(LevelCredentials { at, url, url_prefix, authorization: Some(authorization) });
        }
    }

    fn read_throughput_timer(&mut self, element: &Element) {
        let at = element.place();
        let number = |names: &[&str]| {
            let text = names.iter().find_map(|name| element.property(name));
            text.and_then(|text| self.values.literal_number(text)).filter(|number| *number > 0.0)
        };
        let rate = number(&["throughput", "ConstantThroughputTimer.throughput"]);
        let per_minute = match element.kind() {
            "ConstantThroughputTimer" => {
                let mode =
                    ["calcMode", "ConstantThroughputTimer.calcMode"].iter().find_map(|name| element.property(name));
                let is_each = mode.is_none_or(|mode| ["0", "this thread only", "calcMode.1"].contains(&mode.trim()));
                rate.map(|rate| (rate, is_each))
            }
            "PreciseThroughputTimer" => {
                let period_s = number(&["throughputPeriod"]).unwrap_or(3600.0);
                rate.map(|rate| (rate / period_s * 60.0, false))
            }
            _ => None,
        };
        match per_minute {
            None => self.draft.note_omission(
                at,
                format!(
                    "a JMeter {timer_type} is not imported: set the rate of the load",
                    timer_type = short_text(element.kind())
                ),
            ),
            Some((per_minute, is_each)) if !self.load.set_timer_rate(per_minute, is_each, at) => self
                .draft
                .note_omission(at, "a second JMeter throughput timer is not imported: set the rate of the load"),
            Some(_) => {}
        }
    }
}
