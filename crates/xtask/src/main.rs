//! Repository checks, run as `cargo xtask <command>`.
//!
//! What a reviewer would otherwise have to remember is a program here. This crate depends on no other crate of the
//! workspace, so it still builds and reports when they do not.

use std::process::ExitCode;

mod tidy;

const USAGE: &str = "usage: cargo xtask tidy    check what clippy cannot see";

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy::run(),
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}
