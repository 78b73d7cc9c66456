//! Imports a JMeter HTTP sampler as a request, with its pause, header fields and expectations.

use super::super::draft::{DraftAction, DraftBody, DraftPart, DraftPartContent, DraftRequest, DraftStep, DraftText};
use super::super::nodes::{self, percent_encode_text};
use super::checks;
use super::level::{RequestUrl, TestLevel};
use super::reader::JmxReader;
use super::timers::{ThinkTimeSum, TimerImportResult};
use super::xml::{self, Element, property, short_text};
use crate::file::TextPosition;
use std::collections::HashSet;

/// The largest number of redirects that JMeter follows for one request.
const REDIRECTS_MAX: u32 = 20;
/// The largest number of imported requests.
const REQUESTS_MAX: usize = 10_000;
/// The cost of each inherited header field, timer and assertion of a request, in bytes of the
/// import's memory budget.
const INHERITED_ELEMENT_COST_BYTES: usize = 64;
/// The properties of a sampler that are imported, or whose omission other code reports.
const IMPORTED_PROPERTIES: [&str; 17] = [
    "HTTPsampler.Arguments",
    "HTTPsampler.Files",
    "HTTPSampler.DO_MULTIPART_POST",
    "HTTPSampler.auto_redirects",
    "HTTPSampler.domain",
    "HTTPSampler.embedded_url_re",
    "HTTPSampler.follow_redirects",
    "HTTPSampler.image_parser",
    "HTTPSampler.method",
    "HTTPSampler.path",
    "HTTPSampler.port",
    "HTTPSampler.postBodyRaw",
    "HTTPSampler.protocol",
    "HTTPSampler.response_timeout",
    "HTTPSampler.use_keepalive",
    "HTTPSampler.monitor",
    "HTTPSampler.FILES",
];
/// The properties of a sampler that control JMeter itself and do not change the request.
const JMETER_PROPERTIES: [&str; 10] = [
    "HTTPSampler.BROWSER_COMPATIBLE_MULTIPART",
    "HTTPSampler.concurrentDwn",
    "HTTPSampler.concurrentPool",
    "HTTPSampler.embedded_url_exclude_re",
    "HTTPSampler.implementation",
    "HTTPSampler.md5",
    "TestElement.enabled",
    "TestElement.gui_class",
    "TestElement.name",
    "TestPlan.comments",
];

impl JmxReader {
    pub fn import_sampler<'a, 'i>(
        &mut self,
        element: &Element<'a, 'i>,
        levels: &mut Vec<TestLevel<'a, 'i>>,
    ) -> Option<DraftStep> {
        let at = element.place();
        let name = short_text(element.name());
        if self.requests == REQUESTS_MAX {
            self.draft.note_repeated_omission(at, format!("requests beyond the first {REQUESTS_MAX} are not imported"));
            return None;
        }
        let below = element.child_elements();
        let own = self.collect_level(&below);
        levels.push(own);
        let step = self.import_request(element, &below, levels, &name);
        levels.pop();
        self.requests += usize::from(step.is_some());
        step
    }

    fn import_request(
        &mut self,
        element: &Element,
        below: &[Element],
        levels: &[TestLevel],
        name: &str,
    ) -> Option<DraftStep> {
        let at = element.place();
        self.values.at.set(at);
        // Each request gets a copy of all inherited elements, so the copies are charged to the
        // memory budget.
        let of_level = |level: &TestLevel| {
            INHERITED_ELEMENT_COST_BYTES * (level.headers.len() + level.timers.len() + level.assertions.len())
                + level.defaults_bytes
        };
        let inherited: usize = levels.iter().map(of_level).sum();
        let what = "the requests of this JMeter plan inherit too many headers, timers, assertions and defaults";
        if !self.values.spend_budget_for(inherited, what) {
            return None;
        }
        let defaults: Vec<&Element> = levels.iter().rev().flat_map(|level| level.defaults.iter().rev()).collect();
        // If the sampler does not have a property, its value comes from the nearest enclosing
        // element of request defaults.
        let said = |property: &str| -> &str {
            let mut all =
                std::iter::once(element).chain(defaults.iter().copied()).filter_map(|it| it.property(property));
            all.find(|text| !text.trim().is_empty()).unwrap_or_default().trim()
        };
        let path = said("HTTPSampler.path").to_owned();
        let (domain, port) = (said("HTTPSampler.domain").to_owned(), said("HTTPSampler.port").to_owned());
        let scheme = match (said("HTTPSampler.protocol"), port.as_str()) {
            ("", "443") => "https".to_owned(),
            ("", _) => "http".to_owned(),
            (scheme, _) => scheme.to_ascii_lowercase(),
        };
        let port = if port == "0" { String::new() } else { port };
        let method = self
            .values
            .text_without_templates(said("HTTPSampler.method"))
            .map(|method| method.trim().to_ascii_uppercase());
        let is_word = |method: &String| method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let method = method.filter(is_word).unwrap_or_else(|| {
            self.draft.note_repeated_omission(
                at,
                format!("'{name}': the method of this request is not known: the method becomes GET"),
            );
            "GET".to_owned()
        });
        let mut request = DraftRequest {
            method: if method.is_empty() { "GET".to_owned() } else { method },
            may_continue: self.may_continue,
            ..DraftRequest::default()
        };
        let timeout = said("HTTPSampler.response_timeout").to_owned();
        request.timeout_ms = self.values.literal_number(&timeout).filter(|ms| *ms >= 1.0).map(|ms| ms as u64);
        if element.is_property_true("HTTPSampler.follow_redirects")
            || element.is_property_true("HTTPSampler.auto_redirects")
        {
            request.redirects_max = Some(REDIRECTS_MAX);
        }
        if element.is_property_true("HTTPSampler.image_parser")
            || defaults.iter().any(|it| it.is_property_true("HTTPSampler.image_parser"))
        {
            self.draft.note_repeated_omission(
                at,
                "resources embedded in pages are not requested: add steps for these resources",
            );
        }
        self.note_ignored_properties(element, name);
        // The path of a JMeter sampler may be a whole URL, written directly or as the value of a
        // variable.
        let is_url = self.values.convert_to_template(&path).0.beginning().contains("://");
        let asked = match is_url {
            true => self.absolute_url(&path, name, at)?,
            false => self.url_from_parts([&scheme, &domain, &port, &path], name, at)?,
        };
        request.target = asked.target.clone();
        self.import_request_body(element, &defaults, &mut request, name);
        for level in levels {
            // Header fields of an inner level replace fields of outer levels with the same name.
            // Within one level, a name may occur several times.
            let lower = |name: &str| name.to_ascii_lowercase();
            let nearer: HashSet<String> = level.headers.iter().map(|(name, _)| lower(name)).collect();
            request.headers.retain(|(own, _)| !nearer.contains(&lower(own)));
            for (header, value) in &level.headers {
                let (value, lacks) = self.values.resolve_in_thread_group(value);
                self.note_left_out(lacks, at);
                request.headers.push((header.clone(), value));
            }
        }
        if !self.values.spend_budget_for(request.bytes(), "this JMeter plan has too many request headers and arguments")
        {
            return None;
        }
        if matches!(request.body, DraftBody::Parts(_)) {
            request.headers.retain(|(own, _)| !own.eq_ignore_ascii_case("content-type"));
        }
        for (name, told) in [
            ("Authorization", self.authorization_header(levels, &asked)),
            ("Cookie", self.cookie_header(levels, &asked)),
        ] {
            if let Some(value) = told.filter(|_| !request.has_header(name)) {
                let (value, lacks) = self.values.resolve_in_thread_group(&value);
                self.note_left_out(lacks, at);
                request.headers.push((name.to_owned(), value));
            }
        }
        let mut thinking = ThinkTimeSum::default();
        thinking.add_fixed_ms(std::mem::take(&mut self.pause_ms));
        for timer in levels.iter().flat_map(|level| &level.timers) {
            match thinking.add(timer, &self.values) {
                TimerImportResult::Added => {}
                TimerImportResult::Approximate(text) => self.draft.note_repeated_omission(timer.place(), text),
                TimerImportResult::InvalidTime => {
                    let text = "a JMeter timer whose time has a placeholder is not imported";
                    self.draft.note_repeated_omission(timer.place(), text)
                }
                TimerImportResult::NotATimer => {
                    let text = format!("a {} is not imported", short_text(timer.kind()));
                    self.draft.note_repeated_omission(timer.place(), text)
                }
            }
        }
        let checks = levels.iter().flat_map(|level| level.assertions.iter()).chain(below);
        let mut seen = HashSet::new();
        for check in checks {
            // `checks` has the assertions of a sampler twice: from the sampler's level, and from
            // the elements below the sampler. The second occurrence of an assertion is skipped.
            if !seen.insert(check.node.id()) {
                continue;
            }
            let shown_name = short_text(check.name());
            match checks::add_check_or_capture(check, &self.values, &mut request) {
                Some(Ok(())) => {}
                Some(Err(why)) => self
                    .draft
                    .note_repeated_omission(check.place(), format!("'{shown_name}' ({}): {why}", check.kind())),
                None if check.kind().ends_with("Assertion") => {
                    self.draft.note_repeated_omission(
                        check.place(),
                        format!("'{shown_name}': a {} is not imported", short_text(check.kind())),
                    );
                }
                None => self.handle_other_element(check.kind(), check, &shown_name),
            }
        }
        for capture in &mut request.captures {
            capture.name = self.values.captured_name(&capture.name);
        }
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        let think = thinking.think_time();
        Some(DraftStep {
            at: Some(at),
            name,
            think,
            action: DraftAction::Request(Box::new(request)),
            ..DraftStep::default()
        })
    }

    /// Adds notes about properties of a sampler that are not imported.
    pub(super) fn note_ignored_properties(&mut self, element: &Element, name: &str) {
        for (property, value) in element.properties() {
            let is_known = IMPORTED_PROPERTIES.contains(&property) || JMETER_PROPERTIES.contains(&property);
            // A property with its default value needs no note.
            let is_usual = ["", "false", "0", "UTF-8", "utf-8"].contains(&value.trim())
                || (property, value.trim()) == ("HTTPSampler.use_keepalive", "true");
            if !is_known && !is_usual {
                let text = format!("'{name}': {} = {} is not imported", short_text(property), short_text(value));
                self.draft.note_repeated_omission(element.place(), text);
            } else if (property, value.trim()) == ("HTTPSampler.use_keepalive", "false") {
                let text =
                    "the JMeter test plan opens a new connection for each request: switch keep-alive off for the load";
                self.draft.note_repeated_omission(element.place(), text);
            }
        }
    }

    /// Returns the URL of a sampler with separate scheme, domain, port and path. `None` if the
    /// origin (scheme, host and port) differs from the origin of the first request.
    fn url_from_parts(
        &mut self,
        [scheme, domain, port, path]: [&str; 4],
        name: &str,
        at: TextPosition,
    ) -> Option<RequestUrl> {
        let path_text = self.text(path, at);
        let is_begun = path_text.beginning().starts_with('/') || path_text.first_value().is_some();
        // A path that begins with a template value gets no slash in front, because the value may
        // begin with a slash.
        let mut target = DraftText::literal(if is_begun { "" } else { "/" });
        target.append(&path_text);
        let (host, port_text) = (self.text(domain, at), self.text(port, at));
        let port = port_text.as_literal().unwrap_or(port).trim().to_owned();
        let scheme =
            self.values.text_without_templates(scheme).unwrap_or_else(|| scheme.to_owned()).trim().to_ascii_lowercase();
        let asked = RequestUrl { scheme, host, port, target };
        if domain.is_empty() {
            if self.origin.is_none() {
                let text = "a request of the JMeter test plan names no host, and goes to the target of the load";
                self.draft.note_repeated_omission(at, text);
            }
            return Some(asked);
        }
        let mark = if asked.port.is_empty() { "" } else { ":" };
        let fixed = asked.host.as_literal().filter(|_| port_text.as_literal().is_some());
        let fixed = fixed.and_then(|host| {
            let whole = format!("{}://{}{mark}{}", asked.scheme, host.trim(), asked.port);
            nodes::split_http_url(&whole).map(|parts| parts.origin())
        });
        let origin =
            fixed.unwrap_or_else(|| format!("{{{}}}", short_text(&format!("{domain}{mark}{port}", port = asked.port))));
        self.is_common_origin(&origin, name, at).then_some(asked)
    }

    /// Returns the URL of a sampler whose path is a whole URL. `None` if the origin differs from
    /// the origin of the first request.
    fn absolute_url(&mut self, whole: &str, name: &str, at: TextPosition) -> Option<RequestUrl> {
        let whole_text = self.text(whole, at);
        let beginning = whole_text.beginning();
        let authority = beginning.split_once("://").map_or("", |(_, rest)| rest);
        let is_fixed = whole_text.as_literal().is_some() || authority.contains(['/', '?']);
        match nodes::split_http_url(beginning).filter(|_| is_fixed) {
            Some(parts) => {
                let mut target = DraftText::literal(&parts.target);
                target.append(&whole_text.without_literal_prefix(beginning.len()));
                let (host, port) = match parts.authority.rsplit_once(':') {
                    Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
                    _ => (parts.authority.as_str(), ""),
                };
                let (origin, scheme) = (parts.origin(), parts.scheme.clone());
                let asked = RequestUrl { scheme, host: DraftText::literal(host), port: port.to_owned(), target };
                self.is_common_origin(&origin, name, at).then_some(asked)
            }
            None => {
                // The host has a template value, so the path begins at the first slash after the
                // host.
                let (scheme, after) = whole.split_once("://").unwrap_or(("http", whole));
                let slash = first_slash_outside_braces(after).unwrap_or(after.len());
                let path = if slash == after.len() { "/" } else { &after[slash..] };
                self.url_from_parts([scheme, &after[..slash], "", path], name, at)
            }
        }
    }

    /// Returns whether an origin equals the origin of the first request; otherwise adds a note.
    fn is_common_origin(&mut self, origin: &str, name: &str, at: TextPosition) -> bool {
        let first_origin = self.origin.get_or_insert_with(|| origin.to_owned());
        if first_origin != origin {
            let text = format!(
                "'{name}' is not imported: its host is {origin}, but a traffic file has only one host ({first_origin})"
            );
            self.draft.note_repeated_omission(at, text);
            return false;
        }
        if origin.starts_with('{') {
            let text = format!("the host of the JMeter plan is the placeholder {origin}: give the host as the target");
            self.draft.note_repeated_omission(at, text);
        }
        true
    }

    fn import_request_body(
        &mut self,
        element: &Element,
        defaults: &[&Element],
        request: &mut DraftRequest,
        name: &str,
    ) {
        let at = element.place();
        let arguments = self.collect_arguments(element, defaults);
        let mut files = Vec::new();
        for file in element.collection_items("HTTPFileArgs.files") {
            let part = |name: &str| property(file, name).unwrap_or_default().trim();
            let kind = self.values.text_without_templates(part("File.mimetype")).filter(|kind| !kind.is_empty());
            match self.values.text_without_templates(part("File.path")).filter(|path| !path.is_empty()) {
                Some(path) => {
                    let part = DraftPart::file(part("File.paramname"), &path.replace('\\', "/"));
                    files.push(DraftPart { kind, ..part });
                }
                None => {
                    let text = format!("'{name}': an upload file whose name has a placeholder is not sent");
                    self.draft.note_omission(xml::provisional_position(file), text)
                }
            }
        }
        let method = request.method.clone();
        let is_one_of = |methods: &[&str]| methods.contains(&method.as_str());
        let is_raw = element.is_property_true("HTTPSampler.postBodyRaw");
        let is_nameless = !arguments.is_empty() && arguments.iter().all(|argument| argument.name.is_empty());
        // As in JMeter, GET has a body only if the body is one text or one unnamed file. Requests
        // with HEAD, OPTIONS and TRACE have no body.
        let has_none = is_one_of(&["HEAD", "OPTIONS", "TRACE"]);
        let is_get = is_one_of(&["GET"]);
        let mut dropped: Option<&str> = None;
        if let ([file], true) = (files.as_slice(), arguments.is_empty())
            && file.name.is_empty()
        {
            match (&file.content, has_none) {
                (DraftPartContent::File(path), false) => {
                    request.body = DraftBody::File(path.clone());
                    let kind = file.kind.iter().map(|kind| ("Content-Type".to_owned(), DraftText::literal(kind)));
                    request.headers.extend(kind);
                }
                _ => dropped = Some("file"),
            }
        } else if (!files.is_empty() || element.is_property_true("HTTPSampler.DO_MULTIPART_POST"))
            && !is_get
            && !has_none
        {
            let texts = arguments
                .into_iter()
                .filter(|argument| !argument.name.is_empty())
                .map(|argument| DraftPart { kind: argument.kind, ..DraftPart::text(&argument.name, argument.value) });
            request.body = DraftBody::Parts(texts.chain(files).collect());
        } else {
            if !files.is_empty() {
                dropped = Some("files");
            }
            if is_raw || (is_nameless && !is_get) {
                let mut body = DraftText::default();
                arguments.iter().for_each(|argument| body.append(&argument.value));
                match has_none {
                    true if !body.is_empty() => dropped = Some("body data"),
                    false if !body.is_empty() => request.body = DraftBody::Text(body),
                    _ => {}
                }
            } else {
                let mut query = DraftText::default();
                // JMeter drops arguments without a name, so that variables can remove arguments.
                for argument in arguments.into_iter().filter(|argument| !argument.name.is_empty()) {
                    query.push(if query.is_empty() { "" } else { "&" });
                    argument.write(&mut query);
                }
                if query.is_empty() {
                    // If a sampler has no arguments, JMeter sends no body.
                } else if is_one_of(&["GET", "DELETE", "OPTIONS"]) {
                    request.target.push(if request.target.contains('?') { "&" } else { "?" });
                    request.target.append(&query);
                } else if has_none {
                    dropped = Some("parameters");
                } else {
                    let kind = DraftText::literal("application/x-www-form-urlencoded");
                    request.headers.push(("Content-Type".to_owned(), kind));
                    request.body = DraftBody::Text(query);
                }
            }
        }
        if let Some(body_part) = dropped {
            let text = format!("'{name}': JMeter sends no {body_part} with {method}, so plimsoll sends no {body_part}");
            self.draft.note_omission(at, text);
        }
        let has_file = match &request.body {
            DraftBody::File(_) => true,
            DraftBody::Parts(parts) => parts.iter().any(DraftPart::is_file),
            _ => false,
        };
        if has_file {
            self.draft.note_repeated_omission(at, "paths of upload files are relative to the traffic file");
        }
    }

    /// Returns the arguments of a sampler and of its defaults.
    fn collect_arguments(&mut self, element: &Element, defaults: &[&Element]) -> Vec<SamplerArgument> {
        let mut arguments: Vec<SamplerArgument> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for (number, holder) in std::iter::once(&element).chain(defaults).enumerate() {
            for argument in holder.collection_items("Arguments.arguments") {
                let (at, part) =
                    (xml::provisional_position(argument), |name: &str| property(argument, name).unwrap_or_default());
                let name_text = self.text(part("Argument.name"), at);
                let Some(name) = name_text.as_literal() else {
                    self.draft.note_omission(at, "a parameter whose name has a placeholder is not imported");
                    continue;
                };
                // Arguments of the sampler replace arguments of defaults with the same name.
                if number > 0 && names.contains(name) {
                    continue;
                }
                names.insert(name.to_owned());
                let kind = self.values.text_without_templates(part("HTTPArgument.content_type").trim());
                arguments.push(SamplerArgument {
                    name: name.to_owned(),
                    value: self.text(part("Argument.value"), at),
                    needs_encoding: part("HTTPArgument.always_encode").trim() == "true",
                    has_equals: part("HTTPArgument.use_equals").trim() != "false",
                    // JMeter gives every text the type `text/plain`, so this type is not imported.
                    kind: kind.filter(|kind| !["", "text/plain"].contains(&kind.as_str())),
                });
            }
        }
        arguments
    }
}

/// An argument of a sampler: a parameter of a query or form.
struct SamplerArgument {
    name: String,
    value: DraftText,
    /// Whether JMeter percent-encodes the argument before sending. If false, the test plan contains
    /// the argument in percent-encoded form.
    needs_encoding: bool,
    has_equals: bool,
    /// The media type of the argument, if the argument becomes a part of a multipart form.
    kind: Option<String>,
}

impl SamplerArgument {
    /// Appends the argument to a query or form as `name=value`.
    fn write(&self, out: &mut DraftText) {
        let is_pair = self.has_equals || !self.value.is_empty();
        match self.needs_encoding {
            true => out.push(&percent_encode_text(&self.name)),
            false => out.push(&self.name.replace(' ', "%20")),
        }
        out.push(if is_pair { "=" } else { "" });
        out.append(&match self.needs_encoding {
            true => self.value.escape_with_filter(percent_encode_text, "url"),
            false => self.value.escape_with_filter(|text| text.replace(' ', "%20"), "url"),
        });
    }
}

/// Returns the offset of the first slash outside braces.
fn first_slash_outside_braces(text: &str) -> Option<usize> {
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
