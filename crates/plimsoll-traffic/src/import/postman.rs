//! Imports Postman collections (formats 2.0 and 2.1). The result is one scenario with the requests
//! in order, and folders as groups of steps.
//!
//! Collection variables are replaced by their values. A variable that the collection does not
//! define gets its value from a response, if a script captures the variable, or from the
//! environment. From scripts ([`script`]), only captures and expected statuses are imported. Not
//! here: running a script.

mod script;

use super::draft::{
    self, Draft, DraftAction, DraftBody, DraftCapture, DraftPart, DraftRequest, DraftScenario, DraftStep, DraftText,
    ImportResult,
};
use super::nodes::{
    self, base64, entries, field, field_number, is_field_true, items, node_at, percent_encode_text, plain_name,
    scalar_field_text, scalar_text, variable_name,
};
use crate::file::json;
use crate::file::push_json_string;
use crate::file::tree::{TextPosition, TrafficFileError, TreeNode, TreeValue};
use plimsoll_model::ParseBudget;
use script::PostmanScript;
use std::collections::{HashMap, HashSet};

/// The largest number of imported requests.
const REQUESTS_MAX: usize = 10_000;
/// The largest number of header fields of a request. Typical servers accept a hundred header
/// fields.
const HEADERS_MAX: usize = 1_000;
/// The deepest nesting of variables that is expanded. A variable is nested if another variable's
/// value contains it.
const VARIABLES_DEPTH_MAX: usize = 8;
/// HTTP methods whose body Postman does not send, unless the collection enables the body.
const BODILESS_METHODS: [&str; 5] = ["GET", "HEAD", "COPY", "PURGE", "UNLOCK"];
/// Protocol options of Postman that are not imported, each with the value that would change the
/// request.
const IGNORED_PROTOCOL_OPTIONS: [(&str, &str); 6] = [
    ("disableCookies", "true"),
    ("disableUrlEncoding", "true"),
    ("followAuthorizationHeader", "true"),
    ("followOriginalHttpMethod", "true"),
    ("removeRefererHeaderOnRedirect", "true"),
    ("strictSSL", "false"),
];

/// Imports the text of a collection.
pub fn import_postman(source: &str) -> Result<ImportResult, TrafficFileError> {
    let tree = json::parse_json_tree(source.strip_prefix('\u{feff}').unwrap_or(source))?;
    // Some exports wrap the collection in another object.
    let collection = field(&tree, "collection").filter(|inner| field(inner, "item").is_some()).unwrap_or(&tree);
    if field(collection, "item").is_none() {
        return match field(collection, "requests").is_some() || field(collection, "order").is_some() {
            true => tree.error("this is a Postman collection of format 1: export the collection as Collection v2.1"),
            false => tree.error("this is not a Postman collection: it has no 'item'"),
        };
    }
    let name = node_at(collection, &["info", "name"]).and_then(scalar_text).unwrap_or("collection").to_owned();
    let mut script_variable_names = HashSet::new();
    collect_script_variable_names(collection, &mut script_variable_names);
    let budget = ParseBudget::proportional_to_input(source.len());
    let mut reader = PostmanReader {
        draft: Draft::default(),
        origin: None,
        script_variable_names,
        requests: 0,
        budget,
        budget_exceeded_at: None,
        url_user: None,
    };
    let outer = Scope::new(None, collection);
    reader.import_scripts(collection, "the collection", None);
    let steps = reader.read_steps(&outer);
    let PostmanReader { mut draft, origin, budget, budget_exceeded_at: beyond, .. } = reader;
    if let Err(error) = budget.check() {
        let text = format!(
            "this Postman collection repeats variables and authorizations too often, at this position or before: \
             {error}"
        );
        return Err(TrafficFileError::new(beyond.unwrap_or(tree.at), text));
    }
    draft.base = origin.filter(|origin| origin.starts_with("http"));
    draft.about.push(format!(
        "The Postman collection {name}. Redirects are followed only within the same scheme, host and port: at most 10, \
         unless the collection sets another number or disables redirects."
    ));
    draft.scenarios.push(DraftScenario { name, weight: 1, cookies: true, steps });
    draft.finish("plimsoll can import no request of this Postman collection")
}

/// Returns the largest number of redirects to follow: Postman's default, or the number in the
/// collection. `None` means that no redirects are followed.
fn redirects_max(scope: &Scope) -> Option<u32> {
    /// The largest number of redirects that Postman follows by default.
    const DEFAULT_REDIRECTS_MAX: u32 = 10;
    const IMPORTED_REDIRECTS_MAX: f64 = 20.0;
    let said = |key: &'static str| scope.find(move |node| node_at(node, &["protocolProfileBehavior", key]));
    let hops = said("maxRedirects").and_then(|node| match &node.value {
        TreeValue::Number(number) => number.parse::<f64>().ok(),
        _ => None,
    });
    let hops = hops.map(|hops| hops.clamp(0.0, IMPORTED_REDIRECTS_MAX) as u32);
    match said("followRedirects").map(|node| &node.value) {
        Some(TreeValue::Flag(false)) => None,
        _ => Some(hops.unwrap_or(DEFAULT_REDIRECTS_MAX)).filter(|hops| *hops > 0),
    }
}

/// Collects the names of variables that scripts set anywhere in the collection.
fn collect_script_variable_names(node: &TreeNode, names: &mut HashSet<String>) {
    for event in items(node, "event") {
        names.extend(PostmanScript::read(&script_source(event)).captures.into_iter().map(|(name, _)| name));
    }
    items(node, "item").iter().for_each(|item| collect_script_variable_names(item, names));
}

/// Returns the source text of the script of an event.
fn script_source(event: &TreeNode) -> String {
    let Some(script) = field(event, "script") else { return String::new() };
    match field(script, "exec") {
        Some(exec) => match &exec.value {
            TreeValue::List(lines) => lines.iter().filter_map(scalar_text).collect::<Vec<_>>().join("\n"),
            _ => scalar_text(exec).unwrap_or_default().to_owned(),
        },
        None => String::new(),
    }
}

/// A folder or request, with its enclosing folders.
struct Scope<'a> {
    parent: Option<&'a Scope<'a>>,
    node: &'a TreeNode,
    /// The variables of the folder or request, by name. If several variables have the same name,
    /// the value of the last variable is used.
    variables: HashMap<&'a str, &'a str>,
}

impl<'a> Scope<'a> {
    fn new(parent: Option<&'a Scope<'a>>, node: &'a TreeNode) -> Scope<'a> {
        let mut variables = HashMap::new();
        for variable in items(node, "variable").iter().filter(|variable| !is_field_true(variable, "disabled")) {
            for name in [scalar_field_text(variable, "key"), scalar_field_text(variable, "id")].into_iter().flatten() {
                variables.insert(name, scalar_field_text(variable, "value").unwrap_or_default());
            }
        }
        Scope { parent, node, variables }
    }

    /// Returns the first result of `find`, searched from the innermost scope outwards.
    fn find<'s, T>(&'s self, find: impl Fn(&'s TreeNode) -> Option<T>) -> Option<T> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            let found = find(here.node);
            if found.is_some() {
                return found;
            }
            scope = here.parent;
        }
        None
    }

    fn find_variable(&self, name: &str) -> Option<&'a str> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(value) = here.variables.get(name) {
                return Some(value);
            }
            scope = here.parent;
        }
        None
    }
}

struct PostmanReader {
    draft: Draft,
    /// The origin of the first request. If the host is a variable, the origin is the name of the
    /// variable in braces.
    origin: Option<String>,
    /// The names of variables that scripts set.
    script_variable_names: HashSet<String>,
    requests: usize,
    /// The remaining memory budget for the expansion of variables in all texts.
    budget: ParseBudget,
    /// The position in the collection of the request that exceeded the memory budget; `None`: no
    /// request has exceeded the budget.
    budget_exceeded_at: Option<TextPosition>,
    /// The `Authorization` value for the user info in the URL of the current request.
    url_user: Option<String>,
}

impl PostmanReader {
    fn read_steps(&mut self, scope: &Scope) -> Vec<DraftStep> {
        let mut steps = Vec::new();
        for node in items(scope.node, "item") {
            let name = draft::short_name(scalar_field_text(node, "name").unwrap_or_default());
            let inner = Scope::new(Some(scope), node);
            if field(node, "item").is_some() {
                self.import_scripts(node, &name, None);
                let what = DraftAction::Steps(self.read_steps(&inner));
                steps.push(DraftStep { at: Some(node.at), name: Some(name), action: what, ..DraftStep::default() });
            } else if self.requests == REQUESTS_MAX {
                let text = format!("requests beyond the first {REQUESTS_MAX} are not imported");
                self.draft.note_repeated_omission(node.at, text);
            } else if self.budget_exceeded_at.is_some() {
                break;
            } else if let Some(request) = self.read_request(&inner, &name) {
                if self.budget.check().is_err() {
                    self.budget_exceeded_at = Some(node.at);
                }
                self.requests += 1;
                let what = DraftAction::Request(Box::new(request));
                steps.push(DraftStep { at: Some(node.at), name: Some(name), action: what, ..DraftStep::default() });
            }
        }
        steps
    }

    fn read_request(&mut self, scope: &Scope, name: &str) -> Option<DraftRequest> {
        let Some(node) = field(scope.node, "request") else {
            self.draft.note_omission(scope.node.at, format!("'{name}' has no request"));
            return None;
        };
        let plain_url = scalar_text(node);
        let url = field(node, "url");
        let whole = match (plain_url, url) {
            (Some(plain), _) => plain.to_owned(),
            (None, Some(url)) => scalar_text(url).map_or_else(|| joined_url(url), str::to_owned),
            (None, None) => {
                self.draft.note_omission(node.at, format!("'{name}' has no URL"));
                return None;
            }
        };
        let whole = replace_path_variables(&whole, url);
        let whole = self.convert_to_template(&whole, scope, node.at);
        self.url_user = None;
        let target = self.read_request_target(&whole, name, node.at)?;
        let mut request = DraftRequest {
            method: scalar_field_text(node, "method").unwrap_or("GET").trim().to_ascii_uppercase(),
            target,
            ..DraftRequest::default()
        };
        match field(node, "header").map(|header| &header.value) {
            Some(TreeValue::List(headers)) => {
                for header in headers.iter().filter(|header| !is_field_true(header, "disabled")) {
                    let (Some(key), value) =
                        (scalar_field_text(header, "key"), scalar_field_text(header, "value").unwrap_or_default())
                    else {
                        continue;
                    };
                    self.import_header(&mut request, key, value, scope, header.at);
                }
            }
            Some(TreeValue::Text(lines)) => {
                for (key, value) in lines.lines().filter_map(|line| line.split_once(':')) {
                    self.import_header(&mut request, key, value, scope, node.at);
                }
            }
            _ => {}
        }
        self.add_authorization(&mut request, scope, name);
        self.url_user_as_authorization(&mut request);
        let keeps_body = scope
            .find(|node| node_at(node, &["protocolProfileBehavior", "disableBodyPruning"]))
            .is_some_and(|node| node.value == TreeValue::Flag(true));
        if let Some(body) = field(node, "body").filter(|body| !is_field_true(body, "disabled")) {
            match BODILESS_METHODS.contains(&request.method.as_str()) && !keeps_body {
                false => self.import_body(&mut request, body, scope, name),
                true if has_content(body) => {
                    let text = format!(
                        "'{name}': its body is not sent, because Postman sends no body with {method}",
                        method = request.method
                    );
                    self.draft.note_omission(body.at, text);
                }
                true => {}
            }
        }
        for (key, changes) in IGNORED_PROTOCOL_OPTIONS {
            let said = scope.find(|node| node_at(node, &["protocolProfileBehavior", key]));
            if let Some(node) = said.filter(|node| scalar_text(node) == Some(changes)) {
                self.draft.note_repeated_omission(node.at, format!("{key} = {changes}"));
            }
        }
        for (key, text) in [
            ("proxy", "a proxy of a request is not imported: plimsoll does not use proxies"),
            ("certificate", "a certificate of a request is not imported: give the certificate and its key to the load"),
        ] {
            if let Some(node) = field(node, key).filter(|node| !entries(node).is_empty()) {
                self.draft.note_repeated_omission(node.at, text);
            }
        }
        self.import_scripts(scope.node, name, Some(&mut request));
        request.redirects_max = redirects_max(scope);
        Some(request)
    }

    fn import_header(&mut self, request: &mut DraftRequest, key: &str, value: &str, scope: &Scope, at: TextPosition) {
        let key = self.convert_to_template(key.trim(), scope, at);
        let Some(key) = key.as_literal() else {
            return self.draft.note_omission(at, "a header whose name has a placeholder is not imported");
        };
        // The HTTP client sets the header fields `Content-Length` and `Connection` itself.
        if key.is_empty() || ["content-length", "connection"].iter().any(|own| key.eq_ignore_ascii_case(own)) {
            return;
        }
        if request.headers.len() >= HEADERS_MAX {
            let text = format!("header fields beyond the first {HEADERS_MAX} of a request are not imported");
            return self.draft.note_repeated_omission(at, text);
        }
        // Header fields with equal names stay separate fields.
        let value = self.convert_to_template(value.trim(), scope, at);
        request.headers.push((key.to_owned(), value));
    }

    /// Returns the path and query of a request. `None` if the origin of the request differs from
    /// the origin of the first request. A note tells the user about each omitted request.
    fn read_request_target(&mut self, whole: &DraftText, name: &str, at: TextPosition) -> Option<DraftText> {
        let beginning = whole.beginning();
        let (origin, rest) = if beginning.is_empty() {
            let (value, rest) = whole.first_value()?;
            (format!("{{{{{value}}}}}"), rest)
        } else {
            let with_scheme = match beginning.contains("://") {
                true => beginning.to_owned(),
                false => format!("http://{beginning}"),
            };
            let authority = with_scheme.split_once("://").map_or("", |(_, rest)| rest);
            let parts = nodes::split_http_url(&with_scheme)
                .filter(|_| whole.as_literal().is_some() || authority.contains(['/', '?']));
            let Some(parts) = parts else {
                self.draft.note_omission(
                    at,
                    format!(
                        "'{name}' is not imported: part of its host is a placeholder. Write the whole host in the \
                         collection"
                    ),
                );
                return None;
            };
            let mut rest = DraftText::literal(&parts.target);
            rest.append(&whole.without_literal_prefix(beginning.len()));
            if let Some(user) = parts.authorization() {
                self.url_user = Some(user);
            }
            (parts.origin(), rest)
        };
        let first_origin = self.origin.get_or_insert_with(|| origin.clone());
        if *first_origin != origin {
            let text =
                format!("a request to {origin} is not imported: a traffic file has only one host ({first_origin})");
            self.draft.note_repeated_omission(at, text);
            return None;
        }
        if origin.starts_with('{') && self.requests == 0 {
            let variable = origin.trim_matches(['{', '}']).trim_start_matches("env.");
            let text = format!("the variable {variable} names the host: give the host as the target");
            self.draft.note_repeated_omission(at, text);
        }
        let mut target = DraftText::literal(if rest.beginning().starts_with('/') { "" } else { "/" });
        target.append(&rest);
        Some(target)
    }

    /// Converts a text with Postman variables to a template.
    fn convert_to_template(&mut self, source: &str, scope: &Scope, at: TextPosition) -> DraftText {
        let mut out = DraftText::default();
        self.append_as_template(source, scope, at, 0, &mut out);
        out
    }

    fn append_as_template(&mut self, source: &str, scope: &Scope, at: TextPosition, depth: usize, out: &mut DraftText) {
        // The smallest amount that a piece of text takes from the memory budget, bytes. Without a
        // minimum, very many empty pieces of text would never exhaust the memory budget.
        const PIECE_BYTES: usize = 64;
        let mut rest = source;
        if self.budget.spend_bytes(source.len() + PIECE_BYTES).is_err() {
            return;
        }
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else { break };
            if self.budget.spend_bytes(PIECE_BYTES).is_err() {
                return;
            }
            out.push(before);
            rest = after;
            let name = name.trim();
            if let Some(dynamic) = name.strip_prefix('$') {
                self.append_dynamic_variable(dynamic, at, out);
            } else if self.script_variable_names.contains(name) {
                out.push_value(&plain_name(name));
            } else if let (Some(value), true) = (scope.find_variable(name), depth < VARIABLES_DEPTH_MAX) {
                let value = value.to_owned();
                self.append_as_template(&value, scope, at, depth + 1, out);
            } else {
                let variable = variable_name(name);
                let text = format!(
                    "the variable '{name}' is not in the Postman collection: it becomes the environment variable \
                     {variable}"
                );
                self.draft.note_repeated_omission(at, text);
                out.push_value(&format!("env.{variable}"));
            }
        }
        out.push(rest);
    }

    /// Converts a dynamic variable of Postman, such as `$guid`, to a template function.
    fn append_dynamic_variable(&mut self, name: &str, at: TextPosition, out: &mut DraftText) {
        let value = match name {
            "guid" | "randomUUID" => "uuid()",
            "timestamp" => "now(\"%s\")",
            "isoTimestamp" => "now(\"%Y-%m-%dT%H:%M:%S.%LZ\")",
            "randomInt" => "int(0,1000)",
            "randomPrice" => "float(0,1000)",
            "randomBoolean" => "pick(true,false)",
            "randomAlphaNumeric" => "text(1)",
            "randomHexadecimal" => "hex(2)",
            "randomPassword" => "text(15)",
            "randomEmail" | "randomExampleEmail" => {
                out.push_value("text(8)");
                return out.push("@example.com");
            }
            _ => {
                let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).take(40).collect();
                let text = format!("the Postman variable ${name} becomes a random text of 8 letters and digits");
                self.draft.note_repeated_omission(at, text);
                "text(8)"
            }
        };
        out.push_value(value);
    }

    fn add_authorization(&mut self, request: &mut DraftRequest, scope: &Scope, name: &str) {
        let of_request = field(scope.node, "request").and_then(|request| field(request, "auth"));
        let Some(auth) = of_request.or_else(|| scope.find(|node| field(node, "auth"))) else { return };
        let kind = scalar_field_text(auth, "type").unwrap_or("noauth");
        // Every request below a folder may inherit the folder's authorization, so each use is
        // charged to the memory budget.
        if self
            .budget
            .spend_bytes(field(auth, kind).map_or(0, |parts| items(auth, kind).len() + entries(parts).len()))
            .is_err()
        {
            return;
        }
        let mut part = |key: &str| -> Option<DraftText> {
            let list = field(auth, kind)?;
            let value = match &list.value {
                TreeValue::List(parts) => {
                    scalar_field_text(parts.iter().find(|part| scalar_field_text(part, "key") == Some(key))?, "value")?
                }
                _ => scalar_field_text(list, key)?,
            };
            let value = value.to_owned();
            Some(self.convert_to_template(&value, scope, auth.at))
        };
        let mut authorization = DraftText::default();
        match kind {
            "noauth" => {}
            "bearer" | "oauth2" => match part(if kind == "bearer" { "token" } else { "accessToken" }) {
                Some(token) if part("addTokenTo").is_some_and(|to| to.as_literal() == Some("queryParams")) => {
                    let mark = if request.target.contains('?') { "&" } else { "?" };
                    request.target.push(&format!("{mark}access_token="));
                    request.target.append(&token.escape_with_filter(percent_encode_text, "url"));
                }
                Some(token) => {
                    let prefix = part("headerPrefix").filter(|_| kind == "oauth2");
                    let prefix = prefix.unwrap_or_else(|| DraftText::literal("Bearer"));
                    authorization.append(&prefix);
                    authorization.push(if prefix.is_empty() { "" } else { " " });
                    authorization.append(&token);
                }
                None => self.draft.note_omission(
                    auth.at,
                    format!("'{name}': the token of this request is not in the Postman collection, and is not sent"),
                ),
            },
            "basic" => {
                let (user, password) = (part("username").unwrap_or_default(), part("password").unwrap_or_default());
                authorization.push("Basic ");
                match (user.as_literal(), password.as_literal()) {
                    (Some(user), Some(password)) => {
                        authorization.push(&base64(format!("{user}:{password}").as_bytes()));
                    }
                    _ => {
                        authorization.push_value("env.BASIC_AUTH");
                        let text = "the user and password of a request have placeholders: set the environment variable \
                             BASIC_AUTH to USER:PASSWORD in base64";
                        self.draft.note_repeated_omission(auth.at, text);
                    }
                }
            }
            "apikey" => {
                let key =
                    part("key").and_then(|key| key.as_literal().map(str::to_owned)).unwrap_or_else(|| "key".to_owned());
                let value = part("value").unwrap_or_default();
                if part("in").is_some_and(|place| place.as_literal() == Some("query")) {
                    let has_query = request.target.contains('?');
                    request.target.push(&format!(
                        "{}{}=",
                        if has_query { "&" } else { "?" },
                        percent_encode_text(&key)
                    ));
                    request.target.append(&value.escape_with_filter(percent_encode_text, "url"));
                } else {
                    replace_header(request, &key, value);
                }
            }
            other => {
                let auth_type: String = other.chars().filter(|c| c.is_ascii_alphanumeric()).take(20).collect();
                let text = format!("authorization of the type {auth_type} is not imported");
                self.draft.note_repeated_omission(auth.at, text);
            }
        }
        if !authorization.is_empty() {
            replace_header(request, "Authorization", authorization);
        }
    }

    /// Adds the user info of the URL as an `Authorization` field, if the request has no
    /// `Authorization` field.
    fn url_user_as_authorization(&mut self, request: &mut DraftRequest) {
        if let Some(user) = self.url_user.take().filter(|_| !request.has_header("authorization")) {
            request.headers.push(("Authorization".to_owned(), DraftText::literal(&user)));
        }
    }

    fn import_body(&mut self, request: &mut DraftRequest, body: &TreeNode, scope: &Scope, name: &str) {
        let enabled = |key: &str| items(body, key).iter().filter(|part| !is_field_true(part, "disabled"));
        let kind = match scalar_field_text(body, "mode") {
            Some("raw") => {
                let content = scalar_field_text(body, "raw").unwrap_or_default();
                if content.is_empty() {
                    return;
                }
                request.body = DraftBody::Text(self.convert_to_template(content, scope, body.at));
                match node_at(body, &["options", "raw", "language"]).and_then(scalar_text) {
                    Some("json") => Some("application/json"),
                    Some("xml") => Some("application/xml"),
                    Some("html") => Some("text/html"),
                    Some("javascript") => Some("application/javascript"),
                    _ => Some("text/plain"),
                }
            }
            Some("urlencoded") => {
                let mut content = DraftText::default();
                if enabled("urlencoded").next().is_none() {
                    return;
                }
                for pair in enabled("urlencoded") {
                    content.push(if content.is_empty() { "" } else { "&" });
                    for (key, before) in [("key", ""), ("value", "=")] {
                        content.push(before);
                        let part =
                            self.convert_to_template(scalar_field_text(pair, key).unwrap_or_default(), scope, pair.at);
                        content.append(&part.escape_with_filter(percent_encode_text, "url"));
                    }
                }
                request.body = DraftBody::Text(content);
                Some("application/x-www-form-urlencoded")
            }
            Some("formdata") => {
                let mut parts = Vec::new();
                for node in enabled("formdata") {
                    let key =
                        self.convert_to_template(scalar_field_text(node, "key").unwrap_or_default(), scope, node.at);
                    let Some(key) = key.as_literal() else {
                        self.draft.note_omission(
                            node.at,
                            format!("'{name}': a form part whose name has a placeholder is not sent"),
                        );
                        continue;
                    };
                    let own =
                        |key: &str| scalar_field_text(node, key).filter(|text| !text.is_empty()).map(str::to_owned);
                    let (kind, file_name) = (own("contentType"), own("fileName"));
                    let part = |part: DraftPart| DraftPart { kind: kind.clone(), file_name: file_name.clone(), ..part };
                    if scalar_field_text(node, "type") != Some("file") {
                        let value = self.convert_to_template(
                            scalar_field_text(node, "value").unwrap_or_default(),
                            scope,
                            node.at,
                        );
                        parts.push(part(DraftPart::text(key, value)));
                        continue;
                    }
                    let files = field(node, "src").map_or(Vec::new(), |source| match &source.value {
                        TreeValue::List(files) => files.iter().filter_map(scalar_text).collect(),
                        _ => scalar_text(source).into_iter().collect(),
                    });
                    for file in &files {
                        let text = format!("'{name}': the path of {file} is relative to the traffic file");
                        self.draft.note_repeated_omission(node.at, text);
                        parts.push(part(DraftPart::file(key, file)));
                    }
                    if files.is_empty() {
                        self.draft.note_omission(node.at, format!("'{name}': '{key}' names no file"));
                    }
                }
                if parts.is_empty() {
                    // A form without parts counts as no body.
                    return;
                }
                // The collection's `Content-Type` is removed, because the imported form gets a new
                // multipart boundary and a new content type.
                request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                request.body = DraftBody::Parts(parts);
                None
            }
            Some("file") => match node_at(body, &["file", "src"]).and_then(scalar_text) {
                Some(file) => {
                    let text = format!("'{name}': the path of {file} is relative to the traffic file");
                    self.draft.note_repeated_omission(body.at, text);
                    request.body = DraftBody::File(file.to_owned());
                    None
                }
                None => {
                    self.draft.note_omission(
                        body.at,
                        format!("'{name}': its body is not sent: the Postman collection does not name the body's file"),
                    );
                    None
                }
            },
            Some("graphql") => {
                let part = |key: &str| node_at(body, &["graphql", key]).and_then(scalar_text).unwrap_or_default();
                let mut query = String::new();
                push_json_string(part("query"), &mut query);
                let variables = if part("variables").trim().is_empty() { "{}" } else { part("variables") };
                let content = format!("{{\"query\":{query},\"variables\":{variables}}}");
                request.body = DraftBody::Text(self.convert_to_template(&content, scope, body.at));
                Some("application/json")
            }
            _ => None,
        };
        if let Some(kind) = kind
            && !request.has_header("content-type")
        {
            request.headers.push(("Content-Type".to_owned(), DraftText::literal(kind)));
        }
    }

    /// Imports captures and expected statuses from the test scripts of a request. For each script
    /// of any other kind, a note tells the user that the script is not imported.
    fn import_scripts(&mut self, node: &TreeNode, name: &str, mut request: Option<&mut DraftRequest>) {
        for event in items(node, "event").iter().filter(|event| !is_field_true(event, "disabled")) {
            let source = script_source(event);
            let script = PostmanScript::read(&source);
            if script.is_empty {
                continue;
            }
            let (Some(request), Some("test")) = (request.as_mut(), scalar_field_text(event, "listen")) else {
                let text = format!(
                    "'{name}': this Postman script is not imported: only the test scripts of requests are imported"
                );
                self.draft.note_omission(event.at, text);
                continue;
            };
            let captures = script.captures.iter();
            request.captures.extend(captures.map(|(name, from)| DraftCapture {
                name: plain_name(name),
                from: from.clone(),
                default: None,
            }));
            request.expect.status = script.status.or(request.expect.status.take());
            script
                .left_out
                .into_iter()
                .for_each(|text| self.draft.note_omission(event.at, format!("'{name}': {text}")));
        }
    }
}

/// Returns whether a body has any content.
fn has_content(body: &TreeNode) -> bool {
    match scalar_field_text(body, "mode") {
        Some("raw") => !scalar_field_text(body, "raw").unwrap_or_default().is_empty(),
        Some(mode @ ("urlencoded" | "formdata")) => {
            items(body, mode).iter().any(|part| !is_field_true(part, "disabled"))
        }
        Some("graphql") => {
            node_at(body, &["graphql", "query"]).and_then(scalar_text).is_some_and(|text| !text.is_empty())
        }
        Some("file") => node_at(body, &["file", "src"]).is_some(),
        _ => false,
    }
}

/// Returns the URL of a request, joined from its parts.
fn joined_url(url: &TreeNode) -> String {
    if let Some(raw) = scalar_field_text(url, "raw").filter(|raw| !raw.is_empty()) {
        if items(url, "query").is_empty() {
            return raw.to_owned();
        }
        // The query comes from the list of parameters, as in Postman, because the text `raw` may
        // contain disabled parameters.
        let before = raw.split(['?', '#']).next().unwrap_or_default();
        return format!("{before}{}", query_text(url));
    }
    let part = |key: &str, between: &str| match field(url, key).map(|node| &node.value) {
        Some(TreeValue::List(parts)) => {
            let of_one = |part: &TreeNode| {
                scalar_text(part).or_else(|| scalar_field_text(part, "value")).unwrap_or_default().to_owned()
            };
            parts.iter().map(of_one).collect::<Vec<_>>().join(between)
        }
        _ => scalar_field_text(url, key).unwrap_or_default().to_owned(),
    };
    let mut whole = scalar_field_text(url, "protocol").map_or(String::new(), |protocol| format!("{protocol}://"));
    whole.push_str(&part("host", "."));
    if let Some(port) = field_number(url, "port") {
        whole.push_str(&format!(":{port}"));
    }
    whole.push('/');
    whole.push_str(part("path", "/").trim_start_matches('/'));
    whole.push_str(&query_text(url));
    whole
}

/// Returns the query of a URL, made from its list of parameters. The query is empty if no parameter
/// is enabled.
fn query_text(url: &TreeNode) -> String {
    let mut query = String::new();
    for (number, pair) in items(url, "query").iter().filter(|pair| !is_field_true(pair, "disabled")).enumerate() {
        query.push_str(if number == 0 { "?" } else { "&" });
        query.push_str(scalar_field_text(pair, "key").unwrap_or_default());
        // A parameter without a value has no equals sign.
        if let Some(value) = scalar_field_text(pair, "value") {
            query.push('=');
            query.push_str(value);
        }
    }
    query
}

/// Sets a header field. As in Postman, the authorization of a request replaces an explicit
/// `Authorization` header field.
fn replace_header(request: &mut DraftRequest, name: &str, value: DraftText) {
    request.headers.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
    request.headers.push((name.to_owned(), value));
}

/// Replaces each variable in the path, such as `:id`, by the value that the URL defines for the
/// variable.
fn replace_path_variables(whole: &str, url: Option<&TreeNode>) -> String {
    let variables = url.map_or(&[][..], |url| items(url, "variable"));
    if variables.is_empty() {
        return whole.to_owned();
    }
    let (path, query) = whole.split_at(whole.find('?').unwrap_or(whole.len()));
    // If several path variables have the same name, the value of the last variable is used.
    let variables: HashMap<&str, &str> = variables
        .iter()
        .filter_map(|variable| Some((scalar_field_text(variable, "key")?, scalar_field_text(variable, "value")?)))
        .collect();
    // The name of a variable ends at the end of the path segment or at the first dot, as in
    // `:id.json`.
    let segment = |segment: &str| {
        let name = segment.strip_prefix(':').map(|rest| rest.split('.').next().unwrap_or_default());
        let value = name.and_then(|name| variables.get(name)).filter(|value| !value.is_empty());
        match (name, value) {
            (Some(name), Some(value)) => format!("{value}{}", &segment[1 + name.len()..]),
            _ => segment.to_owned(),
        }
    };
    let path: Vec<String> = path.split('/').map(segment).collect();
    format!("{}{query}", path.join("/"))
}
