//! Samples one GPU with PM sampling of CUPTI (NVIDIA's profiling library), in which the GPU itself writes its
//! counters at a fixed rate into a hardware buffer. Polls decode that buffer into an image in this process
//! (`CounterData`), from which each sample is read, evaluated (metrics are computed from what was counted) and sent
//! to the session, the process of `gapscope record`. [`sample`] runs in the GPU's thread.

use super::plan::Plan;
use super::{Gpu, Libraries, Reporter, SamplerError, SamplingTask, wait_or_stop};
use crate::counters::pipe::{Batch, LostSamples, MAX_BATCH_SAMPLES, SamplerReport};
use gapscope_cupti::{CounterData, Failure, PmSampling, SamplingSettings, code};
use gapscope_model::HardwareCounter;
use gapscope_spool::monotonic_ns;
use gapscope_trace::tables::CounterUnit;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The buffer that the device writes into. With this size no sample was lost at 100 us (docs/counters.md).
const HARDWARE_BUFFER_BYTES: usize = 256 << 20;
/// The time between two polls, each of which costs by the size of the image, whatever is in it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The most samples that a poll expects. There is room for those of four polls.
const MAX_POLL_SAMPLES: u64 = 1024;
/// The fewest samples that a poll expects, so that polls stay rare at long intervals.
const MIN_POLL_SAMPLES: u64 = 50;
/// The least number of samples without a length in one poll that counts as a fault and not as chance.
const MIN_OUT_OF_STEP_SAMPLES: usize = 16;
/// The longest time that reading the remaining samples may take after a stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
/// The most starts in a row without a sample; after them, sampling ends.
const MAX_STARTS: u32 = 5;
/// Some devices accept these counters and then deliver no sample of any counter.
const NVLINK_COUNTERS: [HardwareCounter; 2] =
    [HardwareCounter::NvlinkReceived, HardwareCounter::NvlinkSent];
/// The reason for a gap at which no trouble was seen.
const UNKNOWN_CAUSE: &str = "the GPU gave none";
/// The last samples may still be in the device at the end: less than this is no gap where nothing went wrong.
const MAX_FINAL_DELAY_NS: i64 = 5_000_000;

/// Samples until `stop` is set. If no sample comes, the counters of NVLink are left out, and the others are sampled.
///
/// # Errors
/// The GPU cannot be sampled.
pub fn sample(
    libraries: &Libraries,
    task: &SamplingTask,
    gpu: &Gpu,
    reporter: &Reporter,
    stop: &AtomicBool,
) -> Result<(), SamplerError> {
    let with =
        |counters: &[HardwareCounter]| sample_these(counters, libraries, task, gpu, reporter, stop);
    let Err(refused) = with(&task.counters) else {
        return Ok(());
    };
    let (links, rest): (Vec<_>, Vec<_>) =
        (refused.undelivered.iter()).partition(|counter| NVLINK_COUNTERS.contains(counter));
    if links.is_empty() || rest.is_empty() {
        return Err(refused.why);
    }
    let reason = "CUPTI accepted them and then delivered no sample, so that the others are sampled without them";
    reporter.unmeasured(&links, &gpu.name, reason.to_owned());
    with(&rest).map_err(|refused| refused.why)
}

/// The reason why sampling ended early.
struct Refused {
    why: SamplerError,
    /// The counters that were accepted, when none of their samples came.
    undelivered: Vec<HardwareCounter>,
}

impl From<SamplerError> for Refused {
    fn from(why: SamplerError) -> Refused {
        Refused {
            why,
            undelivered: Vec::new(),
        }
    }
}

/// Samples these counters until `stop` is set: plans, sets the device up, reports the counters that are left out and
/// that the stream starts, and polls.
fn sample_these(
    counters: &[HardwareCounter],
    libraries: &Libraries,
    task: &SamplingTask,
    gpu: &Gpu,
    reporter: &Reporter,
    stop: &AtomicBool,
) -> Result<(), Refused> {
    let text = |uuid: &[u8; 16]| -> String { uuid.iter().map(|b| format!("{b:02x}")).collect() };
    let of_gpu = |device: &super::CudaDevice| text(&device.uuid) == gpu.uuid;
    let index = libraries
        .devices
        .iter()
        .position(of_gpu)
        .ok_or(SamplerError::NoWholeGpu)?;
    let refused = |failure| SamplerError::Cupti(failure, libraries.file.clone());
    let cupti = &libraries.cupti;
    let setup = libraries
        .setup
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let chip_facts = libraries.devices[index].chip_facts.clone();
    // Another user of the counters at that time may be gone.
    let chip_facts = chip_facts.or_else(|_| super::chip_facts(cupti, index));
    let (chip, availability) = chip_facts.map_err(refused)?;
    let plan = Plan::new(cupti, &chip, Some(&availability), counters).map_err(refused)?;
    if plan.counters.is_empty() {
        let chip = chip.to_string_lossy().into_owned();
        return Err(SamplerError::NoCounters(chip).into());
    }
    let mut sampling = PmSampling::enable(cupti, index).map_err(refused)?;
    let settings = SamplingSettings {
        interval_ns: task.interval_ns,
        hardware_buffer_bytes: HARDWARE_BUFFER_BYTES,
    };
    let config = plan.config.clone();
    sampling.configure(config, &settings).map_err(refused)?;
    // The number of samples between two polls.
    let of_a_poll = (POLL_INTERVAL.as_nanos() as u64 / task.interval_ns.max(1))
        .clamp(MIN_POLL_SAMPLES, MAX_POLL_SAMPLES);
    let most = (of_a_poll * 4) as u32;
    let fresh = sampling
        .counter_data(&plan.metrics, most)
        .map_err(refused)?;
    sampling.start().map_err(refused)?;
    drop(setup);
    for (counters, reason) in [
        (
            &plan.absent,
            "this GPU has no such counter, or CUPTI does not know it",
        ),
        (
            &plan.crowded,
            "cannot be counted in one pass with the others: ask for them alone, with `--counters=NAME`",
        ),
    ] {
        if !counters.is_empty() {
            reporter.unmeasured(counters, &gpu.name, reason.to_owned());
        }
    }
    reporter.report(&SamplerReport::Started {
        stream: gpu.stream,
        uuid: gpu.uuid.clone(),
        interval_ns: task.interval_ns,
        columns: plan.columns(task.interval_ns),
    });
    let mut sampled = DeviceSampling {
        data: fresh.clone(),
        fresh,
        taken: 0,
        is_first: true,
        samples: SampleStream::new(reporter, gpu.stream, task.interval_ns),
        values: vec![0.0; plan.counters.len()],
        plan,
        sampling,
    };
    let poll = Duration::from_nanos(of_a_poll * task.interval_ns);
    sampled.until(stop, poll).map_err(|failure| {
        sampled.samples.give_up(monotonic_ns());
        let undelivered = match sampled.samples.end_ns {
            None => std::mem::take(&mut sampled.plan.counters),
            Some(_) => Vec::new(),
        };
        Refused {
            why: refused(failure),
            undelivered,
        }
    })
}

/// The sampling of a GPU in progress.
struct DeviceSampling<'a> {
    sampling: PmSampling,
    plan: Plan,
    /// The image of the samples that have been decoded.
    data: CounterData,
    /// An unused copy of `data`.
    fresh: CounterData,
    /// The number of samples in `data` that have been read.
    taken: usize,
    /// Whether the next sample is the first after a start, which may begin seconds before the start.
    is_first: bool,
    /// The values of one sample, which are overwritten by the next one's.
    values: Vec<f64>,
    samples: SampleStream<'a>,
}

impl DeviceSampling<'_> {
    /// Polls once in each time `poll` until `stop` is set. After trouble (lost samples) the device is stopped, read
    /// and started again; after more than [`MAX_STARTS`] starts in a row without a sample, sampling fails.
    fn until(&mut self, stop: &AtomicBool, poll: Duration) -> Result<(), Failure> {
        let (mut starts, mut next) = (0, Instant::now() + poll);
        loop {
            let is_over = wait_or_stop(stop, next.saturating_duration_since(Instant::now()));
            if is_over {
                let now_ns = monotonic_ns();
                self.sampling.stop()?;
                self.drain();
                self.samples.end(now_ns);
                return Ok(());
            }
            if Instant::now() < next {
                continue;
            }
            let (taken, trouble) = self.poll();
            self.samples.flush();
            if taken > 0 {
                starts = 0;
            }
            if let Some(cause) = trouble {
                starts += 1;
                if starts > MAX_STARTS {
                    return Err(Failure {
                        function: "cuptiPmSamplingDecodeData",
                        code: code::OUT_OF_MEMORY,
                    });
                }
                self.samples.cause = Some(cause);
                self.sampling.stop()?;
                self.drain();
                self.samples.flush();
                self.is_first = true;
                self.sampling.start()?;
            }
            next = Instant::now().max(next) + poll;
        }
    }

    /// Decodes the samples that have come and sends them. Returns the number of usable ones, and why sampling has to
    /// start anew; `None` when it goes on.
    fn poll(&mut self) -> (usize, Option<&'static str>) {
        let decoded = self.sampling.decode(&mut self.data);
        let trouble = match &decoded {
            Err(_) => Some("CUPTI lost step with the GPU and could not decode them"),
            Ok(decoded) if decoded.overflow => Some("the hardware buffer was full"),
            Ok(decoded) if decoded.is_data_full => Some("there was no room for more decoded ones"),
            Ok(_) => None,
        };
        // The trouble's gap may lie before samples that were decoded now.
        self.samples.cause = trouble.or(self.samples.cause);
        let Ok(counts) = self.sampling.counts(&self.data) else {
            self.forget();
            return (0, Some("CUPTI could not say how many there are"));
        };
        let (from, mut bad) = (self.taken, 0);
        for index in from..counts.completed {
            bad += usize::from(!self.take(index));
        }
        self.taken = counts.completed.max(from);
        let came = self.taken - from;
        // A reset may split samples whose units have not all reported, so it waits for a good moment, but not
        // forever.
        let is_whole = counts.populated == counts.completed;
        if (is_whole && self.taken >= counts.total / 4) || self.taken >= counts.total / 2 {
            self.forget();
        }
        let is_out_of_step = bad >= MIN_OUT_OF_STEP_SAMPLES;
        let out_of_step =
            is_out_of_step.then_some("CUPTI lost step with the GPU: they had no length");
        (came - bad.min(came), trouble.or(out_of_step))
    }

    /// Empties the image of decoded samples.
    fn forget(&mut self) {
        self.data.reset(&self.fresh);
        self.taken = 0;
    }

    /// Reads, after a stop, what the device has written until then.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN_TIMEOUT;
        // A first poll may find nothing of what a second one finds.
        let mut empty = 0;
        while empty < 2 && Instant::now() < until {
            let (came, trouble) = self.poll();
            self.samples.cause = trouble.or(self.samples.cause);
            empty = if came == 0 { empty + 1 } else { 0 };
            self.forget();
        }
    }

    /// Reads the decoded sample with this index and adds it to the stream, except the first after a start. Returns
    /// false when the sample is unusable: it has no length, overlaps the last one, or cannot be evaluated.
    fn take(&mut self, index: usize) -> bool {
        let Ok((start, end)) = self.sampling.times(&self.data, index) else {
            return false;
        };
        if std::mem::take(&mut self.is_first) {
            return true;
        }
        let (Ok(start_ns), Ok(end_ns)) = (i64::try_from(start), i64::try_from(end)) else {
            return false;
        };
        if end_ns <= start_ns || !self.samples.follows(start_ns) {
            return false;
        }
        let Plan { host, metrics, .. } = &mut self.plan;
        let evaluated = host.evaluate(&self.data, index, metrics, &mut self.values);
        if evaluated.is_err() {
            return false;
        }
        let duration_ns = end_ns - start_ns;
        for (counter, value) in self.plan.counters.iter().zip(&mut self.values) {
            *value = in_unit(*counter, *value, duration_ns);
        }
        self.samples.add(start_ns, duration_ns, &self.values);
        true
    }
}

/// Converts a metric's value to its counter's unit: bytes are counted over the sample.
fn in_unit(counter: HardwareCounter, value: f64, duration_ns: i64) -> f64 {
    match counter.unit() {
        CounterUnit::BytesPerSecond => value * 1e9 / duration_ns as f64,
        _ => value,
    }
}

/// Sends samples to the session, with the gaps between them.
pub struct SampleStream<'a> {
    reporter: &'a Reporter,
    stream: u32,
    interval_ns: i64,
    /// The time at which the stream began, for gaps before the first sample.
    began_ns: i64,
    /// The end of the last sample.
    end_ns: Option<i64>,
    /// The reason why the next samples may be missing.
    pub cause: Option<&'static str>,
    /// The samples that have not been sent yet.
    batch: Batch,
}

impl<'a> SampleStream<'a> {
    pub fn new(reporter: &'a Reporter, stream: u32, interval_ns: u64) -> SampleStream<'a> {
        SampleStream {
            reporter,
            stream,
            interval_ns: i64::try_from(interval_ns).unwrap_or(i64::MAX).max(1),
            began_ns: monotonic_ns(),
            end_ns: None,
            cause: None,
            batch: Batch::new(stream, 0),
        }
    }

    /// Returns true when a sample that starts then does not overlap the last one by more than half an interval.
    fn follows(&self, start_ns: i64) -> bool {
        self.end_ns
            .is_none_or(|end_ns| start_ns >= end_ns - self.interval_ns / 2)
    }

    /// Adds a sample, and before it reports a gap of more than half an interval after the last one.
    pub fn add(&mut self, start_ns: i64, duration_ns: i64, values: &[f64]) {
        let before_ns = self.end_ns.replace(start_ns + duration_ns);
        let gap_ns = before_ns.map_or(0, |before_ns| start_ns - before_ns);
        if gap_ns > self.interval_ns / 2 {
            let missing = (gap_ns + self.interval_ns / 2) / self.interval_ns;
            self.flush();
            self.reporter.report(&SamplerReport::Lost(LostSamples {
                stream: self.stream,
                from_ns: start_ns - gap_ns,
                duration_ns: gap_ns as u64,
                samples: missing.max(1) as u64,
                reason: self.cause.take().unwrap_or(UNKNOWN_CAUSE).to_owned(),
            }));
        }
        if self.batch.times.is_empty() {
            self.batch.from_ns = start_ns;
        }
        let last_ns = match self.batch.times.is_empty() {
            true => start_ns,
            false => before_ns.unwrap_or(start_ns),
        };
        let times = (start_ns - last_ns, duration_ns as u64);
        self.batch.times.push(times);
        self.batch.values.extend_from_slice(values);
        if self.batch.times.len() >= MAX_BATCH_SAMPLES {
            self.flush();
        }
    }

    /// Reports a gap up to `now_ns`, after which no further sample comes.
    fn give_up(&mut self, now_ns: i64) {
        self.flush();
        let from_ns = self.end_ns.unwrap_or(self.began_ns);
        if now_ns > from_ns {
            self.reporter.report(&SamplerReport::Lost(LostSamples {
                stream: self.stream,
                from_ns,
                duration_ns: (now_ns - from_ns) as u64,
                samples: ((now_ns - from_ns) / self.interval_ns).max(1) as u64,
                reason: self.cause.unwrap_or(UNKNOWN_CAUSE).to_owned(),
            }));
        }
    }

    /// Ends the stream at `now_ns`: sends what is left, and reports a gap when the last sample is too long ago. The
    /// session itself notices that no sample came at all.
    pub fn end(&mut self, now_ns: i64) {
        let late_ns = match (self.cause, self.end_ns) {
            (Some(_), _) => self.interval_ns,
            (None, Some(_)) => MAX_FINAL_DELAY_NS.max(2 * self.interval_ns),
            (None, None) => i64::MAX,
        };
        let from_ns = self.end_ns.unwrap_or(self.began_ns);
        match now_ns - from_ns > late_ns {
            true => self.give_up(now_ns),
            false => self.flush(),
        }
    }

    /// Sends the samples that have not been sent yet.
    pub fn flush(&mut self) {
        if !self.batch.times.is_empty() {
            let batch = std::mem::replace(&mut self.batch, Batch::new(self.stream, 0));
            self.reporter.report(&SamplerReport::Samples(batch));
        }
    }
}
