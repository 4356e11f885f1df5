/* The least that a CUPTI activity recorder does, as the floor of what recording can cost: it subscribes, enables kernel
 * records, and throws every buffer away unread. The driver loads it because of CUDA_INJECTION64_PATH.
 *
 * BARE_CUPTI    path of libcupti
 * BARE_CALLS    records of calls of the runtime and of the driver too: `launches` or `all`; when not set, of none
 * BARE_REPORT   file for a line of JSON at exit: buffers, bytes of records, first failure
 *
 * Prototypes and numbers are those of NVIDIA's cupti_activity.h and cupti_callbacks.h, version 13.0.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVER = 4, RUNTIME = 5, CONCURRENT_KERNEL = 10 };
enum { DRIVER_DOMAIN = 1, RUNTIME_DOMAIN = 2, MOST_CALLS = 2000 };
enum { BUFFER_BYTES = 8 << 20, FORCED = 1 };

static _Atomic uint64_t buffers, bytes;
static const char *failed = "";
static int status;
static int (*flush)(uint32_t);

static void requested(uint8_t **buffer, size_t *size, size_t *most_records) {
    void *memory = NULL;
    *size = posix_memalign(&memory, 8, BUFFER_BYTES) == 0 ? BUFFER_BYTES : 0;
    *buffer = memory;
    *most_records = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    atomic_fetch_add(&buffers, 1);
    atomic_fetch_add(&bytes, valid);
    free(buffer);
}

static void callback(void *data, int domain, uint32_t id, const void *info) {
    (void)data, (void)domain, (void)id, (void)info;
}

static void report(void) {
    if (flush)
        flush(FORCED);
    const char *path = getenv("BARE_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "{\"buffers\": %llu, \"bytes\": %llu, \"failed\": \"%s\", \"status\": %d}\n",
                (unsigned long long)buffers, (unsigned long long)bytes, failed, status);
        fclose(file);
    }
}

static void try(int result, const char *what) {
    if (result && !*failed) {
        failed = what;
        status = result;
    }
}

/* Leaves out records of calls that launch nothing. */
static void leave_out(void *library) {
    int (*name_of)(int, uint32_t, const char **) = dlsym(library, "cuptiGetCallbackName");
    int (*of_runtime)(uint32_t, uint8_t) = dlsym(library, "cuptiActivityEnableRuntimeApi");
    int (*of_driver)(uint32_t, uint8_t) = dlsym(library, "cuptiActivityEnableDriverApi");
    if (!name_of || !of_runtime || !of_driver) {
        failed = "dlsym of what leaves calls out";
        return;
    }
    for (int domain = DRIVER_DOMAIN; domain <= RUNTIME_DOMAIN; domain++)
        for (uint32_t call = 1; call < MOST_CALLS; call++) {
            const char *name;
            if (name_of(domain, call, &name) == 0 && !strstr(name, "Launch"))
                (domain == DRIVER_DOMAIN ? of_driver : of_runtime)(call, 0);
        }
}

int InitializeInjection(void) {
    const char *path = getenv("BARE_CUPTI");
    void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
    atexit(report);
    if (!library) {
        failed = "dlopen of libcupti";
        return 1;
    }
    int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *) = dlsym(library, "cuptiSubscribe");
    int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) =
        dlsym(library, "cuptiActivityRegisterCallbacks");
    int (*enable)(int) = dlsym(library, "cuptiActivityEnable");
    int (*flush_all)(uint32_t) = dlsym(library, "cuptiActivityFlushAll");
    if (!subscribe || !callbacks || !enable || !flush_all) {
        failed = "dlsym in libcupti";
        return 1;
    }
    static void *subscriber;
    try(subscribe(&subscriber, callback, NULL), "cuptiSubscribe");
    try(callbacks(requested, completed), "cuptiActivityRegisterCallbacks");
    try(enable(CONCURRENT_KERNEL), "cuptiActivityEnable of kernels");
    const char *calls = getenv("BARE_CALLS");
    if (calls) {
        try(enable(RUNTIME), "cuptiActivityEnable of the runtime");
        try(enable(DRIVER), "cuptiActivityEnable of the driver");
        if (!strcmp(calls, "launches"))
            leave_out(library);
    }
    flush = flush_all;
    return 1;
}
