//! Adds a document's counters to its trace, and its other facts to the inventory, of which the manifest is made.

use super::collect::Collector;
use super::document::Summary;
use super::facts::Lane;
use crate::profile::Span;
use crate::since_1970::shift_of;
use crate::{Options, counted};
use gapscope_model::{HostCallKind, LossKind, NOT_RECORDED_CALL};
use gapscope_timeline_builder::rows;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

/// The most rows of a file without GPU work that a note lists, and the most letters of a name in it.
const MAX_LISTED_ROWS: usize = 8;
const MAX_NAME_LETTERS: usize = 40;

/// Returns a number of ranges in words.
fn quantity(ranges: u64) -> String {
    match ranges {
        1 => "1 range".to_owned(),
        ranges => format!("{ranges} ranges"),
    }
}

/// A broken part is large that is more than one of so many equal parts of the file.
const LEAST_HOLE: u64 = 100;

impl Collector<'_, '_> {
    /// Adds the facts of files, after their rows were assembled. Each has its name for notes.
    pub(super) fn describe(&mut self, files: &[(Cow<str>, Summary)], options: &Options) {
        self.finish_ranges();
        for (_, summary) in files {
            self.count_unread(summary);
        }
        self.metadata.log.count_losses(&mut self.profile.inventory);
        let (tool, hook) = match self.metadata.is_kineto {
            true => ("PyTorch's profiler (Kineto)", "Kineto"),
            false => ("a profiler that writes Chrome's JSON", "Chrome JSON"),
        };
        self.note(files, tool);
        // Counters are no reason to keep a device.
        self.profile.drop_stray_devices();
        let inventory = &mut self.profile.inventory;
        let device = |number| inventory.known_device(self.main, number);
        self.counters.push_into(device, self.new.tables_mut());
        inventory.tool = hook.to_owned();
        inventory.driver = self.metadata.driver.clone().unwrap_or_default();
        let (start_ns, _) = inventory.span_ns().unwrap_or_default();
        let shift_ns = self.shift_ns.unwrap_or(0);
        inventory.manifest.start_unix_ns = match self.metadata.base_ns {
            Some(base_ns) => base_ns.checked_sub(shift_ns),
            None => {
                let is_since_1970 = shift_of(start_ns.saturating_sub(shift_ns)) != 0;
                is_since_1970.then_some(shift_ns.saturating_neg())
            }
        };
        inventory.manifest.rank = self.metadata.rank;
        for lane in &self.lanes.all {
            if let Some(name) = &lane.name {
                inventory.thread(lane.process, lane.thread, name);
            }
        }
        let main = &self.lanes.processes[self.main.0 as usize];
        if options.command.is_none() {
            let name = main.name.iter().filter(|name| !name.is_empty());
            inventory.manifest.command = name.cloned().collect();
        }
    }

    /// Lists the rows with most ranges that may be a GPU's, and says how to import them.
    pub(super) fn rows(&self) -> Option<String> {
        let pids = self.lanes.pids();
        let is_of_host = |lane: &Lane| {
            let process = &self.lanes.processes[lane.process.0 as usize];
            // The main thread of a process has the process's number.
            let is_main = process.pid > 1 && lane.own.is_none() && process.pid == lane.thread.0;
            let name = lane.name.as_deref().unwrap_or_default();
            lane.is_host || is_main || name == "main" || name.contains("CPU")
        };
        let lanes = self.lanes.all.iter();
        let mut lanes: Vec<&Lane> =
            (lanes.filter(|lane| lane.ranges > 0 && !is_of_host(lane))).collect();
        lanes.sort_by_key(|lane| Reverse(lane.ranges));
        let labels = &self.profile.inventory.labels;
        let row = |lane: &&Lane| {
            let pid = String::from_utf8_lossy(&pids[lane.process.0 as usize]).into_owned();
            let name = lane.first.map_or("", |text| labels.text_of(text));
            let name: String = name.chars().take(MAX_NAME_LETTERS).collect();
            let ranges = quantity(lane.ranges);
            format!(
                "pid={pid},tid={} ({ranges}, the first is {name:?})",
                lane.row()
            )
        };
        if lanes.is_empty() {
            return None;
        }
        let mut listed: Vec<String> = lanes.iter().take(MAX_LISTED_ROWS).map(row).collect();
        if lanes.len() > listed.len() {
            listed.push(format!("and {} more", lanes.len() - listed.len()));
        }
        Some(format!(
            "If rows of the file are a GPU's, name them to import them: gapscope import --gpu 'pid=…,tid=…', where * stands for any. Its rows are {}.",
            listed.join(", ")
        ))
    }

    /// Counts what could not be read.
    pub(super) fn count_unread(&mut self, summary: &Summary) {
        let inventory = &mut self.profile.inventory;
        let reason = "they are not numbers";
        inventory.lose("values of counters", self.counters.lost, reason);
        inventory.lose("events", summary.odd, "they are not objects");
        inventory.lose("events", summary.too_long, "they are longer than 64 MiB");
        if let Some(why) = &summary.cut {
            inventory.losses.add(LossKind::FileRests, 1, why.clone());
        }
        let unclosed = summary.unclosed_documents;
        let reason = "a document ends before it is complete, where the next one begins";
        inventory.lose(LossKind::FileParts, unclosed, reason);
        if summary.broken_parts > 0 {
            let read = summary.bytes.saturating_sub(summary.broken_bytes);
            let reason = format!(
                "not JSON, first at byte {}; {} of the file were read",
                summary.first_broken_at,
                counted::share(read, summary.bytes)
            );
            (inventory.losses).add(LossKind::FileParts, summary.broken_parts, reason);
        }
    }

    /// Notes that the recording of Python's functions slowed the host down.
    pub(super) fn note_python(&mut self) {
        if self.python_functions > 0 {
            self.profile.inventory.note(
                "The profiler recorded Python's functions: the host's code took longer than it does without that, and so do gaps in which the GPU waits for it.",
            );
        }
    }

    /// Adds a row for a time in which nothing was recorded, so that no verdict counts it.
    fn add_time_without_records(&mut self, time: Range<i64>) -> bool {
        let span = (time.start < time.end).then(|| Span::checked(time.start, time.end));
        let Some(span) = span.flatten() else {
            return false;
        };
        let function = Some(NOT_RECORDED_CALL.into());
        let row = rows::one_host_call(self.main, None, HostCallKind::Recording, span, function);
        rows::host_call(self.new.tables_mut(), row);
        true
    }

    /// Adds the times between events around broken parts of a file that are large: what was in the parts may have happened then.
    pub(super) fn add_holes(&mut self, summary: &Summary) {
        let is_large = |bytes: u64| bytes.saturating_mul(LEAST_HOLE) >= summary.bytes;
        let mut count = 0;
        for hole in summary.holes.iter().filter(|hole| is_large(hole.bytes)) {
            let times = [hole.before_ns, hole.after_ns].map(|ns| self.on_clock(ns));
            if let [Some(before_ns), Some(after_ns)] = times {
                count += usize::from(self.add_time_without_records(before_ns..after_ns));
            }
        }
        if count > 0 {
            self.profile.inventory.note(
                "What happened in the time of the parts of the file that could not be read is not known, and the verdict leaves that time out.",
            );
        }
    }

    /// Adds the times in which the process did not record.
    pub(super) fn add_not_recorded(&mut self, times: &[Range<i64>]) {
        for time in times {
            self.add_time_without_records(time.clone());
        }
        if !times.is_empty() {
            let windows = times.len() + 1;
            self.profile.inventory.note(format!(
                "The process recorded in {windows} windows. The time between them is not known, and the verdict leaves it out."
            ));
        }
    }

    /// Adds the notes about the files and about what limits their numbers.
    fn note(&mut self, files: &[(Cow<str>, Summary)], tool: &str) {
        let has_queues = self.profile.inventory.has_queues();
        let inventory = &mut self.profile.inventory;
        for (file, summary) in files {
            inventory.note(format!("Imported from {file}, which {tool} wrote."));
            if let Some(why) = &summary.cut {
                inventory.note(format!("{file} is not whole: {why}."));
            }
            if summary.documents > 1 {
                let documents = summary.documents;
                inventory.note(format!(
                    "{file} has {documents} documents of JSON: all were read."
                ));
            }
        }
        if !has_queues {
            inventory.note(
                "The file has no GPU work that gapscope knows: neither events of the category kernel, gpu_memcpy or gpu_memset, nor a process that is named like /device:GPU:0.",
            );
            if let Some(rows) = self.rows() {
                self.profile.inventory.note(rows);
            }
        }
        self.note_python();
        if let Some(host) = &self.metadata.host_name {
            self.profile
                .inventory
                .note(format!("Recorded on the machine {host}."));
        }
    }
}
