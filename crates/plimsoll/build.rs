//! Scripts may `require` modules that are written in C, which take Lua's functions from the program that loads them: they are among the
//! symbols that this program shows. Nothing else is.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for names in ["lua_*", "luaL_*"] {
            println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={names}");
        }
    }
}
