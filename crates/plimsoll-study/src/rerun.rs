//! Prepares a rerun of a recorded experiment. This module lists the harmful actions of a rerun, and
//! the differences between this machine and the recorded machine. This module also reads the
//! required traffic files and logs, and chooses the path of the results.
//!
//! Not here: inputs that the run file withholds (`plimsoll_model::completion`), and questions to
//! the user.

use crate::fields::path_text;
use crate::recording::describe_environment;
use crate::result_store::FOLDER;
use crate::{file_traffic, log_replay};
use plimsoll_model::completion::{
    TrafficFromFile, body_file, other_body_file, recorded_log_paths, script_file, traffic_file,
};
use plimsoll_model::experiment_settings::{BuildsSettings, OutputSettings};
use plimsoll_model::failure::Failure;
use plimsoll_model::{Experiment, ExperimentSettings, ExperimentSpec, RedactedText};
use std::path::{Path, PathBuf};

/// Reads the traffic of each target from the traffic file or the logs that the recorded options
/// (`settings`) name. Returns an empty list if the options name neither a traffic file nor logs.
pub fn traffic_from_recorded_files(
    settings: &ExperimentSettings<String>,
    seed: u64,
    progress: &mut dyn log_replay::ReadingProgress,
) -> Result<Vec<TrafficFromFile>, Failure> {
    match (&settings.replay, &settings.mix) {
        (Some(logs), _) => {
            Ok(vec![log_replay::traffic_from_logs(logs, seed, settings.redact, settings.output.quiet, progress)?])
        }
        (None, Some(mix)) => {
            let asked = file_traffic::traffic_from_file(mix, settings.redact)?;
            Ok(asked.into_iter().map(|(traffic, _)| TrafficFromFile { traffic, arrivals: None }).collect())
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// Returns a phrase for each potentially harmful action of a rerun, such as running commands from
/// the run file.
pub fn harmful_actions(spec: &ExperimentSpec, settings: &ExperimentSettings<RedactedText>) -> Vec<&'static str> {
    let BuildsSettings { a, b, build, start, before_block, .. } = &settings.builds;
    let commands = [a, b, build, start, before_block, &settings.interventions.vary];
    let is_sent =
        body_file(settings).or_else(|| traffic_file(settings)).or_else(|| other_body_file(settings)).is_some();
    [
        (commands.into_iter().flatten().any(|command| !command.withheld), "run commands"),
        (script_file(settings).is_some_and(|file| !file.is_empty()), "run a script of this machine"),
        (is_sent || recorded_log_paths(settings).is_some(), "send the content of a file of this machine"),
        (
            !settings.interventions.may_signal.is_empty(),
            "pause processes of this machine for milliseconds (--may-signal)",
        ),
        (settings.fleet.is_some(), "log in to other machines to generate load there (--fleet)"),
        (settings.probes.watch.is_some(), "log in to the server's machine to watch it (--watch)"),
        (
            spec.plans().iter().any(|plan| plan.connection_plan.unix.is_some() && !plan.connection_plan.unix_withheld),
            "use a unix socket",
        ),
        (settings.public, "put load on public addresses (--allow-public)"),
    ]
    .into_iter()
    .filter_map(|(does, what)| does.then_some(what))
    .collect()
}

/// Returns a sentence for each difference between this machine and the recorded environment.
pub fn environment_differences(experiment: &Experiment) -> Vec<String> {
    let now = describe_environment(experiment.environment.target_local);
    let then = &experiment.environment;
    [
        ("plimsoll", &then.plimsoll, &now.plimsoll),
        ("kernel", &then.kernel, &now.kernel),
        ("processor", &then.cpu, &now.cpu),
        ("cores", &then.cores.to_string(), &now.cores.to_string()),
    ]
    .into_iter()
    .filter(|(_, then, now)| then != now)
    .map(|(property, recorded, now)| {
        format!("this machine differs from the recorded machine: {property} '{now}' instead of '{recorded}'")
    })
    .collect()
}

/// Returns the output options of the rerun: `output` if given, otherwise a new name in the default
/// folder. Fails if `output` is the run file `record` itself, which must not be overwritten.
pub fn output_settings(
    spec: &ExperimentSpec,
    settings: &ExperimentSettings<RedactedText>,
    output: Option<&Path>,
    record: &Path,
) -> Result<OutputSettings<String>, Failure> {
    let (mut file, mut files) = (None, None);
    if let Some(path) = output {
        if settings.demo {
            return Err(Failure::usage("-o: a demo writes no run file; leave -o out"));
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_sweep = matches!(spec, ExperimentSpec::Sweep(_));
        if is_sweep && (path.extension().is_none_or(|extension| extension != "plimsoll") || stem.is_empty()) {
            return Err(Failure::usage(
                "-o: the run file of a sweep ends in .plimsoll, because the other files of the sweep have the same \
                 name; add this ending",
            ));
        }
        refuse_overwriting_record(path, record)?;
        if is_sweep {
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            files = Some((path_text("-o", folder)?, stem.to_owned()));
        } else {
            file = Some(path_text("-o", path)?);
        }
    } else if matches!(spec, ExperimentSpec::Sweep(_)) {
        files = Some((FOLDER.to_owned(), free_name(Path::new(FOLDER))));
    }
    Ok(OutputSettings { file, files, ..settings.output.without_paths() })
}

/// Returns an unused name in `folder` for the files of a sweep.
fn free_name(folder: &Path) -> String {
    let names = std::iter::once("rerun".to_owned()).chain((2u32..).map(|number| format!("rerun-{number}")));
    names.into_iter().find(|name| !folder.join(format!("{name}.plimsoll")).exists()).unwrap_or_default()
}

/// Returns an error if `output` leads to the same file as `record`, for example through a link.
fn refuse_overwriting_record(output: &Path, record: &Path) -> Result<(), Failure> {
    let real = |path: &Path| -> Option<PathBuf> { std::fs::canonicalize(path).ok() };
    let same_file = || {
        use std::os::unix::fs::MetadataExt;
        let of = |path: &Path| std::fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        of(output).is_some() && of(output) == of(record)
    };
    match (real(output).is_some() && real(output) == real(record)) || same_file() {
        true => Err(Failure::usage(format!(
            "-o {file}: this is the run file that rerun reads: name another file",
            file = output.display()
        ))),
        false => Ok(()),
    }
}
