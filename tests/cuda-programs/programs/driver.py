"""The CUDA driver's interface through ctypes, as far as the planted programs need it; no package, no compiler."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p, create_string_buffer

PTX = b"""
.version 7.0
.target sm_75
.address_size 64

.visible .entry nothing()
{
    ret;
}

// Runs for so many nanoseconds.
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .u64 %t<4>;
    .reg .pred %p;
    ld.param.u64 %t0, [nanoseconds];
    mov.u64 %t1, %globaltimer;
    add.u64 %t2, %t1, %t0;
again:
    mov.u64 %t3, %globaltimer;
    setp.lt.u64 %p, %t3, %t2;
    @%p bra again;
    ret;
}

// Adds 1 to the first number.
.visible .entry count(.param .u64 pointer)
{
    .reg .u64 %a;
    .reg .u32 %v;
    ld.param.u64 %a, [pointer];
    cvta.to.global.u64 %a, %a;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
"""


class CudaError(Exception):
    """A call of the driver failed."""


class Driver:
    """The first device with its primary context, which is current on the calling thread."""

    def __init__(self, library="libcuda.so.1"):
        self._library = ctypes.CDLL(library)
        self.call("cuInit", c_uint(0))
        device = c_int()
        self.call("cuDeviceGet", byref(device), c_int(0))
        self._context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(self._context), device)
        self.enter()
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), c_char_p(PTX))
        self._module = module
        self._launch = self._library.cuLaunchKernel
        self._launch.argtypes = [c_void_p] + [c_uint] * 7 + [c_void_p, POINTER(c_void_p), c_void_p]
        self._ask = self._library.cuEventQuery
        self._kernels = {}
        self._arguments = {}
        # What the parameters point to.
        self._values = []

    def call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise CudaError(f"{name} failed with CUresult {status}")

    def enter(self):
        """Makes the context current on this thread."""
        self.call("cuCtxSetCurrent", self._context)

    def launch(self, name, argument=None, stream=None, blocks=1, threads=1):
        """One block of one thread, unless more are asked for."""
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = c_void_p()
            self.call("cuModuleGetFunction", byref(kernel), self._module, c_char_p(name.encode()))
            self._kernels[name] = kernel
        parameters = None
        if argument is not None:
            parameters = self._arguments.get(argument)
            if parameters is None:
                value = c_uint64(argument)
                parameters = (c_void_p * 1)(ctypes.addressof(value))
                self._arguments[argument] = parameters
                self._values.append(value)
        status = self._launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, None)
        if status != 0:
            raise CudaError(f"cuLaunchKernel failed with CUresult {status}")

    def load(self, code, name):
        """Loads PTX or a cubin, whose kernel of this name can be launched from then on."""
        module, kernel = c_void_p(), c_void_p()
        self.call("cuModuleLoadData", byref(module), c_char_p(code))
        self.call("cuModuleGetFunction", byref(kernel), module, c_char_p(name.encode()))
        self._kernels[name] = kernel

    def synchronise(self):
        self.call("cuCtxSynchronize")

    def multiprocessors(self):
        count = c_int()
        # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        self.call("cuDeviceGetAttribute", byref(count), c_int(16), c_int(0))
        return count.value

    def capability(self):
        """Such as 90."""
        numbers = c_int(), c_int()
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        for number, attribute in zip(numbers, (75, 76)):
            self.call("cuDeviceGetAttribute", byref(number), c_int(attribute), c_int(0))
        return numbers[0].value * 10 + numbers[1].value

    def stream(self, flags=1, priority=None):
        """A stream; with flag 1 it is not ordered with the default stream."""
        stream = c_void_p()
        if priority is None:
            self.call("cuStreamCreate", byref(stream), c_uint(flags))
        else:
            self.call("cuStreamCreateWithPriority", byref(stream), c_uint(flags), c_int(priority))
        return stream

    def green_stream(self):
        """A stream of a green context that has all multiprocessors."""
        resource, description, context = create_string_buffer(1024), c_void_p(), c_void_p()
        # CU_DEV_RESOURCE_TYPE_SM, CU_GREEN_CTX_DEFAULT_STREAM, CU_STREAM_NON_BLOCKING
        self.call("cuDeviceGetDevResource", c_int(0), resource, c_int(1))
        self.call("cuDevResourceGenerateDesc", byref(description), resource, c_uint(1))
        self.call("cuGreenCtxCreate", byref(context), description, c_int(0), c_uint(1))
        stream = c_void_p()
        self.call("cuGreenCtxStreamCreate", byref(stream), context, c_uint(1), c_int(0))
        return stream

    def wait_for(self, stream):
        self.call("cuStreamSynchronize", stream)

    def sleep_on_host(self, stream, microseconds):
        """The stream lets the host sleep: libc's function is called as CUDA calls functions of programs."""
        sleep = ctypes.cast(ctypes.CDLL(None).usleep, c_void_p)
        self.call("cuLaunchHostFunc", stream, sleep, c_void_p(microseconds))

    def wait_for_value(self, stream, address, value):
        """The stream waits until the number at an address is at least this one."""
        self.call("cuStreamWaitValue32_v2", stream, c_uint64(address), c_uint(value), c_uint(0))

    def event(self):
        event = c_void_p()
        # 2: without its own timing.
        self.call("cuEventCreate", byref(event), c_uint(2))
        return event

    def record(self, event, stream):
        self.call("cuEventRecord", event, stream)

    def is_done(self, event):
        """Asks for the event once."""
        status = self._ask(event)
        # 600: not ready.
        if status not in (0, 600):
            raise CudaError(f"cuEventQuery failed with CUresult {status}")
        return status == 0

    def wait(self, stream, event):
        self.call("cuStreamWaitEvent", stream, event, c_uint(0))

    def allocate(self, size):
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer.value

    def free(self, pointer):
        self.call("cuMemFree_v2", c_uint64(pointer))

    def pinned(self, size):
        pointer = c_void_p()
        self.call("cuMemHostAlloc", byref(pointer), c_size_t(size), c_uint(0))
        return pointer

    def copy_to_device(self, device, host, size, stream=None):
        self.call("cuMemcpyHtoDAsync_v2", c_uint64(device), host, c_size_t(size), stream)

    def read(self, pointer):
        """The first number at a device address."""
        value = c_uint()
        self.call("cuMemcpyDtoH_v2", byref(value), c_uint64(pointer), c_size_t(4))
        return value.value

    def clear(self, pointer):
        self.call("cuMemsetD32_v2", c_uint64(pointer), c_uint(0), c_size_t(1))

    def graph(self, stream, record, flags=0):
        """An executable graph of what `record` does on the stream."""
        self.call("cuStreamBeginCapture_v2", stream, c_int(0))
        record()
        graph, executable = c_void_p(), c_void_p()
        self.call("cuStreamEndCapture", stream, byref(graph))
        self.call("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(flags))
        return executable

    def launch_graph(self, executable, stream):
        self.call("cuGraphLaunch", executable, stream)
