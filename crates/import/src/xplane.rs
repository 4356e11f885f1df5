//! Imports XSpace files (`NAME.xplane.pb`), which the profilers of JAX and TensorFlow write. A file is a list of
//! planes (one for each GPU, and some for the host), a plane of lines (streams or threads), a line of events.
//!
//! | in the file | in the trace |
//! |---|---|
//! | a plane `/device:GPU:N` | a device |
//! | its lines that are streams | queues |
//! | events there with `kernel_details`, and those that are no transfers | dispatches: launch, registers, shared memory |
//! | events there with `memcpy_details` or `memset_details`, or with a transfer's name | transfers with their bytes |
//! | `hlo_module`, `name` (the scope of the operation in the program) or `tf_op`, and `hlo_op` of an event | labels in that nesting |
//! | the plane `/host:CPU`, and those of CUPTI and ROCm | threads |
//! | functions of CUDA and HIP there, with the `correlation_id` of work | submissions |
//! | … all other functions there | host calls |
//! | all other events there | markers |
//!
//! Lines that the profiler derives from the streams (`XLA Ops`, `XLA Modules`, `Steps`, `Framework Ops`, …) repeat
//! the same work and are not imported. Times are picoseconds after the start of their line. Starts and ends are
//! rounded down to nanoseconds, so that adjacent work stays adjacent. By the rules of protobuf a file may have 2 GiB;
//! it is held in memory undecoded, because names come after the events that use them.

mod event;
mod plane;
mod work;

use crate::error::only_file;
use crate::perfetto::first_bytes;
use crate::profile::Profile;
use crate::protobuf::{Message, varint};
use crate::{Error, Importer, Options, Output, counted};
use gapscope_trace::LossKind;
use gapscope_trace::manifest::Api;
use plane::Plane;
use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use work::Collector;

/// Imports files of XSpace.
pub const IMPORTER: Importer = Importer {
    name: "XSpace",
    reads: "profiles of JAX and TensorFlow (NAME.xplane.pb)",
    recognises,
    read,
    joins_named_ranks: false,
};

/// The tag of a plane in a file: field 1, with a length.
const PLANE_TAG: u64 = 1 << 3 | 2;

/// The maximum size of a protobuf message.
const MAX_FILE_BYTES: u64 = 2 << 30;

/// Returns whether a file begins with a plane that has a name of XSpace.
fn recognises(path: &Path) -> bool {
    let Some(bytes) = first_bytes(path) else {
        return false;
    };
    // The file starts with its first plane, and that with its id and its name.
    let mut rest = bytes.as_slice();
    let (Some(PLANE_TAG), Some(length)) = (varint(&mut rest), varint(&mut rest)) else {
        return false;
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let torn = Cell::new(0);
    let plane = Message::new(&rest[..length.min(rest.len())], &torn);
    let first = plane.fields().take(2).find(|(number, _)| *number == 2);
    first.is_some_and(|(_, name)| {
        let name = name.text();
        name.starts_with("/host:") || name.starts_with("/device:") || name == "Task Environment"
    })
}

/// Reads one file: first the names of all planes, then the events of the host, then those of GPUs.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let path = only_file(inputs, "profile of XSpace")?;
    let (bytes, unread_end) = bytes_of(path)?;
    let torn = Cell::new(0);
    let space = Message::new(&bytes, &torn);
    let mut profile = Profile::new("XSpace", Api::Unknown);
    let inventory = &mut profile.inventory;
    let mut planes = Vec::new();
    let mut hosts = Vec::new();
    for (number, value) in space.fields() {
        match (number, value.message()) {
            (1, Some(plane)) => planes.push(Plane::parse(plane)),
            (2 | 3, Some(_)) => inventory.note(format!("The profiler says: {}", value.text())),
            (4, Some(_)) => hosts.push(value.text().into_owned()),
            _ => {}
        }
    }
    if torn.take() > 0 {
        let read = planes.iter().map(|plane| plane.bytes).sum();
        let share = counted::share(read, bytes.len() as u64);
        let reason = format!(
            "the file ends in the middle of a plane or is damaged there; {share} of it were read"
        );
        inventory.losses.add(LossKind::FileRests, 1, reason);
    }
    if let Some(reason) = unread_end {
        inventory.losses.add(LossKind::FileRests, 1, reason);
    }
    if !planes.iter().any(|plane| plane.gpu.is_some()) {
        return Err(Error::nothing(format!(
            "{} has no plane of a GPU: profiles of TPUs and of the CPU alone are not imported",
            path.display()
        )));
    }
    let trace = output.trace()?;
    let mut work = Collector::new(profile, options.pid.unwrap_or(0), &planes);
    // Calls come first, so that work finds the calls that submitted it.
    let all = bytes.len() as u64;
    let mut done = 0;
    planes.sort_by_key(|plane| plane.gpu.is_some());
    for plane in &planes {
        work.add(plane);
        done += plane.bytes;
        output.progress(done, all);
    }
    let (mut profile, reasons) = work.complete();
    if !profile.has_rows() {
        return Err(Error::nothing(format!(
            "{} has no events of GPUs or threads",
            path.display()
        )));
    }
    let inventory = &mut profile.inventory;
    inventory.lose(LossKind::Records, torn.get(), "they are cut or malformed");
    if let Some(host) = hosts.first().filter(|host| !host.is_empty()) {
        inventory.note(format!("Recorded on {host}."));
    }
    if hosts.len() > 1 {
        inventory.note("The file is of several machines: their work is on one process here.");
    }
    if options.pid.is_none() {
        inventory.note("XSpace does not name processes: all is on one here.");
    }
    inventory.note(
        "XSpace says neither how well times of the GPU agree with those of the host nor how work waits for work.",
    );
    profile.times.streams_are_queues = true;
    profile.write(reasons, options, trace, output)
}

/// Returns the content of a file, decompressed if it is compressed, and the reason why its end could not be read; `None` where
/// it was read whole.
fn bytes_of(path: &Path) -> Result<(Vec<u8>, Option<String>), Error> {
    let failed = Error::read(path);
    let used = Arc::new(AtomicU64::new(0));
    let file = counted::open(path, used.clone()).map_err(failed)?;
    let mut bytes = Vec::new();
    let read = file
        .content
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes);
    let unread_end = match read {
        Ok(_) => None,
        Err(error) if bytes.is_empty() => return Err(failed(error)),
        // The readable start of a cut file is imported.
        Err(error) => {
            let why = counted::stopped(&error, used.load(Ordering::Relaxed), file.bytes);
            Some(format!("the file cannot be read further: {why}"))
        }
    };
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::foreign(
            path,
            "a profile of XSpace",
            "it is longer than 2 GiB, which no message of protobuf is",
        ));
    }
    Ok((bytes, unread_end))
}
