//! Encodes pprof profiles in every way that the format allows. Because the tests encode the
//! profiles themselves, they know the profile that the reader must return.
//!
//! Not here: files, and gzip. The reader also accepts protobuf without gzip.

/// The content of a profile. A function is identified by its name. A place (a location in pprof) is
/// a list of function names, the innermost function first. A place has several names if functions
/// are inlined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlainProfile {
    pub types: Vec<(String, String)>,
    pub places: Vec<Vec<String>>,
    pub samples: Vec<PlainSample>,
}

/// A sample: the indices of its places in [`PlainProfile::places`] (leaf first), its values, and
/// its text labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlainSample {
    pub stack: Vec<usize>,
    pub values: Vec<i64>,
    pub labels: Vec<(String, String)>,
}

/// The choices that the pprof format leaves to an encoder. The encoder's choices do not change the
/// meaning of the bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct EncodingChoices {
    /// Whether each repeated number is a field of its own instead of a packed number.
    pub unpacked: bool,
    /// Whether the string table comes before the samples instead of at the end.
    pub strings_first: bool,
    /// A number that is added to all ids, so that the ids are not dense.
    pub id_offset: u64,
    /// Whether each message contains fields that no reader knows.
    pub unknown_fields: bool,
}

pub fn encode_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn encode_varint_field(out: &mut Vec<u8>, field: u64, value: u64) {
    encode_varint(out, field << 3);
    encode_varint(out, value);
}

pub fn encode_bytes_field(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    encode_varint(out, field << 3 | 2);
    encode_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn encode_repeated_varints(out: &mut Vec<u8>, field: u64, values: impl Iterator<Item = u64>, unpacked: bool) {
    if unpacked {
        values.for_each(|value| encode_varint_field(out, field, value));
    } else {
        let mut packed = Vec::new();
        values.for_each(|value| encode_varint(&mut packed, value));
        encode_bytes_field(out, field, &packed);
    }
}

/// The string table. Each text occurs only once.
#[derive(Default)]
struct ProfileStringTable {
    list: Vec<String>,
    known: std::collections::HashMap<String, u64>,
}

impl ProfileStringTable {
    fn intern_string(&mut self, text: &str) -> u64 {
        if let Some(id) = self.known.get(text) {
            return *id;
        }
        self.list.push(text.to_owned());
        let id = self.list.len() as u64 - 1;
        self.known.insert(text.to_owned(), id);
        id
    }
}

/// Encodes a profile as protobuf, without gzip.
pub fn encode_profile(profile: &PlainProfile, spelling: EncodingChoices) -> Vec<u8> {
    let mut strings = ProfileStringTable::default();
    strings.intern_string("");
    let end = |mut message: Vec<u8>| {
        if spelling.unknown_fields {
            encode_bytes_field(&mut message, 1000, b"to come");
            encode_varint(&mut message, 1001 << 3 | 5);
            message.extend_from_slice(&[0xff; 4]);
            encode_varint(&mut message, 1002 << 3 | 1);
            message.extend_from_slice(&[0xff; 8]);
        }
        message
    };
    let mut out = Vec::new();
    for (kind, unit) in &profile.types {
        let mut message = Vec::new();
        encode_varint_field(&mut message, 1, strings.intern_string(kind));
        encode_varint_field(&mut message, 2, strings.intern_string(unit));
        encode_bytes_field(&mut out, 1, &end(message));
    }
    let mut samples = Vec::new();
    for sample in &profile.samples {
        let mut message = Vec::new();
        let ids = sample.stack.iter().map(|place| *place as u64 + 1 + spelling.id_offset);
        encode_repeated_varints(&mut message, 1, ids, spelling.unpacked);
        encode_repeated_varints(&mut message, 2, sample.values.iter().map(|v| *v as u64), spelling.unpacked);
        for (key, text) in &sample.labels {
            let mut label = Vec::new();
            encode_varint_field(&mut label, 1, strings.intern_string(key));
            encode_varint_field(&mut label, 2, strings.intern_string(text));
            encode_bytes_field(&mut message, 3, &end(label));
        }
        encode_bytes_field(&mut samples, 2, &end(message));
    }
    let mut tables = Vec::new();
    let mut functions: std::collections::HashMap<&str, u64> = std::collections::HashMap::new();
    for (number_of, place) in profile.places.iter().enumerate() {
        let mut location = Vec::new();
        encode_varint_field(&mut location, 1, number_of as u64 + 1 + spelling.id_offset);
        for name in place {
            let next = functions.len() as u64 + 1 + spelling.id_offset;
            let id = *functions.entry(name).or_insert_with(|| {
                let mut function = Vec::new();
                encode_varint_field(&mut function, 1, next);
                encode_varint_field(&mut function, 2, strings.intern_string(name));
                encode_bytes_field(&mut tables, 5, &end(function));
                next
            });
            let mut line = Vec::new();
            encode_varint_field(&mut line, 1, id);
            encode_varint_field(&mut line, 2, 7);
            encode_bytes_field(&mut location, 4, &end(line));
        }
        encode_bytes_field(&mut tables, 4, &end(location));
    }
    let mut table = Vec::new();
    strings.list.iter().for_each(|text| encode_bytes_field(&mut table, 6, text.as_bytes()));
    let parts = if spelling.strings_first { [table, tables, samples] } else { [samples, tables, table] };
    parts.iter().for_each(|part| out.extend_from_slice(part));
    end(out)
}
