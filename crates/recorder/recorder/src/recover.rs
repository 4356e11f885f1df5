//! Completes a trace whose session (the process of `gapscope record`) was killed: continues from its last checkpoint
//! (the state that the session kept in the trace's folder) with what is left in the spool (the events that the
//! program's processes wrote).

use crate::drain::{self, Drain, DrainedProcess};
use crate::keeper::KeptRecords;
use crate::{Error, keeper, nested_recordings, procfs};
use gapscope_spool::SpoolReader;
use gapscope_trace::manifest::Loss;
use std::path::Path;

/// The note on a trace whose session was killed. The keeper has written what the program did afterwards.
const SESSION_KILLED: &str = "The recording's session was killed; the trace was completed by `gapscope recover`, and how the command ended is not \
     known.";
/// The note on a trace whose keeper was killed with the session.
const KEEPER_KILLED: &str = "The process gapscope-keeper, which writes what a program does after the session's end, was ended too: what the \
     program did in the last moments before and afterwards is in no count.";
/// The note on a trace whose keeper could not write everything.
const KEEPER_FAILED: &str = "The process gapscope-keeper, which writes what a program does after the session's end, could not write everything, as on \
     a full disk: what the program did in the meantime may be in no count.";
/// The note on a trace whose session could not go on.
const SESSION_FAILED: &str = "The recording's session ended with an error, such as one of a full disk; the trace was completed by `gapscope \
     recover`. What the program did afterwards is in no count, and how the command ended is not known.";

/// The result of a recovery.
#[derive(Debug, Clone, PartialEq)]
pub enum Recovered {
    /// The trace was complete already, and nothing was changed.
    AlreadyComplete,
    /// The trace is complete now.
    Completed {
        /// The number of dispatches in the trace.
        dispatches: u64,
        /// The losses: things that were not recorded, with their numbers and reasons.
        losses: Vec<Loss>,
        /// A sentence on each recorded process that runs on.
        ran_on: Vec<String>,
    },
}

/// Completes the trace `folder` from its last checkpoint and what its spool still holds. Everything that is lost is
/// in the ledger, the trace's list of losses. With `force`, the trace is completed even while a recorded process
/// runs; what that process does later is lost.
///
/// # Errors
/// `folder` is not a trace, it holds no checkpoint, its session or (without `force`) a recorded process still runs,
/// or the trace cannot be written.
pub fn recover(folder: &Path, force: bool) -> Result<Recovered, Error> {
    let manifest = gapscope_trace::read_manifest(folder)?;
    if manifest.complete {
        drain::remove_leftovers(folder);
        return Ok(Recovered::AlreadyComplete);
    }
    let header = drain::read_header(folder)?;
    let running = |what, pid| Error::StillRunning {
        path: folder.to_owned(),
        what,
        pid,
    };
    if header.session_pid != std::process::id()
        && procfs::is_alive(header.session_pid, header.start_ns)
    {
        return Err(running("its gapscope record", header.session_pid));
    }
    if !force {
        let processes = SpoolReader::open(drain::spool_folder(folder)).new_processes()?;
        let alive = processes.iter().find_map(|process| {
            let number = procfs::pid_here(process)?;
            procfs::is_alive(number, process.start_ns()).then_some(number)
        });
        if let Some(alive) = alive {
            return Err(running("the recorded program", alive));
        }
    }
    let spool = drain::spool_folder(folder);
    let kept = keeper::dismiss(&spool);
    let why = match keeper::has_failed(&spool) {
        true => SESSION_FAILED,
        false => SESSION_KILLED,
    };
    let mut drain = Drain::resume(folder)?;
    drain.drain_all()?;
    let alive = drain.processes().iter().filter(|p| p.is_alive());
    let ran_on: Vec<String> = alive.map(DrainedProcess::leave_running).collect();
    let inner = nested_recordings::inner_traces(&spool);
    let finished = drain.finish(|manifest| {
        manifest.notes.extend(nested_recordings::note(&inner));
        manifest.notes.push(why.to_owned());
        match kept {
            KeptRecords::Whole => {}
            KeptRecords::Unwritten => manifest.notes.push(KEEPER_FAILED.to_owned()),
            KeptRecords::KeeperKilled => manifest.notes.push(KEEPER_KILLED.to_owned()),
        }
        manifest.notes.extend(ran_on.iter().cloned());
    })?;
    Ok(Recovered::Completed {
        dispatches: finished.dispatches,
        losses: finished.losses,
        ran_on,
    })
}
