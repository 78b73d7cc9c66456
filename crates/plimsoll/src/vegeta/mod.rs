//! `plimsoll vegeta`: attacks, what vegeta's results say in the shape of its own reports, and their encodings. Results are read as they
//! come, however many there are.
//!
//! Not here: the encodings and figures themselves (`plimsoll_traffic::vegeta`), flags as Go reads them (`words`), layout (`printed`).

mod attack;
mod printed;
mod words;

use crate::failure::{Failure, exit};
use crate::output;
use crate::target::system_text;
use plimsoll_traffic::vegeta::{VegetaFigures, VegetaReader, VegetaResult};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use words::{EncodeAsked, ReportAsked, ReportShape, VegetaAsked, understood};

const USAGE: &str = "Usage: plimsoll vegeta <command> [flags] [FILE...]

attack: targets in turn at a rate, and a JSON result for each
  -targets FILE, -format http|json, -lazy -body FILE, -header 'Name: value'
  -rate 50/1s, -duration 5s, -timeout 30s, -max-workers N (for -rate 0)
  -max-connections N, -keepalive=false, -insecure, -cert, -key, -root-certs
  -laddr IP, -unix-socket PATH, -max-body N, -name NAME, -output FILE
  -allow-public                           load on addresses that are not private
report: what results say
  -type text|json|hist[BUCKETS]|hdrplot   their shape [default: text]
  -buckets '[0,1ms,10ms]'                 for -type json or hist
  -output FILE                            [default: stdout]
encode: results in another encoding
  -to json|csv                            [default: json]
  -output FILE                            [default: stdout]

Results come from the files named, or from stdin: JSON, CSV or gob.
";

/// Carries out what the words after the name ask for.
pub fn carry_out(words: &[String]) -> Result<u8, Failure> {
    match understood(words).map_err(Failure::usage)? {
        VegetaAsked::Usage => output::print(USAGE),
        VegetaAsked::Attack(asked) => return attack::carry_out(*asked),
        VegetaAsked::Report(asked) => report(&asked)?,
        VegetaAsked::Encode(asked) => encode(&asked)?,
    }
    Ok(exit::DONE)
}

fn report(asked: &ReportAsked) -> Result<(), Failure> {
    let mut figures = VegetaFigures::new(&asked.buckets_ns);
    each_result(&asked.files, &mut |result| {
        figures.add(&result);
        Ok(())
    })?;
    let text = match asked.shape {
        ReportShape::Text => printed::text(&mut figures),
        ReportShape::Json => printed::json(&mut figures),
        ReportShape::Histogram => printed::histogram(&figures),
        ReportShape::Plot => printed::plot(&mut figures),
    };
    match &asked.output {
        None => output::print(&text),
        Some(path) => std::fs::write(path, text).map_err(|error| unwritten(path, &error))?,
    }
    Ok(())
}

fn encode(asked: &EncodeAsked) -> Result<(), Failure> {
    let (mut out, place): (Box<dyn Write>, &str) = match &asked.output {
        None => (Box::new(std::io::stdout().lock()), "stdout"),
        Some(path) => (Box::new(File::create(path).map_err(|error| unwritten(path, &error))?), path),
    };
    let mut out = BufWriter::new(&mut out);
    let mut line = Vec::new();
    each_result(&asked.files, &mut |result| {
        line.clear();
        match asked.csv {
            true => result.write_csv(&mut line),
            false => result.write_json(&mut line),
        }
        out.write_all(&line).map_err(|error| unwritten(place, &error))
    })?;
    out.flush().map_err(|error| unwritten(place, &error))
}

fn unwritten(place: &str, error: &std::io::Error) -> Failure {
    Failure::start(format!("'{place}' cannot be written: {}", system_text(error)))
}

/// Hands over the results of all files, one of each in turn; of standard input where no file is named.
fn each_result(files: &[String], each: &mut dyn FnMut(VegetaResult) -> Result<(), Failure>) -> Result<(), Failure> {
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
    while !readers.is_empty() {
        let mut open = Vec::with_capacity(readers.len());
        for (name, mut reader) in readers {
            let result = reader.next_result().map_err(|error| Failure::usage(format!("'{name}': {error}")))?;
            if let Some(result) = result {
                each(result)?;
                open.push((name, reader));
            }
        }
        readers = open;
    }
    Ok(())
}
