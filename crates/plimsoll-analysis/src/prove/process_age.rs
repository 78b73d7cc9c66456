//! Warns if the processes behind two URLs have different histories. A comparison of two URLs
//! compares two *processes*, and not only two builds.

use crate::sentence::{Remedy, Sentence};

/// The age and the past CPU time of one side's processes at the start of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessAge {
    /// Time since the oldest of the processes was started, s.
    pub age_s: f64,
    /// CPU time that the processes have used so far, s.
    pub cpu_s: f64,
}

/// Smallest ratio of the ages of both sides' processes that causes a warning. The difference of the
/// ages must also exceed [`AGE_DIFFERENCE_MIN_S`].
const AGE_RATIO_MIN: f64 = 4.0;
/// Smallest difference of the ages of both sides' processes that causes a warning, s.
const AGE_DIFFERENCE_MIN_S: f64 = 60.0;
/// Smallest ratio of the past CPU times of both sides' processes that causes a warning. The
/// difference of the CPU times must also exceed [`CPU_DIFFERENCE_MIN_S`].
const CPU_RATIO_MIN: f64 = 3.0;
/// Smallest difference of the past CPU times of both sides' processes that causes a warning, s. A
/// server processes some thousand requests in this CPU time.
const CPU_DIFFERENCE_MIN_S: f64 = 0.3;

fn is_clearly_different(a: f64, b: f64, times: f64, by: f64) -> bool {
    a.max(b) > times * a.min(b) && (a - b).abs() > by
}

fn format_seconds(s: f64) -> String {
    match s {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 119.5 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// Returns a warning if one side's processes are much older, or have used much more CPU time, than
/// the other side's processes. Returns `None` if the processes are similar in age and CPU time.
pub fn process_age_warning(a: &ProcessAge, b: &ProcessAge) -> Option<Sentence> {
    let age = is_clearly_different(a.age_s, b.age_s, AGE_RATIO_MIN, AGE_DIFFERENCE_MIN_S);
    let cpu = is_clearly_different(a.cpu_s, b.cpu_s, CPU_RATIO_MIN, CPU_DIFFERENCE_MIN_S);
    let history = |side: char, past: &ProcessAge| match age {
        true => format!(
            "the process of side {side} was started {age} ago and has used {cpu_time} of CPU time",
            age = format_seconds(past.age_s),
            cpu_time = format_seconds(past.cpu_s)
        ),
        false => {
            format!("the process of side {side} has used {cpu_time} of CPU time", cpu_time = format_seconds(past.cpu_s))
        }
    };
    (age || cpu).then(|| {
        let text = match age {
            true => {
                "the two processes differ in uptime or in CPU time used so far, which can matter more than the builds"
            }
            false => "the two processes differ in CPU time used so far, which can matter more than the builds",
        };
        let histories = format!("{text}: {}, {}", history('A', a), history('B', b));
        Sentence::from(histories)
            .words(". ")
            .words("Let plimsoll start both builds anew for each load (")
            .remedy(Remedy::Builds)
            .words(")")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_process_ages_cause_a_warning() {
        for (a, b, expect) in [
            ((10.0, 0.1), (12.0, 0.1), None),
            ((40.0, 0.2), (20.0, 0.2), None),
            // The process of A used much CPU time before the comparison, and the process of B used
            // little.
            (
                (40.0, 2.0),
                (41.0, 0.1),
                Some(
                    "differ in CPU time used so far, which can matter more than the builds: the process of side A has used 2.0 s of CPU time, the process of side B has used 0.1 s",
                ),
            ),
            ((40.0, 0.3), (41.0, 0.01), None),
            ((40.0, 0.01), (41.0, 400.0), Some("side B has used 7 min of CPU time.")),
            // The process of A is much older than the process of B, although it has used little CPU
            // time.
            ((86_400.0, 0.4), (5.0, 0.3), Some("side A was started 24 h ago")),
            ((3600.0, 9.0), (3000.0, 8.0), None),
            ((700_000.0, 0.0), (0.0, 0.0), Some("8 days")),
        ] {
            let past = |(age_s, cpu_s)| ProcessAge { age_s, cpu_s };
            let difference = process_age_warning(&past(a), &past(b));
            match expect {
                None => assert_eq!(difference, None, "{a:?} {b:?}"),
                Some(part) => assert!(
                    difference.as_ref().is_some_and(|difference| difference.contains(part)),
                    "{a:?} {b:?}: {difference:?}"
                ),
            }
        }
    }
}
