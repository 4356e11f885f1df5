//! Writes a scene (a trace as tools draw it: groups of tracks of lanes of slices) in Chrome's trace event format, for
//! `chrome://tracing`, Perfetto's UI and other readers. For several traces in one file, `joined` calls `begin` first,
//! then `write_part` for each, then `end`.
//!
//! Events of one `tid` never overlap, because readers drop overlapping events: concurrent work is split into lanes,
//! each with a `tid` of its own. Times are microseconds since `otherData.origin_ns`, with three decimals, so that no
//! nanosecond is lost.

use crate::Exported;
use crate::json;
use crate::ordered_output::write_in_order;
use crate::scene::DetailValue;
use crate::scene::{Group, Scene, Track};
use crate::slice::LaneSlice;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gapscope_timeline::counters::Sample;
use gapscope_trace::Manifest;
use gapscope_trace::embedded::{Piece, Seal, Sealing, each_piece};
use std::io::{self, Write};
use std::path::Path;

/// Writes a trace as one file, and returns the counts of its rows.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(scene: &Scene, out: &mut (impl Write + Send)) -> io::Result<Exported> {
    let mut drawing = Sealing::new(&mut *out);
    let mut any = false;
    begin(&mut drawing)?;
    let exported = write_part(scene, &mut any, &mut drawing)?;
    if let Some(folder) = &scene.embedded {
        embed(folder, any, &mut drawing)?;
    }
    end(&scene.trace.manifest, scene.origin_ns, out)?;
    Ok(exported)
}

/// Writes the part of a file before the events, up to the open list `traceEvents`.
pub(crate) fn begin(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"drawnBy\":\"gapscope\",\"traceEvents\":[")
}

/// Writes the events of a trace. `any` says whether events precede what is written next in the file.
pub(crate) fn write_part(
    scene: &Scene,
    any: &mut bool,
    out: &mut (impl Write + Send),
) -> io::Result<Exported> {
    let mut writer = Writer {
        names: json::strings(&scene.names.texts),
        scene,
        out,
        any,
        line: Vec::new(),
        next_tid: 2_000_000_000,
    };
    writer.write()?;
    Ok(scene.exported())
}

/// Closes the list of events and writes `otherData`: the origin of times, the start as Unix time (null if it is not
/// known), the sampling mode and the version of gapscope.
pub(crate) fn end(manifest: &Manifest, origin_ns: i64, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\n],\"otherData\":{")?;
    writeln!(
        out,
        "\"origin_ns\":{origin_ns},\"start_unix_ns\":{},\"sampling_mode\":\"{}\",\"written_by\":\"gapscope {}\"}}}}",
        (manifest.start_unix_ns).map_or("null".to_owned(), |ns| ns.to_string()),
        manifest.sampling_mode.as_str(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Writes the trace of a folder as metadata events, which other readers pass over: its files in pieces, then the seal
/// of the drawing. The importer `drawn` reads them. `any` is true if events precede them in the file.
pub(crate) fn embed(folder: &Path, any: bool, out: &mut Sealing<impl Write>) -> io::Result<()> {
    // The separator belongs to the drawing, so that each piece is a line of its own.
    out.write_all(separator(any))?;
    let Seal { bytes, crc32 } = out.seal();
    const BEGIN: &str = "{\"ph\":\"M\",\"name\":\"gapscope trace\",\"pid\":0,\"tid\":0,\"args\":";
    let mut text = String::new();
    each_piece(folder, |Piece { file, bytes }| {
        text.clear();
        STANDARD.encode_string(bytes, &mut text);
        writeln!(
            out,
            "{BEGIN}{{\"file\":\"{file}\",\"base64\":\"{text}\"}}}},"
        )
    })?;
    write!(
        out,
        "{BEGIN}{{\"drawing_bytes\":{bytes},\"drawing_crc32\":{crc32}}}}}"
    )
}

/// The most groups of one trace. The groups of the next trace in a file are sorted behind them.
const MAX_GROUPS: usize = 10_000;

/// The state of writing the events of one trace.
struct Writer<'a, W> {
    scene: &'a Scene<'a>,
    /// The texts of the scene as JSON strings, by text id.
    names: Vec<String>,
    out: &'a mut W,
    /// Whether an event precedes the next one.
    any: &'a mut bool,
    /// The event that is being made; reused for each.
    line: Vec<u8>,
    /// The last `tid` that was given to a lane without a thread; they begin above those of threads.
    next_tid: u32,
}

impl<W: Write + Send> Writer<'_, W> {
    /// Writes for each group its name and place as metadata, then its tracks, then its counters.
    fn write(&mut self) -> io::Result<()> {
        let before = self.scene.place.number as usize * MAX_GROUPS;
        for (index, group) in self.scene.groups.iter().enumerate() {
            let pid = group.pid;
            self.name("process_name", pid, 0, &group.name)?;
            let sort = format!("\"sort_index\":{}", before + index);
            self.meta("process_sort_index", pid, 0, &sort)?;
            for (index, track) in group.tracks.iter().enumerate() {
                self.track(group, index, track)?;
            }
            self.counters(group)?;
        }
        Ok(())
    }

    /// Writes the lanes of a track. The first lane of a thread has the thread's id as `tid`, all others a new one.
    fn track(&mut self, group: &Group, index: usize, track: &Track) -> io::Result<()> {
        for (lane, slices) in track.lanes.iter().enumerate() {
            let tid = match track.thread {
                Some(thread) if lane == 0 => thread.0,
                _ => {
                    self.next_tid += 1;
                    self.next_tid
                }
            };
            self.name("thread_name", group.pid, tid, &track.lane_name(lane))?;
            let sort = format!("\"sort_index\":{index}");
            self.meta("thread_sort_index", group.pid, tid, &sort)?;
            let place = LaneWriter {
                scene: self.scene,
                names: &self.names,
                pid: group.pid,
                tid,
            };
            write_in_order(self.out, &slices.blocks, |block, line| {
                block.slices().for_each(|drawn| place.slice(&drawn, line));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes an event `C` for each sample of each counter. The key of its value is the unit.
    fn counters(&mut self, group: &Group) -> io::Result<()> {
        for counter in &group.counters {
            let name = json::string(&counter.name);
            for Sample {
                start_ns, value, ..
            } in &counter.samples
            {
                self.line.clear();
                self.line.extend_from_slice(b"{\"ph\":\"C\",\"name\":");
                self.line.extend_from_slice(name.as_bytes());
                place(&mut self.line, group.pid, 0, self.scene.ns(*start_ns));
                write!(
                    self.line,
                    ",\"args\":{{\"{}\":{value}}}}}",
                    counter.unit.as_str()
                )?;
                self.end_event()?;
            }
        }
        Ok(())
    }

    /// Writes the metadata `what`, `process_name` or `thread_name`.
    fn name(&mut self, what: &str, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        let name = json::string(name);
        self.meta(what, pid, tid, &format!("\"name\":{name}"))
    }

    /// Writes a metadata event (`M`) called `what`. `args` is the inside of its JSON object.
    fn meta(&mut self, what: &str, pid: u32, tid: u32, args: &str) -> io::Result<()> {
        self.line.clear();
        write!(
            self.line,
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{{args}}}}}"
        )?;
        self.end_event()
    }

    /// Writes the event in `line`, after a comma unless it is the file's first.
    fn end_event(&mut self) -> io::Result<()> {
        let any = std::mem::replace(self.any, true);
        self.out.write_all(separator(any))?;
        self.out.write_all(&self.line)
    }
}

const SEPARATOR: &[u8] = b",\n";

/// Returns what stands before an event. `any` is true if events precede it in the file.
fn separator(any: bool) -> &'static [u8] {
    match any {
        true => SEPARATOR,
        false => b"\n",
    }
}

/// Writes the slices of a lane, after other events.
struct LaneWriter<'a> {
    scene: &'a Scene<'a>,
    names: &'a [String],
    pid: u32,
    tid: u32,
}

impl LaneWriter<'_> {
    /// Appends a slice as an event `X`, and its flows: a call begins one to each target, and work ends its own.
    fn slice(&self, drawn: &LaneSlice, line: &mut Vec<u8>) {
        let (scene, slice) = (self.scene, &drawn.slice);
        let start_ns = scene.ns(slice.start_ns);
        line.extend_from_slice(SEPARATOR);
        line.extend_from_slice(b"{\"ph\":\"X\",\"name\":");
        line.extend_from_slice(self.names[scene.name(drawn).0 as usize].as_bytes());
        line.extend_from_slice(b",\"cat\":\"");
        line.extend_from_slice(slice.kind.as_str().as_bytes());
        line.push(b'"');
        place(line, self.pid, self.tid, start_ns);
        line.extend_from_slice(b",\"dur\":");
        microseconds(line, scene.ns(slice.end_ns) - start_ns);
        line.extend_from_slice(b",\"args\":{");
        let mut first = true;
        scene.details(drawn, |key, value| {
            if !std::mem::take(&mut first) {
                line.push(b',');
            }
            line.push(b'"');
            line.extend_from_slice(key.as_str().as_bytes());
            line.extend_from_slice(b"\":");
            match value {
                DetailValue::Unsigned(number) => integer(line, number),
                DetailValue::Signed(number) => integer(line, number),
                DetailValue::Text(text) => {
                    line.extend_from_slice(self.names[text.0 as usize].as_bytes())
                }
            }
        });
        line.extend_from_slice(b"}}");
        match slice.kind {
            _ if slice.flow == 0 => {}
            kind if kind.is_call() => {
                for target in scene.flows.targets_of_call(slice.flow) {
                    self.flow(b"\"ph\":\"s\"", start_ns, target + 1, line);
                }
            }
            _ => self.flow(b"\"ph\":\"f\",\"bp\":\"e\"", start_ns, slice.flow, line),
        }
    }

    /// Appends the start or end of an arrow. Its id is made of the trace's number in the file and the target plus
    /// one.
    fn flow(&self, phase: &[u8], at_ns: u64, id: u32, line: &mut Vec<u8>) {
        line.extend_from_slice(SEPARATOR);
        line.push(b'{');
        line.extend_from_slice(phase);
        line.extend_from_slice(b",\"name\":\"submit\",\"cat\":\"submit\",\"id\":");
        let file = u64::from(self.scene.place.number) << 32;
        integer(line, file | u64::from(id));
        place(line, self.pid, self.tid, at_ns);
        line.push(b'}');
    }
}

/// Appends the keys of an event that say where and when it is. `at_ns` counts from the scene's origin.
fn place(line: &mut Vec<u8>, pid: u32, tid: u32, at_ns: u64) {
    line.extend_from_slice(b",\"pid\":");
    integer(line, pid);
    line.extend_from_slice(b",\"tid\":");
    integer(line, tid);
    line.extend_from_slice(b",\"ts\":");
    microseconds(line, at_ns);
}

fn integer(line: &mut Vec<u8>, number: impl itoa::Integer) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends nanoseconds as microseconds with three decimals.
fn microseconds(line: &mut Vec<u8>, ns: u64) {
    integer(line, ns / 1000);
    let rest = ns % 1000;
    let digits = [rest / 100, rest / 10 % 10, rest % 10];
    line.push(b'.');
    line.extend(digits.map(|digit| b'0' + digit as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_keep_nanoseconds() {
        for (ns, text) in [
            (0, "0.000"),
            (7, "0.007"),
            (999, "0.999"),
            (1_234_567, "1234.567"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            let mut line = Vec::new();
            microseconds(&mut line, ns);
            assert_eq!(String::from_utf8(line).unwrap(), text);
        }
    }
}
