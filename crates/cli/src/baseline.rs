//! `gapscope baseline`.

mod fingerprint;
mod store;

use crate::args::{Baseline as Arguments, Compare, Save, Task};
use crate::diff::inputs::{Inputs, all_runs};
use crate::diff::{compared, ended, show};
use crate::failure::Failure;
use crate::{exit, page};
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
    let store = Store {
        folder: arguments.baselines.clone(),
    };
    match &arguments.task {
        Task::Save(arguments) => save(&store, arguments),
        Task::List { json } => list(&store, *json),
        Task::Compare(arguments) => compare(&store, arguments),
        Task::Remove { name } => {
            let path = store.remove(name)?;
            page::say(&format!("gapscope: removed {}\n", path.display()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

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
        fingerprint: Fingerprint::of(&traces)?,
        runs: inputs.before,
    };
    let bytes = store.write(&path, &baseline)?;
    page::say(&format!(
        "gapscope: {} kept in {} ({})\n",
        quantity::count_of(baseline.runs.len() as u64, "run", "runs"),
        path.display(),
        quantity::bytes(bytes)
    ));
    Ok(exit::of_reading(inputs.whole))
}

fn compare(store: &Store, arguments: &Compare) -> Result<ExitCode, Failure> {
    let (path, baseline) = store.open(&arguments.name)?;
    let traces = all_runs(&arguments.traces)?;
    let mut inputs = Inputs::read(&[], &traces)?;
    inputs.before = baseline.runs;
    for (run, digest) in inputs.before.iter_mut().enumerate() {
        digest.name = format!("{} (run {})", arguments.name, run + 1);
    }
    let mut diff = compared(&arguments.comparing, &inputs);
    let unlike = unlike_machines(&inputs.before, &inputs.after);
    if !unlike.is_empty() && !arguments.allow_unlike {
        diff.do_not_judge(&unlike);
    }
    // The traces before are not there.
    diff.next
        .retain(|sentence| !sentence.contains("gapscope view"));
    let other_gpus = baseline.fingerprint.other_gpus(&Fingerprint::of(&traces)?);
    diff.unlike.extend(other_gpus);
    show(&diff, &arguments.comparing, arguments.top, &arguments.width)?;
    let judged = match unlike.is_empty() || arguments.allow_unlike || diff.gates.is_empty() {
        true => "",
        false => {
            "; it was recorded on an unlike machine, so that no gate was judged: save one here, or give --allow-unlike"
        }
    };
    page::say(&format!(
        "gapscope: compared with {}{judged}\n",
        path.display()
    ));
    Ok(ended(&diff, inputs.whole))
}

/// A baseline in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// Its name.
    name: String,
    /// Its file.
    file: String,
    /// Runs in it.
    runs: usize,
    /// When it was saved, such as `2026-01-31 12:00 UTC`; absent where it is not known.
    saved: Option<String>,
    /// The version of gapscope that saved it.
    gapscope: String,
    /// What the runs were recorded on.
    fingerprint: Fingerprint,
}

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
                page::say(&format!("gapscope: {failure}\n"));
                whole = false;
            }
        }
    }
    if json {
        let text = serde_json::to_string_pretty(&all);
        let text = text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
        page::write(&(text + "\n"))?;
        return Ok(exit::of_reading(whole));
    }
    if all.is_empty() {
        page::say(&format!(
            "gapscope: no baselines in {}\n",
            store.folder.display()
        ));
        return Ok(exit::of_reading(whole));
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
    page::write(&page::of_stdout(&crate::args::Width { columns: None }).draw(&document))?;
    Ok(exit::of_reading(whole))
}
