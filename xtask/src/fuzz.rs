//! `cargo xtask fuzz`: runs the targets of `fuzz/` under libFuzzer, which makes up inputs and keeps those that
//! reach new code.
//!
//! Each target feeds its input to one part of gapscope. The compiler in use measures the code that an input reaches;
//! no nightly compiler is needed. The package's tests run the kept inputs without libFuzzer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{command, packages, toolchain, web};

/// Flags with which the compiler counts the edges (jumps in the code) that an input takes and notes compared
/// values. `cargo fuzz` passes the same flags.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares";

#[path = "../../fuzz/src/seeds.rs"]
mod seeds;

#[derive(Args)]
pub struct Options {
    /// Inputs for each target; 0: until it is stopped
    #[arg(long, default_value_t = 100_000)]
    runs: u64,
    /// Where chance begins: the same number gives the same inputs
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Afterwards, keeps in fuzz/corpus the smallest inputs that reach all that was reached
    #[arg(long)]
    keep: bool,
    /// Only these: manifest, table, rows, events, spool, xctrace, capture, database, perfetto, xplane, ggml, memory_snapshot, counters_csv, kineto, interpreter
    targets: Vec<String>,
}

/// Runs the chosen targets, or all. A target that finds a fault does not keep the others from running.
pub fn run(options: &Options) -> Result<()> {
    let known = targets()?;
    let mut chosen = options.targets.clone();
    if let Some(unknown) = chosen.iter().find(|target| !known.contains(target)) {
        bail!("no target {unknown}: there are {}", known.join(", "));
    }
    if chosen.is_empty() {
        chosen = known;
    }
    let programs = build(&chosen)?;
    let mut failed = Vec::new();
    for target in &chosen {
        let fuzzer = Fuzzer::new(target, &programs)?;
        if let Err(error) = fuzzer.run(options) {
            eprintln!("{error:#}");
            failed.push(target.as_str());
        }
        if options.keep {
            fuzzer.keep()?;
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => bail!(
            "inputs that break a promise were found by {}",
            failed.join(", ")
        ),
    }
}

/// Returns the names of the targets, each of which is a program in a file of its own.
fn targets() -> Result<Vec<String>> {
    let files = web::files(Path::new("fuzz/fuzz_targets"))?;
    let names = files.iter().filter_map(|file| file.strip_suffix(".rs"));
    Ok(names.map(str::to_owned).collect())
}

/// Builds the targets and returns the folder of their programs.
fn build(targets: &[String]) -> Result<PathBuf> {
    if !command::succeeds("c++", &["--version"]) {
        packages::install(&["g++"], false)?;
    }
    let triple = toolchain::this_machine()?;
    // If cargo gets a `--target`, it compiles build scripts without the flags.
    let mut cargo = command::cargo(["build", "--package=fuzz", "--profile=fuzz"]);
    cargo
        .args(["--features=libfuzzer", &format!("--target={triple}")])
        .env("RUSTFLAGS", COVERAGE);
    for target in targets {
        cargo.arg(format!("--bin={target}"));
    }
    command::run(&mut cargo)?;
    Ok(crate::target(&triple).join("fuzz"))
}

/// The program and files of one target.
struct Fuzzer<'a> {
    target: &'a str,
    program: PathBuf,
    /// The folder of inputs in the repository.
    kept: PathBuf,
    /// The folder with copies of the fixtures that are inputs.
    fixtures: PathBuf,
    /// The folder of inputs that this machine found and that are not in the repository.
    found: PathBuf,
    /// The folder of everything else about the target, such as its log.
    folder: PathBuf,
}

impl Fuzzer<'_> {
    fn new<'a>(target: &'a str, programs: &Path) -> Result<Fuzzer<'a>> {
        let folder = std::path::absolute(crate::target("fuzz"))?.join(target);
        let fuzzer = Fuzzer {
            target,
            program: programs.join(target),
            kept: Path::new(seeds::CORPUS).join(target),
            fixtures: folder.join("fixtures"),
            found: folder.join("found"),
            folder,
        };
        for folder in [&fuzzer.kept, &fuzzer.found] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        fuzzer.copy_fixtures(&fuzzer.fixtures)?;
        Ok(fuzzer)
    }

    /// Replaces `folder` by a folder with copies of the fixtures, and returns the names of the copies.
    fn copy_fixtures(&self, folder: &Path) -> Result<Vec<String>> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let fixtures = seeds::fixtures(Path::new("."), self.target);
        for (number, fixture) in fixtures.iter().enumerate() {
            fs::copy(fixture, folder.join(format!("fixture-{number}")))?;
        }
        web::files(folder)
    }

    /// Returns the command with the limits of one input: 64 KiB, 20 s and 2 GiB of memory.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-max_len=65536", "-timeout=20", "-rss_limit_mb=2048"]);
        command
    }

    /// Runs the target. Its output goes to a log, of which the result is printed; a fault is an error that names its
    /// input.
    fn run(&self, options: &Options) -> Result<()> {
        let log = self.folder.join("log");
        let mut command = self.command();
        command
            .arg(format!("-seed={}", options.seed))
            .arg(format!("-artifact_prefix={}/", self.folder.display()))
            // Computing the weights of inputs by rare features takes longer than running an input.
            .args(["-print_final_stats=1", "-entropic=0"])
            .args([&self.found, &self.kept, &self.fixtures]);
        if options.runs > 0 {
            command.arg(format!("-runs={}", options.runs));
        }
        let file =
            fs::File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        eprintln!("+ {}", command::shown(&command));
        let status = command.stderr(file).status().context("cannot start it")?;
        let text = fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        if status.success() {
            eprintln!("  {}", summary(&text));
            return Ok(());
        }
        let (reason, input) = fault(self.target, &text);
        bail!(
            "{}: {reason}\n  log: {}\n  run it again: {} {input}",
            self.target,
            log.display(),
            self.program.display(),
        )
    }

    /// Replaces the kept inputs by the smallest inputs, kept or found, that together reach the code that the fixtures do
    /// not reach.
    fn keep(&self) -> Result<()> {
        let smallest = self.folder.join("smallest");
        // libFuzzer adds to this folder the inputs that reach more than those in it.
        let fixtures = self.copy_fixtures(&smallest)?;
        let mut command = self.command();
        command
            .arg("-merge=1")
            .args([&smallest, &self.kept, &self.found]);
        command.stderr(fs::File::create(self.folder.join("merge-log"))?);
        command::run(&mut command)?;
        for fixture in fixtures {
            fs::remove_file(smallest.join(fixture))?;
        }
        let names = web::files(&smallest)?;
        for name in &names {
            fs::copy(smallest.join(name), self.kept.join(name))?;
        }
        // Inputs that once showed a fault stay, whatever they reach.
        for entry in fs::read_dir(&self.kept)? {
            let entry = entry?;
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with("fault-") && !smallest.join(&name).exists() {
                fs::remove_file(entry.path())?;
            }
        }
        let count = names.len();
        eprintln!("  {count} inputs are kept in {}", self.kept.display());
        Ok(())
    }
}

/// Returns the reason of a failure and the file of its input from the log: the target's own message, or else
/// libFuzzer's.
fn fault<'a>(target: &str, log: &'a str) -> (&'a str, &'a str) {
    let own = format!("{target}: ");
    let said = |line: &&str| line.starts_with(&own) || line.contains("ERROR: ");
    let reason = log.lines().find(said).unwrap_or("it failed: see the log");
    let mut inputs = log
        .lines()
        .filter_map(|line| line.split_once("Test unit written to "));
    (
        reason,
        inputs.next().map_or("INPUT", |(_, path)| path.trim()),
    )
}

/// Returns a line with the number of inputs, their rate, the edges and the memory, from libFuzzer's log.
fn summary(log: &str) -> String {
    let stat = |name: &str| {
        let line = log
            .lines()
            .rfind(|line| line.starts_with(&format!("stat::{name}:")));
        line.and_then(|line| line.rsplit(' ').next()).unwrap_or("?")
    };
    let edges = log.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("cov: ")?;
        rest.split(' ').next()
    });
    format!(
        "{} inputs, {} a second, {} edges, {} MB at most",
        stat("number_of_executed_units"),
        stat("average_exec_per_sec"),
        edges.unwrap_or("?"),
        stat("peak_rss_mb")
    )
}

#[cfg(test)]
mod tests {
    use super::{fault, summary};

    #[test]
    fn the_figures_are_read_from_the_log() {
        let log = "#2\tINITED cov: 812 ft: 900 corp: 1/1b exec/s: 0 rss: 40Mb\n\
             #100\tDONE   cov: 1234 ft: 2000 corp: 9/2Kb lim: 4 exec/s: 50 rss: 77Mb\n\
             stat::number_of_executed_units: 100\nstat::average_exec_per_sec:     50\n\
             stat::new_units_added:          8\nstat::slowest_unit_time_sec:    0\n\
             stat::peak_rss_mb:              77\n";
        assert_eq!(
            summary(log),
            "100 inputs, 50 a second, 1234 edges, 77 MB at most"
        );
    }

    #[test]
    fn a_fault_is_named_with_its_input() {
        let log = "INFO: seed corpus: files: 13\nmanifest: panicked at a.rs:1:2:\nindex out of bounds\n\
             ==7== ERROR: libFuzzer: deadly signal\n\
             artifact_prefix='/t/'; Test unit written to /t/crash-1\n";
        let reason = "manifest: panicked at a.rs:1:2:";
        assert_eq!(fault("manifest", log), (reason, "/t/crash-1"));
        let (reason, _) = fault("table", log);
        assert_eq!(reason, "==7== ERROR: libFuzzer: deadly signal");
    }
}
