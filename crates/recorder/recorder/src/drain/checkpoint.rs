//! Writes and reads checkpoints: the state of a recording from which another session can continue it.

use super::RecordingHeader;
use crate::Error;
use crate::assembler::Assembler;
use gapscope_files::ContainedPath;
use gapscope_spool::Rank;
use gapscope_spool::reader::Damage;
use gapscope_trace::Parts;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::Unmeasured;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The checkpoint's file in the folder of a trace.
pub const STATE_FILE: &str = "parts/state";
/// The most bytes of [`STATE_FILE`]. It holds what command buffers do that may run again, and what has no end yet.
const MAX_STATE_BYTES: u64 = 4 << 30;
/// The version of [`STATE_FILE`]. It changes with everything in the file, so that a gapscope reads only its own.
pub const STATE_VERSION: u32 = 18;

/// The state of a recording. The version comes first in the file, so that it can be read from any version.
#[derive(Serialize, Deserialize)]
pub struct Checkpoint {
    pub version: u32,
    pub header: RecordingHeader,
    /// The parts (files of rows) of the recording's own trace that were complete.
    pub parts: Parts,
    pub assembler: Assembler,
    /// Each rank, with the parts and the assembler of its trace.
    pub ranks: Vec<(Rank, Parts, Assembler)>,
    pub processes: Vec<SpoolPosition>,
    pub unmeasured: Vec<Unmeasured>,
}

/// The position up to which the spool of a process has been read.
#[derive(Debug, Serialize, Deserialize)]
pub struct SpoolPosition {
    /// The name of the process's folder in the spool.
    pub folder: String,
    /// The index of its rank's trace; `None` for the recording's own trace.
    pub trace: Option<usize>,
    /// The id of the process in that trace.
    pub id: ProcessId,
    /// The position as `ProcessSpool::position` gives it.
    pub position: u64,
    pub damage: Damage,
}

/// A [`Checkpoint`] that borrows what it writes.
#[derive(Serialize)]
pub struct CheckpointRef<'a> {
    pub version: u32,
    pub header: &'a RecordingHeader,
    pub parts: &'a Parts,
    pub assembler: &'a Assembler,
    pub ranks: Vec<(Rank, &'a Parts, &'a Assembler)>,
    pub processes: Vec<SpoolPosition>,
    pub unmeasured: &'a [Unmeasured],
}

impl CheckpointRef<'_> {
    /// Replaces the checkpoint in the folder of the trace: a new file is written whole and then takes the old one's
    /// name.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = ContainedPath::new(folder, STATE_FILE);
        let new = path.beside("state.new");
        let write = || -> std::io::Result<()> {
            let file = std::io::BufWriter::with_capacity(1 << 20, new.create()?);
            let mut file = ErrorKeepingWriter { file, error: None };
            if let Err(error) = postcard::to_io(self, &mut file) {
                return Err(file.error.unwrap_or_else(|| std::io::Error::other(error)));
            }
            file.flush()?;
            new.rename(&path)
        };
        write().map_err(|error| {
            let _ = new.remove_file();
            Error::io(path.path())(error)
        })
    }
}

/// Keeps the error of a failed write, which postcard drops.
struct ErrorKeepingWriter<W> {
    file: W,
    /// The last failure.
    error: Option<std::io::Error>,
}

impl<W: Write> Write for ErrorKeepingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes).map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Checkpoint {
    /// Reads the checkpoint of a trace. Fails when there is none, it is damaged, or it is of another version.
    pub fn read(folder: &Path) -> Result<Checkpoint, Error> {
        let path = ContainedPath::new(folder, STATE_FILE);
        let unusable = |reason: &str| Error::NotRecoverable {
            path: folder.to_owned(),
            reason: reason.to_owned(),
        };
        let bytes = match path.read(MAX_STATE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(unusable("it holds no checkpoint of a recording"));
            }
            Err(error) => return Err(Error::io(path.path())(error)),
        };
        let (version, _) = postcard::take_from_bytes::<u32>(&bytes)
            .map_err(|_| unusable("its checkpoint is damaged"))?;
        if version != STATE_VERSION {
            return Err(unusable(
                "another version of gapscope recorded it; recover it with that one",
            ));
        }
        postcard::from_bytes(&bytes).map_err(|_| unusable("its checkpoint is damaged"))
    }
}

#[cfg(test)]
mod tests {
    use gapscope_trace::manifest::{Device, DeviceProperties, MeasuredPeaks};

    /// postcard writes no field names, so a field that is sometimes left out would be read as the next one.
    #[test]
    fn a_device_is_read_as_it_was_written() {
        let mut device = Device::default();
        for measured in [None, Some(MeasuredPeaks::default())] {
            device.limits = Some(DeviceProperties {
                measured,
                ..DeviceProperties::default()
            });
            device.name = "after it".to_owned();
            let bytes = postcard::to_stdvec(&device).unwrap();
            assert_eq!(postcard::from_bytes::<Device>(&bytes), Ok(device.clone()));
        }
    }
}
