//! Gives ids to kernels and launch shapes (kernel, queue and parameters, which many launches share), and writes the
//! definition of each before its first use.

use crate::cupti::fields::Record;
use crate::cupti::fields::kernel::*;
use crate::recorder::Recorder;
use gapscope_spool::event::{CommonEvent, CudaEvent, LaunchShape};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char};

/// The most launch shapes that are remembered: a program whose every launch differs must not fill the memory.
const MAX_SHAPES: usize = 1 << 16;

/// The ids of kernels and launch shapes that have been written.
#[derive(Debug, Default)]
pub struct Kernels {
    /// The kernels by name.
    kernels: FxHashMap<CString, ids::Kernel>,
    /// The names by CUPTI's address. Another module may be loaded there later, so that the text is compared once a
    /// buffer.
    names: FxHashMap<usize, CachedName>,
    /// The launch shapes that were written and not forgotten.
    shapes: FxHashMap<LaunchShape, ids::Launch>,
    /// Number of shapes that have got an id.
    next_shape: u32,
    /// The number of the buffer that is being read.
    buffer: u32,
    /// The shape of the last launch, which the next one often has, too.
    last: Option<(LaunchShape, ids::Launch)>,
}

/// The kernel whose name was at an address, and the number of the buffer for which the name was last compared.
#[derive(Debug)]
struct CachedName {
    kernel: ids::Kernel,
    text: CString,
    buffer: u32,
}

impl Kernels {
    /// Notes that the records of another buffer follow.
    pub fn new_buffer(&mut self) {
        self.buffer = self.buffer.wrapping_add(1);
    }

    /// Returns whether the shapes have to be forgotten before the next launch.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.shapes.len() >= MAX_SHAPES
    }

    /// Forgets all shapes. Activities that refer to them must have been written.
    pub fn forget(&mut self, recorder: &Recorder) {
        self.shapes.clear();
        self.last = None;
        recorder.write(&CudaEvent::LaunchesEnd {
            below: ids::Launch(self.next_shape + 1),
        });
    }

    /// Returns the id of a launch's shape.
    ///
    /// # Safety
    /// The record is a kernel's.
    #[inline]
    pub unsafe fn launch(
        &mut self,
        record: &Record<'_>,
        queue: ids::Queue,
        recorder: &Recorder,
    ) -> ids::Launch {
        // SAFETY: as the caller promises.
        let shape = unsafe {
            LaunchShape {
                kernel: self.kernel(record.get(NAME), recorder),
                queue,
                groups: record.get(GRID),
                local_size: record.get(BLOCK),
                static_shared_bytes: record.get(STATIC_SHARED),
                dynamic_shared_bytes: record.get(DYNAMIC_SHARED),
                local_bytes: record.get(LOCAL),
                registers: record.get(REGISTERS),
            }
        };
        if let Some((last, launch)) = &self.last
            && *last == shape
        {
            return *launch;
        }
        let launch = match self.shapes.get(&shape) {
            Some(launch) => *launch,
            None => self.new_shape(shape, recorder),
        };
        self.last = Some((shape, launch));
        launch
    }

    #[cold]
    fn new_shape(&mut self, shape: LaunchShape, recorder: &Recorder) -> ids::Launch {
        self.next_shape += 1;
        let launch = ids::Launch(self.next_shape);
        self.shapes.insert(shape, launch);
        recorder.write(&CudaEvent::Launch { launch, shape });
        launch
    }

    /// Returns the id of the kernel with a name.
    ///
    /// # Safety
    /// `name` is 0 or the address of a NUL-terminated text.
    #[inline]
    unsafe fn kernel(&mut self, name: usize, recorder: &Recorder) -> ids::Kernel {
        let buffer = self.buffer;
        if let Some(known) = self.names.get_mut(&name) {
            if known.buffer == buffer {
                return known.kernel;
            }
            // SAFETY: as the caller promises. The comparison ends at the first difference, so that it does not leave
            // a text that has become shorter.
            if unsafe { libc::strcmp(known.text.as_ptr(), name as *const c_char) } == 0 {
                known.buffer = buffer;
                return known.kernel;
            }
        }
        let text = match name {
            0 => c"",
            // SAFETY: as the caller promises.
            name => unsafe { CStr::from_ptr(name as *const c_char) },
        };
        self.new_name(name, text, recorder)
    }

    /// Returns the id of the kernel with this text, which the first use writes, and remembers it for the address
    /// `at`.
    #[cold]
    fn new_name(&mut self, at: usize, text: &CStr, recorder: &Recorder) -> ids::Kernel {
        let kernel = match self.kernels.get(text) {
            Some(kernel) => *kernel,
            None => {
                let kernel = ids::Kernel(self.kernels.len() as u32 + 1);
                self.kernels.insert(text.to_owned(), kernel);
                recorder.write(&CommonEvent::Kernel {
                    kernel,
                    source: [0; 16],
                    entry_point: text.to_string_lossy(),
                    specialisation: Cow::Borrowed(""),
                    source_name: Cow::Borrowed(""),
                    local_size: [0; 3],
                    accesses: Vec::new(),
                });
                kernel
            }
        };
        if at != 0 {
            let name = CachedName {
                kernel,
                text: text.to_owned(),
                buffer: self.buffer,
            };
            self.names.insert(at, name);
        }
        kernel
    }
}
