//! A plan from another machine: any bytes are refused, or are a plan that is written and read again
//! as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::Plan;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(plan) = Plan::from_bytes(bytes) {
        assert!(plan.is_bounded());
        assert_eq!(Plan::from_bytes(&plan.to_bytes()), Ok(plan));
    }
});
