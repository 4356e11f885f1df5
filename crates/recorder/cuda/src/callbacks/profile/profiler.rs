//! Runs CUPTI's range profiler around one launch, and returns the values of the metrics that the GPU has:
//! [`Profiler::start`] before the launch, [`Profiler::finish`] after it. CUPTI runs the kernel several times
//! (passes), because the hardware counts only some metrics at once.

use super::refusal::ProfileError;
use crate::driver;
use gapscope_cupti::{Cupti, Host, Metrics, ProfilerKind, RangeProfiler};
use gapscope_spool::model::kernel_profile::METRICS;
use std::ffi::{CString, c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The number of launches that the profiler has room for: the kernel, and one that another thread launches meanwhile,
/// in which case neither is known to be the right one.
const ROOM: u32 = 2;

/// The metrics that a chip has, and how they are counted.
#[derive(Clone)]
struct Plan {
    /// CUPTI's name of the chip, such as `GH100`.
    chip: CString,
    /// Their indices in [`METRICS`].
    indices: Vec<u16>,
    /// CUPTI's encoded configuration of the counters for these metrics.
    config: Vec<u8>,
    /// How often a kernel runs until all metrics are counted.
    passes: u32,
}

/// The plan made last: mostly all GPUs are of one kind.
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
/// CUPTI with its profilers initialised, which is done once.
static CUPTI: Mutex<Option<Cupti>> = Mutex::new(None);

/// A running profiler.
pub struct Profiler {
    /// Counts while the kernel runs.
    range: RangeProfiler,
    /// Computes the metrics from the counts.
    host: Host,
    metrics: Metrics,
    plan: Plan,
}

/// The measured values of a launch.
pub struct MeasuredValues {
    pub passes: u32,
    /// Indices in [`METRICS`] with values.
    pub values: Vec<(u16, f64)>,
}

impl Profiler {
    /// Starts to profile the launches in a context, which is the thread's current one.
    ///
    /// # Errors
    /// The driver or CUPTI refuses it, or the GPU has no metrics.
    ///
    /// # Safety
    /// The context lives until this value is dropped, and libcupti is the one at this path.
    pub unsafe fn start(libcupti: &Path, context: *mut c_void) -> Result<Profiler, ProfileError> {
        let cupti = initialised(libcupti)?;
        let device = device().ok_or(ProfileError::NoDevice)?;
        let chip = cupti.chip_name(device)?;
        // SAFETY: as the caller promises. Without the image, metrics are taken from what the chip has.
        let availability = unsafe { RangeProfiler::availability(&cupti, context) }.ok();
        let plan = Plan::for_chip(&cupti, chip, availability.as_deref())?;
        let metrics = plan.metrics();
        // SAFETY: as the caller promises.
        let mut range = unsafe { RangeProfiler::enable(&cupti, context) }?;
        let mut host = Host::new(
            &cupti,
            ProfilerKind::Range,
            &plan.chip,
            availability.as_deref(),
        )?;
        host.add(&metrics)?;
        let data = range.counter_data(&metrics, ROOM)?;
        range.configure(plan.config.clone(), data, ROOM as usize)?;
        range.start()?;
        Ok(Profiler {
            range,
            host,
            metrics,
            plan,
        })
    }

    /// Stops profiling and returns the values of the launch.
    ///
    /// # Errors
    /// CUPTI refuses it, or what it measured is not of this launch alone.
    pub fn finish(mut self) -> Result<MeasuredValues, ProfileError> {
        self.range.stop()?;
        let dropped = self.range.decode()?;
        match self.range.ranges()? {
            1 if dropped == 0 => {}
            0 => return Err(ProfileError::NothingMeasured),
            _ => return Err(ProfileError::OtherLaunch),
        }
        let mut values = vec![f64::NAN; self.metrics.len()];
        if let Some(data) = self.range.data() {
            let evaluated = self.host.evaluate(data, 0, &self.metrics, &mut values);
            evaluated?;
        }
        let values = self.plan.indices.iter().copied().zip(values);
        Ok(MeasuredValues {
            passes: self.plan.passes,
            values: values.filter(|(_, value)| value.is_finite()).collect(),
        })
    }
}

impl Plan {
    /// Returns the plan for a chip: the last one where the chip is the same, otherwise a new one after trying each
    /// metric.
    fn for_chip(
        cupti: &Cupti,
        chip: CString,
        availability: Option<&[u8]>,
    ) -> Result<Plan, ProfileError> {
        let mut last = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = last.as_ref().filter(|plan| plan.chip == chip) {
            return Ok(plan.clone());
        }
        let host = || Host::new(cupti, ProfilerKind::Range, &chip, availability);
        // A metric that the chip lacks spoils the object to which it is added.
        let mut indices = Vec::new();
        for (index, metric) in (0..).zip(&METRICS) {
            if host()?.add(&Metrics::new([metric.name])).is_ok() {
                indices.push(index);
            }
        }
        let mut plan = Plan {
            chip: chip.clone(),
            indices,
            config: Vec::new(),
            passes: 0,
        };
        if plan.indices.is_empty() {
            return Err(ProfileError::NoMetrics);
        }
        let mut all = host()?;
        all.add(&plan.metrics())?;
        plan.config = all.config_image()?;
        plan.passes = all.passes(&plan.config)? as u32;
        *last = Some(plan.clone());
        Ok(plan)
    }

    fn metrics(&self) -> Metrics {
        let names = self
            .indices
            .iter()
            .map(|index| METRICS[usize::from(*index)].name);
        Metrics::new(names)
    }
}

/// Returns CUPTI, which the first call opens and initialises.
fn initialised(libcupti: &Path) -> Result<Cupti, ProfileError> {
    let mut known = CUPTI.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cupti) = *known {
        return Ok(cupti);
    }
    let cupti = Cupti::open(libcupti)?;
    cupti.initialize()?;
    *known = Some(cupti);
    Ok(cupti)
}

/// Returns the ordinal of the thread's current device in this process.
fn device() -> Option<usize> {
    type GetDevice = unsafe extern "C" fn(*mut c_int) -> c_int;
    let mut device: c_int = -1;
    // SAFETY: the driver's function of this name, which stores a number.
    let code = unsafe { driver::function::<GetDevice>("cuCtxGetDevice")?(&mut device) };
    usize::try_from(device).ok().filter(|_| code == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLE: &str = "GAPSCOPE_TEST_CUPTI";

    /// Planning needs no GPU: the real host library is used where the variable names one.
    #[test]
    fn chips_have_most_metrics_in_a_number_of_passes_that_people_wait_for() {
        let Some(path) = std::env::var_os(VARIABLE) else {
            let required = std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS");
            assert!(required.is_none_or(|value| value != "1"), "no {VARIABLE}");
            return eprintln!("{VARIABLE} names no libcupti.so.13: not tested");
        };
        let cupti = Cupti::open(Path::new(&path)).unwrap();
        for chip in [c"GA100", c"GA102", c"AD102", c"GH100", c"GB100", c"GB202"] {
            let plan = Plan::for_chip(&cupti, chip.to_owned(), None).unwrap();
            let (metrics, passes) = (plan.indices.len(), plan.passes);
            println!(
                "{chip:?}: {metrics} of {} metrics, {passes} passes",
                METRICS.len()
            );
            assert!(metrics * 10 >= METRICS.len() * 8, "{chip:?}: {metrics}");
            assert!((1..=40).contains(&passes), "{chip:?}: {passes}");
            if chip == c"GH100" {
                assert_eq!(passes, 20, "as on an H200 (docs/profile-kernel.md)");
            }
        }
        assert!(Plan::for_chip(&cupti, c"GX900".to_owned(), None).is_err());
    }
}
