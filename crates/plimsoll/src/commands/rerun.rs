//! `plimsoll rerun`: repeats the experiment of a run file with the same seed. If an exact
//! repetition is impossible, the command returns an error.
//!
//! The rerun starts from the recorded specification and settings. The user must give the values
//! that the record withholds, such as secrets, again with their flags. plimsoll refuses a value
//! that does not produce the same redacted record as the original value. The command asks the user
//! before potentially harmful actions that only the run file demands: running commands, sending
//! files, and load on public addresses. After the user's consent, the rerun works like any
//! measuring command.

use super::experiment;
use super::traffic::LogReadingDisplay;
use crate::args::RerunArgs;
use crate::results;
use plimsoll_model::completion::{RerunInputs, RerunUrl, RestoreError, body_file, missing_inputs, restore_experiment};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{BodySource, ExperimentSettings, ExperimentSpec, RedactedText};
use plimsoll_report::repeat_command::repeat_command_words;
use plimsoll_report::rerun::{cannot_rerun_reason_text, command_text, missing_input_flags_text};
use plimsoll_study::fields;
use plimsoll_study::output::{print, print_to_stderr};
use plimsoll_study::rerun::{environment_differences, harmful_actions, output_settings, traffic_from_recorded_files};
use plimsoll_sys::signal;
use plimsoll_traffic::target_url::Url;
use std::io::{BufRead, IsTerminal, Write};

/// Repeats the recorded experiment. Returns the exit code.
pub fn run(args: &RerunArgs) -> Result<u8, Failure> {
    let experiment = results::read_run_file(&args.file)?;
    let (asked, settings) = (&experiment.spec, experiment.settings.as_deref());
    let Some(settings) = settings else {
        let command = experiment.command.join(" ");
        return Err(Failure::cannot_start(format!(
            "the run file lacks the settings that plimsoll rerun needs; the recorded command was: {command}"
        )));
    };
    let missing = missing_inputs(asked, settings);
    if args.print {
        print(&format!("{}\n", command_text(&repeat_command_words(asked, settings))));
        if !missing.is_empty() {
            print_to_stderr(&format!(
                "the run file withholds these values; give these values again: {flags}",
                flags = missing_input_flags_text(&missing)
            ));
        }
        return Ok(exit::SUCCESS);
    }
    let mut given = read_inputs(args, asked)?;
    let output = output_settings(asked, settings, args.output.as_deref(), &args.file)?;
    let placed = ExperimentSettings { output: output.clone(), ..ExperimentSettings::default() }.record().output;
    print_to_stderr(&format!(
        "again: {}",
        command_text(&repeat_command_words(asked, &ExperimentSettings { output: placed, ..settings.clone() }))
    ));
    environment_differences(&experiment).iter().for_each(|sentence| print_to_stderr(&format!("warning: {sentence}")));
    ask_for_consent(settings, asked, args)?;
    signal::catch_stop_signals();
    if let (Some(path), None) = (body_file(settings), &given.body) {
        given.body = Some((BodySource::File(path.to_owned()), fields::body_file(path)?));
    }
    let mut unread = None;
    let seed = asked.plans().first().map_or(0, |plan| plan.load.seed);
    let outcome = restore_experiment(asked, settings, given, &mut |complete| {
        traffic_from_recorded_files(complete, seed, &mut LogReadingDisplay::new())
            .map_err(|failure| unread = Some(failure))
            .ok()
    });
    let (asked, complete) = outcome.map_err(|why| {
        let text = cannot_rerun_reason_text(&why, asked.study_word(), &missing);
        match why {
            RestoreError::UnreadableTraffic => unread.unwrap_or_else(|| Failure::cannot_start(text)),
            RestoreError::Missing => Failure::usage(format!("{}: {text}", args.file.display())),
            RestoreError::Superfluous(_) | RestoreError::Differs(_) | RestoreError::TargetEqualityChanged => {
                Failure::usage(text)
            }
        }
    })?;
    experiment::carry_out(asked, &ExperimentSettings { output, ..complete })
}

/// Reads the inputs that a run file does not contain (URLs, headers, body, secrets) from `args`.
fn read_inputs(args: &RerunArgs, spec: &ExperimentSpec) -> Result<RerunInputs, Failure> {
    let texts = args.withheld_texts(matches!(spec, ExperimentSpec::Prove(_)))?;
    let texts = texts.into_iter().map(|(kind, texts)| (kind, texts.into())).collect();
    let mut given = RerunInputs { texts, ..RerunInputs::default() };
    for url in args.target.iter().chain(&args.urls).chain(&args.against) {
        let Url { origin, path, authorization } = Url::parse(url)?;
        given.urls.push_back(RerunUrl { text: url.clone(), origin, target: path, authorization });
    }
    given.headers = args.headers.iter().map(|text| fields::parse_header_flag(text)).collect::<Result<_, _>>()?;
    given.body = args.body.as_deref().map(fields::parse_body_flag).transpose()?;
    Ok(given)
}

/// Asks the user for consent if the run file demands potentially harmful actions. Without a
/// terminal, returns an error unless --yes is given.
fn ask_for_consent(
    settings: &ExperimentSettings<RedactedText>,
    spec: &ExperimentSpec,
    args: &RerunArgs,
) -> Result<(), Failure> {
    let harmful_actions = harmful_actions(spec, settings);
    if harmful_actions.is_empty() || args.yes {
        return Ok(());
    }
    let actions = harmful_actions.join(" and ");
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage(format!(
            "the study of the run file will {actions}: check the command with --print, then add --yes"
        )));
    }
    let _ = write!(std::io::stderr(), "the study of the run file will {actions}: continue? [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    match ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        true => Ok(()),
        false => Err(Failure::usage("nothing was started")),
    }
}
