//! Tests of function names by address, from tables that the tests make and from this process.

use super::*;

fn write_little_endian(bytes: &mut Vec<u8>, at: usize, value: u64, size: usize) {
    if bytes.len() < at + size {
        bytes.resize(at + size, 0);
    }
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Returns an ELF file with one loaded segment (address 0x40_0000) and these sections. Each section
/// has a name, type, address, offset, length and link.
fn build_elf_file(sections: &[(&str, u64, u64, u64, u64, u64)]) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1];
    for (at, value, size) in [(32, 64, 8), (40, 0x1000, 8), (56, 1, 2), (60, sections.len() as u64 + 1, 2), (62, 0, 2)]
    {
        write_little_endian(&mut bytes, at, value, size);
    }
    for (at, value, size) in [(64, 1, 4), (72, 0, 8), (80, 0x40_0000, 8), (96, 0x800, 8)] {
        write_little_endian(&mut bytes, at, value, size);
    }
    let mut names = vec![0u8];
    let names_at = 0x1800;
    for (number, (name, kind, address, offset, length, link)) in sections.iter().enumerate() {
        let head = 0x1000 + 64 * (number + 1);
        let values = [
            (0, names.len() as u64, 4),
            (4, *kind, 4),
            (16, *address, 8),
            (24, *offset, 8),
            (32, *length, 8),
            (40, *link, 4),
        ];
        values.iter().for_each(|(at, value, size)| write_little_endian(&mut bytes, head + at, *value, *size));
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    for (at, value) in [(24, names_at as u64), (32, names.len() as u64)] {
        write_little_endian(&mut bytes, 0x1000 + at, value, 8);
    }
    bytes.resize(names_at, 0);
    bytes.extend_from_slice(&names);
    bytes
}

/// Returns a Go 1.26 program with functions `main.serve` at 0x40_0100 and `runtime.gcDrain` at
/// 0x40_0180. The code ends at 0x40_0200. The module data has the start of the code.
pub(super) fn go_program() -> Vec<u8> {
    let sections = [
        (".text", 1, 0x40_0080, 0x80, 0x300, 0),
        (".init", 1, 0x40_0080, 0x80, 0x10, 0),
        (".gopclntab", 1, 0, 0x400, 0x200, 0),
        (".go.module", 1, 0, 0x600, 0x100, 0),
    ];
    let mut bytes = build_elf_file(&sections);
    let table = 0x400;
    for (at, value, size) in [(0, 0xffff_fff1, 4), (6, 1, 1), (7, 8, 1), (8, 2, 8), (32, 0x60, 8), (64, 0x100, 8)] {
        write_little_endian(&mut bytes, table + at, value, size);
    }
    bytes[table + 0x60..table + 0x60 + 28].copy_from_slice(b"\0main.serve\0runtime.gcDrain\0");
    for (number, (entry, about)) in [(0u64, 0x40u64), (0x80, 0x48)].into_iter().enumerate() {
        write_little_endian(&mut bytes, table + 0x100 + 8 * number, entry, 4);
        write_little_endian(&mut bytes, table + 0x104 + 8 * number, about, 4);
    }
    write_little_endian(&mut bytes, table + 0x110, 0x100, 4);
    write_little_endian(&mut bytes, table + 0x144, 1, 4);
    write_little_endian(&mut bytes, table + 0x14c, 12, 4);
    write_little_endian(&mut bytes, 0x600 + 8 * 22, 0x40_0100, 8);
    bytes
}

fn function_name_at(functions: &Functions<Vec<u8>>, offset: u64) -> Option<String> {
    functions.function_at(offset).map(|found| demangle_symbol(&found.name))
}

#[test]
fn stripped_go_programs_have_function_names() {
    let functions = Functions::read(go_program()).expect("a table");
    for (offset, expect) in [
        (0xff, None),
        (0x100, Some("main.serve")),
        (0x17f, Some("main.serve")),
        (0x180, Some("runtime.gcDrain")),
        (0x1ff, Some("runtime.gcDrain")),
        (0x200, None),
        (0x900, None),
    ] {
        assert_eq!(function_name_at(&functions, offset).as_deref(), expect, "{offset:#x}");
    }
    // In this program the start of Go's code is unknown, and other code may precede Go's code. The
    // functions of this program get no names, because a missing name is better than a
    // wrong name.
    let mut unknown = go_program();
    write_little_endian(&mut unknown, 0x600 + 8 * 22, 0, 8);
    assert!(Functions::read(unknown).is_none());
}

#[test]
fn symbols_name_functions() {
    let sections = [
        (".symtab", 2, 0, 0x400, 24 * 5, 2),
        (".strtab", 3, 0, 0x500, 0x100, 0),
        (".text", 1, 0x40_0100, 0x100, 0x220, 0),
        (".init", 1, 0x40_0090, 0x90, 0x20, 0),
    ];
    let mut bytes = build_elf_file(&sections);
    let texts = b"\0main\0_init\0_ZN4core3fmt5Write9write_str17h0123456789abcdefE\0_ZN2v88internal9Scavenger7ProcessEv\0read@@GLIBC_2.2\0";
    bytes[0x500..0x500 + texts.len()].copy_from_slice(texts);
    let at = |text: &str| texts.windows(text.len()).position(|part| part == text.as_bytes()).expect("there") as u64;
    // The symbols are unsorted. Two symbols have no length, and the code of one of these two
    // symbols ends with its section.
    let symbols = [
        (at("_ZN4core"), 2u64, 0x40_0140u64, 0x10u64),
        (at("main"), 2, 0x40_0100, 0x20),
        (at("_ZN2v8"), 2, 0x40_0200, 0),
        (at("read@@"), 2, 0x40_0300, 0x10),
        (at("_init"), 2, 0x40_0090, 0),
    ];
    for (number, (name, kind, address, size)) in symbols.into_iter().enumerate() {
        let (from, section) = (0x400 + 24 * number, if address == 0x40_0090 { 4 } else { 3 });
        for (at, value, bytes_of) in [(0, name, 4), (4, kind, 1), (6, section, 2), (8, address, 8), (16, size, 8)] {
            write_little_endian(&mut bytes, from + at, value, bytes_of);
        }
    }
    let functions = Functions::read(bytes).expect("symbols");
    for (offset, expect) in [
        (0xaf, Some("_init")),
        (0xb0, None),
        (0x100, Some("main")),
        (0x120, None),
        (0x145, Some("core::fmt::Write::write_str")),
        (0x190, None),
        (0x2f0, Some("v8::internal::Scavenger::Process")),
        (0x30f, Some("read")),
        (0x310, None),
    ] {
        assert_eq!(function_name_at(&functions, offset).as_deref(), expect, "{offset:#x}");
    }
    assert!(Functions::read(vec![0u8; 64]).is_none());
    assert!(Functions::read(build_elf_file(&[])).is_none());
}

#[test]
fn memory_maps_give_code_ranges() {
    let text = b"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b (deleted)\n\
        00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/a b\n\
        7f00-7e00 r-xp 00000000 00:00 0\n\
        7fff00-7fff01 r-xp 00000000 00:00 0               [vdso]\nrubbish\n\
        100-200 r-xp 0 00:00 0\n";
    let mappings = parse_maps(text);
    let told: Vec<_> = mappings.iter().map(|it| (it.start, it.offset, it.path.as_str(), it.is_file())).collect();
    assert_eq!(
        told,
        [(0x100, 0, "", false), (0x40_0000, 0x1000, "/usr/bin/a b (deleted)", true), (0x7f_ff00, 0, "[vdso]", false)]
    );
    assert_eq!(find_mapping_at(&mappings, 0x45_1fff).map(|it| it.start), Some(0x40_0000));
    assert_eq!(find_mapping_at(&mappings, 0x45_2000), None);
}

#[test]
fn jit_code_gets_names_from_the_perf_map() {
    let names =
        JitNames::parse(b"0x200 10 LazyCompile:~handler /srv/a.js:1\nzz\n100 20 py::main\n100 8 py::other\n".to_vec());
    for (address, expect) in
        [(0x100, Some("py::other")), (0x108, None), (0x205, Some("LazyCompile:~handler /srv/a.js:1")), (0x210, None)]
    {
        assert_eq!(names.function_at(address).map(String::from_utf8_lossy).as_deref(), expect, "{address:#x}");
    }
    for (name, expect) in [
        ("LazyCompile:~handler /srv/my app/a.js:1", "LazyCompile:~handler my app/a.js:1"),
        ("py::main:/srv/a.py", "py::main:a.py"),
        ("Function:run file:///srv/a.mjs:3:7", "Function:run file:a.mjs:3:7"),
        ("divide a/b", "divide a/b"),
    ] {
        assert_eq!(without_folders(name), expect);
    }
    let mut none = JitNames::default();
    none.refresh(u32::MAX);
    assert!(none.function_at(1).is_none());
}

#[test]
fn symbol_names_are_sanitized_and_bounded() {
    assert_eq!(clean_name(b"a\x1b[31mb\n"), "a[31mb");
    assert_eq!(clean_name("é".repeat(300).as_bytes()).len(), NAME_BYTES_MAX);
    assert_eq!(demangle_symbol(b"_ZNotReally"), "_ZNotReally");
    // Each round of the loop adds ten letters to the symbol, for a pair of two equal parts. So each
    // round doubles the length of the demangled name.
    let mut doubling = b"_Z1fI1pIiiE".to_vec();
    (0..28).for_each(|n: u8| {
        let before = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[usize::from(n)];
        doubling.extend_from_slice(&[b'1', b'p', b'I', b'S', before, b'_', b'S', before, b'_', b'E']);
    });
    doubling.extend_from_slice(b"Evv");
    assert!(demangle_symbol(&doubling).len() <= NAME_BYTES_MAX);
}

#[inline(never)]
fn busy_test_function() -> u64 {
    std::hint::black_box(7)
}

#[test]
fn symbols_of_this_process_are_found() {
    let mut symbols = Symbols::default();
    let me = std::process::id();
    symbols.preload_function_tables(me);
    assert_eq!(busy_test_function(), 7);
    let at = busy_test_function as fn() -> u64 as usize as u64;
    let found = symbols.name(me, at, false).expect("code");
    assert!(found.contains("busy_test_function"), "{found}");
    assert_eq!(symbols.name(me, at, true), None, "nothing returns to the start of a function");
    assert_eq!(symbols.name(me, 8, false), None);
    symbols.retain_processes(&[]);
    assert!(symbols.name(me, at + 1, true).is_some());
}
