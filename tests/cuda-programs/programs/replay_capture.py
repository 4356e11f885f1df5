"""Runs a capture of CUDA again by the driver's functions alone, and says of each launch whether it computed the same.

This is an implementation of its own, which shares no code with gapscope: it reads capture.jsonl and content.bin as the
page of the format describes them. It prints one JSON line for each launch, and one for the whole.
"""
import ctypes
import json
import os
import sys

import blake3
import pyarrow

PIECE = 65536
MIB = 1 << 20


def cuda():
    return ctypes.CDLL("libcuda.so.1")


class Failed(Exception):
    pass


class Driver:
    def __init__(self):
        self.library = cuda()

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            code = function(*arguments)
            if code:
                text = ctypes.c_char_p()
                self.library.cuGetErrorName(code, ctypes.byref(text))
                raise Failed(f"{name}: {text.value.decode() if text.value else code}")

        return call


class Config(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_uint * 6), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Capture:
    def __init__(self, folder):
        with open(os.path.join(folder, "capture.jsonl")) as lines:
            self.records = [json.loads(line) for line in lines]
        self.content = open(os.path.join(folder, "content.bin"), "rb")
        self.chunks = {r["chunk"]["hash"]: r["chunk"] for r in self.records if "chunk" in r}

    def piece(self, digest):
        chunk = self.chunks[digest]
        self.content.seek(chunk["at"])
        frame = self.content.read(chunk["stored"])
        return pyarrow.decompress(frame, decompressed_size=chunk["bytes"], codec="zstd", asbytes=True)


def merged(spans, grain):
    out = []
    for start, end in sorted((s // grain * grain, (e + grain - 1) // grain * grain) for s, e in spans):
        if out and out[-1][1] >= start:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def main(folder, hasher):
    capture = Capture(folder)
    driver = Driver()
    driver.cuInit(0)
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    memories = {r["cuda_memory"]["id"]: r["cuda_memory"] for r in capture.records if "cuda_memory" in r}
    device = [m for m in memories.values() if m["place"] == "device"]
    spans = [(m["address"], m["address"] + m["bytes"]) for m in device]
    for start, end in merged(spans, 32 * MIB):
        got = ctypes.c_uint64()
        driver.cuMemAddressReserve(ctypes.byref(got), ctypes.c_size_t(end - start), ctypes.c_size_t(0),
                                   ctypes.c_uint64(start), ctypes.c_ulonglong(0))
        if got.value != start:
            raise Failed(f"asked for {start:#x}, got {got.value:#x}")
    for start, end in merged(spans, 2 * MIB):
        handle = ctypes.c_uint64()
        properties = Properties(type=1, location=Location(1, 0))
        size = ctypes.c_size_t(end - start)
        driver.cuMemCreate(ctypes.byref(handle), size, ctypes.byref(properties), ctypes.c_ulonglong(0))
        driver.cuMemMap(ctypes.c_uint64(start), size, ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0))
        access = Access(Location(1, 0), 3)
        driver.cuMemSetAccess(ctypes.c_uint64(start), size, ctypes.byref(access), ctypes.c_size_t(1))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    host = [m for m in memories.values() if m["place"] == "host"]
    for start, end in merged([(m["address"], m["address"] + m["bytes"]) for m in host], 4096):
        got = libc.mmap(start, end - start, 3, 0x22 | 0x100000, -1, 0)
        if got != start:
            raise Failed(f"host memory at {start:#x} is taken")
        driver.cuMemHostRegister_v2(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 2)
    modules, state, address = {}, {}, {m["id"]: m["address"] for m in memories.values()}
    tally = {"launches": 0, "equal": 0, "kernels": {}}
    pending = None

    def upload(memory, offset, data):
        driver.cuMemcpyHtoD_v2(ctypes.c_uint64(address[memory] + offset), data, ctypes.c_size_t(len(data)))

    def finish():
        nonlocal pending
        if pending is None:
            return
        launch, outcomes = pending
        pending = None
        expected = {}
        for outcome in outcomes:
            for at, digest in enumerate(outcome["hashes"]):
                expected[outcome["memory"], outcome["offset"] // PIECE + at] = digest
        different = []
        for identity in launch["reached"]:
            memory = memories[identity]
            buffer = ctypes.create_string_buffer(memory["bytes"])
            driver.cuMemcpyDtoH_v2(buffer, ctypes.c_uint64(address[identity]), ctypes.c_size_t(memory["bytes"]))
            raw = memoryview(buffer).cast("B")
            for at in range(0, memory["bytes"], PIECE):
                digest = hasher(raw[at:at + PIECE])
                want = expected.get((identity, at // PIECE), state.get((identity, at // PIECE)))
                if digest != want:
                    different.append((identity, at))
                state[identity, at // PIECE] = want
        known = tally["kernels"].setdefault(launch["kernel"], [0, 0])
        known[1] += 1
        tally["launches"] += 1
        if not different:
            tally["equal"] += 1
            known[0] += 1
        else:
            print(json.dumps({"kernel": launch["kernel"][:100], "grid": launch["grid"], "different": len(different),
                              "first": different[0]}), flush=True)

    for record in capture.records:
        (kind, value), = record.items()
        if kind == "cuda_module":
            handle = ctypes.c_void_p()
            code = b"".join(capture.piece(digest) for digest in value["code"])
            driver.cuModuleLoadData(ctypes.byref(handle), code)
            modules[value["id"]] = handle
        elif kind == "cuda_memory" and isinstance(value["place"], dict):
            found, size = ctypes.c_uint64(), ctypes.c_size_t()
            of = value["place"]["global"]
            driver.cuModuleGetGlobal_v2(ctypes.byref(found), ctypes.byref(size), modules[of["module"]],
                                        of["name"].encode())
            address[value["id"]] = found.value
        elif kind == "content":
            finish()
            at = value["offset"]
            for digest in value["chunks"]:
                data = capture.piece(digest)
                upload(value["memory"], at, data)
                state[value["memory"], at // PIECE] = digest
                at += len(data)
        elif kind == "outcome":
            pending[1].append(value)
        elif kind == "launch":
            finish()
            function = ctypes.c_void_p()
            driver.cuModuleGetFunction(ctypes.byref(function), modules[value["module"]], value["kernel"].encode())
            attributes = value.get("function", {})
            shared = max(attributes.get("max_dynamic_shared_bytes", 0), value.get("shared_bytes", 0))
            if shared > 48 * 1024:
                driver.cuFuncSetAttribute(function, 8, shared)
            if attributes.get("shared_carveout", -1) >= 0:
                driver.library.cuFuncSetAttribute(function, 9, attributes["shared_carveout"])
            if attributes.get("non_portable_cluster"):
                driver.library.cuFuncSetAttribute(function, 14, 1)
            blob = bytearray.fromhex(value["parameters"])
            for relocation in value.get("relocations", []):
                at, memory = relocation["at"], relocation["memory"]
                word = int.from_bytes(blob[at:at + 8], "little") - memories[memory]["address"] + address[memory]
                blob[at:at + 8] = word.to_bytes(8, "little")
            parameters = (ctypes.c_ubyte * max(len(blob), 1)).from_buffer(blob if blob else bytearray(1))
            places = []
            while True:
                offset, size = ctypes.c_size_t(), ctypes.c_size_t()
                if driver.library.cuFuncGetParamInfo(function, ctypes.c_size_t(len(places)), ctypes.byref(offset),
                                                     ctypes.byref(size)):
                    break
                places.append(ctypes.addressof(parameters) + offset.value)
            pointers = (ctypes.c_void_p * max(len(places), 1))(*places)
            raw = b"".join(a["id"].to_bytes(8, "little") + bytes.fromhex(a["value"])
                           for a in value.get("attributes", []))
            held = ctypes.create_string_buffer(raw, max(len(raw), 1))
            config = Config((ctypes.c_uint * 6)(*value["grid"], *value["block"]), value.get("shared_bytes", 0), None,
                            ctypes.cast(held, ctypes.c_void_p) if raw else None, len(value.get("attributes", [])))
            driver.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None)
            driver.cuCtxSynchronize()
            pending = (value, [])
        elif kind == "end":
            finish()
            tally["end"] = value["reason"]
    finish()
    tally["names"] = len(tally["kernels"])
    tally["names_equal"] = sum(1 for equal, all_ in tally["kernels"].values() if equal == all_)
    del tally["kernels"]
    print(json.dumps(tally), flush=True)
    return tally["launches"] != tally["equal"]


def digest(data):
    """The hash by which captures name content."""
    return blake3.blake3(data).hexdigest()[:32]


if __name__ == "__main__":
    libc = ctypes.CDLL(None)
    if libc.personality(0xFFFFFFFF) & 0x0040000 == 0:
        libc.personality(0x0040000)
        os.execv(sys.executable, [sys.executable] + sys.argv)
    sys.exit(main(sys.argv[1], digest))
