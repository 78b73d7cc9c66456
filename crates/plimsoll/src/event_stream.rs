//! `--json-lines`: writes the events of a study to standard output, one JSON line for each event.
//!
//! Not here: the content of the lines (`plimsoll_report::event_lines`).

use plimsoll_analysis::study::{Study, TrialPlan};
use plimsoll_engine::{Phase, Tick};
use plimsoll_model::experiment_settings::OutputSettings;
use plimsoll_model::{ExperimentSpec, Trial};
use plimsoll_report::event_lines;
use plimsoll_study::output::print_unescaped;
use plimsoll_study::study_loop::{Output, StudyDisplay, StudyLoop, StudyState};

/// An output of a study that writes JSON lines.
struct EventStream {
    /// The index of the current load, from 0.
    load_index: usize,
}

/// Adds a stream of JSON lines to the outputs of a study if the user asked for it.
pub fn attach_if_requested<D: StudyDisplay, T>(study_loop: &mut StudyLoop<D>, output: &OutputSettings<T>) {
    if output.json_lines {
        study_loop.outputs.push(Box::new(EventStream::begin(study_loop.recording.experiment_spec())));
    }
}

impl EventStream {
    fn begin(spec: &ExperimentSpec) -> EventStream {
        print_unescaped(&event_lines::study_begin_line(spec));
        EventStream { load_index: 0 }
    }
}

impl Output for EventStream {
    fn load_begins(&mut self, _: &Study, trial: &TrialPlan, state: &StudyState) {
        self.load_index = state.history.trials.len();
        print_unescaped(&event_lines::load_begin_line(
            self.load_index,
            &trial.tag,
            &trial.plan,
            state.history.elapsed_ns,
        ));
    }

    fn tick(&mut self, tick: &Tick, server_cores: Option<f64>) {
        let phase = match tick.phase {
            Phase::Preparing => "preparing",
            Phase::Warmup => "warmup",
            Phase::Measured => "measured",
            Phase::Grace => "grace",
        };
        let times_ns = (tick.start_ns, tick.end_ns);
        print_unescaped(&event_lines::tick_event_line(self.load_index, phase, times_ns, tick.interval, server_cores));
    }

    fn load_ends(&mut self, study: &Study, trial: &Trial, state: &StudyState) {
        print_unescaped(&event_lines::load_end_line(self.load_index, trial, study, state.history.elapsed_ns));
    }
}
