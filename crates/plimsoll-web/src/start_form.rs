//! Converts the form that starts a study into the words of a command line ([`StudyForm`]). A flag
//! and its value are one word, so that no value is parsed as a flag. Shell commands and local files
//! are accepted only if the server was started with permission for commands. Public targets are
//! never accepted.
//!
//! Not here: running the command line (`jobs`), recorded commands (`repeat_study`), and validation
//! of values (a task of the started command).

use crate::problem::Problem;
use crate::query::Query;
use plimsoll_model::shell;
use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFormat};
use plimsoll_traffic::import::curl::{CurlData, CurlRequest, split_curl_command};

/// The studies that the form can start: name of the command, and purpose.
pub const STARTABLE_STUDIES: [(&str, &str); 5] = [
    ("find", "find the load line"),
    ("explain", "explain what limits the load line"),
    ("run", "put one load on the server"),
    ("overload", "load the server above its highest sustained rate"),
    ("prove", "compare two addresses"),
];

const ALL_STUDY_NAMES: &str = "find explain run overload prove";

/// The form fields that every server offers.
pub const COMMON_FIELDS: [FormField; 10] = [
    FormField::new("slo", "--slo", "SLO", "find explain overload", "success>=99.9%, p99<=500ms"),
    FormField::new("budget", "--budget", "Budget", "find explain overload prove", "60s"),
    FormField::new("max_rate", "--max-rate", "Highest rate", "find explain", "5000"),
    FormField::new("rate", "--rate", "Rate, 1/s", "run", "1000"),
    FormField::new("concurrency", "--concurrency", "Users", "run", "50"),
    FormField::new("duration", "--duration", "Duration", "run", "10s"),
    FormField::new("measure", "--measure", "Measure", "prove", "goodput, p50, p99 or cpu"),
    FormField::new("method", "--method", "Method", ALL_STUDY_NAMES, "GET"),
    FormField::new("header", "--header", "Header", ALL_STUDY_NAMES, "Accept: text/html"),
    FormField::new("tag", "--tag", "Tag", ALL_STUDY_NAMES, "release=1.4"),
];

/// The additional form fields of a server that was started with permission for shell commands.
pub const COMMAND_FIELDS: [FormField; 5] = [
    FormField::new("a", "--a", "Start A", "prove", "./old --port 8080"),
    FormField::new("b", "--b", "Start B", "prove", "./new --port 8080"),
    FormField::new("before_block", "--before-block", "Before each block", "prove", "./reset-data"),
    FormField::new("vary", "--vary", "Change a setting", "explain", "./set-pool {n}"),
    FormField::new("values", "--values", "To these values", "explain", "4,8,16"),
];

/// The maximum length of a field's value, in bytes.
const VALUE_BYTES_MAX: usize = 2000;
/// The maximum length of a curl command, in bytes. The limit is large, because commands copied from
/// a browser contain cookies.
const CURL_BYTES_MAX: usize = 16 << 10;
/// The maximum length of a pasted traffic file, in bytes.
pub const TRAFFIC_BYTES_MAX: usize = 48 << 10;
/// The placeholder for the name of the pasted traffic file, without extension. The command line
/// uses this name until the file is written.
const TRAFFIC_STEM: &str = "traffic";

/// One field of the form, and the command-line flag that it sets.
#[derive(Debug, Clone, Copy)]
pub struct FormField {
    /// The name of the field in the form.
    pub name: &'static str,
    /// The command-line flag that the field sets.
    pub flag: &'static str,
    /// The label that the user reads.
    pub label: &'static str,
    /// The commands of the studies for which the form has this field, separated by spaces.
    pub studies: &'static str,
    /// An example of a value, which the form shows as a placeholder.
    pub example: &'static str,
}

impl FormField {
    const fn new(
        name: &'static str,
        flag: &'static str,
        label: &'static str,
        studies: &'static str,
        example: &'static str,
    ) -> FormField {
        FormField { name, flag, label, studies, example }
    }

    fn applies_to_study(&self, study: &str) -> bool {
        self.studies.split(' ').any(|of| of == study)
    }
}

/// The study that a submitted form requests, as a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyForm {
    /// The words of the command line after `plimsoll`.
    pub words: Vec<String>,
    /// The traffic file that was pasted into the form; `None` if there is none.
    pub traffic: Option<TrafficText>,
}

/// The content of a traffic file that was pasted into a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficText {
    /// The extension of the file name: `toml`, `yaml` or `json`.
    pub suffix: &'static str,
    /// The content of the file.
    pub text: String,
}

impl TrafficText {
    /// Returns the command-line word for the traffic file with its placeholder name, before the
    /// file is written.
    fn placeholder_file_flag(&self) -> String {
        format!("--file={TRAFFIC_STEM}.{}", self.suffix)
    }
}

impl StudyForm {
    /// Parses a submitted form. `allows_commands` says whether the form may contain shell commands
    /// and file names.
    pub fn parse(query: &Query, allows_commands: bool) -> Result<StudyForm, Problem> {
        let study = query.get("study").unwrap_or("find");
        if !STARTABLE_STUDIES.iter().any(|(known, _)| *known == study) {
            return Err(Problem::bad_request("the field 'study' must be find, explain, run, overload or prove"));
        }
        let mut words = vec![study.to_owned()];
        let mut push = |fields: &[FormField]| -> Result<usize, Problem> {
            let before = words.len();
            for field in fields.iter().filter(|field| field.applies_to_study(study)) {
                for value in query.all_values(field.name) {
                    words.push(format!("{}={}", field.flag, check_value(field.name, value)?));
                }
            }
            Ok(words.len() - before)
        };
        push(&COMMON_FIELDS)?;
        if let Some(field) = COMMAND_FIELDS.iter().find(|field| query.get(field.name).is_some())
            && !allows_commands
        {
            let name = field.name;
            return Err(Problem::bad_request(format!(
                "{name}: shell commands are off: start plimsoll serve --allow-commands"
            )));
        }
        let commands = push(&COMMAND_FIELDS)?;
        let curl = query.get("curl");
        let traffic = query.get("traffic").map(|text| parse_pasted_traffic(text, allows_commands)).transpose()?;
        match (curl, &traffic) {
            (Some(_), Some(_)) => {
                return Err(Problem::bad_request(
                    "the form has a curl command and a traffic file: give only one of the two",
                ));
            }
            (Some(_), None) if query.get("url").is_some() => {
                return Err(Problem::bad_request(
                    "curl: the curl command contains the address: leave the field for the address empty",
                ));
            }
            (Some(_), None) if study == "prove" => {
                return Err(Problem::bad_request(
                    "curl: prove compares two addresses, and the curl command has only one address",
                ));
            }
            (Some(line), None) => words.push(format!("--curl={}", check_curl(line, allows_commands)?)),
            (None, Some(traffic)) => words.push(traffic.placeholder_file_flag()),
            (None, None) => {}
        }
        let needs_url = curl.is_none() && traffic.is_none();
        // If shell commands start both sides of a comparison, one URL is enough for both sides.
        let needs_second = study == "prove" && commands == 0;
        for (name, needed, is_used) in
            [("url", needs_url || needs_second, curl.is_none()), ("url2", needs_second, study == "prove")]
        {
            match query.get(name).filter(|_| is_used) {
                // The traffic file contains a URL already, so a URL in the form replaces the target
                // of the file.
                Some(url) if traffic.is_some() && study != "prove" => {
                    words.push(format!("--target={}", check_target_url(name, url)?));
                }
                Some(url) => words.push(check_target_url(name, url)?),
                None if needed => {
                    return Err(Problem::bad_request(format!(
                        "{name}: give the address, such as http://localhost:8080/"
                    )));
                }
                None => {}
            }
        }
        Ok(StudyForm { words, traffic })
    }

    /// Returns the command-line words after the traffic file was written to `path`: `path` replaces
    /// the placeholder name of the traffic file.
    pub fn command_words(&self, path: &str) -> Vec<String> {
        let own = self.traffic.as_ref().map(TrafficText::placeholder_file_flag);
        let word = |word: &String| if Some(word) == own.as_ref() { format!("--file={path}") } else { word.clone() };
        self.words.iter().map(word).collect()
    }

    /// Returns the command line that starts the same study in a terminal.
    pub fn command_line(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| shell::quote_if_needed(word)).collect();
        format!("plimsoll {}", words.join(" "))
    }
}

fn check_value<'a>(name: &str, value: &'a str) -> Result<&'a str, Problem> {
    match value.len() > VALUE_BYTES_MAX || value.chars().any(char::is_control) {
        true => {
            Err(Problem::bad_request(format!("{name}: a value can have at most {VALUE_BYTES_MAX} bytes, in one line")))
        }
        false => Ok(value),
    }
}

/// Checks that a value is a URL with a scheme, so that the value cannot be parsed as a flag.
pub fn check_target_url(name: &str, url: &str) -> Result<String, Problem> {
    let is_url = ["http://", "https://", "grpc://", "grpcs://"].iter().any(|scheme| url.starts_with(scheme));
    match is_url {
        true => Ok(check_value(name, url)?.to_owned()),
        false => Err(Problem::bad_request(format!(
            "{name}: an address begins with http:// or https:// (of gRPC: grpc://, grpcs://)"
        ))),
    }
}

/// Checks a curl command and joins its lines. Returns an error if the command names files of this
/// machine and `allows_files` is false.
fn check_curl(line: &str, allows_files: bool) -> Result<String, Problem> {
    let wrong = |why: String| Problem::bad_request(format!("curl: {why}"));
    if line.len() > CURL_BYTES_MAX || line.chars().any(|c| c.is_control() && !"\r\n\t".contains(c)) {
        return Err(wrong(format!("a curl command can have at most {CURL_BYTES_MAX} bytes of text")));
    }
    let request = split_curl_command(line)
        .and_then(|words| CurlRequest::read(&words))
        .map_err(|error| wrong(error.to_string()))?;
    let is_text = |data: &CurlData| matches!(data, CurlData::Text(_));
    let names_files = !request.data.iter().all(is_text)
        || !request.form.iter().all(|part| is_text(&part.data))
        || [
            &request.unix_socket_path,
            &request.ca_certificate_file,
            &request.client_certificate_file,
            &request.client_key_file,
        ]
        .iter()
        .any(|path| path.is_some());
    if names_files && !allows_files {
        return Err(wrong(
            "the curl command names files of this machine: paste the content of the files, or start \
            plimsoll serve --allow-commands"
                .to_owned(),
        ));
    }
    // A backslash at the end of a line continues the command on the next line.
    Ok(line.replace("\r\n", "\n").replace("\\\n", " ").trim().to_owned())
}

/// Checks a pasted traffic file and detects its format. Returns an error if the file names other
/// files or environment variables and `allows_files` is false.
fn parse_pasted_traffic(text: &str, allows_files: bool) -> Result<TrafficText, Problem> {
    if text.len() > TRAFFIC_BYTES_MAX {
        return Err(Problem::bad_request(format!(
            "traffic: a pasted traffic file can have at most {TRAFFIC_BYTES_MAX} bytes"
        )));
    }
    let text = text.replace("\r\n", "\n");
    let (suffix, format) = match text.trim_start().chars().next() {
        Some('{') => ("json", TrafficFormat::from_file_name("traffic.json")),
        _ if is_toml(&text) => ("toml", TrafficFormat::from_file_name("traffic.toml")),
        _ => ("yaml", TrafficFormat::from_file_name("traffic.yaml")),
    };
    let mut sealed = IsolatedFileContext { allows_files };
    match TrafficFile::read(&text, format, &mut sealed) {
        Ok(_) => Ok(TrafficText { suffix, text }),
        // If a form may name files, an invalid traffic file is accepted here. The command that the
        // form starts reads the traffic file and reports its errors.
        Err(_) if allows_files => Ok(TrafficText { suffix, text }),
        Err(error) => Err(Problem::bad_request(format!("traffic: line {error}"))),
    }
}

/// Returns whether a traffic file is TOML. In TOML, the first line that is neither empty nor a
/// comment is a table header or `key = value`.
fn is_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .next()
        .is_some_and(|line| line.starts_with('[') || line.split_once('=').is_some_and(|(key, _)| !key.contains(':')))
}

/// The parser context for a traffic file from the network: the file may not read other files or
/// environment variables.
struct IsolatedFileContext {
    allows_files: bool,
}

impl IsolatedFileContext {
    fn file_refusal_text(&self) -> String {
        match self.allows_files {
            true => "is a file of this machine, which plimsoll reads only when the study starts".to_owned(),
            false => {
                "is on this machine, and text from a web page may not name files of this machine: to allow this, start plimsoll serve --allow-commands".to_owned()
            }
        }
    }
}

impl FileContext for IsolatedFileContext {
    fn read_file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Err(self.file_refusal_text())
    }

    fn read_data_rows(&mut self, _: &str) -> Result<String, String> {
        Err(self.file_refusal_text())
    }

    fn check_regex(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn environment_variable(&mut self, _: &str) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_form_words(form: &str, allows_commands: bool) -> Result<String, String> {
        StudyForm::parse(&Query::parse(form.as_bytes()), allows_commands)
            .map(|form| form.words.join(" "))
            .map_err(|problem| problem.text)
    }

    #[test]
    fn a_form_becomes_a_command_line() {
        for (form, expect) in [
            ("study=find&url=http://h/", Ok("find http://h/")),
            ("url=http%3A%2F%2Fh%2F&slo=p99%3C%3D50ms&rate=5", Ok("find --slo=p99<=50ms http://h/")),
            (
                "study=run&url=http://h/&rate=100&duration=5s&tag=a%3D1&tag=b%3D2",
                Ok("run --rate=100 --duration=5s --tag=a=1 --tag=b=2 http://h/"),
            ),
            ("study=prove&url=http://h/a&url2=http://h/b", Ok("prove http://h/a http://h/b")),
            ("study=find&url=http://h/&slo=--allow-public", Ok("find --slo=--allow-public http://h/")),
            ("study=find&curl=curl+-H+%27A%3A+b%27+http%3A%2F%2Fh%2F", Ok("find --curl=curl -H 'A: b' http://h/")),
            ("study=find&curl=curl+http%3A%2F%2Fh%2F+%5C%0D%0A++-X+PUT", Ok("find --curl=curl http://h/    -X PUT")),
            ("study=prove&url=http://h/", Err("url2: give the address")),
            ("study=find", Err("url: give the address")),
            ("study=find&url=--allow-public", Err("url: an address begins")),
            ("study=find&url=-o/etc/x", Err("url: an address begins")),
            ("study=clean&url=http://h/", Err("the field 'study' must be")),
            ("study=find&url=http://h/&slo=a%0Ab", Err("slo: a value can have at most")),
            ("study=find&curl=wget+http://h/", Err("curl: the text is not a curl command")),
            ("study=find&curl=curl+http://h/&url=http://h/", Err("curl: the curl command contains the address")),
            ("study=prove&curl=curl+http://h/", Err("curl: prove compares two addresses")),
            ("study=find&curl=curl+-d+%40/etc/passwd+http://h/", Err("curl: the curl command names files")),
            ("study=find&curl=curl+-F+a%3D%40/etc/passwd+http://h/", Err("curl: the curl command names files")),
            ("study=find&curl=curl+--cert+/x.pem+https://h/", Err("curl: the curl command names files")),
            ("study=find&curl=curl+--unix-socket+/run/x+http://h/", Err("curl: the curl command names files")),
            ("study=prove&url=http://h/&a=./x&b=./y", Err("a: shell commands are off")),
            ("study=explain&url=http://h/&vary=rm+-rf+x", Err("vary: shell commands are off")),
        ] {
            match (parse_form_words(form, false), expect) {
                (Ok(words), Ok(expect)) => assert_eq!(words, expect, "{form}"),
                (Err(text), Err(part)) => assert!(text.contains(part), "{form}: {text}"),
                (got, expect) => panic!("{form}: {got:?}, expected {expect:?}"),
            }
        }
    }

    #[test]
    fn an_uploaded_traffic_file_names_no_other_file() {
        let form = |text: &str, rest: &str| {
            let text: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
            let form = format!("study=find&traffic={text}{rest}");
            StudyForm::parse(&Query::parse(form.as_bytes()), rest.contains("allowed")).map_err(|problem| problem.text)
        };
        let toml = "base = \"http://127.0.0.1:1\"\r\n[[request]]\r\nget = \"/a\"\r\n";
        let found = form(toml, "").expect("a form");
        assert_eq!(found.words, ["find", "--file=traffic.toml"]);
        assert_eq!(found.command_words("s/x.toml"), ["find", "--file=s/x.toml"]);
        assert!(found.traffic.is_some_and(|it| it.suffix == "toml" && !it.text.contains('\r')));
        let yaml = "base: http://127.0.0.1:1\nrequest:\n  - get: /a\n";
        let found = form(yaml, "&url=http://h/").expect("a form");
        assert_eq!(found.words, ["find", "--file=traffic.yaml", "--target=http://h/"]);
        let json = "{\"base\": \"http://127.0.0.1:1\", \"request\": [{\"get\": \"/a\"}]}";
        assert_eq!(form(json, "").expect("a form").words[1], "--file=traffic.json");
        for (text, part) in [
            ("[[request]]\nget = \"/a\"\nbody = \"@/etc/passwd\"\nbase=1", "traffic: line"),
            ("base = \"http://h\"\n[[request]]\npost = \"/a\"\nbody = \"@/etc/passwd\"\n", "may not name"),
            (
                "base = \"http://h\"\n[[request]]\nget = \"/{{ u.a }}\"\n[data.u]\nfile = \"/etc/passwd\"\n",
                "may not name",
            ),
            ("base = \"http://h\"\n[[request]]\nget = \"/{{ env.HOME }}\"\n", "traffic: line"),
            ("nonsense", "traffic: line"),
            (&"#".repeat(TRAFFIC_BYTES_MAX + 1), "traffic: a pasted traffic file can have at most"),
        ] {
            let error = form(text, "").expect_err("refused");
            assert!(error.contains(part), "{text}: {error}");
        }
        let named = "base = \"http://h\"\n[[request]]\npost = \"/a\"\nbody = \"@x\"\n";
        assert!(form(named, "&allowed=1").is_ok());
    }

    #[test]
    fn commands_need_a_server_that_allows_them() {
        for (form, expect) in [
            ("study=prove&url=http://h/&a=./x&b=./y", "prove --a=./x --b=./y http://h/"),
            (
                "study=explain&url=http://h/&vary=./set+%7Bn%7D&values=4,8",
                "explain --vary=./set {n} --values=4,8 http://h/",
            ),
            ("study=find&curl=curl+-d+%40x+http://h/", "find --curl=curl -d @x http://h/"),
        ] {
            assert_eq!(parse_form_words(form, true).as_deref(), Ok(expect));
        }
    }

    /// Checks that the form fields which every server offers run no command, read or write no file,
    /// and permit no public target.
    #[test]
    fn no_field_reaches_a_file_or_a_shell() {
        for field in COMMON_FIELDS {
            for flag in [
                "--a",
                "--b",
                "--build",
                "--start",
                "--before-block",
                "--vary",
                "--file",
                "--lua",
                "--output",
                "--allow-public",
                "--body",
                "--curl",
            ] {
                assert_ne!(field.flag, flag);
            }
        }
    }
}
