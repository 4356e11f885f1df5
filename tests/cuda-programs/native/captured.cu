// Kernels that are hard to capture: `captured KIND`. Each prints results that are the same in each run.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace groups = cooperative_groups;

__constant__ float factors[4];
__device__ float total;
__device__ int *stored;
__device__ int table[4];

struct Node {
    Node *next;
    float value;
};
struct __align__(4) Packed {
    char tag;
    char rest[3];
    unsigned low, high;  // A pointer at 4 bytes.
};
struct Shape {
    virtual __device__ float area() = 0;
};
struct Square : Shape {
    float side;
    __device__ float area() override { return side * side; }
};

__global__ void constants(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = (i + 1) * factors[i & 3];
    if (i == 0) total += 1;
}
__global__ void cooperative(float *x, int n) {
    auto grid = groups::this_grid();
    for (int i = grid.thread_rank(); i < n; i += grid.size()) x[i] += 1;
    grid.sync();
    for (int i = grid.thread_rank(); i < n; i += grid.size()) x[i] *= i % 3;
}
__global__ void __cluster_dims__(2, 1, 1) cluster(float *x, int n) {
    __shared__ float own[256];
    auto cluster = groups::this_cluster();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    own[threadIdx.x] = i < n ? x[i] : 0;
    cluster.sync();
    float value = cluster.map_shared_rank(own, cluster.block_rank() ^ 1)[threadIdx.x];
    cluster.sync();
    if (i < n) x[i] = value;
}
__global__ void shared_large(float *x) {
    extern __shared__ float big[];
    big[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = big[255 - threadIdx.x] + 1;
}
__global__ void list(Node *first, float *out) {
    float sum = 0;
    for (Node *node = first; node; node = node->next) sum += node->value;
    *out = sum;
}
__global__ void packed(Packed p, int n) {
    float *x = (float *)((unsigned long long)p.high << 32 | p.low);
    if (threadIdx.x < n) x[threadIdx.x] += p.tag;
}
__global__ void to_host(float *x, float *host) { host[threadIdx.x] = x[threadIdx.x] * 2; }
__global__ void through_global(int *out) { out[threadIdx.x] = stored[threadIdx.x] + 1; }
__global__ void through_address(int *where, int *out) { out[threadIdx.x] = where[threadIdx.x] + table[threadIdx.x]; }
__global__ void address_in_memory(int **where, int *out) { out[threadIdx.x] = (*where)[threadIdx.x]; }
__global__ void atomics(float *sum, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);
}
__global__ void allocating(int **out) {
    int *made = (int *)malloc(64);
    made[0] = 7;
    *out = made;
}
__global__ void build_shape(Square *s) { new (s) Square; s->side = 3; }
__global__ void use_shape(Shape *s, float *out) { *out = s->area(); }
__global__ void textured(cudaTextureObject_t texture, float *out) { out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x); }
__global__ void waiting(volatile int *flag) { while (*flag == 0) {} }
__global__ void timed(long long *out) { *out = clock64(); }

template <class T> static T *device(size_t n) {
    T *p;
    cudaMalloc(&p, n * sizeof(T));
    cudaMemset(p, 0, n * sizeof(T));
    return p;
}
static void show(const char *what, const float *x, int n) {
    std::vector<float> h(n);
    cudaMemcpy(h.data(), x, n * 4, cudaMemcpyDefault);
    double sum = 0;
    for (float v : h) sum += v;
    printf("%s %.9g\n", what, sum);
}

int main(int, char **arguments) {
    std::string kind = arguments[1];
    int n = 1 << 16;
    float *x = device<float>(n);
    if (kind == "hard") {
        float f[4] = {1, 2, 3, 4};
        cudaMemcpyToSymbol(factors, f, sizeof f);
        constants<<<n / 256, 256>>>(x, n);
        constants<<<n / 256, 256>>>(x, n);
        void *given[] = {&x, &n};
        cudaLaunchCooperativeKernel((void *)cooperative, dim3(64), dim3(256), given, 0, 0);
        cluster<<<n / 256, 256>>>(x, n);
        cudaFuncSetAttribute((void *)shared_large, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);
        shared_large<<<1, 256, 100 << 10>>>(x);
        Node *nodes[3];
        for (auto &node : nodes) node = device<Node>(1);
        Node host[3] = {{nodes[1], 1}, {nodes[2], 2}, {nullptr, 4}};
        for (int i = 0; i < 3; i++) cudaMemcpy(nodes[i], &host[i], sizeof(Node), cudaMemcpyHostToDevice);
        float *out = device<float>(1);
        list<<<1, 1>>>(nodes[0], out);
        show("list", out, 1);
        Packed p = {5, {}, (unsigned)(size_t)x, (unsigned)((size_t)x >> 32)};
        packed<<<1, 256>>>(p, 256);
        float *pinned;
        cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped);
        to_host<<<1, 256>>>(x, pinned);
        cudaDeviceSynchronize();
        show("host", pinned, 256);
        int *ints = device<int>(64), *result = device<int>(64), *address, *own;
        cudaMemcpyToSymbol(stored, &ints, sizeof ints);
        through_global<<<1, 64>>>(result);
        int values[4] = {3, 1, 4, 1};
        cudaMemcpyToSymbol(table, values, sizeof values);
        cudaGetSymbolAddress((void **)&address, table);
        through_address<<<1, 4>>>(address, result);
        float *pool;
        cudaMallocAsync(&pool, 1 << 20, 0);
        cudaMemsetAsync(pool, 0, 1 << 20, 0);
        constants<<<16, 256>>>(pool, 4096);
        show("pool", pool, 4096);
        (void)own;
        show("all", x, n);
    } else if (kind == "global-in-memory") {
        int **where = device<int *>(1), *address, *out = device<int>(4);
        cudaGetSymbolAddress((void **)&address, table);
        cudaMemcpy(where, &address, sizeof address, cudaMemcpyHostToDevice);
        address_in_memory<<<1, 4>>>(where, out);
    } else if (kind == "atomics") {
        constants<<<n / 256, 256>>>(x, n);
        float h[4] = {.1f, .2f, .3f, .4f};
        cudaMemcpyToSymbol(factors, h, sizeof h);
        constants<<<n / 256, 256>>>(x, n);
        float *sum = device<float>(1);
        atomics<<<n / 256, 256>>>(sum, x, n);
    } else if (kind == "malloc") {
        allocating<<<1, 1>>>(device<int *>(1));
    } else if (kind == "virtual") {
        Square *s = device<Square>(1);
        build_shape<<<1, 1>>>(s);
        use_shape<<<1, 1>>>(s, x);
        show("area", x, 1);
    } else if (kind == "texture") {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = x;
        resource.res.linear.desc = cudaCreateChannelDesc<float>();
        resource.res.linear.sizeInBytes = n * 4;
        cudaTextureDesc description = {};
        cudaTextureObject_t texture;
        cudaCreateTextureObject(&texture, &resource, &description, nullptr);
        textured<<<1, 256>>>(texture, device<float>(256));
    } else if (kind == "managed") {
        float *m;
        cudaMallocManaged(&m, 4096);
        for (int i = 0; i < 1024; i++) m[i] = i;
        to_host<<<1, 256>>>(m, x);
    } else if (kind == "wait") {
        int *flag;
        cudaHostAlloc(&flag, 4, cudaHostAllocMapped);
        *flag = 0;
        waiting<<<1, 1>>>(flag);
        *(volatile int *)flag = 1;
    } else if (kind == "clock") {
        timed<<<1, 1>>>(device<long long>(1));
    }
    printf("%s %s\n", kind.c_str(), cudaGetErrorString(cudaDeviceSynchronize()));
}
