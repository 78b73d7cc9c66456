//! Finds the name of the function at an address of a process ([`Symbols`]), and the function's
//! callers. The sources are the process's memory map, the tables of mapped files, and the functions
//! of a just-in-time compiler.
//!
//! Names are shortened, and control characters are removed. Files are read only as far as needed.
//! The number and the memory of cached tables are limited (`FILES_MAX`,
//! `FUNCTION_TABLES_BYTES_MAX`), and functions of further files have no names. Not here: the
//! purpose of functions.

mod byte_source;
mod elf;
mod frames;
mod go;
mod jit;
mod maps;

pub use byte_source::RandomAccessBytes;
pub use elf::{FoundFunction, Functions};
pub use frames::FrameRule;
pub use jit::JitNames;
pub use maps::{Mapping, parse as parse_maps};

use crate::sampling::StackTop;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest part of `/proc/PID/maps` that is read, in bytes.
const MAPS_BYTES_MAX: u64 = 16 << 20;
/// The longest name that is returned, in bytes. Longer names are cut.
const NAME_BYTES_MAX: usize = 200;
/// The shortest time between two reads of a process's memory map. A map is read again if a searched
/// address is in none of its parts.
const MAPS_REREAD_INTERVAL: Duration = Duration::from_millis(900);
/// The shortest time between two reads of the functions of a just-in-time compiler.
const JIT_REREAD_INTERVAL: Duration = Duration::from_secs(3);
/// The largest number of addresses, over all processes, whose names and frames are cached.
const ADDRESSES_MAX: usize = 1 << 16;
/// The kernel's name for its clock page (vDSO) in a memory map.
const VDSO_MAPPING_NAME: &str = "[vdso]";
/// The largest number of files whose tables are cached.
const FILES_MAX: usize = 256;
/// The largest memory of all cached tables, bytes.
const FUNCTION_TABLES_BYTES_MAX: usize = 128 << 20;

/// The memory map of a process, with the functions and frames found in it.
struct ProcessMap {
    /// The name of the process, by which code without a known function is named.
    name: String,
    mappings: Vec<Mapping>,
    read: Instant,
    jit: JitNames,
    jit_read: Option<Instant>,
    names: HashMap<(u64, bool), Option<Arc<str>>>,
    frames: HashMap<u64, Option<FrameRule>>,
}

/// Identifies a file by its device and its inode number.
type FileKey = (String, u64);

/// The functions of processes, by address.
#[derive(Default)]
pub struct Symbols {
    processes: HashMap<u32, ProcessMap>,
    files: HashMap<FileKey, Option<Arc<Functions<File>>>>,
    /// The functions of the kernel's clock page (vDSO), once they were looked up.
    kernel_page: Option<Option<Functions<Vec<u8>>>>,
    addresses: usize,
    function_tables_bytes: usize,
}

impl Symbols {
    /// Drops all cached data of processes that are not among `pids`.
    pub fn retain_processes(&mut self, pids: &[u32]) {
        self.processes.retain(|pid, _| pids.contains(pid));
        self.addresses = self.processes.values().map(|process| process.names.len() + process.frames.len()).sum();
    }

    /// Reads the tables of the files that a process executes, so that no tables are read during a
    /// load.
    pub fn preload_function_tables(&mut self, pid: u32) {
        self.processes.entry(pid).or_insert_with(|| ProcessMap::read(pid));
        let mappings = self.processes.get(&pid).map(|process| process.mappings.clone()).unwrap_or_default();
        mappings.iter().filter(|mapping| mapping.is_file()).for_each(|mapping| _ = self.function_table(pid, mapping));
    }

    /// Returns the name of the function at an address; `None` if the process has no code at the
    /// address. `is_caller` says whether the address is a return address, which may lie just after
    /// its function.
    pub fn name(&mut self, pid: u32, address: u64, is_caller: bool) -> Option<Arc<str>> {
        let at = if is_caller { address.checked_sub(1)? } else { address };
        let process = self.processes.entry(pid).or_insert_with(|| ProcessMap::read(pid));
        if let Some(known) = process.names.get(&(at, is_caller)) {
            return known.clone();
        }
        let Some(mapping) = process.executable_mapping_at(pid, at).cloned() else {
            // Memory of code that a just-in-time compiler is writing may not be executable at the
            // time of the lookup.
            return process.jit.function_at(at).map(|name| Arc::from(without_folders(&clean_name(name))));
        };
        if !mapping.is_file() {
            // Just-in-time compiled code changes over time, so its names are not cached here.
            return self.name_without_file(pid, &mapping, at);
        }
        let name = self.name_from_file(pid, &mapping, at, is_caller);
        if let Some(process) = self.reserve_cache_entry(pid) {
            process.names.insert((at, is_caller), name.clone());
        }
        name
    }

    /// Returns the memory map of a process, with room in the cache for another address.
    fn reserve_cache_entry(&mut self, pid: u32) -> Option<&mut ProcessMap> {
        if self.addresses >= ADDRESSES_MAX {
            self.processes.values_mut().for_each(ProcessMap::clear_cached_addresses);
            self.addresses = 0;
        }
        self.addresses += 1;
        self.processes.get_mut(&pid)
    }

    /// Replaces the content of `into` by the sampled address and its callers. The top of the stack
    /// gives the callers of code without frame pointers; `chain` gives the further callers.
    pub fn callers(&mut self, pid: u32, top: &StackTop, chain: &[u64], into: &mut Vec<u64>) {
        frames::unwind_callers(top, |place, is_caller| self.frame_rule_at(pid, place, is_caller), into);
        frames::join_call_chains(into, chain);
    }

    /// Returns the location of the stack frame at an address.
    fn frame_rule_at(&mut self, pid: u32, place: u64, is_caller: bool) -> Option<FrameRule> {
        let at = if is_caller { place.checked_sub(1)? } else { place };
        let process = self.processes.entry(pid).or_insert_with(|| ProcessMap::read(pid));
        if let Some(known) = process.frames.get(&at) {
            return *known;
        }
        // Just-in-time compiled code has no frame table.
        let mapping =
            process.executable_mapping_at(pid, at).filter(|it| it.is_file() || it.path == VDSO_MAPPING_NAME)?.clone();
        let rule = if mapping.is_file() {
            self.function_table(pid, &mapping)
                .and_then(|functions| functions.frame_at(at - mapping.start + mapping.offset))
        } else {
            let page = self.kernel_page.get_or_insert_with(|| Functions::read(copy_vdso_page()?));
            page.as_ref().and_then(|page| page.frame_at(at - mapping.start))
        };
        self.reserve_cache_entry(pid)?.frames.insert(at, rule);
        rule
    }

    fn name_without_file(&mut self, pid: u32, mapping: &Mapping, at: u64) -> Option<Arc<str>> {
        let process = self.processes.get_mut(&pid)?;
        Some(match mapping.path.as_str() {
            // Code in a mapping of the kernel gets the name of the mapping.
            named if named.starts_with("[v") => named.into(),
            _ => process.jit_name(pid, at),
        })
    }

    fn name_from_file(&mut self, pid: u32, mapping: &Mapping, at: u64, is_caller: bool) -> Option<Arc<str>> {
        let offset = at - mapping.start + mapping.offset;
        let file_name = mapping.path.trim_end_matches(" (deleted)");
        let file_name = file_name.rsplit('/').next().unwrap_or_default();
        let unnamed = || Some(Arc::from(format!("[{}]", clean_name(file_name.as_bytes()))));
        let Some(functions) = self.function_table(pid, mapping) else { return unnamed() };
        // No call returns to the start of a function. A stack value that equals the start of a
        // function is therefore an unrelated number, and not a return address.
        if is_caller && functions.function_at(offset + 1).is_some_and(|next| next.start_offset == offset + 1) {
            return None;
        }
        match functions.function_at(offset) {
            Some(found) => Some(Arc::from(demangle_symbol(&found.name))),
            None => unnamed(),
        }
    }

    /// Returns the cached or newly read function table of a mapped file.
    fn function_table(&mut self, pid: u32, mapping: &Mapping) -> Option<Arc<Functions<File>>> {
        let key = (mapping.device.clone(), mapping.inode);
        if let Some(known) = self.files.get(&key) {
            return known.clone();
        }
        if self.files.len() >= FILES_MAX || self.function_tables_bytes >= FUNCTION_TABLES_BYTES_MAX {
            return None;
        }
        let read = open_mapped_file(pid, mapping).and_then(Functions::read).map(Arc::new);
        self.function_tables_bytes += read.as_ref().map_or(0, |functions| functions.memory_bytes());
        self.files.insert(key, read.clone());
        read
    }
}

/// Opens a mapped file as the process sees it.
fn open_mapped_file(pid: u32, mapping: &Mapping) -> Option<File> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let is_program = program.is_some_and(|program| program.as_os_str().as_encoded_bytes() == mapping.path.as_bytes());
    // The program itself can be opened even if it was replaced on disk. Libraries are opened in the
    // process's view of the file system.
    let path = match is_program {
        true => PathBuf::from(format!("/proc/{pid}/exe")),
        false => PathBuf::from(format!("/proc/{pid}/root{}", mapping.path)),
    };
    // Opening a file that is not regular could block.
    std::fs::metadata(&path).ok().filter(|about| about.is_file())?;
    File::open(path).ok()
}

impl ProcessMap {
    fn read(pid: u32) -> ProcessMap {
        let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        ProcessMap {
            name: clean_name(name.trim_ascii()),
            mappings: read_maps(pid),
            read: Instant::now(),
            jit: JitNames::default(),
            jit_read: None,
            names: HashMap::new(),
            frames: HashMap::new(),
        }
    }

    fn clear_cached_addresses(&mut self) {
        self.names.clear();
        self.frames.clear();
    }

    /// Returns the executable part of the process's memory that contains an address.
    fn executable_mapping_at(&mut self, pid: u32, at: u64) -> Option<&Mapping> {
        if find_mapping_at(&self.mappings, at).is_none() && self.read.elapsed() >= MAPS_REREAD_INTERVAL {
            self.mappings = read_maps(pid);
            self.read = Instant::now();
        }
        find_mapping_at(&self.mappings, at)
    }

    /// Returns the name of a function in code that belongs to no file.
    fn jit_name(&mut self, pid: u32, at: u64) -> Arc<str> {
        if let Some(name) = self.jit.function_at(at) {
            return Arc::from(without_folders(&clean_name(name)));
        }
        if self.jit_read.is_none_or(|read| read.elapsed() >= JIT_REREAD_INTERVAL) {
            self.jit.refresh(pid);
            self.jit_read = Some(Instant::now());
        }
        match self.jit.function_at(at) {
            Some(name) => Arc::from(without_folders(&clean_name(name))),
            None => Arc::from(format!("JIT code of {}", self.name)),
        }
    }
}

/// Reads the clock page (vDSO) that the kernel maps into every process. The page is the same in all
/// processes, so it is read from this process.
fn copy_vdso_page() -> Option<Vec<u8>> {
    let mappings = read_maps(std::process::id());
    let page = mappings.iter().find(|mapping| mapping.path == VDSO_MAPPING_NAME)?;
    let (start, length) = (usize::try_from(page.start).ok()?, usize::try_from(page.end - page.start).ok()?);
    // SAFETY: the kernel mapped the page, readable, before the program began, and no code unmaps
    // it.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start), length) };
    Some(bytes.to_vec())
}

fn read_maps(pid: u32) -> Vec<Mapping> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/maps"));
    // A process that has ended has no map.
    _ = file.and_then(|file| file.take(MAPS_BYTES_MAX).read_to_end(&mut bytes));
    maps::parse(&bytes)
}

fn find_mapping_at(mappings: &[Mapping], at: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= at);
    mappings.get(after.checked_sub(1)?).filter(|mapping| at < mapping.end)
}

/// Returns a name without control characters, cut to [`NAME_BYTES_MAX`].
fn clean_name(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Removes the folder of a source file from a compiler's function name, since folders are private.
fn without_folders(name: &str) -> String {
    let path = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    name.split_inclusive([' ', ':'])
        .map(|word| if word.starts_with('/') { path(word) } else { word.to_owned() })
        .collect()
}

/// A text with a maximum length. A short mangled symbol may expand without limit, because a symbol
/// can refer to parts of itself.
struct BoundedString(String);

impl BoundedString {
    fn is_full(&self) -> bool {
        self.0.len() >= NAME_BYTES_MAX
    }
}

impl std::fmt::Write for BoundedString {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.push_str(text);
        if self.is_full() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

/// Demangles a symbol to the name in the source.
fn demangle_symbol(symbol: &[u8]) -> String {
    let symbol = String::from_utf8_lossy(symbol);
    if let Ok(rust) = rustc_demangle::try_demangle(&symbol) {
        // The alternate format leaves out the hash at the end of a Rust name.
        return clean_name(format!("{rust:#}").as_bytes());
    }
    if symbol.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        let mut text = BoundedString(String::new());
        let parsed = cpp_demangle::Symbol::new(symbol.as_bytes()).ok();
        let whole = parsed.map(|parsed| parsed.structured_demangle(&mut text, &options));
        if whole.is_some_and(|written| written.is_ok() || text.is_full()) {
            return clean_name(text.0.as_bytes());
        }
    }
    // Versions of a symbol (`read@@GLIBC_2.2.5`) are not part of its name.
    clean_name(symbol.split('@').next().filter(|name| !name.is_empty()).unwrap_or(&symbol).as_bytes())
}

#[cfg(test)]
mod tests;
