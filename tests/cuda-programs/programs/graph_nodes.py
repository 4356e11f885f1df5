"""Graphs in every way in which they are made. Each node is made inside a range of its own, and its kernel has a number of blocks of its own, by
which it is known again. Each graph is launched three times inside another range.

Needs PyTorch, for NVTX alone.
"""

import threading
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p, create_string_buffer

from conditional import LOOP, WHILE, Chain, Program
from region import finish, region
from torch.cuda import nvtx

LAUNCHES = 3
# CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
THREAD_LOCAL = 1


class Nodes:
    """Numbers nodes, and knows the ranges in which each was made."""

    def __init__(self):
        # By the number of blocks: the graph's name, and the ranges.
        self.made = {}
        self.lock = threading.Lock()

    def make(self, name, make, *around):
        """Calls `make` with a new number of blocks, inside ranges."""
        with self.lock:
            blocks = len(self.made) + 2
            labels = [*around, f"node {blocks}"]
            self.made[blocks] = [name, labels]
        for label in labels:
            nvtx.range_push(label)
        make(blocks)
        for _ in labels:
            nvtx.range_pop()
        return blocks


def main():
    program = Program()
    driver, nodes = program.driver, Nodes()
    streams = [driver.stream(), driver.stream()]

    def add(name, chain, *around):
        return nodes.make(name, lambda blocks: chain.kernel("nothing", blocks=blocks), *around)

    def captured(name, streams):
        """Two kernels on one stream, with one on another stream between them."""
        first, second = streams
        events = [c_void_p(), c_void_p()]
        for event in events:
            driver.call("cuEventCreate", byref(event), c_uint(2))
        launch = lambda stream: lambda blocks: driver.launch("nothing", None, stream, blocks)  # noqa: E731
        nvtx.range_push(f"capture of {name}")
        driver.call("cuStreamBeginCapture_v2", first, c_uint(THREAD_LOCAL))
        nodes.make(name, launch(first), "layer", "attention")
        driver.call("cuEventRecord", events[0], first)
        driver.call("cuStreamWaitEvent", second, events[0], c_uint(0))
        nodes.make(name, launch(second), "layer", "side")
        driver.call("cuEventRecord", events[1], second)
        driver.call("cuStreamWaitEvent", first, events[1], c_uint(0))
        nodes.make(name, launch(first), "layer", "mlp")
        graph = c_void_p()
        driver.call("cuStreamEndCapture", first, byref(graph))
        nvtx.range_pop()
        return Chain(program, graph)

    def run(name, executable):
        with nvtx.range(f"launch of {name}"):
            for _ in range(LAUNCHES):
                driver.launch_graph(executable, streams[0])
        driver.synchronise()

    with region("graphs", driver.synchronise):
        graph = captured("captured", streams)
        executable = program.instantiated(graph)
        run("captured", executable)

        clone = c_void_p()
        driver.call("cuGraphClone", byref(clone), graph.graph)
        run("captured", program.instantiated(Chain(program, clone)))

        again = captured("updated", streams)
        driver.call("cuGraphExecUpdate_v2", executable, again.graph, create_string_buffer(64))
        run("updated", executable)

        chain = program.chain()
        for layer in range(3):
            add("called", chain, f"layer {layer}")
        run("called", program.instantiated(chain))

        # Graphs inside of graphs: two in a row, one that has one inside and begins with it, and one at the end.
        inner, middle, outer = (program.chain() for _ in range(3))
        for _ in range(3):
            add("inside", inner, "inner")
        middle.child(inner)
        add("inside", middle, "middle")
        outer.child(middle)
        outer.child(inner)
        add("inside", outer, "outer")
        outer.child(inner)
        run("inside", program.instantiated(outer))

        chain, turns = program.chain(), program.counter()
        add("loop", chain, "before")
        condition = chain.condition()
        chain.kernel("set_condition", condition, 1)
        body = chain.conditional(WHILE, condition)
        add("loop", body, "body")
        body.kernel("again", condition, turns, LOOP)
        add("loop", body, "body")
        add("loop", chain, "after")
        run("loop", program.instantiated(chain))

        # Each on streams of its own.
        made = {}

        def capture(name):
            driver.enter()
            made[name] = program.instantiated(captured(name, [driver.stream(), driver.stream()]))

        threads = [threading.Thread(target=capture, args=(f"thread {number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, executable in made.items():
            run(name, executable)
    finish(made=nodes.made, launches=LAUNCHES, loop=LOOP)


if __name__ == "__main__":
    main()
