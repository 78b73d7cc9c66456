//! Parses scenarios, which are sequences of steps. Nested steps, repetitions and conditions become
//! a flat program of operations that each session executes.

use super::keys;
use super::labels::Labels;
use super::request::{FileRequest, REQUESTS_MAX, parse_name, parse_request};
use super::texts::{CAPTURES_MAX, TextScope};
use super::tree::{TrafficFileError, TreeNode, TreeTable};
use plimsoll_model::RouteNumber;
use plimsoll_model::session::{LOOP_NESTING_MAX, REPETITIONS_MAX, SCENARIO_OPS_MAX, Scenario, SessionOp, ThinkTime};
use std::collections::HashSet;

/// Parses the list of scenarios. The requests of all scenarios are appended to `requests`.
pub fn parse_scenarios(
    list: &TreeNode,
    known: &mut TextScope,
    requests: &mut Vec<FileRequest>,
) -> Result<Vec<Scenario>, TrafficFileError> {
    let nodes = list.list("'scenario'")?;
    let mut scenarios: Vec<Scenario> = Vec::with_capacity(nodes.len());
    let (mut names, mut labels) = (HashSet::new(), Labels::default());
    for (number, node) in nodes.iter().enumerate() {
        let table = node.table("a scenario", &keys::SCENARIO_KEYS)?;
        let scenario_name =
            table.get("name").map(parse_name).transpose()?.unwrap_or_else(|| format!("scenario {}", number + 1));
        if !names.insert(scenario_name.clone()) {
            return table
                .get("name")
                .unwrap_or(node)
                .error(format!("two scenarios have the name '{scenario_name}': give each scenario another name"));
        }
        let own_connection = match table.get("connection") {
            None => false,
            Some(node) => match node.text("'connection'")? {
                "user" => true,
                "shared" => false,
                other => return node.error(format!("'connection' must be user or shared, not '{other}'")),
            },
        };
        let cookies = table.get("cookies").map_or(Ok(true), |node| node.flag("'cookies'"))?;
        let Some(steps) = table.get("step") else {
            return node.error("this scenario has no steps: add a [[scenario.step]], such as get = \"/\"");
        };
        // Every step can use every capture of its scenario. In a repetition, a step can even use a
        // value captured by a later step of the previous round.
        known.captured_in_scenario.clear();
        collect_captured_names(steps, &known.captured, &mut known.captured_in_scenario)?;
        let mut program = ScenarioProgram {
            scenario: scenario_name,
            ops: Vec::new(),
            text_scope: &mut *known,
            requests: &mut *requests,
            labels: &mut labels,
        };
        program.push_steps(steps, 0)?;
        let ScenarioProgram { scenario: name, ops, .. } = program;
        let weight = table.get("weight").map_or(Ok(1), |weight| weight.whole_number("'weight'", 1, 1_000_000))? as u32;
        scenarios.push(Scenario { name, weight, own_connection, cookies, ops });
    }
    match scenarios.is_empty() {
        true => list.error("the list of scenarios is empty: add a scenario"),
        false => Ok(scenarios),
    }
}

/// Adds to `names` the names that steps and nested steps capture. A name that the setup also
/// captures (`shared`) is an error.
fn collect_captured_names(
    steps: &TreeNode,
    shared: &HashSet<String>,
    names: &mut HashSet<String>,
) -> Result<(), TrafficFileError> {
    for node in steps.list("'step'")? {
        let table = node.table("a step", &keys::STEP_KEYS)?;
        if let Some(capture) = table.get("capture") {
            for (key, _) in capture.open_table("'capture'")?.entries {
                if shared.contains(&key.name) {
                    let text = format!(
                        "a setup request already captures the name '{name}' before the load: choose another name",
                        name = key.name
                    );
                    return Err(TrafficFileError::new(key.at, text));
                }
                names.insert(key.name.clone());
                if names.len() > CAPTURES_MAX {
                    let text = format!("this scenario captures values under more than {CAPTURES_MAX} names");
                    return Err(TrafficFileError::new(key.at, text));
                }
            }
        }
        if let Some(inner) = table.get("step") {
            collect_captured_names(inner, shared, names)?;
        }
    }
    Ok(())
}

/// The program of one scenario, under construction.
struct ScenarioProgram<'a, 'w> {
    scenario: String,
    ops: Vec<SessionOp>,
    text_scope: &'a mut TextScope<'w>,
    requests: &'a mut Vec<FileRequest>,
    labels: &'a mut Labels,
}

impl ScenarioProgram<'_, '_> {
    /// Appends the operations of a list of steps. `depth` is the number of enclosing repetitions.
    fn push_steps(&mut self, list: &TreeNode, depth: usize) -> Result<(), TrafficFileError> {
        let nodes = list.list("'step'")?;
        if nodes.is_empty() {
            return list.error("the list of steps is empty: add a step");
        }
        nodes.iter().try_for_each(|node| self.push_step(node, depth))
    }

    fn push_step(&mut self, node: &TreeNode, depth: usize) -> Result<(), TrafficFileError> {
        let table = node.table("a step", &keys::STEP_KEYS)?;
        let from = self.ops.len();
        self.push_conditions(&table)?;
        let body = self.ops.len();
        if let Some(think) = table.get("think") {
            self.ops.push(SessionOp::Think(think.read("'think'", ThinkTime::parse)?));
        }
        let (inner, times) = match table.get("step") {
            Some(inner) => {
                let of_request = |(key, _): &&(super::tree::TreeKey, TreeNode)| {
                    !["step", "times", "if", "unless", "once", "think", "name"].contains(&key.name.as_str())
                };
                if let Some((key, _)) = table.entries.iter().find(of_request) {
                    let text = format!(
                        "'{key}' belongs to a step with a request, and this step contains steps: move the key into \
                         a step with a request",
                        key = key.name
                    );
                    return Err(TrafficFileError::new(key.at, text));
                }
                (Some(inner), table.get("times"))
            }
            None => match table.get("times") {
                Some(times) => {
                    return times.error(
                        "'times' repeats a step that contains steps: for a step with a request, write 'repeat' \
                             instead",
                    );
                }
                None => (None, table.get("repeat")),
            },
        };
        let times =
            times.map_or(Ok(1), |node| node.whole_number("a number of times", 1, u64::from(REPETITIONS_MAX)))? as u32;
        if times > 1 && depth >= LOOP_NESTING_MAX {
            return node.error(format!("repeated steps can be nested at most {LOOP_NESTING_MAX} levels deep"));
        }
        match inner {
            Some(inner) => self.push_steps(inner, depth + usize::from(times > 1))?,
            None => self.push_request(&table)?,
        }
        if times > 1 {
            self.ops.push(SessionOp::Repeat { times, from: body as u32, depth: depth as u8 });
        }
        let end = self.ops.len();
        if end > SCENARIO_OPS_MAX {
            return node.error(format!(
                "a scenario can have at most {SCENARIO_OPS_MAX} requests, conditions, repetitions and think times together"
            ));
        }
        for op in &mut self.ops[from..body] {
            if let SessionOp::JumpUnlessText { to, .. } | SessionOp::JumpUnlessFirstSession { to } = op {
                *to = end as u32;
            }
        }
        Ok(())
    }

    /// Appends the conditions of a step. The jump targets of conditions are 0 until the whole step
    /// is written and its end is known.
    fn push_conditions(&mut self, table: &TreeTable) -> Result<(), TrafficFileError> {
        if table.get("once").map_or(Ok(false), |once| once.flag("'once'"))? {
            self.ops.push(SessionOp::JumpUnlessFirstSession { to: 0 });
        }
        for (key, empty) in [("if", false), ("unless", true)] {
            if let Some(node) = table.get(key) {
                let text = node.text(&format!("'{key}'"))?;
                let (text, is_filled) = self.text_scope.parse_text(node, text, false)?;
                if !is_filled {
                    return node.error(format!("'{key}' needs a placeholder, such as {{{{ token }}}}"));
                }
                self.ops.push(SessionOp::JumpUnlessText { text, empty, to: 0 });
            }
        }
        Ok(())
    }

    fn push_request(&mut self, table: &TreeTable) -> Result<(), TrafficFileError> {
        let mut asked = parse_request(table, self.text_scope)?;
        // Two scenarios may have steps with equal names. If the label of a step is already in use,
        // the step's label begins with the name of its scenario.
        let own = match self.labels.has(&asked.label) {
            true => format!("{} {}", self.scenario, asked.label),
            false => std::mem::take(&mut asked.label),
        };
        asked.label = self.labels.reserve_unique(own);
        let may_continue = continues_after_failure(table)?;
        let Some(route) =
            RouteNumber::try_from(self.requests.len()).ok().filter(|_| self.requests.len() < REQUESTS_MAX)
        else {
            return table.node.error(format!("a traffic file can have at most {REQUESTS_MAX} requests"));
        };
        self.requests.push(asked);
        self.ops.push(SessionOp::Send { route, may_continue });
        Ok(())
    }
}

/// Parses `on_fail`: whether a session continues after this step fails. The default is to abandon
/// the session.
pub fn continues_after_failure(table: &TreeTable) -> Result<bool, TrafficFileError> {
    let Some(node) = table.get("on_fail") else { return Ok(false) };
    match node.text("'on_fail'")? {
        "continue" => Ok(true),
        "abandon" => Ok(false),
        other => node.error(format!("'on_fail' must be continue or abandon, not '{other}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::file_context::FileContext;
    use crate::file::toml;

    struct EmptyContext;

    impl FileContext for EmptyContext {
        fn read_file(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Err("is not there".into())
        }

        fn read_data_rows(&mut self, _: &str) -> Result<String, String> {
            Err("is not there".into())
        }

        fn check_regex(&mut self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn environment_variable(&mut self, _: &str) -> Option<String> {
            None
        }
    }

    fn read(text: &str) -> Result<(Vec<Scenario>, Vec<String>), String> {
        let tree = toml::parse_toml_tree(text).expect("TOML");
        let list = tree.open_table("a file").expect("a table").get("scenario").expect("scenarios");
        let world = &mut EmptyContext;
        let mut known = TextScope::new(world);
        let mut requests = Vec::new();
        let scenarios = parse_scenarios(list, &mut known, &mut requests).map_err(|error| error.to_string())?;
        Ok((scenarios, requests.into_iter().map(|request| request.label).collect()))
    }

    #[test]
    fn scenario_steps_become_a_program() {
        let (scenarios, labels) = read(
            r#"
            [[scenario]]
            name = "buyer"
            weight = 3
            connection = "user"
            [[scenario.step]]
            name = "login"
            once = true
            post = "/login"
            capture = { token = "$.token" }
            [[scenario.step]]
            if = "{{ token }}"
            times = 4
            [[scenario.step.step]]
            think = "1s"
            get = "/me"
            headers = { authorization = "Bearer {{ token }}" }
            repeat = 3
            [[scenario.step.step]]
            get = "/out"
            on_fail = "continue"
            [[scenario]]
            [[scenario.step]]
            name = "login"
            get = "/"
            "#,
        )
        .expect("scenarios");
        let ask = |route, may_continue| SessionOp::Send { route, may_continue };
        let program = vec![
            SessionOp::JumpUnlessFirstSession { to: 2 },
            ask(0, false),
            SessionOp::JumpUnlessText { text: "{{ token }}".into(), empty: false, to: 8 },
            SessionOp::Think(ThinkTime::Fixed(1_000_000_000)),
            ask(1, false),
            SessionOp::Repeat { times: 3, from: 3, depth: 1 },
            ask(2, true),
            SessionOp::Repeat { times: 4, from: 3, depth: 0 },
        ];
        assert_eq!(scenarios[0].ops, program);
        assert_eq!((scenarios[0].weight, scenarios[0].own_connection), (3, true));
        assert_eq!((scenarios[1].name.as_str(), scenarios[1].ops.len()), ("scenario 2", 1));
        assert_eq!(labels, ["login", "GET /me", "GET /out", "scenario 2 login"]);
        assert!(scenarios.iter().all(|scenario| scenario.is_sound(labels.len())));
    }

    #[test]
    fn scenario_errors_have_a_position() {
        let step = |text: &str| format!("[[scenario]]\n[[scenario.step]]\n{text}");
        for (text, part) in [
            ("[[scenario]]\nname = \"a\"".to_owned(), "this scenario has no steps"),
            ("[[scenario]]\nstep = []".to_owned(), "2:8: the list of steps is empty"),
            (step("get = \"/{{ token }}\""), "3:7: nothing sets 'token'"),
            (step("get = \"/\"\nthink = \"soon\""), "4:9: "),
            (step("get = \"/\"\ntimes = 2"), "'repeat'"),
            (step("get = \"/\"\n[[scenario.step.step]]\nget = \"/\""), "3:1: 'get' belongs to a step with a request"),
            (step("get = \"/\"\nif = \"x\""), "4:6: 'if' needs a placeholder"),
            (step("get = \"/\"\non_fail = \"stop\""), "continue or abandon"),
            (step("get = \"/\"\ncapture = { \"a b\" = \"$.a\" }"), "is not a name"),
            (step("get = \"/\"\ncapture = { a = \"a\" }"), "header:NAME"),
            (step("head = \"/\"\ncapture = { a = \"$.a\" }"), "4:11: the response to a HEAD request has no content"),
            (step("head = \"/\"\nexpect = { body = \"a\" }"), "the response to a HEAD request has no content"),
            (step("get = \"/\"\nrepeat = 0"), "from 1 to"),
            (step("get = \"/\"\nweight = 2"), "there is no key 'weight' in a step"),
            (step("think = \"1s\""), "no method and path"),
        ] {
            let error = read(&text).expect_err(&text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
