//! Programs on a machine whose processors are all busy.

use crate::watched::{Watched, watch, watch_without_sessions};
use gapscope_model::LossKind;
use gapscope_stacks::check_permissions;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, Command};

/// Processes that keep processors busy until they are dropped.
struct BusyNeighbours(Vec<Child>);

impl BusyNeighbours {
    fn start(count: usize) -> BusyNeighbours {
        let busy = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
        };
        BusyNeighbours((0..count).map(|_| busy().expect("it starts")).collect())
    }
}

impl Drop for BusyNeighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const COMPUTES: &str = "end=$((SECONDS+2)); while ((SECONDS<end)); do :; done";
const SLEEPS: &str = "exec sleep 1.5";
const BOTH: &str =
    "for i in {1..40}; do read -t 0.02 <> <(:); for j in {1..2000}; do :; done; done";
/// Four more threads of the program compute, so that its session or control group is busy too.
const COMPUTES_BESIDE_OTHERS: &str = "end=$((SECONDS+2)); for i in 1 2 3 4; do while ((SECONDS<end)); do :; done & done; while ((SECONDS<end)); do :; done; wait";

/// The shares of the time from the first sample of the main thread to the last: what samples stand for, and the least and the most that
/// the samples counted as missing can stand for. `None` where there are no two samples.
///
/// A missing sample stands for the period at its time. That period is the requested one, or longer where samples are dear, as under an
/// emulator; the longest is known from the samples that a system call does not explain.
fn covered_and_missing(watched: &Watched) -> Option<(f64, RangeInclusive<f64>)> {
    let samples = watched.of_main();
    let [first, .., last] = &samples[..] else {
        return None;
    };
    let passed_ns = (last.time_ns - first.time_ns) as f64;
    let covered_ns: i64 = samples[1..].iter().map(|sample| sample.period_ns).sum();
    let losses = watched.losses(&LossKind::StackSamples);
    let missing: u64 = losses.iter().map(|(count, _)| count).sum();
    let requested_ns = 2_000_000;
    let outside_calls = samples.iter().filter(|s| s.system_call.is_none());
    let longest_ns = outside_calls.map(|sample| sample.period_ns).max();
    let share = |period_ns: i64| missing as f64 * period_ns as f64 / passed_ns;
    let shares = (
        covered_ns as f64 / passed_ns,
        share(requested_ns)..=share(longest_ns.unwrap_or_default().max(requested_ns)),
    );
    eprintln!("{} samples, {shares:?} {losses:?}", samples.len());
    Some(shares)
}

/// Each moment between the first and the last sample of a thread belongs to a sample or to one that is counted as missing, whether the
/// thread computes, sleeps, or does both in turn.
#[test]
fn samples_and_missing_ones_account_for_the_time() {
    let _neighbours = BusyNeighbours::start(4);
    for program in [COMPUTES, SLEEPS, BOTH, COMPUTES_BESIDE_OTHERS] {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("echo; {program}")]);
        for watched in [watch(&mut command), watch_without_sessions(&mut command)] {
            // The machine may give the sampling thread no two turns in time.
            let Some((covered, missing)) = covered_and_missing(&watched) else {
                continue;
            };
            // Up to a tenth may be missing without a loss.
            let accounted = covered + missing.end() > 0.6 && covered + missing.start() < 1.4;
            assert!(accounted, "{covered} and {missing:?} of {program}");
        }
    }
}

/// The kernel records a thread that computes, whether or not the sampling thread has its turns.
#[test]
fn a_thread_that_computes_or_sleeps_has_samples_for_most_of_its_time() {
    let allowed = check_permissions(std::process::id(), Path::new("/"));
    if let Err(why) = allowed.running {
        return eprintln!("not tested: {why}");
    }
    let _neighbours = BusyNeighbours::start(4);
    for program in [COMPUTES, SLEEPS, COMPUTES_BESIDE_OTHERS] {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("echo; {program}")]);
        for watched in [watch(&mut command), watch_without_sessions(&mut command)] {
            // The machine may give the sampling thread no two turns in time.
            let Some((covered, missing)) = covered_and_missing(&watched) else {
                continue;
            };
            assert!(
                covered >= 0.5,
                "{covered} of {program}, {missing:?} missing"
            );
        }
    }
}
