//! Translates protobuf editions to proto2 and proto3, the syntaxes that the descriptor library
//! supports. In a protobuf edition, settings called features replace the proto2 or proto3 syntax. A
//! feature applies to the element that sets the feature, and to all elements inside that element
//! ([features of each edition](https://protobuf.dev/editions/features/)).
//!
//! Compiled descriptors contain features as numbers. Parsed `.proto` texts contain features as
//! uninterpreted options ([`take_features`]). Not here: features without effect on the wire or in
//! JSON (text validation, names, code style).

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FieldOptions, FileDescriptorProto, UninterpretedOption};
use prost_types::{EnumDescriptorProto, EnumValueDescriptorProto};
use std::collections::HashSet;

/// The supported protobuf editions, each with its number in descriptors and its name in `.proto`
/// texts.
const SUPPORTED_EDITIONS: [(i32, &str); 2] = [(1000, "2023"), (1001, "2024")];
/// The name prefix of the zero value that is added to an enum without a zero value. The descriptor
/// library demands a zero value in every proto3 enum.
const ADDED_ZERO_NAME_PREFIX: &str = "plimsoll_no_zero_of_";
/// The name of the option that replaces `default` in a rewritten `.proto` text. The parser accepts
/// the option `default` in proto2 only.
const DEFAULT_VALUE_OPTION: &str = "usual_value";

/// The protobuf edition features that one descriptor element sets; a feature that is not set is 0.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Features {
    /// How a field represents absence: 1 is explicit presence, 2 is implicit presence, and 3 is
    /// required.
    #[prost(int32, tag = "1")]
    presence: i32,
    /// The encoding of repeated fields: 1 is packed, and 2 is expanded.
    #[prost(int32, tag = "3")]
    lists: i32,
    /// The encoding of message fields: 1 is length-prefixed, and 2 is delimited (groups).
    #[prost(int32, tag = "5")]
    messages: i32,
}

const IMPLICIT_PRESENCE: i32 = 2;
const REQUIRED_PRESENCE: i32 = 3;
const EXPANDED_REPEATED_ENCODING: i32 = 2;
const DELIMITED_MESSAGE_ENCODING: i32 = 2;

impl Features {
    /// The features that apply if a file sets no features. Both supported editions have equal
    /// default features.
    const EDITION_DEFAULTS: Features = Features { presence: 1, lists: 1, messages: 1 };

    /// Returns the inherited features, in which each feature that `overrides` sets is replaced.
    fn override_with(self, overrides: Option<Features>) -> Features {
        let said = overrides.unwrap_or_default();
        let or = |said: i32, inherited: i32| if said == 0 { inherited } else { said };
        Features {
            presence: or(said.presence, self.presence),
            lists: or(said.lists, self.lists),
            messages: or(said.messages, self.messages),
        }
    }

    /// Sets the feature that an option of a `.proto` text names. Unknown feature names and values
    /// are ignored.
    fn set_named_feature(&mut self, name: &str, value: &str) {
        match (name, value) {
            ("field_presence", "EXPLICIT") => self.presence = 1,
            ("field_presence", "IMPLICIT") => self.presence = IMPLICIT_PRESENCE,
            ("field_presence", "LEGACY_REQUIRED") => self.presence = REQUIRED_PRESENCE,
            ("repeated_field_encoding", "PACKED") => self.lists = 1,
            ("repeated_field_encoding", "EXPANDED") => self.lists = EXPANDED_REPEATED_ENCODING,
            ("message_encoding", "LENGTH_PREFIXED") => self.messages = 1,
            ("message_encoding", "DELIMITED") => self.messages = DELIMITED_MESSAGE_ENCODING,
            _ => {}
        }
    }
}

/// The features of a file and its elements. The descriptor types of the library lack the fields for
/// features, so `FileFeatures` decodes the features from the bytes of the descriptor.
#[derive(Clone, PartialEq, prost::Message)]
struct FileFeatures {
    #[prost(message, repeated, tag = "4")]
    messages: Vec<MessageFeatures>,
    #[prost(message, repeated, tag = "7")]
    extensions: Vec<FieldFeatures>,
    #[prost(message, optional, tag = "8")]
    options: Option<FileFeatureOptions>,
    #[prost(int32, tag = "14")]
    edition: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MessageFeatures {
    #[prost(message, repeated, tag = "2")]
    fields: Vec<FieldFeatures>,
    #[prost(message, repeated, tag = "3")]
    messages: Vec<MessageFeatures>,
    #[prost(message, repeated, tag = "6")]
    extensions: Vec<FieldFeatures>,
    #[prost(message, optional, tag = "7")]
    options: Option<MessageFeatureOptions>,
    #[prost(message, repeated, tag = "8")]
    oneofs: Vec<OneofFeatures>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct FieldFeatures {
    #[prost(message, optional, tag = "8")]
    options: Option<FieldFeatureOptions>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct OneofFeatures {
    #[prost(message, optional, tag = "2")]
    options: Option<OneofFeatureOptions>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct FileFeatureOptions {
    #[prost(message, optional, tag = "50")]
    features: Option<Features>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct MessageFeatureOptions {
    #[prost(message, optional, tag = "12")]
    features: Option<Features>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct FieldFeatureOptions {
    #[prost(message, optional, tag = "21")]
    features: Option<Features>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct OneofFeatureOptions {
    #[prost(message, optional, tag = "1")]
    features: Option<Features>,
}

/// Decodes the descriptor of a file, and translates an edition to proto2 or proto3. A returned
/// error is a sentence for the user.
pub(super) fn decode_file_descriptor(bytes: &[u8]) -> Result<FileDescriptorProto, String> {
    let mut file = FileDescriptorProto::decode(bytes).map_err(|error| error.to_string())?;
    if file.syntax.as_deref() == Some("editions") {
        let said = FileFeatures::decode(bytes).map_err(|error| error.to_string())?;
        if !SUPPORTED_EDITIONS.iter().any(|(number, _)| *number == said.edition) {
            return Err(unsupported_edition_text(file.name(), &format!("no. {}", said.edition)));
        }
        translate_edition(&mut file, &said);
    }
    Ok(file)
}

/// Translates a descriptor whose text was rewritten by [`rewrite_edition_as_proto3`] and parsed as
/// proto3.
pub(super) fn translate_parsed(file: &mut FileDescriptorProto) {
    let said = take_file_features(file);
    translate_edition(file, &said);
}

fn unsupported_edition_text(name: &str, edition: &str) -> String {
    let known = SUPPORTED_EDITIONS.map(|(_, name)| name).join(" and ");
    format!("{name} is written in edition {edition} of protobuf; proto2, proto3 and editions {known} are supported")
}

/// Translates a descriptor to proto2 if possible, otherwise to proto3. Only proto3 has implicit
/// presence, where zero numbers are left out on the wire.
fn translate_edition(file: &mut FileDescriptorProto, file_features: &FileFeatures) {
    let of_file = Features::EDITION_DEFAULTS.override_with(file_features.options.and_then(|options| options.features));
    let mut is_proto3 = false;
    for_each_file_field(file, file_features, of_file, &mut |field, features| {
        is_proto3 |= has_implicit_presence(field, features)
    });
    file.syntax = Some(if is_proto3 { "proto3" } else { "proto2" }.to_owned());
    for_each_file_field(file, file_features, of_file, &mut |field, features| {
        apply_field_features(field, features, is_proto3)
    });
    if is_proto3 {
        file.enum_type.iter_mut().for_each(move_zero_value_first);
        file.message_type.iter_mut().for_each(begin_enums_with_zero);
    }
}

/// Calls `act` for every field of a file with the effective features of that field.
fn for_each_file_field(
    file: &mut FileDescriptorProto,
    file_features: &FileFeatures,
    of_file: Features,
    act: &mut impl FnMut(&mut FieldDescriptorProto, Features),
) {
    for (message, said) in file.message_type.iter_mut().zip(&file_features.messages) {
        for_each_message_field(message, said, of_file, act);
    }
    for (field, said) in file.extension.iter_mut().zip(&file_features.extensions) {
        act(field, of_file.override_with(said.options.and_then(|options| options.features)));
    }
}

fn for_each_message_field(
    message: &mut DescriptorProto,
    message_features: &MessageFeatures,
    around: Features,
    act: &mut impl FnMut(&mut FieldDescriptorProto, Features),
) {
    let is_entry = |message: &DescriptorProto| message.options.as_ref().is_some_and(|options| options.map_entry());
    // Map entries are encoded in the same way in every edition.
    if is_entry(message) {
        return;
    }
    let here = around.override_with(message_features.options.and_then(|options| options.features));
    let entries: HashSet<String> =
        message.nested_type.iter().filter(|nested| is_entry(nested)).map(|entry| entry.name().to_owned()).collect();
    for (field, of_field) in message.field.iter_mut().zip(&message_features.fields) {
        let oneof = field.oneof_index.and_then(|at| message_features.oneofs.get(at as usize));
        let oneof = oneof.and_then(|oneof| oneof.options).and_then(|options| options.features);
        let mut features =
            here.override_with(oneof).override_with(of_field.options.and_then(|options| options.features));
        if entries.contains(last_part(field.type_name())) {
            features.messages = 1;
        }
        act(field, features);
    }
    for (field, said) in message.extension.iter_mut().zip(&message_features.extensions) {
        act(field, here.override_with(said.options.and_then(|options| options.features)));
    }
    for (nested, said) in message.nested_type.iter_mut().zip(&message_features.messages) {
        for_each_message_field(nested, said, here, act);
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Returns whether a field has implicit presence: the wire format does not distinguish its zero
/// value from absence.
fn has_implicit_presence(field: &FieldDescriptorProto, features: Features) -> bool {
    let is_message = matches!(field.r#type, Some(kind) if kind == Type::Message as i32 || kind == Type::Group as i32);
    features.presence == IMPLICIT_PRESENCE
        && field.label() != Label::Repeated
        && field.oneof_index.is_none()
        && !is_message
}

fn apply_field_features(field: &mut FieldDescriptorProto, features: Features, is_proto3: bool) {
    if field.label() == Label::Repeated {
        let options = field.options.get_or_insert_with(FieldOptions::default);
        options.packed.get_or_insert(features.lists != EXPANDED_REPEATED_ENCODING);
    } else if features.presence == REQUIRED_PRESENCE {
        field.set_label(Label::Required);
    }
    if is_proto3
        && field.label() != Label::Repeated
        && field.oneof_index.is_none()
        && !has_implicit_presence(field, features)
    {
        field.proto3_optional = Some(true);
    }
    // In a parsed text, a field with a type name may be a message or an enum, because its type is
    // still unknown. If the field is an enum, the descriptor library later rejects the group type.
    let may_be_message = match field.r#type {
        None => field.type_name.is_some(),
        Some(kind) => kind == Type::Message as i32,
    };
    if features.messages == DELIMITED_MESSAGE_ENCODING && may_be_message {
        field.set_type(Type::Group);
    }
}

fn begin_enums_with_zero(message: &mut DescriptorProto) {
    message.enum_type.iter_mut().for_each(move_zero_value_first);
    message.nested_type.iter_mut().for_each(begin_enums_with_zero);
}

/// Moves the zero value of an enum to the front, or adds a zero value. The descriptor library
/// demands that an enum of proto3 begins with zero, and closed enums of an edition may lack a zero
/// value.
fn move_zero_value_first(enum_type: &mut EnumDescriptorProto) {
    match enum_type.value.iter().position(|value| value.number() == 0) {
        Some(at) => enum_type.value[..=at].rotate_right(1),
        None => {
            let name = Some(format!("{ADDED_ZERO_NAME_PREFIX}{}", enum_type.name()));
            enum_type.value.insert(0, EnumValueDescriptorProto { name, number: Some(0), options: None });
        }
    }
}

/// Returns whether an enum value is a zero value that [`move_zero_value_first`] added.
pub(super) fn is_added_zero(value: &str) -> bool {
    value.starts_with(ADDED_ZERO_NAME_PREFIX)
}

/// Removes the feature options from the options of a parsed text and returns their values.
fn take_features(options: &mut Vec<UninterpretedOption>) -> Option<Features> {
    let mut features = Features::default();
    let before = options.len();
    options.retain(|option| {
        let mut name = option.name.iter();
        if name.next().is_none_or(|first| first.is_extension || first.name_part != "features") {
            return true;
        }
        let value = option.identifier_value.as_deref().unwrap_or_default();
        match (name.next(), &option.aggregate_value) {
            (Some(part), _) if !part.is_extension => features.set_named_feature(&part.name_part, value),
            // One option can set all features: `features = { field_presence: IMPLICIT }`.
            (None, Some(all)) => {
                let words: Vec<&str> =
                    all.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
                words.windows(2).for_each(|pair| features.set_named_feature(pair[0], pair[1]));
            }
            _ => {}
        }
        false
    });
    (options.len() < before).then_some(features)
}

/// Removes the feature options of an element whose features have no effect on the wire.
fn remove_feature_options(options: &mut Vec<UninterpretedOption>) {
    let _ = take_features(options);
}

/// Removes all feature options from a parsed file and returns their values.
fn take_file_features(file: &mut FileDescriptorProto) -> FileFeatures {
    file.enum_type.iter_mut().for_each(remove_enum_feature_options);
    for service in &mut file.service {
        service.options.iter_mut().for_each(|options| remove_feature_options(&mut options.uninterpreted_option));
        let methods = service.method.iter_mut().filter_map(|method| method.options.as_mut());
        methods.for_each(|options| remove_feature_options(&mut options.uninterpreted_option));
    }
    let options = file.options.as_mut();
    FileFeatures {
        messages: file.message_type.iter_mut().map(take_message_features).collect(),
        extensions: file.extension.iter_mut().map(take_field_features).collect(),
        options: options
            .map(|options| FileFeatureOptions { features: take_features(&mut options.uninterpreted_option) }),
        edition: 0,
    }
}

fn take_message_features(message: &mut DescriptorProto) -> MessageFeatures {
    message.enum_type.iter_mut().for_each(remove_enum_feature_options);
    for range in &mut message.extension_range {
        range.options.iter_mut().for_each(|options| remove_feature_options(&mut options.uninterpreted_option));
    }
    let oneofs = message.oneof_decl.iter_mut().map(|oneof| {
        let options = oneof.options.as_mut();
        let options =
            options.map(|options| OneofFeatureOptions { features: take_features(&mut options.uninterpreted_option) });
        OneofFeatures { options }
    });
    let oneofs = oneofs.collect();
    let options = message.options.as_mut();
    MessageFeatures {
        fields: message.field.iter_mut().map(take_field_features).collect(),
        messages: message.nested_type.iter_mut().map(take_message_features).collect(),
        extensions: message.extension.iter_mut().map(take_field_features).collect(),
        options: options
            .map(|options| MessageFeatureOptions { features: take_features(&mut options.uninterpreted_option) }),
        oneofs,
    }
}

fn take_field_features(field: &mut FieldDescriptorProto) -> FieldFeatures {
    let is_bytes = field.r#type == Some(Type::Bytes as i32);
    let usual = field.options.iter().flat_map(|options| &options.uninterpreted_option);
    let mut usual =
        usual.filter(|option| option.name.last().is_some_and(|part| part.name_part == DEFAULT_VALUE_OPTION));
    field.default_value = usual.next().and_then(|option| default_value_text(option, is_bytes));
    let options = field.options.as_mut();
    let options =
        options.map(|options| FieldFeatureOptions { features: take_features(&mut options.uninterpreted_option) });
    FieldFeatures { options }
}

/// Returns the default value of a field from its option, spelt as in descriptors.
fn default_value_text(option: &UninterpretedOption, is_bytes: bool) -> Option<String> {
    let UninterpretedOption {
        identifier_value,
        positive_int_value,
        negative_int_value,
        double_value,
        string_value,
        ..
    } = option;
    let text = |bytes: &Vec<u8>| match is_bytes {
        true => bytes.escape_ascii().to_string(),
        false => String::from_utf8_lossy(bytes).into_owned(),
    };
    identifier_value
        .clone()
        .or(positive_int_value.map(|number| number.to_string()))
        .or(negative_int_value.map(|number| number.to_string()))
        .or(double_value.map(|number| number.to_string()))
        .or(string_value.as_ref().map(text))
}

fn remove_enum_feature_options(enum_type: &mut EnumDescriptorProto) {
    enum_type.options.iter_mut().for_each(|options| remove_feature_options(&mut options.uninterpreted_option));
    let values = enum_type.value.iter_mut().filter_map(|value| value.options.as_mut());
    values.for_each(|options| remove_feature_options(&mut options.uninterpreted_option));
}

/// Rewrites the text of an edition's `.proto` file to proto3, for a parser that does not support
/// editions. `None` means that the file has no edition.
///
/// The rewrite changes the `edition` statement, reserved names, `export` and `local`, option
/// imports, and field defaults.
pub(super) fn rewrite_edition_as_proto3(name: &str, text: &str) -> Result<Option<String>, String> {
    let mut out = String::with_capacity(text.len() + 64);
    // `statement` has the first two words of the current statement. `is_edition` and `is_named`
    // state whether the word `edition` and the name of the edition were read.
    let (mut statement, mut is_edition, mut is_named): (Vec<&str>, bool, bool) = (Vec::new(), false, false);
    let (mut rest, mut before) = (text, ' ');
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '"' | '\'' => quoted_length_bytes(rest, first),
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        let is_word = first.is_alphanumeric() || first == '_';
        match (statement.as_slice(), token) {
            ([], "edition") if !is_edition => {
                is_edition = true;
                out.push_str("syntax");
            }
            (["edition", ..], _) if matches!(first, '"' | '\'') && !is_named => {
                is_named = true;
                let said = &token[1..token.len().max(2) - 1];
                if !SUPPORTED_EDITIONS.iter().any(|(_, known)| *known == said) {
                    return Err(unsupported_edition_text(name, said));
                }
                out.push_str("\"proto3\"");
            }
            // Reserved names are words without quotes in protobuf editions, and quoted strings in
            // proto3.
            (["reserved", ..], word) if is_word && first.is_alphabetic() && !matches!(word, "to" | "max") => {
                out.push_str(&format!("\"{word}\""));
            }
            ([], "export" | "local") if is_declaration(rest) => continue,
            (["import"], "option") => continue,
            (_, "default") if matches!(before, '[' | ',') && rest.trim_start().starts_with('=') => {
                out.push_str("features.");
                out.push_str(DEFAULT_VALUE_OPTION);
            }
            _ => out.push_str(token),
        }
        if !first.is_whitespace() && !token.starts_with("//") && !token.starts_with("/*") {
            before = first;
        }
        match token {
            ";" | "{" | "}" => statement.clear(),
            _ if is_word && statement.len() < 2 => statement.push(token),
            _ => {}
        }
        if statement.is_empty() && !is_edition && matches!(token, ";" | "{") {
            // Only the first statement of a file can declare the edition.
            return Ok(None);
        }
    }
    Ok(is_edition.then_some(out))
}

/// Returns whether `rest` begins with a declaration. The word `export` or `local` before a
/// declaration sets the visibility of the declared type.
fn is_declaration(rest: &str) -> bool {
    let next = rest.trim_start();
    ["message ", "enum ", "extend ", "message\t", "enum\t"].iter().any(|word| next.starts_with(word))
}

/// Returns the length of a quoted string including its quotes, bytes.
fn quoted_length_bytes(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
