//! Runs work on all cores, on threads that end before the functions return.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs each job once, the first ones first, and returns the results in the order of the jobs. A single job runs on
/// this thread. A panic of a job reaches the caller.
pub fn each<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(jobs.len());
    if threads < 2 {
        return jobs.into_iter().map(work).collect();
    }
    let (next, count) = (AtomicUsize::new(0), jobs.len());
    let jobs: Vec<Mutex<Option<J>>> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let done = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return done;
            }
            let job = jobs[at]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            done.extend(job.map(|job| (at, work(job))));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(done)).collect();
        let mut all = done();
        for other in others {
            let results = other.join();
            all.extend(results.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Runs two closures at once, the first on this thread. A panic of either reaches the caller.
pub fn both<A, B: Send>(here: impl FnOnce() -> A, beside: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let here = here();
        let beside = beside.join();
        let beside = beside.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (here, beside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done() {
        let here = std::thread::current().id();
        let id = || std::thread::current().id();
        let (one, other) = both(id, id);
        assert!(one == here && other != here);
    }

    #[test]
    fn every_job_is_done_once_and_results_are_in_order() {
        for count in [0, 1, 2, 1000] {
            let doubled = each((0..count).collect(), |job: usize| job * 2);
            assert_eq!(doubled, (0..count).map(|job| job * 2).collect::<Vec<_>>());
        }
    }
}
