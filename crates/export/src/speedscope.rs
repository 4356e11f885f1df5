//! speedscope: a profile for each lane, in the file format <https://www.speedscope.app/file-format-schema.json>.
//!
//! speedscope shows one profile at a time. Times are nanoseconds since the first time of the trace.

use crate::Exported;
use crate::json::{self, Commas};
use crate::lanes::{self, Step};
use crate::scene::Scene;
use crate::slice::Slice;
use gapscope_trace::Trace;
use std::io::{self, Write};

/// Writes a trace.
///
/// # Errors
/// Those of `out`.
pub fn write(trace: &Trace, out: &mut impl Write) -> io::Result<Exported> {
    let scene = Scene::of(trace);
    let schema = "https://www.speedscope.app/file-format-schema.json";
    write!(
        out,
        "{{\"$schema\":\"{schema}\",\"exporter\":\"gapscope {}\",",
        env!("CARGO_PKG_VERSION")
    )?;
    out.write_all(b"\"shared\":{\"frames\":[")?;
    let mut commas = Commas::default();
    for name in json::strings(&scene.names.texts) {
        commas.next(out)?;
        write!(out, "{{\"name\":{name}}}")?;
    }
    out.write_all(b"\n]},\"profiles\":[")?;
    let mut commas = Commas::default();
    for group in &scene.groups {
        for track in &group.tracks {
            for (lane, slices) in track.lanes.iter().enumerate() {
                commas.next(out)?;
                let name = format!("{} — {}", track.lane_name(lane), group.name);
                write_lane(&scene, &name, slices, out)?;
            }
        }
    }
    out.write_all(b"\n]}\n")?;
    Ok(scene.exported())
}

fn write_lane(scene: &Scene, name: &str, slices: &[Slice], out: &mut impl Write) -> io::Result<()> {
    let name = json::string(name);
    let end_ns = scene.ns(scene.end_ns);
    // All profiles are of the whole recording, so that equal places are equal times.
    write!(
        out,
        "{{\"type\":\"evented\",\"name\":{name},\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{end_ns},\"events\":["
    )?;
    let mut commas = Commas::default();
    lanes::walk(slices, |step| {
        commas.next(out)?;
        let (kind, slice, at_ns) = match step {
            Step::Start(slice) => (b'O', slice, slice.start_ns),
            Step::End(slice) => (b'C', slice, slice.end_ns),
        };
        out.write_all(&[b'{', b'"', b't', b'y', b'p', b'e', b'"', b':', b'"', kind])?;
        out.write_all(b"\",\"frame\":")?;
        let mut buffer = itoa::Buffer::new();
        out.write_all(buffer.format(scene.name(slice).0).as_bytes())?;
        out.write_all(b",\"at\":")?;
        out.write_all(buffer.format(scene.ns(at_ns)).as_bytes())?;
        out.write_all(b"}")
    })?;
    out.write_all(b"]}")
}
