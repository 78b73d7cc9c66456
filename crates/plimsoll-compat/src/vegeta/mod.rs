//! The command `plimsoll vegeta`: runs attacks, reports vegeta's results in the formats of vegeta,
//! and converts result files between encodings. Results are read one by one, so their number is not
//! limited by memory.
//!
//! Not here: encodings and figures (`plimsoll_logs::vegeta`), parsing flags (`options`), and layout
//! (`render`).

mod attack;
mod options;
mod output_target;
mod render;

use crate::output;
use crate::run_command::RunCommand;
use options::{EncodeOptions, PlotOptions, ReportOptions, VegetaCommand, VegetaReportFormat, parse};
use output_target::{open_output, refuse_bytes_on_terminal, write_failure};
use plimsoll_logs::vegeta::{VegetaFigures, VegetaReader, VegetaResult, VegetaTimeSeries, VegetaWriter};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_sys::output_file;
use plimsoll_sys::system_text;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};

const USAGE: &str = "Usage: plimsoll vegeta <command> [flags] [FILE...]

attack: send to the targets in turn at a rate, and write a result for each request
  -targets FILE, -format http|json, -lazy -body FILE, -header 'Name: value'
  -rate 50/1s, -duration 5s, -timeout 30s, -max-workers N (for -rate 0)
  -max-connections N, -keepalive=false, -insecure, -cert, -key, -root-certs
  -laddr IP, -unix-socket PATH, -max-body N, -name NAME, -output FILE
  -to json|csv|gob                        [default: as FILE ends, else json]
  -allow-public                           load on addresses that are not private
report: summarise results
  -type text|json|hist[BUCKETS]|hdrplot   format [default: text]
  -buckets '[0,1ms,10ms]'                 for -type json or hist
  -output FILE                            [default: stdout]
plot: make a page of latencies over time
  -title TEXT, -threshold N               maximum points of a line
  -output FILE                            [default: stdout]
encode: convert results
  -to json|csv|gob                        [default: json]
  -output FILE                            [default: stdout]

Results come from the files named, or from stdin: JSON, CSV or gob.
";

/// Runs the command line of vegeta, which is given without the program's name. Returns the exit
/// code.
pub fn run_vegeta_command(words: &[String], run: &dyn RunCommand) -> Result<u8, Failure> {
    match parse(words).map_err(Failure::usage)? {
        VegetaCommand::Usage => output::print(USAGE),
        VegetaCommand::Version => {
            output::print(&format!(
                "plimsoll {version} (the command line of vegeta)\n",
                version = env!("CARGO_PKG_VERSION")
            ));
        }
        VegetaCommand::Attack(asked) => return attack::run_attack(*asked, run),
        VegetaCommand::Report(asked) => write_report(&asked)?,
        VegetaCommand::Plot(asked) => write_plot(&asked, run)?,
        VegetaCommand::Encode(asked) => convert_results(&asked)?,
    }
    Ok(exit::SUCCESS)
}

fn write_report(options: &ReportOptions) -> Result<(), Failure> {
    let mut figures = VegetaFigures::new(&options.buckets_ns);
    for_each_result(&options.files, &mut |result| {
        figures.add(&result);
        Ok(())
    })?;
    let text = match options.format {
        VegetaReportFormat::Text => render::format_text_report(&mut figures),
        VegetaReportFormat::Json => render::format_json_report(&mut figures),
        VegetaReportFormat::Histogram => render::format_histogram_report(&figures),
        VegetaReportFormat::Plot => render::format_hdr_plot(&mut figures),
    };
    match &options.output {
        None => output::print(&text),
        Some(path) => {
            output_file::write(path.as_ref(), text.as_bytes()).map_err(|error| write_failure(path, &error))?
        }
    }
    Ok(())
}

fn write_plot(options: &PlotOptions, run: &dyn RunCommand) -> Result<(), Failure> {
    let mut course = VegetaTimeSeries::default();
    for_each_result(&options.files, &mut |result| {
        course.add(&result);
        Ok(())
    })?;
    let page = run.vegeta_page(&course, &options.title, options.points_max);
    match &options.output {
        // The page is printed without escaping control characters, because plimsoll generated the
        // page without control characters.
        None => output::print_unescaped(&page),
        Some(path) => {
            output_file::write(path.as_ref(), page.as_bytes()).map_err(|error| write_failure(path, &error))?
        }
    }
    Ok(())
}

fn convert_results(options: &EncodeOptions) -> Result<(), Failure> {
    refuse_bytes_on_terminal(options.encoding, options.output.as_deref())?;
    let (out, place) = open_output(options.output.as_deref())?;
    let mut out = BufWriter::new(out);
    let (mut writer, mut line) = (VegetaWriter::new(options.encoding), Vec::new());
    for_each_result(&options.files, &mut |result| {
        line.clear();
        writer.write(&result, &mut line);
        out.write_all(&line).map_err(|error| write_failure(&place, &error))
    })?;
    out.flush().map_err(|error| write_failure(&place, &error))
}

/// Calls `each` for every result of the files, taking one result of each file in turn. If no file
/// is named, the results come from standard input.
fn for_each_result(files: &[String], each: &mut dyn FnMut(VegetaResult) -> Result<(), Failure>) -> Result<(), Failure> {
    // If the results come from a pipe, ^C ends the attack that writes the results. The process that
    // reads the results continues, and reports the results written so far.
    if files.is_empty() && !std::io::stdin().is_terminal() {
        plimsoll_sys::signal::catch_stop_signals();
    }
    let mut readers: Vec<(&str, VegetaReader<Box<dyn BufRead>>)> = Vec::new();
    for file in files {
        let opened = File::open(file).and_then(|opened| match opened.metadata()?.is_dir() {
            true => Err(std::io::ErrorKind::IsADirectory.into()),
            false => Ok(opened),
        });
        let opened =
            opened.map_err(|error| Failure::usage(format!("'{file}' cannot be read: {}", system_text(&error))))?;
        readers.push((file, VegetaReader::new(Box::new(BufReader::new(opened)))));
    }
    if readers.is_empty() {
        readers.push(("stdin", VegetaReader::new(Box::new(std::io::stdin().lock()))));
    }
    let mut first = true;
    while !readers.is_empty() {
        let mut open = Vec::with_capacity(readers.len());
        for (name, mut reader) in readers {
            let result = reader.next_result().map_err(|error| Failure::usage(format!("'{name}': {error}")))?;
            match result {
                Some(result) => {
                    each(result)?;
                    open.push((name, reader));
                }
                // As in vegeta, an input without any result is an error. Without this error, the
                // report of a failed attack, whose results come through a pipe, would look valid.
                None if first => {
                    return Err(Failure::usage(format!("'{name}': the input contains no result of a vegeta attack")));
                }
                None => {}
            }
        }
        (readers, first) = (open, false);
    }
    Ok(())
}
