"""Computes in two functions between launches of a kernel, each for a time of the thread's own clock, and prints the times
of that clock: seconds on a processor, however long others kept the thread from one. Uses no package.

Arguments: rounds, and milliseconds of each round.
"""

import ctypes
import json
import sys
import time

PTX = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry k() { ret; }
"""

cuda = ctypes.CDLL("libcuda.so.1")


def check(status):
    assert status == 0, status


def heavy(seconds):
    started = time.thread_time()
    while time.thread_time() - started < seconds:
        for _ in range(100):
            pass
    return time.thread_time() - started


def light(seconds):
    started = time.thread_time()
    while time.thread_time() - started < seconds:
        for _ in range(100):
            pass
    return time.thread_time() - started


def main():
    rounds, milliseconds = int(sys.argv[1]), float(sys.argv[2])
    check(cuda.cuInit(0))
    context, module, kernel = (ctypes.c_void_p() for _ in range(3))
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k"))

    def launch():
        check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None))
        check(cuda.cuCtxSynchronize())

    # Whoever samples the thread has seen it by the time that the measured rounds begin.
    for _ in range(20):
        launch()
        time.sleep(0.02)
    spent = {"heavy": 0.0, "light": 0.0}
    started = time.monotonic_ns()
    for _ in range(rounds):
        launch()
        spent["heavy"] += heavy(0.00075 * milliseconds)
        spent["light"] += light(0.00025 * milliseconds)
    print(json.dumps({"spent": spent, "started_ns": started, "ended_ns": time.monotonic_ns()}))


main()
