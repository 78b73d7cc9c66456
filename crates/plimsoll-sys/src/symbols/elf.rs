//! Reads the functions of a program or library from its ELF file (64 bits, little-endian), and the
//! layout of stack frames ([`Functions`]). The functions come from Go's own function table if
//! present, otherwise from the symbols, otherwise from the dynamic symbols.
//!
//! Names stay in the file until they are needed, because the symbols of a large program need a
//! hundred megabytes.

use super::byte_source::{RandomAccessBytes, little_endian_number_at};
use super::frames::{FrameRule, FrameTable, LoadedBytes};
use super::go::{GoCodeLocation, GoFunctions};
use std::borrow::Cow;

/// The largest accepted number of segments in a file. Real programs have fewer segments.
const SEGMENTS_MAX: u64 = 256;
/// The largest accepted number of sections in a file. Real programs have fewer sections.
const SECTIONS_MAX: u64 = 4096;
/// The largest accepted number of symbols in a file. Real programs have fewer symbols.
const SYMBOLS_MAX: u64 = 4 << 20;
/// The largest accepted total length of all section names in a file, bytes. The section names of
/// real programs are shorter.
const SECTION_NAMES_BYTES_MAX: u64 = 1 << 20;
/// The longest part of a function name that is read, in bytes. Function names of C++ can be long.
const NAME_BYTES: usize = 1024;

const PT_LOAD: u64 = 1;
const PT_GNU_EH_FRAME: u64 = 0x6474_e550;
const SHT_SYMTAB: u64 = 2;
const SHT_DYNSYM: u64 = 11;
const SYMBOL_BYTES: u64 = 24;
/// The type of a symbol that is a function.
const STT_FUNC: u64 = 2;
/// The type of a symbol whose function is chosen when the file is loaded.
const STT_GNU_IFUNC: u64 = 10;
/// The longest code that is assumed for a symbol without a length, in bytes.
const SYMBOL_LENGTH_MAX: u64 = 64 << 10;

/// A segment: a part of the file that is loaded into memory.
struct LoadedSegment {
    offset: u64,
    size: u64,
    address: u64,
}

#[derive(Clone, Copy)]
struct Symbol {
    address: u64,
    size: u32,
    name_offset: u32,
}

/// A section of the file: file offset and length, address, linked section, and type.
struct Section {
    name: String,
    kind: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u64,
}

/// A function that was found at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFunction {
    /// The name as written in the file.
    pub name: Vec<u8>,
    /// The file offset at which the function begins.
    pub start_offset: u64,
}

/// The functions of an ELF file.
pub struct Functions<P> {
    file: P,
    segments: Vec<LoadedSegment>,
    frames: Option<FrameTable>,
    go: Option<GoFunctions>,
    symbols: Vec<Symbol>,
    /// The file offset and length of the names of symbols.
    names: (u64, u64),
}

impl<P: RandomAccessBytes> Functions<P> {
    /// Reads the functions of a file; `None` if it is no ELF file, or has no known table.
    pub fn read(file: P) -> Option<Functions<P>> {
        let head = file.read_part(0, 64).into_owned();
        let is_elf = head.get(..6)? == [0x7f, b'E', b'L', b'F', 2, 1];
        let field = |at: usize, size: usize| little_endian_number_at(&head, at, size);
        let (segments_at, sections_at) = (field(32, 8).filter(|_| is_elf)?, field(40, 8)?);
        let (segments, frames_at) = read_segments(&file, segments_at, field(56, 2)?.min(SEGMENTS_MAX));
        let frames = frames_at.and_then(|at| FrameTable::read(&SegmentBytes { file: &file, segments: &segments }, at));
        let sections = read_sections(&file, sections_at, field(60, 2)?.min(SECTIONS_MAX), field(62, 2)? as usize);
        let go = read_go_functions(&file, &sections);
        let table =
            [SHT_SYMTAB, SHT_DYNSYM].into_iter().find_map(|kind| sections.iter().find(|section| section.kind == kind));
        let (symbols, names) = table.and_then(|table| read_symbols(&file, table, &sections)).unwrap_or_default();
        let has_tables = go.is_some() || !symbols.is_empty() || frames.is_some();
        has_tables.then_some(Functions { file, segments, frames, go, symbols, names })
    }

    /// Returns the approximate memory of the tables, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.symbols.len() * size_of::<Symbol>() + self.go.as_ref().map_or(0, GoFunctions::memory_bytes)
    }

    /// Returns the layout of the stack frame at a file offset of the code.
    pub fn frame_at(&self, offset: u64) -> Option<FrameRule> {
        let segment = self.segment_at_offset(offset)?;
        let address = (offset - segment.offset).checked_add(segment.address)?;
        self.frames?.rule_at_instruction(&SegmentBytes { file: &self.file, segments: &self.segments }, address)
    }

    fn segment_at_offset(&self, offset: u64) -> Option<&LoadedSegment> {
        self.segments.iter().find(|it| offset >= it.offset && offset - it.offset < it.size)
    }

    /// Returns the function at a file offset; `None` if no function is known at this offset.
    pub fn function_at(&self, offset: u64) -> Option<FoundFunction> {
        let segment = self.segment_at_offset(offset)?;
        let address = (offset - segment.offset).checked_add(segment.address)?;
        let in_file = |at: u64| at.checked_sub(segment.address).and_then(|within| within.checked_add(segment.offset));
        let found = |name: Vec<u8>, start: u64| {
            let start_offset = in_file(start).unwrap_or(0);
            FoundFunction { name, start_offset }
        };
        if let Some((name, start)) = self.go.as_ref().and_then(|go| go.function_at(&self.file, address)) {
            return Some(found(name, start));
        }
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        if address - symbol.address >= u64::from(symbol.size) {
            return None;
        }
        let name = self.names.0.checked_add(u64::from(symbol.name_offset))?;
        let room = (self.names.1.saturating_sub(u64::from(symbol.name_offset))).min(NAME_BYTES as u64) as usize;
        let name: Vec<u8> = self.file.read_part(name, room).iter().copied().take_while(|byte| *byte != 0).collect();
        (!name.is_empty()).then(|| found(name, symbol.address))
    }
}

/// The bytes of a file, found by the memory address at which each byte is loaded.
struct SegmentBytes<'a, P> {
    file: &'a P,
    segments: &'a [LoadedSegment],
}

impl<P: RandomAccessBytes> LoadedBytes for SegmentBytes<'_, P> {
    fn bytes_at_address(&self, address: u64, length: usize) -> Cow<'_, [u8]> {
        let segment = self.segments.iter().find(|it| address >= it.address && address - it.address < it.size);
        let Some(segment) = segment else { return Cow::Borrowed(&[]) };
        let within = address - segment.address;
        let room = usize::try_from(segment.size - within).unwrap_or(usize::MAX);
        self.file.read_part(segment.offset.saturating_add(within), length.min(room))
    }
}

/// Reads the loaded segments, and the address of the frame table's header.
fn read_segments<P: RandomAccessBytes>(file: &P, at: u64, count: u64) -> (Vec<LoadedSegment>, Option<u64>) {
    let bytes = file.read_part(at, count as usize * 56);
    let of = |part: &[u8]| {
        let field = |at: usize| little_endian_number_at(part, at, 8);
        let (offset, address, size) = (field(8)?, field(16)?, field(32)?);
        (little_endian_number_at(part, 0, 4)? == PT_LOAD).then_some(LoadedSegment { offset, size, address })
    };
    let frames = bytes.chunks_exact(56).find(|part| little_endian_number_at(part, 0, 4) == Some(PT_GNU_EH_FRAME));
    (bytes.chunks_exact(56).filter_map(of).collect(), frames.and_then(|part| little_endian_number_at(part, 16, 8)))
}

fn read_sections<P: RandomAccessBytes>(file: &P, at: u64, count: u64, names: usize) -> Vec<Section> {
    let bytes = file.read_part(at, count as usize * 64);
    let heads: Vec<&[u8]> = bytes.chunks_exact(64).collect();
    let extent = |part: &[u8]| Some((little_endian_number_at(part, 24, 8)?, little_endian_number_at(part, 32, 8)?));
    let names = heads.get(names).and_then(|part| extent(part)).unwrap_or_default();
    let names = file.read_part(names.0, names.1.min(SECTION_NAMES_BYTES_MAX) as usize);
    let of = |part: &&[u8]| {
        let (offset, size) = extent(part)?;
        let name = names.get(little_endian_number_at(part, 0, 4)? as usize..).unwrap_or_default();
        let name = name.iter().copied().take(64).take_while(|byte| *byte != 0).collect::<Vec<u8>>();
        Some(Section {
            name: String::from_utf8_lossy(&name).into_owned(),
            kind: little_endian_number_at(part, 4, 4)?,
            address: little_endian_number_at(part, 16, 8)?,
            offset,
            size,
            link: little_endian_number_at(part, 40, 4)?,
        })
    };
    heads.iter().filter_map(of).collect()
}

fn read_go_functions<P: RandomAccessBytes>(file: &P, sections: &[Section]) -> Option<GoFunctions> {
    let named = |name: &str| sections.iter().find(|section| section.name == name);
    let table = named(".gopclntab").or(named(".data.rel.ro.gopclntab"))?;
    let text = named(".text")?;
    let places = GoCodeLocation {
        table: (table.offset, table.size),
        module_at: named(".go.module").map(|section| section.offset),
        text: (text.address, text.size),
        is_mixed: named(".init").is_some(),
    };
    GoFunctions::read(file, &places)
}

/// Reads the functions in a symbol table, sorted by address. Also returns the file offset and
/// length of the symbol names.
fn read_symbols<P: RandomAccessBytes>(
    file: &P,
    table: &Section,
    sections: &[Section],
) -> Option<(Vec<Symbol>, (u64, u64))> {
    let names = sections.get(table.link as usize)?;
    let count = (table.size / SYMBOL_BYTES).min(SYMBOLS_MAX);
    let bytes = file.read_part(table.offset, (count * SYMBOL_BYTES) as usize);
    let of = |part: &[u8]| {
        let kind = little_endian_number_at(part, 4, 1)? & 15;
        let (section, address) = (little_endian_number_at(part, 6, 2)?, little_endian_number_at(part, 8, 8)?);
        // A symbol without a length reaches to the end of its section. Bytes after the section
        // (such as the PLT) are not part of the symbol.
        let section_end = sections.get(section as usize).map_or(0, |it| it.address.saturating_add(it.size));
        let size = little_endian_number_at(part, 16, 8)?;
        let size = if size == 0 { section_end.saturating_sub(address).min(SYMBOL_LENGTH_MAX) } else { size };
        let size = size.min(u64::from(u32::MAX)) as u32;
        let name_offset = little_endian_number_at(part, 0, 4)? as u32;
        let is_code = matches!(kind, STT_FUNC | STT_GNU_IFUNC) && section != 0 && address != 0 && name_offset != 0;
        is_code.then_some(Symbol { address, size, name_offset })
    };
    let mut symbols: Vec<Symbol> = bytes.chunks_exact(SYMBOL_BYTES as usize).filter_map(of).collect();
    // If several symbols have the same address, the symbol with the longest code is used.
    symbols.sort_by_key(|symbol| (symbol.address, symbol.size));
    Some((symbols, (names.offset, names.size)))
}
