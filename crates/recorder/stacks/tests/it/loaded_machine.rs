//! Programs on a machine whose processors are all busy.

use crate::watched::watch;
use gapscope_model::LossKind;
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

/// Each moment between the first and the last sample of a thread belongs to a sample or to one that is counted as missing, whether the
/// thread computes, sleeps, or does both in turn.
#[test]
fn samples_and_missing_ones_account_for_the_time() {
    const COMPUTES: &str = "end=$((SECONDS+2)); while ((SECONDS<end)); do :; done";
    const SLEEPS: &str = "exec sleep 1.5";
    const BOTH: &str =
        "for i in {1..40}; do read -t 0.02 <> <(:); for j in {1..2000}; do :; done; done";
    let _neighbours = BusyNeighbours::start(4);
    for program in [COMPUTES, SLEEPS, BOTH] {
        let watched = watch(Command::new("bash").args(["-c", &format!("echo; {program}")]));
        let samples = watched.of_main();
        let losses = watched.losses(&LossKind::StackSamples);
        let missing: u64 = losses.iter().map(|(count, _)| count).sum();
        let [first, .., last] = &samples[..] else {
            // The machine gave the sampling thread no two turns in time.
            continue;
        };
        let passed_ns = last.time_ns - first.time_ns;
        let of_samples: i64 = samples[1..].iter().map(|sample| sample.period_ns).sum();
        // Up to a tenth may be missing without a loss.
        let all_ns = of_samples + missing as i64 * 2_000_000;
        let share = all_ns as f64 / passed_ns as f64;
        eprintln!(
            "{} samples, {missing} missing, {share:.3} of the time: {program}",
            samples.len()
        );
        assert!(
            (0.6..1.4).contains(&share),
            "{share}: {losses:?}, {program}"
        );
    }
}
