//! Samples the stacks of a program and prints where its main thread was (the 20 most frequent stacks with their
//! shares), and what that cost: `watch [RATE] -- PROGRAM ARGUMENTS..`.
//!
//! With `TOGGLE` set, sampling pauses in every second quarter of a second of the monotonic clock, so that the program can compare.

use gapscope_stacks::{Options, Stacks, Update};
use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let split = arguments.iter().position(|argument| argument == "--");
    let (own, program) = arguments.split_at(split.expect("a program after `--`"));
    let rate_hz = own
        .first()
        .map_or(500, |rate| rate.parse().expect("a rate"));
    let mut child = Command::new(&program[1])
        .args(&program[2..])
        .spawn()
        .expect("the program starts");
    let mut stacks = Stacks::start(Options {
        rate_hz,
        ..Options::default()
    });
    stacks.follow(child.id(), child.id());
    let (began, worked) = (Instant::now(), cpu());
    let toggles = std::env::var_os("TOGGLE").is_some();
    let mut heard = Vec::new();
    while child.try_wait().expect("it can be waited for").is_none() {
        if toggles {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            stacks.pause((now.tv_sec * 4 + now.tv_nsec / 250_000_000) % 2 == 1);
        }
        std::thread::sleep(Duration::from_millis(5));
        heard.append(&mut stacks.take());
    }
    let (took, worked) = (began.elapsed(), cpu() - worked);
    heard.append(&mut stacks.finish());
    let mut names = HashMap::new();
    let mut lines: HashMap<(u32, String), u64> = HashMap::new();
    let (mut samples, mut period) = (0_u64, 0);
    for heard in heard {
        match heard {
            Update::Stack { id, frames } => {
                let name = |frame: &gapscope_stacks::Frame| {
                    let function = frame.function.as_deref().unwrap_or("?").to_owned();
                    match frame.line {
                        Some(line) => format!("{function}:{line}"),
                        None => function,
                    }
                };
                let names_of: Vec<String> = frames.iter().rev().take(6).map(name).collect();
                names.insert(id, names_of.join(" < "));
            }
            Update::Sample {
                pid,
                stack,
                state,
                period_ns,
                system_call,
                gil_holder,
                ..
            } => {
                let stack = stack.map_or("(no stack)", |stack| &names[&stack]);
                let mut line = format!("{} {stack}", state.as_str());
                if let Some(call) = system_call {
                    line += &format!(" [{call}]");
                }
                if gil_holder.is_some() {
                    line += " (waits for the GIL)";
                }
                *lines.entry((pid, line)).or_default() += 1;
                samples += 1;
                period += period_ns;
            }
            other => eprintln!("{other:?}"),
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((pid, line), count) in lines.iter().take(20) {
        println!(
            "{pid} {:5.1} %  {line}",
            *count as f64 * 100.0 / samples as f64
        );
    }
    println!(
        "{samples} samples in {:.2} s, mean period {:.2} ms; {:.2} % of a core",
        took.as_secs_f64(),
        period as f64 / samples.max(1) as f64 / 1e6,
        worked.as_secs_f64() * 100.0 / took.as_secs_f64()
    );
}

/// Returns the processor time of this process, and of the one in which the sampler may run.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let mut all = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten() {
        let path = task.expect("a thread").path().join("children");
        for child in std::fs::read_to_string(path).unwrap_or_default().split(' ') {
            let read = |file| std::fs::read_to_string(format!("/proc/{child}/{file}"));
            if read("comm").is_ok_and(|name| name == "stacks\n") {
                let ran = read("schedstat").unwrap_or_default();
                let ran = ran.split(' ').next().and_then(|ns| ns.parse().ok());
                all += Duration::from_nanos(ran.unwrap_or(0));
            }
        }
    }
    all
}
