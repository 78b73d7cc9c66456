//! Messages of gRPC reflection (`grpc.reflection.v1.ServerReflection`, and its predecessor
//! `v1alpha`): encodes requests and decodes responses. Each request is a separate streaming call
//! with one message in each direction.
//!
//! Not here: the code that sends the requests, and the connection.

use super::schema::{Schema, SchemaError};
use super::weight::{SCHEMA_MEMORY_BYTES_MAX, charge_descriptor, count_entries};
use plimsoll_model::grpc_message::{GrpcFramingError, GrpcMessages, write_message};
use plimsoll_model::library_panic;
use plimsoll_model::{GrpcStatus, ParseBudget};
use prost::Message;
use prost_types::FileDescriptorProto;
use std::collections::{BTreeMap, BTreeSet};

/// The HTTP/2 paths of the reflection method. The newer version of the protocol is first.
pub const REFLECTION_PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
/// The largest accepted number of descriptor files from one server.
const FILES_MAX: usize = 4_096;
/// The largest accepted total size of the descriptor files from one server, bytes (64 MiB).
const BYTES_MAX: usize = 64 << 20;
/// The largest accepted number of services of one server.
const SERVICES_MAX: usize = 4_096;

/// A reflection request. The optional host field is never sent.
#[derive(Clone, PartialEq, prost::Message)]
struct ReflectionRequest {
    #[prost(oneof = "ReflectionRequestKind", tags = "3, 4, 7")]
    kind: Option<ReflectionRequestKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum ReflectionRequestKind {
    #[prost(string, tag = "3")]
    FileByFilename(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReflectionResponse {
    #[prost(oneof = "ReflectionResponseKind", tags = "4, 6, 7")]
    kind: Option<ReflectionResponseKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum ReflectionResponseKind {
    #[prost(message, tag = "4")]
    ReflectedFiles(ReflectedFiles),
    #[prost(message, tag = "6")]
    ReflectedServices(ReflectedServices),
    #[prost(message, tag = "7")]
    Error(ReflectedError),
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReflectedFiles {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReflectedServices {
    #[prost(message, repeated, tag = "1")]
    services: Vec<ReflectedService>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReflectedService {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReflectedError {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// The reason why a reflection response is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReflectionError {
    /// The content is not a valid gRPC message.
    #[error(transparent)]
    Message(#[from] GrpcFramingError),
    /// The type of the response does not match the request.
    #[error("the server's reflection sent a response that does not match the request")]
    UnexpectedResponse,
    /// The server does not know the requested symbol or file (status `NOT_FOUND`).
    #[error("the server's reflection says: {0}")]
    NotFound(String),
    /// The server returned an error other than `NOT_FOUND`.
    #[error("the server's reflection says: {0}")]
    ServerError(String),
    /// The descriptors exceed [`FILES_MAX`] files or [`BYTES_MAX`] bytes.
    #[error("the server's reflection describes more than 4 096 files or 64 MiB")]
    DescriptorsTooLarge,
    /// The server lists more services than [`SERVICES_MAX`].
    #[error("the server's reflection lists {0} services, more than the maximum of 4 096")]
    TooManyServices(usize),
    /// The descriptors are invalid or contradict each other.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Collects the descriptors of a server, request by request: first the list of services, then the
/// files that define the services, then imported files.
#[derive(Debug, Default)]
pub struct DescriptorCollector {
    /// The encoded descriptors by file name.
    files: BTreeMap<String, Vec<u8>>,
    bytes: usize,
    /// The remaining memory budget of all descriptors.
    budget: DescriptorBudget,
    /// The symbols that are still to be requested.
    symbols: BTreeSet<String>,
    /// The imported files that are still to be requested.
    imports: BTreeSet<String>,
    /// The imported files that were ever queued, so that no file is requested twice.
    queued_imports: BTreeSet<String>,
    /// The last request, whose response has not arrived yet. Before the first request, the field
    /// may contain the request for the list of services, which is not sent yet.
    pending_request: Option<ReflectionRequestKind>,
}

/// The memory budget of a server's descriptors, initially [`SCHEMA_MEMORY_BYTES_MAX`] bytes.
#[derive(Debug)]
struct DescriptorBudget(ParseBudget);

impl Default for DescriptorBudget {
    fn default() -> DescriptorBudget {
        DescriptorBudget(ParseBudget::new(SCHEMA_MEMORY_BYTES_MAX))
    }
}

impl DescriptorCollector {
    /// Returns a collector that requests only the descriptors of the services `names`.
    pub fn for_services<'a>(names: impl Iterator<Item = &'a str>) -> DescriptorCollector {
        DescriptorCollector { symbols: names.map(str::to_owned).collect(), ..DescriptorCollector::default() }
    }

    /// Returns a collector that first requests the list of services, and then the descriptors of
    /// all services.
    pub fn for_all_services() -> DescriptorCollector {
        DescriptorCollector {
            pending_request: Some(ReflectionRequestKind::ListServices(String::new())),
            ..DescriptorCollector::default()
        }
    }

    /// Returns the next request, encoded as the content of a call. `None` means that all
    /// descriptors are known.
    pub fn next_request(&mut self) -> Option<Vec<u8>> {
        let asked = match self.pending_request.take() {
            // The list of services is requested once, before all other requests.
            Some(all @ ReflectionRequestKind::ListServices(_)) => all,
            _ => match (self.symbols.pop_first(), self.imports.pop_first()) {
                (Some(symbol), import) => {
                    self.imports.extend(import);
                    ReflectionRequestKind::FileContainingSymbol(symbol)
                }
                (None, Some(import)) => ReflectionRequestKind::FileByFilename(import),
                (None, None) => return None,
            },
        };
        self.pending_request = Some(asked.clone());
        let mut content = Vec::new();
        write_message(&ReflectionRequest { kind: Some(asked) }.encode_to_vec(), false, &mut content);
        Some(content)
    }

    /// Decodes the response to the last request and queues the files that its descriptors import.
    pub fn take_response(&mut self, content: &[u8]) -> Result<(), ReflectionError> {
        let last = self.pending_request.take();
        let message = GrpcMessages::new(content).next().ok_or(ReflectionError::UnexpectedResponse)??;
        let services = count_entries(message, &[6, 1]);
        if services > SERVICES_MAX {
            return Err(ReflectionError::TooManyServices(services));
        }
        if count_entries(message, &[4, 1]) > FILES_MAX {
            return Err(ReflectionError::DescriptorsTooLarge);
        }
        let answer = ReflectionResponse::decode(message).map_err(|_| ReflectionError::UnexpectedResponse)?;
        match (last, answer.kind) {
            (_, Some(ReflectionResponseKind::Error(ReflectedError { code, message }))) => {
                let said = if message.is_empty() { format!("error {code}") } else { message };
                let is_not_found = code == GrpcStatus::NotFound as i32;
                Err(if is_not_found { ReflectionError::NotFound(said) } else { ReflectionError::ServerError(said) })
            }
            (Some(ReflectionRequestKind::ListServices(_)), Some(ReflectionResponseKind::ReflectedServices(list))) => {
                self.symbols.extend(list.services.into_iter().map(|service| service.name).take(SERVICES_MAX));
                Ok(())
            }
            (
                Some(ReflectionRequestKind::FileByFilename(_) | ReflectionRequestKind::FileContainingSymbol(_)),
                Some(ReflectionResponseKind::ReflectedFiles(list)),
            ) => list.files.into_iter().try_for_each(|file| self.add_file_descriptor(file)),
            _ => Err(ReflectionError::UnexpectedResponse),
        }
    }

    fn add_file_descriptor(&mut self, bytes: Vec<u8>) -> Result<(), ReflectionError> {
        let bytes = charge_descriptor(&bytes, &mut self.budget.0).map_err(SchemaError::from)?;
        let file = library_panic::catch_library_panic("gRPC service descriptors", || {
            FileDescriptorProto::decode(bytes.as_slice())
        });
        let file = file.map_err(SchemaError::from)?.map_err(|_| ReflectionError::UnexpectedResponse)?;
        let name = file.name().to_owned();
        if self.files.contains_key(&name) {
            return Ok(());
        }
        self.bytes += bytes.len();
        if self.files.len() >= FILES_MAX || self.bytes > BYTES_MAX {
            return Err(ReflectionError::DescriptorsTooLarge);
        }
        self.imports.remove(&name);
        for import in file.dependency {
            if !self.files.contains_key(&import) && self.queued_imports.insert(import.clone()) {
                self.imports.insert(import);
            }
        }
        self.files.insert(name, bytes);
        Ok(())
    }

    /// Builds the schema from all collected descriptors.
    pub fn schema(self) -> Result<Schema, ReflectionError> {
        let files: Vec<Vec<u8>> = self.files.into_values().collect();
        Ok(Schema::from_files(&files)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode_response(answered: ReflectionResponseKind) -> Vec<u8> {
        let mut content = Vec::new();
        write_message(&ReflectionResponse { kind: Some(answered) }.encode_to_vec(), false, &mut content);
        content
    }

    fn encode_descriptor(name: &str, imports: &[&str], package: &str, message: &str) -> Vec<u8> {
        let dependency = imports.iter().map(|name| (*name).to_owned()).collect();
        let message = prost_types::DescriptorProto { name: Some(message.into()), ..Default::default() };
        FileDescriptorProto {
            name: Some(name.into()),
            package: Some(package.into()),
            dependency,
            message_type: vec![message],
            syntax: Some("proto3".into()),
            ..Default::default()
        }
        .encode_to_vec()
    }

    #[test]
    fn each_imported_file_is_requested_once() {
        let mut learner = DescriptorCollector::for_services(["a.A"].into_iter());
        assert!(learner.next_request().is_some());
        learner
            .take_response(&encode_response(ReflectionResponseKind::ReflectedFiles(ReflectedFiles {
                files: vec![encode_descriptor("a", &["b", "c"], "a", "A")],
            })))
            .expect("a");
        assert!(learner.next_request().is_some());
        learner
            .take_response(&encode_response(ReflectionResponseKind::ReflectedFiles(ReflectedFiles {
                files: vec![encode_descriptor("b", &["c"], "b", "B")],
            })))
            .expect("b");
        assert!(learner.next_request().is_some());
        learner
            .take_response(&encode_response(ReflectionResponseKind::ReflectedFiles(ReflectedFiles {
                files: vec![encode_descriptor("c", &[], "c", "C")],
            })))
            .expect("c");
        assert_eq!(learner.next_request(), None);
        assert!(learner.schema().is_ok());
    }

    #[test]
    fn endless_imports_end_reflection() {
        let mut learner = DescriptorCollector::for_all_services();
        assert!(learner.next_request().is_some());
        let services = vec![ReflectedService { name: "x.X".into() }];
        learner
            .take_response(&encode_response(ReflectionResponseKind::ReflectedServices(ReflectedServices { services })))
            .expect("a list");
        let mut number = 0;
        let error = loop {
            assert!(learner.next_request().is_some() && number < 10_000);
            let (name, next) = (number.to_string(), (number + 1).to_string());
            let files = vec![encode_descriptor(&name, &[&next], "x", &format!("M{number}"))];
            number += 1;
            if let Err(error) = learner
                .take_response(&encode_response(ReflectionResponseKind::ReflectedFiles(ReflectedFiles { files })))
            {
                break error;
            }
        };
        assert_eq!(error, ReflectionError::DescriptorsTooLarge);
    }

    #[test]
    fn server_descriptions_are_bounded_and_never_panic() {
        let ask = |learner: &mut DescriptorCollector, answered| {
            assert!(learner.next_request().is_some());
            learner.take_response(&encode_response(answered))
        };
        let services = vec![ReflectedService { name: String::new() }; SERVICES_MAX + 1];
        let listed = ReflectionResponseKind::ReflectedServices(ReflectedServices { services });
        assert_eq!(
            ask(&mut DescriptorCollector::for_all_services(), listed),
            Err(ReflectionError::TooManyServices(SERVICES_MAX + 1))
        );
        // An empty message takes two bytes when encoded, but more than a thousand bytes in memory.
        let mut many = encode_descriptor("a", &[], "a", "A");
        many.extend(b"\x22\0".repeat(2 << 20));
        let described = ReflectionResponseKind::ReflectedFiles(ReflectedFiles { files: vec![many] });
        let error = ask(&mut DescriptorCollector::for_services(["a.A"].into_iter()), described).expect_err("refused");
        assert!(matches!(error, ReflectionError::Schema(SchemaError::SchemaTooLarge(_))), "{error}");
        // The descriptor library itself would panic on an unknown syntax.
        let mut unknown = FileDescriptorProto::decode(&*encode_descriptor("a", &[], "a", "A")).expect("a file");
        unknown.syntax = Some("proto4".into());
        let described = ReflectionResponseKind::ReflectedFiles(ReflectedFiles { files: vec![unknown.encode_to_vec()] });
        let mut learner = DescriptorCollector::for_services(["a.A"].into_iter());
        assert_eq!(ask(&mut learner, described), Ok(()));
        let error = learner.schema().expect_err("refused").to_string();
        assert!(error.contains("'proto4'"), "{error}");
    }

    #[test]
    fn invalid_reflection_responses_are_reported() {
        let check = |content: &[u8], error: ReflectionError| {
            let mut learner = DescriptorCollector::for_services(["a.A"].into_iter());
            learner.next_request();
            assert_eq!(learner.take_response(content), Err(error));
        };
        check(b"", ReflectionError::UnexpectedResponse);
        check(&[0, 0, 0, 0, 9], ReflectionError::Message(GrpcFramingError::Cut));
        check(
            &encode_response(ReflectionResponseKind::ReflectedServices(ReflectedServices::default())),
            ReflectionError::UnexpectedResponse,
        );
        let said = ReflectedError { code: 5, message: "no such symbol".into() };
        check(
            &encode_response(ReflectionResponseKind::Error(said)),
            ReflectionError::NotFound("no such symbol".into()),
        );
        let said = ReflectedError { code: 7, message: String::new() };
        check(&encode_response(ReflectionResponseKind::Error(said)), ReflectionError::ServerError("error 7".into()));
    }
}
