//! What holds for the requests beside an element and below it: defaults, header fields, users, timers, assertions.

use super::super::draft::DraftText;
use super::super::nodes::base64;
use super::reader::JmxReader;
use super::xml::{self, Element, property, shown};

/// What holds for all requests beside and below an element.
#[derive(Debug, Default)]
pub struct TestLevel<'a, 'i> {
    pub defaults: Vec<Element<'a, 'i>>,
    pub headers: Vec<(String, DraftText)>,
    pub authorization: Option<DraftText>,
    pub timers: Vec<Element<'a, 'i>>,
    pub assertions: Vec<Element<'a, 'i>>,
}

impl JmxReader {
    /// What holds for all requests beside these elements and below.
    pub fn level<'a, 'i>(&mut self, elements: &[Element<'a, 'i>]) -> TestLevel<'a, 'i> {
        let mut level = TestLevel::default();
        for element in elements {
            match element.kind() {
                "ConfigTestElement" if element.node.attribute("guiclass") == Some("HttpDefaultsGui") => {
                    level.defaults.push(*element);
                }
                "HeaderManager" => {
                    for header in element.collection("HeaderManager.headers") {
                        let part = |name: &str| property(header, name).unwrap_or_default().trim();
                        let (name, value) = (part("Header.name"), part("Header.value"));
                        let lower = name.to_ascii_lowercase();
                        if name.is_empty() || ["host", "content-length", "connection"].contains(&lower.as_str()) {
                            continue;
                        }
                        if name.contains("${") {
                            self.draft.leave_out(xml::place(header), "a header whose name is filled in");
                            continue;
                        }
                        let value = self.text(value, xml::place(header));
                        level.headers.push((name.to_owned(), value));
                    }
                }
                "CookieManager" => {
                    let mut cookies = DraftText::default();
                    for cookie in element.collection("CookieManager.cookies") {
                        let value = self.text(property(cookie, "Cookie.value").unwrap_or_default(), xml::place(cookie));
                        cookies.push(if cookies.is_empty() { "" } else { "; " });
                        cookies.push(&format!("{}=", cookie.attribute("name").unwrap_or_default()));
                        cookies.append(&value);
                    }
                    if element.flag("CookieManager.clearEachIteration") {
                        let text = "a user keeps its cookies from one session to the next";
                        self.draft.leave_out_again(element.place(), text);
                    }
                    if !cookies.is_empty() {
                        level.headers.push(("Cookie".to_owned(), cookies));
                    }
                }
                "AuthManager" => self.authorization(element, &mut level),
                "CacheManager" => self.draft.leave_out_again(element.place(), "a cache: nothing is cached"),
                kind if kind.ends_with("ThroughputTimer") => self.throughput(element),
                kind if kind.ends_with("Timer") => level.timers.push(*element),
                kind if kind.ends_with("Assertion") => level.assertions.push(*element),
                _ => {}
            }
        }
        level
    }

    fn authorization(&mut self, element: &Element, level: &mut TestLevel) {
        for user in element.collection("AuthManager.auth_list") {
            let part = |name: &str| property(user, name).unwrap_or_default();
            let mechanism = part("Authorization.mechanism");
            if level.authorization.is_some() || mechanism.contains("DIGEST") || mechanism.contains("KERBEROS") {
                let text = "a user who is told by digest or Kerberos, or is not the first one";
                self.draft.leave_out_again(xml::place(user), text);
                continue;
            }
            let [name, password] =
                ["Authorization.username", "Authorization.password"].map(|name| self.values.fixed(part(name)));
            let mut authorization = DraftText::fixed("Basic ");
            match (name, password) {
                (Some(name), Some(password)) => authorization.push(&base64(format!("{name}:{password}").as_bytes())),
                _ => {
                    authorization.push_value("env.BASIC_AUTH");
                    let text = "user and password are filled in: set BASIC_AUTH to USER:PASSWORD in base64";
                    self.draft.leave_out_again(xml::place(user), text);
                }
            }
            level.authorization = Some(authorization);
        }
    }

    fn throughput(&mut self, element: &Element) {
        let at = element.place();
        let number = |names: &[&str]| {
            let text = names.iter().find_map(|name| element.property(name));
            text.and_then(|text| self.values.number(text)).filter(|number| *number > 0.0)
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
            None => self.draft.leave_out(at, format!("a {}: say it with the rate of the load", shown(element.kind()))),
            Some((per_minute, is_each)) if !self.load.paced(per_minute, is_each, at) => {
                self.draft.leave_out(at, "a second timer of throughput: say it with the rate of the load")
            }
            Some(_) => {}
        }
    }
}
