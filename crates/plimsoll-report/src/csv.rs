//! The intervals of runs as CSV (RFC 4180), one row an interval.

use plimsoll_model::{Experiment, Failure, Purpose};

/// All intervals of an experiment. Times in ns; `start_s` is schedule time within the trial.
pub fn intervals(experiment: &Experiment) -> String {
    let mut out = String::from(
        "trial,purpose,start_s,scheduled,succeeded,failed_status,failed_connect,failed_reset,failed_closed_early,\
         failed_protocol,failed_timeout,unsent,in_flight,response_p50_ns,response_p99_ns,response_max_ns,\
         service_p50_ns,service_p99_ns,lag_p99_ns,bytes_in,bytes_out,connections_open\r\n",
    );
    for (number, trial) in experiment.trials.iter().enumerate() {
        for (index, interval) in &trial.run.intervals {
            let start_s = u64::from(*index) as f64 * trial.run.plan.interval_ns as f64 / 1e9;
            let (response, service, lag) =
                (interval.response.to_dense(), interval.service.to_dense(), interval.lag.to_dense());
            let failed = Failure::ALL.map(|kind| interval.ledger.failed[kind as usize].to_string()).join(",");
            let fields = [
                number.to_string(),
                purpose_name(trial.purpose).to_owned(),
                format!("{start_s:.1}"),
                interval.ledger.scheduled.to_string(),
                interval.ledger.succeeded.to_string(),
                failed,
                interval.ledger.unsent.to_string(),
                interval.in_flight_end.to_string(),
                response.quantile_ns(0.5).to_string(),
                response.quantile_ns(0.99).to_string(),
                response.max_ns().to_string(),
                service.quantile_ns(0.5).to_string(),
                service.quantile_ns(0.99).to_string(),
                lag.quantile_ns(0.99).to_string(),
                interval.bytes_in.to_string(),
                interval.bytes_out.to_string(),
                interval.connections_open.to_string(),
            ];
            out.push_str(&fields.join(","));
            out.push_str("\r\n");
        }
    }
    out
}

/// The name of a purpose in every output.
pub fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Run => "run",
        Purpose::Level => "level",
        Purpose::Peak => "peak",
        Purpose::Climb => "climb",
        Purpose::Line => "line",
        Purpose::Confirm => "confirm",
        Purpose::Settle => "settle",
        Purpose::Profile => "profile",
        Purpose::Arm(arm) => {
            const NAMES: &str = "abcdefghijklmnopqrstuvwxyz";
            let at = usize::from(arm).min(NAMES.len() - 1);
            &NAMES[at..=at]
        }
    }
}
