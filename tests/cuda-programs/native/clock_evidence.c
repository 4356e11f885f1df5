/* What else could bound how far CUPTI's device times are off, and what it costs. The driver loads it because of
 * CUDA_INJECTION64_PATH; it asks CUPTI for kernels alone, on the host's monotonic clock, and for all records every 100 ms.
 *
 * EVIDENCE_CUPTI     path of libcupti
 * EVIDENCE_LATENCY   1: with cuptiActivityEnableLatencyTimestamps, by which a kernel has the times at which it was queued
 *                    and at which its command buffer was submitted to the device: it starts no earlier
 * EVIDENCE_REPORT    file for a line of JSON at exit
 *
 * A buffer's records are of work that had ended when CUPTI gave the buffer back, so that this moment bounds their ends too.
 * Numbers and offsets are those of NVIDIA's cupti_activity.h, version 13.0.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONCURRENT_KERNEL = 10, BUFFER_BYTES = 1 << 20, FORCED = 1, MOST = 4 << 20, MOST_WINDOWS = 1 << 12 };
enum { START = 16, END = 24, QUEUED = 120, SUBMITTED = 128 };
#define WINDOW INT64_C(100000000)

static const char *failed = "";
static int status;
static int (*flush)(uint32_t);
static int (*next_record)(uint8_t *, size_t, uint8_t **);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stopped;

/* Distances in ns, of each kernel that has them. */
static int32_t *after_submission, *in_queue;
static uint64_t kernels, with_submission, early, without_times, buffers, forced_buffers;
/* Per window of time: the least distances. */
static struct { int64_t index, after_submission, until_delivery; } windows[MOST_WINDOWS];
static int window_count, ending;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static uint64_t stamp(void) { return now(); }

static void requested(uint8_t **buffer, size_t *size, size_t *most_records) {
    void *memory = NULL;
    *size = posix_memalign(&memory, 8, BUFFER_BYTES) == 0 ? BUFFER_BYTES : 0;
    *buffer = memory;
    *most_records = 0;
}

static int64_t at(const uint8_t *record, int offset) {
    int64_t value;
    memcpy(&value, record + offset, sizeof value);
    return value;
}

static int window_of(int64_t index) {
    for (int i = window_count; i-- > 0;)
        if (windows[i].index == index)
            return i;
    if (window_count == MOST_WINDOWS)
        return -1;
    windows[window_count].index = index;
    windows[window_count].after_submission = windows[window_count].until_delivery = INT64_MAX;
    return window_count++;
}

static int32_t clipped(int64_t value) { return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value; }

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    /* The first thing: whatever is in the buffer ended before. */
    int64_t delivered = now();
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    buffers++;
    forced_buffers += ending;
    uint8_t *record = NULL;
    while (next_record(buffer, valid, &record) == 0 && record) {
        uint32_t kind;
        memcpy(&kind, record, sizeof kind);
        if (kind != CONCURRENT_KERNEL && kind != 3)
            continue;
        int64_t start = at(record, START), end = at(record, END);
        if (start <= 0 || end <= start) {
            without_times++;
            continue;
        }
        int window = window_of(start / WINDOW);
        int64_t submitted = at(record, SUBMITTED), queued = at(record, QUEUED);
        if (submitted > 0 && kernels < MOST) {
            after_submission[with_submission] = clipped(start - submitted);
            in_queue[with_submission++] = clipped(queued > 0 ? submitted - queued : 0);
            early += start < submitted;
            if (window >= 0 && start - submitted < windows[window].after_submission)
                windows[window].after_submission = start - submitted;
        }
        if (window >= 0 && !ending && delivered - end < windows[window].until_delivery)
            windows[window].until_delivery = delivered - end;
        kernels++;
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void callback(void *data, int domain, uint32_t id, const void *info) {
    (void)data, (void)domain, (void)id, (void)info;
}

static void *flusher(void *unused) {
    struct timespec pause = {0, 100 * 1000 * 1000};
    while (!stopped) {
        nanosleep(&pause, NULL);
        flush(0);
    }
    return unused;
}

static int by_value(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static void distances(FILE *file, const char *name, int32_t *of, uint64_t count) {
    fprintf(file, ", \"%s\": ", name);
    if (count == 0) {
        fprintf(file, "null");
        return;
    }
    qsort(of, count, sizeof *of, by_value);
    fprintf(file, "[%d, %d, %d, %d]", of[0], of[count / 2], of[count / 100 * 99], of[count - 1]);
}

static void report(void) {
    stopped = 1;
    ending = 1;
    if (flush)
        flush(FORCED);
    const char *path = getenv("EVIDENCE_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "{\"failed\": \"%s\", \"status\": %d, \"kernels\": %llu, \"without_times\": %llu, \"buffers\": %llu, "
                  "\"with_submission\": %llu, \"start_before_submission\": %llu",
            failed, status, (unsigned long long)kernels, (unsigned long long)without_times, (unsigned long long)buffers,
            (unsigned long long)with_submission, (unsigned long long)early);
    /* Least, median, 99th of a hundred, most. */
    distances(file, "submission_to_start", after_submission, with_submission);
    distances(file, "queued_to_submission", in_queue, with_submission);
    fprintf(file, ", \"windows\": [");
    for (int i = 0; i < window_count; i++)
        fprintf(file, "%s[%lld, %lld, %lld]", i ? ", " : "", (long long)windows[i].index,
                (long long)(windows[i].after_submission == INT64_MAX ? -1 : windows[i].after_submission),
                (long long)(windows[i].until_delivery == INT64_MAX ? -1 : windows[i].until_delivery));
    fprintf(file, "]}\n");
    fclose(file);
}

static void try(int result, const char *what) {
    if (result && !*failed) {
        failed = what;
        status = result;
    }
}

int InitializeInjection(void) {
    const char *path = getenv("EVIDENCE_CUPTI");
    void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
    after_submission = calloc(MOST, sizeof *after_submission);
    in_queue = calloc(MOST, sizeof *in_queue);
    if (!library || !after_submission || !in_queue) {
        failed = library ? "memory" : "dlopen of libcupti";
        atexit(report);
        return 1;
    }
    int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *) = dlsym(library, "cuptiSubscribe");
    int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) =
        dlsym(library, "cuptiActivityRegisterCallbacks");
    int (*clock_is)(uint64_t (*)(void)) = dlsym(library, "cuptiActivityRegisterTimestampCallback");
    int (*latency)(uint8_t) = dlsym(library, "cuptiActivityEnableLatencyTimestamps");
    int (*enable)(int) = dlsym(library, "cuptiActivityEnable");
    int (*flush_all)(uint32_t) = dlsym(library, "cuptiActivityFlushAll");
    next_record = dlsym(library, "cuptiActivityGetNextRecord");
    if (!subscribe || !callbacks || !clock_is || !latency || !enable || !flush_all || !next_record) {
        failed = "dlsym in libcupti";
        atexit(report);
        return 1;
    }
    static void *subscriber;
    try(subscribe(&subscriber, callback, NULL), "cuptiSubscribe");
    try(clock_is(stamp), "cuptiActivityRegisterTimestampCallback");
    if (getenv("EVIDENCE_LATENCY") && *getenv("EVIDENCE_LATENCY") == '1')
        try(latency(1), "cuptiActivityEnableLatencyTimestamps");
    try(callbacks(requested, completed), "cuptiActivityRegisterCallbacks");
    try(enable(CONCURRENT_KERNEL), "cuptiActivityEnable of kernels");
    flush = flush_all;
    atexit(report);
    pthread_t thread;
    try(pthread_create(&thread, NULL, flusher, NULL), "pthread_create");
    return 1;
}
