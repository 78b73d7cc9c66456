//! The corpus: recorded cases with a known cause (`corpus/*.json` in the project's root). The
//! functions of this file compute the cause that plimsoll names for each case, and how often the
//! named cause is right.
//!
//! `corpus/expected.tsv` contains the cause that plimsoll names for each case. If the named cause
//! of a case changes, a test fails until the same commit also changes the case's row in
//! `corpus/expected.tsv`.
//!
//! Not here: recording cases, and fitting likelihoods (`examples/corpus`).

#![allow(dead_code)]

use plimsoll_analysis::explain::likelihoods::{EvidenceWeights, Likelihoods};
use plimsoll_analysis::explain::{
    Cause, FeatureAnswers, InterventionOutcomes, Posterior, ServerFacts, explanation_from_facts,
};
use plimsoll_analysis::find::LoadLine;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// A recorded case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CorpusCase {
    /// The name of the case.
    pub name: String,
    /// The set of the case. All cases of one kind of server are in one set, and tests leave out the
    /// whole set when they fit likelihoods for its cases.
    pub set: String,
    /// The names of the causes that count as right. The first name is the planted cause (the fault
    /// that the author of the case built into the server).
    pub truth: Vec<String>,
    /// Whether other processes disturbed the machine.
    pub disturbed: bool,
    /// The figures of the steady loads, compared with each other.
    pub case: ServerFacts,
    /// The results of the experiments.
    pub changes: InterventionOutcomes,
}

/// The diagnosis of `explain` for a case.
#[derive(Debug, Clone)]
pub struct CorpusDiagnosis {
    /// The named cause; `unknown` if `explain` names no cause.
    pub cause: Cause,
    /// The probability of the most probable cause, 0..=1.
    pub probability: f64,
    /// The most probable cause, whether or not the diagnosis names it.
    pub most_probable: Cause,
    /// The total probability of the right causes, 0..=1.
    pub right_causes_probability: f64,
}

/// Whether a diagnosis names a right cause, no cause, or a wrong cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CorpusVerdict {
    /// The diagnosis names a right cause, or names no cause if none is planted.
    Right,
    /// The diagnosis names no cause, although a cause is planted.
    NotKnown,
    /// The diagnosis names a wrong cause.
    Wrong,
}

/// Returns the folder of the corpus.
pub fn corpus_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// Reads all cases, ordered by name.
pub fn read_corpus_cases() -> Vec<CorpusCase> {
    let files = std::fs::read_dir(corpus_folder()).expect("a folder").map(|file| file.expect("a file").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a file");
        let case: CorpusCase =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        CorpusCase { case: case.case.with_demands(), ..case }
    };
    files.into_iter().map(read).collect()
}

impl CorpusCase {
    fn is_right(&self, cause: Cause) -> bool {
        self.truth.iter().any(|name| name == cause.identifier())
    }

    /// Returns the diagnosis of this case with the given weights.
    pub fn diagnosis(&self, weights: &EvidenceWeights) -> CorpusDiagnosis {
        let posterior = Posterior::compute(weights, &FeatureAnswers::from_facts(&self.case), &self.changes.effects());
        let causes = posterior.causes();
        let known: f64 = causes.iter().filter(|it| self.is_right(it.cause)).map(|it| it.probability).sum();
        let unknown = if self.is_right(Cause::Unknown) { posterior.unknown } else { 0.0 };
        CorpusDiagnosis {
            cause: posterior.named_cause.unwrap_or(Cause::Unknown),
            probability: causes[0].probability,
            most_probable: causes[0].cause,
            right_causes_probability: known + unknown,
        }
    }

    /// Returns the cause that plimsoll names for this case.
    pub fn named_cause(&self) -> Cause {
        explanation_from_facts(&self.case, &self.changes, LoadLine::NONE).cause
    }

    /// Returns whether the named cause `said` is right, wrong or unknown.
    pub fn verdict(&self, said: Cause) -> CorpusVerdict {
        match said {
            cause if self.is_right(cause) => CorpusVerdict::Right,
            Cause::Unknown => CorpusVerdict::NotKnown,
            _ => CorpusVerdict::Wrong,
        }
    }
}

/// Fits likelihoods by counting observed values over the cases. A cause may show itself in several
/// patterns of observations (forms). Each case counts only for the most probable pattern of its
/// cause.
pub fn fit_likelihoods(cases: &[&CorpusCase], temperature: f64, named_from: f64) -> Likelihoods {
    let mut found =
        Likelihoods { temperature, naming_probability_min: named_from, ..Likelihoods::unfitted_likelihoods() };
    let answers: Vec<FeatureAnswers> = cases.iter().map(|it| FeatureAnswers::from_facts(&it.case)).collect();
    for (feature, value) in answers.iter().flat_map(FeatureAnswers::observed_answers) {
        let card = feature.card();
        found.background.entry(card.word).or_insert_with(|| vec![0.0; card.values.len()])[value] += 1.0;
    }
    // The likelihoods fitted so far determine the most probable form (pattern of observations) of
    // each case. Two passes are enough for the likelihoods to converge.
    for _ in 0..2 {
        let (weights, mut counts) = (found.evidence_weights(), BTreeMap::new());
        for (case, answers) in cases.iter().zip(&answers) {
            let posterior = Posterior::compute(&weights, answers, &case.changes.effects());
            let Some(form) = posterior.candidates.iter().find(|it| case.is_right(it.cause)) else { continue };
            for (feature, value) in answers.observed_answers() {
                let card = feature.card();
                let all = counts.entry((form.form.word.to_owned(), card.word));
                all.or_insert_with(|| vec![0.0; card.values.len()])[value] += 1.0;
            }
        }
        found.counts = counts;
    }
    found
}

/// Returns the diagnosis of each case. The diagnosis of a case uses likelihoods that were fitted
/// without any case of the case's set.
pub fn leave_one_set_out(cases: &[CorpusCase], temperature: f64, named_from: f64) -> Vec<CorpusDiagnosis> {
    let sets: BTreeSet<&str> = cases.iter().map(|it| it.set.as_str()).collect();
    let without = |set: &str| {
        let others: Vec<&CorpusCase> = cases.iter().filter(|it| it.set != set).collect();
        fit_likelihoods(&others, temperature, named_from).evidence_weights()
    };
    let fitted: BTreeMap<&str, EvidenceWeights> = sets.into_iter().map(|set| (set, without(set))).collect();
    cases.iter().map(|case| case.diagnosis(&fitted[case.set.as_str()])).collect()
}

/// Returns the number of verdicts of each kind: right, not known, wrong. `said` contains the named
/// cause of each case.
pub fn verdict_counts(cases: &[CorpusCase], said: &[Cause]) -> [usize; 3] {
    let mut counts = [0; 3];
    for (case, cause) in cases.iter().zip(said) {
        counts[case.verdict(*cause) as usize] += 1;
    }
    counts
}

/// Formats the verdicts by planted cause as a Markdown table. `said` contains the named cause of
/// each case.
pub fn verdict_table(cases: &[CorpusCase], said: &[Cause]) -> String {
    let mut by: BTreeMap<&str, ([usize; 3], Vec<String>)> = BTreeMap::new();
    for (case, cause) in cases.iter().zip(said) {
        let cell = by.entry(case.truth[0].as_str()).or_default();
        let verdict = case.verdict(*cause);
        cell.0[verdict as usize] += 1;
        if verdict != CorpusVerdict::Right {
            cell.1.push(format!("{}: {cause}", case.name));
        }
    }
    let mut text = "| cause | right | not known | wrong | not right |\n|---|---|---|---|---|\n".to_owned();
    for (cause, ([right, unknown, wrong], others)) in by {
        let _ = writeln!(text, "| `{cause}` | {right} | {unknown} | {wrong} | {} |", others.join("; "));
    }
    text
}

/// Formats the named cause and the verdict of each case as a line of `expected.tsv`.
pub fn expected_text(cases: &[CorpusCase], said: &[Cause]) -> String {
    let line = |(case, cause): (&CorpusCase, &Cause)| format!("{}\t{cause}\t{:?}\n", case.name, case.verdict(*cause));
    cases.iter().zip(said).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_analysis::explain::causes::cause_forms;
    use plimsoll_analysis::explain::features::Feature;

    #[test]
    fn the_corpus_gets_the_expected_causes() {
        let cases = read_corpus_cases();
        let said: Vec<Cause> = cases.iter().map(CorpusCase::named_cause).collect();
        let expected = std::fs::read_to_string(corpus_folder().join("expected.tsv")).expect("expected.tsv");
        let found = expected_text(&cases, &said);
        let flipped: Vec<&str> = found.lines().filter(|line| !expected.lines().any(|it| it == *line)).collect();
        assert!(
            flipped.is_empty() && expected.lines().count() == cases.len(),
            "{}\nflipped (`cargo run -p plimsoll-analysis --example corpus -- expect` writes them anew):\n{}",
            verdict_table(&cases, &said),
            flipped.join("\n")
        );
    }

    #[test]
    fn causes_are_right_on_left_out_corpus_sets() {
        let (cases, fitted) = (read_corpus_cases(), Likelihoods::corpus_likelihoods());
        let said: Vec<Cause> = leave_one_set_out(&cases, fitted.temperature, fitted.naming_probability_min)
            .into_iter()
            .map(|said| said.cause)
            .collect();
        let [right, _, wrong] = verdict_counts(&cases, &said);
        let table = verdict_table(&cases, &said);
        assert!(right as f64 >= RIGHT_DIAGNOSES_SHARE_MIN * cases.len() as f64, "{right} of {}\n{table}", cases.len());
        assert!(wrong as f64 <= WRONG_DIAGNOSES_SHARE_MAX * cases.len() as f64, "{wrong} of {}\n{table}", cases.len());
    }

    #[test]
    fn manifestations_of_causes_have_distinct_names() {
        let words: BTreeSet<&str> = cause_forms().map(|(.., form)| form.word).collect();
        assert_eq!(words.len(), cause_forms().count());
        let features: BTreeSet<&str> = Feature::ALL.iter().map(|feature| feature.card().word).collect();
        assert_eq!(features.len(), Feature::ALL.len());
    }

    /// Smallest share of right diagnoses that the test allows, if each case is diagnosed with
    /// likelihoods fitted without the cases of its set. The diagnoses of the present corpus meet
    /// this minimum.
    const RIGHT_DIAGNOSES_SHARE_MIN: f64 = 0.9;
    /// Largest share of wrong diagnoses that the test allows; see [`RIGHT_DIAGNOSES_SHARE_MIN`].
    const WRONG_DIAGNOSES_SHARE_MAX: f64 = 0.03;
}
