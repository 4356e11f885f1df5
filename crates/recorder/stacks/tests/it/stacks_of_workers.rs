//! Processes that work for a sampled one.

use crate::watched::{pythons, retry, script, watch};
use gapscope_stacks::Update;

const POOL: &str = r#"
import multiprocessing, time
def resize(k):
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        sum(range(1000))
    return k
def load(pool): return pool.map(resize, range(32))
def compute():
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        sum(range(1000))
if __name__ == "__main__":
    multiprocessing.set_start_method("METHOD")
    with multiprocessing.Pool(2) as pool:
        pool.map(resize, range(2))
        print()
        start = time.monotonic_ns()
        load(pool)
        waited = time.monotonic_ns()
        compute()
        print("start", start, "waited", waited, "end", time.monotonic_ns())
"#;

#[test]
fn workers_are_sampled_while_somebody_waits_for_them() {
    for (at, python) in pythons().into_iter().enumerate() {
        let method = ["fork", "spawn"][at % 2];
        let (_folder, mut command) = script(&python, &POOL.replace("METHOD", method));
        retry(|| {
            let watched = watch(&mut command);
            let workers: Vec<u32> = watched
                .updates
                .iter()
                .filter_map(|updates| match updates {
                    Update::Worker {
                        pid,
                        parent_pid,
                        executable,
                        start_ns,
                        ..
                    } => {
                        assert_eq!(*parent_pid, watched.pid);
                        assert!(executable.contains("python"), "{executable}");
                        assert!(*start_ns < watched.number("waited") as i64);
                        Some(*pid)
                    }
                    _ => None,
                })
                .collect();
            let (waited, end) = (watched.number("waited"), watched.number("end"));
            let of_workers: Vec<_> = watched
                .samples()
                .filter(|s| workers.contains(&s.pid))
                .collect();
            let resizing = of_workers.iter().filter(|s| s.is_in("resize")).count();
            // Some slack after the wait, because the two clocks are read at different moments.
            let late = of_workers.iter().filter(|sample| {
                let time = sample.time_ns as f64;
                time > waited + 0.1e9 && time < end - 0.1e9
            });
            let late = late.count();
            if workers.len() < 2 || resizing < 20 || late > 5 {
                let counts = (workers.len(), of_workers.len(), resizing, late);
                return Err(format!("{} {method}: {counts:?}", python.display()));
            }
            Ok(())
        });
    }
}
