//! Defines the traits that a layer implements for the shared hooks (functions that the program calls instead of the
//! next layer's): its devices ([`Layer`]), and its work before and after each call that both layers hook, on objects
//! ([`ObjectHooks`]), command buffers ([`CommandHooks`]) and queues ([`QueueHooks`]).

use std::borrow::Cow;

use ash::vk;

use crate::command::{Command, Label};
use crate::command_pools::{CommandPool, CommandPools};
use crate::descriptors::{Descriptors, SetContents};
use crate::devices::{DeviceHandle, Devices};
use crate::functions::DeviceFunctions;
use crate::instance::Instance;
use crate::loader::{NextLayer, SetDeviceLoaderData};
use crate::submissions::{SubmitFunction, SubmitInfo};

/// The layer's changes to a device that the program makes.
pub trait DevicePlan {
    /// Returns the create-info to pass on, which borrows from the plan.
    fn create_info<'a>(&'a mut self, info: &vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a>;

    /// Notes that the driver has refused the device. Returns true if the plan had changed anything: the device is
    /// then made without the changes.
    fn drop_additions(&mut self) -> bool;
}

/// A device that the next layer has just made.
pub struct NewDevice<'a> {
    pub instance: &'static Instance,
    pub physical: vk::PhysicalDevice,
    /// The program's create-info.
    pub info: &'a vk::DeviceCreateInfo<'a>,
    pub handle: vk::Device,
    pub next: &'a NextLayer,
    /// The loader's function that makes command buffers of the layer usable.
    pub set_loader_data: Option<SetDeviceLoaderData>,
}

/// A queue as a program gets it.
#[derive(Clone, Copy)]
pub struct Queue {
    pub handle: vk::Queue,
    pub family: u32,
    pub index: u32,
    pub is_protected: bool,
}

/// A layer, by its type for logical devices. A device is leaked: hooks may still use it on other threads.
pub trait Layer: Sized + Sync + 'static {
    /// The layer's changes to a new device.
    type Plan: DevicePlan;

    /// Returns all devices that have been made through the layer.
    fn devices() -> &'static Devices<Self>;

    /// Returns whether the layer has anything to do in this process; if not, no hook is handed out.
    fn is_active() -> bool;

    /// Returns the hook of a function that only this layer hooks.
    fn own_hook(name: &str) -> vk::PFN_vkVoidFunction;

    /// Runs work of the layer. A panic in the work ends here, and the result is then `None`.
    fn guard<R>(work: impl FnOnce() -> R) -> Option<R>;

    /// Returns the next layer's functions of the device.
    fn functions(&self) -> &'static DeviceFunctions;

    /// Plans a device of the layer; `None` if calls on the device are to be passed on untouched.
    ///
    /// # Safety
    /// `physical` belongs to `instance`; `info` is the program's, during its call.
    unsafe fn plan(
        instance: &'static Instance,
        physical: vk::PhysicalDevice,
        info: &vk::DeviceCreateInfo<'_>,
    ) -> Option<Self::Plan>;

    /// Keeps a device that has been made as planned.
    ///
    /// # Safety
    /// The device is live.
    unsafe fn new(plan: &Self::Plan, made: NewDevice<'_>) -> Option<&'static Self>;

    /// Ends the device before the program destroys it.
    ///
    /// # Safety
    /// The device is live and idle.
    unsafe fn end(&self);

    /// Notes that the program is about to destroy an instance, perhaps with devices of it left.
    fn end_instance(instance: &'static Instance);

    /// Keeps a queue that the program got, perhaps not for the first time.
    fn add_queue(&self, queue: Queue);
}

/// The answer of the shared hooks for a handle of a device that was not made through the layer, and for a function
/// that the next layer lacks.
pub trait Answer {
    /// The answer.
    const UNKNOWN: Self;
}

impl Answer for () {
    const UNKNOWN: () = ();
}

impl Answer for vk::Result {
    /// Any command may return this error for invalid input of the application.
    const UNKNOWN: vk::Result = vk::Result::ERROR_UNKNOWN;
}

/// Returns the device of a handle together with a function of the next layer.
///
/// # Safety
/// `handle` is live.
#[inline]
pub unsafe fn find<L: Layer, F>(
    handle: impl DeviceHandle,
    function: impl FnOnce(&'static DeviceFunctions) -> Option<F>,
) -> Option<(&'static L, F)> {
    // SAFETY: as the caller promises.
    let device = unsafe { L::devices().get(handle) }?;
    Some((device, function(device.functions())?))
}

/// Calls of which a layer may take the time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TimedCall {
    AllocateMemory,
    FreeMemory,
    CreateShaderModule,
    CreatePipelines,
}

/// A new semaphore.
#[derive(Clone, Copy)]
pub struct SemaphoreInfo {
    /// The value with which a timeline semaphore starts; `None` for a binary semaphore.
    pub initial_value: Option<u64>,
    /// Whether the semaphore may be exported, so that others signal it.
    pub is_shared: bool,
}

/// The work of a layer when programs make and destroy objects. An object is added once the call has succeeded, and
/// removed before it is destroyed.
pub trait ObjectHooks: Layer {
    /// The descriptors of a set, as the layer keeps them.
    type Contents: SetContents;
    /// A call whose time is taken.
    type Timer;

    /// Notes the start of a call whose time is taken.
    fn start_timer(&self) -> Self::Timer;

    /// Ends the time of a call; `bytes` is how much memory the call was about.
    fn finish_timer(
        &self,
        timer: Self::Timer,
        call: TimedCall,
        result: vk::Result,
        bytes: Option<u64>,
    );

    /// Keeps an allocation that the program has made.
    ///
    /// # Safety
    /// `info` is the program's, during its call.
    unsafe fn add_memory(&self, memory: vk::DeviceMemory, info: &vk::MemoryAllocateInfo<'_>);

    fn remove_memory(&self, memory: vk::DeviceMemory);

    /// Returns the create-info of a buffer as the layer would rather have it; `None` if it is to stay as it is.
    ///
    /// # Safety
    /// `info` is the program's, during its call.
    unsafe fn change_buffer<'a>(
        &self,
        info: &vk::BufferCreateInfo<'a>,
    ) -> Option<vk::BufferCreateInfo<'a>>;

    /// Keeps a buffer. `is_changed` says whether the buffer was made as [`ObjectHooks::change_buffer`] says.
    ///
    /// # Safety
    /// `info` is the program's, during its call.
    unsafe fn add_buffer(
        &self,
        buffer: vk::Buffer,
        info: &vk::BufferCreateInfo<'_>,
        is_changed: bool,
    );

    fn remove_buffer(&self, buffer: vk::Buffer);

    /// Keeps where a buffer got its memory.
    fn bind_buffer(&self, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64);

    /// Keeps a shader module with its code.
    fn add_module(&self, module: vk::ShaderModule, code: &[u32]);

    fn remove_module(&self, module: vk::ShaderModule);

    /// Keeps a compute pipeline that the program has created.
    ///
    /// # Safety
    /// `info` is the program's, during its call.
    unsafe fn add_pipeline(&self, pipeline: vk::Pipeline, info: &vk::ComputePipelineCreateInfo<'_>);

    fn remove_pipeline(&self, pipeline: vk::Pipeline);

    fn add_semaphore(&self, semaphore: vk::Semaphore, info: SemaphoreInfo);

    fn remove_semaphore(&self, semaphore: vk::Semaphore);

    /// Keeps the name that the program gives an object.
    ///
    /// # Safety
    /// `handle` is a live object of that type, to which the calling thread has the access that naming it demands.
    unsafe fn name_object(&self, kind: vk::ObjectType, handle: u64, name: &str);

    /// Returns the device's descriptor sets.
    fn descriptors(&self) -> &Descriptors<Self::Contents>;

    /// Returns the state that [`SetContents::write`] needs.
    fn descriptor_context(&self) -> &<Self::Contents as SetContents>::Context;

    /// Runs work that follows what the program records or writes to descriptor sets. A layer that needs none of it
    /// any more may skip the work.
    fn follow(work: impl FnOnce()) {
        Self::guard(work);
    }
}

/// The work of a layer with command buffers, to which the calling thread has the access that Vulkan demands of each
/// call.
pub trait CommandHooks: Layer {
    /// Returns the device's command pools.
    fn command_pools(&self) -> &CommandPools;

    /// Keeps a command buffer that the program has allocated from `pool`.
    fn add_command_buffer(
        &'static self,
        handle: vk::CommandBuffer,
        pool: &CommandPool,
        level: vk::CommandBufferLevel,
    );

    /// Forgets a command buffer that the program frees.
    ///
    /// # Safety
    /// The program is freeing the command buffer.
    unsafe fn remove_command_buffer(&self, handle: vk::CommandBuffer);

    /// Begins a command recording.
    ///
    /// # Safety
    /// `info` is the program's, during its call, on its command buffer.
    unsafe fn begin(&self, handle: vk::CommandBuffer, info: &vk::CommandBufferBeginInfo<'_>);

    /// Throws the command recording away.
    ///
    /// # Safety
    /// The program is resetting the command buffer.
    unsafe fn reset(&self, handle: vk::CommandBuffer);

    /// Records a command, and calls the next layer's function, which `function` picks, with `call`. Without a known
    /// device or the function, nothing is done.
    ///
    /// # Safety
    /// The program's own call, which gives this thread the command buffer.
    unsafe fn record<F>(
        handle: vk::CommandBuffer,
        function: impl Fn(&'static DeviceFunctions) -> Option<F>,
        command: Command<'_>,
        call: impl FnOnce(F),
    );

    /// Records a label. The hook passes the label on.
    ///
    /// # Safety
    /// As for [`CommandHooks::record`].
    unsafe fn record_label(&'static self, handle: vk::CommandBuffer, label: Label<'_>);
}

/// The work of a layer with queues.
pub trait QueueHooks: Layer {
    /// Passes on a submission by `function`: `call` hands the program's structures, or others in their place, to the next layer. The
    /// submission signals `fence`, unless that is null.
    ///
    /// # Safety
    /// The program's own call.
    unsafe fn submit<I: SubmitInfo>(
        &'static self,
        queue: vk::Queue,
        function: SubmitFunction,
        infos: &[I],
        fence: vk::Fence,
        call: impl Fn(&[I]) -> vk::Result,
    ) -> vk::Result;

    /// Lets `pass_on` bind sparse memory, and signal `fence`, unless that is null.
    ///
    /// # Safety
    /// The program's own call.
    unsafe fn bind_sparse(
        &'static self,
        queue: vk::Queue,
        infos: &[vk::BindSparseInfo<'_>],
        fence: vk::Fence,
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result;

    /// Lets `pass_on` wait for a queue, or for the whole device without one.
    fn wait_idle(
        &'static self,
        queue: Option<vk::Queue>,
        pass_on: impl FnOnce() -> vk::Result,
    ) -> vk::Result;

    /// Keeps a label of a queue. The hook passes it on.
    fn label_queue(&self, queue: vk::Queue, label: Label<'_>);
}

/// Everything that the shared hooks need of a layer.
pub trait Hooks: ObjectHooks + CommandHooks + QueueHooks {}

impl<L: ObjectHooks + CommandHooks + QueueHooks> Hooks for L {}

/// Returns the text of a label that a program passes; empty without a label.
///
/// # Safety
/// `label` is null or valid.
pub(crate) unsafe fn label_text<'a>(label: *const vk::DebugUtilsLabelEXT<'_>) -> Cow<'a, str> {
    if label.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: as the caller promises.
    unsafe { crate::arguments::text_at((*label).p_label_name) }
}
