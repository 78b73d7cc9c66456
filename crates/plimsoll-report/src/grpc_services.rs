//! Renders the services of a gRPC server as text: their methods, and an example request body for
//! each method.
//!
//! Not here: fetching descriptors from the server (`plimsoll-study`), and decoding them
//! (`plimsoll-traffic`).

use crate::visible_controls::escape_to_one_line;
use plimsoll_traffic::grpc::{Schema, SchemaError};
use std::fmt::Write;

/// Lists the methods of the gRPC service `service`, or of all services if `service` is empty.
///
/// # Errors
/// Returns an error if the service does not exist.
pub fn services_list(schema: &Schema, service: &str) -> Result<String, SchemaError> {
    let mut text = String::new();
    for service in requested_services(schema, service) {
        let _ = writeln!(text, "{service}");
        schema.describe_methods(&service)?.iter().for_each(|line| _ = writeln!(text, "  {line}"));
    }
    escaped_text_or_error(schema, text, service, "")
}

/// Describes the methods of a service, or only `method` if `method` is not empty. For each method
/// the text has its messages, and a command line with an example body. `origin` is the URL of the
/// server.
///
/// # Errors
/// Returns an error if the service or the method does not exist.
pub fn describe_services(
    schema: &Schema,
    service: &str,
    method: &str,
    origin: impl std::fmt::Display,
) -> Result<String, SchemaError> {
    let mut text = String::new();
    for service in requested_services(schema, service) {
        for line in schema.describe_methods(&service)? {
            let name = line.split('(').next().unwrap_or_default();
            if !method.is_empty() && name != method {
                continue;
            }
            let path = format!("/{service}/{name}");
            let described = schema.method(&path)?;
            let _ = writeln!(text, "{service}.{line}\n{}", described.describe_fields());
            let _ = writeln!(text, "plimsoll run {origin}{path} -b '{}'\n", described.example());
        }
    }
    escaped_text_or_error(schema, text, service, method)
}

fn requested_services(schema: &Schema, service: &str) -> Vec<String> {
    if service.is_empty() { schema.services() } else { vec![service.to_owned()] }
}

fn escaped_text_or_error(schema: &Schema, text: String, service: &str, method: &str) -> Result<String, SchemaError> {
    if text.is_empty() {
        // If the method does not exist, returns the error of the schema, which names the existing
        // methods.
        schema.method(&format!("/{service}/{method}"))?;
    }
    // The names of services and methods come from the server, so control characters in these names
    // must be made visible.
    let lines: Vec<String> = text.lines().map(|line| escape_to_one_line(line).into_owned()).collect();
    Ok(format!("{}\n", lines.join("\n").trim_end()))
}
