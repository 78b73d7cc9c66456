//! Imports captures and expected statuses from a Postman script by searching for the usual calls.
//! The importer runs no script.

use std::collections::HashMap;

/// The beginnings of calls that set a variable.
const VARIABLE_SETTER_PREFIXES: [&str; 6] = [
    "pm.environment.set(",
    "pm.collectionVariables.set(",
    "pm.globals.set(",
    "pm.variables.set(",
    "postman.setEnvironmentVariable(",
    "postman.setGlobalVariable(",
];
/// The beginnings of calls and comparisons that check the status; the expected status follows.
const STATUS_CHECK_PREFIXES: [&str; 9] = [
    "pm.response.to.have.status(",
    "pm.expect(pm.response.code).to.equal(",
    "pm.expect(pm.response.code).to.eql(",
    "pm.expect(pm.response.code).to.eq(",
    "pm.expect(pm.response.code).to.be.equal(",
    "pm.expect(pm.response.code).to.be.oneOf(",
    "pm.expect(pm.response.status).to.equal(",
    "responseCode.code ===",
    "responseCode.code ==",
];

/// The longest argument of a call, and the longest path of a capture, bytes. A longer argument or
/// path counts as a computed value, which is not imported.
const ARGUMENT_BYTES_MAX: usize = 2_000;
const CAPTURE_PATH_BYTES_MAX: usize = 300;

/// Returns the first `bytes` bytes of a text, or fewer bytes if a character would be cut apart.
fn first_bytes(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The parts of a Postman script that are imported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostmanScript {
    /// Whether the script has no code.
    pub is_empty: bool,
    /// The names of captured variables, each with the position of its value in the response.
    pub captures: Vec<(String, String)>,
    pub status: Option<String>,
    pub left_out: Vec<String>,
}

impl PostmanScript {
    pub fn read(source: &str) -> PostmanScript {
        let code = without_comments(source);
        let mut script = PostmanScript { is_empty: code.trim().is_empty(), ..PostmanScript::default() };
        let known = response_variables(&code);
        let mut setters: Vec<(usize, &str)> = VARIABLE_SETTER_PREFIXES
            .iter()
            .flat_map(|call| code.match_indices(call).map(|(at, call)| (at, &code[at + call.len()..])))
            .collect();
        setters.sort_by_key(|(at, _)| *at);
        for (_, arguments) in setters {
            let Some((name, rest)) = split_string_literal(arguments.trim_start()) else {
                script
                    .left_out
                    .push("the Postman script sets a variable with a computed name, which is not imported".to_owned());
                continue;
            };
            let expression = first_argument(rest.trim_start().strip_prefix(',').unwrap_or_default());
            match capture_source(expression, &known) {
                Some(from) if from != "$" => script.captures.push((name.to_owned(), from)),
                _ => script.left_out.push(format!(
                    "the Postman script computes the variable '{variable}', which is not imported",
                    variable = printable_name(name)
                )),
            }
        }
        let found = STATUS_CHECK_PREFIXES.iter().find_map(|call| code.split_once(call).map(|(_, rest)| rest));
        let codes = found.map(|rest| {
            let end = rest.find([')', ';', '\n']).unwrap_or(rest.len());
            let words = rest[..end].split(|c: char| !c.is_ascii_digit());
            words
                .filter(|word| word.len() == 3 && word.starts_with(['1', '2', '3', '4', '5']))
                .collect::<Vec<_>>()
                .join(",")
        });
        script.status = codes.filter(|codes| !codes.is_empty());
        if script.status.is_none()
            && (code.contains("pm.response.to.be.ok") || code.contains("pm.response.to.be.success"))
        {
            script.status = Some("2xx".to_owned());
        }
        let expectations = code.matches("pm.expect(").count() + code.matches("pm.response.to.").count();
        if expectations > usize::from(script.status.is_some()) {
            script.left_out.push(
                "the Postman script checks more than the status, but only checks of the status are imported".to_owned(),
            );
        }
        for (call, said) in [
            ("setNextRequest", "the Postman script chooses the next request: this choice is not imported"),
            ("pm.sendRequest", "the Postman script sends a request, which is not imported"),
        ] {
            if code.contains(call) {
                script.left_out.push(said.to_owned());
            }
        }
        if code.contains("tests[") && script.status.is_none() {
            script.left_out.push("the Postman script has tests, which are not imported".to_owned());
        }
        script
    }
}

fn printable_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// Returns the code without comments. Comment marks inside string literals stay.
fn without_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source.chars().peekable();
    let mut quote = None;
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                out.push(c);
                out.extend(rest.next());
                continue;
            }
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '/') if rest.peek() == Some(&'/') => {
                while rest.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            (None, '/') if rest.peek() == Some(&'*') => {
                rest.next();
                while let Some(c) = rest.next() {
                    if c == '*' && rest.next_if_eq(&'/').is_some() {
                        break;
                    }
                }
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Returns the local variables of the script, each with the position of its value in the response.
fn response_variables(code: &str) -> HashMap<String, String> {
    let mut known: HashMap<String, String> = HashMap::new();
    for statement in code.split([';', '\n']) {
        let Some((left, right)) = statement.split_once('=') else { continue };
        if right.starts_with(['=', '>']) || left.ends_with(['!', '<', '>']) {
            continue;
        }
        let left = left.trim();
        let left = ["var ", "let ", "const "]
            .iter()
            .find_map(|word| left.rsplit_once(word).map(|(_, name)| name))
            .unwrap_or(left);
        let Some(from) = capture_source(right, &known) else { continue };
        match left.trim().strip_prefix('{').and_then(|names| names.strip_suffix('}')) {
            Some(names) => {
                for name in names.split(',').map(str::trim).filter(|name| is_name(name)) {
                    known.insert(name.to_owned(), format!("{from}.{name}"));
                }
            }
            None if is_name(left.trim()) => _ = known.insert(left.trim().to_owned(), from),
            None => {}
        }
    }
    known
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

/// Splits off a string literal at the beginning of a text.
fn split_string_literal(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| ['"', '\'', '`'].contains(c))?;
    let end = first_bytes(&text[1..], ARGUMENT_BYTES_MAX).find(quote)?;
    let (inner, rest) = (&text[1..=end], &text[end + 2..]);
    (!inner.is_empty() && !inner.contains(['\\', '\n'])).then_some((inner, rest))
}

/// Returns the first argument in a text, up to a comma or the closing bracket of the call.
fn first_argument(text: &str) -> &str {
    let text = first_bytes(text, ARGUMENT_BYTES_MAX);
    let (mut depth, mut quote) = (0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') if depth == 0 => return &text[..at],
            (None, ')' | ']') => depth -= 1,
            (None, ',') if depth == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

/// Returns the position in the response that an expression reads, such as `$.a.b`,
/// `header:Location` or `cookie:sid`. `None` if the expression is not a plain read of a response
/// value.
fn capture_source(expression: &str, known: &HashMap<String, String>) -> Option<String> {
    let expression = expression.trim();
    for (call, kind) in [("pm.response.headers.get(", "header"), ("pm.cookies.get(", "cookie")] {
        if let Some(rest) = expression.strip_prefix(call) {
            let (name, after) = split_string_literal(rest.trim_start())?;
            return (after.trim() == ")").then(|| format!("{kind}:{name}"));
        }
    }
    let roots = ["pm.response.json()", "JSON.parse(responseBody)", "JSON.parse(pm.response.text())", "responseJson()"];
    let (mut path, mut rest) = match roots.iter().find_map(|root| expression.strip_prefix(root)) {
        Some(rest) => ("$".to_owned(), rest),
        None => {
            let end = expression
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
                .unwrap_or(expression.len());
            (known.get(&expression[..end])?.clone(), &expression[end..])
        }
    };
    if !path.starts_with('$') && !rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        rest = rest.strip_prefix('?').filter(|rest| rest.starts_with('.')).unwrap_or(rest);
        if let Some(after) = rest.strip_prefix('[') {
            let (key, after) = match split_string_literal(after) {
                Some((key, after)) if !key.contains('\'') => (format!("['{key}']"), after),
                Some(_) => return None,
                None => {
                    let end = after.find(|c: char| !c.is_ascii_digit())?;
                    (format!("[{}]", &after[..end]), &after[end..])
                }
            };
            path.push_str(&key);
            rest = after.strip_prefix(']')?;
        } else {
            let name = rest.strip_prefix('.')?;
            let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len());
            if end == 0 || name[end..].starts_with('(') {
                return None;
            }
            path.push_str(&format!(".{}", &name[..end]));
            rest = name[end..].trim_end();
        }
    }
    (path.len() <= CAPTURE_PATH_BYTES_MAX).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postman_response_values_are_recognised() {
        for (source, captures, status, left_out) in [
            ("", &[][..], None, 0),
            ("// nothing\n/* pm.test */", &[], None, 0),
            (
                "pm.test('ok', function () { pm.response.to.have.status(201); });\nvar jsonData = pm.response.json();\n\
                 pm.environment.set(\"token\", jsonData.data.token);",
                &[("token", "$.data.token")],
                Some("201"),
                0,
            ),
            ("const { id } = pm.response.json();\npm.collectionVariables.set('id', id)", &[("id", "$.id")], None, 0),
            (
                "let r = JSON.parse(responseBody);postman.setEnvironmentVariable(\"first\", r.items[0][\"a b\"]?.id);",
                &[("first", "$.items[0]['a b'].id")],
                None,
                0,
            ),
            (
                "pm.globals.set('where', pm.response.headers.get('Location')); pm.globals.set('s', pm.cookies.get(\"sid\"))",
                &[("where", "header:Location"), ("s", "cookie:sid")],
                None,
                0,
            ),
            ("pm.environment.set('now', new Date().toISOString())", &[], None, 1),
            ("pm.environment.set('n', pm.response.json().items.find(x => x.ok).id)", &[], None, 1),
            ("pm.expect(pm.response.code).to.be.oneOf([200, 204]);", &[], Some("200,204"), 0),
            ("pm.response.to.have.status(200); pm.expect(1).to.equal(1)", &[], Some("200"), 1),
            ("tests[\"a\"] = responseCode.code === 200;", &[], Some("200"), 0),
        ] {
            let script = PostmanScript::read(source);
            let expect: Vec<_> = captures.iter().map(|(name, from)| ((*name).to_owned(), (*from).to_owned())).collect();
            assert_eq!((script.captures, script.status.as_deref()), (expect, status), "{source}");
            assert_eq!(script.left_out.len(), left_out, "{source}: {:?}", script.left_out);
        }
    }
}
