//! What the machine needs for the way of a change when nothing is computed: a request over a connection, a page that is
//! synced, a thread that hears of it, another page, and an answer.
//!
//! On a virtual machine that varies by the minute, and more than doubles after a rest: whoever serves the disk and the
//! cores sleeps too.

use crate::world;
use ambient::Tasks;
use std::fs::File;
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tempfile::TempDir;

/// What a small commit writes.
const PAGE_BYTES: usize = 8192;

pub(crate) struct Way {
    connection: TcpStream,
    tasks: Tasks,
    _dir: TempDir,
}

/// What is to be written.
enum Page {
    /// Somebody hears of it who has the second one written.
    First,
    /// Is answered.
    Second,
    /// Nothing any more.
    None,
}

impl Way {
    pub(crate) fn open() -> Result<Self> {
        let (tasks, dir) = (Tasks::new(), tempfile::tempdir()?);
        let file = File::create(dir.path().join("pages"))?;
        file.write_all_at(&[7; 2 * PAGE_BYTES], 0)?;
        file.sync_all()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let connection = TcpStream::connect(listener.local_addr()?)?;
        let (requests, _) = listener.accept()?;
        let answers = requests.try_clone()?;
        connection.set_nodelay(true)?;
        answers.set_nodelay(true)?;
        let (write, writes) = channel();
        let (tell, told) = channel();
        let again = write.clone();
        tasks.thread("serves", move || serve(requests, &write))?;
        tasks.thread("reacts", move || react(&told, &again))?;
        tasks.thread("keeps", move || keep(&file, &writes, &tell, answers).expect("the disk works"))?;
        Ok(Way { connection, tasks, _dir: dir })
    }

    /// How long it took, so many times, each time after a rest.
    pub(crate) async fn measure(&mut self, times: usize, rest: Duration) -> Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(times);
        for _ in 0..times {
            world::pass(rest).await;
            let started = world::now();
            self.connection.write_all(&[0])?;
            self.connection.read_exact(&mut [0])?;
            took.push(started.elapsed());
        }
        Ok(took)
    }

    pub(crate) async fn close(self) {
        drop(self.connection);
        self.tasks.stop().await;
    }
}

fn serve(mut requests: TcpStream, write: &Sender<Page>) {
    while requests.read_exact(&mut [0]).is_ok() && write.send(Page::First).is_ok() {}
    // Whoever keeps the pages may have gone before.
    let _ = write.send(Page::None);
}

fn react(told: &Receiver<()>, write: &Sender<Page>) {
    while told.recv().is_ok() && write.send(Page::Second).is_ok() {}
}

fn keep(file: &File, writes: &Receiver<Page>, tell: &Sender<()>, mut answers: TcpStream) -> Result<()> {
    for page in writes {
        match page {
            Page::First => {
                file.write_all_at(&[7; PAGE_BYTES], 0)?;
                file.sync_data()?;
                if tell.send(()).is_err() {
                    break;
                }
            }
            Page::Second => {
                file.write_all_at(&[7; PAGE_BYTES], PAGE_BYTES as u64)?;
                file.sync_data()?;
                answers.write_all(&[0])?;
            }
            Page::None => break,
        }
    }
    Ok(())
}
