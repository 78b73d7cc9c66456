//! Encodes and decodes vegeta's results as CSV rows. The columns are: send time, status code,
//! latency, bytes out, bytes in, error, body, attack, number, method, URL, header fields. Values
//! are quoted as in Go's package `encoding/csv`.

use super::base64::{read_base64, write_base64};
use super::result::VegetaResult;
use std::io::Write;

/// The fewest columns of a row. Early versions of vegeta wrote fewer columns than current versions.
const COLUMNS_MIN: usize = 9;

/// Returns whether a row is complete: its last line break is not within quotation marks.
pub(super) fn is_complete_row(line: &[u8]) -> bool {
    line.iter().filter(|byte| **byte == b'"').count() % 2 == 0
}

pub(super) fn read(line: &[u8]) -> Result<VegetaResult, &'static str> {
    let columns = parse_columns(line).ok_or("the quotation marks of the CSV row do not match")?;
    if columns.len() < COLUMNS_MIN {
        return Err("the CSV row has too few columns");
    }
    let text = |at: usize| columns.get(at).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let number = |at: usize| text(at).parse::<u64>().map_err(|_| "a numeric column of the CSV row contains no number");
    let base64 = |at: usize| {
        let text = columns.get(at).map(Vec::as_slice).unwrap_or_default();
        read_base64(text).ok_or("the body or the headers of the CSV row are not valid base64")
    };
    Ok(VegetaResult {
        sent_ns: number(0)?,
        code: u16::try_from(number(1)?).map_err(|_| "the status code of the CSV row is not valid")?,
        latency_ns: number(2)?,
        bytes_out: number(3)?,
        bytes_in: number(4)?,
        error: text(5),
        body: base64(6)?,
        attack: text(7),
        seq: number(8)?,
        method: text(9),
        url: text(10),
        headers: parse_header_fields(&base64(11)?),
    })
}

fn parse_columns(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (mut columns, mut column, mut quoted) = (Vec::new(), Vec::new(), false);
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if quoted && bytes.next_if_eq(&b'"').is_some() => column.push(b'"'),
            b'"' if quoted => quoted = false,
            b'"' if column.is_empty() => quoted = true,
            b'"' => return None,
            b',' if !quoted => columns.push(std::mem::take(&mut column)),
            byte => column.push(byte),
        }
    }
    columns.push(column);
    (!quoted).then_some(columns)
}

/// Parses header fields, and collects the values of each name.
fn parse_header_fields(head: &[u8]) -> Vec<(String, Vec<String>)> {
    let mut fields: Vec<(String, Vec<String>)> = Vec::new();
    for line in String::from_utf8_lossy(head).lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim().to_owned();
        match fields.iter_mut().find(|(other, _)| other == name) {
            Some((_, values)) => values.push(value),
            None => fields.push((name.to_owned(), vec![value])),
        }
    }
    fields
}

impl VegetaResult {
    /// Appends the result to `out` as a CSV row.
    pub(super) fn write_csv(&self, out: &mut Vec<u8>) {
        let VegetaResult {
            attack,
            seq,
            code,
            sent_ns,
            latency_ns,
            bytes_out,
            bytes_in,
            error,
            body,
            method,
            url,
            headers,
        } = self;
        let _ = write!(out, "{sent_ns},{code},{latency_ns},{bytes_out},{bytes_in},");
        write_quoted_column(error, out);
        out.push(b',');
        write_base64(body, out);
        out.push(b',');
        write_quoted_column(attack, out);
        let _ = write!(out, ",{seq},");
        write_quoted_column(method, out);
        out.push(b',');
        write_quoted_column(url, out);
        out.push(b',');
        let mut head = String::new();
        let mut in_order: Vec<_> = headers.iter().collect();
        in_order.sort();
        for (name, values) in in_order {
            values.iter().for_each(|value| head.extend([name, ": ", value, "\r\n"]));
        }
        if !head.is_empty() {
            head += "\r\n";
        }
        write_base64(head.as_bytes(), out);
        out.push(b'\n');
    }
}

fn write_quoted_column(text: &str, out: &mut Vec<u8>) {
    let needs = text.starts_with(char::is_whitespace) || text.contains(['"', ',', '\r', '\n']) || text == "\\.";
    if !needs {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}
