//! Coverage-guided fuzzing of a plan from another machine. Any bytes are refused, or are a plan
//! that stays the same when it is encoded and decoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::Plan;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(plan) = Plan::from_bytes(bytes) {
        assert!(plan.is_within_limits());
        assert_eq!(Plan::from_bytes(&plan.to_bytes()), Ok(plan));
    }
});
