//! Samples hardware counters (quantities that a GPU counts, such as bytes or busy units). This is done in a process
//! beside the program, the sampler, so that what a GPU vendor's libraries do affects neither the program nor the
//! session (the process of `gapscope record`). This file is the session's side of that process.
//!
//! The session calls `Counters::start` before the program starts, `Counters::follow` for devices that appear,
//! `Counters::take` for the reports so far, and at the end `Counters::finish` and `Counters::not_followed`.

pub(crate) mod pipe;
mod sampler;
mod selection;

use crate::unhooked_processes::cuda::{CUDA_INJECTION, NVTX_INJECTION};
use gapscope_model::{Api, LossKind};
use gapscope_spool::{env, monotonic_ns};
use gapscope_trace::manifest::{Device, Unmeasured};
use pipe::{Batch, Column, LostSamples, SamplerReport, SamplerRequest};
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use gapscope_spool::env::CUPTI;
pub use sampler::{SamplerError, can_sample_counters, sample_counters};
pub use selection::{CounterOptions, CounterSet, UnknownCounter};

/// The command of gapscope that runs [`sample_counters`].
pub const SAMPLER_COMMAND: &str = "sample-counters";
/// The variables that are removed for the process that samples: they load libraries into it, have it recorded, or
/// hide GPUs from it.
pub const REMOVED_VARIABLES: [&str; 7] = [
    CUDA_INJECTION,
    NVTX_INJECTION,
    env::SPOOL,
    env::MODE,
    env::RECORDING,
    "CUDA_VISIBLE_DEVICES",
    "LD_PRELOAD",
];
/// The program starts when the sampler is prepared, or after this time.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time that the sampler has at the end to report what is left.
const FINISH_TIMEOUT: Duration = Duration::from_secs(8);
/// The most reports that wait for the session; then the sampler waits.
const MAX_QUEUED_REPORTS: usize = 256;
/// The beginning of a note on counters that were asked for and not sampled.
pub const NOT_SAMPLED: &str = "Not sampled";
/// The beginning of the names of hardware counters in [`Unmeasured`].
pub(crate) const WHAT: &str = "hardware counters";

/// A report of the sampler, for the trace.
#[derive(Debug)]
pub(crate) enum CounterUpdate {
    /// Samples of a GPU, and their columns (the counter of each value).
    Samples {
        uuid: Arc<str>,
        columns: Arc<[Column]>,
        batch: Batch,
    },
    Unmeasured(Unmeasured),
    /// The samples of a GPU that are missing for one reason, reported at the end.
    Lost {
        uuid: Arc<str>,
        kind: LossKind,
        count: u64,
        reason: String,
    },
}

/// The session's side of the process that samples.
#[derive(Debug)]
pub(crate) struct Counters {
    process: Option<Child>,
    /// The socket to the process; absent when it was not started.
    requests: Option<UnixStream>,
    /// The reports that `reader`, a thread that listens to the socket, passes on.
    reports: Option<Receiver<SamplerReport>>,
    reader: Option<JoinHandle<()>>,
    /// The names of the GPUs, by their UUIDs.
    gpus: FxHashMap<String, String>,
    /// The streams (each the samples of one GPU) by the sampler's numbers.
    streams: FxHashMap<u32, GpuStream>,
    /// The missing samples, by GPU and reason.
    lost: Vec<(Arc<str>, String, MissingSamples)>,
    /// Whether the Vulkan layer counts what other drivers offer.
    has_vulkan_queries: bool,
    /// The reason why no process was started.
    failure: Option<Unmeasured>,
}

/// The samples of one GPU.
#[derive(Debug)]
struct GpuStream {
    uuid: Arc<str>,
    columns: Arc<[Column]>,
    /// The time between two samples.
    interval_ns: u64,
    /// The time of the first report.
    began_ns: i64,
    /// The end of the last sample.
    end_ns: Option<i64>,
    /// Whether samples are missing, which are counted.
    has_lost: bool,
}

/// The samples of a GPU that are missing for one reason: the number of gaps, of samples and of nanoseconds.
#[derive(Debug, Default)]
struct MissingSamples {
    gaps: u64,
    samples: u64,
    duration_ns: u64,
    longest_ns: u64,
    /// The start of the longest gap.
    longest_at_ns: i64,
}

impl Counters {
    /// Starts the process for the command that runs the file `program`, and waits until it is prepared, for at most
    /// [`PREPARE_TIMEOUT`]. A failure is kept for [`Self::finish`].
    pub fn start(options: &CounterOptions, program: PathBuf) -> Counters {
        let mut counters = Counters {
            process: None,
            requests: None,
            reports: None,
            reader: None,
            gpus: FxHashMap::default(),
            streams: FxHashMap::default(),
            lost: Vec::new(),
            has_vulkan_queries: options.set.includes_other_vendors(),
            failure: None,
        };
        if let Err(error) = counters.launch(options, program) {
            counters.failure = Some(Unmeasured {
                what: WHAT.to_owned(),
                reason: format!("the process that samples them could not be started: {error}"),
            });
        }
        counters
    }

    /// Starts the process and the thread that reads its reports, and awaits the first report.
    fn launch(&mut self, options: &CounterOptions, program: PathBuf) -> std::io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(SAMPLER_COMMAND);
        // The variables are for the program; they, or those of another recorder around this one, would disturb the
        // sampler.
        for variable in REMOVED_VARIABLES {
            command.env_remove(variable);
        }
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C reaches the terminal's foreground group, but the session decides when the sampler ends.
        command.process_group(0);
        self.process = Some(command.spawn()?);
        let mut requests = ours.try_clone()?;
        pipe::write(
            &mut requests,
            &SamplerRequest::Prepare {
                counters: options.set.counters().to_vec(),
                interval_ns: options.interval().as_nanos() as u64,
                executable: program,
                parent: std::process::id(),
            },
        )?;
        self.requests = Some(requests);
        let (send, reports) = sync_channel(MAX_QUEUED_REPORTS);
        let reader = std::thread::Builder::new().name("counters".to_owned());
        self.reader = Some(reader.spawn(move || listen(ours, &send))?);
        let prepared = reports.recv_timeout(PREPARE_TIMEOUT);
        debug_assert!(!matches!(prepared, Ok(SamplerReport::Samples(_))));
        self.reports = Some(reports);
        Ok(())
    }

    /// Samples these devices, which `process` uses, from now on, each once. Returns reports of those that cannot be
    /// sampled.
    pub fn follow<'a>(
        &mut self,
        devices: impl Iterator<Item = &'a Device>,
        process: Option<u32>,
    ) -> Vec<CounterUpdate> {
        let mut updates = Vec::new();
        for device in devices {
            if !self.is_new(device) {
                continue;
            }
            if !crate::conditions::is_of_nvidia(device) {
                updates.extend(self.unsampled(device));
                continue;
            }
            let request = SamplerRequest::Gpu {
                uuid: device.uuid.clone(),
                name: device.name.clone(),
                process,
            };
            if let Some(requests) = &mut self.requests {
                // A sampler that is gone is noticed by its missing reports.
                let _ = pipe::write(requests, &request);
            }
        }
        updates
    }

    /// Returns true for a GPU that was not followed before, and remembers it. A device without a UUID is never new.
    fn is_new(&mut self, device: &Device) -> bool {
        if device.uuid.is_empty() || self.gpus.contains_key(&device.uuid) {
            return false;
        }
        let (uuid, name) = (device.uuid.clone(), device.name.clone());
        self.gpus.insert(uuid, name).is_none()
    }

    /// Returns the reason why another vendor's device is not sampled. Returns nothing for Vulkan devices whose
    /// driver counts: the layer reports those.
    fn unsampled(&self, device: &Device) -> Option<CounterUpdate> {
        let reason = match device.api {
            Api::Vulkan if self.has_vulkan_queries => return None,
            Api::Vulkan => "names are those of NVIDIA's GPUs; for others write `default`",
            _ => "only those of NVIDIA's GPUs are sampled here",
        };
        Some(not_sampled(device, reason))
    }

    /// Returns that devices are not sampled because they appeared only after the program had ended.
    pub fn not_followed<'a>(
        &mut self,
        devices: impl Iterator<Item = &'a Device>,
    ) -> Vec<CounterUpdate> {
        let new: Vec<&Device> = devices.filter(|d| self.is_new(d)).collect();
        let update = |device: &Device| match crate::conditions::is_of_nvidia(device) {
            true => Some(not_sampled(
                device,
                "the program ended before sampling began",
            )),
            false => self.unsampled(device),
        };
        new.into_iter().filter_map(update).collect()
    }

    /// Returns the reports since the last call.
    pub fn take(&mut self) -> Vec<CounterUpdate> {
        let reports = self
            .reports
            .as_ref()
            .map(|reports| reports.try_iter().collect());
        let reports: Vec<SamplerReport> = reports.unwrap_or_default();
        reports
            .into_iter()
            .filter_map(|report| self.take_report(report))
            .collect()
    }

    /// Notes streams and losses, and returns what goes into the trace now.
    fn take_report(&mut self, report: SamplerReport) -> Option<CounterUpdate> {
        match report {
            SamplerReport::Ready | SamplerReport::Ended => None,
            SamplerReport::Started {
                stream,
                uuid,
                interval_ns,
                columns,
            } => {
                self.streams.insert(
                    stream,
                    GpuStream {
                        uuid: uuid.into(),
                        columns: columns.into(),
                        interval_ns,
                        began_ns: monotonic_ns(),
                        end_ns: None,
                        has_lost: false,
                    },
                );
                None
            }
            SamplerReport::Samples(batch) => {
                let stream = self.streams.get_mut(&batch.stream)?;
                let last = batch.samples(stream.columns.len()).last();
                stream.end_ns = last.map(|s| s.start_ns + s.duration_ns).or(stream.end_ns);
                Some(CounterUpdate::Samples {
                    uuid: stream.uuid.clone(),
                    columns: stream.columns.clone(),
                    batch,
                })
            }
            SamplerReport::Lost(lost) => {
                self.lose(lost);
                None
            }
            SamplerReport::Unmeasured(unmeasured) => Some(CounterUpdate::Unmeasured(unmeasured)),
        }
    }

    /// Adds a gap to the missing samples of its GPU and reason.
    fn lose(&mut self, lost: LostSamples) {
        let Some(stream) = self.streams.get_mut(&lost.stream) else {
            return;
        };
        stream.has_lost = true;
        let of_it = |(uuid, reason, _): &(Arc<str>, String, MissingSamples)| {
            *uuid == stream.uuid && *reason == lost.reason
        };
        let known = self.lost.iter().position(of_it);
        let at = known.unwrap_or_else(|| {
            let new = (stream.uuid.clone(), lost.reason, MissingSamples::default());
            self.lost.push(new);
            self.lost.len() - 1
        });
        let missing = &mut self.lost[at].2;
        missing.gaps += 1;
        missing.samples = missing.samples.saturating_add(lost.samples);
        missing.duration_ns = missing.duration_ns.saturating_add(lost.duration_ns);
        if lost.duration_ns > missing.longest_ns {
            (missing.longest_ns, missing.longest_at_ns) = (lost.duration_ns, lost.from_ns);
        }
    }

    /// Ends the process after it has reported what is left, at the latest after [`FINISH_TIMEOUT`], and returns these
    /// reports, the failure, and all losses. `start_ns` is the recording's start.
    pub fn finish(&mut self, start_ns: i64) -> Vec<CounterUpdate> {
        let asked_ns = monotonic_ns();
        if let Some(requests) = &mut self.requests {
            let _ = pipe::write(requests, &SamplerRequest::Finish);
        }
        let until = Instant::now() + FINISH_TIMEOUT;
        let (mut updates, mut ended) = (Vec::new(), false);
        while let Some(reports) = &self.reports {
            match reports.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(SamplerReport::Ended) => {
                    ended = true;
                    break;
                }
                Ok(report) => updates.extend(self.take_report(report)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        self.reports = None;
        if !ended && self.process.is_some() {
            self.lose_rest(asked_ns);
        }
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        self.requests = None;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        updates.extend(self.failure.take().map(CounterUpdate::Unmeasured));
        updates.extend(self.without_samples(asked_ns));
        for (uuid, reason, missing) in self.lost.drain(..) {
            let seconds = |ns: u64| ns as f64 / 1e9;
            let at_s = (missing.longest_at_ns - start_ns) as f64 / 1e9;
            let times = format!(
                "{} {}, {:.4} s in all, the longest {:.4} s from {at_s:.3} s on",
                missing.gaps,
                if missing.gaps == 1 { "gap" } else { "gaps" },
                seconds(missing.duration_ns),
                seconds(missing.longest_ns),
            );
            updates.push(CounterUpdate::Lost {
                uuid,
                kind: LossKind::CounterSamples,
                count: missing.samples,
                reason: format!("{reason}: {times}"),
            });
        }
        updates
    }

    /// Returns a report for each stream that gave neither a sample nor a loss until `until_ns`.
    fn without_samples(&self, until_ns: i64) -> Vec<CounterUpdate> {
        let is_silent = |stream: &&GpuStream| stream.end_ns.is_none() && !stream.has_lost;
        let silent = self.streams.values().filter(is_silent).map(|stream| {
            let name = self.gpus.get(&*stream.uuid);
            let counters: Vec<&str> = (stream.columns.iter())
                .map(|c| c.counter.as_str())
                .collect();
            let (name, counters) = (name.map_or("a GPU", String::as_str), counters.join(", "));
            let seconds = (until_ns - stream.began_ns).max(0) as f64 / 1e9;
            CounterUpdate::Unmeasured(Unmeasured {
                what: format!("{WHAT} of {name} ({counters})"),
                reason: format!(
                    "the program ended before the first sample, {seconds:.3} s after sampling began"
                ),
            })
        });
        silent.collect()
    }

    /// Counts what the sampler did not report as missing, when it ended without a last report.
    fn lose_rest(&mut self, until_ns: i64) {
        let reason = "the process that samples them ended before the program, or did not answer";
        let cut: Vec<LostSamples> = (self.streams.iter())
            .filter_map(|(stream, of)| {
                let from_ns = of.end_ns.unwrap_or(until_ns);
                let duration_ns = u64::try_from(until_ns - from_ns).ok()?;
                Some(LostSamples {
                    stream: *stream,
                    from_ns,
                    duration_ns,
                    samples: (duration_ns / of.interval_ns.max(1)).max(1),
                    reason: reason.to_owned(),
                })
            })
            .collect();
        if cut.is_empty() && self.failure.is_none() {
            self.failure = Some(Unmeasured {
                what: WHAT.to_owned(),
                reason: reason.to_owned(),
            });
        }
        cut.into_iter().for_each(|lost| self.lose(lost));
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Creates the report that a device is not sampled.
fn not_sampled(device: &Device, reason: &str) -> CounterUpdate {
    CounterUpdate::Unmeasured(Unmeasured {
        what: format!("{WHAT} of {}", device.name),
        reason: reason.to_owned(),
    })
}

/// Passes reports on, until the stream or the session ends.
fn listen(mut from: UnixStream, reports: &SyncSender<SamplerReport>) {
    while let Ok(report) = pipe::read(&mut from) {
        if reports.send(report).is_err() {
            return;
        }
    }
}

/// Returns the file that a command runs, as far as that is known before the start.
pub(crate) fn executable(program: &OsString) -> PathBuf {
    let path = PathBuf::from(program);
    if path.components().count() > 1 {
        return std::path::absolute(&path).unwrap_or(path);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .map(|folder| folder.join(&path))
        .find(|file| file.is_file());
    found.unwrap_or(path)
}
