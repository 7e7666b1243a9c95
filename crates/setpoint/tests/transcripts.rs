//! What people see: sessions with the stock `kubectl`, each against a fresh server. The sessions are the text files in
//! `transcripts/`; how they are written stands in `testkit::transcript`.
//!
//! Those at the top are about the API: there are no nodes, so pods are never bound. Those in `simulated/` have three
//! nodes that run nothing, and show what the loops make of what is declared.

use std::path::{Path, PathBuf};
use testkit::server::Server;

/// A test for each file of a directory, with so many simulated nodes, and with arguments behind the name where a server
/// is told more than others.
macro_rules! transcripts {
    ($directory:literal, $nodes:literal: $($name:ident $(($($argument:literal),+))?)*) => {
        fn directory() -> PathBuf {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join($directory)
        }

        async fn play(name: &str, arguments: &[&str]) {
            let server = Server::with_nodes(env!("CARGO_BIN_EXE_setpoint"), $nodes, arguments).await;
            testkit::transcript::play(&server, &directory().join(name).with_extension("txt"));
        }

        $(#[tokio::test]
        async fn $name() {
            play(stringify!($name), &[$($($argument),+)?]).await;
        })*

        #[test]
        fn every_transcript_is_played() {
            let mut files: Vec<String> = std::fs::read_dir(directory()).unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_file())
                .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            files.sort();
            assert_eq!(files, [$(stringify!($name)),*]);
        }
    };
}

transcripts! { "transcripts", 0:
    apply auth create delete diff_and_edit discovery dry_run events get immutable labels mistakes namespaces nodes
    patch priority_and_fairness quotas replace server_side_apply services two_writers wait watch
}

mod simulated {
    use super::*;

    transcripts! { "transcripts/simulated", 3:
        access autoscaling beside cron_job daemon_set deployment
        device_taints("--runtime-config", "resource.k8s.io/v1beta2=true")
        devices disruption
        gang("--runtime-config", "scheduling.k8s.io/v1alpha2=true")
        garbage job leader logs maintenance quota rehearsal replica_set resize
        scheduling services stateful_set unschedulable volumes workloads
    }
}
