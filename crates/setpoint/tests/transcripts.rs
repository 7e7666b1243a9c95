//! What people see: sessions with the stock `kubectl`, each against a fresh server. The sessions are the text files in
//! `transcripts/`; how they are written stands in `testkit::transcript`.

use std::path::{Path, PathBuf};
use testkit::server::Server;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

async fn play(name: &str) {
    let server = Server::in_memory(env!("CARGO_BIN_EXE_setpoint")).await;
    testkit::transcript::play(&server, &directory().join(name).with_extension("txt"));
}

/// A test for each file.
macro_rules! transcripts {
    ($($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            play(stringify!($name)).await;
        })*

        #[test]
        fn every_transcript_is_played() {
            let mut files: Vec<String> = std::fs::read_dir(directory()).unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            files.sort();
            assert_eq!(files, [$(stringify!($name)),*]);
        }
    };
}

transcripts! {
    apply auth create delete diff_and_edit discovery dry_run events get immutable labels mistakes namespaces nodes
    patch quotas replace server_side_apply services wait watch workloads
}
