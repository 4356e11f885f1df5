"""Kernels whose code the program loads itself: PTX, what NVRTC compiles, what Triton compiles."""

import ctypes
import sys
from ctypes import byref, c_char_p, c_size_t, c_void_p, create_string_buffer
from pathlib import Path

from driver import Driver
from region import finish

CODE = b'extern "C" __global__ void nvrtc_add(unsigned *p) { *p += 1; }'


def nvrtc():
    """The library of the Python packages, or the toolkit's."""
    found = [path for folder in sys.path if folder for path in Path(folder).glob("nvidia/c*/lib/libnvrtc.so.1*")]
    found += sorted(Path("/usr/local").glob("cuda*/targets/*/lib/libnvrtc.so.1*"))
    return ctypes.CDLL(str(found[0])) if found else None


def compiled(library):
    """PTX, with the lines that it is of."""
    program, size = c_void_p(), c_size_t()
    options = (c_char_p * 2)(b"--gpu-architecture=compute_75", b"-lineinfo")
    name = c_char_p(b"/src/nvrtc_add.cu")
    for function, arguments in [
        ("nvrtcCreateProgram", (byref(program), c_char_p(CODE), name, 0, None, None)),
        ("nvrtcCompileProgram", (program, 2, options)),
        ("nvrtcGetPTXSize", (program, byref(size))),
    ]:
        status = getattr(library, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} failed with {status}")
    text = create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    return text.value


def triton_kernel():
    """Runs a kernel of Triton; its name."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def triton_add(x, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

    x = torch.zeros(1024, device="cuda")
    triton_add[(4,)](x, 1024, BLOCK=256)
    assert x.sum().item() == 1024
    return "triton_add"


def main():
    driver = Driver()
    number = driver.allocate(4)
    driver.clear(number)
    driver.launch("count", number)
    ran, missing = {"count": "ptx"}, {}
    library = nvrtc()
    if library is None:
        missing["nvrtc_add"] = "there is no libnvrtc"
    else:
        driver.load(compiled(library), "nvrtc_add")
        driver.launch("nvrtc_add", number)
        ran["nvrtc_add"] = "ptx"
    driver.synchronise()
    result = driver.read(number)
    try:
        ran[triton_kernel()] = "ptx"
    except ImportError as error:
        missing["triton_add"] = str(error)
    finish(ran=ran, missing=missing, result=result)


if __name__ == "__main__":
    main()
