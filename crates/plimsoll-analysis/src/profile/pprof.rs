//! A decoder of pprof's protobuf format (`google/pprof: proto/profile.proto`) without a schema
//! compiler. The format has five small messages. The decoder reads the input once for the tables
//! and once for the samples, and does not copy the input.
//!
//! The decoder is strict with input that affects the result. The decoder refuses invalid ids, and
//! samples whose number of values differs from the number of columns. The decoder is lenient with
//! input that does not affect the result. The decoder skips unknown fields, and accepts packed and
//! single numbers, and tables in any order. The decoder ignores addresses, line numbers, build ids
//! and comments. The decoder also ignores `drop_frames` and `keep_frames`, which no common runtime
//! sets.

use super::memory_budget::{MemoryBudget, ReadError};
use plimsoll_model::profile::{FunctionId, Label, LabelValue, Profile, ProfileBuilder, ValueType};
use std::collections::HashMap;

/// The content of one protobuf field. Fixed-width numbers do not occur in profiles, so their
/// content is skipped.
enum FieldContent<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// An iterator over the fields of one message.
struct Fields<'a> {
    /// The whole input, so that an error can state the offset of the fault.
    input: &'a [u8],
    at: usize,
    end: usize,
}

fn pprof_error(at: usize, fault: &'static str) -> ReadError {
    ReadError::Pprof { at, fault }
}

impl<'a> Fields<'a> {
    fn new(input: &'a [u8]) -> Fields<'a> {
        Fields { input, at: 0, end: input.len() }
    }

    /// Returns an iterator over the fields of the message `part`, which must be a subslice of
    /// `input`.
    fn for_message(input: &'a [u8], part: &[u8]) -> Fields<'a> {
        let at = part.as_ptr() as usize - input.as_ptr() as usize;
        Fields { input, at, end: at + part.len() }
    }

    #[inline]
    fn read_varint(&mut self) -> Result<u64, ReadError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.at == self.end {
                return Err(pprof_error(self.at, "a number in the profile is cut off"));
            }
            let byte = self.input[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(pprof_error(self.at, "a number in the profile has more than 10 bytes"))
    }

    fn take_bytes(&mut self, bytes: u64) -> Result<&'a [u8], ReadError> {
        let start = self.at;
        if bytes > (self.end - start) as u64 {
            return Err(pprof_error(start, "a protobuf field is longer than the rest of the file"));
        }
        self.at += bytes as usize;
        Ok(&self.input[start..self.at])
    }

    #[inline]
    fn next(&mut self) -> Result<Option<(u64, FieldContent<'a>)>, ReadError> {
        if self.at == self.end {
            return Ok(None);
        }
        let key = self.read_varint()?;
        if key >> 3 == 0 {
            return Err(pprof_error(self.at, "a protobuf field has the invalid number 0"));
        }
        let content = match key & 7 {
            0 => FieldContent::Varint(self.read_varint()?),
            1 => self.take_bytes(8).map(|_| FieldContent::Fixed)?,
            2 => {
                let length = self.read_varint()?;
                FieldContent::Bytes(self.take_bytes(length)?)
            }
            5 => self.take_bytes(4).map(|_| FieldContent::Fixed)?,
            _ => return Err(pprof_error(self.at, "a protobuf field has an unknown type")),
        };
        Ok(Some((key >> 3, content)))
    }

    /// Calls `each` for every number of a repeated field. The numbers may be packed, or single
    /// fields.
    #[inline]
    fn for_each_number(
        &self,
        content: FieldContent<'a>,
        mut each: impl FnMut(u64) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        match content {
            FieldContent::Varint(number) => each(number),
            FieldContent::Bytes(bytes) => {
                let mut packed = Fields::for_message(self.input, bytes);
                while packed.at < packed.end {
                    each(packed.read_varint()?)?;
                }
                Ok(())
            }
            FieldContent::Fixed => Ok(()),
        }
    }
}

/// The string table: slices of the input. A slice becomes text only when it is used.
struct StringTable<'a>(Vec<&'a [u8]>);

impl StringTable<'_> {
    fn get(&self, index: u64) -> Result<String, ReadError> {
        let bytes = usize::try_from(index).ok().and_then(|index| self.0.get(index));
        bytes
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .ok_or_else(|| pprof_error(0, "a name refers to a string that is missing in the profile's string table"))
    }
}

/// Maps the ids in the file to plimsoll's ids. The map is a plain table if the ids are dense, as in
/// all known files; otherwise it is a hash map.
enum ProfileIdMap {
    Dense(Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

const NO_ID: u32 = u32::MAX;

impl ProfileIdMap {
    /// Creates an empty map for `count` ids; `largest` is the largest of these ids.
    fn new(count: usize, largest: u64) -> ProfileIdMap {
        if largest <= 4 * count as u64 + 64 {
            ProfileIdMap::Dense(vec![NO_ID; largest as usize + 1])
        } else {
            ProfileIdMap::Sparse(HashMap::with_capacity(count))
        }
    }

    fn insert(&mut self, id: u64, own: u32) {
        match self {
            ProfileIdMap::Dense(table) => table[id as usize] = own,
            ProfileIdMap::Sparse(map) => drop(map.insert(id, own)),
        }
    }

    #[inline]
    fn get(&self, id: u64) -> Option<u32> {
        match self {
            ProfileIdMap::Dense(table) => table.get(usize::try_from(id).ok()?).copied().filter(|own| *own != NO_ID),
            ProfileIdMap::Sparse(map) => map.get(&id).copied(),
        }
    }
}

/// Returns the number in field 1 of a message. In a `Line` message, field 1 is the id of the line's
/// function; in other messages, field 1 is the message's own id. Returns 0 if field 1 is absent. If
/// field 1 occurs several times, the last number counts.
fn message_id(input: &[u8], message: &[u8]) -> Result<u64, ReadError> {
    let mut id = 0;
    let mut fields = Fields::for_message(input, message);
    while let Some((field, content)) = fields.next()? {
        if let (1, FieldContent::Varint(number)) = (field, content) {
            id = number;
        }
    }
    Ok(id)
}

/// Memory that one id takes in a table or a hash map, in bytes.
const ID_BYTES: usize = 3 * (size_of::<(u64, u32)>() + 1);

/// Creates an empty map for the ids of `messages`, the entries of one table of the profile.
fn empty_id_map(input: &[u8], messages: &[&[u8]], budget: &mut MemoryBudget) -> Result<ProfileIdMap, ReadError> {
    budget.reserve_memory(messages.len(), ID_BYTES)?;
    let mut largest = 0;
    for message in messages {
        largest = largest.max(message_id(input, message)?);
    }
    Ok(ProfileIdMap::new(messages.len(), largest))
}

/// The parts of an encoded profile, before they are decoded.
#[derive(Default)]
struct EncodedProfileParts<'a> {
    sample_types: Vec<&'a [u8]>,
    mappings: Vec<&'a [u8]>,
    locations: Vec<&'a [u8]>,
    functions: Vec<&'a [u8]>,
    strings: Vec<&'a [u8]>,
    period_type: Option<&'a [u8]>,
    time_unix_ns: u64,
    duration_ns: u64,
    period: u64,
    default_type: u64,
}

fn read_encoded_parts<'a>(input: &'a [u8], budget: &mut MemoryBudget) -> Result<EncodedProfileParts<'a>, ReadError> {
    let mut parts = EncodedProfileParts::default();
    let mut fields = Fields::new(input);
    while let Some((field, content)) = fields.next()? {
        if let (1 | 3..=6, FieldContent::Bytes(_)) = (field, &content) {
            // While a table grows, an old copy and a new copy of twice the size exist, so the table
            // needs three times its size.
            budget.reserve_memory(1, 3 * size_of::<&[u8]>())?;
        }
        match (field, content) {
            (1, FieldContent::Bytes(bytes)) => parts.sample_types.push(bytes),
            (3, FieldContent::Bytes(bytes)) => parts.mappings.push(bytes),
            (4, FieldContent::Bytes(bytes)) => parts.locations.push(bytes),
            (5, FieldContent::Bytes(bytes)) => parts.functions.push(bytes),
            (6, FieldContent::Bytes(bytes)) => parts.strings.push(bytes),
            (9, FieldContent::Varint(number)) => parts.time_unix_ns = number,
            (10, FieldContent::Varint(number)) => parts.duration_ns = number,
            (11, FieldContent::Bytes(bytes)) => parts.period_type = Some(bytes),
            (12, FieldContent::Varint(number)) => parts.period = number,
            (14, FieldContent::Varint(number)) => parts.default_type = number,
            _ => {}
        }
    }
    if parts.strings.first().is_none_or(|first| !first.is_empty()) {
        return Err(pprof_error(input.len(), "the profile has no string table"));
    }
    if parts.sample_types.is_empty() {
        return Err(pprof_error(input.len(), "the profile does not name the types of its sample values"));
    }
    Ok(parts)
}

fn value_type(input: &[u8], message: &[u8], strings: &StringTable) -> Result<ValueType, ReadError> {
    let (mut kind, mut unit) = (0, 0);
    let mut fields = Fields::for_message(input, message);
    while let Some((field, content)) = fields.next()? {
        match (field, content) {
            (1, FieldContent::Varint(index)) => kind = index,
            (2, FieldContent::Varint(index)) => unit = index,
            _ => {}
        }
    }
    Ok(ValueType { kind: strings.get(kind)?, unit: strings.get(unit)? })
}

/// Memory that a growing table needs, as a multiple of its size. While the table grows, the old
/// copy and a new copy of twice the size exist.
const TABLE_GROWTH_FACTOR: usize = 3;

/// Decodes a pprof profile that is not compressed. The error states the approximate offset of the
/// fault, or says that the profile needs too much memory.
pub(super) fn decode(input: &[u8], mut budget: MemoryBudget) -> Result<Profile, ReadError> {
    let budget = &mut budget;
    let parts = read_encoded_parts(input, budget)?;
    let strings = StringTable(parts.strings);
    let mut types = Vec::new();
    for message in &parts.sample_types {
        let column = value_type(input, message, &strings)?;
        budget.reserve_memory(1, 4 * size_of::<ValueType>() + 2 * (column.kind.len() + column.unit.len()))?;
        types.push(column);
    }
    let width = types.len();
    let mut builder = ProfileBuilder::new(types.clone());
    if parts.default_type != 0 {
        let wanted = strings.get(parts.default_type)?;
        if let Some(index) = types.iter().position(|t| t.kind == wanted) {
            builder.set_default_type(index);
        }
    }
    let period_type = parts.period_type.map(|m| value_type(input, m, &strings)).transpose()?;
    builder.set_period(period_type, parts.period as i64);
    builder.set_time(parts.time_unix_ns as i64, parts.duration_ns as i64);

    let functions = read_functions(input, &parts.functions, &strings, &mut builder, budget)?;
    let nameless = read_mappings(input, &parts.mappings, &strings, &mut builder, budget)?;
    let unknown = builder.intern_function("<unknown>", "");
    let mut places = empty_id_map(input, &parts.locations, budget)?;
    let mut inlined = Vec::new();
    for message in &parts.locations {
        let (mut id, mut mapping) = (0, 0);
        inlined.clear();
        let mut fields = Fields::for_message(input, message);
        while let Some((field, content)) = fields.next()? {
            match (field, content) {
                (1, FieldContent::Varint(number)) => id = number,
                (2, FieldContent::Varint(number)) => mapping = number,
                (4, FieldContent::Bytes(line)) => {
                    let function = message_id(input, line)?;
                    if function != 0 {
                        let known = functions.get(function);
                        inlined.push(known.ok_or_else(|| {
                            pprof_error(fields.at, "a code line refers to a function that is missing in the profile")
                        })?);
                        budget.check_memory(&builder, TABLE_GROWTH_FACTOR * size_of::<FunctionId>() * inlined.len())?;
                    }
                }
                _ => {}
            }
        }
        if inlined.is_empty() {
            inlined.push(nameless.get(mapping).unwrap_or(unknown));
        }
        let place = builder.add_location(&inlined);
        budget.check_memory(&builder, 0)?;
        places.insert(id, place);
    }
    read_samples(input, width, &places, &strings, &mut builder, budget)?;
    Ok(builder.finish())
}

fn read_functions(
    input: &[u8],
    messages: &[&[u8]],
    strings: &StringTable,
    builder: &mut ProfileBuilder,
    budget: &mut MemoryBudget,
) -> Result<ProfileIdMap, ReadError> {
    let mut functions = empty_id_map(input, messages, budget)?;
    for message in messages {
        let (mut id, mut name, mut system_name, mut file) = (0, 0, 0, 0);
        let mut fields = Fields::for_message(input, message);
        while let Some((field, content)) = fields.next()? {
            match (field, content) {
                (1, FieldContent::Varint(number)) => id = number,
                (2, FieldContent::Varint(index)) => name = index,
                (3, FieldContent::Varint(index)) => system_name = index,
                (4, FieldContent::Varint(index)) => file = index,
                _ => {}
            }
        }
        let name = strings.get(if name == 0 { system_name } else { name })?;
        let name = if name.is_empty() { "<unknown>" } else { &name };
        let own = builder.intern_function(name, &strings.get(file)?);
        budget.check_memory(builder, 0)?;
        functions.insert(id, own);
    }
    Ok(functions)
}

/// For each binary, adds a placeholder function, such as `[libc.so.6]`, that stands for the
/// binary's functions without a symbol.
fn read_mappings(
    input: &[u8],
    messages: &[&[u8]],
    strings: &StringTable,
    builder: &mut ProfileBuilder,
    budget: &mut MemoryBudget,
) -> Result<ProfileIdMap, ReadError> {
    let mut mappings = empty_id_map(input, messages, budget)?;
    for message in messages {
        let (mut id, mut file) = (0, 0);
        let mut fields = Fields::for_message(input, message);
        while let Some((field, content)) = fields.next()? {
            match (field, content) {
                (1, FieldContent::Varint(number)) => id = number,
                (5, FieldContent::Varint(index)) => file = index,
                _ => {}
            }
        }
        let file = strings.get(file)?;
        let base = file.rsplit('/').next().unwrap_or_default();
        if !base.is_empty() {
            let own: FunctionId = builder.intern_function(&format!("[{base}]"), "");
            budget.check_memory(builder, 0)?;
            mappings.insert(id, own);
        }
    }
    Ok(mappings)
}

fn read_samples(
    input: &[u8],
    width: usize,
    places: &ProfileIdMap,
    strings: &StringTable,
    builder: &mut ProfileBuilder,
    budget: &MemoryBudget,
) -> Result<(), ReadError> {
    let mut values = Vec::with_capacity(width);
    let mut profile = Fields::new(input);
    while let Some((field, content)) = profile.next()? {
        let (2, FieldContent::Bytes(sample)) = (field, content) else { continue };
        values.clear();
        let mut fields = Fields::for_message(input, sample);
        while let Some((field, content)) = fields.next()? {
            // A packed number has at least one byte, so the length in bytes limits the count of
            // numbers.
            let entries = if let FieldContent::Bytes(bytes) = content { bytes.len() } else { 1 };
            budget
                .check_memory(builder, if field == 1 { TABLE_GROWTH_FACTOR * size_of::<u32>() * entries } else { 0 })?;
            match (field, content) {
                (1, content) => fields.for_each_number(content, |id| {
                    let place = places.get(id).ok_or_else(|| {
                        pprof_error(fields.at, "a stack refers to a location that is missing in the profile")
                    })?;
                    builder.push_location(place);
                    Ok(())
                })?,
                (2, content) => fields.for_each_number(content, |value| {
                    if values.len() == width {
                        return Err(pprof_error(
                            fields.at,
                            "a sample has fewer or more values than the profile has value types",
                        ));
                    }
                    values.push(value as i64);
                    Ok(())
                })?,
                (3, FieldContent::Bytes(label)) => {
                    let label = read_label(input, label, strings)?;
                    let id = builder.intern_label(label);
                    builder.push_label(id);
                }
                _ => {}
            }
        }
        if values.len() != width {
            return Err(pprof_error(fields.end, "a sample has fewer or more values than the profile has value types"));
        }
        builder.end_sample(&values);
    }
    Ok(())
}

fn read_label(input: &[u8], message: &[u8], strings: &StringTable) -> Result<Label, ReadError> {
    let (mut key, mut text, mut number, mut unit) = (0, 0, 0, 0);
    let mut fields = Fields::for_message(input, message);
    while let Some((field, content)) = fields.next()? {
        match (field, content) {
            (1, FieldContent::Varint(index)) => key = index,
            (2, FieldContent::Varint(index)) => text = index,
            (3, FieldContent::Varint(value)) => number = value,
            (4, FieldContent::Varint(index)) => unit = index,
            _ => {}
        }
    }
    let value = match text {
        0 => LabelValue::Number(number as i64, strings.get(unit)?),
        text => LabelValue::Text(strings.get(text)?),
    };
    Ok(Label { key: strings.get(key)?, value })
}
