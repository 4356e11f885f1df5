//! Programs in Python that measure their shares of time by their own clock.

use crate::watched::{
    Watched, newest, pythons, retry, script, shares, watch, watch_without_sessions,
};
use gapscope_model::{LossKind, ThreadState};
use std::path::Path;

/// Watches a program in each Python until the test passes.
fn in_each(text: &str, test: impl Fn(&Path, &Watched) -> Result<(), String>) {
    for python in pythons() {
        let (_folder, mut command) = script(&python, text);
        retry(|| test(&python, &watch(&mut command)));
    }
}

/// Watches a program in the newest Python until the test passes.
fn in_newest(text: &str, test: impl Fn(&Watched) -> Result<(), String>) {
    if let Some(python) = newest() {
        let (_folder, mut command) = script(&python, text);
        retry(|| test(&watch(&mut command)));
    }
}

/// On a loaded machine a thread that waits for a processor delays both clocks.
const POINTS: f64 = 5.0;

const BURN_AND_SLEEP: &str = r#"
import time
def burn(n):
    s = 0
    for i in range(n):
        s += i * i % 7
    return s
def alpha():
    return burn(60000)
def beta():
    return burn(25000)
def wait():
    time.sleep(0.008)
def deep(k, f):
    return f() if k == 0 else deep(k - 1, f)
print()
spent = {alpha: 0.0, beta: 0.0, wait: 0.0}
end = time.perf_counter() + 2.5
while (start := time.perf_counter()) < end:
    for f in spent:
        deep(20, f)
        now = time.perf_counter()
        spent[f] += now - start
        start = now
print(*[f"{f.__name__} {t}" for f, t in spent.items()])
"#;

/// Compares the true shares of the named parts with those of the samples; they may differ by `points`.
fn compare(watched: &Watched, parts: &'static [&'static str], points: f64) -> Result<(), String> {
    let found = shares(&watched.of_main(), |sample| {
        parts.iter().copied().find(|part| sample.is_in(part))
    });
    let all: f64 = parts.iter().map(|part| watched.number(part)).sum();
    for part in parts {
        let truth = watched.number(part) / all * 100.0;
        let share = found.get(part).copied().unwrap_or_default();
        if (truth - share).abs() > points {
            return Err(format!("{part}: {share:.1} %, and truly {truth:.1} %"));
        }
    }
    Ok(())
}

fn dropped(watched: &Watched) -> u64 {
    let losses = watched.losses(&LossKind::StackSamples);
    losses.iter().map(|(count, _)| count).sum()
}

#[test]
fn shares_of_time_are_those_of_the_programs_clock() {
    in_each(BURN_AND_SLEEP, |python, watched| {
        let samples = watched.of_main();
        if samples.len() < 150 {
            return Err(format!("{} samples", samples.len()));
        }
        let parts = &["alpha", "beta", "wait"];
        compare(watched, parts, POINTS).map_err(|why| format!("{}: {why}", python.display()))?;
        // A thread that has slept may wait long for a processor.
        let sleeping = samples.iter().filter(|sample| sample.is_in("wait"));
        let (mut slept, mut all) = (0, 0);
        for sample in sleeping {
            all += 1;
            slept += u32::from(sample.system_call == Some("clock_nanosleep"));
        }
        let burning = |sample: &&_| !Watched::is_waiting(sample);
        let burnt = samples.iter().filter(|sample| sample.is_in("burn"));
        let (burnt, ran) = (burnt.clone().count(), burnt.filter(burning).count());
        if slept * 10 < all * 4 || ran * 10 < burnt * 9 {
            return Err(format!("{slept} of {all} slept, {ran} of {burnt} ran"));
        }
        Ok(())
    });
}

impl Watched {
    fn is_waiting(sample: &crate::watched::Sample) -> bool {
        sample.state == ThreadState::Blocked
    }
}

#[test]
fn frames_are_the_lines_that_run_outermost_first() {
    for python in pythons() {
        let (folder, mut command) = script(&python, BURN_AND_SLEEP);
        let watched = watch(&mut command);
        let sample = watched.samples().find(|sample| sample.is_in("alpha"));
        let sample = sample.expect("a sample of alpha");
        let names = sample.python();
        assert_eq!(names[0], "<module>", "{}", python.display());
        assert_eq!(names.iter().filter(|name| **name == "deep").count(), 21);
        assert!(names.ends_with(&["alpha", "burn"]), "{names:?}");
        let alpha = &sample.frames[22];
        assert_eq!(
            (alpha.function.as_deref(), alpha.line),
            (Some("alpha"), Some(9))
        );
        let file = alpha.file.as_deref().unwrap();
        assert_eq!(file, folder.path().join("train.py").to_str().unwrap());
        let line = sample.frames[23].line.unwrap();
        assert!((4..=7).contains(&line), "line {line} of burn");
    }
}

/// Calls shorter than a microsecond, so that no two reads of the stack are equal, and generators, whose frames lie elsewhere.
const FAST_AND_SLOW: &str = r#"
import time
def leaf(x): return x + 1
def middle(x): return leaf(x) + leaf(x)
def top(x): return middle(x) + middle(x)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def numbers(n):
    for i in range(n): yield leaf(i)
def fast():
    for i in range(3000): top(i)
    fib(14)
    return sum(numbers(9000)) + sum(leaf(i) for i in range(9000))
def slow():
    s = 0
    for i in range(60000): s += i * i % 7
    return s
print()
spent = {fast: 0.0, slow: 0.0}
end = time.perf_counter() + 2.5
while (start := time.perf_counter()) < end:
    for f in spent:
        f()
        now = time.perf_counter()
        spent[f] += now - start
        start = now
print(*[f"{f.__name__} {t}" for f, t in spent.items()])
"#;

/// Samples are dropped only where calls are fast. Many drops would shift the shares against the program's clock.
#[test]
fn few_samples_are_dropped_and_fast_code_has_its_share() {
    in_each(FAST_AND_SLOW, |python, watched| {
        let (taken, dropped) = (watched.of_main().len() as u64, dropped(watched));
        eprintln!("{}: {taken} taken, {dropped} dropped", python.display());
        if taken < 150 || dropped * 20 > taken {
            let losses = watched.losses(&LossKind::StackSamples);
            return Err(format!("{taken} taken, {dropped} dropped: {losses:?}"));
        }
        for sample in watched.of_main() {
            let names = sample.python();
            let is_whole = names
                .first()
                .is_none_or(|outermost| *outermost == "<module>");
            let is_possible = is_whole
                && names.windows(2).all(|pair| match pair[1] {
                    "leaf" => {
                        matches!(pair[0], "middle" | "numbers" | "fast.<locals>.<genexpr>")
                    }
                    "middle" => pair[0] == "top",
                    "top" | "numbers" => pair[0] == "fast",
                    "fib" => matches!(pair[0], "fast" | "fib"),
                    _ => true,
                });
            if !is_possible {
                return Err(format!("{}: no such call: {names:?}", python.display()));
            }
        }
        let parts = &["fast", "slow"];
        compare(watched, parts, POINTS)
    });
}

const EVENT: &str = r#"
import threading, time
event = threading.Event()
def await_nothing():
    event.wait(0.05)
print()
end = time.perf_counter() + 1.5
while time.perf_counter() < end:
    await_nothing()
"#;

#[test]
fn a_blocked_thread_has_its_native_frames_below_those_of_python() {
    in_each(EVENT, |python, watched| {
        let samples = watched.of_main();
        let waits = |sample: &&_| Watched::is_waiting(sample) && sample.is_in("await_nothing");
        let blocked: Vec<_> = samples.iter().filter(waits).collect();
        let futex = blocked
            .iter()
            .filter(|s| s.system_call == Some("futex"))
            .count();
        let whole = |names: &[&str]| {
            let at = |part: &str| names.iter().position(|name| name.contains(part));
            let (lock, eval) = (at("acquire_lock_timed"), at("_PyEval_EvalFrame"));
            lock.is_some() && eval.is_none()
        };
        let native = blocked
            .iter()
            .filter(|sample| whole(&sample.native()))
            .count();
        if blocked.len() < 100 || futex * 10 < blocked.len() * 9 || native * 10 < futex * 8 {
            let example = blocked.first().map(|sample| sample.frames);
            let counts = (samples.len(), blocked.len(), futex, native);
            return Err(format!("{}: {counts:?}: {example:#?}", python.display()));
        }
        Ok(())
    });
}

const DIGEST: &str = r#"
import hashlib, time
data = bytes(range(256)) * 100000
def digest():
    return hashlib.sha256(data).digest()
print()
end = time.perf_counter() + 2.0
while time.perf_counter() < end:
    digest()
"#;

/// A kernel that may not record threads is reported once, and everything else is there.
#[test]
fn a_thread_that_runs_has_native_frames_where_the_kernel_records_them() {
    in_newest(DIGEST, |watched| {
        let losses = watched.losses(&LossKind::Stacks);
        let samples = watched.of_main();
        let digest: Vec<_> = samples
            .iter()
            .filter(|sample| sample.is_in("digest"))
            .collect();
        if digest.len() < 100 {
            return Err(format!("{} samples", digest.len()));
        }
        if !losses.is_empty() {
            eprintln!("not tested: {losses:?}");
            assert_eq!(losses.len(), 1);
            assert!(losses[0].1.contains("native frames of threads that run"));
            return Ok(());
        }
        let native: Vec<_> = digest.iter().filter(|s| !s.native().is_empty()).collect();
        let hashes = |sample: &&&&_| {
            let names: &crate::watched::Sample = sample;
            let of = |part| {
                names
                    .frames
                    .iter()
                    .any(|f| f.library.as_deref().is_some_and(|l| l.contains(part)))
            };
            let ends = !names
                .native()
                .iter()
                .any(|name| name.contains("_PyEval_EvalFrame"));
            (of("hashlib") || of("crypto") || of("sha2")) && ends
        };
        let hashing = native.iter().filter(hashes).count();
        if native.len() * 20 < digest.len() || hashing * 10 < native.len() * 7 {
            let example = native.iter().find(|sample| !hashes(sample));
            let counts = (digest.len(), native.len(), hashing);
            return Err(format!("{counts:?}: {:#?}", example.map(|s| s.frames)));
        }
        Ok(())
    });
}

const GIL: &str = r#"
import threading, time
def other():
    while time.perf_counter() < end:
        sum(i * i for i in range(1000))
def mine():
    while time.perf_counter() < end:
        sum(i * i for i in range(1000))
end = time.perf_counter() + 2.0
thread = threading.Thread(target=other)
thread.start()
print(threading.get_native_id())
print("other", thread.native_id)
mine()
"#;

#[test]
fn who_holds_the_interpreters_lock_is_said_and_sampled() {
    in_each(GIL, |python, watched| {
        let other = watched.number("other") as u32;
        let samples = watched.of_main();
        let waits = samples
            .iter()
            .filter(|s| s.gil_holder == Some(other))
            .count();
        let of_other: Vec<_> = watched.samples().filter(|s| s.thread == other).collect();
        let in_other = of_other.iter().filter(|s| s.is_in("other")).count();
        if waits * 100 < samples.len() * 15 || in_other * 10 < waits * 8 || waits < 20 {
            let counts = (samples.len(), waits, of_other.len(), in_other);
            return Err(format!("{}: {counts:?}", python.display()));
        }
        Ok(())
    });
}

const TWO_THREADS: &str = r#"
import threading, time
def first():
    while time.perf_counter() < end:
        time.sleep(0.01)
def second():
    while time.perf_counter() < end:
        sum(range(1000))
end = time.perf_counter() + 1.0
threads = [threading.Thread(target=f) for f in (first, second)]
for thread in threads: thread.start()
print(*[thread.native_id for thread in threads])
print("first", threads[0].native_id, "second", threads[1].native_id)
"#;

#[test]
fn two_threads_have_their_own_stacks() {
    in_newest(TWO_THREADS, |watched| {
        let is_held_by_main = watched.samples().any(|s| s.gil_holder == Some(watched.pid));
        assert!(
            watched.of_main().is_empty() || is_held_by_main,
            "the main thread is not followed"
        );
        for name in ["first", "second"] {
            let id = watched.number(name) as u32;
            let samples: Vec<_> = watched.samples().filter(|s| s.thread == id).collect();
            let own = samples.iter().filter(|sample| sample.is_in(name)).count();
            if own < 30 || own * 10 < samples.len() * 8 {
                return Err(format!("{name}: {own} of {}", samples.len()));
            }
        }
        Ok(())
    });
}

const MANY_THREADS: &str = r#"
import threading, time
def deep(k, f): return f() if k == 0 else deep(k - 1, f)
def work():
    while time.perf_counter() < end:
        time.sleep(0.001)
        sum(range(100))
end = time.perf_counter() + 4.0
threads = [threading.Thread(target=deep, args=(40, work)) for _ in range(48)]
for thread in threads: thread.start()
print(*[thread.native_id for thread in threads])
"#;

/// The bound holds for any number of threads and for slow builds.
#[test]
fn samples_of_many_threads_take_a_bounded_share_of_a_core() {
    let Some(python) = newest() else { return };
    let (_folder, mut command) = script(&python, MANY_THREADS);
    let clock = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    retry(|| {
        let (began, worked) = (std::time::Instant::now(), clock());
        // The sampler then runs in this process, whose clock is read.
        let watched = watch_without_sessions(&mut command);
        let share = (clock() - worked) / began.elapsed().as_secs_f64();
        let longest = watched.samples().map(|sample| sample.period_ns).max();
        eprintln!("{:.1} % of a core, {longest:?} ns", share * 100.0);
        // The first quarter of a second shows what samples cost.
        if share > 0.10 || longest < Some(4_000_000) {
            return Err(format!("{:.1} % of a core, {longest:?} ns", share * 100.0));
        }
        let mut seen: Vec<u32> = watched.samples().map(|sample| sample.thread).collect();
        seen.sort_unstable();
        seen.dedup();
        match seen.len() {
            48.. => Ok(()),
            some => Err(format!("{some} of 48 threads")),
        }
    });
}

const NAMES: &str = r#"
import time
class Modèle:
    def größe(self):
        time.sleep(0.5)
def 훈련(): Modèle().größe()
def main():
    𝛼 = lambda: 훈련()
    𝛼()
print()
main()
"#;

#[test]
fn names_of_every_script_are_read() {
    in_each(NAMES, |python, watched| {
        let found = watched.samples().any(|sample| {
            let expected = [
                "<module>",
                "main",
                "main.<locals>.<lambda>",
                "훈련",
                "Modèle.größe",
            ];
            sample.python() == expected
        });
        match found {
            true => Ok(()),
            false => Err(format!("{}", python.display())),
        }
    });
}

/// Code objects that take the addresses of others.
const MADE_AGAIN: &str = r#"
import time, gc
def run(k):
    space = {}
    exec(f"def f{k}():\n  import time\n  time.sleep(0.25)", space)
    space[f"f{k}"]()
print()
for k in range(8):
    run(k)
    gc.collect()
"#;

#[test]
fn code_that_takes_the_place_of_other_code_has_its_own_name() {
    in_each(MADE_AGAIN, |python, watched| {
        let samples = watched.of_main();
        for k in 0..8 {
            let count = samples.iter().filter(|s| s.is_in(&format!("f{k}"))).count();
            if !(20..=400).contains(&count) {
                return Err(format!("{}: f{k}: {count}", python.display()));
            }
        }
        Ok(())
    });
}

const EXEC: &str = r#"
import os, sys, time
def before(): time.sleep(0.5)
def after(): time.sleep(1.0)
if len(sys.argv) > 1:
    after()
else:
    print()
    before()
    os.execv(sys.executable, [sys.executable, __file__, "again"])
"#;

#[test]
fn a_program_that_becomes_another_is_read_again() {
    in_newest(EXEC, |watched| {
        let count = |name| {
            watched
                .samples()
                .filter(|sample| sample.is_in(name))
                .count()
        };
        let counts = (count("before"), count("after"));
        match counts {
            (50.., 50..) => Ok(()),
            counts => Err(format!("{counts:?}")),
        }
    });
}
