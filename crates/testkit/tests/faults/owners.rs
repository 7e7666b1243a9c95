//! Two processes on one directory.

use super::lab::Lab;
use testkit::torture::contents;
use testkit::torture::ledger::Ledger;
use testkit::torture::protocol::Line;
use testkit::torture::worker::UNOPENED;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_process_is_told_which_one_has_the_directory() {
    let mut lab = Lab::new();
    let options = lab.worker(1);
    let mut first = lab.start(&options, &[]);
    assert!(first.until(|line| matches!(line, Line::Ready(_))).await);
    let message = format!("process {} is using it", first.id());

    let second = lab.start(&options, &[]).end().await.unwrap();
    assert_eq!(second.status.code(), Some(UNOPENED.into()));
    let told = Ledger::new(&lab.before, &second).unopened.unwrap();
    assert!(told.contains(&message), "{told}");
    let error = contents::open(&lab.dir()).await.unwrap_err().to_string();
    assert!(error.contains(&message), "{error}");

    // The first one did not notice, and the lock is gone with it, however it ends.
    let acknowledged = |line: &Line| matches!(line, Line::Acknowledged { .. });
    assert!(first.until(acknowledged).await);
    let life = first.kill().await.unwrap();
    lab.look(&life).await;
}
