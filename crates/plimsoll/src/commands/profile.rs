//! `plimsoll profile`: reads or fetches a profile, sums it up, draws it, compares two.

use crate::args::ProfileArgs;
use crate::results::{print_json, print_report, print_screen};
use plimsoll_analysis::profile::{
    Basis, SampleSplit, Sort, Tree, View, diff, diff_tree, grouped, has_label, label_keys, read as read_profile, top,
    tree,
};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::profile::{Profile, ValueType};
use plimsoll_report::flame::{FRAMES_MAX, Flame, html, svg};
use plimsoll_report::profile::{
    amount, diff_document, diff_report, diff_unit, profile_document, profile_facts, top_report,
};
use plimsoll_report::{Report, text};
use plimsoll_study::output::note;
use plimsoll_study::pprof::fetch_profile;
use plimsoll_sys::files::{self, Use};
use plimsoll_sys::output_file;
use plimsoll_sys::system_text;
use regex::{Regex, RegexBuilder};
use std::path::Path;

/// Rows of the table where none are asked for.
const ROWS: usize = 30;

/// Everything asked for, checked.
struct ProfileOptions<'a> {
    args: &'a ProfileArgs,
    /// Rows of the table, if said.
    rows: Option<usize>,
    sort: Sort,
    focus: Option<Regex>,
    ignore: Option<Regex>,
    /// As given, and as a pattern.
    by: Option<(&'a str, Regex)>,
}

/// A file or address as given, what it held, and the column asked for.
struct ProfileInput {
    name: String,
    bytes: Vec<u8>,
    profile: Profile,
    view: View,
}

impl ProfileInput {
    fn column(&self) -> &ValueType {
        &self.profile.sample_types[self.view.sample_type]
    }

    fn both(&self) -> (&Profile, &View) {
        (&self.profile, &self.view)
    }
}

/// Shows a profile or a difference, and says with which code to end.
pub fn run(args: &ProfileArgs) -> Result<u8, Failure> {
    // `--top FILE` means the table of that file.
    let (mut source, mut rows) = (args.source.as_deref(), None);
    if let Some(Some(word)) = &args.top {
        match word.parse() {
            Ok(number) => rows = Some(number),
            Err(_) if source.is_none() && args.diff.is_empty() => source = Some(word),
            Err(_) => return Err(Failure::usage(format!("--top takes a number of rows, not '{word}'"))),
        }
    }
    let sort = match args.sort.as_deref() {
        // Groups stand at the roots of stacks: only sums with callees show them.
        None if args.diff.is_empty() || args.by.is_some() => Sort::Cum,
        None | Some("flat") => Sort::Flat,
        Some("cum") => Sort::Cum,
        Some(other) => return Err(Failure::usage(format!("--sort takes flat or cum, not '{other}'"))),
    };
    let (focus, ignore) = (regex("--focus", args.focus.as_ref())?, regex("--ignore", args.ignore.as_ref())?);
    let by = regex("--by", args.by.as_ref())?.and_then(|pattern| Some((args.by.as_deref()?, pattern)));
    for path in &args.output {
        kind_of(path, !args.diff.is_empty())?;
    }
    let options = ProfileOptions { args, rows, sort, focus, ignore, by };
    match (source, args.diff.as_slice()) {
        (Some(_), [_, ..]) => Err(Failure::usage("give either one profile or --diff A B, not both")),
        (Some(source), []) => one(&options, &read_source(&options, source)?),
        (None, [before, after]) => two(&options, before, after),
        (None, _) => Err(Failure::usage("give a profile, such as cpu.pb.gz or http://localhost:6060/debug/pprof")),
    }
}

fn regex(flag: &str, pattern: Option<&String>) -> Result<Option<Regex>, Failure> {
    let compile = |pattern: &String| {
        let compiled = RegexBuilder::new(pattern).build();
        // The whole message draws the pattern over several lines; the last one says what is wrong.
        compiled.map_err(|error| {
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Failure::usage(format!("{flag} '{pattern}' is not a regular expression: {why}"))
        })
    };
    pattern.map(compile).transpose()
}

fn one(options: &ProfileOptions, given: &ProfileInput) -> Result<u8, Failure> {
    let ProfileInput { profile, view, .. } = given;
    let column = given.column();
    let drawn = options.args.output.iter().any(|path| !matches!(kind_of(path, false), Ok(FileFormat::Profile)));
    // Each takes its time with a large profile, and neither needs the other.
    let (sums, tree) = std::thread::scope(|scope| {
        let tree = drawn.then(|| scope.spawn(|| tree(profile, view, FRAMES_MAX)));
        let sums = top(profile, view, options.sort);
        let tree = tree.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (sums, tree)
    });
    let rows = options.rows.unwrap_or(ROWS);
    let report = top_report(profile, column, &sums, rows, options.by.as_ref().map(|(name, _)| *name));
    for path in &options.args.output {
        let content = match (kind_of(path, false)?, &tree) {
            (FileFormat::Profile, _) | (_, None) => given.bytes.clone(),
            (kind, Some(tree)) => {
                let subtitle = with_left_out(profile_facts(profile, column, sums.total), tree);
                let flame = Flame {
                    tree,
                    title: &given.name,
                    subtitle: &subtitle,
                    unit: &column.unit,
                    per: None,
                    total: sums.selected_total as f64,
                };
                picture(&flame, kind, &report)
            }
        };
        write(path, &content)?;
    }
    if options.args.json {
        print_json(&profile_document(profile.functions(), column, &sums, options.rows.unwrap_or(usize::MAX)));
    } else if options.rows.is_some() {
        print_report(&report);
    } else {
        let by = options.by.as_ref().map(|(name, _)| *name);
        print_screen(&top_report(profile, column, &sums, usize::MAX, by), 0, "--top N");
    }
    Ok(exit::DONE)
}

fn two(options: &ProfileOptions, before: &str, after: &str) -> Result<u8, Failure> {
    let basis = match (options.args.requests_a, options.args.requests_b) {
        (None, None) => Basis::Shares,
        (Some(before), Some(after)) if before > 0 && after > 0 => {
            Basis::Requests { before: before as f64, after: after as f64 }
        }
        (Some(_), Some(_)) => return Err(Failure::usage("--requests-a and --requests-b must be at least 1")),
        _ => return Err(Failure::usage("give both --requests-a and --requests-b: costs are compared per request")),
    };
    let (before, after) = (read_source(options, before)?, read_source(options, after)?);
    let failed = |error| Failure::usage(format!("'{}' and '{}' {error}", before.name, after.name));
    let comparison = diff(before.both(), after.both(), basis, options.sort).map_err(failed)?;
    let report = diff_report(&comparison, options.sort, options.rows.unwrap_or(ROWS));
    for path in &options.args.output {
        let tree = diff_tree(before.both(), after.both(), basis, FRAMES_MAX).map_err(failed)?;
        let (unit, per) = diff_unit(&comparison);
        let of = per.map_or(String::new(), |per| format!(" a {per}"));
        let total = &comparison.total;
        let (from, to) = (amount(total.before, unit), amount(total.after, unit));
        let kind = &comparison.sample_type.kind;
        let text =
            format!("{kind}{of}: {from} before, {to} after; red: costs more, blue: costs less, grey: may be chance");
        let flame = Flame {
            tree: &tree,
            title: &format!("{} against {}", after.name, before.name),
            subtitle: &with_left_out(text, &tree),
            unit,
            per,
            total: total.after,
        };
        write(path, &picture(&flame, kind_of(path, true)?, &report))?;
    }
    if options.args.json {
        print_json(&diff_document(&comparison, options.rows.unwrap_or(usize::MAX)));
    } else if options.rows.is_some() {
        print_report(&report);
    } else {
        print_screen(&diff_report(&comparison, options.sort, usize::MAX), 0, "--top N");
    }
    Ok(exit::DONE)
}

fn with_left_out(mut text: String, tree: &Tree) -> String {
    if tree.left_out {
        text.push_str("; the narrowest frames are merged");
    }
    text
}

/// What a file is to hold.
#[derive(Clone, Copy)]
enum FileFormat {
    Svg,
    Html,
    Profile,
}

fn kind_of(path: &Path, difference: bool) -> Result<FileFormat, Failure> {
    let name = path.to_string_lossy().to_lowercase();
    match name.rsplit('.').next() {
        Some("svg") => Ok(FileFormat::Svg),
        Some("html" | "htm") => Ok(FileFormat::Html),
        Some("gz") if name.ends_with(".pb.gz") && !difference => Ok(FileFormat::Profile),
        _ => {
            let also = if difference { "" } else { ", or .pb.gz to keep the profile" };
            Err(Failure::usage(format!("-o {}: the name must end with .html or .svg{also}", path.display())))
        }
    }
}

fn picture(flame: &Flame, kind: FileFormat, report: &Report) -> Vec<u8> {
    let drawn = match kind {
        FileFormat::Html => {
            let table = text::render(report, false).replace('&', "&amp;").replace('<', "&lt;");
            html(flame, &format!("<pre>{table}</pre>"))
        }
        FileFormat::Svg | FileFormat::Profile => svg(flame),
    };
    drawn.into_bytes()
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let shown = path.display();
    output_file::write(path, content)
        .map_err(|e| Failure::start(format!("'{shown}' cannot be written: {}", system_text(&e))))?;
    say(&format!("wrote {shown}"));
    Ok(())
}

fn say(line: &str) {
    note(line);
}

fn read_source(options: &ProfileOptions, source: &str) -> Result<ProfileInput, Failure> {
    let address = source.starts_with("http://") || source.starts_with("https://");
    let (name, bytes) = if address {
        fetch_profile(source, options.args.seconds, options.args.allow_public, say)?
    } else if options.args.seconds.is_some() {
        return Err(Failure::usage(format!(
            "--seconds: '{source}' is a file, which has its own length; give an address"
        )));
    } else {
        (source.to_owned(), from_file(source)?)
    };
    let mut profile = read_profile(&bytes).map_err(|error| Failure::start(format!("'{name}' {error}")))?;
    if let Some(by) = &options.by {
        profile = in_groups(&profile, &name, by)?;
    }
    let wanted = options.args.sample_index.as_deref();
    let sample_type = profile.sample_type(wanted).ok_or_else(|| {
        let kinds: Vec<&str> = profile.sample_types.iter().map(|t| t.kind.as_str()).collect();
        let wanted = wanted.unwrap_or_default();
        Failure::usage(format!("--sample-index {wanted}: '{name}' contains {}", kinds.join(", ")))
    })?;
    let mut view = View::all(sample_type);
    if let Some(focus) = &options.focus {
        view = view.focus(&profile, |name| focus.is_match(name));
    }
    if let Some(ignore) = &options.ignore {
        view = view.ignore(&profile, |name| ignore.is_match(name));
    }
    Ok(ProfileInput { name, bytes, profile, view })
}

/// The profile with its stacks put under what `--by` tells apart: a label if there is one of that
/// key, else functions.
fn in_groups(profile: &Profile, file: &str, (by, pattern): &(&str, Regex)) -> Result<Profile, Failure> {
    if has_label(profile, by) {
        return Ok(grouped(profile, by, &SampleSplit::Label(by)));
    }
    let matches = |name: &str| pattern.is_match(name);
    if !profile.functions().iter().any(|function| matches(&function.name)) {
        let keys = label_keys(profile);
        let labels = if keys.is_empty() { "has no labels".into() } else { format!("has labels {}", keys.join(", ")) };
        return Err(Failure::usage(format!("--by {by}: '{file}' {labels}, and no function matches")));
    }
    Ok(grouped(profile, by, &SampleSplit::Function(&matches)))
}

fn from_file(path: &str) -> Result<Vec<u8>, Failure> {
    files::read(path.as_ref(), Use::Profile).map_err(|why| {
        let is_none = path.contains(':') && !Path::new(path).exists();
        let hint = if is_none { " (an address starts with http://)" } else { "" };
        Failure::start(format!("'{path}' {why}{hint}"))
    })
}
