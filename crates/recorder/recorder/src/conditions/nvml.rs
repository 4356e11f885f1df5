//! Asks NVML, NVIDIA's library about the state of GPUs, for conditions such as clocks, heat and power. The library is
//! loaded when the first such GPU is recorded. [`NvmlGpus::add`] names a GPU; [`NvmlGpus::read`] asks all questions
//! about all GPUs, in each round.
#![allow(unsafe_code)]

use super::{ConditionSubject, ConditionUpdate, Gpu, Reading};
use gapscope_trace::tables::Condition;
use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlClockType_enum_NVML_CLOCK_MEM as MEMORY_CLOCK,
    nvmlClockType_enum_NVML_CLOCK_SM as SM_CLOCK, nvmlClockType_t, nvmlDevice_t, nvmlMemory_t,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_POWER as POWER,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_THERMAL as HEAT, nvmlPerfPolicyType_t,
    nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND as NO_FUNCTION,
    nvmlReturn_enum_NVML_ERROR_NO_PERMISSION as NO_PERMISSION,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED,
    nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t,
    nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU as GPU_SENSOR, nvmlViolationTime_t,
};
use std::ffi::{CStr, CString, c_char};
use std::mem::ManuallyDrop;
use std::sync::Arc;

const LIBRARY: &str = "libnvidia-ml.so.1";
/// The most failures of a question in a row; after them, it is not asked again.
const MAX_FAILURES: u8 = 10;

/// The bits of `nvmlDeviceGetCurrentClocksEventReasons` (nvml.h), which tell why a clock is where it is.
const CLOCK_EVENT_REASONS: [(u64, Condition); 9] = [
    (0x1, Condition::ClockIdle),
    (0x2, Condition::ClockSetting),
    (0x4, Condition::ClockPowerCap),
    (0x8, Condition::ClockSlowdown),
    (0x10, Condition::ClockSyncBoost),
    (0x20, Condition::ClockHeatSoftware),
    (0x40, Condition::ClockHeatHardware),
    (0x80, Condition::ClockPowerBrake),
    (0x100, Condition::ClockDisplay),
];
/// The reasons that mean a slowdown by heat or power supply: while one holds, rounds stay frequent.
const SLOWDOWN_REASONS: u64 = 0x8 | 0x20 | 0x40 | 0x80;

/// The GPUs that NVML is asked about.
#[derive(Default)]
pub struct NvmlGpus {
    /// The library, or why it cannot be used; absent before it is needed.
    nvml: Option<Result<Nvml, NvmlError>>,
    /// The GPUs that NVML knows, with the questions that are still asked.
    gpus: Vec<FollowedGpu>,
    /// The source of readings, `NVML`; absent before the first.
    source: Option<Arc<str>>,
}

/// A GPU with the questions that are asked about it.
struct FollowedGpu {
    gpu: Gpu,
    device: nvmlDevice_t,
    questions: Vec<Question>,
}

/// A question, and how often it has failed in a row.
struct Question {
    kind: &'static QuestionKind,
    failures: u8,
    /// The time and value of the last answer.
    last: Option<(i64, u64)>,
}

/// A kind of question to NVML, which gives one condition or several.
struct QuestionKind {
    /// The name for messages.
    what: &'static str,
    /// Returns the answer in NVML's unit.
    ask: fn(&NvmlLib, nvmlDevice_t) -> Result<u64, nvmlReturn_t>,
    meaning: Meaning,
}

/// What an answer says about conditions.
enum Meaning {
    /// It is the condition's value, in a unit from which the function converts.
    Value(Condition, fn(f64) -> f64),
    /// Its bits are the reasons for the clock, [`CLOCK_EVENT_REASONS`].
    ClockReasons,
    /// It is the nanoseconds so far in which the condition held.
    TimeSoFar(Condition),
}

static QUESTIONS: [QuestionKind; 8] = [
    QuestionKind {
        what: "SM clock",
        ask: |library, device| clock(library, device, SM_CLOCK),
        meaning: Meaning::Value(Condition::SmClock, |megahertz| megahertz * 1e6),
    },
    QuestionKind {
        what: "memory clock",
        ask: |library, device| clock(library, device, MEMORY_CLOCK),
        meaning: Meaning::Value(Condition::MemoryClock, |megahertz| megahertz * 1e6),
    },
    QuestionKind {
        what: "what limits the clocks",
        ask: |library, device| {
            // Drivers before 535 have the function under its old name only.
            let get = (library.nvmlDeviceGetCurrentClocksEventReasons.as_ref())
                .or(library.nvmlDeviceGetCurrentClocksThrottleReasons.as_ref());
            // SAFETY: the device is one of NVML's.
            stored(get, |get, reasons| unsafe { get(device, reasons) })
        },
        meaning: Meaning::ClockReasons,
    },
    QuestionKind {
        what: "temperature",
        ask: |library, device| {
            let get = library.nvmlDeviceGetTemperature.as_ref();
            // SAFETY: as above.
            stored(get, |get, to| unsafe { get(device, GPU_SENSOR, to) }).map(u64::from)
        },
        meaning: Meaning::Value(Condition::Temperature, |celsius| celsius),
    },
    QuestionKind {
        what: "power",
        ask: |library, device| {
            let get = library.nvmlDeviceGetPowerUsage.as_ref();
            // SAFETY: as above.
            stored(get, |get, to| unsafe { get(device, to) }).map(u64::from)
        },
        // Milliwatts differ each time: whole watts keep rows few.
        meaning: Meaning::Value(Condition::Power, |milliwatts| (milliwatts / 1e3).round()),
    },
    QuestionKind {
        what: "memory in use",
        ask: |library, device| {
            let get = library.nvmlDeviceGetMemoryInfo.as_ref();
            // SAFETY: as above.
            stored(get, |get, to: &mut nvmlMemory_t| unsafe { get(device, to) }).map(|m| m.used)
        },
        meaning: Meaning::Value(Condition::MemoryUsed, |bytes| bytes),
    },
    QuestionKind {
        what: "time below the requested clock because of heat",
        ask: |library, device| violation(library, device, HEAT),
        meaning: Meaning::TimeSoFar(Condition::HeatViolation),
    },
    QuestionKind {
        what: "time below the requested clock because of power",
        ask: |library, device| violation(library, device, POWER),
        meaning: Meaning::TimeSoFar(Condition::PowerViolation),
    },
];

impl NvmlGpus {
    /// Asks about this GPU from now on.
    pub(super) fn add(&mut self, gpu: Gpu, updates: &mut Vec<ConditionUpdate>) {
        let found = self.find(&gpu);
        match found {
            Ok(device) => self.gpus.push(FollowedGpu {
                gpu,
                device,
                questions: (QUESTIONS.iter())
                    .map(|kind| Question {
                        kind,
                        failures: 0,
                        last: None,
                    })
                    .collect(),
            }),
            Err(reason) => updates.push(ConditionUpdate::of_gpu(&gpu.name, reason)),
        }
    }

    /// Returns NVML's handle of a GPU. Loads the library at the first call.
    fn find(&mut self, gpu: &Gpu) -> Result<nvmlDevice_t, NvmlError> {
        let nvml = self.nvml.get_or_insert_with(Nvml::load).as_ref();
        nvml.map_err(Clone::clone)?.device(&gpu.uuid)
    }

    /// Asks all questions about all GPUs and reports the answers. A question is dropped, with a report, when NVML
    /// says that it will never answer or it fails [`MAX_FAILURES`] times in a row. Returns true while a GPU is slowed
    /// down by heat or power supply.
    pub fn read(&mut self, now_ns: impl Fn() -> i64, updates: &mut Vec<ConditionUpdate>) -> bool {
        let Some(Ok(nvml)) = &self.nvml else {
            return false;
        };
        let source = self.source.get_or_insert_with(|| "NVML".into());
        let mut is_slowed = false;
        for followed in &mut self.gpus {
            let (device, gpu) = (followed.device, &followed.gpu);
            followed.questions.retain_mut(|question| {
                let at_ns = now_ns();
                let answer = (question.kind.ask)(&nvml.library, device);
                let mut push = |condition, from_ns, value| {
                    updates.push(ConditionUpdate::Reading(Reading {
                        of: ConditionSubject::Gpu(gpu.uuid.clone()),
                        condition,
                        from_ns,
                        seen_ns: at_ns,
                        value,
                        source: source.clone(),
                    }));
                };
                match answer {
                    Ok(value) => {
                        question.failures = 0;
                        let last = question.last.replace((at_ns, value));
                        if let Meaning::ClockReasons = question.kind.meaning {
                            is_slowed |= value & SLOWDOWN_REASONS != 0;
                        }
                        question.kind.push_readings(at_ns, value, last, &mut push);
                        true
                    }
                    Err(status) => {
                        if question.last.take().is_some() {
                            for condition in question.kind.conditions() {
                                push(condition, at_ns, None);
                            }
                        }
                        question.failures += 1;
                        let goes_on = !is_final(status) && question.failures < MAX_FAILURES;
                        if !goes_on {
                            let what = format!("{} of {}", question.kind.what, gpu.name);
                            updates
                                .push(ConditionUpdate::unmeasured(what, nvml.status_text(status)));
                        }
                        goes_on
                    }
                }
            });
        }
        is_slowed
    }
}

/// Returns true for a status that will not change when the question is asked again.
fn is_final(status: nvmlReturn_t) -> bool {
    [NOT_SUPPORTED, NO_PERMISSION, NO_FUNCTION].contains(&status)
}

impl QuestionKind {
    /// Returns the conditions that an answer gives.
    fn conditions(&self) -> Vec<Condition> {
        match self.meaning {
            Meaning::Value(condition, _) | Meaning::TimeSoFar(condition) => vec![condition],
            Meaning::ClockReasons => CLOCK_EVENT_REASONS
                .iter()
                .map(|(_, condition)| *condition)
                .chain([Condition::ClockOther])
                .collect(),
        }
    }

    /// Reports an answer `value` in the units of its conditions: calls `push` with each condition, the time from
    /// which it holds, and its value. `last` is the time and value of the answer before.
    fn push_readings(
        &self,
        at_ns: i64,
        value: u64,
        last: Option<(i64, u64)>,
        push: &mut impl FnMut(Condition, i64, Option<f64>),
    ) {
        let percent = |is_on: bool| Some(if is_on { 100.0 } else { 0.0 });
        match self.meaning {
            Meaning::Value(condition, convert) => {
                push(condition, at_ns, Some(convert(value as f64)));
            }
            Meaning::ClockReasons => {
                let known = CLOCK_EVENT_REASONS
                    .iter()
                    .fold(0, |all, (bit, _)| all | bit);
                for (bit, condition) in CLOCK_EVENT_REASONS {
                    push(condition, at_ns, percent(value & bit != 0));
                }
                push(Condition::ClockOther, at_ns, percent(value & !known != 0));
            }
            Meaning::TimeSoFar(condition) => {
                let Some((last_ns, last)) = last else {
                    return;
                };
                let share = value.saturating_sub(last) as f64 / (at_ns - last_ns).max(1) as f64;
                push(condition, last_ns, Some((share * 100.0).min(100.0)));
            }
        }
    }
}

/// The reason why NVML cannot be used, or does not know a GPU.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NvmlError {
    /// The system's loader refused the library, for this reason.
    #[error("NVIDIA's {library} could not be loaded: {0}", library = LIBRARY)]
    NotLoaded(String),
    /// NVML answered with this status.
    #[error("NVML could not be initialised: {0}")]
    NotInitialised(String),
    /// The text is not 32 hexadecimal digits.
    #[error("`{0}` is no UUID")]
    NoUuid(String),
    /// NVML has no device of this name.
    #[error("NVML gives no GPU {name}: {status} (parts of GPUs, MIG, have no clocks of their own)")]
    NoGpu {
        /// NVML's name of the GPU, which holds its UUID.
        name: String,
        /// NVML's status.
        status: String,
    },
}

/// The library, initialised.
pub struct Nvml {
    // Unloading the library gains nothing, and it may have threads.
    pub library: ManuallyDrop<Box<NvmlLib>>,
}

/// Facts of the machine that NVML tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmlInfo {
    /// The version of NVIDIA's driver, such as `580.159.04`, if NVML tells it.
    pub driver: Option<String>,
    /// The number of GPUs, if NVML tells it.
    pub gpus: Option<u32>,
}

/// Loads NVML into this process and asks for its facts.
///
/// # Errors
/// NVML cannot be loaded or does not work.
pub fn nvml_info() -> Result<NvmlInfo, NvmlError> {
    let nvml = Nvml::load()?;
    let get = nvml.library.nvmlSystemGetDriverVersion.as_ref();
    let text = stored(get, |get, text: &mut [c_char; 81]| {
        // SAFETY: the text has room for that many bytes.
        unsafe { get(text.as_mut_ptr(), 80) }
    });
    let driver = text.ok().and_then(|text| {
        let bytes = text.map(|character| character as u8);
        let driver = CStr::from_bytes_until_nul(&bytes).ok()?;
        Some(driver.to_string_lossy().into_owned())
    });
    let count = nvml.library.nvmlDeviceGetCount_v2.as_ref();
    Ok(NvmlInfo {
        driver: driver.filter(|driver| !driver.is_empty()),
        // SAFETY: the function may be called at any time.
        gpus: stored(count, |count, gpus| unsafe { count(gpus) }).ok(),
    })
}

impl Nvml {
    /// Loads and initialises the library.
    pub fn load() -> Result<Nvml, NvmlError> {
        // SAFETY: NVIDIA's library may be loaded by any process; gapscope cannot know what its initialisers do.
        let library = unsafe { NvmlLib::new(LIBRARY) };
        let library = library.map_err(|error| NvmlError::NotLoaded(error.to_string()))?;
        let nvml = Nvml {
            library: ManuallyDrop::new(Box::new(library)),
        };
        let status = match &nvml.library.nvmlInit_v2 {
            // SAFETY: the function takes nothing and may be called at any time.
            Ok(init) => unsafe { init() },
            Err(_) => NO_FUNCTION,
        };
        match status {
            SUCCESS => Ok(nvml),
            _ => Err(NvmlError::NotInitialised(nvml.status_text(status))),
        }
    }

    /// Returns NVML's handle of the GPU with a UUID, as the manifest writes it.
    pub fn device(&self, uuid: &str) -> Result<nvmlDevice_t, NvmlError> {
        let name = nvml_name(uuid).ok_or_else(|| NvmlError::NoUuid(uuid.to_owned()))?;
        let get = self.library.nvmlDeviceGetHandleByUUID.as_ref();
        // SAFETY: the name ends in a zero byte.
        let device = stored(get, |get, device| unsafe { get(name.as_ptr(), device) });
        device.map_err(|status| NvmlError::NoGpu {
            name: name.to_string_lossy().into_owned(),
            status: self.status_text(status),
        })
    }

    /// Returns NVML's words for a status.
    pub fn status_text(&self, status: nvmlReturn_t) -> String {
        let words = self.library.nvmlErrorString.as_ref().ok().and_then(|get| {
            // SAFETY: the function returns a text that stays, or null.
            let text = unsafe { get(status) };
            // SAFETY: a text of the library ends in a zero byte.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
        });
        match words {
            Some(words) => format!("NVML says: {} ({status})", words.to_string_lossy()),
            None => format!("NVML's status is {status}"),
        }
    }
}

/// Returns the clock `of` (SM or memory) of a device, in megahertz.
fn clock(
    library: &NvmlLib,
    device: nvmlDevice_t,
    of: nvmlClockType_t,
) -> Result<u64, nvmlReturn_t> {
    let get = library.nvmlDeviceGetClockInfo.as_ref();
    // SAFETY: the device is one of NVML's.
    stored(get, |get, megahertz| unsafe { get(device, of, megahertz) }).map(u64::from)
}

/// Returns the nanoseconds so far in which a policy held the clocks down.
fn violation(
    library: &NvmlLib,
    device: nvmlDevice_t,
    policy: nvmlPerfPolicyType_t,
) -> Result<u64, nvmlReturn_t> {
    let get = library.nvmlDeviceGetViolationStatus.as_ref();
    let times = stored(get, |get, times: &mut nvmlViolationTime_t| {
        // SAFETY: the device is one of NVML's.
        unsafe { get(device, policy, times) }
    });
    times.map(|times| times.violationTime)
}

/// Calls a function that stores a value in the variable that it is given, and returns that value.
/// A function that the library lacks is an error, too.
fn stored<F, E, T: Copy>(
    function: Result<&F, E>,
    call: impl FnOnce(&F, &mut T) -> nvmlReturn_t,
) -> Result<T, nvmlReturn_t> {
    // SAFETY: NVML stores numbers and structures of numbers, for which zero is a value.
    let mut value = unsafe { std::mem::zeroed() };
    match function.map(|function| call(function, &mut value)) {
        Ok(SUCCESS) => Ok(value),
        Ok(status) => Err(status),
        Err(_) => Err(NO_FUNCTION),
    }
}

/// Returns `GPU-01020304-0506-…` for a UUID of 32 hexadecimal digits.
fn nvml_name(uuid: &str) -> Option<CString> {
    let is_uuid = uuid.len() == 32 && uuid.bytes().all(|byte| byte.is_ascii_hexdigit());
    let part = |from: usize, to: usize| uuid.get(from..to).filter(|_| is_uuid);
    let parts = [
        part(0, 8)?,
        part(8, 12)?,
        part(12, 16)?,
        part(16, 20)?,
        part(20, 32)?,
    ];
    CString::new(format!("GPU-{}", parts.join("-"))).ok()
}
