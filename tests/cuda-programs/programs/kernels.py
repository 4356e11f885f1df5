"""Six kernels that compute, one of which can be made slower: the number of its steps is what it is given.

Arguments: how much longer `softmax` takes (1.02), and evaluations.
"""

import json
import sys

from driver import Driver

# One thread does so many dependent multiplications: its time is theirs, whatever else the device does.
PTX = """
.version 7.0
.target sm_75
.address_size 64

.visible .entry {name}(.param .u64 steps)
{{
    .reg .u64 %n;
    .reg .f32 %x;
    .reg .pred %p;
    ld.param.u64 %n, [steps];
    mov.f32 %x, 0f3F800000;
again:
    fma.rn.f32 %x, %x, %x, 0f3F000000;
    sub.u64 %n, %n, 1;
    setp.ne.u64 %p, %n, 0;
    @%p bra again;
    // What nobody reads is not computed.
    setp.eq.f32 %p, %x, 0f00000000;
    @%p trap;
    ret;
}}
"""

# Steps of each kernel: from some microseconds to some tens of them.
STEPS = {"matmul": 2000, "softmax": 900, "rms_norm": 500, "rope": 300, "gelu": 700, "embed": 1200}


def main():
    factor, evaluations = float(sys.argv[1]), int(sys.argv[2])
    driver = Driver()
    steps = dict(STEPS, softmax=round(STEPS["softmax"] * factor))
    for name in steps:
        driver.load(PTX.format(name=name).encode(), name)
    for _ in range(evaluations):
        for name, count in steps.items():
            driver.launch(name, count, blocks=32, threads=32)
        driver.synchronise()
    print(json.dumps({"kernels": evaluations * len(steps), "steps": steps}))


main()
