//! The search for the load line as a study: every load is judged once, by the promise, when it comes.

use super::profiling;
use super::step::{History, Step, Until};
use crate::find::{self, Bracket, Settings};
use crate::judge::{TrialOutcome, judge};
use crate::slo::Slo;
use plimsoll_model::{Ending, FindAsked, ProfilesAsked, Purpose, Stop, Tag, Trial};

/// A search under way.
#[derive(Debug)]
pub struct Search {
    /// What is searched for.
    pub settings: Settings,
    /// What the loads so far showed.
    pub outcomes: Vec<TrialOutcome>,
    /// Profiles to be taken afterwards.
    pub profiles: Option<ProfilesAsked>,
    read: usize,
}

/// What a load says to a search; `None` of one that the user cut short, which says nothing about the server, and of those
/// that are not the search's.
pub fn outcome(trial: &Trial, slo: &Slo) -> Option<TrialOutcome> {
    let whole = match &trial.run.ending {
        Some(Ending::Stopped(stop)) => *stop != Stop::Interrupted,
        Some(Ending::Finished) => true,
        None => false,
    };
    let search = !matches!(trial.tag.purpose, Purpose::Profile | Purpose::Hold);
    (whole && search).then(|| judge(trial.tag.purpose, trial.start_ns, &trial.run, slo))
}

/// What was asked of a search under this promise.
pub fn settings(asked: &FindAsked, slo: Slo) -> Settings {
    let FindAsked { base, budget_ns, max_rate, arrivals, first_answer_ns, .. } = asked.clone();
    Settings { base, slo, budget_ns, max_rate, arrivals, first_answer_ns }
}

impl Search {
    /// Nothing is measured yet.
    pub fn new(asked: &FindAsked, slo: Slo) -> Search {
        Search { settings: settings(asked, slo), outcomes: Vec::new(), profiles: asked.profiles.clone(), read: 0 }
    }

    pub(super) fn read(&mut self, trials: &[Trial]) {
        let new = trials.get(self.read..).unwrap_or_default();
        self.outcomes.extend(new.iter().filter_map(|trial| outcome(trial, &self.settings.slo)));
        self.read = trials.len();
    }

    pub(super) fn next(&self, history: &History) -> Step {
        match find::next(&self.settings, &self.outcomes, history.elapsed_ns) {
            find::SearchStep::Measure(measure) => {
                let find::Measure { purpose, plan, watch } = *measure;
                Step::measure(Tag::of(purpose), plan, Until::Shown(Box::new(watch)))
            }
            find::SearchStep::Stop(_) => Step::Stop,
        }
    }

    /// What to do next of the profiles that were asked for, at the line that was found.
    pub(super) fn next_profiled(&self, history: &History) -> Step {
        let Some(profiles) = &self.profiles else { return Step::Stop };
        let searched_ns = profiling::began_ns(history).unwrap_or(history.elapsed_ns);
        let line_rps = self.so_far(searched_ns).lower;
        profiling::levels(profiles, &self.settings.base, self.settings.arrivals, line_rps, history)
    }

    /// The line as it would be told after `elapsed_ns`.
    pub fn so_far(&self, elapsed_ns: u64) -> Bracket {
        find::conclude(&self.settings, &self.outcomes, elapsed_ns).load_line_rps
    }
}
