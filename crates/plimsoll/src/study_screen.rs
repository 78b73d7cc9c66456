//! Shows a study on a terminal while it runs: progress that is rewritten, and permanent lines.
//!
//! Not here: writing to the terminal (`live`), figures of the current load
//! (`plimsoll_analysis::live_meter`), and texts (`plimsoll_report`).

use crate::live::ProgressDisplay;
use plimsoll_analysis::live_meter::LiveMeter;
use plimsoll_analysis::study::{Study, StudyFailure, TrialPlan};
use plimsoll_engine::{Phase, Tick};
use plimsoll_model::{Intervention, LoadPurpose, Trial};
use plimsoll_report::study_status::{StudyStatus, live_log_entry, profile_announcement, study_status};
use plimsoll_report::{Progress, abort_reason_text};
use plimsoll_study::study_loop::{Output, StudyDisplay, StudyState};

/// The display of a study on a terminal.
pub struct StudyScreen {
    pub live: ProgressDisplay,
    meter: LiveMeter,
    /// The intermediate result of a comparison, as text; empty without a comparison.
    intermediate_result: String,
    /// The description of the current load.
    status: StudyStatus,
    /// The time in seconds from the start of the experiment to the start of the current load.
    load_start_s: f64,
    /// Whether the study consists of the current load alone, so that the display shows the phases
    /// of the load.
    is_single_load: bool,
}

/// Describes the phase of a load, such as warming up.
fn phase_text(phase: Phase, load: &str) -> String {
    match phase {
        Phase::Preparing => format!("opening connections for {load}"),
        Phase::Warmup => format!("warming up with {load}: not measured"),
        Phase::Measured => load.to_owned(),
        Phase::Grace => format!("waiting for the last responses of {load}"),
    }
}

impl StudyScreen {
    /// Creates a display that shows nothing yet.
    pub fn new(live: ProgressDisplay) -> StudyScreen {
        let (meter, standing, status) = (LiveMeter::default(), String::new(), StudyStatus::default());
        StudyScreen { live, meter, intermediate_result: standing, status, load_start_s: 0.0, is_single_load: false }
    }
}

impl Output for StudyScreen {
    fn load_begins(&mut self, study: &Study, trial: &TrialPlan, state: &StudyState) {
        let is_profile = trial.tag.purpose == LoadPurpose::Profile;
        self.status = study_status(study, trial, state.spec, &state.history, &self.intermediate_result);
        // The prediction of an experiment is printed before the experiment's load, also if the
        // output is no terminal.
        if let (false, Study::Explain(_), Some(intervention)) = (is_profile, study, Intervention::from_tag(&trial.tag))
            && intervention != Intervention::Control
        {
            self.live.print_line_unless_quiet(&format!(
                "experiment: {}; {}",
                intervention.description(),
                self.status.why
            ));
        }
        self.is_single_load = matches!(study, Study::Run(..)) && !is_profile;
        self.load_start_s = if self.is_single_load || is_profile { 0.0 } else { state.history.elapsed_ns as f64 / 1e9 };
        self.meter.start_load();
    }

    fn tick(&mut self, tick: &Tick, server_cores: Option<f64>) {
        if matches!(tick.phase, Phase::Measured | Phase::Grace) {
            self.meter.push(tick.interval, tick.phase == Phase::Measured);
        }
        let StudyStatus { activity: doing, why, total_s } = self.status.clone();
        self.live.show_progress(&Progress {
            activity: if self.is_single_load { phase_text(tick.phase, &doing) } else { doing },
            why,
            elapsed_s: self.load_start_s + tick.end_ns as f64 / 1e9,
            total_s,
            rates_rps: self.meter.throughput_intervals_rps().to_vec(),
            live_figures: self.meter.last_second_figures(),
            failed_or_unsent: self.meter.failed_or_unsent(),
            server_cores,
        });
    }

    /// Shows nothing when a load ends, because [`StudyDisplay::show_outcome`] writes the row about
    /// the load.
    fn load_ends(&mut self, _: &Study, _: &Trial, _: &StudyState) {}
}

impl StudyDisplay for StudyScreen {
    fn profile_planned(&mut self, study: &Study, trial: &TrialPlan, state: &StudyState) {
        if let Some(line) = profile_announcement(study, trial, state.spec, &state.history) {
            self.live.print_line_unless_quiet(&line);
        }
    }

    fn show_outcome(&mut self, study: &Study, state: &StudyState) {
        let outcome = live_log_entry(study, &state.history, self.live.terminal_width());
        if let Some((heading, row)) = outcome.row {
            self.live.print_table_row(&heading, &row);
        }
        if let Some(standing) = outcome.interim_result {
            self.intermediate_result = standing;
        }
    }

    fn study_failure_text(&self, failure: &StudyFailure) -> String {
        abort_reason_text(failure)
    }

    fn print_unless_quiet(&mut self, line: &str) {
        self.live.print_line_unless_quiet(line);
    }

    fn print_always(&mut self, line: &str) {
        self.live.print_note(line);
    }

    fn clear(&mut self) {
        self.live.clear();
    }
}
