//! Asks NVML, NVIDIA's library about the state of GPUs, for conditions such as clocks, heat and power. The library
//! is loaded when the first such GPU is recorded.
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
/// The reasons whose end is reported at once.
const SLOWDOWN_REASONS: u64 = 0x8 | 0x20 | 0x40 | 0x80;

/// The GPUs that NVML is asked about.
#[derive(Default)]
pub struct NvmlGpus {
    /// The library, or why it cannot be used; absent before it is needed.
    nvml: Option<Result<Nvml, NvmlError>>,
    gpus: Vec<FollowedGpu>,
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
    kind: QuestionKind,
    failures: u8,
    /// The time and value of the last answer.
    last: Option<(i64, u64)>,
}

/// The kinds of questions to NVML, each of which gives one condition or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionKind {
    SmClock,
    MemoryClock,
    ClockReasons,
    Temperature,
    Power,
    MemoryUsed,
    HeatViolation,
    PowerViolation,
}

const QUESTIONS: [QuestionKind; 8] = [
    QuestionKind::SmClock,
    QuestionKind::MemoryClock,
    QuestionKind::ClockReasons,
    QuestionKind::Temperature,
    QuestionKind::Power,
    QuestionKind::MemoryUsed,
    QuestionKind::HeatViolation,
    QuestionKind::PowerViolation,
];

impl NvmlGpus {
    /// Asks about this GPU from now on.
    pub(super) fn add(&mut self, gpu: Gpu, updates: &mut Vec<ConditionUpdate>) {
        let found = self.find(&gpu);
        match found {
            Ok(device) => self.gpus.push(FollowedGpu {
                gpu,
                device,
                questions: QUESTIONS.map(Question::new).into(),
            }),
            Err(reason) => updates.push(ConditionUpdate::of_gpu(&gpu.name, reason)),
        }
    }

    fn find(&mut self, gpu: &Gpu) -> Result<nvmlDevice_t, NvmlError> {
        let nvml = self.nvml.get_or_insert_with(Nvml::load).as_ref();
        nvml.map_err(Clone::clone)?.device(&gpu.uuid)
    }

    /// Asks all questions about all GPUs. Returns true while one is slowed down by heat or power supply.
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
                let answer = nvml.ask(question.kind, device);
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
                        if question.kind == QuestionKind::ClockReasons {
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
                            let what = format!("{} of {}", question.kind.what(), gpu.name);
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

fn is_final(status: nvmlReturn_t) -> bool {
    [NOT_SUPPORTED, NO_PERMISSION, NO_FUNCTION].contains(&status)
}

impl Question {
    fn new(kind: QuestionKind) -> Question {
        Question {
            kind,
            failures: 0,
            last: None,
        }
    }
}

impl QuestionKind {
    fn what(self) -> &'static str {
        match self {
            QuestionKind::SmClock => "SM clock",
            QuestionKind::MemoryClock => "memory clock",
            QuestionKind::ClockReasons => "what limits the clocks",
            QuestionKind::Temperature => "temperature",
            QuestionKind::Power => "power",
            QuestionKind::MemoryUsed => "memory in use",
            QuestionKind::HeatViolation => "time below the requested clock because of heat",
            QuestionKind::PowerViolation => "time below the requested clock because of power",
        }
    }

    fn conditions(self) -> Vec<Condition> {
        match self {
            QuestionKind::SmClock => vec![Condition::SmClock],
            QuestionKind::MemoryClock => vec![Condition::MemoryClock],
            QuestionKind::ClockReasons => CLOCK_EVENT_REASONS
                .iter()
                .map(|(_, condition)| *condition)
                .chain([Condition::ClockOther])
                .collect(),
            QuestionKind::Temperature => vec![Condition::Temperature],
            QuestionKind::Power => vec![Condition::Power],
            QuestionKind::MemoryUsed => vec![Condition::MemoryUsed],
            QuestionKind::HeatViolation => vec![Condition::HeatViolation],
            QuestionKind::PowerViolation => vec![Condition::PowerViolation],
        }
    }

    /// Reports an answer in the units of its conditions.
    fn push_readings(
        self,
        at_ns: i64,
        value: u64,
        last: Option<(i64, u64)>,
        push: &mut impl FnMut(Condition, i64, Option<f64>),
    ) {
        let in_unit = value as f64;
        let percent = |is_on: bool| Some(if is_on { 100.0 } else { 0.0 });
        match self {
            // Clocks come in MHz.
            QuestionKind::SmClock => push(Condition::SmClock, at_ns, Some(in_unit * 1e6)),
            QuestionKind::MemoryClock => push(Condition::MemoryClock, at_ns, Some(in_unit * 1e6)),
            QuestionKind::Temperature => push(Condition::Temperature, at_ns, Some(in_unit)),
            // The power comes in milliwatts, which differ each time: whole watts keep rows few.
            QuestionKind::Power => push(Condition::Power, at_ns, Some((in_unit / 1e3).round())),
            QuestionKind::MemoryUsed => push(Condition::MemoryUsed, at_ns, Some(in_unit)),
            QuestionKind::ClockReasons => {
                let known = CLOCK_EVENT_REASONS
                    .iter()
                    .fold(0, |all, (bit, _)| all | bit);
                for (bit, condition) in CLOCK_EVENT_REASONS {
                    push(condition, at_ns, percent(value & bit != 0));
                }
                push(Condition::ClockOther, at_ns, percent(value & !known != 0));
            }
            QuestionKind::HeatViolation | QuestionKind::PowerViolation => {
                let Some((last_ns, last)) = last else {
                    return;
                };
                let share = value.saturating_sub(last) as f64 / (at_ns - last_ns).max(1) as f64;
                for condition in self.conditions() {
                    push(condition, last_ns, Some((share * 100.0).min(100.0)));
                }
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
    let mut text = [0 as c_char; 81];
    let get = nvml.library.nvmlSystemGetDriverVersion.as_ref();
    // SAFETY: the text is stored in our variable, which has room for that many bytes.
    let status = answer(get.map(|get| unsafe { get(text.as_mut_ptr(), 80) }));
    let bytes = text.map(|character| character as u8);
    let driver = CStr::from_bytes_until_nul(&bytes).ok();
    let mut gpus = 0;
    let count = nvml.library.nvmlDeviceGetCount_v2.as_ref();
    // SAFETY: the number is stored in our variable.
    let counted = answer(count.map(|count| unsafe { count(&mut gpus) }));
    Ok(NvmlInfo {
        driver: driver
            .map(|driver| driver.to_string_lossy().into_owned())
            .filter(|driver| status.is_ok() && !driver.is_empty()),
        gpus: counted.is_ok().then_some(gpus),
    })
}

impl Nvml {
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
        let mut device: nvmlDevice_t = std::ptr::null_mut();
        let status = match &self.library.nvmlDeviceGetHandleByUUID {
            // SAFETY: the name ends in a zero byte, and the handle is stored in our variable.
            Ok(get) => unsafe { get(name.as_ptr(), &mut device) },
            Err(_) => NO_FUNCTION,
        };
        match status {
            SUCCESS => Ok(device),
            _ => Err(NvmlError::NoGpu {
                name: name.to_string_lossy().into_owned(),
                status: self.status_text(status),
            }),
        }
    }

    /// Returns the answer to a question, in NVML's unit.
    fn ask(&self, kind: QuestionKind, device: nvmlDevice_t) -> Result<u64, nvmlReturn_t> {
        match kind {
            QuestionKind::SmClock => self.clock(device, SM_CLOCK),
            QuestionKind::MemoryClock => self.clock(device, MEMORY_CLOCK),
            QuestionKind::ClockReasons => {
                let library = &self.library;
                // Drivers before 535 have the function under its old name only.
                let get = (library.nvmlDeviceGetCurrentClocksEventReasons.as_ref())
                    .or(library.nvmlDeviceGetCurrentClocksThrottleReasons.as_ref());
                let mut reasons = 0;
                // SAFETY: the device is one of NVML's, and the value is stored in our variable.
                answer(get.map(|get| unsafe { get(device, &mut reasons) }))?;
                Ok(reasons)
            }
            QuestionKind::Temperature => {
                let mut celsius = 0;
                let sensor = GPU_SENSOR;
                let get = self.library.nvmlDeviceGetTemperature.as_ref();
                // SAFETY: as above.
                answer(get.map(|get| unsafe { get(device, sensor, &mut celsius) }))?;
                Ok(u64::from(celsius))
            }
            QuestionKind::Power => {
                let mut milliwatts = 0;
                let get = self.library.nvmlDeviceGetPowerUsage.as_ref();
                // SAFETY: as above.
                answer(get.map(|get| unsafe { get(device, &mut milliwatts) }))?;
                Ok(u64::from(milliwatts))
            }
            QuestionKind::MemoryUsed => {
                let mut memory = nvmlMemory_t {
                    total: 0,
                    free: 0,
                    used: 0,
                };
                let get = self.library.nvmlDeviceGetMemoryInfo.as_ref();
                // SAFETY: as above.
                answer(get.map(|get| unsafe { get(device, &mut memory) }))?;
                Ok(memory.used)
            }
            QuestionKind::HeatViolation => self.violation(device, HEAT),
            QuestionKind::PowerViolation => self.violation(device, POWER),
        }
    }

    fn clock(&self, device: nvmlDevice_t, of: nvmlClockType_t) -> Result<u64, nvmlReturn_t> {
        let mut megahertz = 0;
        let get = self.library.nvmlDeviceGetClockInfo.as_ref();
        // SAFETY: the device is one of NVML's, and the value is stored in our variable.
        answer(get.map(|get| unsafe { get(device, of, &mut megahertz) }))?;
        Ok(u64::from(megahertz))
    }

    /// Returns the nanoseconds so far in which a policy held the clocks down.
    fn violation(
        &self,
        device: nvmlDevice_t,
        policy: nvmlPerfPolicyType_t,
    ) -> Result<u64, nvmlReturn_t> {
        let mut time = nvmlViolationTime_t {
            referenceTime: 0,
            violationTime: 0,
        };
        let get = self.library.nvmlDeviceGetViolationStatus.as_ref();
        // SAFETY: the device is one of NVML's, and the times are stored in our variable.
        answer(get.map(|get| unsafe { get(device, policy, &mut time) }))?;
        Ok(time.violationTime)
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

/// Returns the status of a call, or `NO_FUNCTION` when the library lacks the function.
fn answer<E>(status: Result<nvmlReturn_t, E>) -> Result<(), nvmlReturn_t> {
    match status {
        Ok(SUCCESS) => Ok(()),
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
