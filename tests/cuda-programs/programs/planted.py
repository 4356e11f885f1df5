"""Programs that keep the GPU idle, or busy, in one way each, and say what they did.

Argument: the way. They use the driver directly, so nothing but Python is needed.
"""

import json
import sys
import time

from driver import Driver
from region import finish, region

MICROSECOND, MILLISECOND = 1_000, 1_000_000


def host_sleep(driver):
    """The host sleeps between launches."""
    slept = 0
    for _ in range(60):
        driver.launch("spin", 200 * MICROSECOND)
        start = time.monotonic_ns()
        time.sleep(0.005)
        slept += time.monotonic_ns() - start
    # The kernel runs while the host sleeps.
    return {"kernels": 60, "idle_ns": slept - 60 * 200 * MICROSECOND}


def host_python(driver):
    """Python computes between launches."""
    idle = 0
    for _ in range(100):
        driver.launch("spin", 100 * MICROSECOND)
        start = time.monotonic_ns()
        while time.monotonic_ns() < start + MILLISECOND:
            pass
        idle += time.monotonic_ns() - start
    return {"kernels": 100, "idle_ns": idle - 100 * 100 * MICROSECOND}


def synchronise(driver):
    """The host waits for each launch."""
    for _ in range(2000):
        driver.launch("spin", 5 * MICROSECOND)
        driver.synchronise()
    return {"kernels": 2000}


def poll(driver):
    """The host asks for each launch's event until it has occurred."""
    stream, event = driver.stream(), driver.event()
    asked = 0
    for _ in range(500):
        driver.launch("spin", 100 * MICROSECOND, stream)
        driver.record(event, stream)
        asked += 1
        while not driver.is_done(event):
            asked += 1
    return {"kernels": 500, "asked": asked}


def allocate(driver):
    """The host allocates and frees in the loop."""
    for _ in range(100):
        driver.launch("spin", 20 * MICROSECOND)
        driver.free(driver.allocate(256 << 20))
    return {"kernels": 100}


def two_streams(driver):
    """Two streams hand over to each other through events; the host is far ahead."""
    streams = [driver.stream(), driver.stream()]
    events = [driver.event() for _ in range(400)]
    driver.launch("spin", 20 * MILLISECOND, streams[0])
    for index, event in enumerate(events):
        this, other = streams[index % 2], streams[(index + 1) % 2]
        driver.launch("spin", 10 * MICROSECOND, this)
        driver.record(event, this)
        driver.wait(other, event)
    driver.launch("spin", 10 * MICROSECOND, streams[0])
    return {"kernels": 402, "stream_waits": 400}


def copies(driver):
    """Copies from pinned memory of the host, with little to compute."""
    size, count = 64 << 20, 60
    host, device = driver.pinned(size), driver.allocate(size)
    for _ in range(count):
        driver.copy_to_device(device, host, size)
        driver.launch("spin", 20 * MICROSECOND)
    return {"kernels": count, "transfers": count, "transfer_bytes": size * count}


def graph(driver):
    """A graph of 20 kernels, launched 200 times."""
    stream = driver.stream()

    def record():
        for _ in range(20):
            driver.launch("spin", 5 * MICROSECOND, stream)

    executable = driver.graph(stream, record)
    for _ in range(200):
        driver.launch_graph(executable, stream)
    return {"graph_launches": 200, "graph_kernels": 4000}


def busy(driver):
    """The device has work all the time: the control."""
    for _ in range(400):
        driver.launch("spin", 500 * MICROSECOND, blocks=1024)
    return {"kernels": 400}


def underfilled(driver):
    """The same, with one block: most of the device idles."""
    for _ in range(400):
        driver.launch("spin", 500 * MICROSECOND)
    return {"kernels": 400}


WAYS = {way.__name__.replace("_", "-"): way for way in (
    host_sleep, host_python, synchronise, poll, allocate, two_streams, copies, graph, busy, underfilled)}  # fmt: skip


def main(name):
    driver = Driver()
    counter = driver.allocate(4)
    driver.clear(counter)
    for _ in range(3):
        driver.launch("count", counter)
        driver.launch("spin", MICROSECOND)
    with region(name, driver.synchronise):
        facts = WAYS[name](driver)
    driver.launch("count", counter)
    driver.synchronise()
    finish(result=driver.read(counter), **facts)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in WAYS:
        sys.exit(json.dumps(sorted(WAYS)))
    main(sys.argv[1])
