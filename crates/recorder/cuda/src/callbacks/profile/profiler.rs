//! CUPTI's range profiler around one launch.

use super::refusal;
use crate::driver;
use gapscope_cupti::{Cupti, Host, Kind, Metrics, RangeProfiler, RangeSettings};
use gapscope_spool::model::kernel_profile::METRICS;
use std::ffi::{CString, c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Room for the kernel, and for one that another thread launches meanwhile: then neither is known to be the one.
const ROOM: u32 = 2;

/// Which metrics a chip has, and how they are counted.
#[derive(Clone)]
struct Plan {
    chip: CString,
    /// Their places in [`METRICS`].
    places: Vec<u16>,
    config: Vec<u8>,
    passes: u32,
}

/// The last one made: mostly all GPUs are of one kind.
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
/// CUPTI with its profilers initialised, which is done once.
static CUPTI: Mutex<Option<Cupti>> = Mutex::new(None);

/// A profiler that is on.
pub struct Profiler {
    range: RangeProfiler,
    host: Host,
    metrics: Metrics,
    plan: Plan,
}

/// What was measured.
pub struct Measured {
    pub passes: u32,
    /// Places in [`METRICS`], with values.
    pub values: Vec<(u16, f64)>,
}

impl Profiler {
    /// Starts to profile what is launched in a context, which is the thread's current one.
    ///
    /// # Errors
    /// A sentence without its full stop.
    ///
    /// # Safety
    /// The context lives until this is dropped, and libcupti is the one of this path.
    pub unsafe fn start(libcupti: &Path, context: *mut c_void) -> Result<Profiler, String> {
        let cupti = initialised(libcupti)?;
        let device = device().ok_or("the driver does not say which device the thread uses")?;
        let chip = cupti.chip_name(device).map_err(refusal::of)?;
        // SAFETY: as the caller promises. Without the image metrics are taken from what the chip has.
        let availability = unsafe { RangeProfiler::availability(&cupti, context) }.ok();
        let plan = Plan::of(&cupti, chip, availability.as_deref())?;
        let metrics = plan.metrics();
        // SAFETY: as the caller promises.
        let mut range = unsafe { RangeProfiler::enable(&cupti, context) }.map_err(refusal::of)?;
        let mut host = Host::new(&cupti, Kind::Range, &plan.chip, availability.as_deref())
            .map_err(refusal::of)?;
        host.add(&metrics).map_err(refusal::of)?;
        let data = range.counter_data(&metrics, ROOM).map_err(refusal::of)?;
        let settings = RangeSettings::each_kernel(ROOM as usize);
        range
            .configure(plan.config.clone(), data, &settings)
            .map_err(refusal::of)?;
        range.start().map_err(refusal::of)?;
        Ok(Profiler {
            range,
            host,
            metrics,
            plan,
        })
    }

    /// Stops, and gives what was measured of the launch.
    ///
    /// # Errors
    /// A sentence without its full stop.
    pub fn finish(mut self) -> Result<Measured, String> {
        self.range.stop().map_err(refusal::of)?;
        let dropped = self.range.decode().map_err(refusal::of)?;
        match self.range.ranges().map_err(refusal::of)? {
            1 if dropped == 0 => {}
            0 => return Err("CUPTI measured nothing of the launch".to_owned()),
            _ => {
                return Err(
                    "another thread launched a kernel in the same context meanwhile".to_owned(),
                );
            }
        }
        let mut values = vec![f64::NAN; self.metrics.len()];
        if let Some(data) = self.range.data() {
            let evaluated = self.host.evaluate(data, 0, &self.metrics, &mut values);
            evaluated.map_err(refusal::of)?;
        }
        let values = self.plan.places.iter().copied().zip(values);
        Ok(Measured {
            passes: self.plan.passes,
            values: values.filter(|(_, value)| value.is_finite()).collect(),
        })
    }
}

impl Plan {
    fn of(cupti: &Cupti, chip: CString, availability: Option<&[u8]>) -> Result<Plan, String> {
        let mut last = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = last.as_ref().filter(|plan| plan.chip == chip) {
            return Ok(plan.clone());
        }
        let host = || Host::new(cupti, Kind::Range, &chip, availability).map_err(refusal::of);
        // A metric that the chip lacks spoils the object that it is asked of.
        let mut places = Vec::new();
        for (place, metric) in (0..).zip(&METRICS) {
            if host()?.add(&Metrics::new([metric.name])).is_ok() {
                places.push(place);
            }
        }
        let mut plan = Plan {
            chip: chip.clone(),
            places,
            config: Vec::new(),
            passes: 0,
        };
        if plan.places.is_empty() {
            return Err("the GPU has none of the metrics".to_owned());
        }
        let mut all = host()?;
        all.add(&plan.metrics()).map_err(refusal::of)?;
        plan.config = all.config_image().map_err(refusal::of)?;
        plan.passes = all.passes(&plan.config).map_err(refusal::of)? as u32;
        *last = Some(plan.clone());
        Ok(plan)
    }

    fn metrics(&self) -> Metrics {
        let names = self
            .places
            .iter()
            .map(|place| METRICS[usize::from(*place)].name);
        Metrics::new(names)
    }
}

fn initialised(libcupti: &Path) -> Result<Cupti, String> {
    let mut known = CUPTI.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cupti) = *known {
        return Ok(cupti);
    }
    let cupti = Cupti::open(libcupti).map_err(|missing| missing.to_string())?;
    cupti.initialize().map_err(refusal::of)?;
    *known = Some(cupti);
    Ok(cupti)
}

/// The number of the thread's current device in this process.
fn device() -> Option<usize> {
    let function = driver::function("cuCtxGetDevice")?;
    let mut device: c_int = -1;
    // SAFETY: it is this function of the driver, which stores a number.
    let code = unsafe {
        let function: unsafe extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(function);
        function(&mut device)
    };
    usize::try_from(device).ok().filter(|_| code == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLE: &str = "GAPSCOPE_TEST_CUPTI";

    /// Planning needs no GPU: the real host library is asked where there is one.
    #[test]
    fn chips_have_most_metrics_in_a_number_of_passes_that_people_wait_for() {
        let Some(path) = std::env::var_os(VARIABLE) else {
            eprintln!("{VARIABLE} names no libcupti.so.13: not tested");
            return;
        };
        let cupti = Cupti::open(Path::new(&path)).unwrap();
        for chip in [c"GA100", c"GA102", c"AD102", c"GH100", c"GB100", c"GB202"] {
            let plan = Plan::of(&cupti, chip.to_owned(), None).unwrap();
            let (metrics, passes) = (plan.places.len(), plan.passes);
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
        assert!(Plan::of(&cupti, c"GX900".to_owned(), None).is_err());
    }
}
