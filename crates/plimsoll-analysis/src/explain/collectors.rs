//! Functions by which runtimes collect garbage, by name. What such a function calls is collecting, too, so that a stack is looked
//! through as a whole where there is one.
//!
//! Allocating is not collecting: a request that allocates works for itself. Not here: threads that collect (`signals`).

/// Beginnings of names. Of Go the workers, what a request is made to help with while it allocates, and sweeping; of its newer
/// collector also the scanning of spans.
const BEGINNINGS: &[&str] = &[
    "runtime.gc",
    "runtime.bgsweep",
    "runtime.bgscavenge",
    "runtime.sweepone",
    "runtime.deductSweepCredit",
    "runtime.(*sweepLock",
    "runtime.(*mheap).reclaim",
    "runtime.(*scavengerState)",
    "runtime.scanobject",
    "runtime.scanblock",
    "runtime.scanstack",
    "runtime.scanframeworker",
    "runtime.scanConservative",
    "runtime.scanSpan",
    "runtime.scanObject",
    "runtime.tryDeferToSpanScan",
    "runtime.greyobject",
    "runtime.markroot",
    "runtime.wbBufFlush",
    "runtime.(*gcWork)",
    "runtime.(*gcControllerState)",
    "internal/runtime/gc",
    // Node.js and other programs on V8.
    "v8::internal::Scavenge",
    "v8::internal::MarkCompact",
    "v8::internal::MinorMarkSweep",
    "v8::internal::ConcurrentMarking",
    "v8::internal::MarkingVisitor",
    "v8::internal::Marking",
    "v8::internal::Sweeper",
    "v8::internal::Evacuator",
    "v8::internal::Heap::CollectGarbage",
    "v8::internal::Heap::PerformGarbageCollection",
    "cppgc::internal::Marker",
    "cppgc::internal::Sweeper",
    // .NET, with the workstation's collector and the server's.
    "WKS::gc_heap::",
    "SVR::gc_heap::",
    // Ruby.
    "gc_mark",
    "gc_sweep",
    // OCaml.
    "caml_major_collection",
    "caml_empty_minor",
    "caml_oldify",
    // Erlang and Elixir.
    "erts_garbage_collect",
];
/// Whole names.
const NAMES: &[&str] = &[
    // Python, from 3.8 on.
    "gc_collect_main",
    "gc_collect_generations",
    "gc_collect_with_callback",
    "gc_collect_young",
    "gc_collect_increment",
    "gc_collect_full",
    "gc_collect_region",
    "gc_collect_internal",
    "deduce_unreachable",
    "subtract_refs",
    "update_refs",
    "visit_decref",
    "visit_reachable",
    "move_unreachable",
    "list_traverse",
    "dict_traverse",
    "set_traverse",
    "tupletraverse",
    "subtype_traverse",
    "_Py_RunGC",
    // PHP.
    "zend_gc_collect_cycles",
    "gc_possible_root_when_full",
    // Lua and LuaJIT.
    "luaC_step",
    "luaC_fullgc",
    "lj_gc_step",
];
/// Parts of names of the collectors of the JVM: serial, parallel, G1, ZGC, Shenandoah.
const PARTS: &[&str] = &[
    "PSPromotionManager",
    "PSParallelCompact",
    "PSScavenge",
    "ParCompactionManager",
    "DefNewGeneration::collect",
    "G1ParScanThreadState",
    "G1CMTask",
    "ZMark::",
    "ShenandoahMark",
];
/// Whether a stack, the function that ran first, collects garbage.
pub fn is_collecting(stack: &[&str]) -> bool {
    stack.iter().any(|name| {
        BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || NAMES.contains(name)
            || PARTS.iter().any(|part| name.contains(part))
    })
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
}
