//! Arguments of the commands that behave like another tool, such as wrk. `plimsoll-compat` parses
//! these arguments, not clap.

use clap::Args;

#[derive(Debug, Clone, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "Examples:\n  \
    plimsoll wrk -t2 -c100 -d30s --latency http://localhost:8080/\n  \
    plimsoll wrk -s post.lua -d 30s http://localhost:8080/ -- words for init"
)]
pub struct WrkArgs {
    /// Arguments as wrk defines them
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "Examples:\n  \
    plimsoll wrk2 -R 2k -c100 -d30s -L http://localhost:8080/"
)]
pub struct Wrk2Args {
    /// Arguments as wrk2 defines them
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "Examples:\n  \
    plimsoll vegeta attack -rate 100/1s -duration 5s -targets targets.http -output results.json\n  \
    plimsoll vegeta report results.bin\n  \
    plimsoll vegeta report -type 'hist[0,1ms,10ms]' results.json\n  \
    plimsoll vegeta plot -title 'one attack' -output plot.html results.bin\n  \
    plimsoll vegeta encode -to csv results.bin"
)]
pub struct VegetaArgs {
    /// Arguments as vegeta defines them
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "Examples:\n  \
    plimsoll ab -n 1000 -c 10 -k http://localhost:8080/\n  \
    plimsoll ab -t 30 -c 10 -p body.json -T application/json -g times.tsv http://localhost:8080/"
)]
pub struct AbArgs {
    /// Arguments as ab defines them
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "Examples:\n  \
    plimsoll hey -n 1000 -c 10 http://localhost:8080/\n  \
    plimsoll hey -z 30s -c 10 -q 50 -o csv http://localhost:8080/"
)]
pub struct HeyArgs {
    /// Arguments as hey defines them
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}
