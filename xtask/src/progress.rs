//! Prints how far a build is where cargo draws no progress bar because its output is not a terminal.

use std::io::{BufRead, BufReader, IsTerminal, stderr};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::command;

/// Runs a `cargo build`, and prints at each tenth how many of its steps are done.
pub fn build(cargo: &mut Command) -> Result<()> {
    if stderr().is_terminal() {
        return command::run(cargo);
    }
    eprintln!("+ {}", command::shown(cargo));
    cargo
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", "100")
        .stderr(Stdio::piped());
    let start = Instant::now();
    let mut running = cargo.spawn().context("cannot start cargo")?;
    let mut tenths = Tenths::default();
    if let Some(output) = running.stderr.take() {
        for line in lines(BufReader::new(output)) {
            match units(&line) {
                Some((done, of)) if tenths.is_new(done, of) => {
                    let seconds = start.elapsed().as_secs();
                    eprintln!("  {done} of {of} steps done after {seconds} s");
                }
                Some(_) => {}
                None if is_step(&line) => {}
                None => eprintln!("{line}"),
            }
        }
    }
    let status = running.wait().context("cannot wait for cargo")?;
    if !status.success() {
        bail!("the build failed: {status}");
    }
    Ok(())
}

/// Splits the output into lines, which also end where cargo redraws its bar.
fn lines(output: impl BufRead) -> impl Iterator<Item = String> {
    let mut bytes = output.bytes();
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        loop {
            match bytes.next() {
                Some(Ok(b'\r' | b'\n')) => break,
                Some(Ok(byte)) => line.push(byte),
                Some(Err(_)) | None if line.is_empty() => return None,
                Some(Err(_)) | None => break,
            }
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    })
}

/// Returns the steps done and all steps of a bar: (12, 247) for `Building [==>   ] 12/247: serde, syn`.
fn units(line: &str) -> Option<(u32, u32)> {
    let after = line.trim_start().strip_prefix("Building [")?;
    let (_, counts) = after.split_once("] ")?;
    let (done, of) = counts.split(':').next()?.split_once('/')?;
    Some((done.trim().parse().ok()?, of.trim().parse().ok()?))
}

/// Returns true for lines that the counts make needless: a crate that is compiled or downloaded, or another bar.
fn is_step(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("Compiling"), _) | (None, _) => true,
        (Some("Downloaded"), _) => !line.contains(" crates "),
        (Some("Downloading"), Some(count)) if count.parse::<u32>().is_ok() => true,
        (_, Some(second)) => second.starts_with('['),
        _ => false,
    }
}

/// The number of tenths of the build that were printed.
#[derive(Default)]
struct Tenths(u32);

impl Tenths {
    /// Returns whether the build has reached a tenth that was not printed yet, and notes it as printed.
    fn is_new(&mut self, done: u32, of: u32) -> bool {
        let tenth = (done * 10).checked_div(of).unwrap_or(0);
        let is_new = tenth > self.0;
        self.0 = self.0.max(tenth);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_of_cargo_is_read() {
        let bar = "    Building [=====>       ] 12/247: serde, syn(build)";
        assert_eq!(units(bar), Some((12, 247)));
        assert_eq!(units("   Compiling serde v1.0.229"), None);
        assert_eq!(units("    Building [ nonsense"), None);
    }

    #[test]
    fn each_tenth_is_said_once() {
        let mut tenths = Tenths::default();
        let said = (0..=40).filter(|&done| tenths.is_new(done, 40));
        assert_eq!(said.count(), 10);
    }

    #[test]
    fn bars_and_messages_are_told_apart() {
        let output = "  Building [> ] 1/4: a\r  Building [=> ] 2/4: b\rwarning: x\n\n";
        let lines: Vec<String> = lines(output.as_bytes()).collect();
        assert_eq!(lines[1].trim(), "Building [=> ] 2/4: b");
        assert_eq!(lines[2], "warning: x");
        for step in [
            &lines[3],
            "  Compiling a v1.0.0",
            "  Downloaded a v1.0.0",
            "  Fetch [=> ] 3 %",
            "  Downloading 9 crates, remaining bytes: 8.1MiB",
            " Downloading 9 crates",
        ] {
            assert!(is_step(step), "{step}");
        }
        for said in [&lines[2], "  Downloaded 160 crates (20 MB) in 3 s"] {
            assert!(!is_step(said), "{said}");
        }
    }
}
