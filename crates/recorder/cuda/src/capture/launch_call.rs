//! Reads the parameters of a call that launches a kernel, which CUPTI hands over as the call's structure.

use crate::callbacks::CallbackData;
use crate::streams::StreamHandle;
use gapscope_capture::cuda::Attribute;
use std::ffi::c_void;

/// CU_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE
const END: usize = 0;
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;
/// CU_LAUNCH_ATTRIBUTE_COOPERATIVE
const COOPERATIVE: u32 = 2;
/// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: they name events of the
/// program, and change nothing of what the kernel computes.
const OF_EVENTS: [u32; 2] = [7, 12];
/// The size of CUlaunchAttributeValue.
const VALUE_BYTES: usize = 64;
/// The most attributes that are read; a greater number is taken for a structure that is not what it seems.
const MAX_ATTRIBUTES: u32 = 64;

/// The shape of a call that launches a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchShape {
    /// cuLaunchKernel
    Plain,
    /// cuLaunchKernelEx
    WithAttributes,
    /// cuLaunchCooperativeKernel
    Cooperative,
}

impl LaunchShape {
    /// Returns which parameter of the call is the function, counted in pointers.
    pub fn function_parameter(self) -> usize {
        match self {
            LaunchShape::Plain | LaunchShape::Cooperative => 0,
            LaunchShape::WithAttributes => 1,
        }
    }
}

/// A launch as the program asks for it.
#[derive(Debug)]
pub struct LaunchCall {
    /// A CUfunction, or a CUkernel in its place.
    pub function: *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub stream: StreamHandle,
    pub attributes: Vec<Attribute>,
    /// The addresses of the parameters, one after the other; null where `packed` has them.
    pub parameters: *const *const u8,
    /// The parameters in one piece.
    pub packed: Option<Vec<u8>>,
}

/// cuLaunchCooperativeKernel_params
#[repr(C)]
struct CommonParameters {
    function: *mut c_void,
    sizes: [u32; 6],
    shared_bytes: u32,
    stream: usize,
    parameters: *const *const u8,
}

/// cuLaunchKernel_params
#[repr(C)]
struct PlainParameters {
    common: CommonParameters,
    extra: *const usize,
}

/// cuLaunchKernelEx_params
#[repr(C)]
struct ExParameters {
    config: *const Config,
    function: *mut c_void,
    parameters: *const *const u8,
    extra: *const usize,
}

/// CUlaunchConfig
#[repr(C)]
struct Config {
    sizes: [u32; 6],
    shared_bytes: u32,
    stream: usize,
    attributes: *const RawAttribute,
    count: u32,
}

/// CUlaunchAttribute
#[repr(C)]
struct RawAttribute {
    id: u32,
    padding: u32,
    value: [u8; VALUE_BYTES],
}

// `offsetof` and `sizeof` give these numbers for cuda.h.
const _: () = assert!(std::mem::offset_of!(CommonParameters, stream) == 40);
const _: () = assert!(std::mem::offset_of!(Config, attributes) == 40);
const _: () = assert!(size_of::<RawAttribute>() == 72);

impl LaunchCall {
    /// Reads a call; `None` where the structure is not as it is known.
    ///
    /// # Safety
    /// The data is CUPTI's, at the start of a call of this shape.
    pub unsafe fn read(
        shape: LaunchShape,
        per_thread: bool,
        data: &CallbackData,
    ) -> Option<LaunchCall> {
        let made = |function, sizes: [u32; 6], shared_bytes, stream| LaunchCall {
            function,
            grid: [sizes[0], sizes[1], sizes[2]],
            block: [sizes[3], sizes[4], sizes[5]],
            shared_bytes,
            stream: StreamHandle::new(stream, per_thread),
            attributes: Vec::new(),
            parameters: std::ptr::null(),
            packed: None,
        };
        let common = |given: &CommonParameters| {
            made(
                given.function,
                given.sizes,
                given.shared_bytes,
                given.stream,
            )
        };
        // SAFETY: as the caller promises, and for what these structures point to, the program does.
        unsafe {
            let (mut call, parameters, extra) = match shape {
                LaunchShape::Plain => {
                    let given = data.parameters::<PlainParameters>()?;
                    let call = common(&given.common);
                    (call, given.common.parameters, given.extra)
                }
                LaunchShape::Cooperative => {
                    let given = data.parameters::<CommonParameters>()?;
                    let mut call = common(given);
                    let mut value = vec![0; VALUE_BYTES];
                    value[..4].copy_from_slice(&1_i32.to_ne_bytes());
                    call.attributes.push(Attribute {
                        id: COOPERATIVE,
                        value,
                    });
                    (call, given.parameters, std::ptr::null())
                }
                LaunchShape::WithAttributes => {
                    let given = data.parameters::<ExParameters>()?;
                    let config = given.config.as_ref()?;
                    let mut call = made(
                        given.function,
                        config.sizes,
                        config.shared_bytes,
                        config.stream,
                    );
                    call.attributes = attributes(config)?;
                    (call, given.parameters, given.extra)
                }
            };
            call.parameters = parameters;
            if parameters.is_null() && !extra.is_null() {
                call.packed = packed(extra);
            }
            Some(call)
        }
    }
}

/// Returns the attributes of a launch, without those of events.
///
/// # Safety
/// The configuration is the program's.
unsafe fn attributes(config: &Config) -> Option<Vec<Attribute>> {
    if config.count > MAX_ATTRIBUTES || (config.count > 0 && config.attributes.is_null()) {
        return None;
    }
    let attributes = (0..config.count as usize).map(|at| {
        // SAFETY: as the caller promises, there are so many.
        let given = unsafe { &*config.attributes.add(at) };
        Attribute {
            id: given.id,
            value: given.value.to_vec(),
        }
    });
    Some(
        attributes
            .filter(|attribute| !OF_EVENTS.contains(&attribute.id))
            .collect(),
    )
}

/// Returns the parameters that a launch hands over in one piece.
///
/// # Safety
/// `extra` is the program's list of pairs, which ends with CU_LAUNCH_PARAM_END.
pub unsafe fn packed(extra: *const usize) -> Option<Vec<u8>> {
    let (mut pointer, mut bytes) = (std::ptr::null::<u8>(), 0);
    // SAFETY: as the caller promises.
    unsafe {
        let mut at = extra;
        while *at != END {
            match *at {
                BUFFER_POINTER => pointer = *at.add(1) as *const u8,
                BUFFER_SIZE => bytes = *(*at.add(1) as *const usize),
                _ => return None,
            }
            at = at.add(2);
        }
        match pointer.is_null() || bytes > crate::capture::MAX_PARAMETER_BYTES {
            true => None,
            false => Some(std::slice::from_raw_parts(pointer, bytes).to_vec()),
        }
    }
}
