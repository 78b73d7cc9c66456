//! Encodes and decodes a result as one line of JSON, with the fields in vegeta's order.

use super::base64::{read_base64, write_base64};
use super::result::VegetaResult;
use super::timestamp::format_timestamp;
use plimsoll_model::timestamp::unix_time_ns;
use serde_json::Value;
use std::io::Write;

pub(super) fn read(line: &[u8]) -> Result<VegetaResult, &'static str> {
    let Ok(Value::Object(mut object)) = serde_json::from_slice(line) else {
        return Err("the line with the result is not a JSON object");
    };
    let mut text = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err("a field of the JSON result that must be a text, such as url, is not a text"),
    };
    let (attack, error, method, url) = (text("attack")?, text("error")?, text("method")?, text("url")?);
    let (body, stamp) = (text("body")?, text("timestamp")?);
    let number = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => {
            value.as_u64().ok_or("a field of the JSON result that must be a number, such as latency, is not a number")
        }
    };
    let mut headers = Vec::new();
    match object.get("headers") {
        None | Some(Value::Null) => {}
        Some(Value::Object(fields)) => {
            for (name, values) in fields {
                let values =
                    values.as_array().ok_or("the values of a header field of the JSON result are not a list")?;
                let values = values.iter().map(|value| value.as_str().map(str::to_owned));
                let values = values
                    .collect::<Option<Vec<_>>>()
                    .ok_or("the value of a header field of the JSON result is not a text")?;
                headers.push((name.clone(), values));
            }
        }
        Some(_) => return Err("the header fields of the JSON result are not an object"),
    }
    Ok(VegetaResult {
        attack,
        seq: number("seq")?,
        code: u16::try_from(number("code")?).map_err(|_| "the status code of the JSON result is not valid")?,
        sent_ns: match stamp.as_str() {
            "" => 0,
            stamp => unix_time_ns(stamp.as_bytes()).ok_or("the timestamp of the JSON result is not valid")?,
        },
        latency_ns: number("latency")?,
        bytes_out: number("bytes_out")?,
        bytes_in: number("bytes_in")?,
        error,
        body: read_base64(body.as_bytes()).ok_or("the body of the JSON result is not valid base64")?,
        method,
        url,
        headers,
    })
}

impl VegetaResult {
    /// Appends the result to `out` as a line of JSON.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
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
        let text = |text: &str| Value::from(text).to_string();
        let _ = write!(
            out,
            "{{\"attack\":{},\"seq\":{seq},\"code\":{code},\"timestamp\":\"{}\",\"latency\":{latency_ns},\
             \"bytes_out\":{bytes_out},\"bytes_in\":{bytes_in},\"error\":{},\"body\":",
            text(attack),
            format_timestamp(*sent_ns),
            text(error),
        );
        // An empty body is null, as in vegeta's own conversion from gob to JSON.
        if body.is_empty() {
            out.extend_from_slice(b"null");
        } else {
            out.push(b'"');
            write_base64(body, out);
            out.push(b'"');
        }
        let _ = write!(out, ",\"method\":{},\"url\":{},\"headers\":", text(method), text(url));
        let fields: serde_json::Map<String, Value> =
            headers.iter().map(|(name, values)| (name.clone(), Value::from(values.clone()))).collect();
        let fields = if fields.is_empty() { Value::Null } else { Value::Object(fields) };
        let _ = writeln!(out, "{fields}}}");
    }
}
