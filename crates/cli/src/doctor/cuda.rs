//! Checks the parts that recording CUDA programs needs: the driver, gapscope's library, CUPTI (NVIDIA's library for
//! profilers) and its counters. Facts and a probe's answer go in, checks come out.

use super::check::{Check, Group, Subject};
use super::trial::{Reason, Trial};
use gapscope_recorder::machine::{Cuda, Nvml};
use std::path::PathBuf;

const GROUP: Group = Group::Cuda;
/// CUDA's error code if there is no GPU.
const NO_DEVICE: i32 = 100;
/// CUDA's error code if the driver's library and its kernel module are of different versions.
const DRIVER_MISMATCH: i32 = 803;
/// CUDA's error code if the library is a stub, as in container images for building.
const STUB_LIBRARY: i32 = 34;

/// The answer of the probe: the driver, or the reason why there is none.
pub type CudaAnswer = Result<Cuda, Reason>;

/// The facts that are known without the trial.
#[derive(Debug, Clone)]
pub struct CudaFacts {
    /// The library that records CUDA; `None` if it was not found.
    pub library: Option<PathBuf>,
    /// The facts of NVML (NVIDIA's library for managing GPUs), or the reason why there are none.
    pub nvml: Result<Nvml, Reason>,
    /// True if the driver keeps hardware counters for administrators, false if not; `None` if unknown.
    pub counters_for_administrators: Option<bool>,
    /// True if this user is root.
    pub is_administrator: bool,
    /// The counters that CUPTI plans to sample, or the reason why it cannot.
    pub counters: Result<String, Reason>,
}

/// Returns all checks of CUDA. `trial` is the recording of a probe (a program that only initialises CUDA); it is
/// `None` if the Vulkan layer was not found, without which nothing is recorded.
pub fn checks(known: &CudaFacts, trial: Option<&Trial<CudaAnswer>>) -> Vec<Check> {
    let ids = [
        "cuda-devices",
        "cuda-library",
        "cuda-cupti",
        "cuda-nvml",
        "cuda-counters",
    ];
    // The first check, and all others as not asked.
    let without = |first: Check, what: &str| {
        let unasked = ids.iter().map(|id| Subject::new(GROUP, id).unasked(what));
        [first].into_iter().chain(unasked).collect()
    };
    let subject = Subject::new(GROUP, "cuda-driver");
    let Some(trial) = trial else {
        return without(
            subject.unasked("the recording layer"),
            "the recording layer",
        );
    };
    let driver = match &trial.answer {
        Ok(Ok(driver)) => driver,
        Ok(Err(error)) => {
            let first = subject.missing(
                format!("CUDA programs do not run here: {error}"),
                "install NVIDIA's driver; a container gets it with `--gpus all` and NVIDIA's container toolkit",
            );
            return without(first, "the CUDA driver");
        }
        Err(how) => {
            let first = subject.unknown(
                format!("it was initialised, and {how}"),
                "run nvidia-smi, which asks the same driver",
            );
            return without(first, "the CUDA driver");
        }
    };
    vec![
        self::driver(driver, &known.nvml),
        devices(driver),
        library(known),
        cupti(known, driver, &trial.hook),
        nvml(&known.nvml),
        counters(known),
    ]
}

fn driver(driver: &Cuda, nvml: &Result<Nvml, Reason>) -> Check {
    let version = driver
        .version
        .map(|version| format!("CUDA up to {}.{}", version / 1000, version % 1000 / 10));
    let of_system = nvml.as_ref().ok().and_then(|nvml| nvml.driver.clone());
    let words = [
        Some("libcuda.so.1".to_owned()),
        of_system.map(|v| format!("driver {v}")),
        version,
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    Subject::new(GROUP, "cuda-driver").ok(words.join(", "))
}

fn devices(driver: &Cuda) -> Check {
    let subject = Subject::new(GROUP, "cuda-devices");
    let mend = match driver.init {
        0 if !driver.devices.is_empty() => {
            return subject.ok(driver.devices.join(", "));
        }
        0 | NO_DEVICE => {
            "run nvidia-smi, which lists GPUs; CUDA_VISIBLE_DEVICES may hide them, and a container needs `--gpus all`"
        }
        DRIVER_MISMATCH => {
            "restart the machine, or load the kernel module again: the driver was updated while it ran"
        }
        STUB_LIBRARY => {
            "take the folder of CUDA's stubs out of LD_LIBRARY_PATH: that libcuda.so.1 is for building only"
        }
        _ => "run nvidia-smi, which says more",
    };
    let follows = match driver.init {
        0 => "the CUDA driver has no GPU".to_owned(),
        code => format!("the CUDA driver has no GPU that can be used: cuInit says {code}"),
    };
    subject.missing(follows, mend)
}

/// Checks whether gapscope's library for CUDA was found.
fn library(known: &CudaFacts) -> Check {
    let subject = Subject::new(GROUP, "cuda-library");
    match &known.library {
        Some(path) => subject.ok(path.display().to_string()),
        None => subject.missing(
            "CUDA programs cannot be recorded: the library that does it is not beside gapscope",
            "build it with `cargo build -p gapscope-cuda` (with the same --release), or install the wheel, which has it",
        ),
    }
}

/// Checks whether the library found a CUPTI that fits; `hook` says why it did not.
fn cupti(known: &CudaFacts, driver: &Cuda, hook: &Result<(), Reason>) -> Check {
    let subject = Subject::new(GROUP, "cuda-cupti");
    if known.library.is_none() {
        return subject.unasked("the library that records CUDA");
    }
    if driver.init != 0 {
        return subject.unasked("a GPU of CUDA");
    }
    let found = driver.cupti.as_ref().map(|cupti| match cupti.version {
        Some(version) => format!("{} (CUPTI API {version})", cupti.file.display()),
        None => cupti.file.display().to_string(),
    });
    match hook {
        Ok(()) => subject.ok(found.unwrap_or_else(|| "a libcupti that fits".to_owned())),
        Err(why) => subject.missing(
            why.to_string(),
            "where that names no remedy, install the libcupti of the program's CUDA; a program that brings its own, as PyTorch's and \
             JAX's packages do, is recorded with that one: try it with `gapscope record`",
        )
        .found(found.unwrap_or_default()),
    }
}

fn nvml(nvml: &Result<Nvml, Reason>) -> Check {
    let subject = Subject::new(GROUP, "cuda-nvml");
    match nvml {
        Ok(found) => {
            let gpus = match found.gpus {
                Some(1) => "1 GPU".to_owned(),
                Some(count) => format!("{count} GPUs"),
                None => "GPUs not counted".to_owned(),
            };
            subject.ok(format!("libnvidia-ml.so.1, {gpus}"))
        }
        Err(why) => subject.missing(
            format!("clocks, temperature and power of NVIDIA's GPUs are not in traces: {why}"),
            "install libnvidia-ml.so.1, which comes with the driver; a container needs NVIDIA_DRIVER_CAPABILITIES=utility as well",
        ),
    }
}

/// Checks whether hardware counters can be sampled: permission first, then what CUPTI offers.
fn counters(known: &CudaFacts) -> Check {
    let subject = Subject::new(GROUP, "cuda-counters");
    let is_allowed = known.counters_for_administrators != Some(true) || known.is_administrator;
    match (&known.counters, known.counters_for_administrators) {
        _ if !is_allowed => subject.limited(
            "`gapscope record --counters` cannot sample: the driver keeps hardware counters for administrators; timelines need none",
            "have an administrator write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file of /etc/modprobe.d and load \
             the module again, or record as root",
        ),
        (Err(reason), _) => subject.limited(
            format!(
                "`gapscope record --counters` cannot sample: {reason}; timelines need no hardware counters"
            ),
            "install CUDA's CUPTI with all of its libraries (libnvperf_host.so beside libcupti.so), of the CUDA that the driver supports, or \
             put a newer one first in LD_LIBRARY_PATH",
        ),
        (Ok(sampled), Some(only)) => {
            let who = if only {
                "administrators, as this user is"
            } else {
                "all users"
            };
            subject.ok(format!("hardware counters for {who}: {sampled}"))
        }
        (Ok(_), None) => subject.unknown("whether hardware counters are for all users is not known: the driver does not say in /proc/driver/nvidia/params; timelines \
             need none",
            "try `gapscope record --counters`, which says what the driver refuses; a container needs /proc/driver/nvidia of the host to know \
             it before",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;
    use gapscope_recorder::machine::Cupti;

    fn known() -> CudaFacts {
        CudaFacts {
            library: Some("/opt/lib/libgapscope_cuda.so".into()),
            nvml: Ok(Nvml {
                driver: Some("580.159.04".to_owned()),
                gpus: Some(1),
            }),
            counters_for_administrators: Some(false),
            is_administrator: false,
            counters: Ok("SMs active of GH100".to_owned()),
        }
    }

    fn said() -> Cuda {
        Cuda {
            version: Some(13_000),
            init: 0,
            devices: vec!["NVIDIA H200".to_owned()],
            cupti: Some(Cupti {
                file: "/usr/local/cuda/lib64/libcupti.so.2025.3.1".into(),
                version: Some(130_001),
            }),
        }
    }

    fn trial(answer: Result<CudaAnswer, Reason>, hook: Result<(), Reason>) -> Trial<CudaAnswer> {
        Trial { answer, hook }
    }

    fn check_with_id<'a>(checks: &'a [Check], id: &str) -> &'a Check {
        checks.iter().find(|check| check.id == id).unwrap()
    }

    #[test]
    fn a_machine_with_all_of_it_is_well() {
        let checks = checks(&known(), Some(&trial(Ok(Ok(said())), Ok(()))));
        assert!(
            checks.iter().all(|check| check.state == State::Ok),
            "{checks:?}"
        );
        let driver = check_with_id(&checks, "cuda-driver").found.as_deref();
        assert_eq!(
            driver,
            Some("libcuda.so.1, driver 580.159.04, CUDA up to 13.0")
        );
        assert!(
            check_with_id(&checks, "cuda-cupti")
                .found
                .as_ref()
                .unwrap()
                .contains("API 130001")
        );
    }

    #[test]
    fn without_a_driver_nothing_else_is_asked() {
        let checks = checks(
            &known(),
            Some(&trial(Ok(Err("not found".into())), Err("no".into()))),
        );
        assert_eq!(checks[0].state, State::Missing);
        assert_eq!(checks.len(), 6);
        assert!(
            checks[1..]
                .iter()
                .all(|check| check.state == State::Unknown)
        );
    }

    #[test]
    fn what_the_hook_says_of_cupti_is_said() {
        let why = "No GPU work of CUDA was recorded: /x/libcupti.so is too old (CUPTI API 17)";
        let checks = checks(&known(), Some(&trial(Ok(Ok(said())), Err(why.into()))));
        let cupti = check_with_id(&checks, "cuda-cupti");
        assert_eq!(cupti.state, State::Missing);
        assert!(cupti.follows.as_ref().unwrap().contains("too old"));
    }

    #[test]
    fn a_driver_without_a_gpu_has_nothing_to_record() {
        let driver = Cuda {
            init: NO_DEVICE,
            devices: Vec::new(),
            cupti: None,
            ..said()
        };
        let checks = checks(&known(), Some(&trial(Ok(Ok(driver)), Err("no".into()))));
        assert_eq!(check_with_id(&checks, "cuda-devices").state, State::Missing);
        assert_eq!(check_with_id(&checks, "cuda-cupti").state, State::Unknown);
    }

    #[test]
    fn counters_for_administrators_limit_all_others() {
        let state = |only, is_administrator| {
            let known = CudaFacts {
                counters_for_administrators: only,
                is_administrator,
                ..known()
            };
            counters(&known).state
        };
        assert_eq!(state(Some(true), false), State::Limited);
        assert_eq!(state(Some(true), true), State::Ok);
        assert_eq!(state(None, true), State::Unknown);
        let unknown = CudaFacts {
            counters_for_administrators: None,
            ..known()
        };
        assert!(
            counters(&unknown)
                .mend
                .is_some_and(|mend| mend.contains("--counters"))
        );
        let known = CudaFacts {
            counters: Err("libnvperf_host.so is not beside libcupti".into()),
            ..known()
        };
        let check = counters(&known);
        assert_eq!(check.state, State::Limited);
        assert!(
            check
                .mend
                .as_ref()
                .is_some_and(|mend| mend.contains("libnvperf_host.so beside"))
        );
        assert!(
            check
                .follows
                .is_some_and(|f| f.contains("libnvperf_host.so is not"))
        );
    }
}
