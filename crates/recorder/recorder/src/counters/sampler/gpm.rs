//! Samples a GPU with the own sampling of NVML, NVIDIA's library about the state of GPUs (GPM, since Hopper), where
//! CUPTI (NVIDIA's profiling library) cannot: few counters, ten times a second. GPM gives means between two moments
//! at which a sample was taken. [`sample`] runs in the GPU's thread and sends reports.
#![allow(unsafe_code)]

use super::pm_sampling::SampleStream;
use super::{Gpu, Reporter, SamplerError, SamplingTask, names, wait_or_stop};
use crate::conditions::nvml::{Nvml, NvmlError};
use crate::counters::pipe::{Column, SamplerReport};
use gapscope_model::HardwareCounter;
use gapscope_spool::monotonic_ns;
use nvml_wrapper_sys::bindings::{
    NVML_GPM_METRICS_GET_VERSION, NVML_GPM_SUPPORT_VERSION, nvmlDevice_t,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL as ANY_TENSOR,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC as NVLINK_RX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC as NVLINK_TX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_RX_PER_SEC as PCIE_RX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_TX_PER_SEC as PCIE_TX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY as SM_OCCUPANCY,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL as SM_UTIL, nvmlGpmMetricsGet_t, nvmlGpmSample_t,
    nvmlGpmSupport_t, nvmlReturn_t,
};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// At shorter intervals the driver reports 0 for times in which it has not sampled (docs/counters.md).
const INTERVAL: Duration = Duration::from_millis(100);
/// NVML counts traffic in MiB a second.
const MIB: f64 = (1 << 20) as f64;
const SUCCESS: nvmlReturn_t = 0;

/// The counters that GPM has with the same meaning, with GPM's number, and how many of the counter's units its unit
/// is.
const GPM_COUNTERS: [(HardwareCounter, u32, f64); 7] = [
    (HardwareCounter::SmActive, SM_UTIL, 1.0),
    (HardwareCounter::WarpsActive, SM_OCCUPANCY, 1.0),
    (HardwareCounter::TensorActive, ANY_TENSOR, 1.0),
    (HardwareCounter::PcieRead, PCIE_RX, MIB),
    (HardwareCounter::PcieWritten, PCIE_TX, MIB),
    (HardwareCounter::NvlinkReceived, NVLINK_RX, MIB),
    (HardwareCounter::NvlinkSent, NVLINK_TX, MIB),
];

/// Samples until `stop` is set. First reports which counters are sampled, and which are not because of `reason`, the
/// one why CUPTI cannot; when GPM cannot sample either, this is all.
pub fn sample(
    task: &SamplingTask,
    gpu: &Gpu,
    reporter: &Reporter,
    stop: &AtomicBool,
    reason: SamplerError,
) {
    let of = |counter: &HardwareCounter| GPM_COUNTERS.iter().find(|(known, ..)| known == counter);
    let known: Vec<_> = task.counters.iter().filter_map(of).collect();
    let unknown = task.counters.iter().filter(|counter| of(counter).is_none());
    let unknown: Vec<_> = unknown.copied().collect();
    let opened = match known.is_empty() {
        true => Err(GpmError::NoCounters),
        false => Gpm::open(gpu),
    };
    let mut gpm = match opened {
        Ok(gpm) => gpm,
        Err(without) => {
            let reason =
                format!("{reason}; NVML's own sampling (GPM) does not stand in: {without}");
            return reporter.unmeasured(&task.counters, &gpu.name, reason);
        }
    };
    let sampled: Vec<_> = known.iter().map(|(counter, ..)| *counter).collect();
    let instead = format!(
        "{reason}; NVML's own sampling (GPM) gives {} instead, as means of 100 ms",
        names(&sampled)
    );
    let missing = match unknown.is_empty() {
        true => instead,
        false => format!("{instead}, and has no {}", names(&unknown)),
    };
    reporter.unmeasured(&task.counters, &gpu.name, missing);
    let interval_ns = INTERVAL.as_nanos() as u64;
    reporter.report(&SamplerReport::Started {
        stream: gpu.stream,
        uuid: gpu.uuid.clone(),
        interval_ns,
        columns: (sampled.iter())
            .map(|counter| Column {
                counter: *counter,
                source: "NVML GPM".to_owned(),
            })
            .collect(),
    });
    let mut samples = SampleStream::new(reporter, gpu.stream, interval_ns);
    let numbers: Vec<u32> = known.iter().map(|(_, number, _)| *number).collect();
    let mut next = Instant::now() + INTERVAL;
    let mut began_ns = gpm.take_sample();
    loop {
        while Instant::now() < next {
            // A shorter last sample could be one of those that are 0 without cause.
            if wait_or_stop(stop, next.saturating_duration_since(Instant::now())) {
                return samples.end(monotonic_ns());
            }
        }
        let ended_ns = gpm.take_sample();
        if let (Some(began_ns), Some(ended_ns)) = (began_ns, ended_ns)
            && let Some(values) = gpm.values(&numbers)
            && ended_ns > began_ns
        {
            let values: Vec<f64> = (values.iter().zip(&known))
                .map(|(value, (.., unit))| value * unit)
                .collect();
            samples.add(began_ns, ended_ns - began_ns, &values);
            samples.flush();
        }
        began_ns = ended_ns;
        next = next.max(Instant::now()) + INTERVAL;
    }
}

/// The reason why GPM cannot sample a GPU.
#[derive(Debug, thiserror::Error)]
enum GpmError {
    #[error("it has none of them")]
    NoCounters,
    #[error(transparent)]
    Nvml(#[from] NvmlError),
    #[error("the driver is too old for it")]
    OldDriver,
    #[error("this GPU has none: it came with Hopper")]
    OldGpu,
    #[error("{0}")]
    Status(String),
}

/// NVML's last two samples of a GPU.
struct Gpm {
    nvml: Nvml,
    device: nvmlDevice_t,
    samples: [nvmlGpmSample_t; 2],
}

impl Gpm {
    /// Loads NVML and checks that the GPU can be sampled.
    fn open(gpu: &Gpu) -> Result<Gpm, GpmError> {
        let nvml = Nvml::load()?;
        let device = nvml.device(&gpu.uuid)?;
        let library = &nvml.library;
        let mut support = nvmlGpmSupport_t {
            version: NVML_GPM_SUPPORT_VERSION,
            isSupportedDevice: 0,
        };
        let ask = library
            .nvmlGpmQueryDeviceSupport
            .as_ref()
            .map_err(|_| GpmError::OldDriver)?;
        // SAFETY: the device is one of NVML's, and the structure holds its version.
        match unsafe { ask(device, &mut support) } {
            SUCCESS if support.isSupportedDevice != 0 => {}
            SUCCESS => return Err(GpmError::OldGpu),
            status => return Err(GpmError::Status(nvml.status_text(status))),
        }
        let allocate = library
            .nvmlGpmSampleAlloc
            .as_ref()
            .map_err(|_| GpmError::OldDriver)?;
        let mut samples = [std::ptr::null_mut(); 2];
        for sample in &mut samples {
            // SAFETY: the function stores a pointer to memory of its own, which this process keeps until its end.
            match unsafe { allocate(sample) } {
                SUCCESS => {}
                status => return Err(GpmError::Status(nvml.status_text(status))),
            }
        }
        Ok(Gpm {
            nvml,
            device,
            samples,
        })
    }

    /// Takes a sample and returns its time on the clock of the trace; `None` when NVML refuses.
    fn take_sample(&mut self) -> Option<i64> {
        self.samples.swap(0, 1);
        let get = self.nvml.library.nvmlGpmSampleGet.as_ref().ok()?;
        let before_ns = monotonic_ns();
        // SAFETY: device and sample are NVML's.
        let status = unsafe { get(self.device, self.samples[1]) };
        (status == SUCCESS).then(|| before_ns + (monotonic_ns() - before_ns) / 2)
    }

    /// Returns the means between the last two samples of the metrics with these numbers, NaN where there is none;
    /// `None` when NVML refuses all.
    fn values(&self, numbers: &[u32]) -> Option<Vec<f64>> {
        let get = self.nvml.library.nvmlGpmMetricsGet.as_ref().ok()?;
        // SAFETY: the structure has only numbers and pointers, for which zero is a valid value.
        let mut asked: Box<nvmlGpmMetricsGet_t> = Box::new(unsafe { std::mem::zeroed() });
        asked.version = NVML_GPM_METRICS_GET_VERSION;
        asked.numMetrics = numbers.len() as u32;
        [asked.sample1, asked.sample2] = self.samples;
        for (metric, number) in asked.metrics.iter_mut().zip(numbers) {
            metric.metricId = *number;
        }
        // SAFETY: the samples are NVML's, and there is room for that many metrics.
        let status = unsafe { get(&mut *asked) };
        (status == SUCCESS).then(|| {
            let metrics = asked.metrics.iter().take(numbers.len());
            let value = |m: &nvml_wrapper_sys::bindings::nvmlGpmMetric_t| match m.nvmlReturn {
                SUCCESS => m.value,
                _ => f64::NAN,
            };
            metrics.map(value).collect()
        })
    }
}
