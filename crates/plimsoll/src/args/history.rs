//! Arguments of the commands that read a store of run files: history, gate and serve.
//!
//! Not here: the commands that measure.

use super::known_words::KnownWords;
use super::shared::InconclusiveArgs;
use clap::{Args, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `plimsoll history`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll history                                   all services of the store\n  \
    plimsoll history http://localhost:8080/items       one service\n  \
    plimsoll history --by commit --branch main         a point for each commit\n  \
    plimsoll history --json --last 5\n\n\
    A series contains comparable runs only: the same traffic, SLO and kind of machine. \
    A change is reported if it exceeds 2 %. At most 3 of 1 000 series without a real change get such a report.")]
pub struct HistoryArgs {
    /// Show the runs that loaded this URL or a path below this URL [default: all runs]
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub url: Option<String>,
    /// Show one point for each run in order of time (time), or one point for each commit (commit)
    #[arg(long, value_name = "ORDER", default_value = "time",
          value_parser = KnownWords::for_text_value(&["commit", "time"]), hide_possible_values = true)]
    pub by: String,
    /// Show the runs of this branch [default: all runs]
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Maximum number of rows of each table
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub last: u32,
    /// The folder of run files [default: $PLIMSOLL_STORE, else _output/plimsoll]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// `plimsoll gate`
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Exit codes: 0 better or the same, 1 worse, 2 usage error, 3 not known (--on-inconclusive).\n\n\
    Examples:\n  \
    plimsoll gate --against main                       the latest run\n  \
    plimsoll gate @3f2c1ab --against main --json       the runs of a commit\n\n\
    The gate compares the runs of one commit with the runs of the branch since the branch's last change in performance. At most \
    1 in 100 commits without an effect on performance is reported as worse. With too few runs, the gate prints the plimsoll prove command that compares both directly."
)]
pub struct GateArgs {
    /// The run to judge: @latest, @2 (the run before @latest), @BRANCH, @COMMIT, @KEY=VALUE (a
    /// tag), or a file of the store
    #[arg(value_name = "RUN", default_value = "@latest", value_hint = ValueHint::FilePath)]
    pub run: String,
    /// The branch to compare the run with
    #[arg(long, value_name = "BRANCH", required = true)]
    pub against: String,
    #[command(flatten)]
    pub inconclusive: InconclusiveArgs,
    /// The folder of run files [default: $PLIMSOLL_STORE, else _output/plimsoll]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// `plimsoll serve`
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "plimsoll serve prints a link with an access token. Browsers on this machine need the token only to start and stop studies.\n\n\
    Examples:\n  \
    plimsoll serve                                     # shows the run files in _output/plimsoll\n  \
    plimsoll serve --store runs --listen 127.0.0.1:0\n  \
    plimsoll serve --listen 10.0.0.5:8900 --name box --tls-cert box.pem --tls-key box.key"
)]
pub struct ServeArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8900")]
    pub listen: SocketAddr,
    /// Another host name under which browsers reach this machine, such as box or box:443
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Serve https with this certificate and the certificates of its issuers (PEM file)
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate of --tls-cert (PEM file)
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// Let the web pages start shell commands and name files of this machine (--a, --before-block,
    /// --vary, @FILE). Everybody who has the access token gets your rights
    #[arg(long)]
    pub allow_commands: bool,
    /// The folder of run files [default: $PLIMSOLL_STORE, else _output/plimsoll]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
}
