//! The probability of each answer to a feature under each form (manifestation) of a cause
//! ([`Likelihoods`]). The prior probability of an answer comes from the expectation in the file of
//! the cause. Counts of recorded cases (`likelihoods.tsv`) update the prior.
//!
//! Given the form, the answers are treated as independent (naive Bayes). A factor, the temperature,
//! multiplies the sum of their log likelihood ratios. The temperature was fitted to the corpus
//! (recorded cases) by cross-validation, with one kind of server left out at a time.
//!
//! Not here: the answers (`features`) and the causes (`causes`).

use super::causes;
use super::causes::card::{CauseForm, ExpectedAnswer};
use super::features::Feature;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The counts and parameters fitted to the corpus (recorded cases with a known cause). Each line
/// has one of three formats: `background`, feature, counts; or form of a cause, feature, counts; or
/// a parameter and its value.
const FITTED_LIKELIHOODS: &str = include_str!("likelihoods.tsv");

/// Prior probability of an answer that a cause practically always expects.
const ALWAYS_PROBABILITY: f64 = 0.95;
/// Prior probability of an answer that a cause mostly expects.
const MOSTLY_PROBABILITY: f64 = 0.75;
/// Prior probability of an answer that a cause excludes.
const EXCLUDED_PROBABILITY: f64 = 0.03;
/// Prior probability, in total, of all answers but the first to a mark under a cause that does not
/// list the mark (see `FeatureCard::is_mark`).
const UNLISTED_MARK_PROBABILITY: f64 = 0.004;
/// The weight of a cause's prior expectation, as a number of counted cases.
const PRIOR_CASES: f64 = 8.0;
/// The number of cases that is added to the background count of each answer, so that no answer has
/// probability 0.
const ADDED_BACKGROUND_CASES: f64 = 0.5;
/// The number of cases that is added to the background count of the first answer of a mark. Nearly
/// all servers give this answer.
const ADDED_BACKGROUND_CASES_OF_MARK: f64 = 5.0;

/// Number of recorded cases (servers with a known cause) that gave each answer to each feature, and
/// the parameters that were fitted to these cases.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Likelihoods {
    /// Number of cases of any cause, by feature and by index of the answer.
    pub background: BTreeMap<&'static str, Vec<f64>>,
    /// Number of cases by form (manifestation) of a cause, by feature, and by index of the answer.
    pub counts: BTreeMap<(String, &'static str), Vec<f64>>,
    /// The factor that multiplies the sum of log likelihood ratios.
    pub temperature: f64,
    /// An explanation names the most probable cause only if the probability of this cause is at
    /// least this threshold, 0..=1.
    pub naming_probability_min: f64,
}

impl Likelihoods {
    /// Returns the likelihoods fitted to the corpus (recorded cases with a known cause).
    ///
    /// # Panics
    /// If the built-in file is not in the format of [`Likelihoods::to_tsv`]; a test reads the file.
    pub fn corpus_likelihoods() -> &'static Likelihoods {
        static PARSED_LIKELIHOODS: OnceLock<Likelihoods> = OnceLock::new();
        PARSED_LIKELIHOODS
            .get_or_init(|| Likelihoods::parse(FITTED_LIKELIHOODS).expect("likelihoods.tsv is written by `fit`"))
    }

    /// Returns likelihoods without any counted case.
    pub fn unfitted_likelihoods() -> Likelihoods {
        Likelihoods { temperature: 0.7, naming_probability_min: 0.5, ..Likelihoods::default() }
    }

    /// Parses the format of [`Likelihoods::to_tsv`]; `None` if a line has another format.
    pub fn parse(text: &str) -> Option<Likelihoods> {
        let mut found = Likelihoods::unfitted_likelihoods();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let numbers = |cells: &[&str]| cells.iter().map(|cell| cell.parse().ok()).collect::<Option<Vec<f64>>>();
            let feature = |word: &str| Feature::ALL.iter().map(|it| it.card().word).find(|it| *it == word);
            match cells.as_slice() {
                ["temperature", value] => found.temperature = value.parse().ok()?,
                ["named_from", value] => found.naming_probability_min = value.parse().ok()?,
                ["background", word, counts @ ..] => {
                    found.background.insert(feature(word)?, numbers(counts)?);
                }
                [form, word, counts @ ..] => {
                    found.counts.insert(((*form).to_owned(), feature(word)?), numbers(counts)?);
                }
                _ => return None,
            }
        }
        Some(found)
    }

    /// Formats the counts and parameters as the content of `likelihoods.tsv`.
    pub fn to_tsv(&self) -> String {
        let cells = |counts: &[f64]| counts.iter().map(f64::to_string).collect::<Vec<_>>().join("\t");
        let background =
            self.background.iter().map(|(word, counts)| format!("background\t{word}\t{}\n", cells(counts)));
        let forms = self.counts.iter().map(|((form, word), counts)| format!("{form}\t{word}\t{}\n", cells(counts)));
        let fitted = format!("temperature\t{}\nnamed_from\t{}\n", self.temperature, self.naming_probability_min);
        let head = "# Counted over the corpus, and written by its example: see `examples/corpus`.\n";
        [head.to_owned(), fitted].into_iter().chain(background).chain(forms).collect()
    }

    /// Computes how strong each answer is as evidence for or against each form of each cause.
    pub fn evidence_weights(&self) -> EvidenceWeights {
        let background: Vec<Vec<f64>> = Feature::ALL.iter().map(|it| self.background_probabilities(*it)).collect();
        let of_form = |form: &CauseForm| {
            let of_feature = |(feature, background): (&Feature, &Vec<f64>)| {
                let given_form = self.feature_probabilities(form, *feature, background);
                given_form.iter().zip(background).map(|(given, any)| (given / any).ln()).collect()
            };
            Feature::ALL.iter().zip(&background).map(of_feature).collect()
        };
        EvidenceWeights {
            log_ratios: causes::cause_forms().map(|(.., form)| of_form(form)).collect(),
            temperature: self.temperature,
            naming_probability_min: self.naming_probability_min,
        }
    }

    /// Returns the probability of each possible answer to `feature` (a question about the server)
    /// over all servers, without regard to the cause.
    fn background_probabilities(&self, feature: Feature) -> Vec<f64> {
        let card = feature.card();
        let counts = self.background.get(card.word);
        let of = |at: usize| counts.and_then(|counts| counts.get(at)).copied().unwrap_or(0.0);
        let added = |at: usize| match card.is_mark && at == 0 {
            true => ADDED_BACKGROUND_CASES_OF_MARK,
            false => ADDED_BACKGROUND_CASES,
        };
        let all: Vec<f64> = (0..card.values.len()).map(|at| of(at) + added(at)).collect();
        let sum: f64 = all.iter().sum();
        all.into_iter().map(|count| count / sum).collect()
    }

    /// Returns the probability of each answer to a feature under one manifestation (form) of a
    /// cause. `background`: the probabilities for any server.
    fn feature_probabilities(&self, form: &CauseForm, feature: Feature, background: &[f64]) -> Vec<f64> {
        let expected = prior_probabilities(form, feature, background);
        let Some(counts) = self.counts.get(&(form.word.to_owned(), feature.card().word)) else { return expected };
        let sum: f64 = counts.iter().sum();
        let of = |(at, prior): (usize, f64)| (counts[at] + PRIOR_CASES * prior) / (sum + PRIOR_CASES);
        expected.into_iter().enumerate().map(of).collect()
    }
}

/// How strong each answer to a feature is as evidence for or against each form (manifestation) of
/// each cause.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceWeights {
    /// Natural logarithm of a ratio: the probability of an answer under a form, divided by its
    /// probability for any server. Shape: forms in the order of [`causes::cause_forms`], features
    /// in the order of [`Feature::ALL`], answers.
    pub log_ratios: Vec<Vec<Vec<f64>>>,
    /// See [`Likelihoods::temperature`].
    pub temperature: f64,
    /// See [`Likelihoods::named_from`].
    pub naming_probability_min: f64,
}

impl EvidenceWeights {
    /// Returns the weights of the likelihoods that were fitted to the corpus.
    pub fn fitted_to_corpus() -> &'static EvidenceWeights {
        static WEIGHTS: OnceLock<EvidenceWeights> = OnceLock::new();
        WEIGHTS.get_or_init(|| Likelihoods::corpus_likelihoods().evidence_weights())
    }
}

/// Returns the prior probability of each answer to a feature under one manifestation of a cause,
/// from the expectations in the cause's file.
fn prior_probabilities(form: &CauseForm, feature: Feature, background: &[f64]) -> Vec<f64> {
    // Answer `at` gets the probability `probability`. The other answers share the remaining
    // probability in the ratio of `background`.
    let one = |at: usize, probability: f64| {
        let others = 1.0 - background[at];
        let of = |(it, other): (usize, &f64)| match it == at {
            true => probability,
            false => (1.0 - probability) * other / others,
        };
        background.iter().enumerate().map(of).collect::<Vec<f64>>()
    };
    let at = |word: &str| feature.card().values.iter().position(|value| value.word == word).unwrap_or(0);
    match form.expects.iter().find(|(of, _)| *of == feature).map(|(_, expect)| *expect) {
        Some(ExpectedAnswer::Is(word)) => one(at(word), ALWAYS_PROBABILITY),
        Some(ExpectedAnswer::Mostly(word)) => one(at(word), MOSTLY_PROBABILITY),
        Some(ExpectedAnswer::Not(word)) => one(at(word), EXCLUDED_PROBABILITY),
        Some(ExpectedAnswer::Any) => background.to_vec(),
        None if feature.card().is_mark => one(0, 1.0 - UNLISTED_MARK_PROBABILITY),
        None => background.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likelihoods_file_parses_and_formats_back() {
        let found = Likelihoods::corpus_likelihoods();
        assert_eq!(Likelihoods::parse(&found.to_tsv()).as_ref(), Some(found));
        assert!((0.05..=1.5).contains(&found.temperature) && (0.3..1.0).contains(&found.naming_probability_min));
        for ((form, _), counts) in &found.counts {
            assert!(causes::cause_forms().any(|(.., it)| it.word == form.as_str()), "{form} is no form of a cause");
            assert!(counts.iter().all(|count| *count >= 0.0));
        }
        for ((form, word), counts) in &found.counts {
            let feature = Feature::ALL.iter().find(|it| it.card().word == *word).expect("a feature");
            assert_eq!(counts.len(), feature.card().values.len(), "{form} {word}");
        }
    }

    #[test]
    fn answer_probabilities_sum_to_one_and_none_is_zero() {
        for (.., form) in causes::cause_forms() {
            for (feature, expect) in form.expects {
                let (ExpectedAnswer::Is(word) | ExpectedAnswer::Mostly(word) | ExpectedAnswer::Not(word)) = expect
                else {
                    continue;
                };
                let card = feature.card();
                assert!(card.values.iter().any(|value| value.word == *word), "{}: {} {word}", form.word, card.word);
            }
            for feature in Feature::ALL {
                let given = Likelihoods::corpus_likelihoods().feature_probabilities(
                    form,
                    *feature,
                    &Likelihoods::corpus_likelihoods().background_probabilities(*feature),
                );
                assert!((given.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{} {}", form.word, feature.card().word);
                assert!(given.iter().all(|it| *it > 0.0), "{} {} {given:?}", form.word, feature.card().word);
            }
        }
    }
}
