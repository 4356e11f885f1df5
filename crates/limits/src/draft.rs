//! The figures of a device as they come.

use crate::samples::Samples;
use gapscope_model::Api;
use gapscope_trace::manifest::MeasuredLimits;
use gapscope_trace::measured::MeasuredDevice as Kept;
use std::time::SystemTime;

/// Repetitions that differ by more than this share say that something else was at work.
const UNSTEADY: f64 = 0.05;
/// The figure that the host times: it is never so steady.
const LATENCY: &str = "launch_latency_ns";

/// A device that is being measured.
pub struct Draft {
    kept: Kept,
    pub notes: Vec<String>,
}

impl Draft {
    pub fn new(api: Api, name: &str, uuid: &str, driver: String) -> Draft {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Draft {
            kept: Kept {
                name: name.to_owned(),
                uuid: uuid.to_owned(),
                api,
                limits: MeasuredLimits {
                    measured_unix_s: now.ok().map(|since| since.as_secs()),
                    driver,
                    ..MeasuredLimits::default()
                },
                ..Kept::default()
            },
            notes: Vec::new(),
        }
    }

    /// Takes a figure, or notes why there is none: the others stay.
    pub fn take<T>(
        &mut self,
        what: &str,
        found: Result<T, impl std::fmt::Display>,
        take: impl FnOnce(&mut Draft, T),
    ) {
        match found {
            Ok(found) => take(self, found),
            Err(error) => self.notes.push(format!("{what} is unknown: {error}.")),
        }
    }

    /// No figure was taken.
    pub fn is_empty(&self) -> bool {
        self.kept.source.is_empty()
    }

    /// A copy of so many bytes, each read and written; the faster way of several stays.
    pub fn copy(&mut self, bytes: u64, samples: Samples, by: &str) {
        let rate = per_second(2 * bytes, samples);
        if faster(&mut self.kept.limits.copy_bytes_per_s, rate) {
            self.state("copy_bytes_per_s", samples, by);
        }
    }

    pub fn read(&mut self, bytes: u64, samples: Samples, by: &str) {
        self.kept.limits.read_bytes_per_s = Some(per_second(bytes, samples));
        self.state("read_bytes_per_s", samples, by);
    }

    /// The faster way of several stays.
    pub fn write(&mut self, bytes: u64, samples: Samples, by: &str) {
        let rate = per_second(bytes, samples);
        if faster(&mut self.kept.limits.write_bytes_per_s, rate) {
            self.state("write_bytes_per_s", samples, by);
        }
    }

    /// So many multiply-adds, each of two operations.
    pub fn multiply_adds(&mut self, count: u64, samples: Samples, by: &str) {
        self.kept.limits.fma_f32_flops = Some(per_second(2 * count, samples));
        self.state("fma_f32_flops", samples, by);
    }

    /// The faster way of several stays.
    pub fn matrix(&mut self, inputs: &str, flops: u64, samples: Samples, by: &str) {
        let rate = per_second(flops, samples);
        let rates = &mut self.kept.limits.matrix_flops;
        if rates.get(inputs).is_none_or(|known| *known < rate) {
            rates.insert(inputs.to_owned(), rate);
            self.state(&format!("matrix_flops.{inputs}"), samples, by);
        }
    }

    pub fn launches(&mut self, samples: Samples, by: &str) {
        self.kept.limits.launch_interval_ns = Some(samples.median_ns.round() as u64);
        self.state("launch_interval_ns", samples, by);
    }

    pub fn awaited(&mut self, samples: Samples, by: &str) {
        self.kept.limits.launch_latency_ns = Some(samples.median_ns.round() as u64);
        self.state(LATENCY, samples, by);
    }

    fn state(&mut self, figure: &str, samples: Samples, by: &str) {
        self.kept.spread.insert(figure.to_owned(), samples.spread);
        self.kept.source.insert(figure.to_owned(), by.to_owned());
    }

    pub fn kept(mut self) -> Kept {
        let unsteady: Vec<&str> = (self.kept.spread.iter())
            .filter(|(figure, spread)| **spread > UNSTEADY && *figure != LATENCY)
            .map(|(figure, _)| figure.as_str())
            .collect();
        if !unsteady.is_empty() {
            self.notes.push(format!(
                "Repetitions differ by more than {:.0} % ({}): another program may be using the device, or its clocks change; measure again when it is quiet.",
                100.0 * UNSTEADY,
                unsteady.join(", ")
            ));
        }
        self.kept.notes = self.notes;
        self.kept
    }
}

/// Keeps the greater rate; whether that is the new one.
fn faster(known: &mut Option<u64>, rate: u64) -> bool {
    let faster = known.is_none_or(|known| known < rate);
    if faster {
        *known = Some(rate);
    }
    faster
}

fn per_second(count: u64, samples: Samples) -> u64 {
    (count as f64 * 1e9 / samples.median_ns).round() as u64
}
