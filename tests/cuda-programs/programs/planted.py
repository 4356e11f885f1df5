"""Programs that keep the GPU idle, or busy, in one way each, and say what they did.

Argument: the way. They use the driver directly, so nothing but Python is needed.
"""

import ctypes
import json
import queue
import sys
import threading
import time

from driver import CudaError, Driver
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
    """The device has work all the time, on all of its multiprocessors: the control."""
    blocks = 2 * driver.multiprocessors()
    for _ in range(400):
        driver.launch("spin", 500 * MICROSECOND, blocks=blocks, threads=1024)
    return {"kernels": 400}


def small_kernels(driver):
    """The device has work all the time, on two of its multiprocessors."""
    for _ in range(100):
        driver.launch("spin", 5 * MILLISECOND, blocks=2, threads=32)
    return {"kernels": 100}


def slow_graph_launch(driver):
    """The first launch of a large graph takes long, and the device has nothing else to do."""
    stream, nodes, graphs = driver.stream(), 2000, 12

    def record():
        for _ in range(nodes):
            driver.launch("nothing", None, stream)

    executables = [driver.graph(stream, record) for _ in range(graphs)]

    def launch():
        calls_ns = 0
        for executable in executables:
            start = time.monotonic_ns()
            driver.launch_graph(executable, stream)
            calls_ns += time.monotonic_ns() - start
            driver.wait_for(stream)
        return {"graph_launches": graphs, "graph_kernels": graphs * nodes, "calls_ns": calls_ns}

    return launch


def host_function(driver):
    """A function of the host runs between each kernel and the next; all is submitted at once."""
    stream = driver.stream()
    for _ in range(100):
        driver.launch("spin", 100 * MICROSECOND, stream)
        driver.sleep_on_host(stream, 900)
    return {"kernels": 100, "host_functions": 100, "least_idle_ns": 99 * 900 * MICROSECOND}


def host_node(driver):
    """A graph of two kernels with a function of the host between them."""
    stream = driver.stream()

    def record():
        driver.launch("spin", 100 * MICROSECOND, stream)
        driver.sleep_on_host(stream, 7900)
        driver.launch("spin", 100 * MICROSECOND, stream)

    executable = driver.graph(stream, record)
    for _ in range(40):
        driver.launch_graph(executable, stream)
    facts = {"graph_launches": 40, "graph_kernels": 80, "host_nodes": 1}
    return {**facts, "least_idle_ns": 40 * 7900 * MICROSECOND}


def wait_value(driver):
    """A stream waits for a value that the host writes late."""
    stream = driver.stream()
    word = driver.pinned(64)
    value = ctypes.cast(word, ctypes.POINTER(ctypes.c_uint32))
    value[0] = 0
    idle = 0
    for number in range(1, 101):
        driver.wait_for_value(stream, word.value, number)
        driver.launch("spin", 200 * MICROSECOND, stream)
        start = time.monotonic_ns()
        time.sleep(0.005)
        value[0] = number
        idle += time.monotonic_ns() - start
        driver.wait_for(stream)
    return {"kernels": 100, "wait_values": 100, "idle_ns": idle}


def event_order(driver):
    """Work waits for an event that another stream reaches 15 ms later: that is no launch latency."""
    first, second, event = driver.stream(), driver.stream(), driver.event()
    for _ in range(40):
        driver.launch("spin", 15 * MILLISECOND, first)
        driver.record(event, first)
        driver.wait(second, event)
        driver.launch("spin", 10 * MICROSECOND, second)
        driver.synchronise()
    return {"kernels": 80, "stream_waits": 40, "latency_at_most_ns": MILLISECOND}


def default_stream_order(driver):
    """The legacy default stream waits for a blocking one, and that for it: no launch latency either."""
    stream = driver.stream(flags=0)
    for _ in range(40):
        driver.launch("spin", 10 * MILLISECOND, stream)
        driver.launch("spin", 10 * MICROSECOND)
        driver.synchronise()
    return {"kernels": 80, "latency_at_most_ns": MILLISECOND}


def other_thread(driver):
    """The main thread waits for the stream, and another one then launches the next kernel."""
    stream, orders, launched = driver.stream(), queue.SimpleQueue(), queue.SimpleQueue()

    def launch():
        driver.enter()
        while orders.get():
            driver.launch("spin", 300 * MICROSECOND, stream)
            launched.put(True)

    thread = threading.Thread(target=launch)
    thread.start()
    for _ in range(1000):
        orders.put(True)
        launched.get()
        driver.wait_for(stream)
    orders.put(False)
    thread.join()
    return {"kernels": 1000}


def idle_polls(driver):
    """The host asks when the work is long done, and then computes in Python."""
    stream, event = driver.stream(), driver.event()
    asked = python = 0
    for _ in range(500):
        driver.launch("spin", 100 * MICROSECOND, stream)
        driver.record(event, stream)
        driver.wait_for(stream)
        for _ in range(2):
            asked += 1
            driver.is_done(event)
        start = time.monotonic_ns()
        while time.monotonic_ns() < start + MILLISECOND:
            pass
        python += time.monotonic_ns() - start
    return {"kernels": 500, "asked": asked, "idle_ns": python}


def slow_polls(driver):
    """The host asks once in a millisecond: what it is late by is its waiting."""
    stream, event = driver.stream(), driver.event()
    asked = 0
    for _ in range(200):
        driver.launch("spin", 2500 * MICROSECOND, stream)
        driver.record(event, stream)
        asked += 1
        while not driver.is_done(event):
            time.sleep(0.001)
            asked += 1
    return {"kernels": 200, "asked": asked}


def streams(driver):
    """Every kind of stream; each has another number of kernels, which tells it apart."""
    per_thread = ctypes.c_void_p(2)
    kinds = {1: "default", 2: "blocking", 3: "non-blocking", 4: "blocking", 5: "blocking", 6: "non-blocking"}
    made = [None, driver.stream(flags=0), driver.stream(flags=1), per_thread, driver.stream(flags=0, priority=-1)]
    made.append(driver.stream(flags=1, priority=-1))
    for count, stream in enumerate(made, 1):
        for _ in range(count):
            driver.launch("spin", 10 * MICROSECOND, stream)
    kernels = sum(kinds)
    try:
        green = driver.green_stream()
        for _ in range(7):
            driver.launch("spin", 10 * MICROSECOND, green)
        kernels, kinds = kernels + 7, {**kinds, 7: "non-blocking"}
    except (CudaError, AttributeError) as error:
        print(error, file=sys.stderr)
    return {"kernels": kernels, "stream_kinds": kinds}


WAYS = {way.__name__.replace("_", "-"): way for way in (
    host_sleep, host_python, synchronise, poll, allocate, two_streams, copies, graph, busy, small_kernels,
    slow_graph_launch, host_function, host_node, wait_value, event_order, default_stream_order, other_thread,
    idle_polls, slow_polls, streams)}  # fmt: skip
# These prepare before the first work, and give what is measured.
PREPARED = {"slow-graph-launch"}


def main(name):
    driver = Driver()
    work = WAYS[name](driver) if name in PREPARED else lambda: WAYS[name](driver)
    counter = driver.allocate(4)
    driver.clear(counter)
    for _ in range(3):
        driver.launch("count", counter)
        driver.launch("spin", MICROSECOND)
    with region(name, driver.synchronise):
        facts = work()
    driver.launch("count", counter)
    driver.synchronise()
    finish(result=driver.read(counter), **facts)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in WAYS:
        sys.exit(json.dumps(sorted(WAYS)))
    main(sys.argv[1])
