//! What a store does when the disk fails, power is lost, files are damaged or two processes want the same directory.
//!
//! | file | what happens |
//! |---|---|
//! | `disk` | a full disk; writes and syncs that fail |
//! | `power` | power is lost: unsynced writes are gone or torn |
//! | `damage` | files are cut, bits are flipped |
//! | `owners` | two processes on one directory |
//! | `backups` | backup while writing; restore, also of what is no good |

mod backups;
mod damage;
mod disk;
mod lab;
mod owners;
mod power;
mod shim;
