//! Renders a recorded experiment in every output format ([`ResultView`]). Each method renders one
//! format and calls the renderer for the kind of finding. This file also adds the doubts (evidence
//! against the figures) to every format.
//!
//! Not here: the renderers for each kind of finding (`run`, `sweep`, `find`, `prove`, and
//! `page_charts` for pages), and computing findings.

use crate::agents;
use crate::block::{Report, Tone};
use crate::chart::{self, NamedSearch, Theme, heading};
use crate::explain::{evidence_svg, explain_report};
use crate::explain_json;
use crate::json;
use crate::junit::{self, Suite};
use crate::load_profiles::profiles_report;
use crate::overload::{overload_document, overload_page, overload_report, overload_svg};
use crate::page_charts::{self, PageAdditions};
use crate::prove::{ProveContext, ladder_report, prove_report};
use crate::prove_json;
use crate::prove_profiles;
use crate::remedy::sentence_text;
use crate::run::{RunContext, run_report, stop_text};
use crate::sampled_functions::functions_report;
use crate::screen::{
    Screen, explain_screen, find_screen, ladder_screen, overload_screen, profiled_functions_text, prove_screen,
    run_screen, sweep_screen,
};
use crate::server::add_server_facts;
use crate::sweep::{sweep_report, sweep_row, sweep_table_heading};
use crate::{find, sweep, text};
use plimsoll_analysis::finding::{ExplainFinding, Finding, MeasuredBlocks, SearchFinding, bottleneck_of_search};
use plimsoll_analysis::profile_findings::{BothSidesProfiles, ProfileFindings};
use plimsoll_analysis::{Assessment, Conditions, Doubt, DoubtKind, Doubts, fleet};
use plimsoll_model::{AgentAccount, Experiment, LoadEnd, PlanRecord};
use serde_json::Value;

/// The data that every output renders: an experiment with its finding and profiles.
#[derive(Debug, Clone, Copy)]
pub struct ResultView<'a> {
    /// The experiment as recorded: its settings and loads.
    pub experiment: &'a Experiment,
    /// The finding, with the evidence against its figures.
    pub finding: &'a Assessment<Finding<'a>>,
    /// The profiles that were taken during the experiment; `None` if there are none.
    pub profiles: Option<&'a ProfileFindings>,
    /// The URL as the user typed it ([`RunContext::typed_url`]).
    pub typed_url: Option<&'a str>,
}

impl<'a> ResultView<'a> {
    /// Renders the finding as text for a terminal of `columns` columns; with `None` the lines are
    /// not wrapped. With `in_full`, the text also contains the rows that the live log printed
    /// during the measurement.
    pub fn render_text(&self, in_full: bool, colour: bool, columns: Option<usize>) -> String {
        let shown = text::render_wrapped(&self.text_report(in_full), colour, columns);
        match self.finding.doubts_and_figures().1 {
            Finding::Sweep(found) if in_full => {
                let rows: String = found.levels.iter().map(|level| sweep_row(level, columns) + "\n").collect();
                format!("{}\n{rows}\n{shown}", sweep_table_heading(columns))
            }
            _ => shown,
        }
    }

    /// Renders the first screen for a terminal of `columns` columns. The screen states the answer,
    /// its certainty and the next step in a few lines; [`ResultView::render_text`] renders the full
    /// text.
    pub fn render_screen(&self, colour: bool, columns: Option<usize>) -> String {
        let (doubts, finding) = self.finding.doubts_and_figures();
        let mut screen: Screen = match finding {
            Finding::Run(found) => run_screen(&self.run_context(&found.trial.run.plan), found),
            Finding::Sweep(found) => sweep_screen(self.experiment, found),
            Finding::Find(found) => {
                let (context, held_by) = (self.run_context(&found.settings.base), bottleneck_of_search(found));
                find_screen(self.experiment, &context, found, doubts, held_by.as_ref())
            }
            Finding::Explain(found) => {
                let context = self.run_context(&found.search.settings.base);
                explain_screen(&context, found, doubts, self.profiles)
            }
            Finding::Overload(found) => overload_screen(&self.run_context(found.plan), found),
            Finding::Prove(found) => prove_screen(&self.prove_context(&found.blocks), &found.comparison),
            Finding::Ladder(found) => ladder_screen(&self.prove_context(&found.blocks), &found.ladder),
        };
        // The warnings omit the doubt about an incomplete recording, because the user saw that
        // doubt when the file was read. The warnings of a search also omit the doubts about the
        // load line, because the screen shows these doubts next to the load line.
        let searched = matches!(finding, Finding::Find(_));
        let elsewhere = |kind: DoubtKind| kind == DoubtKind::CutOff || searched && kind.is_inline();
        let warnings = doubts.iter().filter(|doubt| !elsewhere(doubt.kind));
        let warnings = warnings.map(|doubt| (doubt.kind, doubt_sentence(finding, doubt)));
        let of_profiles = self.profiles.into_iter().flat_map(|profiles| profiles.doubts().iter());
        // Doubts about profiles affect no figure outside the profiles, so the screen counts these
        // doubts without printing them. The screen only counts doubts of the kind `Unmeasured`, so
        // all doubts about profiles get this kind.
        let of_profiles = of_profiles.map(|doubt| (DoubtKind::Unmeasured, sentence_text(&doubt.text)));
        if let Some(text) = self.profiles.and_then(profiled_functions_text)
            && !matches!(finding, Finding::Explain(_))
        {
            screen.add_fact(2, "functions", text);
        }
        screen.add_warnings(warnings.chain(of_profiles).collect());
        screen.render(colour, columns)
    }

    /// Builds the full text output as a report (sentences, facts and tables). With `in_full`, the
    /// report includes the rows that the live log printed during the measurement.
    fn text_report(&self, in_full: bool) -> Report {
        let (doubts, finding) = self.finding.doubts_and_figures();
        // The warnings omit the doubt about an incomplete recording, because the user saw that
        // doubt when the file was read. For a sweep, the warnings omit the levels that could not be
        // measured, because the sweep's table shows those levels.
        let mut report = doubt_warnings(finding, doubts, |kind| match kind {
            DoubtKind::CutOff => false,
            DoubtKind::Unmeasured => !matches!(finding, Finding::Sweep(_)),
            _ => true,
        });
        let server = match finding {
            Finding::Run(found) => {
                report.append(run_report(&self.run_context(&found.trial.run.plan), &found.summary, &found.routes));
                Some(&found.server)
            }
            Finding::Sweep(found) => {
                report.append(sweep_report(self.experiment, found));
                None
            }
            Finding::Find(found) => {
                let context = self.run_context(&found.settings.base);
                let held_by = bottleneck_of_search(found);
                report.append(find::find_report(self.experiment, &context, found, doubts, held_by.as_ref(), in_full));
                Some(&found.server)
            }
            Finding::Explain(found) => {
                let context = self.run_context(&found.search.settings.base);
                report.append(explain_report(&context, found, doubts));
                report.append(self.sampled_functions_report(found));
                Some(&found.search.server)
            }
            Finding::Overload(found) => {
                report.append(overload_report(&self.run_context(found.plan), found));
                Some(&found.server)
            }
            Finding::Prove(found) => {
                report.append(prove_report(&self.prove_context(&found.blocks), &found.comparison));
                None
            }
            Finding::Ladder(found) => {
                report.append(ladder_report(&self.prove_context(&found.blocks), &found.ladder));
                None
            }
        };
        // The reports of single loads and searches already include the table of agents
        // (load-generating machines).
        if !matches!(finding, Finding::Run(_) | Finding::Find(_)) {
            agents::append_agents(&mut report, &self.agent_totals());
        }
        if let Some(server) = server {
            add_server_facts(&mut report, server);
        }
        match self.profiles {
            Some(ProfileFindings::SingleTarget(profiles)) => {
                report.append(profiles_report(profiles));
            }
            Some(ProfileFindings::BothSides(profiles)) => {
                report.append(both_sides_profiles_report(profiles));
            }
            None => {}
        }
        report
    }

    /// Renders the finding as a page with charts. The summary for a pull request is a shortened
    /// version of this page.
    pub fn page(&self, additions: &PageAdditions) -> Report {
        let mut additions = additions.clone();
        if let Some(profiles) = self.profiles.and_then(ProfileFindings::both_sides_profiles) {
            additions.extra.append(both_sides_profiles_report(profiles));
        }
        let additions = &additions;
        let (doubts, finding) = self.finding.doubts_and_figures();
        let mut page = doubt_warnings(finding, doubts, |_| true);
        let body = match finding {
            Finding::Run(found) => {
                page_charts::run_page(self.experiment, &self.run_context(&found.trial.run.plan), found, additions)
            }
            Finding::Sweep(found) => sweep::sweep_page(self.experiment, found, additions),
            Finding::Find(found) => page_charts::find_page(
                self.experiment,
                &self.run_context(&found.settings.base),
                found,
                doubts,
                bottleneck_of_search(found).as_ref(),
                additions,
            ),
            Finding::Explain(found) => {
                let context = self.run_context(&found.search.settings.base);
                let mut body = explain_report(&context, found, doubts);
                body.append(self.sampled_functions_report(found));
                body.add_heading("The search");
                body.append(page_charts::find_page(self.experiment, &context, &found.search, doubts, None, additions));
                body
            }
            Finding::Overload(found) => overload_page(self.experiment, &self.run_context(found.plan), found, additions),
            Finding::Prove(found) => page_charts::prove_page(&self.prove_context(&found.blocks), found, additions),
            Finding::Ladder(found) => page_charts::ladder_page(&self.prove_context(&found.blocks), found, additions),
        };
        page.append(body);
        page
    }

    /// Renders the CPU cost of each function of the server, from stack samples of the kernel. The
    /// result is empty if the server's own profiling endpoint already supplied profiles with the
    /// functions.
    fn sampled_functions_report(&self, finding: &ExplainFinding) -> Report {
        let own = self.profiles.and_then(ProfileFindings::single_target_profiles);
        let own = own.is_some_and(|profiles| profiles.doubts_and_figures().1.comparison.is_some());
        let functions = finding.explanation.functions.as_ref().filter(|_| !own);
        functions.map_or_else(Report::default, functions_report)
    }

    /// Renders the finding as a JSON document; the schema depends on the kind of finding.
    pub fn render_json_document(&self) -> Value {
        let (doubts, finding) = self.finding.doubts_and_figures();
        let warnings: Vec<String> =
            doubts.texts(|kind| json_field_of_doubt(finding, kind).is_none()).map(sentence_text).collect();
        let of_loads = self.profiles.and_then(ProfileFindings::single_target_profiles);
        let of_sides = self.profiles.and_then(ProfileFindings::both_sides_profiles);
        match finding {
            Finding::Run(found) => json::run_document(
                self.experiment,
                &self.run_context(&found.trial.run.plan),
                found,
                &warnings,
                of_loads,
            ),
            Finding::Sweep(found) => json::sweep_document(self.experiment, found, &warnings),
            Finding::Find(found) => json::find_document(
                self.experiment,
                &self.run_context(&found.settings.base),
                found,
                &warnings,
                doubts,
                of_loads,
            ),
            Finding::Explain(found) => {
                let context = self.run_context(&found.search.settings.base);
                explain_json::explain_document(self.experiment, &context, found, &warnings, of_loads)
            }
            Finding::Overload(found) => {
                overload_document(self.experiment, &self.run_context(found.plan), found, &warnings)
            }
            Finding::Prove(found) => {
                prove_json::proof_document(&self.prove_context(&found.blocks), found, &warnings, of_sides)
            }
            Finding::Ladder(found) => {
                prove_json::ladder_document(&self.prove_context(&found.blocks), found, &warnings, of_sides)
            }
        }
    }

    /// Draws the chart of a search for the load line; `None` for other kinds of findings.
    pub fn load_line_chart_svg(&self, theme: Theme) -> Option<String> {
        let found: &SearchFinding = match self.finding.doubts_and_figures().1 {
            Finding::Find(found) => found,
            Finding::Explain(found) => &found.search,
            Finding::Run(_) | Finding::Sweep(_) | Finding::Overload(_) | Finding::Prove(_) | Finding::Ladder(_) => {
                return None;
            }
        };
        let searched = [NamedSearch { name: "", findings: &found.findings }];
        let heading = heading::search_heading(&found.findings, &heading::target_title(&found.settings.base));
        Some(chart::search_chart(&heading, &searched, None, theme))
    }

    /// Draws the chart of an overload test over time; `None` for other kinds of findings.
    pub fn overload_chart_svg(&self, theme: Theme) -> Option<String> {
        match self.finding.doubts_and_figures().1 {
            Finding::Overload(found) => Some(overload_svg(&self.run_context(found.plan), found, theme)),
            Finding::Run(_)
            | Finding::Sweep(_)
            | Finding::Find(_)
            | Finding::Explain(_)
            | Finding::Prove(_)
            | Finding::Ladder(_) => None,
        }
    }

    /// Draws a chart of the evidence for the bottleneck that an explanation found; `None` for other
    /// kinds of findings.
    pub fn evidence_svg(&self, theme: Theme) -> Option<String> {
        match self.finding.doubts_and_figures().1 {
            Finding::Explain(found) => Some(evidence_svg(&found.explanation, theme)),
            Finding::Run(_)
            | Finding::Sweep(_)
            | Finding::Find(_)
            | Finding::Overload(_)
            | Finding::Prove(_)
            | Finding::Ladder(_) => None,
        }
    }

    /// Draws the chart of a comparison or a ladder; `None` for other kinds of findings.
    pub fn comparison_chart_svg(&self, theme: Theme) -> Option<String> {
        match self.finding.doubts_and_figures().1 {
            Finding::Prove(found) => Some(page_charts::prove_svg(&self.prove_context(&found.blocks), found, theme)),
            Finding::Ladder(found) => Some(page_charts::ladder_svg(&self.prove_context(&found.blocks), found, theme)),
            Finding::Run(_) | Finding::Sweep(_) | Finding::Find(_) | Finding::Explain(_) | Finding::Overload(_) => None,
        }
    }

    /// Renders the finding as a JUnit suite called `name`. For single loads, sweeps and overload
    /// tests, the suite checks the conditions `demands` on each load.
    pub fn junit_suite(&self, name: String, demands: &Conditions) -> Suite {
        let (doubts, finding) = self.finding.doubts_and_figures();
        let cases = match finding {
            Finding::Run(_) | Finding::Sweep(_) | Finding::Overload(_) => {
                junit::all_load_cases(self.experiment, demands)
            }
            Finding::Find(found) => junit::search_cases(&found.findings, doubts),
            Finding::Explain(found) => junit::search_cases(&found.search.findings, doubts),
            Finding::Prove(found) => vec![junit::prove_case(self.experiment, &found.comparison)],
            Finding::Ladder(_) => vec![junit::ladder_case(self.experiment)],
        };
        let warnings = doubts.iter().map(|doubt| doubt_sentence(finding, doubt)).collect();
        Suite { name, cases, warnings }
    }

    /// Returns the settings and machines that the report of a load or a search states in addition
    /// to its figures.
    fn run_context(&self, plan: &'a PlanRecord) -> RunContext<'a> {
        let environment = &self.experiment.environment;
        let injectors = match self.finding.doubts_and_figures().1 {
            Finding::Run(found) => &found.trial.run.injectors,
            _ => &environment.injectors,
        };
        let (cores, local) = (environment.cores, environment.target_local);
        let agents = self.agent_totals();
        let (setup, typed_url) = (&self.experiment.start_notes.adjustments, self.typed_url);
        RunContext { plan, injectors, cores, is_target_local: local, plan_adjustments: setup, agents, typed_url }
    }

    /// Sums the figures of each agent (a machine of a fleet) over all loads; empty without a fleet.
    fn agent_totals(&self) -> Vec<AgentAccount> {
        fleet::sum_agents(self.experiment.trials.iter().map(|trial| &trial.run))
    }

    /// Returns the recorded experiment with its blocks, which the report of a comparison or a
    /// ladder needs in addition to the figures.
    fn prove_context(&self, measured: &'a MeasuredBlocks<'a>) -> ProveContext<'a> {
        ProveContext { experiment: self.experiment, measured }
    }
}

/// Renders the section about the CPU profiles of both sides (servers A and B) of a comparison.
pub(crate) fn both_sides_profiles_report(profiles: &Assessment<BothSidesProfiles>) -> Report {
    let mut report = Report::default();
    report.add_heading("CPU time per request by function").append(prove_profiles::prove_profiles_report(profiles));
    report
}

/// Renders doubts about the figures as warnings, which are printed above the figures. A doubt is
/// included only if `is_included` returns true for its kind.
fn doubt_warnings(finding: &Finding, doubts: &Doubts, is_included: impl Fn(DoubtKind) -> bool) -> Report {
    let mut report = Report::default();
    // The warnings omit the doubts about the load line, because the answer of a search or an
    // explanation already states these doubts.
    let beside = |kind: DoubtKind| matches!(finding, Finding::Find(_) | Finding::Explain(_)) && kind.is_inline();
    for doubt in doubts.iter().filter(|doubt| !beside(doubt.kind) && is_included(doubt.kind)) {
        report.add_sentence(Tone::Warning, doubt_sentence(finding, doubt));
    }
    report
}

/// Formats a doubt as a sentence for the user.
fn doubt_sentence(finding: &Finding, doubt: &Doubt) -> String {
    match (finding, doubt.kind) {
        (Finding::Run(_), DoubtKind::Generator) => {
            format!(
                "{doubt_text}. The figures describe plimsoll, not the server.",
                doubt_text = sentence_text(&doubt.text)
            )
        }
        (Finding::Run(found), DoubtKind::Ended) => match &found.summary.ending {
            // If a stop condition of the user ended the load, the sentence names the flag
            // `--stop-if`.
            Some(LoadEnd::Stopped(stop)) => format!("ended early: {}", stop_text(stop)),
            _ => sentence_text(&doubt.text),
        },
        _ => sentence_text(&doubt.text),
    }
}

/// Returns the name of the JSON field that states a doubt of this kind. Returns `None` if the
/// document has no such field and states the doubt in its list `warnings`.
fn json_field_of_doubt(finding: &Finding, kind: DoubtKind) -> Option<&'static str> {
    match (finding, kind) {
        (Finding::Run(_), DoubtKind::Unsent) => Some("generator"),
        (Finding::Run(_), DoubtKind::Ended | DoubtKind::CutOff) => Some("ended"),
        (Finding::Find(_), DoubtKind::Generator | DoubtKind::CutOff) => Some("stopped_by"),
        (Finding::Run(_) | Finding::Find(_) | Finding::Explain(_), DoubtKind::Restarted) => Some("server"),
        (Finding::Find(_), kind) if kind.is_inline() => Some("doubts"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{markdown, page};
    use plimsoll_analysis::{Remedy, Sentence, compute_finding};
    use plimsoll_model::*;

    const CLOSED_LOOP_SHAPE: fn(f64) -> LoadShape = |users| LoadShape::Closed { users: LoadCurve::constant(users) };

    /// Returns a recorded load with 100 successful requests in each of 10 ticks (intervals of equal
    /// length).
    fn successful_trial(purpose: LoadPurpose, arm: Option<ArmIndex>, turn: u32, shape: LoadShape) -> Trial {
        let mut run = Run::new(Plan::for_get_request("h", 80, vec![], shape));
        for index in 0..10 {
            let mut interval = Interval::default();
            let figures = interval.routes.figures_mut(0);
            figures.succeeded_in_window = 100;
            (figures.ledger.scheduled, figures.ledger.succeeded) = (100, 100);
            run.intervals.insert(index, interval);
        }
        (run.window_ns, run.ending) = ((0, 1_000_000_000), Some(LoadEnd::Finished));
        Trial { tag: LoadTag { purpose, arm, turn }, start_ns: u64::from(turn) * 1_000_000_000, run }
    }

    fn recorded_experiment(spec: ExperimentSpec, trials: Vec<Trial>) -> Experiment {
        Experiment {
            spec,
            started_unix_ms: 0,
            command: vec!["plimsoll".into()],
            settings: None,
            environment: Environment::default(),
            start_notes: StartNotes::default(),
            trials,
            events: vec![],
            elapsed_ns: Some(10_000_000_000),
        }
    }

    /// Returns one recorded experiment for each kind of study.
    fn experiments_of_all_kinds() -> Vec<Experiment> {
        let base = Plan::for_get_request("h", 80, vec![], CLOSED_LOOP_SHAPE(1.0)).record();
        let arm = |name: &str| Arm { name: name.into(), plan: base.clone(), is_started_per_load: false };
        let blocks = BlocksSpec {
            arms: vec![arm("http://h/a"), arm("http://h/b")],
            users: Some(1),
            rate: None,
            arrivals: ArrivalSpacing::Constant,
            load_ns: None,
            warmup_ns: None,
            budget_ns: 10_000_000_000,
            blocks_max: None,
            answers_may_differ: false,
        };
        let on = |of: fn(u8) -> ArmIndex| {
            let load = |number: u32| {
                successful_trial(LoadPurpose::Block, Some(of((number % 2) as u8)), number / 2, CLOSED_LOOP_SHAPE(1.0))
            };
            (0..24).map(load).collect::<Vec<Trial>>()
        };
        let search = FindSpec {
            base: base.clone(),
            slo: "p99<=500ms".into(),
            budget_ns: 10_000_000_000,
            max_rate: None,
            arrivals: ArrivalSpacing::Constant,
            preflight_ns: 0,
            profiles: None,
            planning: Default::default(),
        };
        let overloaded = search.clone();
        let rate = |rate| LoadShape::Open { rate: LoadCurve::constant(rate), arrivals: ArrivalSpacing::Constant };
        let prove = ProveSpec { blocks: blocks.clone(), criterion: Criterion::Goodput, margin: 0.02, profiles: None };
        let lengths = LevelDurations::Fixed(1_000_000_000);
        let sweep = SweepSpec { base: base.clone(), levels: vec![1, 2], lengths, warmup_ns: 0 };
        let levels = [1, 2]
            .map(|users| successful_trial(LoadPurpose::Level, None, users - 1, CLOSED_LOOP_SHAPE(f64::from(users))));
        vec![
            recorded_experiment(
                ExperimentSpec::Run(RunSpec { plan: base, stop_if: None, profiles: None }),
                vec![successful_trial(LoadPurpose::Run, None, 0, CLOSED_LOOP_SHAPE(1.0))],
            ),
            recorded_experiment(ExperimentSpec::Sweep(sweep), levels.into()),
            recorded_experiment(
                ExperimentSpec::Find(search.clone()),
                vec![
                    successful_trial(LoadPurpose::Peak, None, 0, CLOSED_LOOP_SHAPE(1.0)),
                    successful_trial(LoadPurpose::Climb, None, 1, rate(1000.0)),
                ],
            ),
            recorded_experiment(
                ExperimentSpec::Explain(ExplainSpec {
                    search,
                    budget_ns: 20_000_000_000,
                    interventions: vec![],
                    requested_interventions: vec![],
                    setting_values: vec![],
                }),
                vec![
                    successful_trial(LoadPurpose::Peak, None, 0, CLOSED_LOOP_SHAPE(1.0)),
                    successful_trial(LoadPurpose::SteadyLoad, None, 0, rate(100.0)),
                ],
            ),
            recorded_experiment(
                ExperimentSpec::Overload(OverloadSpec {
                    search: overloaded,
                    line_rps: Some(100.0),
                    retries: 0,
                    second_target: None,
                    budget_ns: 20_000_000_000,
                }),
                vec![successful_trial(LoadPurpose::Overload, None, 0, rate(100.0))],
            ),
            recorded_experiment(ExperimentSpec::Prove(prove), on(ArmIndex::Side)),
            recorded_experiment(ExperimentSpec::Ladder(LadderSpec { blocks }), on(ArmIndex::Rung)),
        ]
    }

    /// Checks that every output format of every kind of finding states the doubts about its
    /// figures.
    #[test]
    fn every_format_states_every_doubt() {
        for experiment in &experiments_of_all_kinds() {
            let found = compute_finding(experiment).expect("a finding").doubts_and_figures().1.clone();
            let study = experiment.spec.study_word();
            for kind in DoubtKind::ALL {
                let words = format!("planted: {kind:?} (--max-connections)");
                let mut doubts = Doubts::default();
                let planted = Sentence::from(format!("planted: {kind:?} (")).remedy(Remedy::MaxConnections);
                doubts.add(kind, planted.words(")"));
                let doubted = Assessment::new(doubts, found.clone());
                let shown = ResultView { experiment, finding: &doubted, profiles: None, typed_url: None };
                // The text output omits two doubts. An incomplete recording is reported when the
                // file is read, and the table of a sweep shows unmeasured levels.
                let elsewhere = kind == DoubtKind::CutOff || kind == DoubtKind::Unmeasured && study == "sweep";
                assert!(elsewhere || shown.render_text(true, false, None).contains(&words), "{study}, {kind:?}: text");
                let page_of = shown.page(&PageAdditions::default());
                assert!(markdown::render(&page_of).contains(&words), "{study}, {kind:?}: Markdown");
                assert!(page::render(&page_of, "a title").contains(&words), "{study}, {kind:?}: page");
                let document = shown.render_json_document();
                match json_field_of_doubt(&found, kind) {
                    None => assert!(document["warnings"].to_string().contains(&words), "{study}, {kind:?}: {document}"),
                    Some("doubts") => assert!(document["doubts"].to_string().contains(&words), "{study}, {kind:?}"),
                    Some(field) => assert!(document.get(field).is_some(), "{study}, {kind:?}: no field {field}"),
                }
                let suites =
                    junit::render(&[shown.junit_suite("a file".into(), &Conditions::parse("p99>1s").expect("one"))]);
                assert!(suites.contains(&words), "{study}, {kind:?}: {suites}");
            }
        }
    }

    /// Checks that text from servers and files contains no control characters and no markup in any
    /// output format.
    #[test]
    fn untrusted_text_is_escaped_in_every_format() {
        const HOSTILE_TEXT: &str = "=cmd|x!A0\u{1b}[2J\u{1b}[31m<b onload=x>|*a*\u{202e}\u{9b}2J\u{85}";
        let others = || HOSTILE_TEXT.to_owned();
        for experiment in &mut experiments_of_all_kinds() {
            for trial in &mut experiment.trials {
                let run = &mut trial.run;
                let route = run.plan.traffic.routes[0].clone();
                run.plan.traffic.routes.push(route);
                for route in &mut run.plan.traffic.routes {
                    (route.label, route.target, route.method) = (others(), others(), others());
                    route.headers = vec![(others(), others())];
                }
                run.plan.traffic.origin.host = others();
                for interval in run.intervals.values_mut() {
                    let second = interval.routes.figures_mut(1);
                    (second.ledger.scheduled, second.ledger.succeeded) = (1, 1);
                }
                let seen = WatchedServer { from_ns: 0, pid: 7, name: others(), found_by: others() };
                run.probes.servers = vec![seen.clone(), WatchedServer { pid: 8, from_ns: 500_000_000, ..seen }];
                run.probes.missing = vec![others()];
                for name in ["server.cpu", "server.thread.x\u{1b}[2J.cpu", HOSTILE_TEXT] {
                    let mut series = Series::new(SeriesKind::Counter, "ns");
                    for at in 0..10 {
                        series.push(SeriesSample { at_ns: at * 100_000_000, value: at as f64 * 1e7 });
                    }
                    run.probes.series.insert(name.to_owned(), series);
                }
                let head = format!("HTTP/1.1 500 {HOSTILE_TEXT}\r\nContent-Type: {HOSTILE_TEXT}\r\n\r\n{HOSTILE_TEXT}");
                let mut failed =
                    FailedResponse::from_response(500, 0, head.as_bytes(), RedactionLevel::SecretsButBodies);
                (failed.status_line, failed.body, failed.reason) = (others(), others(), others());
                run.failed_answers = vec![failed];
                run.ending = Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(others())));
            }
            experiment.start_notes = StartNotes { warnings: vec![others()], adjustments: vec![others()] };
            experiment.command = vec![others()];
            experiment.environment.kernel = others();
            experiment.environment.cpu = others();
            experiment.events.push(ExperimentEvent::Aborted { reason: others() });
            let finding = compute_finding(experiment).expect("a finding");
            let shown = ResultView { experiment, finding: &finding, profiles: None, typed_url: None };
            let page_of = shown.page(&PageAdditions { file: others(), ..PageAdditions::default() });
            let suites = [shown.junit_suite(others(), &Conditions::parse("p99>1s").expect("one"))];
            let study = experiment.spec.study_word();
            let page = page::render(&page_of, HOSTILE_TEXT);
            let csv = crate::csv::intervals_csv(experiment);
            let formats = [
                ("text", shown.render_text(true, false, None)),
                ("narrow text", shown.render_text(true, false, Some(50))),
                ("Markdown", markdown::render(&page_of)),
                ("page", page.clone()),
                ("document", json::indented_json_text(&shown.render_json_document())),
                ("suite", junit::render(&suites)),
                ("CSV", csv.replace("\r\n", "\n")),
                ("screen", shown.render_screen(false, None)),
            ];
            for (format, text) in &formats {
                let steering =
                    text.char_indices().find(|(_, c)| crate::visible_controls::is_control_character(*c) && *c != '\n');
                let around = steering.map(|(at, _)| text[..at].chars().rev().take(80).collect::<String>());
                assert_eq!(around.map(|it| it.chars().rev().collect::<String>()), None, "{study}: {format}");
            }
            assert!(!page.contains("<b onload") && !formats[5].1.contains("<b onload"), "{study}: page or suite");
            let is_formula = |cell: &str| cell.trim_matches('"').starts_with(['=', '@']);
            assert!(!csv.lines().any(|line| line.split(',').any(is_formula)), "{study}: {csv}");
        }
    }

    /// Checks that every field of the JSON documents occurs in `docs/reference/json.md`.
    #[test]
    fn every_document_field_is_described() {
        fn collect_field_names(value: &Value, into: &mut Vec<String>) {
            match value {
                Value::Object(map) => map.iter().for_each(|(key, value)| {
                    into.push(key.clone());
                    collect_field_names(value, into);
                }),
                Value::Array(items) => items.iter().for_each(|item| collect_field_names(item, into)),
                _ => {}
            }
        }
        let described = include_str!("../../../docs/reference/json.md");
        let mut words: Vec<&str> = described.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        words.sort_unstable();
        for experiment in &experiments_of_all_kinds() {
            let finding = compute_finding(experiment).expect("a finding");
            let mut held = Vec::new();
            collect_field_names(
                &ResultView { experiment, finding: &finding, profiles: None, typed_url: None }.render_json_document(),
                &mut held,
            );
            assert!(held.len() > 40, "{held:?}");
            let missing: Vec<&String> = held.iter().filter(|key| words.binary_search(&key.as_str()).is_err()).collect();
            assert!(missing.is_empty(), "{}: not described: {missing:?}", experiment.spec.study_word());
        }
    }
}
