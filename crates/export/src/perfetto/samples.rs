//! Writes the samples of threads (`perf_sample` in SQL) in the scene: the trace as exports draw it, with a group for
//! each process and GPU. Frames and stacks of samples are interned: written once, and then named by id.

use super::protobuf::Message;
use super::{NEEDS_STATE, Writer, interned, packet};
use gapscope_trace::ids::StackId;
use gapscope_trace::tables::{FrameKind, Table};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{self, Write};

// Numbers of fields in protos/perfetto/trace/profiling/profile_common.proto and profile_packet.proto.
mod frame {
    pub const NAME: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const ADDRESS: u32 = 4;
    pub const SOURCE_PATH: u32 = 5;
    pub const LINE: u32 = 6;
}
mod sample {
    pub const PID: u32 = 2;
    pub const THREAD: u32 = 3;
    pub const CALLSTACK: u32 = 4;
}
// Fields of interned messages: the id, the frames of a stack, the texts of a mapping's path.
const IID: u32 = 1;
const FRAME_IDS: u32 = 2;
const PATH_STRINGS: u32 = 7;

impl<W: Write> Writer<'_, W> {
    /// Writes all samples. Each stack comes before the first sample that has it.
    pub(super) fn samples(&mut self) -> io::Result<()> {
        let scene = self.scene;
        let table = &scene.trace.tables.samples;
        if table.is_empty() {
            return Ok(());
        }
        self.frames()?;
        let mut known: FxHashSet<StackId> = FxHashSet::default();
        for group in &scene.groups {
            for samples in &group.samples {
                for row in &samples.rows {
                    let row = *row as usize;
                    let stack = table.stack.at(row);
                    if let Some(stack) = stack
                        && known.insert(stack)
                    {
                        self.callstack(stack)?;
                    }
                    self.event.clear();
                    self.event.number(sample::PID, group.pid.into());
                    self.event.number(sample::THREAD, samples.thread.0.into());
                    if let Some(stack) = stack {
                        self.event.number(sample::CALLSTACK, u64::from(stack.0) + 1);
                    }
                    self.end_event_as(packet::PERF_SAMPLE, table.time_ns[row])?;
                }
            }
        }
        Ok(())
    }

    /// Writes all frames in one packet. The id of a frame is one more than its row; the id after the last stands for
    /// stacks that could not be read. The library, or else the file, of a frame is its mapping.
    fn frames(&mut self) -> io::Result<()> {
        let scene = self.scene;
        let table = &scene.trace.tables.frames;
        let mut paths: FxHashMap<&str, u64> = FxHashMap::default();
        let mut data = Message::default();
        let mut of_frame = Message::default();
        let unknown = std::iter::once("unknown code".to_owned());
        for (row, name) in scene.frame_names().chain(unknown).enumerate() {
            let id = row as u64 + 1;
            let is_known = row < table.len();
            let file = table.file.get(row).and_then(Option::as_deref);
            let library = table.library.get(row).and_then(Option::as_deref);
            // Perfetto drops frames without a file.
            let text = library.or(file).unwrap_or("unknown");
            let next = paths.len() as u64 + 1;
            let path = *paths.entry(text).or_insert_with(|| {
                let mut mapping = Message::default();
                mapping.number(IID, next);
                mapping.number(PATH_STRINGS, next);
                data.message(interned::MAPPINGS, &mapping);
                self.interned(&mut data, interned::MAPPING_PATHS, next, text);
                self.interned(&mut data, interned::SOURCE_PATHS, next, text);
                next
            });
            self.interned(&mut data, interned::FUNCTION_NAMES, id, &name);
            of_frame.clear();
            of_frame.number(IID, id);
            of_frame.number(frame::NAME, id);
            of_frame.number(frame::MAPPING, path);
            // Perfetto takes frames with the same address for one.
            let address = table.address.get(row);
            of_frame.number(frame::ADDRESS, address.unwrap_or(id));
            if is_known && table.kind[row] == FrameKind::Python && file.is_some() {
                of_frame.number(frame::SOURCE_PATH, path);
                if let Some(line) = table.line.at(row) {
                    of_frame.number(frame::LINE, line.into());
                }
            }
            data.message(interned::FRAMES, &of_frame);
        }
        self.state(&data)
    }

    /// Writes a stack, the outermost frame first. Its id is one more than that in the trace.
    fn callstack(&mut self, stack: StackId) -> io::Result<()> {
        let mut rows: Vec<usize> = self.scene.stacks.frame_rows(stack).collect();
        if rows.is_empty() {
            rows.push(self.scene.trace.tables.frames.len());
        }
        self.part.clear();
        self.part.number(IID, u64::from(stack.0) + 1);
        for row in rows.iter().rev() {
            self.part.number(FRAME_IDS, *row as u64 + 1);
        }
        let mut data = Message::default();
        data.message(interned::CALLSTACKS, &self.part);
        self.state(&data)
    }

    /// Writes a packet of interned data, which are added to the earlier ones.
    fn state(&mut self, data: &Message) -> io::Result<()> {
        self.packet.number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
        self.packet.message(packet::INTERNED_DATA, data);
        self.end_packet()
    }
}
