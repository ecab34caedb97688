/*
 * The C interface between the addon, the device plugins and the kernel libraries. Everything crosses it as plain C:
 * the addon links neither CUDA nor a kernel library, it opens both at run time.
 *
 *   device plugin   libheddle_simt.so, libheddle_cuda.so      exports heddle_device_plugin()
 *   kernel library  built from generated/, one per target      exports heddle_kernel_library()
 *
 * Every fallible function returns 0 on success; otherwise it fills *error and returns its status. No function throws
 * across the interface, ends the process or prints.
 */
#ifndef HEDDLE_ABI_H
#define HEDDLE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_ABI_VERSION 3u

typedef enum heddle_status {
  HEDDLE_OK = 0,
  HEDDLE_INVALID = 1,     /* an argument is wrong: the caller's fault */
  HEDDLE_UNAVAILABLE = 2, /* no such device, library or feature on this machine */
  HEDDLE_MEMORY = 3,      /* out of device memory */
  HEDDLE_FAULT = 4,       /* a kernel did something wrong: out of bounds, divergent barrier, data race */
  HEDDLE_DEVICE = 5       /* the device or its driver reported an error */
} heddle_status;

typedef struct heddle_error {
  int32_t status;
  char message[1024]; /* one line, NUL-terminated, says what was wrong and with what value */
} heddle_error;

/* Storage types, in the order of src/ir/dtype.ts. */
typedef enum heddle_dtype {
  HEDDLE_F32 = 0,
  HEDDLE_F16 = 1,
  HEDDLE_BF16 = 2,
  HEDDLE_I32 = 3,
  HEDDLE_I8 = 4,
  HEDDLE_U8 = 5,
  HEDDLE_F8E4M3 = 6,
  HEDDLE_F8E5M2 = 7,
  HEDDLE_I16 = 8,
  HEDDLE_U32 = 9,
  HEDDLE_I64 = 10
} heddle_dtype;

/* A range of device memory with its size, for devices that check accesses. */
typedef struct heddle_slice {
  void* data;
  uint64_t bytes;
} heddle_slice;

/* ---- kernel libraries ------------------------------------------------------------------------------------------- */

/*
 * Writers of a buffer. A launch starts once all launches before the previous one are complete, and may prefetch buffers that the previous one does
 * not write.
 */
typedef enum heddle_constancy {
  HEDDLE_CHANGING = 0, /* the previous launch may write it: it is read once that is complete */
  HEDDLE_CONSTANT = 1, /* no concurrent launch writes it: it may be prefetched, and read through a read-only path */
  HEDDLE_SETTLED = 2   /* earlier launches write it, or this one, but not the previous one: it may be prefetched */
} heddle_constancy;

/* Arguments of a launcher, in the order of the manifest: buffers, dims, attrs. */
typedef struct heddle_launch {
  void* queue; /* the plugin's native queue: cudaStream_t, or heddle_simt_executor* */
  const heddle_slice* buffers;
  const int64_t* dims;
  const double* attrs;
  uint32_t buffer_count;
  uint32_t dim_count;
  uint32_t attr_count;
  /* A heddle_constancy per buffer. Null: each may be written at any time. */
  const uint8_t* constants;
} heddle_launch;

typedef int32_t (*heddle_launcher)(const heddle_launch* launch, heddle_error* error);

typedef struct heddle_kernel {
  const char* key;    /* the instance key: layer_norm__f16 */
  const char* digest; /* of the generated source, as in the manifest */
  uint32_t buffer_count;
  uint32_t dim_count;
  uint32_t attr_count;
  heddle_launcher launch;
  const char* access; /* one letter per buffer: r if it is read, w if it is written */
} heddle_kernel;

typedef struct heddle_kernel_library_info {
  uint32_t abi_version;
  const char* target; /* "simt" or "cuda" */
  uint32_t kernel_count;
  const heddle_kernel* kernels; /* sorted by key */
} heddle_kernel_library_info;

typedef const heddle_kernel_library_info* (*heddle_kernel_library_fn)(void);

/* ---- simt executor ---------------------------------------------------------------------------------------------- */

/*
 * Access of a kernel library to the simt plugin's worker threads: run(i) for every i in [0, count), any order, in parallel. Returns the first
 * non-zero result of run; the others may be skipped then.
 */
typedef struct heddle_simt_executor {
  void* self;
  int32_t (*parallel_for)(void* self, int64_t count, int32_t (*run)(void* data, int64_t index, heddle_error* error), void* data,
                          heddle_error* error);
} heddle_simt_executor;

/* ---- device plugins --------------------------------------------------------------------------------------------- */

typedef struct heddle_device heddle_device;
typedef struct heddle_queue heddle_queue;   /* work runs in order */
typedef struct heddle_graph heddle_graph;   /* a captured sequence of work, replayed with one call */
typedef struct heddle_event heddle_event;

typedef struct heddle_device_info {
  char name[256];
  uint64_t memory_bytes;      /* total */
  uint64_t memory_free_bytes; /* at the time of the call */
  int32_t compute_major;      /* 0 on simt */
  int32_t compute_minor;
  int32_t multiprocessors; /* worker threads on simt */
  int32_t driver_version;  /* 0 on simt */
  int32_t runtime_version;
  int32_t matmul_version; /* cuBLASLt's version; 0 if absent or on simt */
} heddle_device_info;

/*
 * out[b, m, n] = sum over k of a[b, m, k] * b[b, n, k] + bias[n] + residual[b, m, n], clamped at 0 from below with relu, accumulated in float32
 * (int32 for int8) and rounded once. The sum before the bias may be rounded to out's type as well. Strides are in elements; in each operand one of
 * its two inner strides is 1. bias and residual have out's type, which is a float then, as with relu, and are absent if their data is null. bias is n
 * contiguous elements; residual has the strides of out.
 */
typedef struct heddle_matmul {
  heddle_slice a, b, out;
  heddle_slice bias, residual;
  int32_t dtype_a, dtype_b, dtype_out; /* heddle_dtype */
  int32_t allow_tf32;                  /* 0: float32 matmuls compute in float32 */
  int32_t relu;                        /* not 0: relu is applied last */
  int64_t batch, m, n, k;
  int64_t a_batch, a_m, a_k;
  int64_t b_batch, b_n, b_k;
  int64_t out_batch, out_m, out_n;
} heddle_matmul;

typedef struct heddle_device_api {
  uint32_t abi_version;
  const char* kind; /* "simt" or "cuda" */

  int32_t (*open)(int32_t ordinal, heddle_device** device, heddle_error* error);
  void (*close)(heddle_device* device);
  int32_t (*info)(heddle_device* device, heddle_device_info* info, heddle_error* error);

  /* Device memory comes from a pool; data is aligned to 256 bytes. */
  int32_t (*allocate)(heddle_device* device, uint64_t bytes, void** data, heddle_error* error);
  int32_t (*release)(heddle_device* device, void* data, heddle_error* error);

  int32_t (*queue_create)(heddle_device* device, heddle_queue** queue, heddle_error* error);
  void (*queue_destroy)(heddle_queue* queue);
  /* The handle launchers receive in heddle_launch.queue. */
  void* (*queue_native)(heddle_queue* queue);
  /* Waits until all work on the queue is done; reports errors of that work. */
  int32_t (*queue_wait)(heddle_queue* queue, heddle_error* error);

  /* In queue order. Host memory must stay valid until queue_wait. */
  int32_t (*copy_in)(heddle_queue* queue, void* device_data, const void* host, uint64_t bytes, heddle_error* error);
  int32_t (*copy_out)(heddle_queue* queue, void* host, const void* device_data, uint64_t bytes, heddle_error* error);
  int32_t (*copy)(heddle_queue* queue, void* to, const void* from, uint64_t bytes, heddle_error* error);
  int32_t (*fill)(heddle_queue* queue, void* device_data, uint8_t value, uint64_t bytes, heddle_error* error);
  int32_t (*matmul)(heddle_queue* queue, const heddle_matmul* matmul, heddle_error* error);

  /* Work enqueued between begin and end is recorded instead of run. On simt capture is not supported: begin returns
     HEDDLE_UNAVAILABLE and the caller runs the steps themselves. */
  int32_t (*graph_begin)(heddle_queue* queue, heddle_error* error);
  int32_t (*graph_end)(heddle_queue* queue, heddle_graph** graph, heddle_error* error);
  int32_t (*graph_launch)(heddle_graph* graph, heddle_queue* queue, heddle_error* error);
  void (*graph_destroy)(heddle_graph* graph);

  int32_t (*event_create)(heddle_device* device, heddle_event** event, heddle_error* error);
  int32_t (*event_record)(heddle_event* event, heddle_queue* queue, heddle_error* error);
  /* Milliseconds between two events whose work is done. */
  int32_t (*event_elapsed)(heddle_event* from, heddle_event* to, float* milliseconds, heddle_error* error);
  void (*event_destroy)(heddle_event* event);
} heddle_device_api;

typedef const heddle_device_api* (*heddle_device_plugin_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
