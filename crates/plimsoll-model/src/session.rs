//! Scenarios: the steps of one kind of user, compiled to a short program. Nested steps, repetitions
//! and conditions become a flat list of operations with jumps. With a flat list, the state of a
//! session consists of a position and a few counters.
//!
//! Not here: the file format of scenarios, and their execution (the engine).

use crate::RouteNumber;
use crate::rng::Rng;
use crate::units::parse_duration_ns;

/// The maximum number of operations of a scenario.
pub const SCENARIO_OPS_MAX: usize = 10_000;
/// Deepest nesting of repetitions.
pub const LOOP_NESTING_MAX: usize = 16;
/// The maximum number of repetitions of one step.
pub const REPETITIONS_MAX: u32 = 1_000_000;
/// Longest think time, ns: one day. A longer random think time is shortened to one day.
const THINK_NS_MAX: f64 = 86_400e9;
/// Largest standard deviation of a think time's logarithm, in thousandths.
const SIGMA_MILLI_MAX: u32 = 10_000;

/// The program of one kind of user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// The name in reports, without secrets.
    pub name: String,
    /// The weight of the scenario among all scenarios.
    pub weight: u32,
    /// Whether each user has a connection of its own for the whole session.
    pub own_connection: bool,
    /// Whether a user stores the cookies that responses set and sends them with later requests.
    pub cookies: bool,
    /// The operations of the program, in order.
    pub ops: Vec<SessionOp>,
}

/// One operation of a scenario's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOp {
    /// Sends a request of a route and waits for its response.
    Send {
        /// The route of the request.
        route: RouteNumber,
        /// Whether the session continues if the request fails.
        may_continue: bool,
    },
    /// Waits for a think time.
    Think(ThinkTime),
    /// Jumps over the following operations unless a condition on a text is true. The template
    /// values of the text are filled in first.
    JumpUnlessText {
        /// A template, usually with one captured value.
        text: String,
        /// The condition: if `true`, the text must be empty; if `false`, the text must not be
        /// empty.
        empty: bool,
        /// Index of the operation to jump to, after the conditional operations.
        to: u32,
    },
    /// Jumps unless the current session is the user's first session.
    JumpUnlessFirstSession {
        /// Index of the operation to jump to.
        to: u32,
    },
    /// Jumps if the last request succeeded.
    JumpIfSucceeded {
        /// Index of the operation to jump to.
        to: u32,
    },
    /// Jumps back until the repeated operations have run the wanted number of times.
    Repeat {
        /// Total number of passes through the repeated operations.
        times: u32,
        /// Index of the operation to jump back to.
        from: u32,
        /// Index of the repetition's counter, which equals the nesting depth of the repetition.
        depth: u8,
    },
}

impl Scenario {
    /// Returns the maximum number of requests that one session of the scenario can send.
    pub fn requests_max(&self) -> u64 {
        // `asked[at]` is the number of requests before operation `at`. A nested repetition begins
        // at or after the start of the outer repetition, so `asked[from]` does not count the nested
        // repetition.
        let mut asked: Vec<u64> = Vec::with_capacity(self.ops.len() + 1);
        asked.push(0);
        for op in &self.ops {
            let so_far = asked.last().copied().unwrap_or(0);
            asked.push(match op {
                SessionOp::Send { .. } => so_far.saturating_add(1),
                SessionOp::Repeat { times, from, .. } => {
                    let before = asked.get(*from as usize).copied().unwrap_or(0);
                    so_far.saturating_add((so_far - before).saturating_mul(u64::from(*times).saturating_sub(1)))
                }
                _ => so_far,
            });
        }
        asked.last().copied().unwrap_or(0)
    }

    /// Returns whether the program is valid: every jump leads to an operation or to the end, every
    /// route exists, and a request is sent. All numbers must be within their limits, and the
    /// program must end.
    pub fn is_sound(&self, routes: usize) -> bool {
        let ops = self.ops.len();
        let asks = self.ops.iter().any(|op| matches!(op, SessionOp::Send { .. }));
        asks && ops <= SCENARIO_OPS_MAX
            && self.ops.iter().enumerate().all(|(at, op)| match op {
                SessionOp::Send { route, .. } => usize::from(*route) < routes,
                SessionOp::Think(think) => think.is_sound(),
                // Conditional jumps may lead forward only, so that the program ends.
                SessionOp::JumpUnlessText { to, .. }
                | SessionOp::JumpUnlessFirstSession { to }
                | SessionOp::JumpIfSucceeded { to } => (at + 1..=ops).contains(&(*to as usize)),
                SessionOp::Repeat { times, from, depth } => {
                    // A loop inside another loop needs a counter of its own, because two nested
                    // loops with one counter would never end.
                    let has_same_counter =
                        |op: &SessionOp| matches!(op, SessionOp::Repeat { depth: inner, .. } if inner == depth);
                    (1..=REPETITIONS_MAX).contains(times)
                        && (*from as usize) < at
                        && usize::from(*depth) < LOOP_NESTING_MAX
                        && !self.ops[*from as usize..at].iter().any(has_same_counter)
                }
            })
    }
}

/// The maximum number of think times in the list of `pick(...)`.
const PICK_TIMES_MAX: usize = 1_000;

/// A think time: how long a user waits between two steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThinkTime {
    /// A fixed think time, ns.
    Fixed(u64),
    /// A think time that is uniformly distributed between two times, ns.
    Uniform(u64, u64),
    /// A think time that is exponentially distributed with the given mean, ns.
    Exponential(u64),
    /// A think time that is log-normally distributed: the median, ns, and the standard deviation of
    /// the logarithm, in thousandths.
    LogNormal(u64, u32),
    /// A think time that is chosen from a list with equal probability, ns; the list is never empty.
    Pick(Box<[u64]>),
}

impl ThinkTime {
    /// Parses a think time: `500ms`, `uniform(1s,3s)`, `exp(1s)`, `lognormal(1s,0.5)` or
    /// `pick(50ms,2s,9s)`.
    ///
    /// # Errors
    /// The error is a sentence that says how to correct the text.
    pub fn parse(text: &str) -> Result<ThinkTime, String> {
        let unknown = || {
            format!(
                "'{text}' is not a think time: write 500ms, uniform(1s,3s), exp(1s), lognormal(1s,0.5) or \
                 pick(50ms,2s,9s)"
            )
        };
        let time = |text: &str| parse_duration_ns(text.trim()).map_err(|error| error.to_string());
        let Some((name, rest)) = text.trim().split_once('(') else { return time(text).map(ThinkTime::Fixed) };
        let arguments = rest.trim_end().strip_suffix(')').ok_or_else(unknown)?;
        let arguments: Vec<&str> = arguments.split(',').collect();
        let think = match (name.trim(), arguments.as_slice()) {
            ("uniform", [from, to]) => ThinkTime::Uniform(time(from)?, time(to)?),
            ("exp", [mean]) => ThinkTime::Exponential(time(mean)?),
            ("lognormal", [median, sigma]) => {
                let sigma: f64 = sigma.trim().parse().map_err(|_| unknown())?;
                // An invalid deviation becomes a number far above the limit, so that the range
                // check below refuses the think time.
                let milli = if sigma >= 0.0 { (sigma * 1e3).round() as u32 } else { u32::MAX };
                ThinkTime::LogNormal(time(median)?, milli)
            }
            ("pick", times) if times.len() <= PICK_TIMES_MAX => {
                ThinkTime::Pick(times.iter().map(|text| time(text)).collect::<Result<_, _>>()?)
            }
            ("pick", _) => return Err(format!("pick(...) has at most {PICK_TIMES_MAX} think times")),
            _ => return Err(unknown()),
        };
        match think {
            ThinkTime::Uniform(from, to) if from > to => {
                Err(format!("the first think time in '{text}' is longer than the second: write the shorter time first"))
            }
            think if !think.is_sound() => Err(format!(
                "'{text}': a think time is at most a day, and the deviation (second number) of lognormal is 0 to 10"
            )),
            think => Ok(think),
        }
    }

    fn is_sound(&self) -> bool {
        let in_range = |ns: u64| ns as f64 <= THINK_NS_MAX;
        match self {
            ThinkTime::Fixed(ns) | ThinkTime::Exponential(ns) => in_range(*ns),
            ThinkTime::Uniform(from, to) => from <= to && in_range(*to),
            ThinkTime::LogNormal(median, sigma) => in_range(*median) && *sigma <= SIGMA_MILLI_MAX,
            ThinkTime::Pick(times) => !times.is_empty() && times.iter().all(|ns| in_range(*ns)),
        }
    }

    /// Draws one think time, ns.
    pub fn draw_ns(&self, rng: &mut Rng) -> u64 {
        let ns = match self {
            ThinkTime::Fixed(ns) => return *ns,
            ThinkTime::Uniform(from, to) => return from + rng.uniform_below(to - from + 1),
            ThinkTime::Pick(times) => {
                let at = rng.uniform_below(times.len().max(1) as u64) as usize;
                return times.get(at).copied().unwrap_or(0);
            }
            ThinkTime::Exponential(mean) => rng.exponential() * *mean as f64,
            ThinkTime::LogNormal(median, sigma) => {
                // Draw a normal variable by the Box-Muller transform.
                let radius = (-2.0 * rng.next_f64_above_zero().ln()).sqrt();
                let normal = radius * (std::f64::consts::TAU * rng.next_f64()).cos();
                *median as f64 * (f64::from(*sigma) / 1e3 * normal).exp()
            }
        };
        ns.min(THINK_NS_MAX) as u64
    }
}

impl std::fmt::Display for ThinkTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ThinkTime::Fixed(ns) => write!(f, "{ns}ns"),
            ThinkTime::Uniform(from, to) => write!(f, "uniform({from}ns,{to}ns)"),
            ThinkTime::Exponential(mean) => write!(f, "exp({mean}ns)"),
            ThinkTime::LogNormal(median, sigma) => write!(f, "lognormal({median}ns,{})", f64::from(*sigma) / 1e3),
            ThinkTime::Pick(times) => {
                let times: Vec<String> = times.iter().map(|ns| format!("{ns}ns")).collect();
                write!(f, "pick({})", times.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn think_times_parse_or_explain_the_error() {
        for (text, expect) in [
            ("500ms", Ok(ThinkTime::Fixed(SECOND / 2))),
            ("0s", Ok(ThinkTime::Fixed(0))),
            ("uniform(1s, 3s)", Ok(ThinkTime::Uniform(SECOND, 3 * SECOND))),
            ("exp(1s)", Ok(ThinkTime::Exponential(SECOND))),
            ("lognormal(1s,0.5)", Ok(ThinkTime::LogNormal(SECOND, 500))),
            ("pick(1s)", Ok(ThinkTime::Pick([SECOND].into()))),
            ("pick(50ms, 2s,9s)", Ok(ThinkTime::Pick([SECOND / 20, 2 * SECOND, 9 * SECOND].into()))),
            ("pick()", Err("is not a time")),
            ("pick(1s,3000h)", Err("a day")),
            ("uniform(3s,1s)", Err("the shorter time first")),
            ("uniform(1s)", Err("exp(1s)")),
            ("gauss(1s,2s)", Err("exp(1s)")),
            ("exp(1s", Err("exp(1s)")),
            ("lognormal(1s,x)", Err("exp(1s)")),
            ("lognormal(1s,-1)", Err("deviation")),
            ("exp(3000h)", Err("a day")),
        ] {
            match (ThinkTime::parse(text), expect) {
                (Ok(think), Ok(expect)) => {
                    assert_eq!(think, expect, "{text}");
                    assert_eq!(ThinkTime::parse(&think.to_string()), Ok(think), "{text}");
                }
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn think_times_follow_their_distribution() {
        let drawn = |think: ThinkTime| {
            let mut rng = Rng::new(7);
            let mut all: Vec<f64> = (0..20_000).map(|_| think.draw_ns(&mut rng) as f64 / SECOND as f64).collect();
            all.sort_by(f64::total_cmp);
            (all[0], all[10_000], all[19_999], all.iter().sum::<f64>() / 20_000.0)
        };
        let near = |value: f64, expect: f64| (value - expect).abs() < 0.03 * expect;
        let (least, median, most, mean) = drawn(ThinkTime::Uniform(SECOND, 3 * SECOND));
        assert!(least >= 1.0 && most <= 3.0 && near(median, 2.0) && near(mean, 2.0));
        let (_, median, _, mean) = drawn(ThinkTime::Exponential(SECOND));
        assert!(near(median, std::f64::consts::LN_2) && near(mean, 1.0));
        let (_, median, _, mean) = drawn(ThinkTime::LogNormal(SECOND, 500));
        assert!(near(median, 1.0) && near(mean, 0.125f64.exp()));
    }

    #[test]
    fn the_maximum_requests_of_a_session_are_computed() {
        let ask = || SessionOp::Send { route: 0, may_continue: false };
        let repeat = |times, from, depth| SessionOp::Repeat { times, from, depth };
        for (ops, expect) in [
            (vec![ask()], 1),
            (vec![ask(), repeat(3, 0, 0), ask()], 4),
            // The program has one request, then three times three requests, then one request: 1 + 3
            // x 3 + 1 = 11.
            (vec![ask(), ask(), ask(), repeat(2, 2, 1), repeat(3, 1, 0), ask()], 11),
            (
                vec![
                    SessionOp::JumpUnlessFirstSession { to: 2 },
                    ask(),
                    repeat(REPETITIONS_MAX, 0, 1),
                    repeat(REPETITIONS_MAX, 0, 0),
                ],
                1_000_000_000_000,
            ),
        ] {
            let scenario = Scenario { name: "a".into(), weight: 1, own_connection: false, cookies: true, ops };
            assert_eq!(scenario.requests_max(), expect, "{scenario:?}");
        }
    }

    #[test]
    fn an_endless_session_program_is_invalid() {
        let ask = SessionOp::Send { route: 1, may_continue: false };
        let repeat = |times, from| SessionOp::Repeat { times, from, depth: 0 };
        let sound = |ops: Vec<SessionOp>| {
            Scenario { name: "a".into(), weight: 1, own_connection: false, cookies: true, ops }.is_sound(2)
        };
        assert!(sound(vec![SessionOp::JumpUnlessFirstSession { to: 2 }, ask.clone(), repeat(3, 1)]));
        assert!(!sound(vec![]) && !sound(vec![SessionOp::Think(ThinkTime::Fixed(1))]));
        assert!(!sound(vec![SessionOp::Send { route: 2, may_continue: false }]));
        assert!(
            !sound(vec![ask.clone(), SessionOp::JumpUnlessFirstSession { to: 1 }])
                && !sound(vec![SessionOp::JumpUnlessFirstSession { to: 3 }, ask.clone()])
                && !sound(vec![ask.clone(), SessionOp::JumpIfSucceeded { to: 0 }])
        );
        assert!(!sound(vec![ask.clone(), repeat(0, 0)]) && !sound(vec![ask.clone(), repeat(2, 1)]));
        // Two nested loops with one counter would never end.
        let outer = SessionOp::Repeat { times: 2, from: 0, depth: 1 };
        assert!(sound(vec![ask.clone(), repeat(2, 0), outer]));
        assert!(!sound(vec![ask.clone(), repeat(2, 0), repeat(2, 0)]));
    }
}
