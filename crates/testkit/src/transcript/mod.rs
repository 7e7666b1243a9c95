//! Sessions at a terminal, kept as text files, and played against a fresh server each.
//!
//! A file is a sequence of commands with what they print on either output. It is documentation and test in one:
//!
//! ```text
//! # A sentence about what follows.
//! $ kubectl create configmap colours --from-literal=sky=blue
//! configmap/colours created
//!
//! $ kubectl create configmap colours
//! error: failed to create configmap: configmaps "colours" already exists
//! [exit 1]
//! ```
//!
//! - A command ends with its line, or with its here-document; a shell runs it, in a directory of its own.
//! - A comment follows an empty line. An exit code other than 0 is the last line of the output.
//! - What differs from run to run is given by name, `<age>` or `<uid>`; [`pattern`] lists the names. A line of three
//!   dots stands for any number of lines.
//! - A command that ends in `&` runs in the background. The player waits for as many lines of it as the file shows,
//!   and goes on. `$ fg` waits for as many lines more, and ends it.
//!
//! With `UPDATE=1` in the environment the file is written anew from what the commands print.

mod parse;
mod pattern;
mod play;

use crate::server::Server;
use parse::Transcript;
use pattern::Alignment;
use play::Player;
use std::fmt::Write;
use std::path::Path;

/// Plays a file and panics with the differences, if there are any.
pub fn play(server: &Server, file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut transcript = Transcript::parse(&text);
    let mut player = Player::new(server);
    let update = std::env::var_os("UPDATE").is_some();
    let mut differences = String::new();
    for step in &mut transcript.steps {
        let printed = player.run(&step.command, step.expected.len());
        let alignment = Alignment::new(&step.expected, &printed);
        if alignment.is_exact() {
            continue;
        }
        if update {
            step.expected = alignment.updated();
        } else {
            let _ = write!(differences, "\nline {}\n  $ {}\n{alignment}", step.line, step.command);
        }
    }
    if update {
        std::fs::write(file, transcript.to_string()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    assert!(
        differences.is_empty(),
        "{} is not what was printed (- expected, + printed; UPDATE=1 writes the file anew):\n{differences}",
        file.display()
    );
}
