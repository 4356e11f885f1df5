// Runs the launches of a capture again, by the functions of CUDA's driver alone, and says whether they compute the same
// as in the captured program.
//
// Build: nvcc -O2 -o run run.cu -ldl
//    or: g++ -O2 -x c++ -o run run.cu -ldl      (needs no CUDA toolkit)
// Run:   ./run [GPU]
//
// The program reads index.txt, which README.md describes, and data.bin from the folder in which it lies.
// Exit status: 0 if all is the same, 1 if outputs differ, 2 if the launches cannot run.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

typedef unsigned char Byte;

const uint64_t PIECE = 64 << 10;   // Memory is compared in pieces of this size.
const uint64_t BLOCK = 16 << 20;   // Memory is copied to the host in blocks of this size.
const uint64_t STEP = 32 << 20;    // The driver gives the address that it is asked for at this step.
const int SECONDS = 60;            // The longest time that a launch may take.
const char *ATTEMPT = "GAPSCOPE_EXPORT_ATTEMPT";
const int MAX_ATTEMPTS = 8;

[[noreturn]] void cannot_run(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fflush(stdout);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    // An orderly end would wait for a kernel that does not end.
    _exit(2);
}

// ---- Addresses of this process ----------------------------------------------------------------------------------

bool has_fixed_addresses() {
    int now = personality(0xffffffff);
    return now >= 0 && (now & ADDR_NO_RANDOMIZE);
}

// Starts this program again. Returns where that fails.
void again(char **arguments, int attempt) {
    setenv(ATTEMPT, std::to_string(attempt).c_str(), 1);
    execv("/proc/self/exe", arguments);
}

int attempt() {
    const char *text = getenv(ATTEMPT);
    return text ? atoi(text) : 0;
}

// Starts this program again without randomised addresses, so that the addresses of the capture are free.
void fix_addresses(char **arguments) {
    if (getenv(ATTEMPT) || has_fixed_addresses()) return;
    personality(personality(0xffffffff) | ADDR_NO_RANDOMIZE);
    if (has_fixed_addresses()) again(arguments, 1);
}

char **program_arguments;

// Where the system does not let a process switch randomisation off, as in some containers, another attempt finds other
// addresses.
[[noreturn]] void address_is_taken(uint64_t address, uint64_t bytes, const char *why) {
    if (attempt() < MAX_ATTEMPTS && !has_fixed_addresses()) again(program_arguments, attempt() + 1);
    cannot_run("The memory at %#llx (%llu bytes) cannot be at its address in this process: %s.",
               (unsigned long long)address, (unsigned long long)bytes, why);
}

// ---- CUDA's driver ----------------------------------------------------------------------------------------------

struct Location { int type, id; };
struct Properties { int type, handles; Location location; void *windows; Byte flags[8]; };
struct Access { Location location; int flags; };
struct alignas(8) Attribute { unsigned id, pad; Byte value[64]; };
struct Config { unsigned grid[3], block[3], shared; void *stream; Attribute *attributes; unsigned count; };

#define FUNCTIONS(F)                                                    \
    F(cuInit, (unsigned))                                               \
    F(cuGetErrorName, (int, const char **))                             \
    F(cuDeviceGet, (int *, int))                                        \
    F(cuDeviceGetName, (char *, int, int))                              \
    F(cuDeviceGetAttribute, (int *, int, int))                          \
    F(cuDevicePrimaryCtxRetain, (void **, int))                         \
    F(cuCtxSetCurrent, (void *))                                        \
    F(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long)) \
    F(cuMemAddressFree, (uint64_t, size_t))                             \
    F(cuMemCreate, (uint64_t *, size_t, const Properties *, unsigned long long)) \
    F(cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long)) \
    F(cuMemSetAccess, (uint64_t, size_t, const Access *, size_t))       \
    F(cuMemHostRegister_v2, (void *, size_t, unsigned))                 \
    F(cuMemsetD8_v2, (uint64_t, Byte, size_t))                          \
    F(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                      \
    F(cuModuleLoadData, (void **, const void *))                        \
    F(cuModuleGetFunction, (void **, void *, const char *))             \
    F(cuModuleGetGlobal_v2, (uint64_t *, size_t *, void *, const char *)) \
    F(cuFuncSetAttribute, (void *, int, int))                           \
    F(cuLaunchKernelEx, (const Config *, void *, void **, void **))     \
    F(cuStreamQuery, (void *))                                          \
    F(cuCtxSynchronize, ())

struct Driver {
#define DECLARE(name, arguments) int(*name) arguments;
    FUNCTIONS(DECLARE)
    // Drivers have this function from CUDA 12.4 on.
    int (*cuFuncGetParamInfo)(void *, size_t, size_t *, size_t *);
} driver;

void load_driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) cannot_run("CUDA's driver cannot be loaded: %s.", dlerror());
#define LOAD(name, arguments)                                  \
    *(void **)&driver.name = dlsym(library, #name);            \
    if (!driver.name) cannot_run("CUDA's driver has no %s: CUDA 12 or later is needed.", #name);
    FUNCTIONS(LOAD)
    *(void **)&driver.cuFuncGetParamInfo = dlsym(library, "cuFuncGetParamInfo");
}

std::string error_name(int code) {
    const char *text = nullptr;
    driver.cuGetErrorName(code, &text);
    return text ? text : "error " + std::to_string(code);
}

void check(int code, const char *call, const std::string &what) {
    if (code) cannot_run("%s failed with %s for %s.", call, error_name(code).c_str(), what.c_str());
}
#define CALL(what, name, ...) check(driver.name(__VA_ARGS__), #name, what)

std::string text(uint64_t bytes, uint64_t address) {
    char line[96];
    snprintf(line, sizeof line, "%llu bytes at %#llx", (unsigned long long)bytes, (unsigned long long)address);
    return line;
}

// ---- The plain hash of BLAKE3 -----------------------------------------------------------------------------------

typedef std::array<uint32_t, 8> Value;
const Value START = {{0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19}};
const int ORDER[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
const uint32_t CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8;

uint32_t turned(uint32_t word, int by) { return word >> by | word << (32 - by); }

void mix(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d, uint32_t x, uint32_t y) {
    a += b + x; d = turned(d ^ a, 16); c += d; b = turned(b ^ c, 12);
    a += b + y; d = turned(d ^ a, 8); c += d; b = turned(b ^ c, 7);
}

void compress(Value &value, const uint32_t *words, uint32_t counter, uint32_t bytes, uint32_t flags) {
    uint32_t v[16], m[16], next[16];
    memcpy(v, value.data(), 32);
    memcpy(v + 8, START.data(), 16);
    v[12] = counter; v[13] = 0; v[14] = bytes; v[15] = flags;
    memcpy(m, words, 64);
    for (int round = 0; round < 7; round++) {
        for (int i = 0; i < 4; i++) mix(v[i], v[4 + i], v[8 + i], v[12 + i], m[2 * i], m[2 * i + 1]);
        for (int i = 0; i < 4; i++)
            mix(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4], m[8 + 2 * i], m[9 + 2 * i]);
        for (int i = 0; i < 16; i++) next[i] = m[ORDER[i]];
        memcpy(m, next, 64);
    }
    for (int i = 0; i < 8; i++) value[i] = v[i] ^ v[8 + i];
}

// Returns the first 16 bytes of the hash of at most 64 KiB, as hexadecimal digits.
std::string blake3(const Byte *bytes, size_t count) {
    std::vector<Value> level;
    size_t chunks = count ? (count + 1023) / 1024 : 1;
    for (size_t chunk = 0; chunk < chunks; chunk++) {
        size_t from = chunk * 1024, size = std::min<size_t>(1024, count - from);
        size_t blocks = size ? (size + 63) / 64 : 1;
        Value value = START;
        for (size_t block = 0; block < blocks; block++) {
            uint32_t words[16] = {0};
            size_t here = std::min<size_t>(64, size - block * 64);
            memcpy(words, bytes + from + block * 64, here);
            uint32_t flags = (block == 0 ? CHUNK_START : 0) | (block + 1 == blocks ? CHUNK_END : 0);
            if (chunks == 1 && block + 1 == blocks) flags |= ROOT;
            compress(value, words, uint32_t(chunk), uint32_t(here), flags);
        }
        level.push_back(value);
    }
    while (level.size() > 1) {
        std::vector<Value> next;
        uint32_t flags = PARENT | (level.size() == 2 ? ROOT : 0);
        for (size_t i = 0; i + 1 < level.size(); i += 2) {
            Value value = START;
            compress(value, level[i].data(), 0, 64, flags);
            next.push_back(value);
        }
        if (level.size() % 2) next.push_back(level.back());
        level.swap(next);
    }
    Byte first[16];
    memcpy(first, level[0].data(), 16);
    std::string digits;
    for (Byte byte : first) {
        digits += "0123456789abcdef"[byte >> 4];
        digits += "0123456789abcdef"[byte & 15];
    }
    return digits;
}

// ---- The index --------------------------------------------------------------------------------------------------

struct Span { uint64_t address, bytes; };
struct Content { uint64_t memory, offset, bytes, at; };
struct Expected { uint64_t offset, bytes; std::string hash; bool is_kept; uint64_t at; };
struct Relocation { uint64_t at, memory; };
struct Setting { int number, value; };

struct Memory {
    uint64_t recorded = 0, bytes = 0, address = 0, module = 0;
    bool is_host = false, is_global = false;
    std::string name;
    // The bytes that each piece must have now: in data.bin, in `own`, or zeros.
    std::vector<const Byte *> pieces;
    std::vector<std::unique_ptr<Byte[]>> own;
};

struct Launch {
    uint64_t module = 0;
    Config config = Config();
    std::vector<Byte> parameters;
    std::string kernel, shown;
    std::vector<Content> contents;
    std::vector<Relocation> relocations;
    std::vector<Setting> settings;
    std::vector<Attribute> attributes;
    std::vector<uint64_t> reached;
    std::map<uint64_t, std::vector<Expected>> expected;
};

std::string folder;
std::vector<Span> reserved, mapped, host;
std::vector<std::string> files;
std::map<uint64_t, Memory> memories;
std::vector<Launch> launches;
int capability[2];
std::string captured_on;
const Byte *data_bytes;

int digit(char c) { return c >= 'a' ? c - 'a' + 10 : c >= 'A' ? c - 'A' + 10 : c - '0'; }

std::vector<Byte> from_hex(const std::string &text) {
    std::vector<Byte> bytes;
    for (size_t i = 0; i + 1 < text.size(); i += 2) bytes.push_back(Byte(digit(text[i]) << 4 | digit(text[i + 1])));
    return bytes;
}

// Returns a name of the index, in which %XX stands for a byte.
std::string decoded(const std::string &name) {
    std::string text;
    for (size_t i = 0; i < name.size(); i++) {
        if (name[i] == '%' && i + 2 < name.size()) {
            text += char(digit(name[i + 1]) << 4 | digit(name[i + 2]));
            i += 2;
        } else {
            text += name[i];
        }
    }
    return text;
}

void read_index() {
    std::ifstream file(folder + "index.txt");
    if (!file) cannot_run("%sindex.txt cannot be read.", folder.c_str());
    std::vector<Content> contents;
    std::string line, kind;
    bool is_whole = false;
    for (size_t number = 1; std::getline(file, line); number++) {
        std::istringstream in(line);
        in >> kind;
        if (kind == "device") {
            in >> capability[0] >> capability[1] >> captured_on;
        } else if (kind == "reserve" || kind == "map" || kind == "host") {
            Span span;
            in >> span.address >> span.bytes;
            (kind == "reserve" ? reserved : kind == "map" ? mapped : host).push_back(span);
        } else if (kind == "module") {
            std::string name;
            in >> name;
            files.push_back(name);
        } else if (kind == "memory") {
            uint64_t id;
            std::string place;
            Memory memory;
            in >> id >> memory.recorded >> memory.bytes >> place;
            memory.address = memory.recorded;
            memory.is_host = place == "host";
            memories[id] = std::move(memory);
        } else if (kind == "global") {
            uint64_t id;
            Memory memory;
            in >> id >> memory.module >> memory.recorded >> memory.bytes;
            if (in) in >> memory.name, in.clear();
            memory.is_global = true;
            memories[id] = std::move(memory);
        } else if (kind == "content") {
            Content content;
            in >> content.memory >> content.offset >> content.bytes >> content.at;
            contents.push_back(content);
        } else if (kind == "launch") {
            Launch launch;
            std::string parameters;
            Config &config = launch.config;
            in >> launch.module;
            for (unsigned &size : config.grid) in >> size;
            for (unsigned &size : config.block) in >> size;
            in >> config.shared >> parameters;
            if (in) in >> launch.shown, in.clear();
            launch.kernel = decoded(launch.shown);
            if (parameters != "-") launch.parameters = from_hex(parameters);
            launch.contents.swap(contents);
            launches.push_back(std::move(launch));
        } else if (kind == "end") {
            size_t count = 0;
            in >> count;
            is_whole = count == launches.size();
        } else if (launches.empty()) {
            in.setstate(std::ios::failbit);
        } else if (kind == "relocation") {
            Relocation relocation;
            in >> relocation.at >> relocation.memory;
            launches.back().relocations.push_back(relocation);
        } else if (kind == "setting") {
            Setting setting;
            in >> setting.number >> setting.value;
            launches.back().settings.push_back(setting);
        } else if (kind == "attribute") {
            Attribute attribute = Attribute();
            std::string value;
            in >> attribute.id >> value;
            std::vector<Byte> bytes = from_hex(value);
            bytes.resize(sizeof attribute.value);
            memcpy(attribute.value, bytes.data(), sizeof attribute.value);
            launches.back().attributes.push_back(attribute);
        } else if (kind == "reach") {
            uint64_t memory;
            in >> memory;
            launches.back().reached.push_back(memory);
        } else if (kind == "expect") {
            uint64_t memory;
            Expected expected;
            std::string at;
            in >> memory >> expected.offset >> expected.bytes >> expected.hash >> at;
            expected.is_kept = at != "-";
            expected.at = expected.is_kept ? strtoull(at.c_str(), nullptr, 10) : 0;
            launches.back().expected[memory].push_back(expected);
        } else {
            in.setstate(std::ios::failbit);
        }
        if (in.fail()) cannot_run("Line %zu of index.txt cannot be read.", number);
    }
    if (!is_whole) cannot_run("index.txt is cut off.");
}

// ---- Memory -----------------------------------------------------------------------------------------------------

Memory &memory_of(uint64_t id) {
    auto found = memories.find(id);
    if (found == memories.end()) cannot_run("index.txt names memory %llu, and has none.", (unsigned long long)id);
    return found->second;
}

void map_on_device(int device, Span span) {
    Properties properties = Properties();
    properties.type = 1;
    properties.location = {1, device};
    Access access = {{1, device}, 3};
    std::string what = text(span.bytes, span.address);
    uint64_t handle = 0;
    CALL(what, cuMemCreate, &handle, span.bytes, &properties, 0);
    CALL(what, cuMemMap, span.address, span.bytes, 0, handle, 0);
    CALL(what, cuMemSetAccess, span.address, span.bytes, &access, 1);
    CALL(what, cuMemsetD8_v2, span.address, 0, span.bytes);
}

void reserve(Span span) {
    uint64_t given = 0;
    int code = driver.cuMemAddressReserve(&given, span.bytes, 0, span.address, 0);
    if (code) address_is_taken(span.address, span.bytes, error_name(code).c_str());
    if (given != span.address) address_is_taken(span.address, span.bytes, "the driver gave another one");
}

// Maps pages of the host at their address, and lets the GPU use them.
bool map_host(Span span) {
    void *wanted = (void *)(uintptr_t)span.address;
    const int NO_REPLACE = 0x100000;
    void *given = mmap(wanted, span.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | NO_REPLACE, -1, 0);
    if (given == MAP_FAILED) return false;
    if (given == wanted && driver.cuMemHostRegister_v2(wanted, span.bytes, 2) == 0) return true;
    munmap(given, span.bytes);
    return false;
}

void make_memory(int device) {
    std::vector<Span> moved;
    for (Span span : host)
        if (!map_host(span)) moved.push_back(span);
    for (Span span : reserved) reserve(span);
    for (Span span : mapped) map_on_device(device, span);
    // Where an address of the host is taken, a kernel finds the same bytes at the same address in the GPU's memory.
    for (Span span : moved) {
        uint64_t start = span.address / STEP * STEP;
        uint64_t end = (span.address + span.bytes + STEP - 1) / STEP * STEP;
        reserve({start, end - start});
        map_on_device(device, {start, end - start});
        for (auto &each : memories) {
            Memory &memory = each.second;
            if (memory.address >= span.address && memory.address < span.address + span.bytes) memory.is_host = false;
        }
    }
}

void download(const Memory &memory, uint64_t offset, uint64_t bytes, Byte *to) {
    uint64_t from = memory.address + offset;
    if (memory.is_host) {
        memcpy(to, (void *)(uintptr_t)from, bytes);
    } else {
        CALL(text(bytes, from), cuMemcpyDtoH_v2, to, from, bytes);
    }
}

void upload(const Memory &memory, uint64_t offset, uint64_t bytes, const Byte *from) {
    uint64_t to = memory.address + offset;
    if (memory.is_host) {
        memcpy((void *)(uintptr_t)to, from, bytes);
    } else {
        CALL(text(bytes, to), cuMemcpyHtoD_v2, to, from, bytes);
    }
}

Byte ZEROS[PIECE];

// Says which bytes memory must have from now on. Bytes of data.bin stay, and are not copied.
void know(Memory &memory, uint64_t offset, uint64_t bytes, const Byte *from, bool stays) {
    for (uint64_t end = offset + bytes; offset < end;) {
        size_t piece = offset / PIECE;
        uint64_t start = piece * PIECE, size = std::min(PIECE, memory.bytes - start);
        uint64_t some = std::min(end, start + PIECE) - offset;
        if (stays && some == size) {
            memory.pieces[piece] = from;
        } else {
            std::unique_ptr<Byte[]> &own = memory.own[piece];
            if (!own) own.reset(new Byte[PIECE]);
            if (memory.pieces[piece] != own.get()) memcpy(own.get(), memory.pieces[piece], size);
            memcpy(own.get() + (offset - start), from, some);
            memory.pieces[piece] = own.get();
        }
        offset += some;
        from += some;
    }
}

std::vector<Byte> buffer(BLOCK);

void prepare_memory(const std::vector<void *> &modules) {
    for (auto &each : memories) {
        Memory &memory = each.second;
        if (memory.is_global) {
            size_t bytes = 0;
            std::string what = "variable " + memory.name;
            if (memory.module >= modules.size()) cannot_run("index.txt has no module for %s.", what.c_str());
            CALL(what, cuModuleGetGlobal_v2, &memory.address, &bytes, modules[memory.module],
                 decoded(memory.name).c_str());
            if (bytes < memory.bytes) cannot_run("%s is smaller than in the capture.", what.c_str());
        }
        size_t count = (memory.bytes + PIECE - 1) / PIECE;
        memory.pieces.assign(count, ZEROS);
        memory.own.resize(count);
        for (uint64_t at = 0; memory.is_global && at < memory.bytes; at += BLOCK) {
            uint64_t some = std::min(BLOCK, memory.bytes - at);
            download(memory, at, some, buffer.data());
            know(memory, at, some, buffer.data(), false);
        }
    }
}

// ---- Launches ---------------------------------------------------------------------------------------------------

void start(Launch &launch, const std::vector<void *> &modules) {
    std::string what = "kernel " + launch.shown;
    if (launch.module >= modules.size()) cannot_run("index.txt has no module for %s.", what.c_str());
    void *function = nullptr;
    CALL(what, cuModuleGetFunction, &function, modules[launch.module], launch.kernel.c_str());
    for (Setting setting : launch.settings) CALL(what, cuFuncSetAttribute, function, setting.number, setting.value);
    size_t size = launch.parameters.size();
    // The parameters are words, so that each is aligned.
    std::vector<uint64_t> words(size / 8 + 1);
    Byte *parameters = (Byte *)words.data();
    if (size) memcpy(parameters, launch.parameters.data(), size);
    for (Relocation relocation : launch.relocations) {
        const Memory &global = memory_of(relocation.memory);
        uint64_t word;
        if (relocation.at + 8 > size) continue;
        memcpy(&word, parameters + relocation.at, 8);
        word += global.address - global.recorded;
        memcpy(parameters + relocation.at, &word, 8);
    }
    std::vector<void *> each;
    size_t offset = 0, bytes = 0;
    bool is_known = driver.cuFuncGetParamInfo != nullptr;
    while (is_known && driver.cuFuncGetParamInfo(function, each.size(), &offset, &bytes) == 0) {
        is_known = offset <= size && bytes <= size - offset;
        each.push_back(parameters + offset);
    }
    is_known = is_known && (!each.empty() || size == 0);
    each.push_back(nullptr);
    void *packed[] = {(void *)1, parameters, (void *)2, &size, nullptr};
    Config config = launch.config;
    config.attributes = launch.attributes.empty() ? nullptr : launch.attributes.data();
    config.count = unsigned(launch.attributes.size());
    CALL(what, cuLaunchKernelEx, &config, function, is_known ? each.data() : nullptr, is_known ? nullptr : packed);
}

// Waits for the GPU, with a limit.
void wait(const Launch &launch, size_t number) {
    const int NOT_READY = 600;
    time_t since = time(nullptr);
    for (long turns = 0;; turns++) {
        int code = driver.cuStreamQuery(nullptr);
        if (code == 0) return;
        if (code != NOT_READY)
            cannot_run("Launch %zu (%s) failed with %s.", number, launch.shown.c_str(), error_name(code).c_str());
        if (time(nullptr) - since > SECONDS)
            cannot_run("Launch %zu (%s) did not end within %d s.", number, launch.shown.c_str(), SECONDS);
        if (turns > 10000) usleep(100);
    }
}

struct Comparison { uint64_t pieces = 0, changed = 0, different = 0, memory = 0, offset = 0; };

// Compares all memory that a launch reaches: what it changed in the program with the captured bytes or hashes, and all
// other memory with the bytes that it had before.
Comparison compare(const Launch &launch) {
    Comparison result;
    static const std::vector<Expected> NONE;
    for (uint64_t id : launch.reached) {
        Memory &memory = memory_of(id);
        auto found = launch.expected.find(id);
        const std::vector<Expected> &expected = found == launch.expected.end() ? NONE : found->second;
        size_t next = 0;
        for (uint64_t at = 0; at < memory.bytes; at += PIECE) {
            if (at % BLOCK == 0) download(memory, at, std::min(BLOCK, memory.bytes - at), buffer.data());
            const Byte *here = buffer.data() + at % BLOCK;
            uint64_t size = std::min(PIECE, memory.bytes - at);
            bool is_same = true;
            for (; next < expected.size() && expected[next].offset < at + PIECE; next++) {
                const Expected &one = expected[next];
                const Byte *bytes = here + (one.offset - at), *kept = data_bytes + one.at;
                bool equal = one.is_kept ? memcmp(bytes, kept, one.bytes) == 0 : blake3(bytes, one.bytes) == one.hash;
                if (equal) know(memory, one.offset, one.bytes, one.is_kept ? kept : bytes, one.is_kept);
                is_same = is_same && equal;
                result.changed++;
            }
            is_same = is_same && memcmp(here, memory.pieces[at / PIECE], size) == 0;
            result.pieces++;
            if (is_same) continue;
            if (!result.different++) result.memory = id, result.offset = at;
            know(memory, at, size, here, false);
        }
    }
    return result;
}

// Returns the whole of data.bin, as memory that is read when it is needed.
const Byte *map_data() {
    int file = open((folder + "data.bin").c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about)) cannot_run("%sdata.bin cannot be read.", folder.c_str());
    uint64_t needed = 0;
    for (const Launch &launch : launches) {
        for (const Content &content : launch.contents) needed = std::max(needed, content.at + content.bytes);
        for (const auto &each : launch.expected)
            for (const Expected &one : each.second)
                if (one.is_kept) needed = std::max(needed, one.at + one.bytes);
    }
    if (uint64_t(about.st_size) < needed) cannot_run("data.bin is cut off.");
    if (!about.st_size) return ZEROS;
    void *bytes = mmap(nullptr, about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) cannot_run("data.bin cannot be read.");
    return (const Byte *)bytes;
}

int open_device(int number) {
    load_driver();
    int device = 0, here[2] = {0, 0};
    char name[256] = "";
    void *context = nullptr;
    CALL("the start", cuInit, 0);
    CALL("GPU " + std::to_string(number), cuDeviceGet, &device, number);
    CALL("the GPU", cuDeviceGetName, name, sizeof name, device);
    CALL("the GPU", cuDeviceGetAttribute, &here[0], 75, device);
    CALL("the GPU", cuDeviceGetAttribute, &here[1], 76, device);
    if (here[0] != capability[0] || here[1] != capability[1])
        cannot_run("Nothing was run: the code is for compute capability %d.%d (%s), and %s has %d.%d.", capability[0],
                   capability[1], captured_on.c_str(), name, here[0], here[1]);
    CALL("the GPU", cuDevicePrimaryCtxRetain, &context, device);
    CALL("the GPU", cuCtxSetCurrent, context);
    printf("Running %zu launches on %s.\n", launches.size(), name);
    return device;
}

int run(int argc, char **argv) {
    program_arguments = argv;
    fix_addresses(argv);
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    folder = std::string(path, length > 0 ? size_t(length) : 0);
    folder.resize(folder.rfind('/') + 1);
    read_index();
    int device = open_device(argc > 1 ? atoi(argv[1]) : 0);
    make_memory(device);
    data_bytes = map_data();
    std::vector<void *> modules;
    for (const std::string &name : files) {
        std::ifstream file(folder + name, std::ios::binary);
        std::vector<char> code((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        if (code.empty()) cannot_run("%s cannot be read.", name.c_str());
        void *module = nullptr;
        CALL(name, cuModuleLoadData, &module, code.data());
        modules.push_back(module);
    }
    prepare_memory(modules);
    size_t number = 0, different = 0;
    Comparison all;
    for (Launch &launch : launches) {
        for (const Content &content : launch.contents) {
            Memory &memory = memory_of(content.memory);
            upload(memory, content.offset, content.bytes, data_bytes + content.at);
            know(memory, content.offset, content.bytes, data_bytes + content.at, true);
        }
        CALL("a copy", cuCtxSynchronize);
        start(launch, modules);
        wait(launch, number);
        Comparison one = compare(launch);
        all.pieces += one.pieces;
        all.changed += one.changed;
        if (one.different) {
            different++;
            printf("Launch %zu (%s) differs: %llu of %llu pieces of memory, the first at byte %llu of memory %llu.\n",
                   number, launch.shown.c_str(), (unsigned long long)one.different, (unsigned long long)one.pieces,
                   (unsigned long long)one.offset, (unsigned long long)one.memory);
        }
        number++;
    }
    if (different) {
        printf("%zu of %zu launches computed something else than when they were captured.\n", different, number);
        return 1;
    }
    printf("All %zu launches computed the same as when they were captured, bit for bit: %llu pieces of memory were\n"
           "compared, %llu of which a launch changed.\n",
           number, (unsigned long long)all.pieces, (unsigned long long)all.changed);
    return 0;
}

}  // namespace

#ifndef RUN_WITHOUT_MAIN
int main(int argc, char **argv) { return run(argc, argv); }
#endif
