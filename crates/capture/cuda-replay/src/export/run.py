#!/usr/bin/env python3
"""Runs the launches of a capture again, by the functions of CUDA's driver alone, and says whether they compute the same
as in the captured program. Python 3.8 or later is needed, and no package.

Run: python3 run.py [GPU]

The program reads index.txt, which README.md describes, and data.bin from the folder in which it lies.
Exit status: 0 if all is the same, 1 if outputs differ, 2 if the launches cannot run.
"""
import ctypes
import mmap
import os
import sys
import time
from array import array
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

PIECE = 64 << 10  # Memory is compared in pieces of this size.
BLOCK = 16 << 20  # Memory is copied to the host in blocks of this size.
STEP = 32 << 20  # The driver gives the address that it is asked for at this step.
SECONDS = 60  # The longest time that a launch may take.
ATTEMPT = "GAPSCOPE_EXPORT_ATTEMPT"
MAX_ATTEMPTS = 8
FOLDER = os.path.dirname(os.path.abspath(__file__))


def cannot_run(sentence):
    sys.stdout.flush()
    print(sentence, file=sys.stderr, flush=True)
    # An orderly end would wait for a kernel that does not end.
    os._exit(2)


# ---- Addresses of this process ---------------------------------------------------------------------------------------

ADDR_NO_RANDOMIZE = 0x0040000
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = c_void_p
LIBC.mmap.argtypes = [c_void_p, c_size_t, c_int, c_int, c_int, ctypes.c_long]
LIBC.munmap.argtypes = [c_void_p, c_size_t]
LIBC.personality.argtypes = [ctypes.c_ulong]


def has_fixed_addresses():
    now = LIBC.personality(0xFFFFFFFF)
    return now >= 0 and now & ADDR_NO_RANDOMIZE != 0


def again(attempt):
    """Starts this program again."""
    os.environ[ATTEMPT] = str(attempt)
    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__)] + sys.argv[1:])


def fix_addresses():
    """Starts this program again without randomised addresses, so that the addresses of the capture are free."""
    if ATTEMPT in os.environ or has_fixed_addresses():
        return
    LIBC.personality(LIBC.personality(0xFFFFFFFF) | ADDR_NO_RANDOMIZE)
    if has_fixed_addresses():
        again(1)


def address_is_taken(address, size, why):
    """Where the system does not let a process switch randomisation off, as in some containers, another attempt finds
    other addresses."""
    attempt = int(os.environ.get(ATTEMPT, 0))
    if attempt < MAX_ATTEMPTS and not has_fixed_addresses():
        again(attempt + 1)
    cannot_run(f"The memory at {address:#x} ({size} bytes) cannot be at its address in this process: {why}.")


# ---- CUDA's driver ---------------------------------------------------------------------------------------------------


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class Properties(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("windows", c_void_p), ("flags", c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", c_int)]


class Config(ctypes.Structure):
    _fields_ = [("grid", c_uint * 3), ("block", c_uint * 3), ("shared", c_uint), ("stream", c_void_p),
                ("attributes", c_void_p), ("count", c_uint)]


class Driver:
    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            cannot_run(f"CUDA's driver cannot be loaded: {error}.")

    def function(self, name):
        try:
            return getattr(self.library, name)
        except AttributeError:
            return cannot_run(f"CUDA's driver has no {name}: CUDA 12 or later is needed.")

    def error_name(self, code):
        text = ctypes.c_char_p()
        self.library.cuGetErrorName(code, byref(text))
        return text.value.decode() if text.value else f"error {code}"

    def call(self, what, name, *arguments):
        code = self.function(name)(*arguments)
        if code:
            cannot_run(f"{name} failed with {self.error_name(code)} for {what}.")


# ---- The plain hash of BLAKE3 ----------------------------------------------------------------------------------------
# The chunks of a piece are hashed at the same time: an integer has a lane of 64 bits for each, with a word of 32 bits in
# it. What an addition or a shift moves beyond the word is masked off.

START = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
MIXES = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13),
         (3, 4, 9, 14)]
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8


def to_lanes(words):
    return int.from_bytes(array("Q", words).tobytes(), "little")


def to_words(lanes, count):
    return array("Q", lanes.to_bytes(8 * count, "little"))


def compress(value, message, counters, size, flags, ones):
    mask = ones * 0xFFFFFFFF
    state = value + [word * ones for word in START[:4]] + [counters, 0, size * ones, flags * ones]
    for _ in range(7):
        for index, (a, b, c, d) in enumerate(MIXES):
            va, vb, vc, vd = state[a], state[b], state[c], state[d]
            for word, left, right in ((message[2 * index], 16, 12), (message[2 * index + 1], 8, 7)):
                va = (va + vb + word) & mask
                vd ^= va
                vd = (vd >> left | vd << (32 - left)) & mask
                vc = (vc + vd) & mask
                vb ^= vc
                vb = (vb >> right | vb << (32 - right)) & mask
            state[a], state[b], state[c], state[d] = va, vb, vc, vd
        message = [message[index] for index in ORDER]
    return [state[index] ^ state[index + 8] for index in range(8)]


def blake3(data):
    """Returns the first 16 bytes of the hash, as hexadecimal digits."""
    full, rest = divmod(len(data), 1024)
    padded = bytes(data) + bytes(-len(data) % 64 or (0 if data else 64))
    words = memoryview(padded).cast("I")
    groups = [(0, full, 1024)] if full else []
    if rest or not full:
        groups.append((full, 1, rest))
    total = sum(count for _, count, _ in groups)
    columns = [array("Q") for _ in range(8)]
    for first, count, size in groups:
        ones = to_lanes([1] * count)
        counters = to_lanes(range(first, first + count))
        value = [word * ones for word in START]
        blocks = (size + 63) // 64 or 1
        for block in range(blocks):
            begin = first * 256 + block * 16
            end = first * 256 + count * 256 if size == 1024 else begin + 16
            message = [to_lanes(words[begin + word:end:256]) for word in range(16)]
            flags = (CHUNK_START if block == 0 else 0) | (CHUNK_END if block + 1 == blocks else 0)
            if total == 1 and block + 1 == blocks:
                flags |= ROOT
            value = compress(value, message, counters, min(64, size - block * 64), flags, ones)
        for column, lanes in zip(columns, value):
            column.extend(to_words(lanes, count))
    while total > 1:
        pairs = total // 2
        ones = to_lanes([1] * pairs)
        message = [to_lanes(column[side:2 * pairs:2]) for side in (0, 1) for column in columns]
        flags = PARENT | (ROOT if total == 2 else 0)
        value = compress([word * ones for word in START], message, 0, 64, flags, ones)
        columns = [to_words(lanes, pairs) + column[2 * pairs:] for lanes, column in zip(value, columns)]
        total -= pairs
    return b"".join(column[0].to_bytes(4, "little") for column in columns[:4]).hex()


# ---- The index -------------------------------------------------------------------------------------------------------


def decoded(name):
    """Returns a name of the index, in which %XX stands for a byte."""
    first, *rest = name.encode().split(b"%")
    return first + b"".join(bytes.fromhex(part[:2].decode()) + part[2:] for part in rest)


class Memory:
    def __init__(self, recorded, size, is_host=False, module=None, name=None):
        self.recorded, self.size, self.address, self.is_host = recorded, size, recorded, is_host
        self.module, self.name = module, name
        # The bytes that each piece must have now; pieces that are not here are zeros.
        self.pieces = {}


class Launch:
    def __init__(self, fields, contents):
        numbers = [int(field) for field in fields[:8]]
        self.module, self.grid, self.block, self.shared = numbers[0], numbers[1:4], numbers[4:7], numbers[7]
        self.parameters = bytes.fromhex(fields[8].replace("-", ""))
        self.shown = (fields + [""])[9]
        self.contents = contents
        self.relocations, self.settings, self.attributes, self.reached, self.expected = [], [], [], [], {}


class Index:
    def __init__(self):
        self.reserved, self.mapped, self.host, self.modules = [], [], [], []
        self.memories, self.launches, self.contents = {}, [], []
        self.is_whole = False
        number = 0
        try:
            with open(os.path.join(FOLDER, "index.txt"), encoding="ascii") as lines:
                for number, line in enumerate(lines, 1):
                    kind, *fields = line.split()
                    self.add(kind, fields)
        except OSError as error:
            cannot_run(f"index.txt cannot be read: {error}.")
        except (ValueError, IndexError, KeyError, TypeError):
            cannot_run(f"Line {number} of index.txt cannot be read.")
        if not self.is_whole:
            cannot_run("index.txt is cut off.")

    def add(self, kind, fields):
        if kind == "device":
            self.capability, self.captured_on = (int(fields[0]), int(fields[1])), fields[2]
        elif kind in ("reserve", "map", "host"):
            spans = {"reserve": self.reserved, "map": self.mapped, "host": self.host}[kind]
            spans.append((int(fields[0]), int(fields[1])))
        elif kind == "module":
            self.modules.append(fields[0])
        elif kind == "memory":
            self.memories[int(fields[0])] = Memory(int(fields[1]), int(fields[2]), fields[3] == "host")
        elif kind == "global":
            number, module, recorded, size = map(int, fields[:4])
            self.memories[number] = Memory(recorded, size, module=module, name=(fields + [""])[4])
        elif kind == "content":
            memory, offset, size, at = map(int, fields)
            self.contents.append((memory, offset, size, at))
        elif kind == "launch":
            self.launches.append(Launch(fields, self.contents))
            self.contents = []
        elif kind == "end":
            self.is_whole = int(fields[0]) == len(self.launches)
        elif kind in ("relocation", "setting"):
            pairs = {"relocation": self.launches[-1].relocations, "setting": self.launches[-1].settings}[kind]
            pairs.append((int(fields[0]), int(fields[1])))
        elif kind == "attribute":
            self.launches[-1].attributes.append((int(fields[0]), bytes.fromhex(fields[1])))
        elif kind == "reach":
            self.launches[-1].reached.append(int(fields[0]))
        elif kind == "expect":
            memory, offset, size, digest, at = fields
            expected = (int(offset), int(size), digest, None if at == "-" else int(at))
            self.launches[-1].expected.setdefault(int(memory), []).append(expected)
        else:
            raise ValueError(kind)


# ---- Memory and launches ---------------------------------------------------------------------------------------------


class Run:
    def __init__(self, index, number):
        self.index = index
        self.driver = Driver()
        call = self.driver.call
        device, name, context = c_int(), ctypes.create_string_buffer(256), c_void_p()
        call("the start", "cuInit", c_uint(0))
        call(f"GPU {number}", "cuDeviceGet", byref(device), c_int(number))
        call("the GPU", "cuDeviceGetName", name, c_int(256), device)
        here = []
        for attribute in (75, 76):
            value = c_int()
            call("the GPU", "cuDeviceGetAttribute", byref(value), c_int(attribute), device)
            here.append(value.value)
        name = name.value.decode(errors="replace")
        if tuple(here) != index.capability:
            cannot_run("Nothing was run: the code is for compute capability {}.{} ({}), and {} has {}.{}.".format(
                *index.capability, index.captured_on, name, *here))
        call("the GPU", "cuDevicePrimaryCtxRetain", byref(context), device)
        call("the GPU", "cuCtxSetCurrent", context)
        print(f"Running {len(index.launches)} launches on {name}.")
        self.device = device.value
        self.buffer = ctypes.create_string_buffer(BLOCK)
        self.view = memoryview(self.buffer).cast("B")
        self.make_memory()
        self.map_data()
        self.load_modules()

    def make_memory(self):
        moved = [span for span in self.index.host if not self.map_host(*span)]
        for span in self.index.reserved:
            self.reserve(*span)
        for span in self.index.mapped:
            self.map_on_device(*span)
        # Where an address of the host is taken, a kernel finds the same bytes at the same address in the GPU's memory.
        for address, size in moved:
            start = address // STEP * STEP
            end = -(-(address + size) // STEP) * STEP
            self.reserve(start, end - start)
            self.map_on_device(start, end - start)
            for memory in self.index.memories.values():
                if address <= memory.address < address + size:
                    memory.is_host = False

    def map_host(self, address, size):
        """Maps pages of the host at their address, and lets the GPU use them."""
        read_and_write, private_anonymous, no_replace = 3, 0x22, 0x100000
        given = LIBC.mmap(address, size, read_and_write, private_anonymous | no_replace, -1, 0)
        if given in (None, c_void_p(-1).value):
            return False
        register = self.driver.function("cuMemHostRegister_v2")
        if given == address and register(c_void_p(address), c_size_t(size), c_uint(2)) == 0:
            return True
        LIBC.munmap(given, size)
        return False

    def reserve(self, address, size):
        given = c_uint64()
        code = self.driver.function("cuMemAddressReserve")(byref(given), c_size_t(size), c_size_t(0), c_uint64(address),
                                                           c_uint64(0))
        if code:
            address_is_taken(address, size, self.driver.error_name(code))
        if given.value != address:
            address_is_taken(address, size, "the driver gave another one")

    def map_on_device(self, address, size):
        what = f"{size} bytes at {address:#x}"
        call = self.driver.call
        handle, location = c_uint64(), Location(1, self.device)
        properties = Properties(type=1, location=location)
        access = Access(location, 3)
        call(what, "cuMemCreate", byref(handle), c_size_t(size), byref(properties), c_uint64(0))
        call(what, "cuMemMap", c_uint64(address), c_size_t(size), c_size_t(0), handle, c_uint64(0))
        call(what, "cuMemSetAccess", c_uint64(address), c_size_t(size), byref(access), c_size_t(1))
        call(what, "cuMemsetD8_v2", c_uint64(address), c_ubyte(0), c_size_t(size))

    def map_data(self):
        ends = [0]
        for launch in self.index.launches:
            ends.extend(at + size for _, _, size, at in launch.contents)
            ends.extend(at + size for all_ in launch.expected.values() for _, size, _, at in all_ if at is not None)
        path = os.path.join(FOLDER, "data.bin")
        try:
            if os.path.getsize(path) < max(ends):
                cannot_run("data.bin is cut off.")
            with open(path, "rb") as file:
                # Private pages have an address that ctypes takes; they are read when they are needed.
                is_empty = os.path.getsize(path) == 0
                data = bytearray(1) if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except OSError as error:
            cannot_run(f"data.bin cannot be read: {error}.")
        self.data = memoryview(data)
        self.data_address = ctypes.addressof(ctypes.c_char.from_buffer(data))

    def load_modules(self):
        self.modules = []
        for name in self.index.modules:
            try:
                with open(os.path.join(FOLDER, name), "rb") as file:
                    code = file.read()
            except OSError as error:
                cannot_run(f"{name} cannot be read: {error}.")
            module = c_void_p()
            self.driver.call(name, "cuModuleLoadData", byref(module), code)
            self.modules.append(module)
        for memory in self.index.memories.values():
            if memory.name is None:
                continue
            address, size = c_uint64(), c_size_t()
            what = f"variable {memory.name}"
            self.driver.call(what, "cuModuleGetGlobal_v2", byref(address), byref(size), self.modules[memory.module],
                             decoded(memory.name))
            if size.value < memory.size:
                cannot_run(f"{what} is smaller than in the capture.")
            memory.address = address.value
            for at in range(0, memory.size, BLOCK):
                some = min(BLOCK, memory.size - at)
                self.download(memory, at, some)
                know(memory, at, self.view[:some], False)

    def download(self, memory, offset, size):
        at = memory.address + offset
        if memory.is_host:
            ctypes.memmove(self.buffer, at, size)
        else:
            self.driver.call(f"{size} bytes at {at:#x}", "cuMemcpyDtoH_v2", self.buffer, c_uint64(at), c_size_t(size))

    def upload(self, memory, offset, size, at):
        to, source = memory.address + offset, self.data_address + at
        if memory.is_host:
            ctypes.memmove(to, source, size)
        else:
            self.driver.call(f"{size} bytes at {to:#x}", "cuMemcpyHtoD_v2", c_uint64(to), c_void_p(source), c_size_t(size))
        know(memory, offset, self.data[at:at + size], True)

    def start(self, launch):
        what = f"kernel {launch.shown}"
        call = self.driver.call
        function = c_void_p()
        call(what, "cuModuleGetFunction", byref(function), self.modules[launch.module], decoded(launch.shown))
        for number, value in launch.settings:
            call(what, "cuFuncSetAttribute", function, c_int(number), c_int(value))
        parameters = bytearray(launch.parameters)
        size = len(parameters)
        for at, number in launch.relocations:
            memory = self.index.memories[number]
            word = int.from_bytes(parameters[at:at + 8], "little") - memory.recorded + memory.address
            parameters[at:at + 8] = (word & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
        # The parameters are words, so that each is aligned.
        words = (c_uint64 * (size // 8 + 1))()
        ctypes.memmove(words, bytes(parameters), size)
        base = ctypes.addressof(words)
        places = self.places(function, size)
        single = packed = None
        if places is None:
            count = c_size_t(size)
            packed = (c_void_p * 5)(1, base, 2, ctypes.addressof(count), None)
        else:
            single = (c_void_p * (len(places) + 1))(*[base + place for place in places], None)
        raw = b"".join(number.to_bytes(8, "little") + value for number, value in launch.attributes)
        attributes = (c_uint64 * (len(raw) // 8 + 1))()
        ctypes.memmove(attributes, raw, len(raw))
        config = Config((c_uint * 3)(*launch.grid), (c_uint * 3)(*launch.block), launch.shared, None,
                        ctypes.addressof(attributes) if raw else None, len(launch.attributes))
        call(what, "cuLaunchKernelEx", byref(config), function, single, packed)

    def places(self, function, size):
        """Returns the offsets of the parameters; None where the driver cannot tell them."""
        # Drivers have this function from CUDA 12.4 on.
        ask = getattr(self.driver.library, "cuFuncGetParamInfo", None)
        places = []
        offset, bytes_ = c_size_t(), c_size_t()
        while ask and ask(function, c_size_t(len(places)), byref(offset), byref(bytes_)) == 0:
            if offset.value + bytes_.value > size:
                return None
            places.append(offset.value)
        return places if ask and (places or size == 0) else None

    def wait(self, launch, number):
        """Waits for the GPU, with a limit."""
        not_ready = 600
        query = self.driver.function("cuStreamQuery")
        since = time.monotonic()
        while True:
            code = query(None)
            if code == 0:
                return
            if code != not_ready:
                cannot_run(f"Launch {number} ({launch.shown}) failed with {self.driver.error_name(code)}.")
            passed = time.monotonic() - since
            if passed > SECONDS:
                cannot_run(f"Launch {number} ({launch.shown}) did not end within {SECONDS} s.")
            if passed > 0.001:
                time.sleep(0.0001)

    def compare(self, launch):
        """Compares all memory that a launch reaches: what it changed in the program with the captured bytes or hashes,
        and all other memory with the bytes that it had before. Returns the number of pieces, of those that changed, and
        the places of those that differ."""
        pieces, changed, different = 0, 0, []
        for number in launch.reached:
            memory = self.index.memories[number]
            expected = iter(launch.expected.get(number, []))
            following = next(expected, None)
            for at in range(0, memory.size, PIECE):
                if at % BLOCK == 0:
                    self.download(memory, at, min(BLOCK, memory.size - at))
                size = min(PIECE, memory.size - at)
                here = self.view[at % BLOCK:at % BLOCK + size]
                is_same = True
                while following is not None and following[0] < at + PIECE:
                    offset, count, digest, kept = following
                    found = bytes(here[offset - at:offset - at + count])
                    if kept is None:
                        equal = blake3(found) == digest
                    else:
                        equal = found == bytes(self.data[kept:kept + count])
                    if equal:
                        know(memory, offset, found, True)
                    is_same = is_same and equal
                    changed += 1
                    following = next(expected, None)
                pieces += 1
                if not is_same or bytes(here) != bytes(memory.pieces.get(at // PIECE, bytes(size))):
                    different.append((number, at))
                    know(memory, at, here, False)
        return pieces, changed, different


def know(memory, offset, source, stays):
    """Says which bytes memory must have from now on. Bytes that stay are not copied."""
    end, done = offset + len(source), 0
    while offset < end:
        piece, inside = divmod(offset, PIECE)
        size = min(PIECE, memory.size - piece * PIECE)
        some = min(end, (piece + 1) * PIECE) - offset
        part = source[done:done + some]
        if some == size:
            memory.pieces[piece] = part if stays else bytes(part)
        else:
            own = bytearray(memory.pieces.get(piece, bytes(size)))
            own[inside:inside + some] = part
            memory.pieces[piece] = own
        offset += some
        done += some


def main():
    fix_addresses()
    index = Index()
    run = Run(index, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    pieces = changed = differing = 0
    for number, launch in enumerate(index.launches):
        for memory, offset, size, at in launch.contents:
            run.upload(index.memories[memory], offset, size, at)
        run.driver.call("a copy", "cuCtxSynchronize")
        run.start(launch)
        run.wait(launch, number)
        some, some_changed, different = run.compare(launch)
        pieces += some
        changed += some_changed
        if different:
            differing += 1
            memory, at = different[0]
            print(f"Launch {number} ({launch.shown}) differs: {len(different)} of {some} pieces of memory, the first at "
                  f"byte {at} of memory {memory}.")
    count = len(index.launches)
    if differing:
        print(f"{differing} of {count} launches computed something else than when they were captured.")
        return 1
    print(f"All {count} launches computed the same as when they were captured, bit for bit: {pieces} pieces of memory were\n"
          f"compared, {changed} of which a launch changed.")
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # The end of the process is not left to the order in which Python drops what the driver uses.
    os._exit(status)
