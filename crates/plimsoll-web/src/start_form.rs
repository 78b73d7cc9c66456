//! What the form of a study says ([`StudyForm`]), as the words of a command line. Every value
//! follows its flag in one word, so that none of them is taken for a flag; commands for a shell,
//! files and public targets cannot be given.
//!
//! Not here: running the command line (`jobs`), and whether its values can be used (the command
//! that is started says so).

use crate::problem::Problem;
use crate::query::Query;
use plimsoll_model::shell;

/// Studies that a form starts, with what each finds out.
pub const STUDIES: [(&str, &str); 5] = [
    ("find", "find the load line"),
    ("explain", "explain what limits it"),
    ("run", "put one load on it"),
    ("overload", "load it past its line"),
    ("prove", "compare two addresses"),
];

/// Fields, with the flag that each becomes, the studies that take it, and a placeholder.
pub const FIELDS: [FormField; 10] = [
    FormField {
        name: "slo",
        flag: "--slo",
        label: "SLO",
        of: "find explain overload",
        example: "success>=99.9%, p99<=500ms",
    },
    FormField { name: "budget", flag: "--budget", label: "Budget", of: "find explain overload prove", example: "60s" },
    FormField { name: "max_rate", flag: "--max-rate", label: "Highest rate", of: "find explain", example: "5000" },
    FormField { name: "rate", flag: "--rate", label: "Rate, 1/s", of: "run", example: "1000" },
    FormField { name: "concurrency", flag: "--concurrency", label: "Users", of: "run", example: "50" },
    FormField { name: "duration", flag: "--duration", label: "Duration", of: "run", example: "10s" },
    FormField {
        name: "measure",
        flag: "--measure",
        label: "Measure",
        of: "prove",
        example: "goodput, p50, p99 or cpu",
    },
    FormField {
        name: "method",
        flag: "--method",
        label: "Method",
        of: "find explain run overload prove",
        example: "GET",
    },
    FormField {
        name: "header",
        flag: "--header",
        label: "Header",
        of: "find explain run overload prove",
        example: "Accept: text/html",
    },
    FormField {
        name: "tag",
        flag: "--tag",
        label: "Tag",
        of: "find explain run overload prove",
        example: "release=1.4",
    },
];

/// The longest value of a field.
const VALUE_BYTES_MAX: usize = 2000;

/// A field of the form.
#[derive(Debug, Clone, Copy)]
pub struct FormField {
    /// Its name in the form.
    pub name: &'static str,
    /// The flag.
    pub flag: &'static str,
    /// What people read.
    pub label: &'static str,
    /// The studies that take it, with spaces between them.
    pub of: &'static str,
    /// What a value looks like.
    pub example: &'static str,
}

/// A study that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyForm {
    /// The words after `plimsoll`.
    pub words: Vec<String>,
}

impl StudyForm {
    /// What a form says.
    pub fn parse(query: &Query) -> Result<StudyForm, Problem> {
        let study = query.get("study").unwrap_or("find");
        if !STUDIES.iter().any(|(known, _)| *known == study) {
            return Err(Problem::bad("study: expected find, explain, run, overload or prove"));
        }
        let mut words = vec![study.to_owned()];
        for field in FIELDS.iter().filter(|field| field.of.split(' ').any(|of| of == study)) {
            for value in query.all(field.name) {
                words.push(format!("{}={}", field.flag, check_value(field.name, value)?));
            }
        }
        for (name, needed) in [("url", true), ("url2", study == "prove")] {
            match query.get(name).filter(|_| needed) {
                Some(url) => words.push(target(name, url)?),
                None if needed => {
                    return Err(Problem::bad(format!("{name}: give the address, such as http://localhost:8080/")));
                }
                None => {}
            }
        }
        Ok(StudyForm { words })
    }

    /// The command line that does the same.
    pub fn command_line(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| shell::word(word)).collect();
        format!("plimsoll {}", words.join(" "))
    }
}

fn check_value<'a>(name: &str, value: &'a str) -> Result<&'a str, Problem> {
    match value.len() > VALUE_BYTES_MAX || value.chars().any(char::is_control) {
        true => Err(Problem::bad(format!("{name}: at most {VALUE_BYTES_MAX} bytes in one line"))),
        false => Ok(value),
    }
}

/// An address; nothing that a command line takes for a flag.
fn target(name: &str, url: &str) -> Result<String, Problem> {
    let is_url = ["http://", "https://", "grpc://", "grpcs://"].iter().any(|scheme| url.starts_with(scheme));
    match is_url {
        true => Ok(check_value(name, url)?.to_owned()),
        false => Err(Problem::bad(format!(
            "{name}: an address begins with http:// or https:// (of gRPC: grpc://, grpcs://)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(form: &str) -> Result<String, String> {
        StudyForm::parse(&Query::parse(form.as_bytes()))
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
            ("study=prove&url=http://h/", Err("url2: give the address")),
            ("study=find", Err("url: give the address")),
            ("study=find&url=--allow-public", Err("url: an address begins")),
            ("study=find&url=-o/etc/x", Err("url: an address begins")),
            ("study=clean&url=http://h/", Err("study: expected")),
            ("study=find&url=http://h/&slo=a%0Ab", Err("slo: at most")),
        ] {
            match (words(form), expect) {
                (Ok(words), Ok(expect)) => assert_eq!(words, expect, "{form}"),
                (Err(text), Err(part)) => assert!(text.contains(part), "{form}: {text}"),
                (got, expect) => panic!("{form}: {got:?}, expected {expect:?}"),
            }
        }
    }

    /// No field of the form runs a command, reads or writes a file, or lifts a guard.
    #[test]
    fn no_field_reaches_a_file_or_a_shell() {
        for field in FIELDS {
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
