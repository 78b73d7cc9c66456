//! Estimates the work of the library that links descriptors, before the library runs. The library
//! stores a full name for each element and looks up names in every enclosing scope. The library
//! also compares each field number with each range, and follows public imports on every path
//! between files.
//!
//! Not here: memory of the elements ([`super::weight`]), and validity, which the library checks.

use plimsoll_model::ParseBudget;
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use std::collections::HashMap;

/// The largest estimated work of one schema: bytes that the library compares or copies. The public
/// APIs of the largest cloud providers together take a fifth of `LINK_WORK_BYTES_MAX`.
const LINK_WORK_BYTES_MAX: usize = 512 << 20;
/// The largest total size of full names in memory, bytes. The public APIs of the largest cloud
/// providers together take a quarter of `NAMES_BYTES_MAX`.
const NAMES_BYTES_MAX: usize = 128 << 20;
/// The longest accepted chain of imports. Real import chains are shorter than ten files.
pub(super) const IMPORTS_DEPTH_MAX: usize = 100;
/// Copies of each full name in memory: one in a name table, and one in the named element.
const NAME_COPIES: usize = 2;

/// The remaining budgets for linking the files of a schema, and the largest counts and name lengths
/// so far, from which the work is estimated.
pub(super) struct DescriptorLinkBudget {
    work: ParseBudget,
    names: ParseBudget,
    /// The largest number of reserved and extension ranges in one message so far. An extension
    /// field may extend any message, so the estimate of its work uses the largest number of ranges.
    ranges_max: usize,
    /// The largest number of values of one enum so far. A field may refer to any enum, so the
    /// estimate for its default value uses the largest number of enum values.
    enum_values_max: usize,
    /// The longest full name of a message or enum so far, bytes.
    name_bytes_max: usize,
    /// The cost of each file's public imports, by file name: the number of lookups to follow the
    /// imports, and the depth of the imports.
    public_imports: HashMap<String, (usize, usize)>,
}

/// A scope of names: the length of its full name in bytes, and the number of parts of the name.
#[derive(Clone, Copy)]
struct NameScope {
    bytes: usize,
    parts: usize,
}

impl NameScope {
    fn inner_scope(self, name: &str) -> NameScope {
        NameScope { bytes: self.bytes + 1 + name.len(), parts: self.parts + 1 }
    }
}

impl Default for DescriptorLinkBudget {
    fn default() -> DescriptorLinkBudget {
        let (ranges_max, enum_values_max, name_bytes_max, public_imports) = Default::default();
        let (work, names) = (ParseBudget::new(LINK_WORK_BYTES_MAX), ParseBudget::new(NAMES_BYTES_MAX));
        DescriptorLinkBudget { work, names, ranges_max, enum_values_max, name_bytes_max, public_imports }
    }
}

impl DescriptorLinkBudget {
    /// Charges the work of linking `files` together to the budgets. A returned error is a sentence
    /// that begins with the name of the file.
    pub fn charge_files(&mut self, files: &[FileDescriptorProto]) -> Result<(), String> {
        let by_name: HashMap<&str, &FileDescriptorProto> = files.iter().map(|file| (file.name(), file)).collect();
        for file in files {
            self.public_imports_cost(file, &by_name, 0).map_err(|why| format!("{}: {why}", file.name()))?;
        }
        for file in files {
            self.update_maxima(file);
        }
        for file in files {
            self.charge_file(file).map_err(|why| format!("{}: {why}", file.name()))?;
        }
        Ok(())
    }

    fn charge_work(&mut self, bytes: usize, error: &str) -> Result<(), String> {
        self.work.spend_bytes(bytes).map_err(|_| error.to_owned())
    }

    fn charge_name(&mut self, scope: NameScope) -> Result<(), String> {
        self.names.spend_bytes(scope.bytes * NAME_COPIES).map_err(|_| {
            "the full names of the protobuf file (with packages and messages) are too long: shorten the names"
                .to_owned()
        })
    }

    /// Returns the cost of a file's public imports: the number of lookups to follow the imports,
    /// and the depth of the imports. Returns an error if the imports are too deep or form a cycle.
    fn public_imports_cost(
        &mut self,
        file: &FileDescriptorProto,
        files: &HashMap<&str, &FileDescriptorProto>,
        depth: usize,
    ) -> Result<(usize, usize), String> {
        if let Some(known) = self.public_imports.get(file.name()) {
            return Ok(*known);
        }
        if depth > IMPORTS_DEPTH_MAX {
            return Err(format!(
                "the public imports of the .proto files are more than {IMPORTS_DEPTH_MAX} deep, or import themselves"
            ));
        }
        let mut cost = file.dependency.len().saturating_mul(1 + file.public_dependency.len());
        let mut height = 0;
        for place in &file.public_dependency {
            let name = usize::try_from(*place).ok().and_then(|place| file.dependency.get(place));
            let known = match name.and_then(|name| files.get(name.as_str())) {
                Some(imported) => self.public_imports_cost(imported, files, depth + 1)?,
                None => name.and_then(|name| self.public_imports.get(name)).copied().unwrap_or_default(),
            };
            cost = cost.saturating_add(known.0);
            height = height.max(known.1 + 1);
        }
        if height > IMPORTS_DEPTH_MAX {
            return Err(format!("the public imports of the .proto files are more than {IMPORTS_DEPTH_MAX} deep"));
        }
        self.public_imports.insert(file.name().to_owned(), (cost, height));
        Ok((cost, height))
    }

    /// Updates the largest counts and name lengths of messages and enums that other files may refer
    /// to.
    fn update_maxima(&mut self, file: &FileDescriptorProto) {
        let scope = NameScope { bytes: file.package().len(), parts: 1 };
        file.message_type.iter().for_each(|message| self.measure_message(message, scope));
        file.enum_type.iter().for_each(|found| self.measure_enum(found, scope));
    }

    fn measure_message(&mut self, message: &DescriptorProto, scope: NameScope) {
        let scope = scope.inner_scope(message.name());
        self.name_bytes_max = self.name_bytes_max.max(scope.bytes);
        self.ranges_max = self.ranges_max.max(message.reserved_range.len() + message.extension_range.len());
        message.nested_type.iter().for_each(|nested| self.measure_message(nested, scope));
        message.enum_type.iter().for_each(|found| self.measure_enum(found, scope));
    }

    fn measure_enum(&mut self, enum_type: &EnumDescriptorProto, scope: NameScope) {
        self.name_bytes_max = self.name_bytes_max.max(scope.inner_scope(enum_type.name()).bytes);
        self.enum_values_max = self.enum_values_max.max(enum_type.value.len());
    }

    fn charge_file(&mut self, file: &FileDescriptorProto) -> Result<(), String> {
        for import in &file.dependency {
            let cost = self.public_imports.get(import).map_or(0, |known| known.0);
            self.charge_work(
                cost.saturating_add(1),
                "the public imports of the .proto files reach the same files too often: make the file smaller",
            )?;
        }
        // For a package such as `a.b.c`, the library also stores the names of the enclosing
        // packages `a` and `a.b`.
        let package = file.package();
        let parts = 1 + package.matches('.').count();
        let scope = NameScope { bytes: package.len(), parts };
        self.charge_name(NameScope { bytes: parts.saturating_mul(package.len()), parts })?;
        self.charge_options(scope, file.options.as_ref().map_or(0, |options| options.uninterpreted_option.len()))?;
        for message in &file.message_type {
            self.charge_message(message, scope)?;
        }
        for found in &file.enum_type {
            self.charge_enum(found, scope)?;
        }
        for extension in &file.extension {
            self.charge_field(extension, scope, self.ranges_max)?;
        }
        for service in &file.service {
            let scope = scope.inner_scope(service.name());
            self.charge_name(scope)?;
            self.charge_options(
                scope,
                service.options.as_ref().map_or(0, |options| options.uninterpreted_option.len()),
            )?;
            for method in &service.method {
                let scope = scope.inner_scope(method.name());
                self.charge_name(scope)?;
                self.charge_type_reference(scope, method.input_type())?;
                self.charge_type_reference(scope, method.output_type())?;
                self.charge_options(
                    scope,
                    method.options.as_ref().map_or(0, |options| options.uninterpreted_option.len()),
                )?;
            }
        }
        Ok(())
    }

    fn charge_message(&mut self, message: &DescriptorProto, scope: NameScope) -> Result<(), String> {
        let scope = scope.inner_scope(message.name());
        self.charge_name(scope)?;
        self.charge_options(scope, message.options.as_ref().map_or(0, |options| options.uninterpreted_option.len()))?;
        let ranges = message.reserved_range.len() + message.extension_range.len();
        for field in &message.field {
            self.charge_field(field, scope, ranges)?;
        }
        for extension in &message.extension {
            self.charge_field(extension, scope, self.ranges_max)?;
        }
        for oneof in &message.oneof_decl {
            self.charge_name(scope.inner_scope(oneof.name()))?;
        }
        for found in &message.enum_type {
            self.charge_enum(found, scope)?;
        }
        message.nested_type.iter().try_for_each(|nested| self.charge_message(nested, scope))
    }

    fn charge_field(&mut self, field: &FieldDescriptorProto, scope: NameScope, ranges: usize) -> Result<(), String> {
        // A range is two numbers of four bytes each.
        const RANGE_BYTES: usize = 8;
        let scope = scope.inner_scope(field.name());
        self.charge_name(scope)?;
        self.charge_work(
            ranges * RANGE_BYTES,
            "the messages of the protobuf file have too many fields and reserved or extension ranges: make the file \
             smaller",
        )?;
        self.charge_type_reference(scope, field.extendee())?;
        self.charge_type_reference(scope, field.type_name())?;
        if field.default_value.is_some() && !field.type_name().is_empty() {
            self.charge_work(
                self.enum_values_max * RANGE_BYTES,
                "too many fields of the protobuf file have a default value of an enum: make the file smaller",
            )?;
        }
        self.charge_options(scope, field.options.as_ref().map_or(0, |options| options.uninterpreted_option.len()))
    }

    fn charge_enum(&mut self, enum_type: &EnumDescriptorProto, scope: NameScope) -> Result<(), String> {
        self.charge_name(scope.inner_scope(enum_type.name()))?;
        let (values, ranges) = (enum_type.value.len(), enum_type.reserved_range.len());
        // The library stores enum values sorted by number, so a value out of order moves the values
        // after it.
        let is_sorted = enum_type.value.is_sorted_by_key(|value| value.number());
        let moved = if is_sorted { 0 } else { values.saturating_mul(values) };
        let cost = moved.saturating_add(values.saturating_mul(ranges).saturating_mul(8));
        self.charge_work(
            cost,
            "an enum of the protobuf file has too many values and reserved ranges: make the file smaller",
        )?;
        // The names of enum values belong to the scope that contains the enum, not to the enum
        // itself.
        for value in &enum_type.value {
            self.charge_name(scope.inner_scope(value.name()))?;
            self.charge_options(scope, value.options.as_ref().map_or(0, |options| options.uninterpreted_option.len()))?;
        }
        Ok(())
    }

    /// Charges a type name that the library looks up in every enclosing scope and stores in full.
    fn charge_type_reference(&mut self, scope: NameScope, name: &str) -> Result<(), String> {
        if name.is_empty() {
            return Ok(());
        }
        self.charge_name(NameScope { bytes: self.name_bytes_max / NAME_COPIES, parts: 1 })?;
        let scopes = if name.starts_with('.') { 1 } else { scope.parts + 1 };
        self.charge_work(
            scopes.saturating_mul(scope.bytes + name.len()),
            "the types of the protobuf file are nested in too many packages and messages: make the file smaller",
        )
    }

    /// Charges options, whose names the library looks up in every enclosing scope.
    fn charge_options(&mut self, scope: NameScope, count: usize) -> Result<(), String> {
        self.charge_work(
            count.saturating_mul(scope.parts + 1).saturating_mul(scope.bytes + 1),
            "the options of the protobuf file are nested in too many packages and messages: make the file smaller",
        )
    }
}
