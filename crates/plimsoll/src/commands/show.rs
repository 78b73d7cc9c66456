//! `plimsoll show`: prints the results of run files again. The findings are computed anew from the
//! recorded measurements.

use crate::args::ShowArgs;
use crate::results::{ResultForm, Results, print, print_json, read_run_file};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::{csv, probes_csv};

/// Prints the results of each file. Returns the exit code.
pub fn run(args: &ShowArgs) -> Result<u8, Failure> {
    let experiments = args.files.iter().map(|path| read_run_file(path)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let documents = args.files.iter().zip(&experiments).map(|(path, experiment)| {
            Ok(Results::from_experiment(experiment, Some(path))?.view().render_json_document())
        });
        let documents = documents.collect::<Result<Vec<_>, Failure>>()?;
        match <[_; 1]>::try_from(documents) {
            Ok([only]) => print_json(&only),
            Err(several) => print_json(&several.into()),
        }
        return Ok(exit::SUCCESS);
    }
    for (number, (path, experiment)) in args.files.iter().zip(&experiments).enumerate() {
        if args.csv {
            print(&csv::intervals_csv(experiment));
            continue;
        }
        if args.probes {
            let runs: Vec<_> = experiment.trials.iter().map(|trial| &trial.run).collect();
            print(&probes_csv(&runs));
            continue;
        }
        if experiments.len() > 1 {
            print(&format!("{}{}\n\n", if number > 0 { "\n" } else { "" }, path.display()));
        }
        let form = if args.verbose { ResultForm::Verbose } else { ResultForm::Text };
        Results::from_experiment(experiment, Some(path))?.print(form, true);
    }
    Ok(exit::SUCCESS)
}
