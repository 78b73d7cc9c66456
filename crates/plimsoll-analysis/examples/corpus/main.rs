//! The tool for the corpus of `explain`, a set of recorded cases with a known cause. The tool
//! records cases, fits likelihoods, and prints how often the named causes are right. The corpus has
//! several sets of cases, one set for each kind of server.
//!
//! - `corpus record RUN.plimsoll NAME SET TRUTH[,TRUTH] [disturbed]` writes `corpus/NAME.json`.
//! - `corpus fit` counts the observed values, fits the temperature by cross-validation (one set
//!   left out at a time), and writes `likelihoods.tsv`.
//! - `corpus expect` writes `corpus/expected.tsv`: the cause that plimsoll names for each case.
//! - `corpus score` prints the verdicts by cause, and how well the probabilities are calibrated.
//!   The likelihoods for each case are fitted to all other sets, without the set that contains the
//!   case.
//! - `corpus show NAME` prints the observed values of one case. The command also prints the
//!   probabilities of the causes, from likelihoods that are fitted without the set of the case.

#![allow(clippy::print_stdout)]

#[path = "../../tests/corpus/mod.rs"]
mod corpus;

use corpus::{
    CorpusCase, CorpusDiagnosis, corpus_folder, expected_text, fit_likelihoods, leave_one_set_out, read_corpus_cases,
    verdict_counts, verdict_table,
};
use plimsoll_analysis::explain::{Cause, FeatureAnswers, Posterior};
use plimsoll_analysis::finding::recorded_facts_and_outcomes;
use plimsoll_model::codec;

/// The temperatures (factors of the summed log likelihoods) that `corpus fit` tries. Temperatures
/// up to 2.2 would reduce the loss a little further, but one more synthetic case would then get a
/// wrong cause. The loss is the mean negative log probability of the right causes.
const TEMPERATURES: [f64; 8] = [0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5];
/// The thresholds that `corpus fit` tries: the smallest probability at which a cause is named.
const NAMING_THRESHOLDS: [f64; 8] = [0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8];
/// The minimum share of cases whose named cause must be right. Among the thresholds that reach this
/// share of right causes, `corpus fit` takes the threshold with the fewest wrong named causes. If
/// several thresholds give equally few wrong causes, `corpus fit` takes the highest of these
/// thresholds.
const RIGHT_CAUSES_SHARE_MIN: f64 = 0.9;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["record", run, name, set, truth, rest @ ..] => record(run, name, set, truth, *rest == ["disturbed"]),
        ["fit"] => fit_all(),
        ["expect"] => write_expected_causes(),
        ["score"] => {
            print_cross_validation_score();
            Ok(())
        }
        ["show", name] => print_case_diagnosis(name),
        _ => Err("usage: corpus record|fit|expect|score|show (see the head of examples/corpus/main.rs)".to_owned()),
    };
    if let Err(why) = done {
        println!("{why}");
        std::process::exit(2);
    }
}

fn record(run: &str, name: &str, set: &str, truth: &str, disturbed: bool) -> Result<(), String> {
    let bytes = std::fs::read(run).map_err(|error| format!("{run}: {error}"))?;
    let decoded = codec::decode(&bytes).map_err(|error| format!("{run}: {error}"))?;
    let found = recorded_facts_and_outcomes(&decoded.experiment).map_err(|error| format!("{run}: {error}"))?;
    let (case, changes) = found.ok_or_else(|| format!("{run}: no explanation was recorded"))?;
    let truth = truth.split(',').map(str::to_owned).collect();
    let case = CorpusCase { name: name.to_owned(), set: set.to_owned(), truth, disturbed, case, changes };
    let mut value = serde_json::to_value(&case).map_err(|error| error.to_string())?;
    round(&mut value);
    let path = corpus_folder().join(format!("{name}.json"));
    std::fs::write(&path, format!("{value}\n")).map_err(|error| format!("{}: {error}", path.display()))
}

/// Rounds all figures of a case to four significant digits, and removes empty fields. No diagnosis
/// depends on more than four significant digits.
fn round(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => {
            let rounded = format!("{:.3e}", number.as_f64().unwrap_or(0.0)).parse::<f64>().unwrap_or(0.0);
            *value = serde_json::Number::from_f64(rounded).map_or(serde_json::Value::Null, serde_json::Value::Number);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(round),
        serde_json::Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(round);
        }
        _ => {}
    }
}

fn fit_all() -> Result<(), String> {
    let cases = read_corpus_cases();
    let loss = |temperature: f64| {
        let said = leave_one_set_out(&cases, temperature, NAMING_THRESHOLDS[0]);
        said.iter().map(|said| -(said.right_causes_probability.max(1e-4)).ln()).sum::<f64>() / cases.len() as f64
    };
    let losses: Vec<(f64, f64)> = TEMPERATURES.into_iter().map(|it| (loss(it), it)).collect();
    let (_, temperature) = losses.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).expect("temperatures");
    println!("loss by temperature: {losses:.3?}");
    let of = |named_from: f64| {
        let said = named_causes(&leave_one_set_out(&cases, temperature, named_from));
        (named_from, verdict_counts(&cases, &said))
    };
    let by: Vec<(f64, [usize; 3])> = NAMING_THRESHOLDS.into_iter().map(of).collect();
    println!("right, not known, wrong by threshold: {by:?}");
    let enough = by.iter().filter(|(_, [right, ..])| *right as f64 >= RIGHT_CAUSES_SHARE_MIN * cases.len() as f64);
    let named_from = enough
        .rev()
        .min_by_key(|(_, [_, _, wrong])| *wrong)
        .map_or(NAMING_THRESHOLDS[0], |(named_from, _)| *named_from);
    let fitted = fit_likelihoods(&cases.iter().collect::<Vec<_>>(), temperature, named_from);
    let path = corpus_folder().join("../crates/plimsoll-analysis/src/explain/likelihoods.tsv");
    std::fs::write(&path, fitted.to_tsv()).map_err(|error| format!("{}: {error}", path.display()))
}

fn named_causes(said: &[CorpusDiagnosis]) -> Vec<Cause> {
    said.iter().map(|said| said.cause).collect()
}

fn write_expected_causes() -> Result<(), String> {
    let cases = read_corpus_cases();
    let said: Vec<Cause> = cases.iter().map(CorpusCase::named_cause).collect();
    println!("{}", verdict_table(&cases, &said));
    std::fs::write(corpus_folder().join("expected.tsv"), expected_text(&cases, &said))
        .map_err(|error| error.to_string())
}

fn print_cross_validation_score() {
    let cases = read_corpus_cases();
    let fitted = plimsoll_analysis::explain::likelihoods::Likelihoods::corpus_likelihoods();
    let said = leave_one_set_out(&cases, fitted.temperature, fitted.naming_probability_min);
    println!("{}", verdict_table(&cases, &named_causes(&said)));
    for (case, said) in cases.iter().zip(&said).filter(|(case, said)| case.verdict(said.most_probable) as usize != 0) {
        let (truth, other) = (&case.truth, said.most_probable);
        println!("{}: {truth:?} has {:.2}, {other} {:.2}", case.name, said.right_causes_probability, said.probability);
    }
    for (what, of) in [("quiet", false), ("disturbed", true)] {
        let some: Vec<CorpusCase> = cases.iter().filter(|it| it.disturbed == of).cloned().collect();
        let told: Vec<Cause> =
            cases.iter().zip(&said).filter(|(it, _)| it.disturbed == of).map(|(_, said)| said.cause).collect();
        println!("{what}: right, not known, wrong: {:?} of {}", verdict_counts(&some, &told), some.len());
    }
    println!("| probability | answers | right | mean probability |\n|---|---|---|---|");
    for (from, to) in [(0.0, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01)] {
        let within: Vec<(&CorpusCase, &CorpusDiagnosis)> =
            cases.iter().zip(&said).filter(|(_, said)| said.probability >= from && said.probability < to).collect();
        let right = within.iter().filter(|(case, said)| case.verdict(said.most_probable) as usize == 0).count();
        let mean = within.iter().map(|(_, said)| said.probability).sum::<f64>() / within.len().max(1) as f64;
        println!("| {from} to {to} | {} | {right} | {mean:.2} |", within.len());
    }
}

fn print_case_diagnosis(name: &str) -> Result<(), String> {
    let cases = read_corpus_cases();
    let case = cases.iter().find(|it| it.name == name).ok_or_else(|| format!("no case is called {name}"))?;
    let others: Vec<&CorpusCase> = cases.iter().filter(|it| it.set != case.set).collect();
    let fitted = plimsoll_analysis::explain::likelihoods::Likelihoods::corpus_likelihoods();
    let weights = fit_likelihoods(&others, fitted.temperature, fitted.naming_probability_min).evidence_weights();
    let posterior = Posterior::compute(&weights, &FeatureAnswers::from_facts(&case.case), &case.changes.effects());
    println!("truth {:?}, said {}", case.truth, case.named_cause());
    for (feature, value) in FeatureAnswers::from_facts(&case.case).observed_answers().filter(|(_, value)| *value > 0) {
        println!("  {}: {}", feature.card().word, feature.card().values[value].word);
    }
    println!("effects {:?}, served {:?}", case.changes.effects(), case.case.requests_in_service());
    for it in posterior.candidates.iter().take(5) {
        println!("{} {:.3}", it.form.word, it.probability);
        for term in it.terms.iter().take(6) {
            let card = term.feature.card();
            println!("    {:+.2} {} {}", term.log_ratio, card.word, card.values[term.answer_index].word);
        }
    }
    println!("unknown {:.3}", posterior.unknown);
    Ok(())
}
