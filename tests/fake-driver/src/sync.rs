//! Simulates fences and semaphores, with the one condition on which the host and the queues wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;

use crate::clock::monotonic_ns;
use crate::device::{self, Device, destroy_functions, lock};
use crate::object::{self, Body};
use crate::{chain, misuse};

static STATE: Mutex<()> = Mutex::new(());
static CHANGED: Condvar = Condvar::new();

/// Changes a state that other threads may wait for, and wakes them.
pub fn update<R>(change: impl FnOnce() -> R) -> R {
    let state = lock(&STATE);
    let result = change();
    CHANGED.notify_all();
    drop(state);
    result
}

/// Waits until the condition holds, the deadline passes or the device is lost.
pub fn wait(
    device: &Device,
    deadline: Option<Instant>,
    mut holds: impl FnMut() -> bool,
) -> vk::Result {
    let mut state = lock(&STATE);
    loop {
        if device.is_lost() {
            return vk::Result::ERROR_DEVICE_LOST;
        }
        if holds() {
            return vk::Result::SUCCESS;
        }
        state = match deadline {
            None => CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return vk::Result::TIMEOUT;
                }
                CHANGED
                    .wait_timeout(state, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
    }
}

/// Returns `None` for timeouts that mean forever.
fn deadline(timeout_ns: u64) -> Option<Instant> {
    const YEAR_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;
    (timeout_ns < YEAR_NS).then(|| Instant::now() + Duration::from_nanos(timeout_ns))
}

#[derive(Default)]
pub struct Fence {
    pub signalled: AtomicBool,
    /// Whether a submission will signal the fence.
    pub submitted: AtomicBool,
}

impl Body for Fence {
    type Handle = vk::Fence;
}

pub struct Semaphore {
    pub timeline: bool,
    /// A binary semaphore counts to one.
    value: AtomicU64,
    /// Whether a submitted operation will have signalled a binary semaphore, or did, and no wait was submitted since.
    pub promised: AtomicBool,
    /// The last values and the simulated times at which they were reached.
    reached: Mutex<VecDeque<(u64, u64)>>,
}

impl Body for Semaphore {
    type Handle = vk::Semaphore;
}

impl Semaphore {
    /// The caller is inside [`update`].
    pub fn signal(&self, call: &str, value: u64, at_ns: u64) {
        const KEPT: usize = 256;
        let value = if self.timeline { value } else { 1 };
        let before = self.value.swap(value, AcqRel);
        if self.timeline && value <= before {
            misuse::report(
                call,
                format_args!("a timeline semaphore at {before} is signalled to {value}"),
            );
        }
        let mut reached = lock(&self.reached);
        reached.push_back((value, at_ns));
        if reached.len() > KEPT {
            reached.pop_front();
        }
    }

    /// Returns when the value was reached, if it was; zero if that was long ago.
    pub fn reached_at(&self, value: u64) -> Option<u64> {
        let value = if self.timeline { value } else { 1 };
        if self.value.load(Acquire) < value {
            return None;
        }
        let reached = lock(&self.reached);
        Some(
            reached
                .iter()
                .find(|&&(seen, _)| seen >= value)
                .map_or(0, |&(_, at_ns)| at_ns),
        )
    }

    /// A wait on a binary semaphore takes its signal.
    pub fn consume(&self) {
        if !self.timeline {
            self.value.store(0, Release);
            lock(&self.reached).clear();
        }
    }
}

pub unsafe extern "system" fn create_fence(
    device: vk::Device,
    info: *const vk::FenceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Fence,
) -> vk::Result {
    let signalled = (*info).flags.contains(vk::FenceCreateFlags::SIGNALED);
    device::create("vkCreateFence", device, out, |_| Fence {
        signalled: signalled.into(),
        ..Fence::default()
    })
}

pub unsafe extern "system" fn destroy_fence(
    device: vk::Device,
    fence: vk::Fence,
    _: *const vk::AllocationCallbacks<'_>,
) {
    const CALL: &str = "vkDestroyFence";
    if let Some((device, fence)) = device::destroy::<Fence>(CALL, device, fence)
        && fence.submitted.load(Acquire)
        && !device.is_lost()
    {
        misuse::report(CALL, "a submission will signal the fence");
    }
}

pub unsafe extern "system" fn reset_fences(
    _: vk::Device,
    count: u32,
    fences: *const vk::Fence,
) -> vk::Result {
    const CALL: &str = "vkResetFences";
    for &fence in chain::slice(fences, count) {
        let Some(fence) = object::get::<Fence>(CALL, fence) else {
            continue;
        };
        if fence.submitted.load(Acquire) {
            misuse::report(CALL, "a submission will signal the fence");
        }
        fence.signalled.store(false, Release);
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn get_fence_status(device: vk::Device, fence: vk::Fence) -> vk::Result {
    const CALL: &str = "vkGetFenceStatus";
    let (Some(device), Some(fence)) = (
        object::get::<Device>(CALL, device),
        object::get::<Fence>(CALL, fence),
    ) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if device.is_lost() {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    if fence.signalled.load(Acquire) {
        vk::Result::SUCCESS
    } else {
        vk::Result::NOT_READY
    }
}

pub unsafe extern "system" fn wait_for_fences(
    device: vk::Device,
    count: u32,
    fences: *const vk::Fence,
    all: vk::Bool32,
    timeout_ns: u64,
) -> vk::Result {
    const CALL: &str = "vkWaitForFences";
    let Some(device) = object::get::<Device>(CALL, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let fences: Vec<_> = chain::slice(fences, count)
        .iter()
        .filter_map(|&fence| object::get::<Fence>(CALL, fence))
        .collect();
    wait(device, deadline(timeout_ns), || {
        let mut signals = fences.iter().map(|fence| fence.signalled.load(Acquire));
        if all == vk::TRUE {
            signals.all(|on| on)
        } else {
            signals.any(|on| on)
        }
    })
}

pub unsafe extern "system" fn create_semaphore(
    device: vk::Device,
    info: *const vk::SemaphoreCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Semaphore,
) -> vk::Result {
    const CALL: &str = "vkCreateSemaphore";
    let kind = chain::find::<vk::SemaphoreTypeCreateInfo<'_>>((*info).p_next);
    let timeline = kind.is_some_and(|kind| kind.semaphore_type == vk::SemaphoreType::TIMELINE);
    device::create(CALL, device, out, |device| {
        if timeline {
            device.requires(CALL, "timelineSemaphore", device.enabled.timeline_semaphore);
        }
        Semaphore {
            timeline,
            value: kind.map_or(0, |kind| kind.initial_value).into(),
            promised: AtomicBool::new(false),
            reached: Mutex::default(),
        }
    })
}

destroy_functions! {
    Semaphore, destroy_semaphore("vkDestroySemaphore");
}

pub unsafe extern "system" fn get_counter_value(
    device: vk::Device,
    semaphore: vk::Semaphore,
    out: *mut u64,
) -> vk::Result {
    const CALL: &str = "vkGetSemaphoreCounterValue";
    let (Some(device), Some(semaphore)) = (
        object::get::<Device>(CALL, device),
        object::get::<Semaphore>(CALL, semaphore),
    ) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if device.is_lost() {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    *out = semaphore.value.load(Acquire);
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn signal_semaphore(
    _: vk::Device,
    info: *const vk::SemaphoreSignalInfo<'_>,
) -> vk::Result {
    const CALL: &str = "vkSignalSemaphore";
    let Some(semaphore) = object::get::<Semaphore>(CALL, (*info).semaphore) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    if !semaphore.timeline {
        misuse::report(CALL, "the semaphore is binary");
    }
    update(|| semaphore.signal(CALL, (*info).value, monotonic_ns()));
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn wait_semaphores(
    device: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout_ns: u64,
) -> vk::Result {
    const CALL: &str = "vkWaitSemaphores";
    let Some(device) = object::get::<Device>(CALL, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let info = &*info;
    let values = chain::slice(info.p_values, info.semaphore_count);
    let semaphores = chain::slice(info.p_semaphores, info.semaphore_count).iter();
    let waits: Vec<_> = semaphores
        .zip(values)
        .filter_map(|(&semaphore, &value)| {
            Some((object::get::<Semaphore>(CALL, semaphore)?, value))
        })
        .collect();
    wait(device, deadline(timeout_ns), || {
        let mut reached = waits
            .iter()
            .map(|(semaphore, value)| semaphore.reached_at(*value).is_some());
        if info.flags.contains(vk::SemaphoreWaitFlags::ANY) {
            reached.any(|on| on)
        } else {
            reached.all(|on| on)
        }
    })
}
