//! Finds and reads the traces of the two sides of a comparison, and returns their figures run by run, as digests
//! (what is kept of a trace).

use crate::args::Diff as Arguments;
use crate::failure::Failure;
use crate::progress::{self, RunsRead};
use crate::trace;
use gapscope_comparison::diff::RunDigest;
use gapscope_trace::{rank_folders, read_manifest};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The runs of both sides, before and after.
pub struct Inputs {
    pub before: Vec<RunDigest>,
    pub after: Vec<RunDigest>,
    /// The paths of the traces of both sides, before and after.
    paths: [Vec<PathBuf>; 2],
    /// True if every trace could be read as it was written.
    pub whole: bool,
}

impl Inputs {
    /// Reads the traces that the arguments name.
    pub fn open(arguments: &Arguments) -> Result<Inputs, Failure> {
        let (before, after) = match arguments.traces.as_slice() {
            [before, after] => (runs_in(before)?, runs_in(after)?),
            _ => (all_runs(&arguments.before)?, all_runs(&arguments.after)?),
        };
        Inputs::read(&before, &after)
    }

    /// Returns the run of median time of each side ([`RunDigest::median`]).
    pub fn median(&self) -> [&Path; 2] {
        let median = |runs: &[RunDigest], side: usize| &*self.paths[side][RunDigest::median(runs)];
        [median(&self.before, 0), median(&self.after, 1)]
    }

    /// Reads the traces of both sides, one for each run, two at a time, with a progress line if that takes long.
    pub fn read(before: &[PathBuf], after: &[PathBuf]) -> Result<Inputs, Failure> {
        progress::while_reading_runs(before.len() + after.len(), |progress| {
            Inputs::read_showing(before, after, progress)
        })
    }

    /// Reads the traces by this thread and a second one, each taking the next that is left.
    fn read_showing(
        before: &[PathBuf],
        after: &[PathBuf],
        progress: &RunsRead,
    ) -> Result<Inputs, Failure> {
        let paths: Vec<&PathBuf> = before.iter().chain(after).collect();
        let next = AtomicUsize::new(0);
        let read = || {
            let mut own = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = paths.get(at) else {
                    return own;
                };
                own.push((at, digest(path, progress)));
                progress.add_run();
            }
        };
        let mut runs = std::thread::scope(|scope| {
            let beside = scope.spawn(read);
            let mut runs = read();
            match beside.join() {
                Ok(others) => runs.extend(others),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            runs
        });
        runs.sort_by_key(|(at, _)| *at);
        let runs: Result<Vec<_>, Failure> = runs.into_iter().map(|(_, run)| run).collect();
        let runs = runs?;
        let whole = runs.iter().all(|(_, whole)| *whole);
        let mut all = runs.into_iter().map(|(run, _)| run);
        Ok(Inputs {
            before: all.by_ref().take(before.len()).collect(),
            after: all.collect(),
            paths: [before.to_vec(), after.to_vec()],
            whole,
        })
    }
}

/// Returns the paths of the traces that `paths` name.
pub fn all_runs(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let runs: Result<Vec<_>, _> = paths.iter().map(|path| runs_in(path)).collect();
    Ok(runs?.concat())
}

/// Returns the traces that a path names: the path itself, or the traces in a folder that is not a trace.
fn runs_in(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !rank_folders(path).is_empty() {
        return Ok(vec![path.to_owned()]);
    }
    let Err(error) = read_manifest(path) else {
        return Ok(vec![path.to_owned()]);
    };
    let mut runs = Vec::new();
    if let Ok(entries) = std::fs::read_dir(path) {
        for entry in entries.flatten() {
            let run = entry.path();
            let is_trace = || !rank_folders(&run).is_empty() || read_manifest(&run).is_ok();
            match run.is_symlink() {
                true if run.join("trace.json").exists() => {
                    return Err(failure!(
                        "{} is a symbolic link, which may lead anywhere and is not followed: name the traces themselves",
                        run.display()
                    ));
                }
                false if is_trace() => runs.push(run),
                _ => {}
            }
        }
    }
    if runs.is_empty() {
        return Err(error.into());
    }
    runs.sort();
    Ok(runs)
}

/// Reads a run, which is one trace or the traces of its ranks. Returns its figures, and true if everything could be
/// read.
fn digest(path: &Path, progress: &RunsRead) -> Result<(RunDigest, bool), Failure> {
    let name = path.display().to_string();
    let ranks = rank_folders(path);
    let mut of_ranks = ranks
        .iter()
        .map(|(_, rank)| digest_trace(rank, &name, progress));
    let Some(first) = of_ranks.next() else {
        return digest_trace(path, &name, progress);
    };
    of_ranks.try_fold(first?, |(run, whole), rank| {
        let (rank, is_whole) = rank?;
        Ok((run.and_rank(rank), whole && is_whole))
    })
}

/// Reads one trace as a run called `name`, and returns the same as [`digest`].
fn digest_trace(
    path: &Path,
    name: &str,
    progress: &RunsRead,
) -> Result<(RunDigest, bool), Failure> {
    trace::read_in_pieces(path, &RunDigest::selection(), |opened| {
        let taken = |count| progress.add_dispatches(count);
        let (timeline, remarks) = opened.timeline_counting(None, taken)?;
        let mut run = RunDigest::new(&timeline, name, &remarks);
        run.note_surroundings(&timeline);
        Some((run, opened.trace.is_whole()))
    })
}
