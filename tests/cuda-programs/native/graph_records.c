/* What CUPTI itself says of graphs: writes each callback about graphs and their nodes, each launch of one, and each
 * record of work, with all numbers that could join them. The driver loads it because of CUDA_INJECTION64_PATH.
 *
 * GRAPH_CUPTI     path of libcupti
 * GRAPH_DEVICE    1: with cuptiActivityEnableDeviceGraph, by which graphs that the device launches leave records
 * GRAPH_WHOLE     1: with records of whole graphs instead of their nodes
 * GRAPH_FIRST     1: kinds of records are enabled before callbacks
 * GRAPH_REPORT    file for one line of JSON for each of these
 *
 * Numbers and offsets are those of NVIDIA's cupti_activity.h and cupti_callbacks.h, version 13.0.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DRIVER_DOMAIN = 1, RESOURCE_DOMAIN = 3, MOST_CALLS = 2000, BUFFER_BYTES = 1 << 20, FORCED = 1, NOT_WRITTEN = 77777 };
enum { COPY = 1, FILL = 2, CONCURRENT_KERNEL = 10, GRAPH = 51, DEVICE_GRAPH = 53 };

static FILE *file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*flush)(uint32_t);
static int (*next_record)(uint8_t *, size_t, uint8_t **);
static int (*name_of)(int, uint32_t, const char **);
/* cuGraphExecGetId of drivers since 13.1. */
static int (*driver_id)(void *, uint32_t *);
static int (*graph_id)(void *, uint32_t *), (*exec_id)(void *, uint32_t *), (*node_id)(void *, uint64_t *);

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

static uint32_t u32(const uint8_t *record, int offset) {
    uint32_t value;
    memcpy(&value, record + offset, sizeof value);
    return value;
}

static unsigned long long u64(const uint8_t *record, int offset) {
    uint64_t value;
    memcpy(&value, record + offset, sizeof value);
    return value;
}

static void work(const char *what, const uint8_t *record, int start, int stream, int correlation, int node, int graph) {
    fprintf(file, "{\"record\": \"%s\", \"start\": %llu, \"end\": %llu, \"stream\": %u, \"correlation\": %u, \"node\": %llu, "
                  "\"graph\": %u",
            what, u64(record, start), u64(record, start + 8), u32(record, stream), u32(record, correlation),
            node ? u64(record, node) : 0, u32(record, graph));
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    uint8_t *record = NULL;
    while (next_record(buffer, valid, &record) == 0 && record) {
        switch (u32(record, 0)) {
        case CONCURRENT_KERNEL:
            work("kernel", record, 16, 48, 92, 144, 156);
            fprintf(file, ", \"name\": \"%s\", \"grid_id\": %lld, \"launch_type\": %u, \"channel\": %u, \"by_device\": %u}\n",
                    (const char *)(uintptr_t)u64(record, 104), (long long)u64(record, 96), record[136], u32(record, 168),
                    record[208]);
            break;
        case COPY: work("copy", record, 16, 40, 44, 64, 72); fputs("}\n", file); break;
        case FILL: work("fill", record, 16, 40, 44, 64, 72); fputs("}\n", file); break;
        case GRAPH: work("graph", record, 8, 36, 4, 0, 28); fputs("}\n", file); break;
        case DEVICE_GRAPH:
            fprintf(file, "{\"record\": \"device graph\", \"start\": %llu, \"end\": %llu, \"graph\": %u, \"launcher\": %u, "
                          "\"mode\": %u}\n",
                    u64(record, 8), u64(record, 16), u32(record, 24), u32(record, 28), u32(record, 32));
            break;
        default: fprintf(file, "{\"record\": %u}\n", u32(record, 0));
        }
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

/* The ids of a graph, a node and an executable graph, where CUPTI gives them. */
static void ids(const char *name, void *graph, void *node) {
    uint32_t number = NOT_WRITTEN;
    uint64_t of_node = NOT_WRITTEN;
    if (graph) {
        int status = graph_id(graph, &number);
        fprintf(file, ", \"%sgraph\": \"%p\", \"%sgraph_status\": %d, \"%sgraph_id\": %u", name, graph, name, status, name,
                number);
    }
    if (node) {
        int status = node_id(node, &of_node);
        fprintf(file, ", \"%snode_status\": %d, \"%snode_id\": %llu", name, status, name, (unsigned long long)of_node);
    }
}

static void callback(void *data, int domain, uint32_t id, const void *info) {
    (void)data;
    pthread_mutex_lock(&lock);
    if (domain == RESOURCE_DOMAIN && id >= 9 && id <= 23) {
        /* CUpti_ResourceData, then CUpti_GraphData: graph, original, node, original, type, dependency, executable. */
        void *const *graph = ((void *const *)info)[2];
        if (graph) {
            uint32_t number = 0;
            fprintf(file, "{\"callback\": %u, \"node_type\": %d", id, *(const int *)&graph[4]);
            ids("", graph[0], graph[2]);
            ids("original_", graph[1], graph[3]);
            if (graph[6]) {
                int status = exec_id(graph[6], &number);
                fprintf(file, ", \"exec_status\": %d, \"exec_id\": %u", status, number);
            }
            fputs("}\n", file);
        }
    } else if (domain == DRIVER_DOMAIN) {
        const uint8_t *call = info;
        const char *name = "?";
        name_of(domain, id, &name);
        fprintf(file, "{\"call\": \"%s\", \"%s\": %lld, \"correlation\": %u", name, u32(call, 0) ? "returns" : "enters",
                (long long)now(), u32(call, 64));
        void *const *parameters = (void *const *)(uintptr_t)u64(call, 16);
        uint32_t number = 0;
        if (strncmp(name, "cuGraphLaunch", 13) == 0) {
            int status = exec_id(parameters[0], &number);
            fprintf(file, ", \"exec\": \"%p\", \"exec_status\": %d, \"exec_id\": %u", parameters[0], status, number);
            status = graph_id(parameters[0], &number);
            fprintf(file, ", \"as_graph_status\": %d, \"as_graph_id\": %u", status, number);
            if (driver_id) {
                status = driver_id(parameters[0], &number);
                fprintf(file, ", \"driver_status\": %d, \"driver_id\": %u", status, number);
            }
        }
        fputs("}\n", file);
    }
    pthread_mutex_unlock(&lock);
}

static void report(void) {
    if (flush)
        flush(FORCED);
    fclose(file);
}

static void try(int result, const char *what) {
    if (result)
        fprintf(file, "{\"failed\": \"%s\", \"status\": %d}\n", what, result);
}

static int is_on(const char *name) {
    const char *value = getenv(name);
    return value && *value == '1';
}

static void enable_kinds(int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)),
                         int (*enable)(int)) {
    try(callbacks(requested, completed), "cuptiActivityRegisterCallbacks");
    if (is_on("GRAPH_WHOLE"))
        try(enable(GRAPH), "cuptiActivityEnable of graphs");
    try(enable(CONCURRENT_KERNEL), "cuptiActivityEnable of kernels");
    try(enable(COPY), "cuptiActivityEnable of copies");
    try(enable(FILL), "cuptiActivityEnable of fills");
}

int InitializeInjection(void) {
    const char *path = getenv("GRAPH_CUPTI"), *report_path = getenv("GRAPH_REPORT");
    file = report_path ? fopen(report_path, "w") : NULL;
    if (!file)
        return 1;
    atexit(report);
    void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
    if (!library) {
        try(1, "dlopen of libcupti");
        return 1;
    }
    int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *) = dlsym(library, "cuptiSubscribe");
    int (*enable_callback)(uint32_t, void *, int, uint32_t) = dlsym(library, "cuptiEnableCallback");
    int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) =
        dlsym(library, "cuptiActivityRegisterCallbacks");
    int (*clock_is)(uint64_t (*)(void)) = dlsym(library, "cuptiActivityRegisterTimestampCallback");
    int (*device_graphs)(uint8_t) = dlsym(library, "cuptiActivityEnableDeviceGraph");
    int (*enable)(int) = dlsym(library, "cuptiActivityEnable");
    flush = dlsym(library, "cuptiActivityFlushAll");
    next_record = dlsym(library, "cuptiActivityGetNextRecord");
    name_of = dlsym(library, "cuptiGetCallbackName");
    graph_id = dlsym(library, "cuptiGetGraphId");
    exec_id = dlsym(library, "cuptiGetGraphExecId");
    node_id = dlsym(library, "cuptiGetGraphNodeId");
    if (!subscribe || !enable_callback || !callbacks || !clock_is || !enable || !flush || !next_record || !name_of ||
        !graph_id || !exec_id || !node_id) {
        try(1, "dlsym in libcupti");
        return 1;
    }
    static void *subscriber;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    driver_id = driver ? dlsym(driver, "cuGraphExecGetId") : NULL;
    if (is_on("GRAPH_FIRST"))
        enable_kinds(callbacks, enable);
    try(subscribe(&subscriber, callback, NULL), "cuptiSubscribe");
    try(clock_is(stamp), "cuptiActivityRegisterTimestampCallback");
    if (is_on("GRAPH_DEVICE") && device_graphs)
        try(device_graphs(1), "cuptiActivityEnableDeviceGraph");
    /* All of graphs but the dependencies of nodes. */
    for (uint32_t id = 9; id <= 23; id++)
        if (id != 15 && id != 16 && id != 21)
            try(enable_callback(1, subscriber, RESOURCE_DOMAIN, id), "cuptiEnableCallback");
    for (uint32_t call = 1; call < MOST_CALLS; call++) {
        const char *name;
        if (name_of(DRIVER_DOMAIN, call, &name) == 0 &&
            (strncmp(name, "cuGraphLaunch", 13) == 0 || strncmp(name, "cuGraphInstantiate", 18) == 0 ||
             strncmp(name, "cuGraphAddNode", 14) == 0 || strncmp(name, "cuLaunchKernel", 14) == 0))
            enable_callback(1, subscriber, DRIVER_DOMAIN, call);
    }
    if (!is_on("GRAPH_FIRST"))
        enable_kinds(callbacks, enable);
    return 1;
}
