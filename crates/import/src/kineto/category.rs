//! The kinds of events that an import tells apart, and their parsing from the `cat` member of an event.

/// The kind of an event of PyTorch's profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    /// A kernel on a device.
    Kernel,
    /// A copy by a device.
    Copy,
    /// A fill by a device.
    Fill,
    /// A call of a runtime or a driver.
    Call,
    /// A wait of the host or of a stream, as the device's profiler reports it.
    Synchronisation,
    /// The device's time at which a recorded event was reached.
    DeviceEvent,
    /// Time that the profiler or the driver took.
    Overhead,
    /// A range that the program or PyTorch set on a thread.
    Annotation,
    /// A range on a device, which the profiler derives from the work that was launched in an annotation.
    DeviceAnnotation,
    /// An operator.
    Operator,
    /// A function of Python.
    Python,
    /// The profiler's own span.
    Span,
    /// The arrows from calls to their work.
    LaunchFlow,
    /// Work of the device with this number, from another profiler.
    Device(u32),
    /// Device work of another producer.
    OtherProducer(Producer),
    /// An event of any other category.
    Other,
}

impl Category {
    /// Returns whether events of the category are work of a device.
    pub(super) fn is_work(self) -> bool {
        matches!(
            self,
            Category::Kernel
                | Category::Copy
                | Category::Fill
                | Category::Device(_)
                | Category::OtherProducer(_)
        )
    }

    /// Parses a category of any version: `Kernel` and `kernel`, `Memcpy` and `gpu_memcpy`; also those of PaddlePaddle
    /// (`profile_step`, `dataloader`, `user_defined`) and of Ascend (`async_npu`).
    pub(super) fn parse(text: &[u8]) -> Category {
        match text {
            b"cpu_op" | b"Operator" | b"operator" => Category::Operator,
            b"python_function" | b"Python" => Category::Python,
            b"kernel" | b"Kernel" | b"concurrent_kernel" | b"gpu_kernel" => Category::Kernel,
            b"gpu_memcpy" | b"Memcpy" | b"memcpy" => Category::Copy,
            b"gpu_memset" | b"Memset" | b"memset" => Category::Fill,
            b"cuda_runtime"
            | b"cuda_driver"
            | b"Runtime"
            | b"runtime"
            | b"hip_runtime"
            | b"hip_driver"
            | b"xpu_runtime"
            | b"xpu_driver"
            | b"mtia_runtime"
            | b"privateuse1_runtime"
            | b"privateuse1_driver"
            | b"glow_runtime"
            | b"hpu_runtime" => Category::Call,
            b"cuda_event" => Category::DeviceEvent,
            b"cuda_sync" => Category::Synchronisation,
            b"overhead" | b"Overhead" => Category::Overhead,
            b"user_annotation"
            | b"cpu_user_annotation"
            | b"profile_step"
            | b"dataloader"
            | b"user_defined" => Category::Annotation,
            b"gpu_user_annotation" => Category::DeviceAnnotation,
            b"Trace" => Category::Span,
            b"ac2g" | b"async_cpu_to_gpu" | b"async_gpu" | b"async_npu" | b"HostToDevice"
            | b"async_task_queue" => Category::LaunchFlow,
            _ => Category::Other,
        }
    }
}

/// A producer of device work other than PyTorch's profiler and XLA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Producer {
    /// Triton's Proton.
    Proton,
    /// The profiler of Huawei's Ascend.
    Ascend,
    /// Intel's unitrace.
    Unitrace,
    /// The drawing of a trace of gapscope, without the trace behind it.
    Gapscope,
}
