//! Proving that a store on disk keeps what it acknowledged, whatever happens to the process or the disk.
//!
//! | file | owns |
//! |---|---|
//! | `protocol` | the lines a worker writes about what it does, and the actions they name |
//! | `worker` | the process that is going to die: writers at full speed |
//! | `process` | starting a worker, listening to it, killing it |
//! | `contents` | everything a store holds, read and checked for consistency within itself |
//! | `ledger` | what a worker said, and whether the contents agree with it |
//! | `driver` | kill, reopen, compare, again |

pub mod contents;
pub mod driver;
pub mod ledger;
pub mod process;
pub mod protocol;
pub mod worker;
