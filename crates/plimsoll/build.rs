//! Build script: sets linker options, and passes the commit and the target to the program as
//! environment variables.
//!
//! Lua scripts may `require` C modules, which take Lua's functions from the program that loads
//! them. The program therefore exports Lua's symbols, and no other symbols.
//!
//! `plimsoll --version --verbose` prints the commit. Not here: the rest of the output of `plimsoll
//! --version --verbose` (`version`).

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=PLIMSOLL_COMMIT={}", source_commit().unwrap_or_else(|| "unknown".into()));
    println!("cargo:rustc-env=PLIMSOLL_TARGET={}", std::env::var("TARGET").expect("set by cargo"));
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let folder = std::env::var("OUT_DIR").expect("set by cargo");
        let list = Path::new(&folder).join("shown.list");
        std::fs::write(&list, "{ lua_*; luaL_*; };\n").expect("the folder is for such files");
        let linker = std::env::var("RUSTC_LINKER").unwrap_or_default();
        if linker.contains("zig") {
            // zig's linker refuses a list of exported symbols, but accepts a linker script
            // (scripts/dist). Without the linker script, zig exports every function, so the linker
            // does not remove unused functions.
            let script = Path::new(&folder).join("shown.ld");
            let text = "VERSION { { global: lua_*; luaL_*; local: *; }; }\n";
            std::fs::write(&script, text).expect("the folder is for such files");
            println!("cargo:rustc-link-arg-bins=-rdynamic");
            println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
        } else {
            // All linkers except zig's accept `--dynamic-list`, including the linkers of older
            // systems.
            println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={}", list.display());
            // A position-independent program reads and applies 150 000 relocations before it
            // starts, which takes 5 MB of memory. A program at a fixed address (`-no-pie`) starts
            // without relocations.
            if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
                println!("cargo:rustc-link-arg-bins=-no-pie");
            }
        }
    }
}

/// Returns the git commit of plimsoll's sources. Returns `None` outside a repository, without git,
/// and in a debug build. A debug build that contained the commit would be rebuilt after each
/// commit.
fn source_commit() -> Option<String> {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    // A published package contains the commit that it was built from.
    if let Ok(packed) = std::fs::read_to_string(folder.join(".cargo_vcs_info.json")) {
        let after = packed.split("\"sha1\"").nth(1)?;
        return after.split('"').nth(1).map(|sha| sha.chars().take(12).collect());
    }
    if std::env::var("PROFILE").ok()? != "release" {
        return None;
    }
    // If plimsoll's sources are an untracked copy inside another repository, git would return the
    // commit of that repository, which is wrong.
    git_output(&folder, &["ls-files", "--error-unmatch", "build.rs"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = folder.join(git_output(&folder, &["rev-parse", "--git-path", file])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let commit = git_output(&folder, &["rev-parse", "--short=12", "HEAD"])?;
    let changed = git_output(&folder, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

/// Returns the output of git; `None` if git fails.
fn git_output(folder: &Path, words: &[&str]) -> Option<String> {
    let done = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned())
}
