//! Tests of frame rules from tables that the tests make, and of callers found by these rules.

use super::*;

const HEADER_AT: u64 = 0x1000;
const SHARED_AT: u64 = 0x1100;
const FUNCTION_AT: u64 = 0x1200;
const FUNCTION_START_ADDRESS: u64 = 0x5000;
/// The usual frame: its end is 8 bytes above the stack pointer, and the return address is at the
/// stack pointer.
const USUAL_FRAME_INSTRUCTIONS: &[u8] = &[0x0c, 7, 8, 0x90, 1];

struct Memory(Vec<u8>);

impl Memory {
    fn write_bytes_at(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - HEADER_AT) as usize;
        self.0.resize(self.0.len().max(at + bytes.len()), 0);
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl LoadedBytes for Memory {
    fn bytes_at_address(&self, address: u64, length: usize) -> Cow<'_, [u8]> {
        let from = address.checked_sub(HEADER_AT).map_or(self.0.len(), |at| (at as usize).min(self.0.len()));
        Cow::Borrowed(&self.0[from..from.saturating_add(length).min(self.0.len())])
    }
}

fn prefix_with_length(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], body].concat()
}

/// Returns an unwind table with one function of 0x100 bytes. The call frame instructions of the
/// table are first `shared`, then `instructions`.
fn unwind_table_memory(letters: &[u8], shared: &[u8], instructions: &[u8]) -> Memory {
    let mut memory = Memory(Vec::new());
    let from_header = |address: u64| ((address - HEADER_AT) as u32).to_le_bytes();
    memory.write_bytes_at(
        HEADER_AT,
        &[
            &HEADER_FIRST_BYTES[..],
            &[0; 4],
            &[1, 0, 0, 0],
            &from_header(FUNCTION_START_ADDRESS),
            &from_header(FUNCTION_AT),
        ]
        .concat(),
    );
    // The unwind table has code alignment 1 and data alignment -8. Each address in the table has 4
    // bytes and is relative to its own location.
    memory.write_bytes_at(
        SHARED_AT,
        &prefix_with_length(&[&[0, 0, 0, 0, 1], letters, &[0, 1, 0x78, 16, 1, 0x1b], shared].concat()),
    );
    let back = (FUNCTION_AT + 4 - SHARED_AT) as u32;
    let start = (FUNCTION_START_ADDRESS - (FUNCTION_AT + 8)) as u32;
    let about = [&back.to_le_bytes()[..], &start.to_le_bytes(), &0x100u32.to_le_bytes(), &[0], instructions].concat();
    memory.write_bytes_at(FUNCTION_AT, &prefix_with_length(&about));
    memory
}

fn rule(memory: &Memory, address: u64) -> Option<FrameRule> {
    FrameTable::read(memory, HEADER_AT)?.rule_at_instruction(memory, address)
}

fn rule_text(rule: Option<FrameRule>) -> String {
    let Some(FrameRule { is_relative_to_frame_pointer, offset, frame, return_address_offset }) = rule else {
        return "none".to_owned();
    };
    let base = if is_relative_to_frame_pointer { "frame" } else { "stack" };
    format!("{base}{offset:+} {return_address_offset} {frame:?}")
}

#[test]
fn frame_rules_are_known_for_each_instruction() {
    // The function saves the caller's frame pointer, sets its own frame pointer, and restores the
    // caller's frame pointer at its end. A rarely executed part of the function follows, in which
    // the function's own frame pointer is set again.
    let kept: &[u8] = &[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x40, 0x0a, 0x0c, 7, 8, 0xc6, 0x41, 0x0b];
    // The function first reserves 8 bytes of the stack, and then more, up to a frame of 300 bytes.
    // At its end, the function releases all reserved bytes.
    let bare: &[u8] = &[0x44, 0x0e, 16, 0x44, 0x0e, 0xac, 0x02, 0x03, 0x10, 0x00, 0x0e, 8];
    let none = "none";
    for (instructions, rows) in [
        (
            kept,
            &[
                (0x00, "stack+8 -8 Same"),
                (0x01, "stack+16 -8 At(-16)"),
                (0x03, "stack+16 -8 At(-16)"),
                (0x04, "frame+16 -8 At(-16)"),
                (0x43, "frame+16 -8 At(-16)"),
                (0x44, "stack+8 -8 Same"),
                (0x45, "frame+16 -8 At(-16)"),
                (0xff, "frame+16 -8 At(-16)"),
                (0x100, none),
            ][..],
        ),
        (
            bare,
            &[
                (0x03, "stack+8 -8 Same"),
                (0x04, "stack+16 -8 Same"),
                (0x08, "stack+300 -8 Same"),
                (0x18, "stack+8 -8 Same"),
            ],
        ),
        (&[], &[(0, "stack+8 -8 Same"), (-1, none)]),
        // The next rows state similar frame rules with other instructions, and with irrelevant
        // instructions in between.
        (&[0x05, 6, 3, 0x12, 7, 0x7d, 0x2e, 4, 0x83, 5, 0x16, 3, 1, 0x50], &[(9, "stack+24 -8 At(-24)")]),
        (&[0x11, 6, 2, 0x13, 0x7e, 0x41, 0x06, 6], &[(0, "stack+16 -8 At(-16)"), (1, "stack+16 -8 Same")]),
        (&[0x07, 6], &[(0, "stack+8 -8 Unknown")]),
        // In each of the next rows, the frame rule is unknown or ends the walk to the callers. The
        // reasons, row by row: an expression, another register, no caller, an unmatched restore, an
        // unknown instruction, and a truncated table.
        (&[0x0f, 1, 0x77], &[(0, none)]),
        (&[0x0d, 10], &[(0, none)]),
        (&[0x07, 16], &[(0, none)]),
        (&[0x0b], &[(0, none)]),
        (&[0x3f], &[(0, none)]),
        (&[0x0e], &[(0, none)]),
    ] {
        let memory = unwind_table_memory(b"zR", USUAL_FRAME_INSTRUCTIONS, instructions);
        for (at, expect) in rows {
            let found = rule(&memory, FUNCTION_START_ADDRESS.wrapping_add_signed(*at));
            assert_eq!(rule_text(found), *expect, "{instructions:x?} at {at:#x}");
        }
    }
}

#[test]
fn an_unknown_unwind_table_gives_no_rule() {
    let whole = unwind_table_memory(b"zR", USUAL_FRAME_INSTRUCTIONS, &[]);
    assert!(rule(&whole, FUNCTION_START_ADDRESS).is_some());
    // The letter S marks a frame that the kernel created for a signal; X is an unknown letter.
    for letters in [b"zS", b"zX"] {
        assert_eq!(rule(&unwind_table_memory(letters, USUAL_FRAME_INSTRUCTIONS, &[]), FUNCTION_START_ADDRESS), None);
    }
    // No read goes beyond the end of a cut table, and no number overflows.
    for length in 0..whole.0.len() {
        assert_eq!(rule(&Memory(whole.0[..length].to_vec()), FUNCTION_START_ADDRESS), None, "{length}");
    }
    for at in 0..whole.0.len() {
        for value in [0, 0x7f, 0x80, 0xff] {
            let mut other = Memory(whole.0.clone());
            other.0[at] = value;
            for address in [0, FUNCTION_START_ADDRESS - 1, FUNCTION_START_ADDRESS, FUNCTION_START_ADDRESS + 1, u64::MAX]
            {
                _ = rule(&other, address);
            }
        }
    }
}

const RULE_WITHOUT_FRAME_POINTER: FrameRule =
    FrameRule { is_relative_to_frame_pointer: false, offset: 16, frame: RegisterRule::Same, return_address_offset: -8 };
const RULE_WITH_FRAME_POINTER: FrameRule = FrameRule {
    is_relative_to_frame_pointer: true,
    offset: 16,
    frame: RegisterRule::At(-16),
    return_address_offset: -8,
};

#[test]
fn callers_are_unwound_as_far_as_rules_are_known() {
    // The stack has four functions, the innermost first. Address 100 is in a clock function with a
    // frame pointer. Address 200 is in a library function without a frame pointer. The function at
    // address 300 uses the frame pointer's register for another value. The function at address 400
    // is unknown.
    let stack = [1u64, 7, 200, 2, 300, 3, 400, 4];
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rules = |place, is_caller: bool| {
        assert_eq!(is_caller, place != 100);
        match place {
            100 => Some(RULE_WITH_FRAME_POINTER),
            200 | 300 => Some(RULE_WITHOUT_FRAME_POINTER),
            _ => None,
        }
    };
    let walked = |length: usize, frame_pointer: u64, rules: &dyn Fn(u64, bool) -> Option<FrameRule>| {
        let mut into = vec![9, 9];
        unwind_callers(
            &StackTop { instruction_pointer: 100, stack_pointer: 0x8000, frame_pointer, bytes: &bytes[..length] },
            rules,
            &mut into,
        );
        into
    };
    for (length, expect) in [
        (64, &[100, 200, 300, 400][..]),
        (48, &[100, 200, 300]),
        (39, &[100, 200]),
        (24, &[100, 200]),
        (23, &[100]),
        (0, &[100]),
    ] {
        assert_eq!(walked(length, 0x8008, &rules), expect, "{length}");
    }
    // The following values of the frame pointer cannot point to a frame.
    for frame_pointer in [0, 7, 0x7ff0, 0x9000, u64::MAX] {
        assert_eq!(walked(64, frame_pointer, &rules), [100], "{frame_pointer:#x}");
    }
    // A caller's frame is higher on the stack, so a walk ends even at a cycle or an endless chain.
    let circle = |_, _| Some(FrameRule { offset: 0, return_address_offset: 16, ..RULE_WITHOUT_FRAME_POINTER });
    assert_eq!(walked(64, 0, &circle), [100]);
    let long: Vec<u8> = (1..=200u64).flat_map(u64::to_le_bytes).collect();
    let mut into = Vec::new();
    let each = |_, _| Some(FrameRule { offset: 8, ..RULE_WITHOUT_FRAME_POINTER });
    unwind_callers(
        &StackTop { instruction_pointer: 100, stack_pointer: 0x8000, frame_pointer: 0, bytes: &long },
        each,
        &mut into,
    );
    assert_eq!(into.len(), CALLERS_MAX + 1);
}

#[test]
fn the_kernel_call_chain_continues_a_truncated_stack() {
    for (walked, chain, expect) in [
        // The functions of the next rows have no frame pointers. Without frame pointers, the chain
        // of callers is empty, or has unrelated register values.
        (&[1, 2, 3][..], &[1][..], &[1, 2, 3][..]),
        (&[1, 2, 3], &[1, 2, 99], &[1, 2, 3, 99]),
        (&[1, 2, 3], &[], &[1, 2, 3]),
        // In the next rows, all functions have frame pointers, and the sampled part of the stack
        // ends before the chain of callers.
        (&[1, 2], &[1, 2, 3, 4], &[1, 2, 3, 4]),
        (&[1], &[1, 2, 3], &[1, 2, 3]),
        // The innermost function has no frame pointer, so the chain of frame pointers leaves out
        // the caller of this function.
        (&[1, 2, 3], &[1, 3, 4], &[1, 2, 3, 4]),
        (&[1, 2], &[1, 3, 4], &[1, 2, 3, 4]),
        // In the next row, a function calls itself.
        (&[1, 5, 5], &[1, 5, 5, 5, 6], &[1, 5, 5, 5, 6]),
        // In the next row, the chain has no address in common with the walked callers.
        (&[1, 2], &[8, 9], &[1, 2]),
    ] {
        let mut joined = walked.to_vec();
        join_call_chains(&mut joined, chain);
        assert_eq!(joined, expect, "{walked:?} {chain:?}");
    }
}
