//! The probability of each feature value under each cause ([`Likelihoods`]). The prior is the
//! expectation in the cause's file; counts over the corpus (`likelihoods.tsv`) move it.
//!
//! Values count as independent given the cause (naive Bayes). They are not quite independent, so
//! the sum of their logarithms is multiplied by a temperature. It was fitted over the corpus with
//! one set of servers left out at a time. Not here: features (`features`) and causes (`causes`).

use super::causes::card::{ExpectedAnswer, Manifestation};
use super::features::Feature;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The fitted file: `background`, feature, counts; or way, feature, counts; or a name and a number.
const FITTED: &str = include_str!("likelihoods.tsv");

/// Probability of an answer that a cause expects in any case...
const IS: f64 = 0.95;
/// ... or mostly...
const MOSTLY: f64 = 0.75;
/// ... or excludes.
const NOT: f64 = 0.03;
/// Probability of a mark of other causes under a cause that does not name it.
const FOREIGN_MARK: f64 = 0.004;
/// The weight of a cause's expectation, as a number of cases.
const PRIOR_CASES: f64 = 8.0;
/// Each answer was given so often before anything was counted.
const BACKGROUND_CASES: f64 = 0.5;

/// Counts of answers over a corpus, and what was fitted to them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Likelihoods {
    /// Cases by feature and answer.
    pub background: BTreeMap<&'static str, Vec<f64>>,
    /// Cases by way, feature and answer.
    pub counts: BTreeMap<(String, &'static str), Vec<f64>>,
    /// The factor of sums of logarithms.
    pub temperature: f64,
    /// A cause is named from this probability on.
    pub named_from: f64,
}

impl Likelihoods {
    /// The fitted ones.
    ///
    /// # Panics
    /// Where the file in the program is not what [`Likelihoods::text`] writes; a test reads it.
    pub fn fitted() -> &'static Likelihoods {
        static FOUND: OnceLock<Likelihoods> = OnceLock::new();
        FOUND.get_or_init(|| Likelihoods::parse(FITTED).expect("likelihoods.tsv is written by `fit`"))
    }

    /// Nothing was counted.
    pub fn unfitted() -> Likelihoods {
        Likelihoods { temperature: 0.7, named_from: 0.5, ..Likelihoods::default() }
    }

    /// Reads what [`Likelihoods::text`] writes; `None`: a line is none of it.
    pub fn parse(text: &str) -> Option<Likelihoods> {
        let mut found = Likelihoods::unfitted();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let numbers = |cells: &[&str]| cells.iter().map(|cell| cell.parse().ok()).collect::<Option<Vec<f64>>>();
            let feature = |word: &str| Feature::ALL.iter().map(|it| it.card().word).find(|it| *it == word);
            match cells.as_slice() {
                ["temperature", value] => found.temperature = value.parse().ok()?,
                ["named_from", value] => found.named_from = value.parse().ok()?,
                ["background", word, counts @ ..] => {
                    found.background.insert(feature(word)?, numbers(counts)?);
                }
                [way, word, counts @ ..] => {
                    found.counts.insert(((*way).to_owned(), feature(word)?), numbers(counts)?);
                }
                _ => return None,
            }
        }
        Some(found)
    }

    /// As a file.
    pub fn text(&self) -> String {
        let cells = |counts: &[f64]| counts.iter().map(f64::to_string).collect::<Vec<_>>().join("\t");
        let background =
            self.background.iter().map(|(word, counts)| format!("background\t{word}\t{}\n", cells(counts)));
        let ways = self.counts.iter().map(|((way, word), counts)| format!("{way}\t{word}\t{}\n", cells(counts)));
        let fitted = format!("temperature\t{}\nnamed_from\t{}\n", self.temperature, self.named_from);
        let head = "# Counted over the corpus, and written by its example: see `examples/corpus`.\n";
        [head.to_owned(), fitted].into_iter().chain(background).chain(ways).collect()
    }

    /// How probable each answer is of any server.
    pub fn background(&self, feature: Feature) -> Vec<f64> {
        let card = feature.card();
        let counts = self.background.get(card.word);
        let of = |at: usize| counts.and_then(|counts| counts.get(at)).copied().unwrap_or(0.0);
        // Before anything was counted a mark is seldom.
        let before = |at: usize| BACKGROUND_CASES * if card.is_mark && at == 0 { 10.0 } else { 1.0 };
        let all: Vec<f64> = (0..card.values.len()).map(|at| of(at) + before(at)).collect();
        let sum: f64 = all.iter().sum();
        all.into_iter().map(|count| count / sum).collect()
    }

    /// The probability of each answer under one way in which a cause shows. `background`: the
    /// probability for any server.
    pub fn under(&self, way: &Manifestation, feature: Feature, background: &[f64]) -> Vec<f64> {
        let expected = expected(way, feature, background);
        let Some(counts) = self.counts.get(&(way.word.to_owned(), feature.card().word)) else { return expected };
        let sum: f64 = counts.iter().sum();
        let of = |(at, prior): (usize, f64)| (counts[at] + PRIOR_CASES * prior) / (sum + PRIOR_CASES);
        expected.into_iter().enumerate().map(of).collect()
    }
}

/// The answers that a way expects of a feature, as probabilities.
fn expected(way: &Manifestation, feature: Feature, background: &[f64]) -> Vec<f64> {
    // One value has this probability; the others share the rest as for any server.
    let one = |at: usize, probability: f64| {
        let others = 1.0 - background[at];
        let of = |(it, other): (usize, &f64)| match it == at {
            true => probability,
            false => (1.0 - probability) * other / others,
        };
        background.iter().enumerate().map(of).collect::<Vec<f64>>()
    };
    let at = |word: &str| feature.card().values.iter().position(|value| value.word == word).unwrap_or(0);
    match way.expects.iter().find(|(of, _)| *of == feature).map(|(_, expect)| *expect) {
        Some(ExpectedAnswer::Is(word)) => one(at(word), IS),
        Some(ExpectedAnswer::Mostly(word)) => one(at(word), MOSTLY),
        Some(ExpectedAnswer::Not(word)) => one(at(word), NOT),
        Some(ExpectedAnswer::Any) => background.to_vec(),
        None if feature.card().is_mark => one(0, 1.0 - FOREIGN_MARK),
        None => background.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::causes;

    #[test]
    fn the_fitted_file_is_what_is_written() {
        let found = Likelihoods::fitted();
        assert_eq!(Likelihoods::parse(&found.text()).as_ref(), Some(found));
        assert!((0.05..=1.5).contains(&found.temperature) && (0.3..1.0).contains(&found.named_from));
        for ((way, _), counts) in &found.counts {
            assert!(causes::ways().any(|(_, it)| it.word == way.as_str()), "{way} is no way of a cause");
            assert!(counts.iter().all(|count| *count >= 0.0));
        }
    }

    #[test]
    fn probabilities_add_up_and_exclude_nothing() {
        for (_, way) in causes::ways() {
            for (feature, expect) in way.expects {
                let (ExpectedAnswer::Is(word) | ExpectedAnswer::Mostly(word) | ExpectedAnswer::Not(word)) = expect
                else {
                    continue;
                };
                let card = feature.card();
                assert!(card.values.iter().any(|value| value.word == *word), "{}: {} {word}", way.word, card.word);
            }
            for feature in Feature::ALL {
                let given = Likelihoods::fitted().under(way, *feature, &Likelihoods::fitted().background(*feature));
                assert!((given.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{} {}", way.word, feature.card().word);
                assert!(given.iter().all(|it| *it > 0.0), "{} {} {given:?}", way.word, feature.card().word);
            }
        }
    }
}
