//! Imports Xcode's `Counters.csv`, the table of counters that its GPU debugger exports, with one row for each encoder
//! (a sequence of commands in one of Metal's command buffers).
//!
//! The first columns are `Index`, `Encoder FunctionIndex`, `CommandBuffer Label`, in some versions `Debug Group`,
//! `Encoder Label` and a column without a name. Some 240 counters follow, some of them twice. The format is known
//! from published files and from tools that read them: gapscope was not run against Xcode.
//!
//! The table has neither times nor units. An encoder becomes opaque work without times in its command buffer, and its
//! values become, as they are written, the payload of a marker of that command buffer.

mod table;

use crate::error::only_file;
use crate::inventory::Inventory;
use crate::{Error, Importer, Options, Output};
use gapscope_timeline_builder::{WorkPlace, rows};
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::{Api, SamplingMode};
use gapscope_trace::tables::*;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use table::{Columns, Records};

/// Imports tables of counters that Xcode exports.
pub const IMPORTER: Importer = Importer {
    name: "Xcode",
    reads: "tables of counters that Xcode exports (NAME Counters.csv)",
    recognises,
    read,
    joins_named_ranks: false,
};

/// Returns whether a file begins with the titles of the table's first columns.
fn recognises(path: &Path) -> bool {
    let Some(file) = path.is_file().then(|| File::open(path)) else {
        return false;
    };
    let mut bytes = Vec::new();
    let read = file.and_then(|file| file.take(4096).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}').replace('"', "");
    read.is_ok() && text.starts_with("Index,Encoder FunctionIndex,CommandBuffer Label,")
}

/// Reads the table: one command buffer for each label of that column, in the order of first use, and in it the
/// encoders of its rows. Rows with another number of cells than the titles are counted as losses.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let path = only_file(inputs, "table of counters")?;
    let failed = Error::read(path);
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let mut records = Records::new(BufReader::with_capacity(1 << 16, file));
    let header = records.next().map_err(failed)?.unwrap_or_default();
    let columns = Columns::from_header(&header);
    let mut trace = output.trace()?;
    let mut inventory = Inventory::new("Xcode");
    let process = inventory.process(options.pid.unwrap_or(0));
    let device = inventory.device(process, Some(0), |device| device.api = Api::Metal);
    let queue = inventory.add_queue(device, Some("all command queues".to_owned()));
    let mut command_buffers: FxHashMap<String, (CommandBufferId, LabelId, u32)> =
        FxHashMap::default();
    let mut order = Vec::new();
    let (mut encoders, mut odd) = (0u64, 0u64);
    while let Some(record) = records.next().map_err(failed)? {
        if record.len() == 1 && record[0].is_empty() {
            continue;
        }
        if record.len() != header.len() {
            odd += 1;
            continue;
        }
        encoders += 1;
        let name = columns.command_buffer(&record).to_owned();
        let next = CommandBufferId(command_buffers.len() as u64 + 1);
        let (id, around, position) = command_buffers.entry(name.clone()).or_insert_with(|| {
            order.push(name.clone());
            (next, inventory.labels.named(None, &name), 0)
        });
        let (id, mut label) = (*id, *around);
        for text in columns.labels(&record) {
            label = inventory.labels.named(Some(label), text);
        }
        let tables = trace.tables_mut();
        let place = WorkPlace {
            command_buffer: Some(id),
            position: *position,
            label: Some(label),
            ..WorkPlace::new(queue, None)
        };
        rows::opaque_work(tables, place, columns.kind(&record));
        *position += 1;
        let row = rows::marker_row(process, MarkerScope::CommandBuffer, label, None, None);
        let row = Marker {
            queue: Some(queue),
            command_buffer: Some(id),
            domain: Some("Xcode".into()),
            category: Some("counters".into()),
            payload: columns.values(&record).map(Into::into),
            ..row
        };
        rows::marker(tables, row);
        output.progress(records.bytes(), size);
        trace.flush()?;
    }
    if encoders == 0 {
        return Err(Error::nothing(format!(
            "{} has no rows of encoders",
            path.display()
        )));
    }
    for (number, name) in (1..).zip(order) {
        let Some((id, label, _)) = command_buffers.get(&name).copied() else {
            continue;
        };
        let submission = Some(SubmissionId(number));
        let row = rows::graph_launch(id, (process, queue), submission, None, (0, 0));
        let row = CommandBuffer {
            label: Some(label),
            name: Some(name.into()),
            ..row
        };
        rows::command_buffer(trace.tables_mut(), row);
    }
    let buffers = command_buffers.len() as u64;
    inventory.manifest.sampling_mode = SamplingMode::Pass;
    let reason = "Xcode's table of counters has no times";
    inventory.lose(LossKind::PassTimes, encoders, reason);
    inventory.lose(LossKind::ImportedCommandBufferTimes, buffers, reason);
    let reason = "Xcode's table of counters has encoders, not dispatches";
    inventory.lose(LossKind::UnlistedDispatches, buffers, reason);
    let reason = "Xcode's table of counters does not have the commits of command buffers";
    inventory.lose(LossKind::HostCallsOfWork, buffers, reason);
    let reason = "they have more or fewer cells than there are columns: they are cut, or no rows";
    inventory.lose("rows of encoders", odd, reason);
    inventory.note(
        "Xcode's table of counters has no times: order, durations and gaps are not known, and there is no verdict.",
    );
    inventory.note(
        "The values of counters are in the payloads of markers, one for each encoder, as Xcode wrote them: it states no units.",
    );
    inventory.finish(trace, options, output)
}
