//! `gapscope baseline`: keeps the figures of runs under a name, lists and removes them, and compares later runs
//! with them.

mod fingerprint;
mod store;

use crate::args::{Baseline as Arguments, Compare, Save, Task};
use crate::diff::inputs::{Inputs, all_runs};
use crate::failure::Failure;
use crate::{diff, exit, page};
use fingerprint::Fingerprint;
use gapscope_comparison::diff::unlike_machines;
use gapscope_report::document::{Block, Document, Text};
use gapscope_timeline::quantity;
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;
use std::time::SystemTime;
use store::{Baseline, Store};

/// Keeps, lists, compares or removes baselines.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let store = match &arguments.baselines {
        Some(folder) => Store {
            folder: folder.clone(),
        },
        None => Store::of_project()?,
    };
    match &arguments.task {
        Task::Save(arguments) => save(&store, arguments),
        Task::List { json } => list(&store, *json),
        Task::Compare(arguments) => compare(&store, arguments),
        Task::Remove { name } => {
            let path = store.remove(name)?;
            page::note(format!("removed {}", path.display()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads the traces and keeps their figures. If a trace is damaged, what can be read is kept, and the exit status
/// says so.
fn save(store: &Store, arguments: &Save) -> Result<ExitCode, Failure> {
    let path = store.free(&arguments.name, arguments.replace)?;
    let traces = all_runs(&arguments.traces)?;
    let inputs = Inputs::read(&traces, &[])?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let baseline = Baseline {
        saved_unix_s: now
            .ok()
            .and_then(|since| i64::try_from(since.as_secs()).ok()),
        gapscope: env!("CARGO_PKG_VERSION").to_owned(),
        fingerprint: Fingerprint::read(&traces)?,
        runs: inputs.before,
    };
    let bytes = store.write(&path, &baseline)?;
    page::note(format!(
        "{} kept in {} ({})",
        quantity::count_of(baseline.runs.len() as u64, "run", "runs"),
        path.display(),
        quantity::bytes(bytes)
    ));
    Ok(exit::after_reading(inputs.whole))
}

/// Compares the runs of a baseline (before) with traces (after). Gates (limits that the user sets) are not judged if
/// the machines are unlike, unless that is allowed.
fn compare(store: &Store, arguments: &Compare) -> Result<ExitCode, Failure> {
    let (path, baseline) = store.open(&arguments.name)?;
    let traces = all_runs(&arguments.traces)?;
    let mut inputs = Inputs::read(&[], &traces)?;
    inputs.before = baseline.runs;
    for (run, digest) in inputs.before.iter_mut().enumerate() {
        digest.name = format!("{} (run {})", arguments.name, run + 1);
    }
    let mut diff = diff::compare(&arguments.comparing, &inputs);
    let unlike = unlike_machines(&inputs.before, &inputs.after);
    if !unlike.is_empty() && !arguments.allow_unlike {
        diff.do_not_judge(&unlike);
    }
    // The traces of the baseline are not available.
    diff.next
        .retain(|sentence| !sentence.contains("gapscope view"));
    let other_gpus = baseline
        .fingerprint
        .other_gpus(&Fingerprint::read(&traces)?);
    diff.unlike.extend(other_gpus);
    diff::show(&diff, &arguments.comparing, arguments.top, &arguments.width)?;
    let judged = match unlike.is_empty() || arguments.allow_unlike || diff.gates.is_empty() {
        true => "",
        false => {
            "; it was recorded on an unlike machine, so that no gate was judged: save one here, or give --allow-unlike"
        }
    };
    page::note(format!("compared with {}{judged}", path.display()));
    Ok(diff::exit_code(&diff, inputs.whole))
}

/// A baseline in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// The baseline's name.
    name: String,
    /// The baseline's file.
    file: String,
    /// The number of runs.
    runs: usize,
    /// When the baseline was saved, such as `2026-01-31 12:00 UTC`; absent where that is not known.
    saved: Option<String>,
    /// The version of gapscope that saved it.
    gapscope: String,
    /// What the runs were recorded on.
    fingerprint: Fingerprint,
}

/// Prints all baselines, as text or JSON; those that cannot be read are named on stderr.
fn list(store: &Store, json: bool) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    let mut whole = true;
    for name in store.names()? {
        match store.open(&name) {
            Ok((path, baseline)) => all.push(Listed {
                name,
                file: path.display().to_string(),
                runs: baseline.runs.len(),
                saved: baseline.saved(),
                gapscope: baseline.gapscope,
                fingerprint: baseline.fingerprint,
            }),
            Err(failure) => {
                page::note(&failure);
                whole = false;
            }
        }
    }
    if json {
        page::write_json(&all)?;
        return Ok(exit::after_reading(whole));
    }
    if all.is_empty() {
        page::note(format!("no baselines in {}", store.folder.display()));
        return Ok(exit::after_reading(whole));
    }
    let mut blocks = vec![Block::Heading(
        "Baselines".into(),
        store.folder.display().to_string(),
    )];
    blocks.extend(all.iter().map(|one| {
        let facts = format!(
            ": {}, saved {}, recorded on {}",
            quantity::count_of(one.runs as u64, "run", "runs"),
            one.saved.as_deref().unwrap_or("at an unknown time"),
            one.fingerprint.sentence()
        );
        Block::Item(Text::new().strong(&one.name).and(&facts))
    }));
    let document = Document { blocks };
    page::write(&page::stdout_terminal(&crate::args::Width { columns: None }).draw(&document))?;
    Ok(exit::after_reading(whole))
}
