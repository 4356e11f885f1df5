//! Runs programs while they are sampled, and finds the interpreters that the tests need.

use gapscope_model::{FrameKind, LossKind, ThreadState};
use gapscope_stacks::{Frame, Options, Stacks, Update};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The messages about a program, and its own output.
pub struct Watched {
    pub pid: u32,
    /// The program's output after its first line.
    pub printed: String,
    pub updates: Vec<Update>,
    stacks: HashMap<u32, Vec<Frame>>,
}

/// A sample with its frames.
#[derive(Debug)]
pub struct Sample<'a> {
    pub time_ns: i64,
    pub pid: u32,
    pub thread: u32,
    pub frames: &'a [Frame],
    pub state: ThreadState,
    pub period_ns: i64,
    pub system_call: Option<&'a str>,
    pub gil_holder: Option<u32>,
}

impl Sample<'_> {
    /// Returns the Python functions, outermost first.
    pub fn python(&self) -> Vec<&str> {
        self.functions(FrameKind::Python)
    }

    pub fn native(&self) -> Vec<&str> {
        self.functions(FrameKind::Native)
    }

    fn functions(&self, kind: FrameKind) -> Vec<&str> {
        let of_kind = self.frames.iter().filter(|frame| frame.kind == kind);
        of_kind
            .map(|frame| frame.function.as_deref().unwrap_or("?"))
            .collect()
    }

    pub fn is_in(&self, function: &str) -> bool {
        self.python().contains(&function)
    }
}

impl Watched {
    pub fn samples(&self) -> impl Iterator<Item = Sample<'_>> {
        self.updates.iter().filter_map(|updates| match updates {
            Update::Sample {
                time_ns,
                pid,
                thread,
                stack,
                state,
                period_ns,
                system_call,
                gil_holder,
            } => Some(Sample {
                time_ns: *time_ns,
                pid: *pid,
                thread: *thread,
                frames: stack.map_or(&[], |stack| self.stacks[&stack].as_slice()),
                state: *state,
                period_ns: *period_ns,
                system_call: system_call.as_deref(),
                gil_holder: *gil_holder,
            }),
            _ => None,
        })
    }

    /// Returns the samples of the main thread.
    pub fn of_main(&self) -> Vec<Sample<'_>> {
        let main = |sample: &Sample| sample.pid == self.pid && sample.thread == self.pid;
        self.samples().filter(main).collect()
    }

    /// Returns the losses of a kind, with their counts.
    pub fn losses(&self, of: &LossKind) -> Vec<(u64, String)> {
        let loss = |updates: &Update| match updates {
            Update::Loss {
                kind,
                count,
                reason,
                ..
            } if kind == of => Some((*count, reason.to_string())),
            _ => None,
        };
        self.updates.iter().filter_map(loss).collect()
    }

    /// Returns the number that follows a word in the program's output.
    pub fn number(&self, word: &str) -> f64 {
        let mut words = self.printed.split_whitespace();
        words.find(|found| *found == word).expect(word);
        words.next().expect(word).parse().expect(word)
    }
}

/// Returns the shares of the sampled time in percent, by the name that `of` gives a sample; samples without a name do not count.
pub fn shares<'a>(
    samples: &[Sample<'a>],
    of: impl Fn(&Sample<'a>) -> Option<&'static str>,
) -> HashMap<&'static str, f64> {
    let mut sums: HashMap<&str, f64> = HashMap::new();
    for (at, sample) in samples.iter().enumerate() {
        let Some(name) = of(sample) else { continue };
        let most = 2 * sample.period_ns;
        let half = |other: Option<&Sample>| {
            let distance = other.map_or(sample.period_ns, |o| (o.time_ns - sample.time_ns).abs());
            (distance / 2).min(most) as f64
        };
        let before = at.checked_sub(1).map(|before| &samples[before]);
        *sums.entry(name).or_default() += half(before) + half(samples.get(at + 1));
    }
    let all: f64 = sums.values().sum();
    sums.values_mut().for_each(|sum| *sum *= 100.0 / all);
    sums
}

/// Runs a program to its end and samples the threads that its first line names, or its main thread where that line is empty.
pub fn watch(command: &mut Command) -> Watched {
    watch_below(Path::new("/"), start(command))
}

/// Does what [`watch`] does as on a kernel that does not schedule by sessions.
pub fn watch_without_sessions(command: &mut Command) -> Watched {
    let child = start(command);
    // This folder has the program, and none of the kernel's settings.
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(root.path().join("proc")).expect("a folder");
    for name in [&child.id().to_string(), "thread-self"] {
        let name = format!("proc/{name}");
        let link = root.path().join(&name);
        std::os::unix::fs::symlink(Path::new("/").join(name), link).expect("a link");
    }
    watch_below(root.path(), child)
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).spawn().expect("it starts")
}

/// Samples a program that was just started; `root` is the folder that holds `proc`.
fn watch_below(root: &Path, mut child: Child) -> Watched {
    let pid = child.id();
    let root = root.to_owned();
    let mut stacks = Stacks::start(Options {
        root,
        ..Options::default()
    });
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    let mut first = String::new();
    output.read_line(&mut first).expect("its first line");
    let mut threads: Vec<u32> = first
        .split_whitespace()
        .map(|id| id.parse().unwrap())
        .collect();
    if threads.is_empty() {
        threads.push(pid);
    }
    for thread in threads {
        stacks.follow(pid, thread);
    }
    let mut printed = String::new();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| measure_waits(pid, &has_ended));
        output.read_to_string(&mut printed).expect("its output");
        has_ended.store(true, Relaxed);
    });
    child.wait().expect("it ends");
    let began = Instant::now();
    let updates = stacks.finish();
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "the end took long"
    );
    let mut known = HashMap::new();
    for updates in &updates {
        match updates {
            Update::Stack { id, frames } => {
                assert!(known.insert(*id, frames.clone()).is_none(), "printed twice");
            }
            Update::Sample {
                stack: Some(stack), ..
            } => assert!(known.contains_key(stack), "a stack before its sample"),
            _ => {}
        }
    }
    Watched {
        pid,
        printed,
        updates,
        stacks: known,
    }
}

const TRIES: usize = 5;
/// The machine is too busy where threads have waited for a processor for this share of the time in which they could run.
const BUSY: f64 = 0.2;
/// The machine is too busy where its processors ran other virtual machines for this share of the time in which they had something to run:
/// to wake a thread then takes milliseconds. Elsewhere the share is below 0.01.
const STOLEN: f64 = 0.05;

/// The machine was too busy since the last try began.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// Measures how long the threads of a process and of this one wait for processors.
fn measure_waits(pid: u32, has_ended: &AtomicBool) {
    let mut times = HashMap::new();
    let before = processor_ticks();
    while !has_ended.load(Relaxed) {
        let folders = [pid, std::process::id()].map(|pid| format!("/proc/{pid}/task"));
        let tasks = folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok());
        for task in tasks.flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("schedstat"));
            let text = text.unwrap_or_default();
            let mut numbers = text
                .split(' ')
                .map_while(|number| number.parse::<f64>().ok());
            if let (Some(ran), Some(waited)) = (numbers.next(), numbers.next()) {
                times.insert(task.path(), (ran, waited));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let waited: f64 = times.values().map(|(_, waited)| waited).sum();
    let ran: f64 = times.values().map(|(ran, _)| ran).sum();
    let after = processor_ticks();
    let [ran_here, stolen] = [0, 1].map(|at| after[at] - before[at]);
    let is_stolen = stolen > 0.0 && stolen >= STOLEN * (ran_here + stolen);
    if waited >= BUSY * (ran + waited) || is_stolen {
        IS_BUSY.store(true, Relaxed);
    }
}

/// Returns for how many ticks the processors have run something, and for how many the host of a virtual machine has run something else
/// while they had something to run (proc(5), `/proc/stat`: user, nice, system; steal).
fn processor_ticks() -> [f64; 2] {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = stat.lines().next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = all.skip(1).map_while(|tick| tick.parse().ok()).collect();
    let sum = |places: &[usize]| places.iter().filter_map(|at| ticks.get(*at)).sum();
    [sum(&[0, 1, 2]), sum(&[7])]
}

/// Tries a test again until it passes; an error of `test` says what was wrong. The test fails unless the machine was too busy each time.
pub fn retry(mut test: impl FnMut() -> Result<(), String>) {
    let mut failures = Vec::new();
    for _ in 0..TRIES {
        IS_BUSY.store(false, Relaxed);
        match test() {
            Ok(()) => return,
            Err(why) => failures.push((IS_BUSY.load(Relaxed), why)),
        }
    }
    let is_busy = failures.iter().all(|(is_busy, _)| *is_busy);
    assert!(is_busy, "each time: {failures:#?}");
    eprintln!("not judged, because the machine was too busy: {failures:#?}");
}

/// Returns the updates until there are enough, however slow the machine is.
pub fn await_updates(stacks: &Stacks, are_enough: impl Fn(&[Update]) -> bool) -> Vec<Update> {
    let began = Instant::now();
    let mut updates = Vec::new();
    while !are_enough(&updates) {
        assert!(began.elapsed() < Duration::from_secs(60), "{updates:?}");
        std::thread::sleep(Duration::from_millis(10));
        updates.append(&mut stacks.take());
    }
    updates
}

/// Returns whether there are many samples of a process.
pub fn are_many(updates: &[Update], pid: u32) -> bool {
    let is_of_pid =
        |update: &&Update| matches!(update, Update::Sample { pid: of, .. } if *of == pid);
    updates.iter().filter(is_of_pid).count() > 50
}

/// Notes that a tool is missing, which fails the test where `GAPSCOPE_REQUIRE_CLIENTS` says that all tools are installed.
pub fn missing(tool: &str) {
    let required = std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
    assert!(!required, "there is no {tool}");
    eprintln!("not tested: there is no {tool}");
}

/// Returns the interpreters of this machine that can be read, one of each minor version.
pub fn pythons() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = (11..=15).filter_map(python).collect();
    found.dedup();
    if found.is_empty() {
        missing("Python 3.11 to 3.15 in PATH or of pyenv");
    }
    found
}

/// Returns the newest of them.
pub fn newest() -> Option<PathBuf> {
    pythons().pop()
}

/// Finds Python 3.`minor`.
pub fn python(minor: u32) -> Option<PathBuf> {
    let name = format!("python3.{minor}");
    let of_pyenv = std::env::var_os("HOME").and_then(|home| {
        let versions = Path::new(&home).join(".pyenv/versions");
        let versions = std::fs::read_dir(versions).ok()?;
        let mut programs = versions
            .flatten()
            .map(|version| version.path().join("bin").join(&name));
        programs.find(|program| program.exists())
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut in_path = std::env::split_paths(&path).map(|folder| folder.join(&name));
    // The programs that pyenv puts in PATH are scripts.
    let is_program = |program: &PathBuf| {
        let mut magic = [0; 4];
        let file = std::fs::File::open(program);
        file.is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"\x7fELF"
    };
    of_pyenv.or_else(|| in_path.find(is_program))
}

/// Writes a script into a folder of its own, and returns a command that runs it.
pub fn script(python: &Path, text: &str) -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("train.py");
    std::fs::write(&path, text).expect("the program is written");
    let mut command = Command::new(python);
    command.arg("-u").arg(path);
    (folder, command)
}
