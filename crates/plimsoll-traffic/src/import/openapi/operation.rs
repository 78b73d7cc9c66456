//! Converts one operation of an API description to a request.

use super::super::draft::{
    self, Draft, DraftAction, DraftBody, DraftExpect, DraftPart, DraftRequest, DraftStep, DraftText,
};
use super::super::nodes::{
    self, entries, field, is_field_true, items, percent_encode_text, scalar_field_text, scalar_text, variable_name,
};
use super::api::ApiDescription;
use super::sample::{ExampleGenerator, SampleValue, SampledField};
use super::style::ParameterStyle;
use crate::file::tree::{TreeNode, TreeValue};
use std::collections::{HashMap, HashSet};

/// The cost of each use of a parameter in addition to its text, in bytes of the memory budget. Each
/// use of a parameter has a cost, because very many operations may share one parameter.
const PARAMETER_BYTES: usize = 64;

/// An operation: a method of a path in an API description.
pub struct Operation<'a, 'b> {
    pub api: &'b ApiDescription<'a>,
    pub path: &'b str,
    /// The HTTP method, in lower case.
    pub method: &'b str,
    /// The path item, whose parameters and servers apply to all its operations.
    pub item: &'a TreeNode,
    pub node: &'a TreeNode,
}

impl<'a> Operation<'a, '_> {
    /// Converts the operation to a request. Parts that cannot be imported get notes in `draft`.
    pub fn to_draft_step(&self, draft: &mut Draft) -> Option<DraftStep> {
        let request_name = draft::short_name(&format!("{} {}", self.method.to_ascii_uppercase(), self.path));
        let prefix = self.server_path_prefix(&request_name, draft)?;
        if let Some(callbacks) = field(self.node, "callbacks") {
            draft.note_omission(
                callbacks.at,
                format!("{request_name}: callbacks are not imported: the server sends them"),
            );
        }
        let mut request = DraftRequest { method: self.method.to_ascii_uppercase(), ..DraftRequest::default() };
        let parameters = self.parameters_to_send(&request_name, draft);
        request.target = DraftText::literal(&prefix);
        request.target.append(&self.build_request_target(&parameters, &request_name, draft));
        let mut cookies = RequestCookies::default();
        for parameter in &parameters {
            let Some(name) = scalar_field_text(parameter, "name") else { continue };
            let place = scalar_field_text(parameter, "in").unwrap_or_default();
            let value = |draft: &mut Draft| self.parameter_value(parameter, &request_name, draft);
            match Some(place) {
                // OpenAPI ignores parameters with these names, because other parts of the
                // description define these header fields.
                Some("header")
                    if ["accept", "content-type", "authorization"].contains(&&*name.to_ascii_lowercase()) => {}
                Some("header") => {
                    let value = self.parameter_style(parameter, place).serialise_header(&value(draft));
                    request.headers.push((name.to_owned(), value));
                }
                Some("cookie") => {
                    let cookie = self.parameter_style(parameter, place).serialise_cookie(name, &value(draft));
                    cookies.push(&mut request, &cookie);
                }
                _ => {}
            }
        }
        self.add_credentials(&mut request, cookies, &request_name, draft);
        self.add_request_body(&parameters, &mut request, &request_name, draft);
        request.expect = self.response_expectation();
        // Literal examples may be long, and many operations may refer to one example, so each use
        // is charged to the memory budget.
        self.api.spend_budget(request.bytes());
        let name = scalar_field_text(self.node, "operationId").map_or(request_name, str::to_owned);
        let (at, what) = (Some(self.node.at), DraftAction::Request(Box::new(request)));
        Some(DraftStep { at, name: Some(name), action: what, ..DraftStep::default() })
    }

    fn parameter_style(&self, node: &TreeNode, place: &str) -> ParameterStyle {
        ParameterStyle::from_node(node, place, self.api.is_swagger_2, self.api.is_3_0)
    }

    /// Returns the path prefix of the operation's own server. `None` means that the operation is
    /// not imported, because its server has another host or base path than the base URL.
    fn server_path_prefix(&self, request_name: &str, draft: &mut Draft) -> Option<String> {
        let holder = [self.node, self.item].into_iter().find(|holder| !items(holder, "servers").is_empty());
        let Some(server) = holder.and_then(|holder| items(holder, "servers").first()) else {
            return Some(String::new());
        };
        // Many paths may share one server, so each use of the server's URL is charged to the memory
        // budget.
        if !self.api.spend_budget(scalar_field_text(server, "url").map_or(0, str::len)) {
            return None;
        }
        let url = self.api.server_url(server);
        let base = self.api.base_url.as_deref().and_then(nodes::split_http_url);
        let base_path = base.as_ref().map_or("", |base| base.target.trim_end_matches('/'));
        let own = nodes::split_http_url(&url);
        let is_same = own.as_ref().is_none_or(|own| base.as_ref().is_some_and(|base| base.origin() == own.origin()));
        let path = own.as_ref().map_or(url.as_str(), |own| &own.target).trim_end_matches('/');
        // Every path already begins with the base URL, so the prefix is the part of the server's
        // path after the path of the base URL.
        match path.strip_prefix(base_path).filter(|rest| is_same && (rest.is_empty() || rest.starts_with('/'))) {
            Some(rest) => Some(rest.to_owned()),
            None => {
                let text = format!(
                    "{request_name} is not imported: it goes to another server ({url}), but a traffic file has only \
                     one server"
                );
                draft.note_omission(server.at, text);
                None
            }
        }
    }

    /// Returns the parameters of the operation, and the parameters of its path that the operation
    /// does not override. Optional parameters without an example are omitted.
    fn parameters_to_send(&self, request_name: &str, draft: &mut Draft) -> Vec<&'a TreeNode> {
        let mut parameters: Vec<&TreeNode> = Vec::new();
        let mut keys = HashSet::new();
        for node in items(self.node, "parameters").iter().chain(items(self.item, "parameters")) {
            if !self.api.spend_budget(PARAMETER_BYTES) {
                break;
            }
            let Some(parameter) = self.api.resolve_reference(node) else {
                draft
                    .note_omission(node.at, format!("{request_name}: a parameter in another document is not imported"));
                continue;
            };
            let key = (scalar_field_text(parameter, "name"), scalar_field_text(parameter, "in"));
            if keys.contains(&key) {
                continue;
            }
            let is_needed =
                is_field_true(parameter, "required") || ["path", "body"].contains(&key.1.unwrap_or_default());
            if is_needed || self.api.literal_example(parameter).is_some() {
                keys.insert(key);
                parameters.push(parameter);
            } else {
                draft.note_repeated_omission(node.at, "an optional parameter without an example is not sent");
            }
        }
        parameters
    }

    fn build_request_target(&self, parameters: &[&'a TreeNode], request_name: &str, draft: &mut Draft) -> DraftText {
        let mut target = DraftText::default();
        let of_path = parameters.iter().rev().filter(|parameter| scalar_field_text(parameter, "in") == Some("path"));
        // If several path parameters have equal names, the first parameter counts.
        let of_path: HashMap<&str, &'a TreeNode> =
            of_path.filter_map(|parameter| Some((scalar_field_text(parameter, "name")?, *parameter))).collect();
        let mut rest = self.path;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            target.push(before);
            let value = match of_path.get(name).copied() {
                Some(parameter) => {
                    let value = self.parameter_value(parameter, request_name, draft);
                    if !value.is_fixed() {
                        let name = draft::short_name(name);
                        let text = format!(
                            "{request_name}: the parameter '{name}' has no example and gets random values: write \
                             values that exist"
                        );
                        draft.note_omission(parameter.at, text);
                    }
                    self.parameter_style(parameter, "path").serialise_path_segment(name, &value)
                }
                None => {
                    draft.note_omission(
                        self.node.at,
                        format!(
                            "{request_name}: the parameter '{name}' is not described in the OpenAPI file, and is \
                             always 1"
                        ),
                    );
                    DraftText::literal("1")
                }
            };
            target.append(&value);
            rest = after;
        }
        target.push(rest);
        let mut mark = if self.path.contains('?') { "&" } else { "?" };
        for parameter in parameters.iter().filter(|parameter| scalar_field_text(parameter, "in") == Some("query")) {
            let Some(name) = scalar_field_text(parameter, "name") else { continue };
            let pairs = self
                .parameter_style(parameter, "query")
                .serialise_query_pairs(name, &self.parameter_value(parameter, request_name, draft));
            if !pairs.is_empty() {
                target.push(mark);
                target.append(&pairs);
                mark = "&";
            }
        }
        target
    }

    /// Returns the example value of a parameter.
    fn parameter_value(&self, parameter: &'a TreeNode, request_name: &str, draft: &mut Draft) -> SampleValue {
        let mut sampler = ExampleGenerator::new(self.api);
        let content = field(parameter, "content").and_then(|content| entries(content).first());
        let described = content.map_or(parameter, |(_, media)| media);
        // In OpenAPI 2 the parameter itself states the type, and has no `schema`.
        let schema = field(described, "schema").unwrap_or(described);
        let example = self.api.literal_example(parameter).or_else(|| self.api.literal_example(described));
        let value = match (example, content.is_some()) {
            (Some(example), true) if scalar_text(example).is_none() => SampleValue::One(sampler.json_example(example)),
            (Some(example), _) => sampler.example_as_value(example),
            (None, true) => SampleValue::One(sampler.example_json(schema)),
            (None, false) => sampler.example_value(schema),
        };
        self.report_omissions(sampler, request_name, draft);
        value
    }

    fn report_omissions(&self, sampler: ExampleGenerator, request_name: &str, draft: &mut Draft) {
        for (at, text) in sampler.left_out {
            draft.note_omission(at, format!("{request_name}: {text}"));
        }
    }

    fn add_credentials(
        &self,
        request: &mut DraftRequest,
        mut cookies: RequestCookies,
        request_name: &str,
        draft: &mut Draft,
    ) {
        let list = field(self.node, "security").or_else(|| field(self.api.tree, "security"));
        let Some(TreeNode { value: TreeValue::List(choices), .. }) = list else { return };
        // An empty security alternative means anonymous requests. The import skips empty
        // alternatives, so that requests have credentials.
        let Some(choice) = choices.iter().find(|choice| !entries(choice).is_empty()) else { return };
        let mut has_query = request.target.contains('?');
        for (key, node) in entries(choice) {
            if !self.api.spend_budget(PARAMETER_BYTES) {
                break;
            }
            let Some(scheme) = self.api.security_scheme(&key.name) else {
                let text = format!(
                    "{request_name}: the security scheme '{security_name}' is not described in the OpenAPI file, and \
                     is left out",
                    security_name = key.name
                );
                draft.note_omission(node.at, text);
                continue;
            };
            let variable = variable_name(&key.name).to_ascii_uppercase();
            let secret = format!("env.{variable}");
            let security_name = &key.name;
            let kind = (
                scalar_field_text(scheme, "type").unwrap_or_default(),
                scalar_field_text(scheme, "scheme").unwrap_or_default(),
            );
            let mut authorization = DraftText::default();
            let way = match (kind.0, kind.1.to_ascii_lowercase().as_str()) {
                ("apiKey", _) => {
                    let name = scalar_field_text(scheme, "name").unwrap_or("key");
                    match scalar_field_text(scheme, "in") {
                        Some("query") => {
                            let target = &mut request.target;
                            target.push(&format!(
                                "{}{}=",
                                if has_query { "&" } else { "?" },
                                percent_encode_text(name)
                            ));
                            has_query = true;
                            target.push_value(&format!("{secret} | url"));
                        }
                        Some("cookie") => {
                            let mut cookie = DraftText::literal(&format!("{name}="));
                            cookie.push_value(&secret);
                            cookies.push(request, &cookie);
                        }
                        _ => request.headers.push((name.to_owned(), DraftText::value(&secret))),
                    }
                    format!("the credentials '{security_name}' come from the environment: set {variable}")
                }
                ("basic", _) | ("http", "basic") => {
                    authorization.push("Basic ");
                    format!(
                        "the credentials '{security_name}' come from the environment: set {variable} to USER:PASSWORD \
                         in base64"
                    )
                }
                ("http", "bearer" | "") | ("oauth2" | "openIdConnect", _) => {
                    authorization.push("Bearer ");
                    format!("the credentials '{security_name}' come from the environment: set {variable} to a token")
                }
                (kind, scheme) => {
                    let text = format!(
                        "the security scheme '{security_name}' ({kind} {scheme}) is not supported, so requests have no \
                         credentials for it"
                    );
                    draft.note_repeated_omission(key.at, text);
                    continue;
                }
            };
            if !authorization.is_empty() {
                authorization.push_value(&secret);
                request.headers.push(("authorization".to_owned(), authorization));
            }
            draft.note_repeated_omission(scheme.at, way);
        }
    }

    fn add_request_body(
        &self,
        parameters: &[&'a TreeNode],
        request: &mut DraftRequest,
        request_name: &str,
        draft: &mut Draft,
    ) {
        if self.api.is_swagger_2 {
            return self.add_swagger2_body(parameters, request, request_name, draft);
        }
        let Some(node) = field(self.node, "requestBody") else { return };
        let Some(body) = self.api.resolve_reference(node) else {
            return draft.note_omission(
                node.at,
                format!("{request_name}: its body is described in another document, and is not imported"),
            );
        };
        let Some(content) = field(body, "content") else { return };
        if ["get", "head", "trace"].contains(&self.method) {
            let said = format!(
                "{request_name}: its body is not sent: {method} cannot have a body",
                method = self.method.to_ascii_uppercase()
            );
            return draft.note_omission(body.at, said);
        }
        let kinds = entries(content);
        let named = |part: &str| kinds.iter().find(|(kind, _)| kind.name.to_ascii_lowercase().contains(part));
        let best = named("json").or_else(|| named("x-www-form-urlencoded")).or_else(|| named("multipart/form-data"));
        let mut sampler = ExampleGenerator::new(self.api);
        // A body that is neither JSON nor a form is imported only if the body has a literal example
        // or is plain text.
        let example = |media: &'a TreeNode| {
            let of_schema = || {
                let schema = self.api.resolve_reference(field(media, "schema")?)?;
                sampler.fixed_value(schema)
            };
            self.api.literal_example(media).or_else(of_schema)
        };
        let is_text = |kind: &str, media: &TreeNode| kind.starts_with("text/plain") && field(media, "schema").is_some();
        let other = || {
            let with_example = kinds.iter().find(|(_, media)| example(media).is_some());
            with_example.or_else(|| kinds.iter().find(|(kind, media)| is_text(&kind.name, media)))
        };
        let Some((kind, media)) = best.or_else(other) else {
            if let Some((kind, _)) = kinds.first() {
                draft.note_omission(
                    kind.at,
                    format!(
                        "{request_name}: its body ({media_type}) has no example and is not sent: add an example to \
                         the OpenAPI file",
                        media_type = kind.name
                    ),
                );
            }
            return;
        };
        let lower = kind.name.to_ascii_lowercase();
        let is_json = lower.contains("json") || lower.contains('*');
        let (example, schema) =
            (if is_json { self.api.literal_example(media) } else { example(media) }, field(media, "schema"));
        if lower.contains("x-www-form-urlencoded") || lower.starts_with("multipart/") {
            let fields = sampler.example_form_fields(schema, self.api.literal_example(media));
            self.set_form_body(request, fields, field(media, "encoding"), lower.starts_with("multipart/"));
        } else {
            let body = match (example, schema) {
                (Some(example), _) if !is_json => {
                    scalar_text(example).map_or_else(|| sampler.json_example(example), DraftText::literal)
                }
                (Some(example), _) => sampler.json_example(example),
                (None, Some(schema)) if !is_json => sampler.example_text(schema),
                (None, Some(schema)) => sampler.example_json(schema),
                (None, None) => DraftText::literal("{}"),
            };
            let kind = if kind.name.contains('*') { "application/json" } else { &kind.name };
            request.headers.push(("content-type".to_owned(), DraftText::literal(kind)));
            request.body = DraftBody::Text(body);
        }
        self.report_omissions(sampler, request_name, draft);
    }

    /// Sets a form as the body of a request: URL-encoded, or multipart if `in_parts` is set.
    fn set_form_body(
        &self,
        request: &mut DraftRequest,
        fields: Vec<SampledField<'a>>,
        encoding: Option<&'a TreeNode>,
        in_parts: bool,
    ) {
        let of = |name: &str| encoding.and_then(|encoding| field(encoding, name));
        if !in_parts {
            let mut body = DraftText::default();
            for SampledField { name, value, schema, .. } in fields {
                // In OpenAPI 2 the format of a list is in the schema of the field, next to the
                // type.
                let style = self.parameter_style(
                    of(&name).or(schema.filter(|_| self.api.is_swagger_2)).unwrap_or(self.node),
                    "query",
                );
                let pairs = style.serialise_query_pairs(&name, &value);
                body.push(if body.is_empty() || pairs.is_empty() { "" } else { "&" });
                body.append(&pairs);
            }
            let kind = DraftText::literal("application/x-www-form-urlencoded");
            request.headers.push(("content-type".to_owned(), kind));
            request.body = DraftBody::Text(body);
            return;
        }
        let mut parts = Vec::new();
        for SampledField { name, value, is_file, json, .. } in fields {
            let kind = of(&name).and_then(|encoding| scalar_field_text(encoding, "contentType"));
            // If the encoding of a form part lists several media types, the first media type is
            // used; a wildcard is ignored.
            let kind = kind.and_then(|kind| kind.split(',').next()).map(str::trim).filter(|kind| !kind.contains('*'));
            let part = |part: DraftPart| DraftPart { kind: kind.map(str::to_owned), ..part };
            match (value, json) {
                _ if is_file => parts.push(part(DraftPart::file(&name, &name))),
                (_, Some(json)) => {
                    let kind = Some(kind.unwrap_or("application/json").to_owned());
                    parts.push(DraftPart { kind, ..DraftPart::text(&name, json) });
                }
                (SampleValue::List(items), None) => {
                    parts.extend(items.into_iter().map(|item| part(DraftPart::text(&name, item))));
                }
                (SampleValue::One(text), None) => parts.push(part(DraftPart::text(&name, text))),
                (SampleValue::Table(_), None) => {}
            }
        }
        request.body = DraftBody::Parts(parts);
    }

    fn add_swagger2_body(
        &self,
        parameters: &[&'a TreeNode],
        request: &mut DraftRequest,
        request_name: &str,
        draft: &mut Draft,
    ) {
        let consumes = [self.node, self.api.tree].map(|holder| items(holder, "consumes"));
        let consumes: Vec<&str> = consumes
            .iter()
            .find(|list| !list.is_empty())
            .into_iter()
            .flat_map(|list| list.iter())
            .filter_map(scalar_text)
            .collect();
        let mut sampler = ExampleGenerator::new(self.api);
        if let Some(body) = parameters.iter().find(|parameter| scalar_field_text(parameter, "in") == Some("body")) {
            let kind = consumes.iter().find(|kind| kind.contains("json")).copied();
            match (kind.or_else(|| consumes.is_empty().then_some("application/json")), field(body, "schema")) {
                (Some(kind), Some(schema)) => {
                    request.headers.push(("content-type".to_owned(), DraftText::literal(kind)));
                    request.body = DraftBody::Text(sampler.example_json(schema));
                }
                _ => {
                    let text = format!(
                        "{request_name}: its body ({media_types}) is not sent: write the body into the traffic file",
                        media_types = consumes.join(", ")
                    );
                    draft.note_omission(body.at, text)
                }
            }
        }
        let mut fields = Vec::new();
        for parameter in parameters.iter().filter(|parameter| scalar_field_text(parameter, "in") == Some("formData")) {
            let name = scalar_field_text(parameter, "name").unwrap_or_default().to_owned();
            let is_file = scalar_field_text(parameter, "type") == Some("file");
            if is_file {
                let text =
                    format!("the form field '{name}' is a file: put a file named {name} beside the traffic file");
                sampler.left_out.push((parameter.at, text));
            }
            let value = match self.api.literal_example(parameter) {
                _ if is_file => SampleValue::One(DraftText::literal(&name)),
                Some(example) => sampler.example_as_value(example),
                None => sampler.example_value(parameter),
            };
            fields.push(SampledField { name, value, is_file, json: None, schema: Some(*parameter) });
        }
        if !fields.is_empty() {
            let in_parts =
                fields.iter().any(|field| field.is_file) || consumes.iter().any(|kind| kind.starts_with("multipart/"));
            self.set_form_body(request, fields, None, in_parts);
        }
        self.report_omissions(sampler, request_name, draft);
    }

    /// Returns the expectation that the response has one of the documented statuses of success or
    /// redirection.
    fn response_expectation(&self) -> DraftExpect {
        let Some(responses) = field(self.node, "responses") else { return DraftExpect::default() };
        let of_class = |class: char| -> Vec<String> {
            let codes = entries(responses).iter().map(|(key, _)| key.name.to_ascii_lowercase());
            codes.filter(|code| code.len() == 3 && code.starts_with(class) && is_status(code)).collect()
        };
        let mut codes = of_class('2');
        codes.extend(of_class('3'));
        DraftExpect { status: (!codes.is_empty()).then(|| codes.join(",")), ..DraftExpect::default() }
    }
}

fn is_status(code: &str) -> bool {
    code[1..] == *"xx" || code.bytes().all(|byte| byte.is_ascii_digit())
}

/// The index of the `Cookie` field among the header fields of a request. The index is `None` until
/// the first cookie is added.
#[derive(Default)]
struct RequestCookies(Option<usize>);

impl RequestCookies {
    fn push(&mut self, request: &mut DraftRequest, cookie: &DraftText) {
        let beginning = || request.headers.iter().position(|(name, _)| name == "cookie");
        match self.0.or_else(beginning) {
            Some(place) => {
                let cookies = &mut request.headers[place].1;
                cookies.push("; ");
                cookies.append(cookie);
                self.0 = Some(place);
            }
            None => {
                self.0 = Some(request.headers.len());
                request.headers.push(("cookie".to_owned(), cookie.clone()));
            }
        }
    }
}
