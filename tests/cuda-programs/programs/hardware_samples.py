"""Hardware that samples counters while nobody reads the samples: on and off, as ordered by lines of stdin.

Argument: libcupti. Four counters every 100 us, as `--counters` takes them. Each line is `on` or `off`, and is answered when it is
done; what was sampled is thrown away after `off`, before the answer. Structures, calls and numbers are those of NVIDIA's
cupti_pmsampling.h and cupti_profiler_host.h, version 13.0.
"""

import ctypes
import sys
from ctypes import c_char_p, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path

METRICS = [
    b"TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    b"dram__bytes_read.sum",
    b"dram__bytes_write.sum",
    b"TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
]
INTERVAL_NS, BUFFER_BYTES, MAX_SAMPLES = 100_000, 256 << 20, 2000
PM_SAMPLING, AT_TIMES = 1, 1


class Cupti:
    def __init__(self, path):
        # CUPTI opens it by its bare name.
        self.host_library = ctypes.CDLL(str(Path(path).parent / "libnvperf_host.so"), ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)

    def __call__(self, function, *fields):
        """Calls it with a structure of these typed values behind the size and a null pointer; gives the structure."""
        types = [("size", c_size_t), ("reserved", c_void_p)]
        types += [(f"field{at}", type(value)) for at, value in enumerate(fields)]
        parameters = type(function, (ctypes.Structure,), {"_fields_": types})(0, None, *(value.value for value in fields))
        last = getattr(type(parameters), types[-1][0])
        parameters.size = last.offset + last.size
        status = getattr(self.library, f"cupti{function}")(ctypes.byref(parameters))
        if status:
            sys.exit(f"cupti{function} failed with {status}")
        return parameters


def main(path):
    ctypes.CDLL("libcuda.so.1").cuInit(0)
    cupti = Cupti(path)
    names, many = (c_char_p * len(METRICS))(*METRICS), c_size_t(len(METRICS))
    listed = c_void_p(ctypes.addressof(names))
    cupti("ProfilerInitialize")
    chip = cupti("DeviceGetChipName", c_size_t(0), c_char_p()).field1
    host = c_void_p(cupti("ProfilerHostInitialize", c_uint32(PM_SAMPLING), c_char_p(chip), c_void_p(), c_void_p()).field3)
    cupti("ProfilerHostConfigAddMetrics", host, listed, many)
    size = cupti("ProfilerHostGetConfigImageSize", host, c_size_t()).field1
    config = (c_uint8 * size)()
    cupti("ProfilerHostGetConfigImage", host, c_size_t(size), c_void_p(ctypes.addressof(config)))
    sampler = c_void_p(cupti("PmSamplingEnable", c_size_t(0), c_void_p()).field1)
    cupti("PmSamplingSetConfig", sampler, c_size_t(size), c_void_p(ctypes.addressof(config)), c_size_t(BUFFER_BYTES),
          c_uint64(INTERVAL_NS), c_uint32(AT_TIMES), c_uint32(0))  # fmt: skip
    size = cupti("PmSamplingGetCounterDataSize", sampler, listed, many, c_uint32(MAX_SAMPLES), c_size_t()).field4
    image = (c_uint8 * size)()
    at = c_void_p(ctypes.addressof(image))
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "on":
            cupti("PmSamplingCounterDataImageInitialize", sampler, c_size_t(size), at)
            cupti("PmSamplingStart", sampler)
            print("on", flush=True)
        else:
            cupti("PmSamplingStop", sampler)
            cupti("PmSamplingDecodeData", sampler, at, c_size_t(size), c_uint32(), c_uint8())
            told = cupti("PmSamplingGetCounterDataInfo", at, c_size_t(size), c_size_t(), c_size_t(), c_size_t())
            print(told.field4, flush=True)
    cupti("PmSamplingDisable", sampler)


if __name__ == "__main__":
    main(sys.argv[1])
