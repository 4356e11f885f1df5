//! Finds the state of a command buffer by its handle, without a lock where the thread has used the command buffer
//! lately. Hooks call [`add`] at allocation, [`state`] at each command, and [`remove`] when it is freed.

use crate::command_buffer::CommandBuffer;
use crate::handles::{HandleHasher, HandleMap};
use ash::vk;
use ash::vk::Handle;
use std::cell::{Cell, UnsafeCell};
use std::hash::Hasher;
use std::sync::{PoisonError, RwLock};

/// The state behind one handle value. It is never freed: caches point to it, and a driver that reuses the handle gets
/// it again.
struct Slot {
    /// The driver's handle.
    handle: u64,
    /// `None` while no live command buffer has the handle.
    state: UnsafeCell<Option<CommandBuffer>>,
}

// SAFETY: a command buffer, and so its state, is externally synchronised by the program (Vulkan, "Threading
// Behavior"); submission only reads it.
unsafe impl Sync for Slot {}

/// All slots, by handle.
static SLOTS: RwLock<HandleMap<&'static Slot>> =
    RwLock::new(HandleMap::with_hasher(std::hash::BuildHasherDefault::new()));

/// The number of command buffers that a thread's cache holds.
const CACHE_SLOTS: usize = 16;

thread_local! {
    /// The slots that this thread used last, by a hash of the handle.
    static CACHE: [Cell<Option<&'static Slot>>; CACHE_SLOTS] = const { [const { Cell::new(None) }; CACHE_SLOTS] };
}

/// Returns the slot of a handle, from the thread's cache where it is there; `None` for an unknown handle.
#[inline]
fn slot(handle: u64) -> Option<&'static Slot> {
    let mut hasher = HandleHasher::default();
    hasher.write_u64(handle);
    let index = (hasher.finish() >> 32) as usize & (CACHE_SLOTS - 1);
    if let Ok(Some(slot)) = CACHE.try_with(|cache| cache[index].get())
        && slot.handle == handle
    {
        return Some(slot);
    }
    find_slot(handle, index)
}

/// Looks a slot up under the lock, and keeps it in the thread's cache at `index`.
#[cold]
fn find_slot(handle: u64, index: usize) -> Option<&'static Slot> {
    let slot = *SLOTS
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&handle)?;
    let _ = CACHE.try_with(|cache| cache[index].set(Some(slot)));
    Some(slot)
}

/// Returns the state of a command buffer; `None` for an unknown one.
///
/// # Safety
/// The calling thread has the access to the command buffer that Vulkan demands of the call it is in, and holds no
/// other reference from this function to the same one.
#[inline]
pub unsafe fn state(handle: vk::CommandBuffer) -> Option<&'static mut CommandBuffer> {
    // SAFETY: as the caller promises.
    unsafe { (*slot(handle.as_raw())?.state.get()).as_mut() }
}

/// Adds the state of a command buffer that the driver has just allocated.
pub fn add(handle: vk::CommandBuffer, state: CommandBuffer) {
    let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
    let slot = slots.entry(handle.as_raw()).or_insert_with(|| {
        Box::leak(Box::new(Slot {
            handle: handle.as_raw(),
            state: UnsafeCell::new(None),
        }))
    });
    // SAFETY: the driver has just allocated the command buffer: nobody uses it yet.
    unsafe { *slot.state.get() = Some(state) };
}

/// Forgets a command buffer, and ends its command recording.
///
/// # Safety
/// The command buffer is being freed by the program.
pub unsafe fn remove(handle: vk::CommandBuffer) {
    let Some(slot) = slot(handle.as_raw()) else {
        return;
    };
    // SAFETY: as the caller promises, nobody else uses the command buffer.
    if let Some(mut state) = unsafe { (*slot.state.get()).take() } {
        state.forget_recording();
    }
}
