//! Reads the function table that every Go program has for its own tracebacks (`.gopclntab`), even a
//! stripped program. The format is that of Go 1.18 and later. Since 1.26 the start of the code is
//! not in the table but in the module data.
//!
//! ```text
//! table = magic (u32) 0 0 quantum (u8) pointer size (u8)
//!         functions, files, start of code, then offsets of: names, units, files, lines,
//!         functions (each of pointer size)
//! functions = (entry - start of code, offset of the function's description) (u32, u32) x count,
//!             end of code
//! description of a function = entry (u32), offset of its name (u32), ...
//! ```

use super::byte_source::{RandomAccessBytes, little_endian_number_at};

/// The first numbers (magic) of the function tables of Go 1.18 and 1.20.
const PCLNTAB_MAGICS: [u64; 2] = [0xffff_fff0, 0xffff_fff1];
/// The largest accepted number of functions in a program. Real programs have fewer functions.
const FUNCTIONS_MAX: u64 = 4 << 20;
/// The longest part of a function name that is read, in bytes.
const NAME_BYTES: usize = 512;
/// The index of the code's start address in the module data, in words of 8 bytes. The preceding
/// words are the header's address, six slices, the function lookup table, and the first and last
/// address.
const MODULE_TEXT_WORD: u64 = 22;

/// The functions of a Go program.
pub(super) struct GoFunctions {
    /// The address at which the Go code of the program begins.
    text: u64,
    /// The part `functions` of the table (see the format at the top of this file).
    entries: Vec<u8>,
    count: usize,
    /// The file offset of the function names.
    names_at: u64,
    /// The file offset of the part `functions` of the table.
    functions_at: u64,
}

/// The locations in a Go program's file from which the function table and the start of the code are
/// read.
pub(super) struct GoCodeLocation {
    /// The file offset and length of the function table.
    pub(super) table: (u64, u64),
    /// The file offset of the module data, if it is a separate section.
    pub(super) module_at: Option<u64>,
    /// The address of the code section and its length, bytes.
    pub(super) text: (u64, u64),
    /// Whether code of other languages may precede Go's code in the code section.
    pub(super) is_mixed: bool,
}

impl GoFunctions {
    /// Reads the function table of a file. `None` if the format has another version, or the start
    /// of the code is unknown.
    pub(super) fn read<P: RandomAccessBytes + ?Sized>(file: &P, places: &GoCodeLocation) -> Option<GoFunctions> {
        let (at, length) = places.table;
        let head = file.read_part(at, 8 + 8 * 8);
        let word = |number: usize| little_endian_number_at(&head, 8 + 8 * number, 8);
        let is_known = PCLNTAB_MAGICS.contains(&little_endian_number_at(&head, 0, 4)?)
            && head.get(4..6)? == [0, 0]
            && head.get(7)? == &8;
        let count = word(0).filter(|count| is_known && *count <= FUNCTIONS_MAX)?;
        let inside = |offset: u64| (offset < length).then(|| at.checked_add(offset)).flatten();
        let (names_at, functions_at) = (inside(word(3)?)?, inside(word(7)?)?);
        let (from, size) = places.text;
        let is_code = |address: &u64| *address >= from && *address - from < size;
        let module = |at: u64| little_endian_number_at(&file.read_part(at.checked_add(8 * MODULE_TEXT_WORD)?, 8), 0, 8);
        let text = word(2).filter(is_code).or_else(|| places.module_at.and_then(module).filter(is_code));
        let text = text.or((!places.is_mixed).then_some(from))?;
        let bytes = count as usize * 8 + 4;
        let entries = file.read_part(functions_at, bytes).into_owned();
        let is_whole = entries.len() == bytes;
        is_whole.then_some(GoFunctions { text, entries, count: count as usize, names_at, functions_at })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.len()
    }

    fn entry_offset(&self, number: usize) -> u64 {
        little_endian_number_at(&self.entries, number * 8, 4).unwrap_or(u64::MAX)
    }

    /// Returns the name of the function at an address, and the address at which it begins.
    pub(super) fn function_at<P: RandomAccessBytes + ?Sized>(&self, file: &P, address: u64) -> Option<(Vec<u8>, u64)> {
        let within = address.checked_sub(self.text)?;
        if within >= self.entry_offset(self.count) {
            return None;
        }
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry_offset(middle) <= within { low = middle + 1 } else { high = middle }
        }
        let number = low.checked_sub(1)?;
        let about = self.functions_at.checked_add(little_endian_number_at(&self.entries, number * 8 + 4, 4)?)?;
        let name = little_endian_number_at(&file.read_part(about.checked_add(4)?, 4), 0, 4)?;
        let bytes = file.read_part(self.names_at.checked_add(name)?, NAME_BYTES);
        let name: Vec<u8> = bytes.iter().copied().take_while(|byte| *byte != 0).collect();
        (!name.is_empty()).then(|| (name, self.text + self.entry_offset(number)))
    }
}
