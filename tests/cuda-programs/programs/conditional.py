"""Graphs whose bodies the device runs as often as it decides: loops and branches, one inside another.

Argument: launches of each graph (20).
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_int, c_longlong, c_size_t, c_uint, c_uint64, c_void_p

from driver import CudaError, Driver
from region import finish, region

# `set_condition` gives a condition a value. `again` counts up to the limit, and says whether the loop goes on.
PTX = b"""
.version 7.0
.target sm_75
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry set_condition(.param .u64 handle, .param .u64 value)
{
    .reg .u64 %h, %v;
    .reg .u32 %w;
    .param .b64 first;
    .param .b32 second;
    ld.param.u64 %h, [handle];
    ld.param.u64 %v, [value];
    cvt.u32.u64 %w, %v;
    st.param.b64 [first], %h;
    st.param.b32 [second], %w;
    call.uni cudaGraphSetConditional, (first, second);
    ret;
}

.visible .entry again(.param .u64 handle, .param .u64 pointer, .param .u64 limit)
{
    .reg .u64 %h, %a, %l;
    .reg .u32 %n, %m, %v;
    .reg .pred %p;
    .param .b64 first;
    .param .b32 second;
    ld.param.u64 %h, [handle];
    ld.param.u64 %a, [pointer];
    ld.param.u64 %l, [limit];
    cvta.to.global.u64 %a, %a;
    cvt.u32.u64 %m, %l;
    ld.global.u32 %n, [%a];
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, %m;
    selp.u32 %v, 1, 0, %p;
    selp.u32 %n, %n, 0, %p;
    st.global.u32 [%a], %n;
    st.param.b64 [first], %h;
    st.param.b32 [second], %v;
    call.uni cudaGraphSetConditional, (first, second);
    ret;
}
"""

IF, WHILE = 0, 1
CONDITIONAL_NODE = 13
# How often the loops run.
LOOP, OUTER, INNER = 5, 3, 4
# The flag of a condition that has its first value at each launch.
ASSIGN_DEFAULT = 1
# Kernels of one launch of each graph, by construction.
KERNELS = {
    "plain": 2,
    "loop": 2 + LOOP * 3,
    "nested": 2 + OUTER * (5 + INNER * 2),
    "untaken": 2,
    "only_loop": LOOP * 2,
}


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2"""

    _fields_ = [
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("parameters", POINTER(c_void_p)),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    ]


class ConditionalNode(ctypes.Structure):
    """CUgraphNodeParams of a conditional node"""

    _fields_ = [
        ("type", c_int),
        ("reserved", c_int * 3),
        ("handle", c_uint64),
        ("kind", c_uint),
        ("size", c_uint),
        ("bodies", POINTER(c_void_p)),
        ("context", c_void_p),
        ("rest", c_longlong * 25),
        ("last", c_longlong),
    ]


assert ctypes.sizeof(ConditionalNode) == 256


class Chain:
    """A graph whose nodes follow each other."""

    def __init__(self, program, graph):
        self.program, self.graph, self.last = program, graph, None

    def _after(self):
        """The arguments that name what a new node waits for."""
        if self.last is None:
            return None, c_size_t(0)
        return byref(self.last), c_size_t(1)

    def kernel(self, name, *arguments, blocks=1):
        driver = self.program.driver
        values = [c_uint64(argument) for argument in arguments]
        parameters = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        node = c_void_p()
        grid, block = (c_uint * 3)(blocks, 1, 1), (c_uint * 3)(1, 1, 1)
        wanted = KernelNode(self.program.functions[name], grid, block, 0, parameters, None, None, None)
        driver.call("cuGraphAddKernelNode_v2", byref(node), self.graph, *self._after(), byref(wanted))
        self.last = node

    def child(self, chain):
        """Adds a copy of another graph as one node."""
        node = c_void_p()
        self.program.driver.call("cuGraphAddChildGraphNode", byref(node), self.graph, *self._after(), chain.graph)
        self.last = node

    def condition(self, first=0, flags=0):
        """A condition of a node of this graph. Without a flag, kernels alone set its value."""
        handle = c_uint64()
        self.program.driver.call(
            "cuGraphConditionalHandleCreate", byref(handle), self.graph, self.program.context, c_uint(first), c_uint(flags)
        )
        return handle.value

    def conditional(self, kind, handle):
        """Adds a node that runs its body while, or if, the condition is not 0. Gives the body."""
        wanted = ConditionalNode(type=CONDITIONAL_NODE, handle=handle, kind=kind, size=1)
        wanted.context = self.program.context
        node = c_void_p()
        self.program.driver.call("cuGraphAddNode", byref(node), self.graph, *self._after(), byref(wanted))
        self.last = node
        return Chain(self.program, c_void_p(wanted.bodies[0]))


class Program:
    def __init__(self):
        self.driver = driver = Driver()
        self.context = c_void_p()
        driver.call("cuCtxGetCurrent", byref(self.context))
        driver.launch("count", self.counter())
        module = c_void_p()
        driver.call("cuModuleLoadData", byref(module), ctypes.c_char_p(PTX))
        driver.launch("nothing")
        self.functions = {name: driver._kernels[name] for name in ("count", "nothing")}
        for name in ("set_condition", "again"):
            function = c_void_p()
            driver.call("cuModuleGetFunction", byref(function), module, ctypes.c_char_p(name.encode()))
            self.functions[name] = function

    def counter(self):
        pointer = self.driver.allocate(4)
        self.driver.clear(pointer)
        return pointer

    def chain(self):
        graph = c_void_p()
        self.driver.call("cuGraphCreate", byref(graph), c_uint(0))
        return Chain(self, graph)

    def instantiated(self, chain):
        executable = c_void_p()
        self.driver.call("cuGraphInstantiateWithFlags", byref(executable), chain.graph, c_uint64(0))
        return executable

    def plain(self, total):
        """No condition at all."""
        chain = self.chain()
        chain.kernel("count", total)
        chain.kernel("count", total)
        return self.instantiated(chain)

    def loop(self, total):
        """A loop of two kernels, and one that decides."""
        chain, turns = self.chain(), self.counter()
        chain.kernel("count", total)
        condition = chain.condition()
        chain.kernel("set_condition", condition, 1)
        body = chain.conditional(WHILE, condition)
        body.kernel("count", total)
        body.kernel("count", total)
        body.kernel("again", condition, turns, LOOP)
        return self.instantiated(chain)

    def nested(self, total):
        """A loop with a branch that is taken, in which there is another loop."""
        chain, turns, inner_turns = self.chain(), self.counter(), self.counter()
        chain.kernel("count", total)
        outer = chain.condition()
        chain.kernel("set_condition", outer, 1)
        body = chain.conditional(WHILE, outer)
        body.kernel("count", total)
        branch = body.condition()
        body.kernel("set_condition", branch, 1)
        taken = body.conditional(IF, branch)
        taken.kernel("count", total)
        inner = taken.condition()
        taken.kernel("set_condition", inner, 1)
        inside = taken.conditional(WHILE, inner)
        inside.kernel("count", total)
        inside.kernel("again", inner, inner_turns, INNER)
        body.kernel("again", outer, turns, OUTER)
        return self.instantiated(chain)

    def untaken(self, total):
        """A branch that is not taken."""
        chain = self.chain()
        chain.kernel("count", total)
        condition = chain.condition()
        chain.kernel("set_condition", condition, 0)
        chain.conditional(IF, condition).kernel("count", total)
        return self.instantiated(chain)

    def only_loop(self, total):
        """A loop that is the whole graph: no node outside of a body runs on the device."""
        chain, turns = self.chain(), self.counter()
        condition = chain.condition(1, ASSIGN_DEFAULT)
        body = chain.conditional(WHILE, condition)
        body.kernel("count", total)
        body.kernel("again", condition, turns, LOOP)
        return self.instantiated(chain)


# `count` of one launch of each graph.
COUNTED = {"plain": 2, "loop": 1 + LOOP * 2, "nested": 1 + OUTER * (2 + INNER), "untaken": 1, "only_loop": LOOP}


# Kernels, and `count`, of one launch of two graphs, each with a kernel after it.
PAIRED = {
    "pair": (2 * KERNELS["loop"] + 2, 2 * COUNTED["loop"] + 2),
    "only_loops": (2 * KERNELS["only_loop"] + 2, 2 * COUNTED["only_loop"] + 2),
}


def main():
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    program = Program()
    driver, streams = program.driver, [program.driver.stream(), program.driver.stream()]
    failures, counted, graphs = {}, {}, {}
    for name in KERNELS:
        total = program.counter()
        try:
            graphs[name] = getattr(program, name)(total), total
        except CudaError as error:
            failures[name] = str(error)
    driver.synchronise()
    for name, (graph, total) in graphs.items():
        # Half of the launches are awaited one by one, and half follow each other.
        with region(name, driver.synchronise, launches * KERNELS[name]):
            for number in range(launches):
                driver.launch_graph(graph, streams[0])
                if number < launches // 2:
                    driver.wait_for(streams[0])
        counted[name] = driver.read(total)
    # Two loops at the same time, with a launch of a kernel after each of their launches; then such loops alone. Each is launched on both
    # streams in turns.
    for name, make in (("pair", program.loop), ("only_loops", program.only_loop)):
        # No two kernels count in one place at once.
        totals = [program.counter() for _ in range(4)]
        try:
            pair = [make(total) for total in totals[:2]]
            kernels = launches * PAIRED[name][0]
            with region(name, driver.synchronise, kernels):
                for number in range(launches):
                    for graph, stream, total in zip(pair, streams, totals[2:]):
                        driver.launch_graph(graph, stream)
                        driver.launch("count", total, stream)
                    if number % 2:
                        streams.reverse()
                        driver.synchronise()
            counted[name] = sum(driver.read(total) for total in totals)
        except CudaError as error:
            failures[name] = str(error)
    finish(
        failures=failures,
        launches=launches,
        counted=counted,
        expected={**{name: launches * count for name, count in COUNTED.items()},
                  **{name: launches * count for name, (_, count) in PAIRED.items()}},
    )


if __name__ == "__main__":
    main()
