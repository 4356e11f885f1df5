//! Imports many generated files of each format: `cargo run --profile fuzz -p fuzz --example structured -- 1000000 [FORMAT…]`.
//!
//! The numbers of cases count from 0, or from `--from N`, so that several processes can share the cases. `--seconds S` ends the
//! run of each format after so much time, and the line of the format says how many cases ran. The program needs no file beside
//! it. A case that breaks a promise is printed with its number, and the run goes on; the exit status is then 1. A case that
//! takes more than its processor time, or that ends the program, is the last one that `structured-FORMAT-FROM.case` in the
//! folder for temporary files names.

use fuzz::structured::{ALL, Format, MAX_CPU_TIME, Outcome, run};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The case that runs, and the processor time of the program when it began, in milliseconds.
static CASE: AtomicU64 = AtomicU64::new(0);
static BEGAN_MS: AtomicU64 = AtomicU64::new(0);
/// The message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// The most kinds of refusals that are printed.
const SHOWN_REFUSALS: usize = 6;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|count| count.parse().ok());
    let count: u64 = count.unwrap_or(1000);
    let mut rest: Vec<String> = arguments.collect();
    let from = option(&mut rest, "--from").unwrap_or(0);
    let limit = option(&mut rest, "--seconds").map_or(Duration::MAX, Duration::from_secs);
    let chosen =
        |format: &&Format| rest.is_empty() || rest.iter().any(|name| name == format.importer.name);
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(|held| held.into_inner()) = panic.to_string();
    }));
    std::thread::spawn(watch);
    let mut broken = 0;
    for format in ALL.iter().filter(chosen) {
        broken += run_format(format, from..from + count, limit);
    }
    ExitCode::from(u8::from(broken > 0))
}

/// Takes an option with its number out of the arguments.
fn option(arguments: &mut Vec<String>, name: &str) -> Option<u64> {
    let at = arguments.iter().position(|word| word == name)?;
    let end = arguments.len().min(at + 2);
    arguments.drain(at..end).nth(1)?.parse().ok()
}

/// Runs the cases of a format until the time is up, prints what became of them, and returns how many broke a promise.
fn run_format(format: &Format, cases: std::ops::Range<u64>, limit: Duration) -> u64 {
    let name = format.importer.name;
    let path = std::env::temp_dir().join(format!("structured-{name}-{}.case", cases.start));
    let began = Instant::now();
    let present =
        std::fs::File::create(&path).expect("the folder for temporary files can be written");
    let (mut whole, mut imported) = (0_u64, 0_u64);
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    // The first case of each message, and how many there are.
    let mut broken: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let (started_ms, mut longest_ms) = (cpu_ms(), 0);
    let mut ran = 0;
    for case in cases.clone().take_while(|_| began.elapsed() < limit) {
        ran += 1;
        let _ = present.write_all_at(format!("{case:020}").as_bytes(), 0);
        BEGAN_MS.store(cpu_ms(), Ordering::Relaxed);
        CASE.store(case, Ordering::Relaxed);
        match std::panic::catch_unwind(|| run(format, case)) {
            Ok(Outcome::Whole) => whole += 1,
            Ok(Outcome::Imported) => imported += 1,
            Ok(Outcome::Refused(reason)) => *refused.entry(kind(&reason)).or_default() += 1,
            Err(_) => {
                let text = PANIC
                    .lock()
                    .unwrap_or_else(|held| held.into_inner())
                    .clone();
                let known = broken.entry(place(&text)).or_insert((case, 0));
                known.1 += 1;
                if known.1 == 1 {
                    eprintln!("{name}: case {case}: {text}");
                }
            }
        }
        longest_ms = longest_ms.max(cpu_ms() - BEGAN_MS.load(Ordering::Relaxed));
    }
    let all_refused: u64 = refused.values().sum();
    let faults: u64 = broken.values().map(|(_, count)| count).sum();
    println!(
        "{name}: {ran} cases from {} on in {} s of processor time, {longest_ms} ms at most: {whole} whole, {imported} with odd values, {all_refused} refused, {faults} broke a promise",
        cases.start,
        (cpu_ms() - started_ms) / 1000,
    );
    let mut refused: Vec<(u64, String)> = refused
        .into_iter()
        .map(|(kind, count)| (count, kind))
        .collect();
    refused.sort_unstable_by(|a, b| b.cmp(a));
    for (count, kind) in refused.iter().take(SHOWN_REFUSALS) {
        println!("  {count} refused: {kind}");
    }
    for (place, (case, count)) in broken {
        println!("  {count} times, first case {case}: {place}");
    }
    faults
}

/// Returns the place of a panic from its message.
fn place(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

/// Returns a sentence without its words with digits or paths, which differ from case to case.
fn kind(sentence: &str) -> String {
    let is_kept =
        |word: &&str| !word.contains(|letter: char| letter.is_ascii_digit() || letter == '/');
    sentence
        .split(' ')
        .filter(is_kept)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Ends the program where a case takes too long.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let took_ms = cpu_ms().saturating_sub(BEGAN_MS.load(Ordering::Relaxed));
        if took_ms > MAX_CPU_TIME.as_millis() as u64 {
            eprintln!(
                "case {}: took {took_ms} ms of processor time",
                CASE.load(Ordering::Relaxed)
            );
            std::process::exit(2);
        }
    }
}

/// Returns the processor time of this program in milliseconds.
fn cpu_ms() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the function writes to the structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
