//! A sampler of HTTP as a request: where, with what, what is expected of the answer, and what is waited before.

use super::super::draft::{DraftBody, DraftRequest, DraftStep, DraftText, DraftWhat};
use super::super::nodes::{self, encoded};
use super::checks;
use super::level::TestLevel;
use super::reader::JmxReader;
use super::timers::{Thinking, Timer};
use super::xml::{self, Element, property, shown};
use crate::file::TextPlace;

/// Redirects that the tool follows, at most.
const REDIRECTS_MAX: u32 = 20;
/// Requests, at most.
const REQUESTS_MAX: usize = 10_000;

impl JmxReader {
    pub fn sampler<'a, 'i>(
        &mut self,
        element: &Element<'a, 'i>,
        levels: &mut Vec<TestLevel<'a, 'i>>,
    ) -> Option<DraftStep> {
        let at = element.place();
        let name = shown(element.name());
        if self.requests == REQUESTS_MAX {
            self.draft.leave_out_again(at, format!("requests beyond the first {REQUESTS_MAX}"));
            return None;
        }
        let below = element.below();
        let own = self.level(&below);
        levels.push(own);
        let step = self.request(element, &below, levels, &name);
        levels.pop();
        self.requests += usize::from(step.is_some());
        step
    }

    fn request(&mut self, element: &Element, below: &[Element], levels: &[TestLevel], name: &str) -> Option<DraftStep> {
        let at = element.place();
        // Each request has what holds for it once more, and that is compared with each other.
        let of_level = |level: &TestLevel| level.headers.len() + level.timers.len() + level.assertions.len();
        let inherited: usize = levels.iter().map(of_level).sum();
        if !self.values.has_room(inherited.saturating_mul(inherited)) {
            return None;
        }
        let defaults: Vec<&Element> = levels.iter().rev().flat_map(|level| level.defaults.iter().rev()).collect();
        // What it does not say itself the nearest defaults do.
        let said = |property: &str| -> &str {
            let mut all =
                std::iter::once(element).chain(defaults.iter().copied()).filter_map(|it| it.property(property));
            all.find(|text| !text.trim().is_empty()).unwrap_or_default().trim()
        };
        let path = said("HTTPSampler.path").to_owned();
        // A variable may hold a whole URL.
        let is_url = self.values.text(&path).0.beginning().contains("://");
        let (whole, is_whole) = match is_url {
            true => (path, true),
            false => {
                let (domain, port, scheme) =
                    (said("HTTPSampler.domain"), said("HTTPSampler.port"), said("HTTPSampler.protocol"));
                let scheme = match (scheme, port) {
                    ("", "443") => "https",
                    ("", _) => "http",
                    (scheme, _) => scheme,
                };
                let port = if port.is_empty() || port == "0" { String::new() } else { format!(":{port}") };
                // It may also be filled in from its beginning on.
                let begins = path.starts_with('/') || self.values.text(&path).0.beginning().starts_with('/');
                let slash = if begins { "" } else { "/" };
                let authority = if domain.is_empty() { String::new() } else { format!("{scheme}://{domain}{port}") };
                (format!("{authority}{slash}{path}"), !domain.is_empty())
            }
        };
        let method = self.values.fixed(said("HTTPSampler.method")).map(|method| method.trim().to_ascii_uppercase());
        let is_word = |method: &String| method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let method = method.filter(is_word).unwrap_or_else(|| {
            self.draft.leave_out_again(at, format!("'{name}': its method is not known: it is GET"));
            "GET".to_owned()
        });
        let mut request = DraftRequest {
            method: if method.is_empty() { "GET".to_owned() } else { method },
            goes_on: self.goes_on,
            ..DraftRequest::default()
        };
        let timeout = said("HTTPSampler.response_timeout").to_owned();
        request.timeout_ms = self.values.number(&timeout).filter(|ms| *ms >= 1.0).map(|ms| ms as u64);
        if element.flag("HTTPSampler.follow_redirects") || element.flag("HTTPSampler.auto_redirects") {
            request.follow = Some(REDIRECTS_MAX);
        }
        if element.flag("HTTPSampler.image_parser") {
            self.draft.leave_out_again(at, "what pages embed is not asked: give it steps of its own");
        }
        request.target = self.target(&whole, is_whole, name, at)?;
        self.body(element, &defaults, &mut request, name);
        for level in levels {
            for (header, value) in &level.headers {
                request.headers.retain(|(own, _)| !own.eq_ignore_ascii_case(header));
                let (value, lacks) = self.values.seen_from_here(value);
                self.lacks(lacks, at);
                request.headers.push((header.clone(), value));
            }
        }
        if !self.values.has_room(request.bytes()) {
            return None;
        }
        if matches!(request.body, DraftBody::Parts(_)) {
            request.headers.retain(|(own, _)| !own.eq_ignore_ascii_case("content-type"));
        }
        if let Some(authorization) = levels.iter().rev().find_map(|level| level.authorization.as_ref())
            && !request.has_header("authorization")
        {
            request.headers.push(("Authorization".to_owned(), authorization.clone()));
        }
        let mut thinking = Thinking::default();
        thinking.fixed(std::mem::take(&mut self.pause_ms));
        for timer in levels.iter().flat_map(|level| &level.timers) {
            match thinking.add(timer, &self.values) {
                Timer::Added => {}
                Timer::Alike(text) => self.draft.leave_out_again(timer.place(), text),
                Timer::Unread => self.draft.leave_out_again(timer.place(), "a timer whose time is filled in"),
                Timer::No => self.draft.leave_out_again(timer.place(), format!("a {}", shown(timer.kind()))),
            }
        }
        let checks = levels.iter().flat_map(|level| level.assertions.iter()).chain(below);
        let mut seen = Vec::new();
        for check in checks {
            // Its own assertions are in its level and below it.
            if seen.contains(&check.node) {
                continue;
            }
            seen.push(check.node);
            let shown_name = shown(check.name());
            match checks::add(check, &self.values, &mut request) {
                Some(Ok(())) => {}
                Some(Err(why)) => {
                    self.draft.leave_out_again(check.place(), format!("'{shown_name}' ({}): {why}", check.kind()))
                }
                None if check.kind().ends_with("Assertion") => {
                    self.draft.leave_out_again(check.place(), format!("'{shown_name}': a {}", shown(check.kind())));
                }
                None => self.other(check.kind(), check, &shown_name),
            }
        }
        for (name, _) in &mut request.captures {
            *name = self.values.captured_name(name);
        }
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        let think = thinking.written();
        Some(DraftStep { name, think, what: DraftWhat::Ask(Box::new(request)), ..DraftStep::default() })
    }

    /// Path and query, if it is asked where the others are.
    fn target(&mut self, whole: &str, is_whole: bool, name: &str, at: TextPlace) -> Option<DraftText> {
        let whole_text = self.text(whole, at);
        if !is_whole {
            if self.origin.is_none() {
                self.draft.leave_out_again(at, "a request that says not where: that is the target");
            }
            return Some(whole_text);
        }
        let beginning = whole_text.beginning();
        let authority = beginning.split_once("://").map_or("", |(_, rest)| rest);
        let is_fixed = whole_text.as_fixed().is_some() || authority.contains(['/', '?']);
        let (origin, target) = match nodes::url(beginning).filter(|_| is_fixed) {
            Some(parts) => {
                let mut target = DraftText::fixed(&parts.target);
                target.append(&whole_text.after(beginning.len()));
                (parts.origin(), target)
            }
            None => {
                // The host is filled in: what is asked begins at the slash after it.
                let after = whole.split_once("://").map_or(whole, |(_, rest)| rest);
                let slash = slash_outside(after).unwrap_or(after.len());
                let target = self.text(if slash == after.len() { "/" } else { &after[slash..] }, at);
                (format!("{{{}}}", shown(&after[..slash])), target)
            }
        };
        let asked = self.origin.get_or_insert_with(|| origin.clone());
        if *asked != origin {
            let text = format!("'{name}' asks {origin}: one host is asked, {asked}");
            self.draft.leave_out_again(at, text);
            return None;
        }
        if origin.starts_with('{') {
            self.draft.leave_out_again(at, format!("its host is {origin}: name it as the target"));
        }
        let mut begun = DraftText::fixed(if target.beginning().starts_with('/') { "" } else { "/" });
        begun.append(&target);
        Some(begun)
    }

    fn body(&mut self, element: &Element, defaults: &[&Element], request: &mut DraftRequest, name: &str) {
        let at = element.place();
        let mut pairs = Vec::new();
        for holder in std::iter::once(&element).chain(defaults) {
            for argument in holder.collection("Arguments.arguments") {
                let part = |name: &str| property(argument, name).unwrap_or_default();
                let (key, value) = (part("Argument.name").to_owned(), part("Argument.value").to_owned());
                let is_encoded = part("HTTPArgument.always_encode") == "true";
                if !pairs.iter().any(|(own, ..): &(String, DraftText, bool)| *own == key && !key.is_empty()) {
                    let value = self.text(&value, xml::place(argument));
                    pairs.push((key, value, is_encoded));
                }
            }
        }
        let mut files = Vec::new();
        for file in element.collection("HTTPFileArgs.files") {
            let part = |name: &str| property(file, name).unwrap_or_default().trim();
            match self.values.fixed(part("File.path")).filter(|path| !path.is_empty()) {
                Some(path) => files.push((part("File.paramname").to_owned(), path.replace('\\', "/"))),
                None => self.draft.leave_out(xml::place(file), format!("'{name}': a file whose name is filled in")),
            }
        }
        let has_raw = element.flag("HTTPSampler.postBodyRaw")
            || (!pairs.is_empty() && pairs.iter().all(|(key, ..)| key.is_empty()) && request.method != "GET");
        let takes_body = ["POST", "PUT", "PATCH", "DELETE"].contains(&request.method.as_str());
        if let ([(field, path)], true) = (files.as_slice(), pairs.is_empty())
            && field.is_empty()
        {
            request.body = DraftBody::File(path.clone());
        } else if !files.is_empty() || (takes_body && element.flag("HTTPSampler.DO_MULTIPART_POST")) {
            let texts = pairs.into_iter().map(|(key, value, _)| (key, value));
            let files = files.into_iter().map(|(field, path)| (field, DraftText::fixed(&format!("@{path}"))));
            request.body = DraftBody::Parts(texts.chain(files).collect());
        } else if has_raw {
            let mut body = DraftText::default();
            pairs.iter().for_each(|(_, value, _)| body.append(value));
            if !body.is_empty() {
                request.body = DraftBody::Text(body);
            }
        } else if !pairs.is_empty() {
            let mut query = DraftText::default();
            for (key, value, is_encoded) in pairs {
                query.push(if query.is_empty() { "" } else { "&" });
                query.push(&format!("{}=", encoded(&key)));
                // What is not to be encoded is so already.
                query.append(&if is_encoded {
                    value.mapped(encoded, "url")
                } else {
                    value.mapped(|text| text.replace(' ', "%20"), "url")
                });
            }
            if takes_body {
                request
                    .headers
                    .push(("Content-Type".to_owned(), DraftText::fixed("application/x-www-form-urlencoded")));
                request.body = DraftBody::Text(query);
            } else {
                request.target.push(if request.target.contains('?') { "&" } else { "?" });
                request.target.append(&query);
            }
        }
        if matches!(request.body, DraftBody::File(_))
            || matches!(&request.body, DraftBody::Parts(parts) if parts.iter().any(|(_, text)| text.beginning().starts_with('@')))
        {
            self.draft.leave_out_again(at, "files of uploads are looked for from the place of this one");
        }
    }
}

/// The first slash that stands in no braces.
fn slash_outside(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}
