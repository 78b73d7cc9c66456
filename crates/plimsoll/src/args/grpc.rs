//! Arguments of `plimsoll grpc`. Not here: the flags of gRPC calls, which all commands share
//! (`shared`).

use super::shared::{ConnectionArgs, SchemaArgs};
use clap::{Args, ValueHint};

/// The form in which `plimsoll grpc` shows the services of a gRPC server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GrpcView {
    /// List the server's services and their methods
    List,
    /// Describe the method of the URL, or all methods of the URL's service, each with an example
    /// body
    Describe,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  plimsoll grpc list grpc://localhost:50051\n  \
    plimsoll grpc describe grpc://localhost:50051/pkg.Service/Method")]
pub struct GrpcArgs {
    /// Show the services and methods of the server (list), or the types of a method (describe)
    #[arg(value_name = "WHAT")]
    pub shown: GrpcView,
    /// URL of the gRPC server, or of a method, such as grpc://localhost:50051/pkg.Service/Method
    #[arg(value_hint = ValueHint::Url)]
    pub url: String,
    /// Header to send, such as 'Authorization: Bearer x' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    #[command(flatten)]
    pub schema: SchemaArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Allow a server address that is neither loopback nor private
    #[arg(long)]
    pub allow_public: bool,
}
