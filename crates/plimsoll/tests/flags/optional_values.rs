//! Tests how flags with an optional value, such as `--pprof`, share a command line with the URL.

use super::*;

/// Parses a command line. Returns the target, and the values of `--pprof` and `--metrics`.
fn parse_command_line(line: &str) -> Result<(String, Option<String>, Option<String>), String> {
    let words = std::iter::once("plimsoll").chain(line.split(' ')).map(OsString::from);
    let (cli, _) = super::parse_with_secrets(words).map_err(|error| error.kind().to_string())?;
    Ok(match cli.command {
        Command::Find(args) => {
            let flags = args.search.clone();
            (flags.request.url.unwrap_or_default(), flags.profiles.pprof, flags.probes.metrics)
        }
        Command::Run(args) => {
            let flags = args.clone();
            (flags.request.url.unwrap_or_default(), flags.profiles.pprof, flags.probes.metrics)
        }
        _ => return Err("another command".into()),
    })
}

#[test]
fn optional_flag_values_are_parsed() {
    let auto = Some("auto");
    for (line, expect) in [
        ("run http://t/", Ok(("http://t/", None, None))),
        ("run http://t/ --pprof", Ok(("http://t/", auto, None))),
        ("run --pprof http://t/", Ok(("http://t/", auto, None))),
        ("run --pprof=auto http://t/", Ok(("http://t/", auto, None))),
        ("run --pprof auto http://t/", Ok(("http://t/", auto, None))),
        ("run --pprof http://p/ http://t/", Ok(("http://t/", Some("http://p/"), None))),
        ("run --pprof=http://p/ http://t/", Ok(("http://t/", Some("http://p/"), None))),
        ("run http://t/ --pprof http://p/", Ok(("http://t/", Some("http://p/"), None))),
        ("run --pprof -c 10 http://t/", Ok(("http://t/", auto, None))),
        ("run --pprof http://t/ -c 10", Ok(("http://t/", auto, None))),
        ("run -c 10 --pprof http://t/", Ok(("http://t/", auto, None))),
        ("find --pprof http://t/", Ok(("http://t/", auto, None))),
        ("--pprof http://t/", Ok(("http://t/", auto, None))),
        ("http://t/ --pprof", Ok(("http://t/", auto, None))),
        ("run --metrics http://t/", Ok(("http://t/", None, auto))),
        ("run --pprof --metrics http://t/", Ok(("http://t/", auto, auto))),
        ("run http://t/ --metrics --pprof", Ok(("http://t/", auto, auto))),
        ("run --metrics http://m/ --pprof http://t/", Ok(("http://t/", auto, Some("http://m/")))),
        ("run --pprof", Err("required")),
        ("run -c 10", Err("required")),
        ("run -f mix.toml", Ok(("", None, None))),
        ("-f mix.toml --pprof", Ok(("", auto, None))),
        ("run -f mix.toml -b x", Err("cannot be used")),
        ("run --target http://t/ http://u/", Err("cannot be used")),
    ] {
        match (parse_command_line(line), expect) {
            (Ok((url, pprof, metrics)), Ok(want)) => {
                assert_eq!((url.as_str(), pprof.as_deref(), metrics.as_deref()), want, "{line}");
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{line}: {error}"),
            (got, want) => panic!("{line}: {got:?}, expected {want:?}"),
        }
    }
}
