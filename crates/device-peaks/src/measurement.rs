//! Collects the figures of a device, and the notes on those that are missing: [`Measurement::new`], a call for each
//! figure, [`Measurement::finish`].

use std::time::SystemTime;

use gapscope_model::Api;
use gapscope_trace::manifest::MeasuredPeaks;
use gapscope_trace::measured::MeasuredDevice;

use crate::error::Error;
use crate::samples::Samples;

/// The devices of an interface by name, each with its figures or why it could not be measured.
pub type Measured = Vec<(String, Result<Measurement, Error>)>;
/// A function that is called with the name of the next measurement.
pub type Progress<'a> = &'a dyn Fn(&str);

/// The greatest distance of the quartiles of steady times, as a share of the median; a greater one gets a note, since
/// other work probably ran.
const MAX_STEADY_SPREAD: f64 = 0.05;
/// The figure that the host's clock times, which is never so steady.
const LATENCY: &str = "launch_latency_ns";

/// The figures of a device that is being measured. In the methods `by` names what was timed, for the report.
pub struct Measurement {
    /// The figures, which [`Measurement::finish`] returns.
    kept: MeasuredDevice,
    /// Sentences on missing and uncertain figures.
    pub notes: Vec<String>,
}

impl Measurement {
    pub fn new(api: Api, name: &str, uuid: &str, driver: String) -> Measurement {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Measurement {
            kept: MeasuredDevice {
                name: name.to_owned(),
                uuid: uuid.to_owned(),
                api,
                limits: MeasuredPeaks {
                    measured_unix_s: now.ok().map(|since| since.as_secs()),
                    driver,
                    ..MeasuredPeaks::default()
                },
                ..MeasuredDevice::default()
            },
            notes: Vec::new(),
        }
    }

    /// Calls `take` with a result's value, or notes why the figure named `what` is unknown. Other figures stay as
    /// they are.
    pub fn take<T>(
        &mut self,
        what: &str,
        found: Result<T, impl std::fmt::Display>,
        take: impl FnOnce(&mut Measurement, T),
    ) {
        match found {
            Ok(found) => take(self, found),
            Err(error) => self.notes.push(format!("{what} is unknown: {error}.")),
        }
    }

    /// Returns whether no figure was taken.
    pub fn is_empty(&self) -> bool {
        self.kept.source.is_empty()
    }

    /// Adds the time of a copy of `bytes` bytes, each read and written. The fastest of several copies counts.
    pub fn copy(&mut self, bytes: u64, samples: Samples, by: &str) {
        let rate = per_second(2 * bytes, samples);
        if keep_faster(&mut self.kept.limits.copy_bytes_per_s, rate) {
            self.state("copy_bytes_per_s", samples, by);
        }
    }

    /// Adds the time of a read of `bytes` bytes.
    pub fn read(&mut self, bytes: u64, samples: Samples, by: &str) {
        self.kept.limits.read_bytes_per_s = Some(per_second(bytes, samples));
        self.state("read_bytes_per_s", samples, by);
    }

    /// Adds the time of a write of `bytes` bytes. The fastest of several writes counts.
    pub fn write(&mut self, bytes: u64, samples: Samples, by: &str) {
        let rate = per_second(bytes, samples);
        if keep_faster(&mut self.kept.limits.write_bytes_per_s, rate) {
            self.state("write_bytes_per_s", samples, by);
        }
    }

    /// Adds the time of a copy of `bytes` bytes from pinned memory of the host.
    pub fn host_read(&mut self, bytes: u64, samples: Samples, by: &str) {
        self.kept.limits.host_read_bytes_per_s = Some(per_second(bytes, samples));
        self.state("host_read_bytes_per_s", samples, by);
    }

    /// Adds the time of a copy of `bytes` bytes to pinned memory of the host.
    pub fn host_write(&mut self, bytes: u64, samples: Samples, by: &str) {
        self.kept.limits.host_write_bytes_per_s = Some(per_second(bytes, samples));
        self.state("host_write_bytes_per_s", samples, by);
    }

    /// Adds the time of copies of `bytes` bytes over NVLink, as the figure with this name.
    pub fn nvlink(&mut self, figure: &str, bytes: u64, samples: Samples, by: &str) {
        let limits = &mut self.kept.limits;
        let kept = match figure {
            "nvlink_received_bytes_per_s" => &mut limits.nvlink_received_bytes_per_s,
            "nvlink_sent_bytes_per_s" => &mut limits.nvlink_sent_bytes_per_s,
            _ => &mut limits.nvlink_both_bytes_per_s,
        };
        *kept = Some(per_second(bytes, samples));
        self.state(figure, samples, by);
    }

    /// Adds the time of `count` multiply-adds, each of two operations.
    pub fn multiply_adds(&mut self, count: u64, samples: Samples, by: &str) {
        self.kept.limits.fma_f32_flops = Some(per_second(2 * count, samples));
        self.state("fma_f32_flops", samples, by);
    }

    /// Adds the time of a product of matrices with `flops` operations. The fastest of several products counts.
    pub fn matrix(&mut self, inputs: &str, flops: u64, samples: Samples, by: &str) {
        let rate = per_second(flops, samples);
        let rates = &mut self.kept.limits.matrix_flops;
        if rates.get(inputs).is_none_or(|known| *known < rate) {
            rates.insert(inputs.to_owned(), rate);
            self.state(&format!("matrix_flops.{inputs}"), samples, by);
        }
    }

    /// Adds the time from one launch to the next.
    pub fn launches(&mut self, samples: Samples, by: &str) {
        self.kept.limits.launch_interval_ns = Some(samples.median_ns.round() as u64);
        self.state("launch_interval_ns", samples, by);
    }

    /// Adds the time from a launch until the host has waited for it.
    pub fn awaited(&mut self, samples: Samples, by: &str) {
        self.kept.limits.launch_latency_ns = Some(samples.median_ns.round() as u64);
        self.state(LATENCY, samples, by);
    }

    /// Keeps the spread and the source of a figure; a figure with a source counts as taken.
    fn state(&mut self, figure: &str, samples: Samples, by: &str) {
        self.kept.spread.insert(figure.to_owned(), samples.spread);
        self.kept.source.insert(figure.to_owned(), by.to_owned());
    }

    /// Returns the figures with the notes.
    pub fn finish(mut self) -> MeasuredDevice {
        let unsteady: Vec<&str> = (self.kept.spread.iter())
            .filter(|(figure, spread)| **spread > MAX_STEADY_SPREAD && *figure != LATENCY)
            .map(|(figure, _)| figure.as_str())
            .collect();
        if !unsteady.is_empty() {
            self.notes.push(format!(
                "Repetitions differ by more than {:.0} % ({}): another program may be using the device, or its clocks change; measure again when it is quiet.",
                100.0 * MAX_STEADY_SPREAD,
                unsteady.join(", ")
            ));
        }
        self.kept.notes = self.notes;
        self.kept
    }
}

/// Keeps the greater rate, and returns whether that is the new one.
fn keep_faster(known: &mut Option<u64>, rate: u64) -> bool {
    let faster = known.is_none_or(|known| known < rate);
    if faster {
        *known = Some(rate);
    }
    faster
}

/// Returns a rate by the median of the times.
fn per_second(count: u64, samples: Samples) -> u64 {
    (count as f64 * 1e9 / samples.median_ns).round() as u64
}
