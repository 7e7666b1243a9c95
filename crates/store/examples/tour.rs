//! A tour of the store in a temporary directory: writing, racing, watching, reading the past, backing up.

#![allow(clippy::print_stdout, reason = "the tour says what it sees")]

use ambient::Ambient;
use store::{Outcome, Revision, Sqlite, SqliteOptions, Store, Txn, WatchRequest};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = Sqlite::open(&Ambient::real(), SqliteOptions::new(dir.path().join("data"))).await?;

    let first = committed(&store.commit(Txn::create("app/web", "replicas: 1")).await?);
    println!("put app/web at revision {first}");

    // Two writers that read the same revision: the second is told what it missed.
    let won = committed(&store.commit(Txn::update("app/web", "replicas: 3", first)).await?);
    if let Outcome::Conflict { current, .. } = store.commit(Txn::update("app/web", "replicas: 5", first)).await? {
        let newer = current.into_iter().flatten().next().expect("the key is there");
        println!(
            "two writers raced from revision {first}: one got revision {won}, the other was shown {:?}",
            text(&newer.value)
        );
    }
    let deleted = committed(&store.commit(Txn::delete("app/web")).await?);

    // A watch can begin at any kept revision, here before the first change.
    let mut watch = store.watch(WatchRequest::new("app/", Revision::ZERO)).await?;
    while watch.progress() < deleted {
        for change in watch.next().await?.changes {
            let (name, revision) = (text(&change.key), change.revision);
            match change.current {
                Some(item) => println!("the watch delivered revision {revision}: {name} = {:?}", text(&item.value)),
                None => println!("the watch delivered revision {revision}: {name} deleted"),
            }
        }
    }

    let then = store.get(b"app/web", Some(won)).await?.item.expect("it was there then");
    println!("at revision {won}, app/web was {:?}", text(&then.value));

    let backed_up = store.backup(&dir.path().join("backup.db")).await?;
    println!("a backup at revision {backed_up} was written and verified");
    store.close().await;
    Ok(())
}

fn committed(outcome: &Outcome) -> Revision {
    match outcome {
        Outcome::Committed(revision) => *revision,
        Outcome::Conflict { .. } => unreachable!("nobody else writes here"),
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
