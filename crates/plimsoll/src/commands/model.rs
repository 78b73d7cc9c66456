//! `plimsoll model`: makes a traffic file that resembles access logs, and measures how far the
//! file's traffic differs from the logs.

use super::traffic::{LogReadingDisplay, log_reading_settings};
use crate::args::ModelArgs;
use crate::results::{print_json, print_screen};
use plimsoll_logs::modelling::{ModelOptions, TrafficModel};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::model::{ModelView, model_document, model_report};
use plimsoll_study::fields::path_text;
use plimsoll_study::log_replay::{LogRequestSelection, compile_fold_patterns, fold_path, read_requests};
use plimsoll_study::model_check::model_distances;
use plimsoll_study::output::{write_and_note, write_file};
use plimsoll_sys::output_file;
use plimsoll_traffic::target_url::Url;

/// Reads the logs and writes the model. Returns the exit code. With --verify, the exit code is a
/// failure if the model differs too much from the logs.
pub fn run(args: &ModelArgs) -> Result<u8, Failure> {
    let path = args.output.as_path();
    if !path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("toml")) {
        return Err(Failure::usage(format!("-o {file}: the name must end with .toml", file = path.display())));
    }
    let base = args.target.clone().unwrap_or_else(|| "http://localhost/".to_owned());
    let base = Url::parse(&base)?.origin.to_string();
    let folder = path.with_extension("paths");
    let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let reading = log_reading_settings(&args.log);
    let folding = compile_fold_patterns(&reading)?;
    let fold = |path: &str| fold_path(&folding, path);
    let choice = LogRequestSelection {
        logs: &args.logs,
        reading: &reading,
        only: &args.only,
        skip: &args.skip,
        with_unsafe: args.allow_unsafe,
        prefix: "",
    };
    let (gathered, logs, counts) = read_requests(&choice, &mut LogReadingDisplay::new())?;
    let names: Vec<String> = logs.iter().map(|log| log.name.clone()).collect();
    let file = path_text("-o", path)?;
    let command = match args.target {
        Some(_) => format!("plimsoll replay {file}"),
        None => format!("plimsoll replay {file} --target URL"),
    };
    let about = [
        format!("A model of {}.", names.join(", ")),
        format!("To send this traffic at the rate of the logs: {command}"),
    ];
    let model_names =
        ModelOptions { base: &base, folder: &folder_name, comment_lines: &about, keep_keys: args.keep_keys };
    let Some(model) = TrafficModel::fit(gathered, args.seed, &model_names) else {
        return Err(Failure::cannot_start(format!(
            "no request of {logs} remains for the model: give --allow-unsafe for methods other than GET and HEAD, or \
             change --only and --skip",
            logs = names.join(", ")
        )));
    };
    if !model.files.is_empty() {
        // The user names only the model file, and not the folder for its lists of paths. A symbolic
        // link in place of the folder is unexpected, so plimsoll refuses the link.
        output_file::refuse_link(&folder).and_then(|()| std::fs::create_dir_all(&folder)).map_err(|error| {
            Failure::cannot_start(format!(
                "the folder '{folder}' cannot be created: {error}",
                folder = folder.display()
            ))
        })?;
    }
    for (name, rows) in &model.files {
        write_file(&path.with_file_name(name), rows.as_bytes())?;
    }
    let what = format!("; lists of paths: {}", model.files.len());
    write_and_note(path, model.text.as_bytes(), &what)?;
    let distances = match args.verify {
        false => None,
        true => Some(model_distances(path, &model, args.seed, if folding.is_empty() { None } else { Some(&fold) })?),
    };
    let shown = ModelView {
        file: &file,
        logs: &names,
        lines_read: counts.read,
        lines_unparsed: counts.unparsed,
        command,
        model: &model,
        distances: distances.as_ref(),
    };
    match args.json {
        true => print_json(&model_document(&shown)),
        false => print_screen(&model_report(&shown), 0, "--json"),
    }
    Ok(match distances {
        Some(distances) if !distances.figures_over_bounds().is_empty() => exit::NEGATIVE_RESULT,
        _ => exit::SUCCESS,
    })
}
