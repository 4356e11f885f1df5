/* Launches empty kernels through the driver, which it opens itself: no headers, no CUDA at build time.
 *
 * launches COUNT BATCH [STAMPS [PAUSE]]
 * COUNT launches, synchronised after each BATCH, with PAUSE nanoseconds of spinning before each. With STAMPS it reads CLOCK_MONOTONIC around every launch and after
 * every synchronisation, and writes what it read there: for each launch two 64-bit integers, the time before its call
 * and the time after the synchronisation that followed it. It prints a line of JSON with its region, as region.py does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";

typedef void *handle;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *library;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        exit(2);
    }
    return found;
}

static void check(int status, const char *what) {
    if (status) {
        fprintf(stderr, "%s failed with CUresult %d\n", what, status);
        exit(2);
    }
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments < 3) {
        fprintf(stderr, "usage: launches COUNT BATCH [STAMPS [PAUSE]]\n");
        return 2;
    }
    int64_t count = atoll(arguments[1]), batch = atoll(arguments[2]);
    const char *stamps_path = count_of_arguments > 3 ? arguments[3] : NULL;
    int64_t pause = count_of_arguments > 4 ? atoll(arguments[4]) : 0;
    const char *name = getenv("CUDA_DRIVER_LIBRARY");
    library = dlopen(name ? name : "libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*init)(unsigned) = symbol("cuInit");
    int (*get)(int *, int) = symbol("cuDeviceGet");
    int (*retain)(handle *, int) = symbol("cuDevicePrimaryCtxRetain");
    int (*set)(handle) = symbol("cuCtxSetCurrent");
    int (*load)(handle *, const void *) = symbol("cuModuleLoadData");
    int (*function)(handle *, handle, const char *) = symbol("cuModuleGetFunction");
    int (*synchronise)(void) = symbol("cuCtxSynchronize");
    int (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **) =
        symbol("cuLaunchKernel");

    int device;
    handle context, module, kernel;
    check(init(0), "cuInit");
    check(get(&device, 0), "cuDeviceGet");
    check(retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(set(context), "cuCtxSetCurrent");
    check(load(&module, ptx), "cuModuleLoadData");
    check(function(&kernel, module, "nothing"), "cuModuleGetFunction");

    int64_t *stamps = stamps_path ? calloc(count, 2 * sizeof *stamps) : NULL;
    if (stamps_path && !stamps) {
        fprintf(stderr, "no memory for the stamps\n");
        return 2;
    }
    for (int i = 0; i < 1000; i++)
        check(launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
    check(synchronise(), "cuCtxSynchronize");

    int64_t begin = now();
    for (int64_t done = 0; done < count;) {
        int64_t end = done + batch < count ? done + batch : count;
        for (int64_t i = done; i < end; i++) {
            if (pause)
                for (int64_t until = now() + pause; now() < until;)
                    ;
            if (stamps)
                stamps[2 * i] = now();
            check(launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
        }
        check(synchronise(), "cuCtxSynchronize");
        if (stamps) {
            int64_t after = now();
            for (int64_t i = done; i < end; i++)
                stamps[2 * i + 1] = after;
        }
        done = end;
    }
    int64_t end = now();
    if (stamps) {
        FILE *file = fopen(stamps_path, "wb");
        if (!file || fwrite(stamps, 2 * sizeof *stamps, count, file) != (size_t)count || fclose(file)) {
            fprintf(stderr, "%s cannot be written\n", stamps_path);
            return 2;
        }
    }
    printf("{\"regions\": {\"launches\": {\"begin_ns\": %lld, \"end_ns\": %lld, \"kernels\": %lld}}, "
           "\"milliseconds\": %.6f, \"last_ns\": %lld}\n",
           (long long)begin, (long long)end, (long long)count, (end - begin) / 1e6, (long long)now());
    return 0;
}
