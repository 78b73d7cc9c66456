//! Functions of garbage collectors, and functions in which threads wait for locks, by name
//! (`functions.tsv`: Go, V8, .NET, Ruby, OCaml, Erlang, Python, PHP, Lua, the JVM; spin and
//! contended locks of C, C++, Go, Rust).
//!
//! The callees of such a function belong to it, so whole stacks are searched. Allocation is not
//! collection: a request that allocates works for itself. Not here: collector threads (`signals`).

use std::sync::OnceLock;

/// The kind of function (`collects`, `waits`), how its name is compared (`is`, `starts`,
/// `contains`), and its name.
const FUNCTIONS: &str = include_str!("functions.tsv");

/// The lines of [`FUNCTIONS`], read once: each stack of a profile is compared with them.
fn functions() -> &'static [[&'static str; 3]] {
    static READ: OnceLock<Vec<[&str; 3]>> = OnceLock::new();
    let cells = |line: &'static str| <[&str; 3]>::try_from(line.split('\t').collect::<Vec<_>>()).ok();
    READ.get_or_init(|| FUNCTIONS.lines().filter_map(cells).collect())
}

fn is_of(kind: &str, stack: &[&str]) -> bool {
    functions().iter().filter(|[of, ..]| *of == kind).any(|[_, how, known]| {
        stack.iter().any(|name| match *how {
            "is" => name == known,
            "starts" => name.starts_with(known),
            _ => name.contains(known),
        })
    })
}

/// Whether a stack, the function that ran first, collects garbage.
pub fn is_collecting(stack: &[&str]) -> bool {
    is_of("collects", stack)
}

/// Whether a stack, the function that ran first, waits for a lock.
pub fn is_spinning(stack: &[&str]) -> bool {
    is_of("waits", stack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collecting_is_told_from_work() {
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
            assert_eq!(is_collecting(&stack.split(';').collect::<Vec<_>>()), expect, "{stack}");
        }
    }

    #[test]
    fn waiting_is_told_from_work() {
        for (stack, expect) in [
            ("pthread_spin_lock;serve", true),
            ("runtime.procyield;sync.(*Mutex).lockSlow;main.serve", true),
            ("parking_lot::raw_mutex::RawMutex::lock_slow;main", true),
            ("sync.(*Mutex).Lock;main.serve", false),
            ("main.lock2", false),
            ("[kernel];write", false),
            ("", false),
        ] {
            assert_eq!(is_spinning(&stack.split(';').collect::<Vec<_>>()), expect, "{stack}");
        }
    }
}
