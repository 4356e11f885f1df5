"""Kernels whose hot lines are known: two loops of the same multiplications, of which one takes three times as many steps.

The lines are those of `.loc` in the PTX, which the driver compiles with lines; `plain` is compiled without.
Argument: launches of each.
"""

import sys
import time
from ctypes import byref, c_char_p, c_int, c_uint, c_void_p

from driver import Driver
from region import finish

LONG_STEPS, SHORT_STEPS = 30_000, 10_000
LONG_LINE, SHORT_LINE = 21, 31
# While the branch of a loop resolves, the next instruction is the one behind the loop.
BEHIND_LONG_LINE, BEHIND_SHORT_LINE = 30, 40
FILE = "/planted/hot_line.cu"
# CU_JIT_GENERATE_LINE_INFO
LINES = 13

PTX = """
.version 7.0
.target sm_75
.address_size 64
.file 1 "{file}"

.visible .entry {name}(.param .u64 result)
{{
    .reg .u64 %p, %n;
    .reg .f32 %x;
    .reg .pred %q;
    .loc 1 10 1
    ld.param.u64 %p, [result];
    cvta.to.global.u64 %p, %p;
    mov.f32 %x, 0f3F800000;
    mov.u64 %n, {long};
long_loop:
    .pragma "nounroll";
    .loc 1 {long_line} 1
    fma.rn.f32 %x, %x, %x, 0f3F000000;
    min.f32 %x, %x, 0f3F800000;
    sub.u64 %n, %n, 1;
    setp.ne.u64 %q, %n, 0;
    @%q bra long_loop;
    .loc 1 {behind_long} 1
    mov.u64 %n, {short};
short_loop:
    .pragma "nounroll";
    .loc 1 {short_line} 1
    fma.rn.f32 %x, %x, %x, 0f3F000000;
    min.f32 %x, %x, 0f3F800000;
    sub.u64 %n, %n, 1;
    setp.ne.u64 %q, %n, 0;
    @%q bra short_loop;
    .loc 1 {behind_short} 1
    st.global.f32 [%p], %x;
    ret;
}}
"""


def load(driver, name, lines):
    """A kernel of this name, compiled with lines or without."""
    places = {"long_line": LONG_LINE, "short_line": SHORT_LINE, "behind_long": BEHIND_LONG_LINE, "behind_short": BEHIND_SHORT_LINE}
    text = PTX.format(file=FILE, name=name, long=LONG_STEPS, short=SHORT_STEPS, **places)
    if not lines:
        text = "\n".join(line for line in text.splitlines() if not line.strip().startswith((".loc", ".file")))
        return driver.load(text.encode(), name)
    module, kernel = c_void_p(), c_void_p()
    options, values = (c_int * 1)(LINES), (c_void_p * 1)(1)
    driver.call("cuModuleLoadDataEx", byref(module), c_char_p(text.encode()), c_uint(1), options, values)
    driver.call("cuModuleGetFunction", byref(kernel), module, c_char_p(name.encode()))
    driver._kernels[name] = kernel
    return None


def main(launches):
    driver = Driver()
    result = driver.allocate(4)
    driver.clear(result)
    load(driver, "with_lines", True)
    load(driver, "plain", False)
    begin = time.monotonic()
    for _ in range(launches):
        driver.launch("with_lines", result, blocks=driver.multiprocessors(), threads=128)
        driver.launch("plain", result, blocks=driver.multiprocessors(), threads=128)
    driver.synchronise()
    seconds = time.monotonic() - begin
    finish(
        file=FILE,
        long_line=LONG_LINE,
        short_line=SHORT_LINE,
        behind=[BEHIND_LONG_LINE, BEHIND_SHORT_LINE],
        long_share=LONG_STEPS / (LONG_STEPS + SHORT_STEPS),
        launches=launches,
        multiprocessors=driver.multiprocessors(),
        result=driver.read(result),
        seconds=seconds,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
