//! A profile as data: stacks with values, such as CPU time or bytes. Profiles of all formats
//! (pprof, folded stacks, `perf script`) are converted to [`Profile`].
//!
//! The data is flat tables that refer to each other by index, because a profile of 50 MB has tens
//! of millions of frames. A stack is a list of places (code addresses), leaf first as in pprof. A
//! place is one code address with the functions inlined at the address, innermost first. Functions
//! are interned **by name**, which pprof calls the granularity "functions".
//!
//! Not here: parsers of formats, sums over stacks (`plimsoll-analysis`), line numbers and
//! addresses, which no figure uses.

use std::collections::HashMap;

/// The quantity in one column of values, such as `cpu` in `nanoseconds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueType {
    /// The quantity, such as `cpu`, `inuse_space`, `contentions`.
    pub kind: String,
    /// The unit as pprof spells it: `count`, `nanoseconds`, `bytes`; other units stay unchanged.
    pub unit: String,
}

impl ValueType {
    /// Creates a column with this kind and unit.
    pub fn new(kind: impl Into<String>, unit: impl Into<String>) -> ValueType {
        ValueType { kind: kind.into(), unit: unit.into() }
    }
}

/// Index of a function in [`Profile::functions`].
pub type FunctionId = u32;

/// One function of the profiled program, unique by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name in the source, with package and receiver. A function without a symbol has the name
    /// `[libc.so.6]` (its library) or `<unknown>`.
    pub name: String,
    /// Source file of the first function with this name; empty if unknown.
    pub file: String,
}

/// The value of a label that the program attached to samples.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LabelValue {
    /// A text, such as the endpoint served.
    Text(String),
    /// A number with its unit (an empty text without a unit), such as a size in bytes.
    Number(i64, String),
}

/// A key and value that the program attached to samples.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// The key, such as `endpoint`.
    pub key: String,
    /// The value of the label.
    pub value: LabelValue,
}

/// Where the entries of one sample end: an index into each of the tables `stacks` and
/// `sample_labels`, which all samples share. The entries begin where the previous sample ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SampleEnd {
    stack: u32,
    labels: u32,
}

/// A profile of a program. [`ProfileBuilder`] creates the profile; a finished profile is only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The columns of values that every sample has; at least one column.
    pub sample_types: Vec<ValueType>,
    /// Index of the column that is used if the user names no column.
    pub sample_type_default: usize,
    /// The quantity by which the profiler took samples, if known: `cpu nanoseconds`, `space bytes`.
    pub period_type: Option<ValueType>,
    /// Mean amount of `period_type` between two samples; 0 if unknown.
    pub period: i64,
    /// Time of the profile, ns since 1970; 0 if unknown.
    pub time_unix_ns: i64,
    /// Length of the profile, ns; 0 for a snapshot, or if unknown.
    pub duration_ns: i64,
    functions: Vec<Function>,
    labels: Vec<Label>,
    /// The functions of all locations (code addresses). The functions of location `i`, innermost
    /// first, are `location_functions[location_ends[i - 1]..location_ends[i]]`.
    location_functions: Vec<FunctionId>,
    location_ends: Vec<u32>,
    stacks: Vec<u32>,
    sample_labels: Vec<u32>,
    samples: Vec<SampleEnd>,
    values: Vec<i64>,
}

impl Profile {
    /// Returns all functions, in the order of their first mention.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the number of samples. A sample is a distinct stack with its values, not a single
    /// event.
    pub fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// Returns the samples, in the order of the source.
    pub fn samples(&self) -> impl Iterator<Item = ProfileSample<'_>> {
        (0..self.samples.len()).map(|index| ProfileSample { profile: self, index })
    }

    /// Returns the index of the column with this name or number; `None` means that no column
    /// matches. If `wanted` is `None`, the result is the index of the default column. The name
    /// `inuse_space` also matches a column `space`.
    pub fn sample_type_index(&self, wanted: Option<&str>) -> Option<usize> {
        let Some(wanted) = wanted else { return Some(self.sample_type_default) };
        if let Ok(number) = wanted.parse::<usize>() {
            return (number < self.sample_types.len()).then_some(number);
        }
        let short = wanted.strip_prefix("inuse_").unwrap_or(wanted);
        self.sample_types.iter().position(|t| t.kind == wanted || t.kind == short)
    }

    fn functions_at_location(&self, place: u32) -> &[FunctionId] {
        let place = place as usize;
        let start = if place == 0 { 0 } else { self.location_ends[place - 1] as usize };
        &self.location_functions[start..self.location_ends[place] as usize]
    }
}

/// One sample of a profile.
#[derive(Debug, Clone, Copy)]
pub struct ProfileSample<'a> {
    profile: &'a Profile,
    index: usize,
}

impl<'a> ProfileSample<'a> {
    fn previous_sample_end(&self) -> SampleEnd {
        if self.index == 0 { SampleEnd::default() } else { self.profile.samples[self.index - 1] }
    }

    /// Returns the values of the sample, one for each column.
    pub fn values(&self) -> &'a [i64] {
        let width = self.profile.sample_types.len();
        &self.profile.values[self.index * width..][..width]
    }

    /// Returns the functions of the stack from the root to the leaf, including inlined functions.
    /// The result is empty if the source had no stack.
    pub fn functions_from_root(&self) -> impl Iterator<Item = FunctionId> + use<'a> {
        let profile = self.profile;
        let stack =
            &profile.stacks[self.previous_sample_end().stack as usize..profile.samples[self.index].stack as usize];
        stack.iter().rev().flat_map(|place| profile.functions_at_location(*place).iter().rev().copied())
    }

    /// Returns the labels of the sample.
    pub fn labels(&self) -> impl Iterator<Item = &'a Label> + use<'a> {
        let profile = self.profile;
        let ids = &profile.sample_labels
            [self.previous_sample_end().labels as usize..profile.samples[self.index].labels as usize];
        ids.iter().map(|id| &profile.labels[*id as usize])
    }
}

/// Returns the estimated heap size of a text in bytes, including the overhead of an allocation.
fn text_heap_bytes(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.len().next_multiple_of(16) + 16 }
}

/// Builds a profile in this order: functions, then places (code addresses) with functions, then
/// samples with places. A caller must not use ids of another builder: such ids cause a panic when
/// the profile is read, or earlier.
#[derive(Debug)]
pub struct ProfileBuilder {
    profile: Profile,
    by_name: HashMap<String, FunctionId>,
    by_label: HashMap<Label, u32>,
    /// Bytes of all stored function and label texts. A text that is stored twice counts twice.
    text_bytes: usize,
}

impl ProfileBuilder {
    /// Creates a builder for a profile with these columns (at least one). The last column is the
    /// default.
    pub fn new(sample_types: Vec<ValueType>) -> ProfileBuilder {
        assert!(!sample_types.is_empty(), "a profile counts something");
        let profile = Profile {
            sample_type_default: sample_types.len() - 1,
            sample_types,
            period_type: None,
            period: 0,
            time_unix_ns: 0,
            duration_ns: 0,
            functions: Vec::new(),
            labels: Vec::new(),
            location_functions: Vec::new(),
            location_ends: Vec::new(),
            stacks: Vec::new(),
            sample_labels: Vec::new(),
            samples: Vec::new(),
            values: Vec::new(),
        };
        ProfileBuilder { profile, by_name: HashMap::new(), by_label: HashMap::new(), text_bytes: 0 }
    }

    /// Returns an upper estimate of the builder's memory in bytes. Tables may have twice the needed
    /// capacity, and exist twice while they grow.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        const GROWTH_MEMORY_FACTOR: usize = 3;
        let it = &self.profile;
        let numbers = it.location_functions.len() + it.location_ends.len() + it.stacks.len() + it.sample_labels.len();
        let tables = 4 * numbers + 8 * it.values.len() + size_of::<SampleEnd>() * it.samples.len();
        let names = it.functions.len() * (size_of::<Function>() + size_of::<(String, FunctionId)>() + 1);
        let labels = it.labels.len() * (2 * size_of::<Label>() + size_of::<u32>() + 1);
        GROWTH_MEMORY_FACTOR * (tables + names + labels) + self.text_bytes
    }

    /// Returns the function with this name, and adds the function if it is missing. The file of the
    /// function is the first given file that is not empty.
    pub fn intern_function(&mut self, name: &str, file: &str) -> FunctionId {
        if let Some(id) = self.by_name.get(name) {
            let known = &mut self.profile.functions[*id as usize];
            if known.file.is_empty() {
                file.clone_into(&mut known.file);
            }
            return *id;
        }
        let id = self.profile.functions.len() as FunctionId;
        self.text_bytes += text_heap_bytes(name) * 2 + text_heap_bytes(file);
        self.profile.functions.push(Function { name: name.to_owned(), file: file.to_owned() });
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// Adds a place (code address) with these functions, innermost first, and returns the number of
    /// the place.
    pub fn add_location(&mut self, functions: &[FunctionId]) -> u32 {
        self.profile.location_functions.extend_from_slice(functions);
        self.profile.location_ends.push(self.profile.location_functions.len() as u32);
        self.profile.location_ends.len() as u32 - 1
    }

    /// Returns the number of this label, and adds the label if it is missing.
    pub fn intern_label(&mut self, label: Label) -> u32 {
        let labels = &mut self.profile.labels;
        let text = &mut self.text_bytes;
        *self.by_label.entry(label).or_insert_with_key(|label| {
            let value = match &label.value {
                LabelValue::Text(text) | LabelValue::Number(_, text) => text,
            };
            *text += 2 * (text_heap_bytes(&label.key) + text_heap_bytes(value));
            labels.push(label.clone());
            labels.len() as u32 - 1
        })
    }

    /// Adds a place (code address) to the stack of the next sample. The first place of a stack is
    /// the leaf (the code that was running).
    pub fn push_location(&mut self, place: u32) {
        self.profile.stacks.push(place);
    }

    /// Adds a label to the next sample.
    pub fn push_label(&mut self, label: u32) {
        self.profile.sample_labels.push(label);
    }

    /// Ends a sample with its values, one for each column.
    pub fn end_sample(&mut self, values: &[i64]) {
        let profile = &mut self.profile;
        assert_eq!(values.len(), profile.sample_types.len(), "a sample has one value for each column of the profile");
        profile.values.extend_from_slice(values);
        let end = SampleEnd { stack: profile.stacks.len() as u32, labels: profile.sample_labels.len() as u32 };
        profile.samples.push(end);
    }

    /// Sets the default column; if this function is not called, the last column is the default.
    pub fn set_default_type(&mut self, index: usize) {
        assert!(index < self.profile.sample_types.len(), "the column exists");
        self.profile.sample_type_default = index;
    }

    /// Sets the quantity by which the profiler took samples, and the mean amount between two
    /// samples.
    pub fn set_period(&mut self, period_type: Option<ValueType>, period: i64) {
        self.profile.period_type = period_type;
        self.profile.period = period;
    }

    /// Sets the time of the profile, ns since 1970, and its length, ns.
    pub fn set_time(&mut self, time_unix_ns: i64, duration_ns: i64) {
        self.profile.time_unix_ns = time_unix_ns;
        self.profile.duration_ns = duration_ns;
    }

    /// Returns the finished profile.
    pub fn finish(self) -> Profile {
        self.profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_read_from_the_root_with_inlined_frames() {
        let mut builder =
            ProfileBuilder::new(vec![ValueType::new("samples", "count"), ValueType::new("space", "bytes")]);
        let ids: Vec<_> = ["main", "serve", "inlined", "main"].map(|name| builder.intern_function(name, "")).to_vec();
        assert_eq!(ids, [0, 1, 2, 0], "functions are one by name");
        builder.intern_function("serve", "serve.go");
        let (main, serve) = (builder.add_location(&[0]), builder.add_location(&[2, 1]));
        builder.push_location(serve);
        builder.push_location(main);
        let label = Label { key: "endpoint".into(), value: LabelValue::Text("/a".into()) };
        let id = builder.intern_label(label.clone());
        assert_eq!(builder.intern_label(label.clone()), id, "labels are kept once");
        builder.push_label(id);
        builder.end_sample(&[1, 100]);
        builder.end_sample(&[2, 5]);
        let profile = builder.finish();
        let samples: Vec<_> = profile.samples().collect();
        assert_eq!(samples[0].functions_from_root().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((samples[0].values(), samples[1].values()), (&[1, 100][..], &[2, 5][..]));
        assert_eq!(samples[0].labels().collect::<Vec<_>>(), [&label]);
        assert_eq!((samples[1].functions_from_root().count(), samples[1].labels().count()), (0, 0));
        assert_eq!(profile.functions()[1].file, "serve.go");
        for (wanted, expect) in [
            (None, Some(1)),
            (Some("0"), Some(0)),
            (Some("2"), None),
            (Some("space"), Some(1)),
            (Some("inuse_space"), Some(1)),
            (Some("alloc_space"), None),
        ] {
            assert_eq!(profile.sample_type_index(wanted), expect, "{wanted:?}");
        }
    }
}
