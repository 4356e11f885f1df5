//! Writes the scenes (drawn forms) of several traces on one clock, such as those of a program's ranks, into one file,
//! with one at a time in memory: [`Joined::begin`], [`Joined::add`] for each scene, [`Joined::end`].

use crate::firefox::JoinedProfile;
use crate::json::CommaList;
use crate::perfetto::GpuInfo;
use crate::scene::{GroupKind, PlaceInFile, Scene};
use crate::{Exported, chrome, perfetto, speedscope};
use gapscope_trace::Manifest;
use gapscope_trace::embedded::Sealing;
use rustc_hash::FxHashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A format in which one file holds several traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinedFormat {
    /// Perfetto's native format.
    Perfetto,
    /// Chrome's trace events.
    Chrome,
    /// The format of Firefox Profiler.
    Firefox,
    /// The format of speedscope.
    Speedscope,
}

/// A file to which traces are added one after the other.
pub struct Joined<W> {
    format: JoinedFormat,
    out: Sealing<W>,
    /// The folder of a trace whose ranks are the traces of the file, which is embedded behind the drawing.
    embedded: Option<PathBuf>,
    /// The first and the last time of all traces, as the caller gave them.
    origin_ns: i64,
    end_ns: i64,
    /// The pids that are taken, by processes or by other groups.
    pids: FxHashSet<u32>,
    /// The next number for a group that cannot have its process's id.
    next_pid: u32,
    /// The number of traces that have been added.
    parts: u32,
    /// For Chrome: whether an event has been written.
    any: bool,
    /// For Perfetto: the GPUs of all traces, which are written last.
    gpus: GpuInfo,
    /// For Firefox Profiler: what is written last.
    firefox: JoinedProfile,
    /// The frames of speedscope, which are written last.
    frames: Vec<u8>,
    /// The number of frames in `frames`.
    frame_count: usize,
    frame_commas: CommaList,
    profile_commas: CommaList,
    /// The manifest of the first trace.
    manifest: Option<Manifest>,
}

impl<W: Write + Send> Joined<W> {
    /// Begins a file of traces whose times are from `origin_ns` to `end_ns`.
    ///
    /// # Errors
    /// Writing to `out` fails.
    pub fn begin(
        format: JoinedFormat,
        origin_ns: i64,
        end_ns: i64,
        out: W,
    ) -> io::Result<Joined<W>> {
        let mut out = Sealing::new(out);
        match format {
            JoinedFormat::Perfetto => {}
            JoinedFormat::Chrome => chrome::begin(&mut out)?,
            JoinedFormat::Firefox => JoinedProfile::begin(&mut out)?,
            JoinedFormat::Speedscope => {
                speedscope::begin(&mut out)?;
                out.write_all(b"\"profiles\":[")?;
            }
        }
        Ok(Joined {
            format,
            out,
            embedded: None,
            origin_ns,
            end_ns,
            pids: FxHashSet::default(),
            // No system has such pids.
            next_pid: 1_000_000_000,
            parts: 0,
            any: false,
            gpus: GpuInfo::default(),
            firefox: JoinedProfile::default(),
            frames: Vec::new(),
            frame_count: 0,
            frame_commas: CommaList::default(),
            profile_commas: CommaList::default(),
            manifest: None,
        })
    }

    /// Embeds the trace of a folder together with those of its ranks, which are then the traces of the file; of the folder
    /// [`gapscope_trace::embedded::can_embed_ranks`] is true. Only files for Perfetto and Chrome have room. No trace has been
    /// added before.
    ///
    /// # Errors
    /// Writing to the file fails.
    pub fn embed(&mut self, folder: &Path) -> io::Result<()> {
        match self.format {
            JoinedFormat::Perfetto => perfetto::announce(&mut self.out)?,
            JoinedFormat::Chrome => {}
            JoinedFormat::Firefox | JoinedFormat::Speedscope => return Ok(()),
        }
        self.embedded = Some(folder.to_owned());
        Ok(())
    }

    /// Adds a trace, and returns the counts of its rows. In the scene, the names of groups then begin with `name`,
    /// and their pids are those in the file.
    ///
    /// # Errors
    /// Writing to the file fails.
    pub fn add(&mut self, name: &str, scene: &mut Scene) -> io::Result<Exported> {
        self.place(name, scene);
        let exported = match self.format {
            JoinedFormat::Perfetto => perfetto::write_part(scene, &mut self.gpus, &mut self.out)?,
            JoinedFormat::Chrome => chrome::write_part(scene, &mut self.any, &mut self.out)?,
            JoinedFormat::Firefox => {
                self.firefox.write_part(scene, &mut self.out)?;
                scene.exported_with_samples()
            }
            JoinedFormat::Speedscope => {
                self.frame_count +=
                    speedscope::write_names(scene, &mut self.frame_commas, &mut self.frames)?;
                speedscope::write_part(scene, &mut self.profile_commas, &mut self.out)?;
                scene.exported_with_samples()
            }
        };
        self.parts += 1;
        Ok(exported)
    }

    /// Sets a scene's place among the others, and its times to those of all. Groups whose pid is taken, and those
    /// that are no processes, get a new pid.
    fn place(&mut self, name: &str, scene: &mut Scene) {
        scene.place = PlaceInFile {
            number: self.parts,
            joined: true,
            gpus: self.gpus.count(),
            frames: self.frame_count,
        };
        scene.origin_ns = self.origin_ns.min(scene.origin_ns);
        scene.end_ns = self.end_ns.max(scene.end_ns);
        for group in &mut scene.groups {
            group.name = format!("{name} · {}", group.name);
            // Tools take equal pids for one process.
            let known = group.kind == GroupKind::Process && self.pids.insert(group.pid);
            if !known {
                while !self.pids.insert(self.next_pid) {
                    self.next_pid += 1;
                }
                group.pid = self.next_pid;
            }
        }
        self.manifest
            .get_or_insert_with(|| scene.trace.manifest.clone());
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Writing to the file fails.
    pub fn end(mut self) -> io::Result<()> {
        let manifest = self.manifest.unwrap_or_default();
        match self.format {
            JoinedFormat::Perfetto => {
                self.gpus.write(&mut self.out)?;
                if let Some(folder) = &self.embedded {
                    let seal = self.out.seal();
                    perfetto::embed(folder, seal, &mut self.out)?;
                }
            }
            JoinedFormat::Chrome => {
                if let Some(folder) = &self.embedded {
                    chrome::embed(folder, self.any, &mut self.out)?;
                }
                chrome::end(&manifest, self.origin_ns, &mut self.out)?;
            }
            JoinedFormat::Firefox => self.firefox.end(&mut self.out)?,
            JoinedFormat::Speedscope => {
                self.out.write_all(b"\n],\"shared\":{\"frames\":[")?;
                self.out.write_all(&self.frames)?;
                self.out.write_all(b"\n]}}\n")?;
            }
        }
        self.out.flush()
    }
}
