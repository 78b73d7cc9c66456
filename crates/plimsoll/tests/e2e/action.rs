//! Tests the steps of the CI action (`ci/plimsoll.sh`, `ci/comment.sh`) as a CI runner executes
//! them.
//!
//! Not here: the content of reports (`report`).

use crate::test_support::{create_new_folder, start_baseline};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn ci_script_path(name: &str) -> String {
    format!("{}/../../ci/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run_ci_action(out: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(ci_script_path("plimsoll.sh"));
    command.current_dir(out).env("OUT", out.join("out")).env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll"));
    command.env("GITHUB_STEP_SUMMARY", out.join("summary")).env("GITHUB_OUTPUT", out.join("outputs"));
    command.envs(variables.iter().copied()).output().expect("bash")
}

#[test]
fn reports_are_written_and_the_exit_code_is_kept() {
    let server = start_baseline(1);
    let out = create_new_folder("action");
    let args = format!("-c 2 -n 2000 -H 'X-Words: a b' '{}/bytes/10'", server.url);
    let baseline = out.join("old.plimsoll").display().to_string();
    let run = [("COMMAND", "run"), ("ARGS", args.as_str()), ("SLO", "p99<=5s")];
    let done = run_ci_action(&out, &[&run[..], &[("BASELINE", &baseline)]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
    assert!(read("out/junit.xml").contains("<testcase") && read("out/page.html").contains("<html"));
    assert!(read("out/comment.md").starts_with("<!-- plimsoll -->\n") && read("summary").contains("no baseline"));
    assert!(read("outputs").contains("exit-code=0\n"), "{}", read("outputs"));
    std::fs::rename(out.join("out/run.plimsoll"), &baseline).expect("moved");
    // On a busy machine the load may be void (without information about the server), so that
    // conditions about response times cannot be decided.
    let gate = [("BASELINE", baseline.as_str()), ("FAIL_IF", "p99>1us"), ("ON_INCONCLUSIVE", "fail")];
    let done = run_ci_action(&out, &[&run[..], &gate].concat());
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(read("out/summary.md").contains("Compared with the baseline"), "{}", read("out/summary.md"));
}

/// Checks that a gate passes, fails or is inconclusive, even if every load on a busy machine is
/// void (without information about the server). A condition about errors always decides the gate; a
/// condition about CPU time without readings never decides the gate.
#[test]
fn each_action_outcome_has_its_exit_code_and_one_comment() {
    let server = start_baseline(1);
    let args = format!("-c 1 -n 100 --spin=off --no-probes {}/healthz", server.url);
    for (gate, chosen, code, outcome) in [
        ("errors>50%", "", 0, "passed"),
        ("errors<50%", "", 1, "failed"),
        ("cpu>1ns", "", 3, "inconclusive"),
        ("cpu>1ns", "pass", 0, "passed"),
        ("cpu>1ns", "fail", 1, "failed"),
        // A condition of the gate that is true decides the gate, even if the other condition cannot
        // be decided.
        ("cpu>1ns, errors<50%", "pass", 1, "failed"),
    ] {
        let out = create_new_folder("action-outcome");
        let variables = [("COMMAND", "run"), ("ARGS", args.as_str()), ("FAIL_IF", gate), ("ON_INCONCLUSIVE", chosen)];
        let done = run_ci_action(&out, &variables);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(code), "{gate} {chosen}: {said}");
        let read = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
        let outputs = read("outputs");
        assert!(outputs.contains(&format!("exit-code={code}\noutcome={outcome}\n")), "{gate} {chosen}: {outputs}");
        let files = std::fs::read_dir(out.join("out")).expect("a folder").flatten();
        let comments = files.filter(|file| file.file_name().to_string_lossy().starts_with("comment")).count();
        assert_eq!(comments, 1, "{gate} {chosen}");
        let comment = read("out/comment.md");
        let named = comment.contains(&format!("### The gate: {outcome}")) && comment.contains("    --fail-if ");
        assert_eq!(named, gate != "errors>50%", "{gate} {chosen}: {comment}");
        if gate.contains(", ") {
            let place = |text: &str| comment.find(text).unwrap_or_else(|| panic!("{text}: {comment}"));
            assert!(place("--fail-if errors") < place("--fail-if cpu"), "errors first: {comment}");
        }
    }
}

/// Checks that the action installs the given version of plimsoll and uses that version.
#[test]
fn the_action_installs_and_uses_a_package() {
    let out = create_new_folder("action-version");
    let program = env!("CARGO_BIN_EXE_plimsoll");
    // The package contains a script that logs its own path and calls the program under test. The
    // log shows whether the action used the package.
    let script = format!("#!/bin/sh\necho \"$0\" >>{}/used\nexec {program} \"$@\"\n", out.display());
    let tree = out.join("tree");
    std::fs::create_dir_all(tree.join("DEBIAN")).expect("a folder");
    std::fs::create_dir_all(tree.join("usr/bin")).expect("a folder");
    std::fs::write(tree.join("usr/bin/plimsoll"), &script).expect("written");
    let executable = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tree.join("usr/bin/plimsoll"), executable).expect("set");
    let control = "Package: plimsoll\nVersion: 9\nArchitecture: all\nMaintainer: nobody <a@b.c>\nDescription: x\n";
    std::fs::write(tree.join("DEBIAN/control"), control).expect("written");
    let deb = out.join("plimsoll_9_all.deb");
    let built = Command::new("dpkg-deb").arg("--build").args([&tree, &deb]).output().expect("dpkg-deb");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let wheel = out.join("plimsoll-9-py3-none-any.whl");
    let made = Command::new("python3")
        .args(["-c", "import sys, zipfile\nwheel = zipfile.ZipFile(sys.argv[1], 'w')\n\
                      program = zipfile.ZipInfo('plimsoll-9.data/scripts/plimsoll')\n\
                      program.external_attr = 0o100755 << 16\nwheel.writestr(program, sys.argv[2])\n\
                      wheel.writestr('plimsoll-9.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: plimsoll\\nVersion: 9\\n')\n\
                      wheel.writestr('plimsoll-9.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n')\n\
                      wheel.writestr('plimsoll-9.dist-info/RECORD', '')\nwheel.close()"])
        .args([wheel.as_os_str(), script.as_ref()])
        .output()
        .expect("python3");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let server = start_baseline(1);
    let args = format!("-n 3 -c 1 --no-probes {}/healthz", server.url);
    for package in [deb, wheel] {
        let _ = std::fs::remove_file(out.join("used"));
        let version = package.display().to_string();
        let done =
            run_ci_action(&out, &[("COMMAND", "run"), ("ARGS", &args), ("VERSION", &version), ("PLIMSOLL", "false")]);
        assert!(done.status.success(), "{version}: {}", String::from_utf8_lossy(&done.stderr));
        let used = std::fs::read_to_string(out.join("used")).expect("it was used");
        assert!(used.lines().all(|path| !Path::new(path).exists()), "nothing of it is left: {used}");
    }
    let done = run_ci_action(&out, &[("COMMAND", "run"), ("ARGS", &args), ("VERSION", "nowhere.whl")]);
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("version 'nowhere.whl' cannot be installed: give"), "{said}");
}

#[test]
fn action_inputs_are_never_executed() {
    let out = create_new_folder("action-words");
    let done = run_ci_action(&out, &[("COMMAND", "run"), ("ARGS", "-n 1 '$(touch made)' `touch made` ; touch made")]);
    assert_eq!(done.status.code(), Some(2));
    assert!(!out.join("made").exists());
    assert!(std::fs::read_to_string(out.join("out/summary.md")).expect("written").contains("exit code 2"));
    let done = run_ci_action(&out, &[("COMMAND", "rm"), ("ARGS", "x")]);
    assert_eq!(done.status.code(), Some(2));
    let done = run_ci_action(&out, &[("COMMAND", "run"), ("ARGS", "'open")]);
    assert_eq!(done.status.code(), Some(2));
}

/// Checks that a pull request gets one comment, which later runs update. In the test, a script that
/// logs its calls replaces `gh`, the command line tool of GitHub.
#[test]
fn a_pull_request_has_one_comment() {
    let out = create_new_folder("action-comment");
    let gh = out.join("gh");
    std::fs::write(
        &gh,
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >>calls\ncase \"$*\" in *--paginate*) [ -f refused ] && exit 1; cat listed ;; esac\n",
    )
    .expect("written");
    std::fs::set_permissions(&gh, PermissionsExt::from_mode(0o755)).expect("set");
    std::fs::write(out.join("comment.md"), "<!-- plimsoll -->\nfine\n").expect("written");
    std::fs::write(out.join("bare.md"), "fine\n").expect("written");
    let path = format!("{}:{}", out.display(), std::env::var("PATH").unwrap_or_default());
    let post = |listed: &str, file: &str, number: &str| {
        std::fs::write(out.join("listed"), listed).expect("written");
        let _ = std::fs::remove_file(out.join("calls"));
        let mut command = Command::new(ci_script_path("comment.sh"));
        command.arg(file).current_dir(&out).env("PATH", &path).env("GH_REPO", "o/n").env("PULL_REQUEST", number);
        let code = command.output().expect("bash").status.code();
        (code, std::fs::read_to_string(out.join("calls")).unwrap_or_default())
    };
    let other = "11\tLooks good\n12\t<!-- plimsoll-other -->\n";
    let (code, calls) = post(other, "comment.md", "7");
    assert_eq!(code, Some(0), "{calls}");
    assert!(calls.contains("--method POST repos/o/n/issues/7/comments --field body=@comment.md"), "{calls}");
    let (code, calls) = post(&format!("{other}13\t<!-- plimsoll -->\n14\t<!-- plimsoll -->\n"), "comment.md", "7");
    assert_eq!(code, Some(0), "{calls}");
    assert!(calls.contains("--method PATCH repos/o/n/issues/comments/13 ") && !calls.contains("POST"), "{calls}");
    for (file, number) in [("bare.md", "7"), ("nowhere.md", "7"), ("comment.md", "7/../8"), ("comment.md", "")] {
        assert_eq!(post(other, file, number), (Some(2), String::new()), "{file} {number}");
    }
    std::fs::write(out.join("refused"), "").expect("written");
    let (code, calls) = post(other, "comment.md", "7");
    assert!(code == Some(1) && !calls.contains("POST"), "{calls}");
}
