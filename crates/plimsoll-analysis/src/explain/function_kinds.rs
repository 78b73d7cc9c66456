//! The functions in which runtimes collect garbage or threads wait for locks, by name. The list is
//! `functions.tsv`. The list contains the garbage collectors of Go, V8, .NET, Ruby, OCaml, Erlang,
//! Python, PHP, Lua and the JVM. The list also contains spin locks and contended locks of C, C++,
//! Go and Rust.
//!
//! Work of functions that a listed function calls also counts, so the whole stack is searched.
//! Memory allocation is not listed, because a request allocates memory for its own work.
//!
//! Not here: threads that collect garbage (`signals`).

use std::sync::OnceLock;

/// The list of functions. The columns of the list are the kind (`collects` or `waits`), how the
/// name is compared (`is`, `starts` or `contains`), and the name.
const FUNCTION_KINDS_TSV: &str = include_str!("functions.tsv");

/// Returns the lines of [`FUNCTION_KINDS_TSV`]. The file is parsed only once, because each stack of
/// a profile is compared with all lines of the file.
fn listed_functions() -> &'static [[&'static str; 3]] {
    static PARSED_LINES: OnceLock<Vec<[&str; 3]>> = OnceLock::new();
    let cells = |line: &'static str| <[&str; 3]>::try_from(line.split('\t').collect::<Vec<_>>()).ok();
    PARSED_LINES.get_or_init(|| FUNCTION_KINDS_TSV.lines().filter_map(cells).collect())
}

fn stack_matches_kind(kind: &str, stack: &[&str]) -> bool {
    listed_functions().iter().filter(|[of, ..]| *of == kind).any(|[_, how, known]| {
        stack.iter().any(|name| match *how {
            "is" => name == known,
            "starts" => name.starts_with(known),
            _ => name.contains(known),
        })
    })
}

/// Returns whether a sampled stack collects garbage. `stack`: function names, from the running
/// function to its callers.
pub fn stack_collects_garbage(stack: &[&str]) -> bool {
    stack_matches_kind("collects", stack)
}

/// Returns whether a sampled stack waits for a lock. `stack`: function names, from the running
/// function to its callers.
pub fn stack_waits_for_lock(stack: &[&str]) -> bool {
    stack_matches_kind("waits", stack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_collection_functions_are_recognised() {
        for (stack, expect) in [
            ("runtime.scanobject;runtime.gcDrain;runtime.gcBgMarkWorker.func2;runtime.systemstack", true),
            (
                "runtime.memclrNoHeapPointers;runtime.(*mspan).init;runtime.gcAssistAlloc;runtime.mallocgc;main.serve",
                true,
            ),
            ("runtime.mallocgc;main.serve;net/http.(*conn).serve", false),
            ("main.gcDrain;main.main", false),
            ("encoding/json.Marshal", false),
            ("v8::internal::Scavenger::Process;v8::internal::Heap::Scavenge", true),
            ("v8::internal::Runtime_StringSplit", false),
            ("visit_decref;dict_traverse;deduce_unreachable;gc_collect_main", true),
            ("_PyEval_EvalFrameDefault", false),
            ("void PSPromotionManager::copy_to_survivor_space", true),
            ("[libjvm.so]", false),
            ("malloc;main", false),
            ("", false),
        ] {
            assert_eq!(stack_collects_garbage(&stack.split(';').collect::<Vec<_>>()), expect, "{stack}");
        }
    }

    #[test]
    fn waiting_functions_are_recognised() {
        for (stack, expect) in [
            ("pthread_spin_lock;serve", true),
            ("runtime.procyield;sync.(*Mutex).lockSlow;main.serve", true),
            ("parking_lot::raw_mutex::RawMutex::lock_slow;main", true),
            ("sync.(*Mutex).Lock;main.serve", false),
            ("main.lock2", false),
            ("[kernel];write", false),
            ("", false),
        ] {
            assert_eq!(stack_waits_for_lock(&stack.split(';').collect::<Vec<_>>()), expect, "{stack}");
        }
    }
}
