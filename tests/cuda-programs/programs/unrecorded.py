"""Work of which CUPTI records nothing: managed memory, decompression, graphs that the device launches."""

import ctypes
import shutil
import subprocess
import tempfile
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

from driver import CudaError, Driver
from region import finish

DEVICE_LAUNCH = 4
LAUNCHER = """
extern "C" __global__ void launcher(cudaGraphExec_t graph) { cudaGraphLaunch(graph, cudaStreamGraphFireAndForget); }
"""
SIZE = 1 << 24


class Location(ctypes.Structure):
    """CUmemLocation"""

    _fields_ = [("type", c_int), ("id", c_int)]


def managed(driver, stream):
    """Prefetches to the device, and reads on the host: pages move twice."""
    pointer = c_uint64()
    driver.call("cuMemAllocManaged", byref(pointer), c_size_t(SIZE), c_uint(1))
    ctypes.memset(pointer.value, 1, SIZE)
    device = Location(1, 0)
    driver.call("cuMemPrefetchAsync_v2", pointer, c_size_t(SIZE), device, c_uint(0), stream)
    driver.launch("count", pointer.value, stream)
    driver.wait_for(stream)
    return ctypes.c_uint.from_address(pointer.value).value == 0x01010102


class Decompression(ctypes.Structure):
    """CUmemDecompressParams"""

    _fields_ = [
        ("sourceBytes", c_size_t),
        ("bytes", c_size_t),
        ("actual", c_void_p),
        ("source", c_void_p),
        ("target", c_void_p),
        ("algorithm", c_uint),
        ("padding", ctypes.c_ubyte * 20),
    ]


def decompression(driver, stream):
    """What the driver answers; devices before Blackwell cannot do it."""
    source, target, actual = driver.allocate(4096), driver.allocate(4096), driver.allocate(4)
    one, failed = Decompression(16, 4096, actual, source, target, 1), c_size_t()
    try:
        driver.call("cuMemBatchDecompressAsync", byref(one), c_size_t(1), c_uint(0), byref(failed), stream)
        return "accepted"
    except (CudaError, AttributeError) as error:
        return str(error)


def compiler():
    found = [shutil.which("nvcc"), *sorted(Path("/usr/local").glob("cuda*/bin/nvcc"))]
    return next((str(path) for path in found if path), None)


def device_launch(driver, stream, number):
    """A graph that launches another from the device. Why not, where that cannot be done."""
    nvcc = compiler()
    if nvcc is None:
        return "there is no nvcc"
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "launcher.cu", Path(folder) / "launcher.cubin"
        source.write_text(LAUNCHER)
        linked, architecture = Path(folder) / "launcher.o", f"-arch=sm_{driver.capability()}"
        for command in (
            [nvcc, architecture, "-rdc=true", "-dc", "-o", linked, source],
            [nvcc, architecture, "-dlink", "-cubin", "-o", cubin, linked, "-lcudadevrt"],
        ):
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                return f"nvcc: {done.stderr.strip()[-300:]}"
        driver.load(cubin.read_bytes(), "launcher")
    child = driver.graph(stream, lambda: driver.launch("count", number, stream), DEVICE_LAUNCH)
    driver.call("cuGraphUpload", child, stream)
    parent = driver.graph(stream, lambda: driver.launch("launcher", child.value, stream), DEVICE_LAUNCH)
    driver.call("cuGraphUpload", parent, stream)
    driver.launch_graph(parent, stream)
    driver.wait_for(stream)
    return None


def main():
    driver = Driver()
    stream, number = driver.stream(), driver.allocate(4)
    driver.clear(number)
    moved = managed(driver, stream)
    decompressed = decompression(driver, stream)
    # Made for launches by the device, and launched by the host.
    graph = driver.graph(stream, lambda: driver.launch("count", number, stream), DEVICE_LAUNCH)
    driver.launch_graph(graph, stream)
    driver.wait_for(stream)
    try:
        failure = device_launch(driver, stream, number)
    except CudaError as error:
        failure = str(error)
    driver.synchronise()
    finish(
        managed=moved,
        decompression=decompressed,
        device_launch=failure,
        # Of the graphs: one by the host, and one by the device where that was done.
        counted=driver.read(number),
        graphs_for_device=1 if failure else 3,
    )


if __name__ == "__main__":
    main()
