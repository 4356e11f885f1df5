//! Writes a scene (a trace as tools draw it: groups of tracks of lanes of slices) in speedscope's format
//! <https://www.speedscope.app/file-format-schema.json>: a profile for each lane, and one for the samples of each
//! thread. Profiles refer to frames (names) by index: first the texts of the scene, then the frames of sampled code.
//!
//! speedscope shows one profile at a time. Times are nanoseconds since the first time of the trace. For several
//! traces in one file, `joined` calls `begin`, then `write_names` and `write_part` for each.

use crate::Exported;
use crate::json::{self, CommaList};
use crate::lanes::{self, Step};
use crate::ordered_output::write_in_order;
use crate::packed::Lane;
use crate::scene::{Scene, ThreadSamples};
use crate::texts::cut;
use gapscope_trace::tables::Table;
use std::io::{self, Write};

/// Writes a trace as one file, and returns the counts of its rows.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(scene: &Scene, out: &mut (impl Write + Send)) -> io::Result<Exported> {
    begin(out)?;
    out.write_all(b"\"shared\":{\"frames\":[")?;
    write_names(scene, &mut CommaList::default(), out)?;
    out.write_all(b"\n]},\"profiles\":[")?;
    write_part(scene, &mut CommaList::default(), out)?;
    out.write_all(b"\n]}\n")?;
    Ok(scene.exported_with_samples())
}

/// Writes the part of a file before frames and profiles.
pub(crate) fn begin(out: &mut impl Write) -> io::Result<()> {
    let schema = "https://www.speedscope.app/file-format-schema.json";
    write!(
        out,
        "{{\"$schema\":\"{schema}\",\"exporter\":\"gapscope {}\",",
        env!("CARGO_PKG_VERSION")
    )
}

/// Writes the frames that the profiles of a trace name, behind those of earlier traces, and returns their number.
pub(crate) fn write_names(
    scene: &Scene,
    commas: &mut CommaList,
    out: &mut impl Write,
) -> io::Result<usize> {
    let mut count = 0;
    for name in json::strings(&scene.names.texts) {
        commas.next(out)?;
        write!(out, "{{\"name\":{name}}}")?;
        count += 1;
    }
    if !scene.trace.tables.samples.is_empty() {
        count += write_frames(scene, commas, out)?;
    }
    Ok(count)
}

/// Writes the profiles of a trace.
pub(crate) fn write_part(
    scene: &Scene,
    commas: &mut CommaList,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    for group in &scene.groups {
        for track in &group.tracks {
            for (lane, slices) in track.lanes.iter().enumerate() {
                commas.next(out)?;
                let name = format!("{} — {}", track.lane_name(lane), group.name);
                write_lane(scene, &name, slices, out)?;
            }
        }
        for samples in &group.samples {
            commas.next(out)?;
            let name = format!("{} · code — {}", samples.name, group.name);
            write_samples(scene, &name, samples, out)?;
        }
    }
    Ok(())
}

/// Writes a lane as a profile of events: each slice opens and closes a frame.
fn write_lane(
    scene: &Scene,
    name: &str,
    lane: &Lane,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let name = json::string(name);
    let end_ns = scene.ns(scene.end_ns);
    // All profiles span the whole recording, so that equal places are equal times.
    write!(
        out,
        "{{\"type\":\"evented\",\"name\":{name},\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{end_ns},\"events\":["
    )?;
    if lanes::is_flat(lane) {
        write_in_order(out, lane.blocks.iter().enumerate(), |(at, block), text| {
            let mut commas = CommaList::after(at > 0);
            block.slices().try_for_each(|drawn| {
                write_step(scene, Step::Start(drawn), &mut commas, text)?;
                write_step(scene, Step::End(drawn), &mut commas, text)
            })
        })?;
    } else {
        let mut commas = CommaList::default();
        lanes::walk(lane, |step| write_step(scene, step, &mut commas, out))?;
    }
    out.write_all(b"]}")
}

/// Writes the opening or closing of a slice's frame.
fn write_step(
    scene: &Scene,
    step: Step,
    commas: &mut CommaList,
    out: &mut impl Write,
) -> io::Result<()> {
    commas.next(out)?;
    let (event, drawn, at_ns) = match step {
        Step::Start(drawn) => (b"{\"type\":\"O\",\"frame\":", drawn, drawn.slice.start_ns),
        Step::End(drawn) => (b"{\"type\":\"C\",\"frame\":", drawn, drawn.slice.end_ns),
    };
    out.write_all(event)?;
    let mut buffer = itoa::Buffer::new();
    let frame = scene.place.frames + scene.name(&drawn).0 as usize;
    out.write_all(buffer.format(frame).as_bytes())?;
    out.write_all(b",\"at\":")?;
    out.write_all(buffer.format(scene.ns(at_ns)).as_bytes())?;
    out.write_all(b"}")
}

/// Writes the frames of stacks behind all others, and then one for stacks that could not be read. Returns their
/// number.
fn write_frames(scene: &Scene, commas: &mut CommaList, out: &mut impl Write) -> io::Result<usize> {
    let frames = &scene.trace.tables.frames;
    for (row, name) in scene.frame_names().enumerate() {
        commas.next(out)?;
        write!(out, "{{\"name\":{}", json::string(&name))?;
        if let Some(file) = frames.file[row].as_ref().or(frames.library[row].as_ref()) {
            write!(out, ",\"file\":{}", json::string(&cut(file)))?;
        }
        if let Some(line) = frames.line.at(row) {
            write!(out, ",\"line\":{line}")?;
        }
        out.write_all(b"}")?;
    }
    commas.next(out)?;
    out.write_all(b"{\"name\":\"unknown code\"}")?;
    Ok(frames.len() + 1)
}

/// Writes the samples of a thread, each as long as its period. Times without samples get empty stacks, because such a
/// profile has no times of its own.
fn write_samples(
    scene: &Scene,
    name: &str,
    samples: &ThreadSamples,
    out: &mut impl Write,
) -> io::Result<()> {
    let table = &scene.trace.tables.samples;
    // For each sample: its row, the time without samples before it, and its period. A sample begins half its period
    // before its time, or where the one before ends.
    let spans = || {
        let mut end_ns = 0u64;
        samples.rows.iter().map(move |row| {
            let row = *row as usize;
            let period_ns = table.period_ns.at(row).unwrap_or(0).unsigned_abs();
            let start_ns = scene.ns(table.time_ns[row]).saturating_sub(period_ns / 2);
            let before_ns = start_ns.saturating_sub(end_ns);
            end_ns = end_ns.saturating_add(before_ns).saturating_add(period_ns);
            (row, before_ns, period_ns)
        })
    };
    let all_ns = spans().fold(0u64, |sum, (_, before_ns, period_ns)| {
        sum.saturating_add(before_ns).saturating_add(period_ns)
    });
    let end_ns = scene.ns(scene.end_ns).max(all_ns);
    write!(
        out,
        "{{\"type\":\"sampled\",\"name\":{},\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{end_ns},\"samples\":[",
        json::string(name)
    )?;
    let first = scene.place.frames + scene.names.texts.all().len();
    let unknown = first + scene.trace.tables.frames.len();
    let mut commas = CommaList::default();
    let mut frames = Vec::new();
    for (row, before_ns, _) in spans() {
        if before_ns > 0 {
            commas.next(out)?;
            out.write_all(b"[]")?;
        }
        commas.next(out)?;
        frames.clear();
        if let Some(stack) = table.stack.at(row) {
            frames.extend(scene.stacks.frame_rows(stack).map(|row| first + row));
        }
        if frames.is_empty() {
            frames.push(unknown);
        }
        out.write_all(b"[")?;
        let mut buffer = itoa::Buffer::new();
        for (at, frame) in frames.iter().rev().enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            out.write_all(buffer.format(*frame).as_bytes())?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"],\"weights\":[")?;
    let mut commas = CommaList::default();
    for (_, before_ns, period_ns) in spans() {
        for ns in [before_ns, period_ns].into_iter().filter(|ns| *ns > 0) {
            commas.next(out)?;
            write!(out, "{ns}")?;
        }
    }
    out.write_all(b"]}")
}
