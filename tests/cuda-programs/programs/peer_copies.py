"""Copies between two GPUs whose bytes are known, and what NVML says that the links carried meanwhile.

Arguments: the regions, each of copies of 1 GiB.

- `warm`: all of the others once, outside of what is measured.
- `there`, `back`: from the first GPU to the second; from the second to the first.
- `both`: both at once, on a stream of each.
- `local`: inside the first GPU.
"""

import re
import subprocess
import sys
import time

import torch
from region import finish, region

GIB = 1 << 30
COPIES = 120


def synchronise():
    for device in range(2):
        torch.cuda.synchronize(device)


def smi(*words):
    try:
        return subprocess.run(["nvidia-smi", *words], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def links(device):
    """How many are active, by their speed."""
    return len(re.findall(r"Link \d+: [\d.]+ GB/s", smi("nvlink", "-s", "-i", str(device))))


def carried(kind):
    """Bytes that all links of each GPU have carried: `d`, of data; `r`, of all. None where nvidia-smi does not say."""
    found = []
    for device in range(2):
        said = smi("nvlink", "-gt", kind, "-i", str(device))
        sums = {}
        for way, kib in re.findall(r"(Tx|Rx)\w*: (\d+) KiB", said):
            sums[way.lower()] = sums.get(way.lower(), 0) + int(kib) * 1024
        if set(sums) != {"tx", "rx"}:
            return None
        found.append(sums)
    return found


def between(before, after):
    if before is None or after is None:
        return None
    return [{way: new[way] - old[way] for way in new} for old, new in zip(before, after)]


def main(names):
    buffers = [[torch.ones(GIB // 4, device=f"cuda:{device}") for _ in range(2)] for device in range(2)]
    (here, here_too), (beyond, beyond_too) = buffers

    def there():
        for _ in range(COPIES):
            beyond.copy_(here, non_blocking=True)

    def back():
        for _ in range(COPIES):
            here.copy_(beyond, non_blocking=True)

    def both():
        # Other buffers: a copy waits for nothing of the other way.
        streams = [torch.cuda.Stream(device) for device in range(2)]
        for _ in range(COPIES):
            with torch.cuda.device(0), torch.cuda.stream(streams[0]):
                beyond.copy_(here, non_blocking=True)
            with torch.cuda.device(1), torch.cuda.stream(streams[1]):
                here_too.copy_(beyond_too, non_blocking=True)

    def local():
        for _ in range(COPIES):
            here_too.copy_(here)

    works = {"there": there, "back": back, "both": both, "local": local}
    if "warm" in names:
        for work in works.values():
            work()
        synchronise()
    # The samplers start when the GPUs are first used, one after the other, and need up to a second each.
    time.sleep(3)
    nvml, all_bytes = {}, COPIES * GIB
    sent = {"there": [all_bytes, 0], "back": [0, all_bytes], "both": [all_bytes, all_bytes], "local": [0, 0]}
    names = [name for name in names if name in works]
    for name in names:
        before = {"data": carried("d"), "raw": carried("r")}
        with region(name, synchronise):
            works[name]()
        nvml[name] = {kind: between(old, carried(kind[0])) for kind, old in before.items()}
        time.sleep(0.1)
    finish(
        sent={name: sent[name] for name in names},
        nvml=nvml,
        uuids=[str(torch.cuda.get_device_properties(device).uuid).removeprefix("GPU-").replace("-", "") for device in range(2)],
        links=[links(device) for device in range(2)],
        peer_access=torch.cuda.can_device_access_peer(0, 1),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
