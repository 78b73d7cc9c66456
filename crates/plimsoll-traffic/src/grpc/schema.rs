//! Builds the services, methods and message types of gRPC from any source of descriptors.

use super::any;
use super::editions::{self, is_added_zero};
use super::example::{example_json, message_definition};
use super::weight::{SCHEMA_MEMORY_BYTES_MAX, charge_descriptor, charge_proto_text};
use super::work::{DescriptorLinkBudget, IMPORTS_DEPTH_MAX};
use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_model::grpc_message::write_message;
use plimsoll_model::library_panic::{self, LibraryPanic};
use plimsoll_model::{BudgetError, ParseBudget};
use prost::Message;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    SerializeOptions, ServiceDescriptor,
};
use prost_types::FileDescriptorProto;
use prost_types::source_code_info::Location;
use protox::file::{File, FileResolver, GoogleFileResolver};
use std::collections::HashSet;
use std::io::Write;

/// The longest accepted gRPC message, bytes (64 MiB). Servers accept 4 MB by default, and plimsoll
/// keeps each request body in memory.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The largest number of similar names that an error message suggests for an unknown name.
const SUGGESTED_NAMES_MAX: usize = 3;
/// The longest name that is compared for suggestions, bytes. The time to compare two names grows
/// with the product of their lengths.
const COMPARED_NAME_BYTES_MAX: usize = 200;
/// The largest number of names that are compared for suggestions. An error message about a larger
/// schema states only the number of names.
const COMPARED_NAMES_MAX: usize = 10_000;
/// The largest accepted number of files in one schema. The limit on files bounds the time to look
/// up each import by name.
const FILES_MAX: usize = 20_000;
/// The field number of `dependency`, the list of imports, in `FileDescriptorProto`.
const DEPENDENCY_FIELD_NUMBER: i32 = 3;
/// The field numbers of key and value in a map entry (descriptor.proto, `map_entry`).
const MAP_KEY: u32 = 1;
const MAP_VALUE: u32 = 2;
/// The name of the input in the error message if a library panics while it reads descriptors.
const DESCRIPTORS_INPUT_NAME: &str = "gRPC service descriptors";
/// The name of the input in the error message if a library panics while it converts messages.
const MESSAGES_INPUT_NAME: &str = "messages of gRPC";
/// The longest JSON text of a decoded response, bytes. The limit is four times the content size
/// that expectations search, because the JSON text also contains the fields with default values.
const TEXT_BYTES_MAX: usize = 4 * plimsoll_model::expect::CONTENT_BYTES_MAX;
/// The accepted values of `syntax` in a file descriptor. A file with another syntax is rejected
/// before a library reads the file, because the library would panic.
const ACCEPTED_SYNTAXES: [&str; 3] = ["proto2", "proto3", "editions"];

/// The reason why a gRPC call cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A `.proto` file does not compile. The text is the compiler's message, with position and
    /// reason.
    #[error("{0}")]
    Proto(String),
    /// The compiled descriptor set is invalid or incomplete.
    #[error("these descriptors are not usable: {0}")]
    Descriptors(String),
    /// The path does not name a method.
    #[error("'{0}' is not a method: write /package.Service/Method")]
    InvalidPath(String),
    /// The schema has no service of this name.
    #[error("there is no service '{name}'; {near}")]
    UnknownService {
        /// The requested name.
        name: String,
        /// Similar existing names, as a clause such as "the known gRPC services are a.B".
        near: String,
    },
    /// The service exists but has no method of this name.
    #[error("{service} has no method '{name}'; {near}")]
    UnknownMethod {
        /// The full name of the service.
        service: String,
        /// The requested name.
        name: String,
        /// Similar existing names, as a clause such as "the known service methods are Get".
        near: String,
    },
    /// The body is not valid JSON.
    #[error("the body is no JSON: {0}")]
    InvalidJson(String),
    /// The JSON does not match the fields of the message type.
    #[error("the body does not fit {message}: {why}")]
    Body {
        /// The full name of the message type.
        message: String,
        /// The position of the mismatch in the JSON body, and the reason.
        why: String,
    },
    /// The method takes exactly one message, but the body has none or several.
    #[error("{method} takes one message, and the body has {count}")]
    MessageCount {
        /// The full name of the method.
        method: String,
        /// The number of messages in the body.
        count: usize,
    },
    /// A message exceeds [`MESSAGE_BYTES_MAX`]; the value is its size in bytes.
    #[error("the message has {0} bytes, more than 64 MiB")]
    MessageTooLong(usize),
    /// The descriptors exceed the memory budget.
    #[error("these descriptors exceed the maximum size: {0}")]
    SchemaTooLarge(#[from] BudgetError),
    /// A library panicked while it parsed the input.
    #[error(transparent)]
    Library(#[from] LibraryPanic),
}

/// A set of gRPC services with their message types.
#[derive(Debug, Clone)]
pub struct Schema(DescriptorPool);

/// A descriptor set (`FileDescriptorSet`) whose files are still encoded.
#[derive(Clone, PartialEq, prost::Message)]
struct FilesInSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

/// Compiles `.proto` files. The compiler library gets the files one by one and without source
/// positions. With source positions, the compiler library would search all positions for each
/// option and error.
struct ProtoFiles<F> {
    known: GoogleFileResolver,
    source_text: F,
    /// The remaining memory budget of all files.
    budget: ParseBudget,
    link_budget: DescriptorLinkBudget,
    pool: DescriptorPool,
    /// The names of the files under compilation, outermost first. An import of a file in this list
    /// is an import cycle.
    files_being_compiled: Vec<String>,
}

/// The source positions of the elements of a `.proto` file, sorted by descriptor path.
struct ProtoSourcePositions(Vec<Location>);

impl ProtoSourcePositions {
    fn take_from_file(file: &mut FileDescriptorProto) -> ProtoSourcePositions {
        ProtoSourcePositions(file.source_code_info.take().map(|info| info.location).unwrap_or_default())
    }

    /// Returns the position of an element as `name:line:column:`, or `name:` if the position is
    /// unknown.
    fn position_prefix(&self, name: &str, path: &[i32]) -> String {
        let found = self.0.binary_search_by(|location| location.path.as_slice().cmp(path));
        match found.ok().and_then(|found| self.0.get(found)).map(|location| location.span.as_slice()) {
            Some([line, column, ..]) => format!("{name}:{}:{}:", line + 1, column + 1),
            _ => format!("{name}:"),
        }
    }
}

impl<F: Fn(&str) -> Option<Result<String, String>>> ProtoFiles<F> {
    /// Parses the file `name` into a descriptor. `None` means that no file has this name.
    fn parse(&mut self, name: &str) -> Result<Option<FileDescriptorProto>, SchemaError> {
        let proto = |why: String| SchemaError::Proto(why);
        match (self.source_text)(name) {
            Some(Ok(text)) => {
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                charge_proto_text(text, &mut self.budget).map_err(proto)?;
                let translated = editions::rewrite_edition_as_proto3(name, text).map_err(proto)?;
                let of_edition = translated.is_some();
                let file = File::from_source(name, translated.as_deref().unwrap_or(text));
                let mut file = FileDescriptorProto::from(file.map_err(|error| proto(error_text(&error)))?);
                if of_edition {
                    editions::translate_parsed(&mut file);
                }
                Ok(Some(file))
            }
            Some(Err(why)) => Err(proto(why)),
            // The name may be a standard import that every compiler includes, such as
            // `google/protobuf/any.proto`.
            None => Ok(self.known.open_file(name).ok().map(FileDescriptorProto::from)),
        }
    }

    /// Compiles the file `name` after its imports. Returns whether the file exists.
    fn compile_with_imports(&mut self, name: &str) -> Result<bool, SchemaError> {
        if self.pool.get_file_by_name(name).is_some() {
            return Ok(true);
        }
        if self.files_being_compiled.iter().any(|open| open == name) {
            let cycle = format!("import cycle detected: {} -> {name}", self.files_being_compiled.join(" -> "));
            return Err(SchemaError::Proto(cycle));
        }
        if self.files_being_compiled.len() == IMPORTS_DEPTH_MAX {
            let text = format!("{name}: a chain of imports has more than {IMPORTS_DEPTH_MAX} files");
            return Err(SchemaError::Proto(text));
        }
        if self.pool.files().len() + self.files_being_compiled.len() >= FILES_MAX {
            return Err(SchemaError::Proto(format!("the .proto files import more than {FILES_MAX} files")));
        }
        let Some(mut file) = self.parse(name)? else { return Ok(false) };
        let places = ProtoSourcePositions::take_from_file(&mut file);
        self.files_being_compiled.push(name.to_owned());
        let mut imported = HashSet::new();
        for (number, import) in file.dependency.iter().enumerate() {
            let place = || places.position_prefix(name, &[DEPENDENCY_FIELD_NUMBER, number as i32]);
            if !imported.insert(import) {
                return Err(SchemaError::Proto(format!(
                    "{place} the .proto file lists the import '{import}' twice",
                    place = place()
                )));
            }
            if !self.compile_with_imports(import)? {
                return Err(SchemaError::Proto(format!("{} import '{import}' not found", place())));
            }
        }
        self.files_being_compiled.pop();
        self.link_budget.charge_files(std::slice::from_ref(&file)).map_err(SchemaError::Proto)?;
        self.pool.add_file_descriptor_proto(file).map_err(|error| {
            let begin = match (error.file(), error.path()) {
                (Some(file), Some(path)) if file == name => places.position_prefix(file, path),
                (file, _) => format!("{}:", file.unwrap_or(name)),
            };
            SchemaError::Proto(format!("{begin} {error}"))
        })?;
        Ok(true)
    }
}

impl Schema {
    /// Compiles `.proto` files. `text` returns the text of an imported file, or `None` if the file
    /// does not exist.
    pub fn from_protos(
        names: &[String],
        text: impl Fn(&str) -> Option<Result<String, String>> + 'static,
    ) -> Result<Schema, SchemaError> {
        let compile = || {
            let (known, pool, open) = (GoogleFileResolver::new(), DescriptorPool::new(), Vec::new());
            let (budget, work) = (ParseBudget::new(SCHEMA_MEMORY_BYTES_MAX), DescriptorLinkBudget::default());
            let mut files =
                ProtoFiles { known, source_text: text, budget, link_budget: work, pool, files_being_compiled: open };
            for name in names {
                if !files.compile_with_imports(name)? {
                    return Err(SchemaError::Proto(format!("the .proto file '{name}' does not exist")));
                }
            }
            Ok(Schema(files.pool))
        };
        library_panic::catch_library_panic("files of .proto", compile)?
    }

    /// Parses a compiled descriptor set (`protoc --include_imports -o FILE`).
    pub fn from_descriptor_set(bytes: &[u8]) -> Result<Schema, SchemaError> {
        let files = super::weight::count_entries(bytes, &[1]);
        if files > FILES_MAX {
            return Err(SchemaError::Descriptors(format!(
                "the descriptor set has {files} files, more than the maximum of {FILES_MAX}"
            )));
        }
        let set = FilesInSet::decode(bytes).map_err(|error| SchemaError::Descriptors(error.to_string()))?;
        Schema::from_files(&set.files)
    }

    /// Builds a schema from encoded descriptors of single files, in any order.
    pub fn from_files(files: &[Vec<u8>]) -> Result<Schema, SchemaError> {
        let descriptors = |error: &dyn std::fmt::Display| SchemaError::Descriptors(error.to_string());
        let mut budget = ParseBudget::new(SCHEMA_MEMORY_BYTES_MAX);
        let read = || {
            let mut read: Vec<FileDescriptorProto> = Vec::with_capacity(files.len());
            for bytes in files {
                let file = editions::decode_file_descriptor(&charge_descriptor(bytes, &mut budget)?)
                    .map_err(|error| descriptors(&error))?;
                if file.syntax.as_deref().is_some_and(|syntax| !ACCEPTED_SYNTAXES.contains(&syntax)) {
                    let syntax: String = file.syntax().chars().take(40).collect();
                    let error = format!(
                        "{file} is written in the protobuf syntax '{syntax}': plimsoll supports proto2, proto3 and \
                         editions",
                        file = file.name()
                    );
                    return Err(SchemaError::Descriptors(error));
                }
                read.push(file);
            }
            DescriptorLinkBudget::default().charge_files(&read).map_err(SchemaError::Descriptors)?;
            let mut pool = DescriptorPool::new();
            pool.add_file_descriptor_protos(read).map_err(|error| descriptors(&error))?;
            // The library reads map entries lazily and panics on an invalid entry, so all map
            // entries are checked here.
            for entry in pool.all_messages().filter(|message| message.is_map_entry()) {
                for number in [MAP_KEY, MAP_VALUE] {
                    if entry.get_field(number).is_none() {
                        let error = format!(
                            "{message} is an entry of a protobuf map, but has no field {number} (1 = key, 2 = value)",
                            message = entry.full_name()
                        );
                        return Err(SchemaError::Descriptors(error));
                    }
                }
            }
            Ok(Schema(pool))
        };
        library_panic::catch_library_panic(DESCRIPTORS_INPUT_NAME, read)?
    }

    /// Encodes all descriptors as one descriptor set.
    pub fn to_descriptor_set(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// Returns the full names of all services, sorted. gRPC's own services, such as reflection and
    /// health, come last.
    pub fn services(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.services().map(|service| service.full_name().to_owned()).collect();
        names.sort_by_key(|name| (name.starts_with("grpc."), name.clone()));
        names
    }

    /// Returns the methods of a service, each as one line with its message types.
    pub fn describe_methods(&self, service: &str) -> Result<Vec<String>, SchemaError> {
        let stream = |is_stream: bool| if is_stream { "stream " } else { "" };
        Ok(self
            .find_service(service)?
            .methods()
            .map(|method| {
                format!(
                    "{}({}{}) -> {}{}",
                    method.name(),
                    stream(method.is_client_streaming()),
                    method.input().full_name(),
                    stream(method.is_server_streaming()),
                    method.output().full_name()
                )
            })
            .collect())
    }

    fn find_service(&self, name: &str) -> Result<ServiceDescriptor, SchemaError> {
        self.0.get_service_by_name(name).ok_or_else(|| SchemaError::UnknownService {
            name: name.to_owned(),
            near: similar_names(name, self.services(), "gRPC services"),
        })
    }

    /// Returns the method of a path such as `/package.Service/Method`.
    pub fn method(&self, path: &str) -> Result<Method, SchemaError> {
        let named = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let (service, name) = named
            .filter(|(service, method)| !service.is_empty() && !method.is_empty())
            .ok_or_else(|| SchemaError::InvalidPath(path.to_owned()))?;
        let described = self.find_service(service)?;
        let found = described.methods().find(|method| method.name() == name);
        found.map(Method).ok_or_else(|| SchemaError::UnknownMethod {
            service: service.to_owned(),
            name: name.to_owned(),
            near: similar_names(
                name,
                described.methods().map(|method| method.name().to_owned()).collect(),
                "service methods",
            ),
        })
    }
}

/// Returns the compiler's error message with file, line and column. Only the `Debug` output of the
/// error contains the file, line and column.
fn error_text(error: &protox::Error) -> String {
    let (said, placed) = (error.to_string(), format!("{error:?}"));
    if placed.ends_with(&said) { placed } else { said }
}

/// Returns a clause that lists the existing names, most similar to `name` first. `name_kind` is the
/// plural noun for the named things, such as "gRPC services".
fn similar_names(name: &str, mut names: Vec<String>, name_kind: &str) -> String {
    // Each name is split into pairs of neighbouring letters, with marks for the begin and end of
    // the name.
    let parts = |text: &str| -> Vec<[u8; 2]> {
        let text = format!("^{}$", text.to_ascii_lowercase());
        text.as_bytes().windows(2).map(|pair| [pair[0], pair[1]]).collect()
    };
    let wanted = parts(name);
    if name.len() > COMPARED_NAME_BYTES_MAX || names.len() > COMPARED_NAMES_MAX {
        return format!("the gRPC schema has {count} other {name_kind}", count = names.len());
    }
    names.retain(|other| other.len() <= COMPARED_NAME_BYTES_MAX);
    // The similarity of two names is the share of letter pairs that occur in both names.
    names.sort_by_cached_key(|other| {
        let have = parts(other);
        let common = wanted.iter().filter(|pair| have.contains(pair)).count();
        std::cmp::Reverse(1_000 * common / (wanted.len() + have.len()))
    });
    // If the list would omit exactly one name, the list shows that name and not the words "and 1
    // more".
    let shown = if names.len() == SUGGESTED_NAMES_MAX + 1 { SUGGESTED_NAMES_MAX + 1 } else { SUGGESTED_NAMES_MAX };
    let left = names.len().saturating_sub(shown);
    names.truncate(shown);
    match (names.as_slice(), left) {
        ([], _) => format!("the gRPC schema has no {name_kind}"),
        (names, 0) => format!("the known {name_kind} are {known_names}", known_names = names.join(", ")),
        (names, further_count) => {
            format!("the known {name_kind} are {known_names} and {further_count} more", known_names = names.join(", "))
        }
    }
}

/// A gRPC method with its request and response types.
#[derive(Debug, Clone)]
pub struct Method(MethodDescriptor);

impl Method {
    /// Returns whether the client sends a stream of messages.
    pub fn has_client_stream(&self) -> bool {
        self.0.is_client_streaming()
    }

    /// Returns whether the server returns a stream of messages.
    pub fn has_server_stream(&self) -> bool {
        self.0.is_server_streaming()
    }

    /// Encodes a JSON body as gRPC messages, compressed if `gzip` is set. A JSON object becomes one
    /// message. A JSON list becomes several messages, for a method with a client stream. An empty
    /// body becomes a message without fields.
    pub fn encode_messages(&self, body: &[u8], gzip: bool) -> Result<Vec<u8>, SchemaError> {
        library_panic::catch_library_panic(MESSAGES_INPUT_NAME, || self.encode(body, gzip))?
    }

    fn encode(&self, body: &[u8], gzip: bool) -> Result<Vec<u8>, SchemaError> {
        let write = |message: &[u8], content: &mut Vec<u8>| match gzip {
            true => write_message(&gzip_compress(message), true, content),
            false => write_message(message, false, content),
        };
        let input = self.0.input();
        let unfit = |why: String| SchemaError::Body { message: input.full_name().to_owned(), why };
        let text = std::str::from_utf8(body).map_err(|_| unfit("the request body is not UTF-8 text".into()))?;
        let text = if text.trim().is_empty() { "{}" } else { text };
        let mut content = Vec::new();
        if !text.trim_start().starts_with('[') {
            write(&encode_message(&input, text, None)?, &mut content);
            return Ok(content);
        }
        let list: Vec<&serde_json::value::RawValue> =
            serde_json::from_str(text).map_err(|error| SchemaError::InvalidJson(error.to_string()))?;
        if !self.has_client_stream() && list.len() != 1 {
            return Err(SchemaError::MessageCount { method: self.0.full_name().to_owned(), count: list.len() });
        }
        for (number, one) in list.into_iter().enumerate() {
            write(&encode_message(&input, one.get(), Some(number))?, &mut content);
        }
        Ok(content)
    }

    /// Decodes a response message and appends it to `json`. The JSON has all fields, also fields
    /// with default values, and 64-bit numbers are JSON numbers.
    pub fn append_response_json(&self, message: &[u8], json: &mut Vec<u8>) -> Result<(), SchemaError> {
        let unfit = |why: String| SchemaError::Body { message: self.0.output().full_name().to_owned(), why };
        let write = || {
            let message = DynamicMessage::decode(self.0.output(), message).map_err(|error| unfit(error.to_string()))?;
            let options = SerializeOptions::new().skip_default_fields(false).stringify_64_bit_integers(false);
            let from = json.len();
            let text = BoundedText(&mut *json);
            let written = message.serialize_with_options(&mut serde_json::Serializer::new(text), &options);
            let Err(error) = written else { return Ok(()) };
            json.truncate(from);
            match any::serialize_with_empty_any(message, &options) {
                Some(text) => {
                    json.extend_from_slice(text.as_bytes());
                    Ok(())
                }
                None => Err(unfit(error.to_string())),
            }
        };
        library_panic::catch_library_panic(MESSAGES_INPUT_NAME, write)?
    }

    /// Returns an example request body in JSON with the fields of the request type. For a method
    /// with a client stream, the body is a list with one message.
    pub fn example(&self) -> String {
        let one = library_panic::catch_library_panic(DESCRIPTORS_INPUT_NAME, || example_json(&self.0.input()))
            .unwrap_or_else(|_| "{}".to_owned());
        if self.has_client_stream() { format!("[{one}]") } else { one }
    }

    /// Returns the fields of the request and response types, as readable text.
    pub fn describe_fields(&self) -> String {
        let text = || {
            let (input, output) = (self.0.input(), self.0.output());
            if input == output {
                message_definition(&input)
            } else {
                format!("{}\n{}", message_definition(&input), message_definition(&output))
            }
        };
        library_panic::catch_library_panic(DESCRIPTORS_INPUT_NAME, text).unwrap_or_else(|panic| panic.to_string())
    }
}

/// A writer that fails once a response's JSON exceeds [`TEXT_BYTES_MAX`]. A short encoded message
/// can have a very long JSON text.
struct BoundedText<'a>(&'a mut Vec<u8>);

impl Write for BoundedText<'_> {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + piece.len() > TEXT_BYTES_MAX {
            return Err(std::io::Error::other("the JSON text of the response exceeds the size limit"));
        }
        self.0.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn gzip_compress(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(message);
    encoder.finish().unwrap_or_default()
}

/// Encodes one JSON message as protobuf. `number` is the message's index in a list, for errors.
fn encode_message(message: &MessageDescriptor, text: &str, number: Option<usize>) -> Result<Vec<u8>, SchemaError> {
    let mut json = serde_json::Deserializer::from_str(text);
    // Tracks the field path, so that errors name the field as well as line and column.
    let mut track = serde_path_to_error::Track::new();
    let path = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let read = DynamicMessage::deserialize(message.clone(), path);
    // The library rejects an empty `Any`, which is `{}` in JSON, so a message with an empty `Any`
    // is parsed separately.
    let empty = read.as_ref().err().filter(|error| error.to_string().contains("@type"));
    if let Some(read) = empty.and_then(|_| any::parse_with_empty_any(message, text)) {
        return check_message_length(read.encode_to_vec());
    }
    let read = match read {
        Ok(read) => json.end().map(|()| read).map_err(|error| SchemaError::InvalidJson(error.to_string())),
        Err(error) if !error.is_data() => Err(SchemaError::InvalidJson(error.to_string())),
        Err(error) => {
            let (path, said) = (track.path(), error.to_string());
            let place = path.to_string();
            let place = if place == "." { String::new() } else { place };
            // The line and column of the error count from the start of one message, so the index of
            // that message is added.
            let place = match (number, place.as_str()) {
                (None, "") => String::new(),
                (None, place) => format!("at {place}: "),
                (Some(number), "") => format!("at [{number}]: "),
                (Some(number), place) => format!("at [{number}].{place}: "),
            };
            let wanted = if said.contains("expected") { None } else { describe_expected_value(message, &path, &said) };
            let wanted = wanted.map_or_else(String::new, |wanted| format!(" ({wanted})"));
            Err(SchemaError::Body { message: message.full_name().to_owned(), why: format!("{place}{said}{wanted}") })
        }
    };
    check_message_length(read?.encode_to_vec())
}

fn check_message_length(bytes: Vec<u8>) -> Result<Vec<u8>, SchemaError> {
    if bytes.len() > MESSAGE_BYTES_MAX { Err(SchemaError::MessageTooLong(bytes.len())) } else { Ok(bytes) }
}

/// Describes the value that is expected at `path` in a message: similar names for an unknown field
/// or enum value, or a type. `said` is the error text of the protobuf library.
fn describe_expected_value(
    message: &MessageDescriptor,
    path: &serde_path_to_error::Path,
    said: &str,
) -> Option<String> {
    use serde_path_to_error::Segment;
    let mut kind = Kind::Message(message.clone());
    // The list or map field that contains the next segment of the path.
    let mut holder: Option<FieldDescriptor> = None;
    for segment in path {
        match (segment, holder.take()) {
            (Segment::Map { .. }, Some(map)) if map.is_map() => {
                let Kind::Message(entry) = map.kind() else { return None };
                kind = entry.map_entry_value_field().kind();
            }
            (Segment::Seq { .. }, Some(list)) => kind = list.kind(),
            (Segment::Map { key } | Segment::Enum { variant: key }, None) => {
                let Kind::Message(of) = &kind else { return None };
                let Some(field) = of.get_field_by_json_name(key).or_else(|| of.get_field_by_name(key)) else { break };
                kind = field.kind();
                holder = (field.is_map() || field.cardinality() == Cardinality::Repeated).then_some(field);
            }
            _ => return None,
        }
    }
    match kind {
        Kind::Message(of) => {
            let name = said.split('\'').nth(1).filter(|_| said.contains("field name"))?;
            let names = of.fields().map(|field| field.json_name().to_owned()).collect();
            Some(similar_names(name, names, "message fields"))
        }
        Kind::Enum(of) => {
            let name = said.split('\'').nth(1).unwrap_or_default();
            let names = of.values().map(|value| value.name().to_owned()).filter(|name| !is_added_zero(name));
            Some(similar_names(name, names.collect(), "enum values"))
        }
        simple => Some(format!("{} is expected", format!("{simple:?}").to_ascii_lowercase())),
    }
}
