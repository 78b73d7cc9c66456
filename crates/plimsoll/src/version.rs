//! The texts of `plimsoll --version --verbose` and of `plimsoll` without arguments.
//!
//! Not here: determining the commit (build.rs).

/// The text of `plimsoll` without arguments: its purpose, three commands, and where to find help.
pub const NO_ARGUMENTS_TEXT: &str = "plimsoll finds the load line of an HTTP API: the highest rate that meets the SLO.\n  \
    plimsoll http://localhost:8080/           find the load line\n  \
    plimsoll explain http://localhost:8080/   name the bottleneck\n  \
    plimsoll prove URL_A URL_B                compare two builds\n\
    All three on a sample server: plimsoll demo. More: plimsoll --help, plimsoll COMMAND --help.\n";

/// Returns the version, commit, features and target, each on its own line.
pub fn verbose_version() -> String {
    let features = [
        (cfg!(feature = "png"), "png"),
        (cfg!(feature = "grpc"), "grpc"),
        (cfg!(feature = "luajit"), "luajit"),
        (cfg!(feature = "lua51"), "lua51"),
        (cfg!(feature = "web"), "web"),
    ];
    let features: Vec<&str> = features.iter().filter(|feature| feature.0).map(|feature| feature.1).collect();
    format!(
        "plimsoll {version}\ncommit: {commit}\nfeatures: {features}\ntarget: {target}\n",
        version = env!("CARGO_PKG_VERSION"),
        commit = env!("PLIMSOLL_COMMIT"),
        features = if features.is_empty() { "none".to_owned() } else { features.join(" ") },
        target = env!("PLIMSOLL_TARGET"),
    )
}
