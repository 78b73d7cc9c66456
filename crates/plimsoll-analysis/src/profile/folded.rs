//! A parser of folded stacks, the text format of many profilers. Each line of the text is a stack
//! with its count: `root;caller;leaf 42`.
//!
//! The count is the number after the last space of the line, because names may contain spaces. The
//! parser skips empty lines and lines that begin with `#`.
//!
//! Not here: files with two counts in each line (`42 45`) for difference flame graphs. In a line
//! with two counts, the parser would treat the first count as a part of a function's name. To
//! compare profiles, `--diff` reads two files with one count in each line.

use super::memory_budget::{MemoryBudget, ReadError};
use plimsoll_model::profile::{Profile, ProfileBuilder, ValueType};
use std::collections::HashMap;

/// Memory of a name in the table of names, in bytes. The factor is 3, because a growing table
/// exists as an old copy and a new copy of twice the size.
const NAME_ENTRY_BYTES: usize = 3 * (size_of::<(&str, u32)>() + 1);

/// Parses folded stacks into a profile with one column: `samples`, in `count`. The error names the
/// line that does not fit the format, or says that the profile needs too much memory.
pub(super) fn parse(text: &str, budget: MemoryBudget) -> Result<Profile, ReadError> {
    let mut builder = ProfileBuilder::new(vec![ValueType::new("samples", "count")]);
    let mut places: HashMap<&str, u32> = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (stack, count) = line.rsplit_once([' ', '\t']).unwrap_or(("", line));
        let count: i64 = count.parse().map_err(|_| ReadError::Line {
            line: number + 1,
            what: "the line does not end with a whole count, as folded stacks do ('main;serve;encode 42')",
        })?;
        for name in stack.trim_end().rsplit(';').filter(|name| !name.is_empty()) {
            let place = *places.entry(name).or_insert_with(|| {
                let function = builder.intern_function(name, "");
                builder.add_location(&[function])
            });
            builder.push_location(place);
            budget.check_memory(&builder, places.len() * NAME_ENTRY_BYTES)?;
        }
        builder.end_sample(&[count]);
        budget.check_memory(&builder, places.len() * NAME_ENTRY_BYTES)?;
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::read as given;

    #[test]
    fn folded_lines_become_stacks() {
        let profile = given(b"# made by hand\nmain;a b;c 3\r\n\nmain;;d -2\n7\n").expect("reads");
        let read: Vec<_> = profile
            .samples()
            .map(|s| {
                let names: Vec<_> =
                    s.functions_from_root().map(|f| profile.functions()[f as usize].name.as_str()).collect();
                (names.join(">"), s.values()[0])
            })
            .collect();
        assert_eq!(read, [("main>a b>c".to_owned(), 3), ("main>d".to_owned(), -2), (String::new(), 7)]);
        for (text, line) in [("main;a", 1), ("main 1\nmain x", 2), ("main 1.5", 1)] {
            assert!(matches!(given(text.as_bytes()), Err(ReadError::Line { line: at, .. }) if at == line), "{text}");
        }
    }
}
