//! Measures the cost of capturing a window of a program, beside GFXReconstruct on the same programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::runs::{Driver, built, fresh};
use super::samples::Samples;
use super::slow_down::{Work, works};
use crate::command::output;
use crate::packages;

/// The captured window of ten dispatches. All programs run more dispatches.
const WINDOW: &str = "200..210";
/// A window that no program reaches.
const NEVER: &str = "4000000000..4000000001";

/// The way in which a program is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Alone,
    /// Under gapscope, with a window that never comes.
    Outside,
    /// Under gapscope, with the window.
    Window,
    /// Under GFXReconstruct with its default, which finds writes of the host by page faults.
    PageGuard,
    /// Under GFXReconstruct, which writes all mapped memory at each submission.
    Unassisted,
}

const VARIANTS: [Variant; 5] = [
    Variant::Alone,
    Variant::Outside,
    Variant::Window,
    Variant::PageGuard,
    Variant::Unassisted,
];

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Alone => "no layer",
            Variant::Outside => "gapscope, outside of the window",
            Variant::Window => "gapscope, ten dispatches",
            Variant::PageGuard => "GFXReconstruct, whole program, `page_guard`",
            Variant::Unassisted => "GFXReconstruct, whole program, `unassisted`",
        }
    }

    /// Returns the command that runs a program as this variant, and writes a capture, if any, to `file`.
    fn command(self, program: &[String], file: &Path) -> Result<Command> {
        let mut command = match self {
            Variant::Outside | Variant::Window => {
                let window = match self {
                    Variant::Window => WINDOW,
                    _ => NEVER,
                };
                let mut command = Command::new(built("gapscope")?);
                command.args(["capture", "--dispatches", window, "-o"]);
                command.arg(file).arg("--").arg(&program[0]);
                command
            }
            _ => Command::new(&program[0]),
        };
        command.args(&program[1..]);
        if let Variant::PageGuard | Variant::Unassisted = self {
            let mode = match self {
                Variant::PageGuard => "page_guard",
                _ => "unassisted",
            };
            command
                .env("VK_INSTANCE_LAYERS", "VK_LAYER_LUNARG_gfxreconstruct")
                .env("GFXRECON_CAPTURE_FILE", file)
                .env("GFXRECON_CAPTURE_FILE_TIMESTAMP", "false")
                .env("GFXRECON_LOG_LEVEL", "error")
                .env("GFXRECON_MEMORY_TRACKING_MODE", mode);
        }
        Driver::Lavapipe.set(&mut command)?;
        Ok(command)
    }

    /// Returns the command that replays a capture; `None` for variants without a capture.
    fn replay(self, file: &Path) -> Result<Option<Command>> {
        let mut command = match self {
            Variant::Alone | Variant::Outside => return Ok(None),
            Variant::Window => {
                let mut command = Command::new(built("gapscope")?);
                command.args(["replay", "--json"]);
                command
            }
            Variant::PageGuard | Variant::Unassisted => Command::new("gfxrecon-replay"),
        };
        command.arg(file);
        Driver::Lavapipe.set(&mut command)?;
        Ok(Some(command))
    }
}

/// The measurements of one variant of one program.
#[derive(Default)]
struct Measured {
    /// The seconds of the program's own work, and below the size of the capture and the seconds of its replay.
    inside: Samples,
    megabytes: Samples,
    replay: Samples,
    /// The time of the window with its capture, for each second of the device's work in the window.
    times: Samples,
    /// The reason why there is no measurement.
    failed: Option<String>,
}

pub fn measure(repetitions: u32) -> Result<String> {
    let version = packages::version("gfxreconstruct").unwrap_or_else(|| "unknown".into());
    let mut text = format!(
        "GFXReconstruct {version}, which cannot begin at a submission: it captures the whole program. The window is dispatches {WINDOW}.\n\n\
         | program | | its work, s | longer than without the layer, % | written, MB | replay, s | capture of the window, times its own |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for work in works()? {
        text += &rows(&work, repetitions)?;
    }
    Ok(text)
}

/// Returns the rows of one program. A variant that fails once is not run again, and its row has the reason.
fn rows(work: &Work, repetitions: u32) -> Result<String> {
    // A first run is not measured, so that the driver has compiled the kernels.
    let file = fresh("t.gapcapture")?;
    output(&mut Variant::Alone.command(&work.command, &file)?)?;
    let mut all = VARIANTS.map(|_| Measured::default());
    for _ in 0..repetitions {
        for (variant, measured) in VARIANTS.into_iter().zip(&mut all) {
            if measured.failed.is_none()
                && let Err(error) = run(variant, work, measured)
            {
                measured.failed = Some(format!("{error:#}"));
            }
        }
    }
    let alone = all[0].inside.clone();
    let mut rows = String::new();
    for (variant, measured) in VARIANTS.into_iter().zip(&all) {
        let (program, name) = (work.name, variant.name());
        if let Some(reason) = &measured.failed {
            // The command line is left out, because it contains paths of this machine.
            let reason = reason.rsplit("` failed: ").next().unwrap_or_default();
            let reason = reason.lines().next().unwrap_or_default().replace('|', " ");
            rows += &format!("| {program} | {name} | failed: {reason} | — | — | — | — |\n");
            continue;
        }
        let over = match variant {
            Variant::Alone => "—".to_owned(),
            _ => measured.inside.percent_over(&alone).shown(1),
        };
        let replayed = variant.replay(&file)?.is_some();
        let or_none = |samples: &Samples, there: bool| match there {
            true => samples.shown(2),
            false => "—".to_owned(),
        };
        rows += &format!(
            "| {program} | {name} | {} | {over} | {} | {} | {} |\n",
            measured.inside.shown(3),
            or_none(&measured.megabytes, replayed),
            or_none(&measured.replay, replayed),
            or_none(&measured.times, variant == Variant::Window),
        );
    }
    Ok(rows)
}

/// Runs a variant once, replays what it has captured, and adds the figures to `measured`.
fn run(variant: Variant, work: &Work, measured: &mut Measured) -> Result<()> {
    let file = fresh("t.gapcapture")?;
    let stdout = ran(variant, &mut variant.command(&work.command, &file)?)?;
    measured.inside.push((work.seconds)(&stdout)?);
    let Some(mut replay) = variant.replay(&file)? else {
        return Ok(());
    };
    measured.megabytes.push(bytes(&file)? as f64 / 1e6);
    if variant == Variant::Window {
        measured.times.push(times(&file)?);
    }
    let start = Instant::now();
    let stdout = output(&mut replay)?;
    measured.replay.push(start.elapsed().as_secs_f64());
    if variant == Variant::Window {
        let found: Value = serde_json::from_str(&stdout).context("cannot read the replay")?;
        if found["outputs_equal"] != found["outputs_compared"] && found["outputs_equal"] != true {
            bail!("the replay's outputs differ: {found}");
        }
    }
    Ok(())
}

/// Runs a command and returns its output. A failure of the program is an error.
fn ran(variant: Variant, command: &mut Command) -> Result<String> {
    if variant != Variant::Outside {
        return output(command);
    }
    let ended = command.stdin(Stdio::null()).output()?;
    // The exit status 125 means here that nothing was captured, as intended.
    if ended.status.code() != Some(125) {
        bail!("it ended with {}", ended.status);
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

fn bytes(path: &Path) -> Result<u64> {
    let facts = fs::metadata(path).with_context(|| format!("no {}", path.display()))?;
    if facts.is_file() {
        return Ok(facts.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        sum += bytes(&entry?.path())?;
    }
    Ok(sum)
}

/// Returns the time of the window with its capture, divided by the time that the device worked on its submissions.
fn times(capture: &Path) -> Result<f64> {
    let records = fs::read_to_string(capture.join("capture.jsonl"))?;
    let (mut worked_ns, mut after_ns) = (0.0, None);
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).context("cannot read the capture")?;
        worked_ns += record["submission"]["device_ns"].as_f64().unwrap_or(0.0);
        after_ns = record["end"]["after_ns"].as_f64().or(after_ns);
    }
    Ok(after_ns.context("the capture has no end")? / worked_ns)
}
