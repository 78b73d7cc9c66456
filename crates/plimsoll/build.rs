//! Scripts may `require` modules that are written in C, which take Lua's functions from the program that loads them: they are among the
//! symbols that this program shows. Nothing else is.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let folder = std::env::var("OUT_DIR").expect("set by cargo");
        let list = Path::new(&folder).join("shown.list");
        std::fs::write(&list, "{ lua_*; luaL_*; };\n").expect("the folder is for such files");
        // The way that every linker knows, also those of older systems.
        println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={}", list.display());
    }
}
