//! Finds the callers of a function whose code has no frame pointers ([`unwind_callers`]). The
//! source is the unwind tables that compilers write for exceptions and debuggers ([`FrameTable`]).
//! For each instruction, an unwind table gives the location of the function's stack frame. The
//! unwind tables are `.eh_frame_hdr` and `.eh_frame` of the Linux Standard Base, with the call
//! frame instructions of DWARF 5, 6.4. Registers are numbered as in the x86-64 psABI.
//!
//! The innermost functions of a stack often have no frame pointer. Examples of innermost functions
//! are functions of the C library, of the kernel's clock page (vDSO), and functions that call no
//! other function. A chain of frame pointers leaves out the callers of functions without a frame
//! pointer, although the callers cause the CPU time.
//!
//! The walk through the stack follows only the stack pointer and the frame pointer. The walk ends
//! at a frame that needs an expression or another register, because a missing caller is better
//! than a wrong caller. Not here: the file that is mapped at an address.

use super::byte_source::little_endian_number_at;
use crate::sampling::StackTop;
use std::borrow::Cow;

/// The largest number of callers that are searched. The sampled part of the stack rarely contains
/// more callers of interest.
const CALLERS_MAX: usize = 16;
/// The longest entry of an unwind table that is read, in bytes. Table entries of real programs are
/// shorter.
const ENTRY_BYTES_MAX: u64 = 64 << 10;
/// The largest number of states that call frame instructions may save at the same time.
const SAVED_STATES_MAX: usize = 16;
/// The first bytes of the unwind table's header, as all linkers write them. The first byte of the
/// header is version 1. The next three bytes are the encodings of three 4-byte fields: table
/// address, number of entries, and entries.
const HEADER_FIRST_BYTES: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

const FRAME_POINTER: u64 = 6;
const STACK_POINTER: u64 = 7;
const RETURN_ADDRESS: u64 = 16;

/// The location of a caller's register value while the called function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegisterRule {
    /// The caller's value of a register is in the same register.
    Same,
    /// The caller's value of a register is on the stack, at this offset in bytes from the end of
    /// the frame.
    At(i64),
    /// The location of the register's value is unknown.
    Unknown,
}

/// The location of a stack frame at an instruction. The end of the frame is the value of the stack
/// pointer before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRule {
    /// Whether the end of the frame is relative to the frame pointer; otherwise it is relative to
    /// the stack pointer.
    is_relative_to_frame_pointer: bool,
    /// The offset that is added to the frame pointer or stack pointer to get the end of the frame.
    offset: i64,
    /// The location of the caller's frame pointer.
    frame: RegisterRule,
    /// The offset of the return address from the end of the frame.
    return_address_offset: i64,
}

/// The bytes of a file, found by the memory address at which each byte is loaded.
pub trait LoadedBytes {
    /// Returns `length` bytes from `address` on, or fewer at the end of the bytes.
    fn bytes_at_address(&self, address: u64, length: usize) -> Cow<'_, [u8]>;
}

/// The unwind table of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTable {
    /// The address of the header of the table.
    header: u64,
    count: u64,
}

impl FrameTable {
    /// Reads the table whose header is loaded at the address `header`.
    pub fn read(file: &impl LoadedBytes, header: u64) -> Option<FrameTable> {
        let head = file.bytes_at_address(header, 12);
        let count = little_endian_number_at(&head, 8, 4)?;
        (head[..4] == HEADER_FIRST_BYTES).then_some(FrameTable { header, count })
    }

    /// Returns the location of the stack frame at an instruction; `None` if the location is
    /// unknown.
    pub fn rule_at_instruction(&self, file: &impl LoadedBytes, address: u64) -> Option<FrameRule> {
        let entry = |number: u64| {
            let bytes = file.bytes_at_address(self.header.checked_add(12 + 8 * number)?, 8);
            let field = |at| {
                Some(self.header.wrapping_add_signed(i64::from(little_endian_number_at(&bytes, at, 4)? as u32 as i32)))
            };
            Some((field(0)?, field(4)?))
        };
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = from.midpoint(to);
            if entry(middle)?.0 <= address { from = middle + 1 } else { to = middle }
        }
        let (_, function) = entry(from.checked_sub(1)?)?;
        let (about, about_at) = read_table_entry(file, function)?;
        let mut about = TableReader { bytes: &about, at: 4, start: about_at };
        let common_at = about_at.checked_sub(little_endian_number_at(about.bytes, 0, 4)?)?;
        let (common, at) = read_table_entry(file, common_at)?;
        let (shared, mut first) = SharedFrames::read(TableReader { bytes: &common, at: 0, start: at })?;
        let start = about.read_pointer(shared.pointer_encoding)?;
        let length = about.read_pointer(shared.pointer_encoding & 0x0f)?;
        if address < start || address - start >= length {
            return None;
        }
        if shared.has_augmentation_data {
            let more = about.read_uleb128()?;
            about.skip(more)?;
        }
        let bare = FrameState { end: None, frame: RegisterRule::Same, back: RegisterRule::Unknown };
        let initial = first.run_frame_instructions(&shared, bare, bare, None)?;
        about.run_frame_instructions(&shared, initial, initial, Some((start, address)))?.frame_rule()
    }
}

/// Reads an entry of the unwind table. Returns the bytes of the entry after its length field, and
/// the address of these bytes.
fn read_table_entry(file: &impl LoadedBytes, at: u64) -> Option<(Vec<u8>, u64)> {
    let length = little_endian_number_at(&file.bytes_at_address(at, 4), 0, 4)?;
    let start = at.checked_add(4)?;
    let bytes = file.bytes_at_address(start, length.min(ENTRY_BYTES_MAX) as usize);
    (length >= 4 && bytes.len() as u64 == length).then(|| (bytes.into_owned(), start))
}

/// The stack frame information that several functions share (a common information entry).
struct SharedFrames {
    code_unit: u64,
    data_unit: i64,
    /// The encoding of addresses.
    pointer_encoding: u8,
    /// Whether additional data precedes the call frame instructions of each function.
    has_augmentation_data: bool,
}

impl SharedFrames {
    /// Reads the frame information that several functions share. Returns the shared information,
    /// and a reader of the call frame instructions that follow the shared information.
    fn read(mut reader: TableReader) -> Option<(SharedFrames, TableReader)> {
        let (is_shared, version) = (reader.read_number(4)? == 0, reader.read_number(1)?);
        if !is_shared || !matches!(version, 1 | 3) {
            return None;
        }
        let letters: Vec<u8> =
            std::iter::from_fn(|| reader.read_number(1).map(|byte| byte as u8).filter(|it| *it != 0)).collect();
        let (code_unit, data_unit) = (reader.read_uleb128()?, reader.read_sleb128()?);
        let back = if version == 1 { reader.read_number(1)? } else { reader.read_uleb128()? };
        if back != RETURN_ADDRESS {
            return None;
        }
        let mut shared = SharedFrames {
            code_unit,
            data_unit,
            pointer_encoding: 0,
            has_augmentation_data: letters.first() == Some(&b'z'),
        };
        let mut rest = reader;
        if shared.has_augmentation_data {
            let length = reader.read_uleb128()?;
            rest = reader;
            rest.skip(length)?;
        }
        for letter in letters.iter().skip(usize::from(shared.has_augmentation_data)) {
            match letter {
                b'L' => _ = reader.read_number(1)?,
                b'P' => {
                    let encoding = reader.read_number(1)? as u8;
                    reader.read_pointer(encoding & 0x1f)?;
                }
                b'R' => shared.pointer_encoding = reader.read_number(1)? as u8,
                // The letter S marks a frame that the kernel created for a signal. Frames of
                // signals and frames with unknown letters get no rule.
                _ => return None,
            }
        }
        Some((shared, rest))
    }
}

#[derive(Clone, Copy)]
struct FrameState {
    /// The register to which the frame's end is relative, and the offset. `None` if the frame's end
    /// is defined by an expression.
    end: Option<(u64, i64)>,
    frame: RegisterRule,
    back: RegisterRule,
}

impl FrameState {
    fn set_register_rule(&mut self, register: u64, kept: RegisterRule) {
        match register {
            FRAME_POINTER => self.frame = kept,
            RETURN_ADDRESS => self.back = kept,
            _ => {}
        }
    }

    fn frame_rule(self) -> Option<FrameRule> {
        let (register, offset) = self.end?;
        let is_relative_to_frame_pointer = register == FRAME_POINTER;
        match self.back {
            RegisterRule::At(return_address_offset) if is_relative_to_frame_pointer || register == STACK_POINTER => {
                Some(FrameRule { is_relative_to_frame_pointer, offset, frame: self.frame, return_address_offset })
            }
            // There is no caller, as at the start of a thread, or the frame's end needs another
            // register.
            _ => None,
        }
    }
}

/// A reader of a part of the unwind table.
#[derive(Clone, Copy)]
struct TableReader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The address of the first byte of the part that is read.
    start: u64,
}

impl TableReader<'_> {
    fn read_number(&mut self, size: usize) -> Option<u64> {
        let number = little_endian_number_at(self.bytes, self.at, size)?;
        self.at += size;
        Some(number)
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(length).ok()?)?;
        self.at = at;
        (at <= self.bytes.len()).then_some(())
    }

    /// Reads a number in groups of 7 bits (LEB128). Returns the value, the number of bits, and
    /// whether the sign bit of a signed number is set.
    fn read_leb128(&mut self) -> Option<(u64, u32, bool)> {
        let (mut sum, mut bits) = (0u64, 0);
        loop {
            let byte = self.read_number(1)?;
            sum |= (byte & 0x7f).checked_shl(bits).unwrap_or(0);
            bits += 7;
            if byte & 0x80 == 0 {
                return Some((sum, bits, byte & 0x40 != 0));
            }
        }
    }

    fn read_uleb128(&mut self) -> Option<u64> {
        self.read_leb128().map(|(sum, ..)| sum)
    }

    fn read_sleb128(&mut self) -> Option<i64> {
        let (sum, bits, negative) = self.read_leb128()?;
        let above = if negative { u64::MAX.checked_shl(bits).unwrap_or(0) } else { 0 };
        Some((sum | above) as i64)
    }

    /// Reads an address in the given encoding (`DW_EH_PE_...`): absolute, or relative to the
    /// address of the field itself.
    fn read_pointer(&mut self, encoding: u8) -> Option<u64> {
        let from = match encoding & 0xf0 {
            0x00 => 0,
            0x10 => self.start.checked_add(self.at as u64)?,
            _ => return None,
        };
        let number = match encoding & 0x0f {
            0x03 => self.read_number(4)?,
            0x0b => i64::from(self.read_number(4)? as u32 as i32) as u64,
            0x00 | 0x04 | 0x0c => self.read_number(8)?,
            _ => return None,
        };
        Some(from.wrapping_add(number))
    }

    /// Executes call frame instructions. If `at` is given (the start of a function and an address
    /// in it), only instructions up to that address are executed. `None` if an instruction is
    /// unknown.
    fn run_frame_instructions(
        &mut self,
        shared: &SharedFrames,
        mut state: FrameState,
        initial: FrameState,
        at: Option<(u64, u64)>,
    ) -> Option<FrameState> {
        let (mut now, until) = at.unwrap_or((0, u64::MAX));
        let mut remembered = Vec::new();
        let scaled = |factor: u64| (factor as i64).wrapping_mul(shared.data_unit);
        let of_initial = |register| if register == FRAME_POINTER { initial.frame } else { initial.back };
        while self.at < self.bytes.len() {
            let code = self.read_number(1)?;
            let (kind, low) = (code & 0xc0, code & 0x3f);
            let advance = match (kind, low) {
                (0x40, delta) => delta,
                (0, 0x02) => self.read_number(1)?,
                (0, 0x03) => self.read_number(2)?,
                (0, 0x04) => self.read_number(4)?,
                _ => 0,
            };
            now = now.saturating_add(advance.saturating_mul(shared.code_unit));
            if now > until {
                break;
            }
            match (kind, low) {
                (0x40, _) | (0, 0x00 | 0x02..=0x04) => {}
                (0x80, register) => state.set_register_rule(register, RegisterRule::At(scaled(self.read_uleb128()?))),
                (0xc0, register) => state.set_register_rule(register, of_initial(register)),
                (0, 0x05) => {
                    let register = self.read_uleb128()?;
                    state.set_register_rule(register, RegisterRule::At(scaled(self.read_uleb128()?)));
                }
                (0, 0x06) => {
                    let register = self.read_uleb128()?;
                    state.set_register_rule(register, of_initial(register));
                }
                (0, 0x07) => state.set_register_rule(self.read_uleb128()?, RegisterRule::Unknown),
                (0, 0x08) => state.set_register_rule(self.read_uleb128()?, RegisterRule::Same),
                // The caller's value is in another register, or is computed and not stored.
                (0, 0x09 | 0x14 | 0x15) => {
                    state.set_register_rule(self.read_uleb128()?, RegisterRule::Unknown);
                    self.read_uleb128()?;
                }
                (0, 0x0a) if remembered.len() < SAVED_STATES_MAX => remembered.push(state),
                (0, 0x0b) => state = remembered.pop()?,
                (0, 0x0c) => state.end = Some((self.read_uleb128()?, self.read_uleb128()? as i64)),
                (0, 0x0d) => state.end = Some((self.read_uleb128()?, state.end?.1)),
                (0, 0x0e) => state.end = Some((state.end?.0, self.read_uleb128()? as i64)),
                (0, 0x0f) => {
                    let length = self.read_uleb128()?;
                    self.skip(length)?;
                    state.end = None;
                }
                (0, 0x10 | 0x16) => {
                    state.set_register_rule(self.read_uleb128()?, RegisterRule::Unknown);
                    let length = self.read_uleb128()?;
                    self.skip(length)?;
                }
                (0, 0x11) => {
                    let register = self.read_uleb128()?;
                    state.set_register_rule(
                        register,
                        RegisterRule::At(self.read_sleb128()?.wrapping_mul(shared.data_unit)),
                    );
                }
                (0, 0x12) => {
                    let register = self.read_uleb128()?;
                    state.end = Some((register, self.read_sleb128()?.wrapping_mul(shared.data_unit)));
                }
                (0, 0x13) => state.end = Some((state.end?.0, self.read_sleb128()?.wrapping_mul(shared.data_unit))),
                // This instruction gives the number of bytes of arguments on the stack, which is
                // skipped.
                (0, 0x2e) => _ = self.read_uleb128()?,
                _ => return None,
            }
        }
        Some(state)
    }
}

/// Replaces the content of `into` by the sampled address and the addresses of its callers. The list
/// of callers ends where `rule` returns `None`, or where the sampled part of the stack ends. The
/// function `rule` gets an address, and whether the address is a return address.
pub fn unwind_callers(top: &StackTop, mut rule: impl FnMut(u64, bool) -> Option<FrameRule>, into: &mut Vec<u64>) {
    let word = |address: u64| {
        little_endian_number_at(top.bytes, usize::try_from(address.checked_sub(top.stack_pointer)?).ok()?, 8)
    };
    into.clear();
    into.push(top.instruction_pointer);
    let (mut at, mut stack, mut frame) = (top.instruction_pointer, top.stack_pointer, Some(top.frame_pointer));
    while into.len() <= CALLERS_MAX {
        let caller = rule(at, into.len() > 1).and_then(|rule| {
            let end = if rule.is_relative_to_frame_pointer { frame? } else { stack }.checked_add_signed(rule.offset)?;
            let back = word(end.checked_add_signed(rule.return_address_offset)?).filter(|back| *back != 0)?;
            let frame = match rule.frame {
                RegisterRule::Same => frame,
                RegisterRule::At(offset) => end.checked_add_signed(offset).and_then(word),
                RegisterRule::Unknown => None,
            };
            // The caller's frame must be higher on the stack than the frame of the called function.
            (end > stack).then_some((back, end, frame))
        });
        let Some((back, end, before)) = caller else { return };
        (at, stack, frame) = (back, end, before);
        into.push(back);
    }
}

/// Joins callers from unwind tables (`walked`) with callers from frame pointers (`chain`). The
/// addresses of `chain` after the last address that is also in `walked` are appended to `walked`.
pub fn join_call_chains(walked: &mut Vec<u64>, chain: &[u64]) {
    let mut beyond = 0;
    for place in walked.iter() {
        if let Some(further) = chain[beyond..].iter().position(|it| it == place) {
            beyond += further + 1;
        }
    }
    // A chain of callers without an address of `walked` does not belong to this stack.
    if beyond > 0 {
        walked.extend_from_slice(&chain[beyond..]);
    }
}

#[cfg(test)]
mod tests;
