/* tracegraph_load.h: runs a program that tracegraph has written for C, as one CUDA graph.

   In one C file of yours, define TG_IMPLEMENTATION before this header is included; others include
   it as it is. The implementation is C11 for 64-bit little-endian POSIX systems, and needs libdl
   only: it finds libcuda at run time, and no header of CUDA.

       tg_program *program;
       if (tg_open("step.tgf", 0, &program)) return puts(tg_error()), 1;
       tg_address inputs[] = {x, y}, outputs[] = {z};          // device addresses, as CUdeviceptr
       if (tg_run(program, inputs, outputs, stream)) return puts(tg_error()), 1;
       if (tg_wait(program, stream)) return puts(tg_error()), 1;
       tg_close(program);

   A file is code that runs on the GPU: open only what you would run. Numbers in it are checked
   before they are used, so that a damaged file is an error. */

#ifndef TRACEGRAPH_LOAD_H
#define TRACEGRAPH_LOAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tg_program tg_program;

/* An address in device memory: a CUdeviceptr. */
typedef unsigned long long tg_address;

typedef enum tg_status {
  TG_OK = 0,
  TG_ERROR_FILE,     /* it cannot be read */
  TG_ERROR_DAMAGED,  /* it is no such file, was truncated or changed */
  TG_ERROR_VERSION,  /* it is of a version that this header does not read */
  TG_ERROR_DRIVER,   /* there is no driver, or one that is too old */
  TG_ERROR_DEVICE,   /* there is no such device, or one of another architecture */
  TG_ERROR_MEMORY,   /* the host or the device has not enough memory */
  TG_ERROR_ARGUMENT, /* an argument of a call here cannot be right */
  TG_ERROR_CHECK,    /* a check of the program has failed in a launch */
  TG_ERROR_STOPPED,  /* its loops were ended by tg_stop */
  TG_ERROR_CUDA      /* the driver refuses, or the device has failed */
} tg_status;

/* An argument or a result: a contiguous array in row-major order. */
typedef struct tg_array {
  const char *name;
  const char *dtype;     /* as NumPy has it: "float32" */
  uint32_t axis_count;
  const uint64_t *shape; /* an extent for each axis */
  uint64_t nbytes;
  uint32_t alignment;    /* addresses are multiples of it */
  int by_value;          /* an argument: tg_set may give it */
  int64_t over;          /* a result: the argument that it is written over, or -1 */
} tg_array;

/* What went wrong in the last call in this thread that has failed. */
const char *tg_error(void);

/* Load the file at a path to the device of a number. Waits for the device. */
tg_status tg_open(const char *path, int device, tg_program **program);

/* The same of a file in memory, at a multiple of 8, which must stay there until tg_close. */
tg_status tg_open_bytes(const void *file, size_t nbytes, int device, tg_program **program);

/* Wait for launches, and free everything. NULL is left alone. */
void tg_close(tg_program *program);

const char *tg_name(const tg_program *program);
uint32_t tg_input_count(const tg_program *program);
uint32_t tg_output_count(const tg_program *program);

/* What an argument or a result is; NULL if there is none of the number. */
const tg_array *tg_input(const tg_program *program, uint32_t number);
const tg_array *tg_output(const tg_program *program, uint32_t number);

/* Copy the value of a small argument from host memory. Launches use it where their address of the
   argument is 0. Before the first call, the value is zero. */
tg_status tg_set(tg_program *program, uint32_t number, const void *value);

/* Launch on a stream (a CUstream, 0 is the default one), without waiting. Arguments and results are
   device addresses by number. A result that is written over an argument may have the address of
   that; else the argument is copied first, and stays as it is. No other result may overlap any
   array.
   If a check has failed in an earlier launch, that is returned, and nothing is launched.
   One thread may use a program at a time. Its launches run one after the other, on any streams;
   those of two programs with loops must not run at the same time. */
tg_status tg_run(tg_program *program, const tg_address *inputs, const tg_address *outputs,
                 void *stream);

/* Wait for a stream, and return whether a check has failed. */
tg_status tg_wait(tg_program *program, void *stream);

/* End the loops of launches in flight, from any thread. tg_wait returns TG_ERROR_STOPPED then, for
   all that were launched before the first tg_run behind a tg_wait that has said so. */
tg_status tg_stop(tg_program *program);

#ifdef __cplusplus
}
#endif

#endif

#ifdef TG_IMPLEMENTATION

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(void *) == 8, "tracegraph_load.h needs a 64-bit system");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "and a little-endian one");

#ifndef TG_LIBCUDA
#define TG_LIBCUDA "libcuda.so.1"
#endif

/* The layout of files: generated, as lowering/cuda/recipe/flat/layout.py has it. */
#define TG_VERSION 1u
#define TG_ALIGNMENT 64u
#define TG_NONE 0xffffffffu
/* The file: arch is 90 for sm_90; cuda the oldest driver, 13000 for 13.0; checksum the CRC-32 of
   all behind the header. */
struct tg_header_record {
  uint8_t magic[8];
  uint32_t version;
  uint32_t arch;
  uint32_t cuda;
  uint32_t section_count;
  uint64_t nbytes;
  uint64_t sections;
  uint32_t checksum;
  uint32_t unused;
  uint64_t reserved[2];
};
_Static_assert(sizeof(struct tg_header_record) == 64, "header");
/* Where the records of a section are. */
struct tg_section_record {
  uint64_t offset;
  uint64_t count;
  uint32_t record_bytes;
  uint32_t reserved;
};
_Static_assert(sizeof(struct tg_section_record) == 24, "section");
/* The one program: bytes of memory, how many graphs there are, and the node that writes small
   inputs. */
struct tg_program_record {
  uint64_t arena_bytes;
  uint64_t fixed_bytes;
  uint64_t constant_bytes;
  uint32_t name;
  uint32_t per_launch;
  uint32_t graph_count;
  uint32_t monitor_count;
  uint32_t load;
  uint32_t reserved;
};
_Static_assert(sizeof(struct tg_program_record) == 48, "program");
/* A cubin in the data. */
struct tg_code_record {
  uint64_t data;
  uint64_t nbytes;
};
_Static_assert(sizeof(struct tg_code_record) == 16, "code");
/* A kernel of a cubin. */
struct tg_function_record {
  uint32_t code;
  uint32_t name;
};
_Static_assert(sizeof(struct tg_function_record) == 8, "function");
/* A constant in the data, and its place. */
struct tg_constant_record {
  uint64_t offset;
  uint64_t nbytes;
  uint64_t data;
};
_Static_assert(sizeof(struct tg_constant_record) == 24, "constant");
/* A condition, of the graph of its node. */
struct tg_condition_record {
  uint32_t graph;
};
_Static_assert(sizeof(struct tg_condition_record) == 4, "condition");
/* A node of a graph; what other kinds of nodes have not is zero. */
struct tg_node_record {
  uint32_t kind;
  uint32_t graph;
  uint32_t label;
  uint32_t first_edge;
  uint32_t edge_count;
  uint32_t function;
  uint32_t first_parameter;
  uint32_t parameter_count;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t shared_bytes;
  uint32_t cooperative;
  uint32_t adapts;
  uint32_t condition;
  uint32_t body_count;
};
_Static_assert(sizeof(struct tg_node_record) == 88, "node");
/* A node that another one depends on. */
struct tg_edge_record {
  uint32_t before;
  uint32_t programmatic;
};
_Static_assert(sizeof(struct tg_edge_record) == 8, "edge");
/* A word that a kernel is passed. */
struct tg_parameter_record {
  uint32_t base;
  uint32_t index;
  uint64_t offset;
};
_Static_assert(sizeof(struct tg_parameter_record) == 16, "parameter");
/* An argument: its type, and the parameters of the load node that have its value. */
struct tg_input_record {
  uint64_t nbytes;
  uint64_t slot_offset;
  uint32_t name;
  uint32_t dtype;
  uint32_t axis_count;
  uint32_t first_extent;
  uint32_t alignment;
  uint32_t slot_parameter;
  uint32_t slot_words;
  uint32_t reserved;
};
_Static_assert(sizeof(struct tg_input_record) == 48, "input");
/* A result, and the number of the input that it is written over. */
struct tg_output_record {
  uint64_t nbytes;
  uint32_t name;
  uint32_t dtype;
  uint32_t axis_count;
  uint32_t first_extent;
  uint32_t over;
  uint32_t reserved;
};
_Static_assert(sizeof(struct tg_output_record) == 32, "output");
/* An extent of a shape. */
struct tg_extent_record {
  uint64_t extent;
};
_Static_assert(sizeof(struct tg_extent_record) == 8, "extent");
/* An error that a check reports. */
struct tg_failure_record {
  uint32_t error;
  uint32_t message;
};
_Static_assert(sizeof(struct tg_failure_record) == 8, "failure");
/* A byte of text. */
struct tg_text_record {
  uint8_t byte;
};
_Static_assert(sizeof(struct tg_text_record) == 1, "text");
/* A byte of a cubin or a constant. */
struct tg_data_record {
  uint8_t byte;
};
_Static_assert(sizeof(struct tg_data_record) == 1, "data");
enum {
  TG_SECTION_PROGRAM, TG_SECTION_CODE, TG_SECTION_FUNCTION, TG_SECTION_CONSTANT,
  TG_SECTION_CONDITION, TG_SECTION_NODE, TG_SECTION_EDGE, TG_SECTION_PARAMETER,
  TG_SECTION_INPUT, TG_SECTION_OUTPUT, TG_SECTION_EXTENT, TG_SECTION_FAILURE, TG_SECTION_TEXT,
  TG_SECTION_DATA, TG_SECTION_COUNT
};
enum {
  TG_NODE_KERNEL, TG_NODE_IF_ELSE, TG_NODE_WHILE, TG_NODE_SWITCH, TG_NODE_ALLOCATE,
  TG_NODE_FREE, TG_NODE_COUNT
};
enum {
  TG_BASE_NUMBER, TG_BASE_INPUT, TG_BASE_OUTPUT, TG_BASE_ARENA, TG_BASE_FIXED,
  TG_BASE_CONSTANTS, TG_BASE_CONDITION, TG_BASE_STOP_FLAG, TG_BASE_FAILURE, TG_BASE_STEPS,
  TG_BASE_COUNT
};
static const unsigned char tg_magic[8] = {
  84, 71, 82, 65, 80, 72, 0, 1
};
static const uint32_t tg_record_bytes[TG_SECTION_COUNT] = {
  48, 16, 8, 24, 4, 88, 8, 16, 48, 32, 8, 8, 1, 1
};
static const char *const tg_section_names[TG_SECTION_COUNT] = {
  "program", "code", "function", "constant", "condition", "node", "edge", "parameter", "input",
  "output", "extent", "failure", "text", "data"
};
/* End of what is generated. */

/* Errors */

static _Thread_local char tg_last_error[1024];

const char *tg_error(void) { return tg_last_error; }

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static tg_status tg_fail(tg_status status, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(tg_last_error, sizeof tg_last_error, format, values);
  va_end(values);
  return status;
}

/* The driver: its functions, and the few of its structs that are used, as cuda.h has them. */

typedef struct tg_cu_object *tg_cu; /* any handle */

typedef struct tg_cu_kernel {
  tg_cu func;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters, **extra;
  tg_cu kernel, context;
} tg_cu_kernel;

typedef struct tg_cu_allocation {
  int allocation_type, handle_types, location_type, location;
  void *security;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
  const void *access;
  size_t access_count, nbytes;
  tg_address pointer;
} tg_cu_allocation;

typedef struct tg_cu_conditional {
  unsigned long long handle;
  int kind;
  unsigned body_count;
  tg_cu *bodies;
  tg_cu context;
} tg_cu_conditional;

typedef struct tg_cu_node {
  int kind, reserved0[3];
  union {
    long long reserved1[29];
    tg_cu_kernel kernel;
    tg_cu_allocation allocation;
    tg_cu_conditional conditional;
    tg_address free;
  } of;
  long long reserved2;
} tg_cu_node;

typedef struct tg_cu_edge {
  unsigned char from_port, to_port, kind, reserved[5];
} tg_cu_edge;

typedef union tg_cu_attribute {
  char reserved[64];
  unsigned cluster[3];
  int cooperative;
} tg_cu_attribute;

_Static_assert(sizeof(tg_cu_kernel) == 72, "CUDA_KERNEL_NODE_PARAMS_v3");
_Static_assert(sizeof(tg_cu_allocation) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS_v2");
_Static_assert(sizeof(tg_cu_conditional) == 32, "CUDA_CONDITIONAL_NODE_PARAMS");
_Static_assert(sizeof(tg_cu_node) == 256, "CUgraphNodeParams");
_Static_assert(sizeof(tg_cu_edge) == 8, "CUgraphEdgeData");

enum {
  TG_CU_OUT_OF_MEMORY = 2,
  TG_CU_MULTIPROCESSORS = 16,
  TG_CU_MAJOR = 75,
  TG_CU_MINOR = 76,
  TG_CU_SHARED_BYTES = 8,
  TG_CU_COOPERATIVE = 2,
  TG_CU_CLUSTER = 4,
  TG_CU_NODE_KERNEL = 0,
  TG_CU_NODE_ALLOCATE = 10,
  TG_CU_NODE_FREE = 11,
  TG_CU_NODE_CONDITIONAL = 13,
  TG_CU_PINNED = 1,
  TG_CU_ON_DEVICE = 1,
  TG_CU_PROGRAMMATIC = 1,
  TG_CU_PORTABLE_AND_MAPPED = 3,
  TG_CU_NON_BLOCKING = 1,
  TG_CU_NOT_TIMED = 2
};

/* More parameters than a kernel can have, and more words than these can be. */
#define TG_PARAMETERS 8192u

/* Dynamic shared memory that a kernel may have without asking. */
#define TG_SHARED_BYTES (48u * 1024u)

#define TG_DRIVER(F)                                                                               \
  F(cuInit, (unsigned))                                                                            \
  F(cuDriverGetVersion, (int *))                                                                   \
  F(cuGetErrorName, (int, const char **))                                                          \
  F(cuGetErrorString, (int, const char **))                                                        \
  F(cuDeviceGet, (int *, int))                                                                     \
  F(cuDeviceGetCount, (int *))                                                                     \
  F(cuDeviceGetAttribute, (int *, int, int))                                                       \
  F(cuDevicePrimaryCtxRetain, (tg_cu *, int))                                                      \
  F(cuDevicePrimaryCtxRelease_v2, (int))                                                           \
  F(cuCtxPushCurrent_v2, (tg_cu))                                                                  \
  F(cuCtxPopCurrent_v2, (tg_cu *))                                                                 \
  F(cuCtxSynchronize, (void))                                                                      \
  F(cuStreamCreate, (tg_cu *, unsigned))                                                           \
  F(cuStreamDestroy_v2, (tg_cu))                                                                   \
  F(cuStreamSynchronize, (tg_cu))                                                                  \
  F(cuStreamWaitEvent, (tg_cu, tg_cu, unsigned))                                                   \
  F(cuEventCreate, (tg_cu *, unsigned))                                                            \
  F(cuEventDestroy_v2, (tg_cu))                                                                    \
  F(cuEventRecord, (tg_cu, tg_cu))                                                                 \
  F(cuMemAlloc_v2, (tg_address *, size_t))                                                         \
  F(cuMemFree_v2, (tg_address))                                                                    \
  F(cuMemHostAlloc, (void **, size_t, unsigned))                                                   \
  F(cuMemFreeHost, (void *))                                                                       \
  F(cuMemsetD8_v2, (tg_address, unsigned char, size_t))                                            \
  F(cuMemsetD32Async, (tg_address, unsigned, size_t, tg_cu))                                       \
  F(cuMemcpyHtoD_v2, (tg_address, const void *, size_t))                                           \
  F(cuMemcpyDtoDAsync_v2, (tg_address, tg_address, size_t, tg_cu))                                 \
  F(cuLibraryLoadData,                                                                             \
    (tg_cu *, const void *, void *, void *, unsigned, void *, void *, unsigned))                   \
  F(cuLibraryUnload, (tg_cu))                                                                      \
  F(cuLibraryGetKernel, (tg_cu *, tg_cu, const char *))                                            \
  F(cuKernelGetParamInfo, (tg_cu, size_t, size_t *, size_t *))                                     \
  F(cuKernelSetAttribute, (int, int, tg_cu, int))                                                  \
  F(cuGraphCreate, (tg_cu *, unsigned))                                                            \
  F(cuGraphDestroy, (tg_cu))                                                                       \
  F(cuGraphConditionalHandleCreate, (unsigned long long *, tg_cu, tg_cu, unsigned, unsigned))      \
  F(cuGraphAddNode_v2, (tg_cu *, tg_cu, const tg_cu *, const tg_cu_edge *, size_t, tg_cu_node *))  \
  F(cuGraphKernelNodeSetAttribute, (tg_cu, int, const tg_cu_attribute *))                          \
  F(cuGraphInstantiateWithFlags, (tg_cu *, tg_cu, unsigned long long))                             \
  F(cuGraphExecDestroy, (tg_cu))                                                                   \
  F(cuGraphExecKernelNodeSetParams_v2, (tg_cu, tg_cu, const tg_cu_kernel *))                       \
  F(cuGraphUpload, (tg_cu, tg_cu))                                                                 \
  F(cuGraphLaunch, (tg_cu, tg_cu))

typedef struct tg_driver {
  void *library;
#define TG_MEMBER(name, parameters) int(*name) parameters;
  TG_DRIVER(TG_MEMBER)
#undef TG_MEMBER
} tg_driver;

/* A parameter of a kernel node that holds an address which a call gives: the number of an argument,
   or of a result behind all arguments. */
typedef struct tg_use {
  uint32_t node, cell, array;
} tg_use;

struct tg_program {
  /* the file, and whether it is mapped */
  const unsigned char *file;
  size_t nbytes;
  int is_mapped;
  uint64_t counts[TG_SECTION_COUNT];
  const struct tg_program_record *program;
  const struct tg_code_record *codes;
  const struct tg_function_record *functions;
  const struct tg_constant_record *constants;
  const struct tg_condition_record *conditions;
  const struct tg_node_record *nodes;
  const struct tg_edge_record *edges;
  const struct tg_parameter_record *parameters;
  const struct tg_input_record *inputs;
  const struct tg_output_record *outputs;
  const struct tg_extent_record *extents;
  const struct tg_failure_record *failures;
  const char *text;
  const unsigned char *data;
  tg_array *arrays;
  /* the device */
  tg_driver cuda;
  int device;
  tg_cu context;
  tg_cu *libraries, *kernels;
  tg_address arena, fixed, constant_memory, stop_flag;
  volatile uint64_t *mailbox; /* the failure, and steps of monitors, in pinned memory */
  tg_cu stop_stream;            /* in whose order the stop flag is written */
  tg_cu over;                   /* the event behind the last launch, if the graph reads the flag */
  atomic_int stopping, stopped; /* calls of tg_stop that go on; whether the flag is to be cleared */
  atomic_int unsaid;            /* whether tg_wait has to tell of a stop ... */
  int said, reads_flag;         /* ... and has told of it */
  /* the graph */
  tg_cu graph, executable;
  tg_cu *graphs, *added;
  unsigned long long *handles; /* of conditions */
  int *shared_bytes;           /* that each function was allowed */
  tg_cu_kernel *kernel_nodes;
  uint64_t *cells;  /* the words of all parameters, and where each is */
  void **addresses; /* of those */
  /* what its nodes hold */
  tg_use *uses;
  size_t use_count;
  tg_address *bound, *wanted;
  int values_are_stale;
};

static tg_status tg_no_memory(void) {
  return tg_fail(TG_ERROR_MEMORY, "the host has not enough memory for the records of the program");
}

static tg_status tg_cuda_error(const tg_program *p, int code, const char *call, const char *what) {
  const char *name = NULL, *text = NULL;
  p->cuda.cuGetErrorName(code, &name);
  p->cuda.cuGetErrorString(code, &text);
  return tg_fail(code == TG_CU_OUT_OF_MEMORY ? TG_ERROR_MEMORY : TG_ERROR_CUDA,
                 "%s gives %s (%s)%s%s", call, name ? name : "an unknown error",
                 text ? text : "no text", what[0] ? " for " : "", what);
}

/* Call the driver, and return from the function if that fails. */
#define TG_CALL_FOR(p, what, name, arguments)                                                      \
  do {                                                                                             \
    int tg_code = (p)->cuda.name arguments;                                                        \
    if (tg_code) return tg_cuda_error(p, tg_code, #name, what);                                    \
  } while (0)
#define TG_CALL(p, name, arguments) TG_CALL_FOR(p, "", name, arguments)
#define TG_TRY(call)                                                                               \
  do {                                                                                             \
    tg_status tg_result = (call);                                                                  \
    if (tg_result) return tg_result;                                                               \
  } while (0)

/* Checks of a file: after them, no number in it leads out of it. */

static uint32_t tg_crc(const unsigned char *bytes, size_t count) {
  static _Thread_local uint32_t table[8][256];
  uint32_t crc = 0xffffffffu;
  if (!table[0][1]) {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t word = i;
      for (int bit = 0; bit < 8; ++bit) word = (word >> 1) ^ (word & 1 ? 0xedb88320u : 0);
      table[0][i] = word;
    }
    for (int k = 1; k < 8; ++k) {
      for (uint32_t i = 0; i < 256; ++i) {
        table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 255];
      }
    }
  }
  for (; count >= 8; bytes += 8, count -= 8) { /* eight bytes at a time */
    uint64_t word;
    memcpy(&word, bytes, 8);
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= table[7 - k][(word >> (8 * k)) & 255];
  }
  for (; count; ++bytes, --count) crc = (crc >> 8) ^ table[0][(crc ^ *bytes) & 255];
  return ~crc;
}

#define TG_DAMAGED(...) tg_fail(TG_ERROR_DAMAGED, "the file is damaged: " __VA_ARGS__)

/* Whether a range is inside of a whole, without overflow. */
static int tg_within(uint64_t start, uint64_t count, uint64_t whole) {
  return start <= whole && count <= whole - start;
}

static tg_status tg_check_header(tg_program *p) {
  const struct tg_header_record *head = (const void *)p->file;
  if ((uintptr_t)p->file % 8) {
    return tg_fail(TG_ERROR_ARGUMENT, "the file is at %p, it must be at a multiple of 8",
                   (const void *)p->file);
  }
  if (p->nbytes < sizeof *head || memcmp(head->magic, tg_magic, sizeof tg_magic)) {
    return TG_DAMAGED("it does not begin as one that Exported.save_flat has written");
  }
  if (head->version != TG_VERSION) {
    return tg_fail(TG_ERROR_VERSION,
                   "the file is of version %u, this header reads version %u; take the header of "
                   "the tracegraph that has written it", head->version, TG_VERSION);
  }
  if (head->nbytes != p->nbytes) {
    return TG_DAMAGED("it has %llu bytes, and was written with %llu",
                      (unsigned long long)p->nbytes, (unsigned long long)head->nbytes);
  }
  if (tg_crc(p->file + sizeof *head, p->nbytes - sizeof *head) != head->checksum) {
    return TG_DAMAGED("its checksum is another");
  }
  if (head->section_count != TG_SECTION_COUNT || head->sections % 8 ||
      !tg_within(head->sections, sizeof(struct tg_section_record) * TG_SECTION_COUNT, p->nbytes)) {
    return TG_DAMAGED("its table of sections");
  }
  const struct tg_section_record *sections = (const void *)(p->file + head->sections);
  const void *starts[TG_SECTION_COUNT];
  for (int i = 0; i < TG_SECTION_COUNT; ++i) {
    const struct tg_section_record *s = &sections[i];
    int is_bytes = i == TG_SECTION_TEXT || i == TG_SECTION_DATA;
    if (s->record_bytes != tg_record_bytes[i] || s->offset % TG_ALIGNMENT ||
        s->offset > p->nbytes || s->count > (p->nbytes - s->offset) / s->record_bytes ||
        (!is_bytes && s->count >= TG_NONE)) {
      return TG_DAMAGED("its section of %s records", tg_section_names[i]);
    }
    starts[i] = p->file + s->offset;
    p->counts[i] = s->count;
  }
  p->program = starts[TG_SECTION_PROGRAM];
  p->codes = starts[TG_SECTION_CODE];
  p->functions = starts[TG_SECTION_FUNCTION];
  p->constants = starts[TG_SECTION_CONSTANT];
  p->conditions = starts[TG_SECTION_CONDITION];
  p->nodes = starts[TG_SECTION_NODE];
  p->edges = starts[TG_SECTION_EDGE];
  p->parameters = starts[TG_SECTION_PARAMETER];
  p->inputs = starts[TG_SECTION_INPUT];
  p->outputs = starts[TG_SECTION_OUTPUT];
  p->extents = starts[TG_SECTION_EXTENT];
  p->failures = starts[TG_SECTION_FAILURE];
  p->text = starts[TG_SECTION_TEXT];
  p->data = starts[TG_SECTION_DATA];
  uint64_t text = p->counts[TG_SECTION_TEXT];
  if (p->counts[TG_SECTION_PROGRAM] != 1 || !text || p->text[text - 1]) {
    return TG_DAMAGED("its program or its text");
  }
  return TG_OK;
}

static int tg_is_text(const tg_program *p, uint32_t offset) {
  return offset < p->counts[TG_SECTION_TEXT];
}

static int tg_is_shape(const tg_program *p, uint32_t first, uint32_t count, uint64_t expected) {
  return first == expected && tg_within(first, count, p->counts[TG_SECTION_EXTENT]);
}

static tg_status tg_check_records(const tg_program *p) {
  const uint64_t *counts = p->counts;
  const struct tg_program_record *program = p->program;
  uint64_t extents = 0;
  int loads = program->load < counts[TG_SECTION_NODE];
  if (!tg_is_text(p, program->name) || !program->graph_count ||
      program->graph_count > p->nbytes || program->monitor_count > p->nbytes ||
      (program->load != TG_NONE && !loads) ||
      (loads && p->nodes[program->load].kind != TG_NODE_KERNEL)) {
    return TG_DAMAGED("what it says of the program");
  }
  for (uint64_t i = 0; i < counts[TG_SECTION_CODE]; ++i) {
    if (!p->codes[i].nbytes ||
        !tg_within(p->codes[i].data, p->codes[i].nbytes, counts[TG_SECTION_DATA])) {
      return TG_DAMAGED("cubin %llu", (unsigned long long)i);
    }
  }
  for (uint64_t i = 0; i < counts[TG_SECTION_FUNCTION]; ++i) {
    if (p->functions[i].code >= counts[TG_SECTION_CODE] || !tg_is_text(p, p->functions[i].name)) {
      return TG_DAMAGED("function %llu", (unsigned long long)i);
    }
  }
  for (uint64_t i = 0; i < counts[TG_SECTION_CONSTANT]; ++i) {
    const struct tg_constant_record *c = &p->constants[i];
    if (!tg_within(c->offset, c->nbytes, program->constant_bytes) ||
        !tg_within(c->data, c->nbytes, counts[TG_SECTION_DATA])) {
      return TG_DAMAGED("constant %llu", (unsigned long long)i);
    }
  }
  for (uint64_t i = 0; i < counts[TG_SECTION_CONDITION]; ++i) {
    if (p->conditions[i].graph >= program->graph_count) {
      return TG_DAMAGED("condition %llu", (unsigned long long)i);
    }
  }
  for (uint64_t i = 0; i < counts[TG_SECTION_INPUT]; ++i) {
    const struct tg_input_record *in = &p->inputs[i];
    int has_slot = in->slot_words != 0;
    if (!tg_is_text(p, in->name) || !tg_is_text(p, in->dtype) || !in->alignment ||
        !tg_is_shape(p, in->first_extent, in->axis_count, extents) ||
        (has_slot && (!loads || in->nbytes > 8 * (uint64_t)in->slot_words ||
                      !tg_within(in->slot_parameter, in->slot_words,
                                 p->nodes[program->load].parameter_count) ||
                      !tg_within(in->slot_offset, 8 * (uint64_t)in->slot_words,
                                 program->fixed_bytes)))) {
      return TG_DAMAGED("input %llu", (unsigned long long)i);
    }
    extents += in->axis_count;
  }
  for (uint64_t i = 0; i < counts[TG_SECTION_OUTPUT]; ++i) {
    const struct tg_output_record *out = &p->outputs[i];
    if (!tg_is_text(p, out->name) || !tg_is_text(p, out->dtype) ||
        !tg_is_shape(p, out->first_extent, out->axis_count, extents) ||
        (out->over != TG_NONE && (out->over >= counts[TG_SECTION_INPUT] ||
                                  p->inputs[out->over].nbytes != out->nbytes))) {
      return TG_DAMAGED("output %llu", (unsigned long long)i);
    }
    extents += out->axis_count;
  }
  for (uint64_t i = 0; i < counts[TG_SECTION_FAILURE]; ++i) {
    const struct tg_failure_record *failure = &p->failures[i];
    if (!tg_is_text(p, failure->error) || !tg_is_text(p, failure->message)) {
      return TG_DAMAGED("failure %llu", (unsigned long long)i);
    }
  }
  return TG_OK;
}

/* Whether a parameter of a node that comes when `graphs` graphs are there can be computed. */
static int tg_is_parameter(const tg_program *p, const struct tg_parameter_record *word,
                           uint32_t graphs) {
  uint64_t bytes = 0;
  switch (word->base) {
    case TG_BASE_NUMBER: return 1;
    case TG_BASE_INPUT:
      if (word->index >= p->counts[TG_SECTION_INPUT]) return 0;
      bytes = p->inputs[word->index].nbytes;
      break;
    case TG_BASE_OUTPUT:
      if (word->index >= p->counts[TG_SECTION_OUTPUT]) return 0;
      if (p->outputs[word->index].over != TG_NONE) return 0;
      bytes = p->outputs[word->index].nbytes;
      break;
    case TG_BASE_ARENA: bytes = p->program->arena_bytes; break;
    case TG_BASE_FIXED: bytes = p->program->fixed_bytes; break;
    case TG_BASE_CONSTANTS: bytes = p->program->constant_bytes; break;
    case TG_BASE_CONDITION:
      return word->index < p->counts[TG_SECTION_CONDITION] &&
             p->conditions[word->index].graph < graphs && !word->offset;
    case TG_BASE_STOP_FLAG:
    case TG_BASE_FAILURE: return !word->offset;
    case TG_BASE_STEPS: return word->index < p->program->monitor_count && !word->offset;
    default: return 0;
  }
  return word->offset <= bytes;
}

static tg_status tg_check_node(const tg_program *p, uint32_t i, uint32_t graphs) {
  static const uint32_t bodies[TG_NODE_COUNT] = {
      [TG_NODE_IF_ELSE] = 2, [TG_NODE_WHILE] = 1, [TG_NODE_SWITCH] = 1};
  const struct tg_node_record *node = &p->nodes[i];
  const struct tg_edge_record *edges = &p->edges[node->first_edge];
  if (node->kind >= TG_NODE_COUNT) {
    return tg_fail(TG_ERROR_VERSION, "node %u is of kind %u, which this header does not know", i,
                   node->kind);
  }
  int is_kernel = node->kind == TG_NODE_KERNEL;
  if (node->graph >= graphs || !tg_is_text(p, node->label) ||
      node->body_count < bodies[node->kind] ||
      (node->kind != TG_NODE_SWITCH && node->body_count > bodies[node->kind])) {
    return TG_DAMAGED("node %u", i);
  }
  for (uint32_t k = 0; k < node->edge_count; ++k) {
    const struct tg_edge_record *edge = &edges[k];
    int both = is_kernel && edge->before < i && p->nodes[edge->before].kind == TG_NODE_KERNEL;
    if (edge->before >= i || p->nodes[edge->before].graph != node->graph ||
        (edge->programmatic && (edge->programmatic > 1 || !both))) {
      return TG_DAMAGED("edge %u of node %u", k, i);
    }
  }
  if (!is_kernel && node->parameter_count) return TG_DAMAGED("node %u has parameters", i);
  for (uint32_t k = 0; k < node->parameter_count; ++k) {
    if (!tg_is_parameter(p, &p->parameters[node->first_parameter + k], graphs)) {
      return TG_DAMAGED("parameter %u of node %u", k, i);
    }
  }
  if (is_kernel) {
    if (node->function >= p->counts[TG_SECTION_FUNCTION] || node->shared_bytes > INT32_MAX) {
      return TG_DAMAGED("the kernel of node %u", i);
    }
  } else if (node->body_count) {
    if (node->condition >= p->counts[TG_SECTION_CONDITION] ||
        p->conditions[node->condition].graph != node->graph) {
      return TG_DAMAGED("the condition of node %u", i);
    }
  } else if (!p->program->per_launch || node->graph ||
             (i == 0) != (node->kind == TG_NODE_ALLOCATE)) {
    return TG_DAMAGED("node %u is out of place", i);
  }
  return TG_OK;
}

static tg_status tg_check_nodes(const tg_program *p) {
  uint64_t graphs = 1, edges = 0, parameters = 0;
  const uint64_t *counts = p->counts;
  for (uint32_t i = 0; i < counts[TG_SECTION_NODE]; ++i) {
    const struct tg_node_record *node = &p->nodes[i];
    if (node->first_edge != edges || node->first_parameter != parameters ||
        !tg_within(edges, node->edge_count, counts[TG_SECTION_EDGE]) ||
        !tg_within(parameters, node->parameter_count, counts[TG_SECTION_PARAMETER])) {
      return TG_DAMAGED("what node %u counts", i);
    }
    TG_TRY(tg_check_node(p, i, (uint32_t)graphs));
    edges += node->edge_count;
    parameters += node->parameter_count;
    graphs += node->body_count;
    if (graphs > p->program->graph_count) return TG_DAMAGED("the bodies of node %u", i);
  }
  if (graphs != p->program->graph_count) return TG_DAMAGED("its number of graphs");
  if (p->program->per_launch &&
      (!counts[TG_SECTION_NODE] || p->nodes[0].kind != TG_NODE_ALLOCATE)) {
    return TG_DAMAGED("no node allocates its scratch");
  }
  return TG_OK;
}

/* What is said of arguments and results */

static tg_status tg_describe(tg_program *p) {
  uint64_t inputs = p->counts[TG_SECTION_INPUT], outputs = p->counts[TG_SECTION_OUTPUT];
  p->arrays = calloc(inputs + outputs + 1, sizeof *p->arrays);
  if (!p->arrays) return tg_no_memory();
  for (uint64_t i = 0; i < inputs; ++i) {
    const struct tg_input_record *in = &p->inputs[i];
    p->arrays[i] = (tg_array){p->text + in->name, p->text + in->dtype, in->axis_count,
                              &p->extents[in->first_extent].extent, in->nbytes, in->alignment,
                              in->slot_words != 0, -1};
  }
  for (uint64_t i = 0; i < outputs; ++i) {
    const struct tg_output_record *out = &p->outputs[i];
    p->arrays[inputs + i] = (tg_array){
        p->text + out->name, p->text + out->dtype, out->axis_count,
        &p->extents[out->first_extent].extent, out->nbytes, 256, 0,
        out->over == TG_NONE ? -1 : (int64_t)out->over};
  }
  return TG_OK;
}

const char *tg_name(const tg_program *p) { return p->text + p->program->name; }

uint32_t tg_input_count(const tg_program *p) { return (uint32_t)p->counts[TG_SECTION_INPUT]; }

uint32_t tg_output_count(const tg_program *p) { return (uint32_t)p->counts[TG_SECTION_OUTPUT]; }

const tg_array *tg_input(const tg_program *p, uint32_t number) {
  return number < tg_input_count(p) ? &p->arrays[number] : NULL;
}

const tg_array *tg_output(const tg_program *p, uint32_t number) {
  return number < tg_output_count(p) ? &p->arrays[tg_input_count(p) + number] : NULL;
}

/* The device */

static tg_status tg_find_driver(tg_program *p) {
  tg_driver *cuda = &p->cuda;
  cuda->library = dlopen(TG_LIBCUDA, RTLD_NOW | RTLD_LOCAL);
  if (!cuda->library) {
    const char *why = dlerror();
    return tg_fail(TG_ERROR_DRIVER, "there is no driver of NVIDIA GPUs: %s",
                   why ? why : TG_LIBCUDA);
  }
  unsigned oldest = ((const struct tg_header_record *)(const void *)p->file)->cuda;
#define TG_FIND(name, parameters)                                                                  \
  {                                                                                                \
    void *symbol = dlsym(cuda->library, #name);                                                    \
    if (!symbol) {                                                                                 \
      return tg_fail(TG_ERROR_DRIVER,                                                              \
                     "the driver is too old: it has no %s; the program needs one of CUDA %u.%u",   \
                     #name, oldest / 1000, oldest % 1000 / 10);                                    \
    }                                                                                              \
    memcpy(&cuda->name, &symbol, sizeof symbol);                                                   \
  }
  TG_DRIVER(TG_FIND)
#undef TG_FIND
  return TG_OK;
}

static tg_status tg_find_device(tg_program *p, int number) {
  const struct tg_header_record *head = (const void *)p->file;
  int version = 0, count = 0, major = 0, minor = 0;
  TG_CALL(p, cuInit, (0));
  TG_CALL(p, cuDriverGetVersion, (&version));
  if (version < 0 || (unsigned)version < head->cuda) {
    return tg_fail(TG_ERROR_DRIVER,
                   "the driver is of CUDA %d.%d, the program needs one of %u.%u or later",
                   version / 1000, version % 1000 / 10, head->cuda / 1000, head->cuda % 1000 / 10);
  }
  TG_CALL(p, cuDeviceGetCount, (&count));
  if (number < 0 || number >= count) {
    return tg_fail(TG_ERROR_DEVICE, "there is no device %d: there are %d", number, count);
  }
  TG_CALL(p, cuDeviceGet, (&p->device, number));
  TG_CALL(p, cuDeviceGetAttribute, (&major, TG_CU_MAJOR, p->device));
  TG_CALL(p, cuDeviceGetAttribute, (&minor, TG_CU_MINOR, p->device));
  unsigned arch = (unsigned)major * 10 + (unsigned)minor;
  if (arch / 10 != head->arch / 10 || arch < head->arch) {
    return tg_fail(TG_ERROR_DEVICE,
                   "device %d is sm_%u, the program is for sm_%u; write it for that architecture",
                   number, arch, head->arch);
  }
  TG_CALL(p, cuDevicePrimaryCtxRetain, (&p->context, p->device));
  return TG_OK;
}

static tg_status tg_load_code(tg_program *p) {
  p->libraries = calloc(p->counts[TG_SECTION_CODE] + 1, sizeof *p->libraries);
  p->kernels = calloc(p->counts[TG_SECTION_FUNCTION] + 1, sizeof *p->kernels);
  p->shared_bytes = calloc(p->counts[TG_SECTION_FUNCTION] + 1, sizeof *p->shared_bytes);
  if (!p->libraries || !p->kernels || !p->shared_bytes) return tg_no_memory();
  for (uint64_t i = 0; i < p->counts[TG_SECTION_CODE]; ++i) {
    const unsigned char *cubin = p->data + p->codes[i].data;
    TG_CALL_FOR(p, "a cubin", cuLibraryLoadData,
                (&p->libraries[i], cubin, NULL, NULL, 0, NULL, NULL, 0));
  }
  for (uint64_t i = 0; i < p->counts[TG_SECTION_FUNCTION]; ++i) {
    const char *name = p->text + p->functions[i].name;
    TG_CALL_FOR(p, name, cuLibraryGetKernel,
                (&p->kernels[i], p->libraries[p->functions[i].code], name));
  }
  return TG_OK;
}

static tg_status tg_allocate(tg_program *p, tg_address *address, uint64_t nbytes,
                             const char *what) {
  if (nbytes) TG_CALL_FOR(p, what, cuMemAlloc_v2, (address, nbytes));
  return TG_OK;
}

static tg_status tg_place_memory(tg_program *p) {
  const struct tg_program_record *program = p->program;
  if (!program->per_launch) TG_TRY(tg_allocate(p, &p->arena, program->arena_bytes, "scratch"));
  TG_TRY(tg_allocate(p, &p->fixed, program->fixed_bytes, "counters and tables"));
  TG_TRY(tg_allocate(p, &p->constant_memory, program->constant_bytes, "constants"));
  TG_TRY(tg_allocate(p, &p->stop_flag, 4, "the stop flag"));
  if (p->fixed) TG_CALL(p, cuMemsetD8_v2, (p->fixed, 0, program->fixed_bytes));
  TG_CALL(p, cuMemsetD8_v2, (p->stop_flag, 0, 4));
  for (uint64_t i = 0; i < p->counts[TG_SECTION_CONSTANT]; ++i) {
    const struct tg_constant_record *c = &p->constants[i];
    if (c->nbytes) {
      TG_CALL(p, cuMemcpyHtoD_v2, (p->constant_memory + c->offset, p->data + c->data, c->nbytes));
    }
  }
  size_t words = 1 + (size_t)program->monitor_count;
  void *mailbox = NULL;
  TG_CALL(p, cuMemHostAlloc, (&mailbox, 8 * words, TG_CU_PORTABLE_AND_MAPPED));
  p->mailbox = memset(mailbox, 0, 8 * words);
  TG_CALL(p, cuStreamCreate, (&p->stop_stream, TG_CU_NON_BLOCKING));
  TG_CALL(p, cuEventCreate, (&p->over, TG_CU_NOT_TIMED));
  return TG_OK;
}

/* The graph */

static tg_status tg_condition(tg_program *p, uint32_t number) {
  if (!p->handles[number]) {
    TG_CALL(p, cuGraphConditionalHandleCreate,
            (&p->handles[number], p->graphs[p->conditions[number].graph], p->context, 0, 0));
  }
  return TG_OK;
}

/* The address of an argument or a result; of an argument that may be small, that of its value. */
static tg_address tg_first_address(const tg_program *p, uint32_t array) {
  if (array >= p->counts[TG_SECTION_INPUT] || !p->inputs[array].slot_words) return 0;
  return p->fixed + p->inputs[array].slot_offset;
}

static tg_status tg_word(tg_program *p, uint32_t node, uint32_t cell) {
  const struct tg_parameter_record *word = &p->parameters[cell];
  tg_address base = 0;
  switch (word->base) {
    case TG_BASE_INPUT:
    case TG_BASE_OUTPUT: {
      uint32_t inputs = word->base == TG_BASE_OUTPUT ? tg_input_count(p) : 0;
      p->uses[p->use_count++] = (tg_use){node, cell, inputs + word->index};
      base = tg_first_address(p, inputs + word->index);
      break;
    }
    case TG_BASE_ARENA: base = p->arena; break;
    case TG_BASE_FIXED: base = p->fixed; break;
    case TG_BASE_CONSTANTS: base = p->constant_memory; break;
    case TG_BASE_CONDITION:
      TG_TRY(tg_condition(p, word->index));
      base = p->handles[word->index];
      break;
    case TG_BASE_STOP_FLAG:
      base = p->stop_flag;
      p->reads_flag = 1;
      break;
    case TG_BASE_FAILURE: base = (tg_address)(uintptr_t)p->mailbox; break;
    case TG_BASE_STEPS: base = (tg_address)(uintptr_t)(p->mailbox + 1 + word->index); break;
    default: break;
  }
  p->cells[cell] = base + word->offset;
  return TG_OK;
}

/* Whether a kernel takes these words. If it takes more, the driver reads those behind. */
static tg_status tg_check_kernel(tg_program *p, const struct tg_node_record *node) {
  size_t offset, size;
  for (uint32_t i = 0; i < node->parameter_count; ++i) {
    int code = p->cuda.cuKernelGetParamInfo(p->kernels[node->function], i, &offset, &size);
    if (code || size > sizeof *p->cells) {
      return TG_DAMAGED("%s has another parameter %u", p->text + p->functions[node->function].name,
                        i);
    }
  }
  return TG_OK;
}

static tg_status tg_prepare_kernel(tg_program *p, uint32_t i, tg_cu_kernel *made) {
  const struct tg_node_record *node = &p->nodes[i];
  TG_TRY(tg_check_kernel(p, node));
  for (uint32_t k = 0; k < node->parameter_count; ++k) {
    TG_TRY(tg_word(p, i, node->first_parameter + k));
  }
  int *allowed = &p->shared_bytes[node->function];
  if (node->shared_bytes > TG_SHARED_BYTES && (int)node->shared_bytes > *allowed) {
    *allowed = (int)node->shared_bytes;
    TG_CALL_FOR(p, p->text + node->label, cuKernelSetAttribute,
                (TG_CU_SHARED_BYTES, *allowed, p->kernels[node->function], p->device));
  }
  memcpy(made->grid, node->grid, sizeof made->grid);
  memcpy(made->block, node->block, sizeof made->block);
  if (node->adapts) {
    int most = 0;
    TG_CALL(p, cuDeviceGetAttribute, (&most, TG_CU_MULTIPROCESSORS, p->device));
    if (made->grid[0] > (unsigned)most) made->grid[0] = (unsigned)most;
  }
  made->shared_bytes = node->shared_bytes;
  made->parameters = &p->addresses[node->first_parameter];
  made->kernel = p->kernels[node->function];
  made->context = p->context;
  return TG_OK;
}

static tg_status tg_kernel_attributes(tg_program *p, uint32_t i) {
  const struct tg_node_record *node = &p->nodes[i];
  const char *label = p->text + node->label;
  if (node->cooperative) {
    tg_cu_attribute value = {{0}};
    value.cooperative = 1;
    TG_CALL_FOR(p, label, cuGraphKernelNodeSetAttribute, (p->added[i], TG_CU_COOPERATIVE, &value));
  }
  if (node->cluster[0]) {
    tg_cu_attribute value = {{0}};
    memcpy(value.cluster, node->cluster, sizeof value.cluster);
    TG_CALL_FOR(p, label, cuGraphKernelNodeSetAttribute, (p->added[i], TG_CU_CLUSTER, &value));
  }
  return TG_OK;
}

static tg_status tg_add_node(tg_program *p, uint32_t i, uint32_t graphs, tg_cu *before,
                             tg_cu_edge *ports) {
  static const int kinds[TG_NODE_COUNT] = {
      TG_CU_NODE_KERNEL,      TG_CU_NODE_CONDITIONAL, TG_CU_NODE_CONDITIONAL,
      TG_CU_NODE_CONDITIONAL, TG_CU_NODE_ALLOCATE,    TG_CU_NODE_FREE};
  static const int conditional_kinds[TG_NODE_COUNT] = {
      [TG_NODE_IF_ELSE] = 0, [TG_NODE_WHILE] = 1, [TG_NODE_SWITCH] = 2};
  const struct tg_node_record *node = &p->nodes[i];
  tg_cu_node made;
  memset(&made, 0, sizeof made);
  made.kind = kinds[node->kind];
  for (uint32_t k = 0; k < node->edge_count; ++k) {
    const struct tg_edge_record *edge = &p->edges[node->first_edge + k];
    before[k] = p->added[edge->before];
    unsigned char kind = edge->programmatic ? TG_CU_PROGRAMMATIC : 0;
    ports[k] = (tg_cu_edge){kind, 0, kind, {0}};
  }
  switch (node->kind) {
    case TG_NODE_KERNEL:
      TG_TRY(tg_prepare_kernel(p, i, &made.of.kernel));
      p->kernel_nodes[i] = made.of.kernel;
      break;
    case TG_NODE_ALLOCATE:
      made.of.allocation.allocation_type = TG_CU_PINNED;
      made.of.allocation.location_type = TG_CU_ON_DEVICE;
      made.of.allocation.location = p->device;
      made.of.allocation.nbytes = p->program->arena_bytes;
      break;
    case TG_NODE_FREE: made.of.free = p->arena; break;
    default:
      TG_TRY(tg_condition(p, node->condition));
      made.of.conditional.handle = p->handles[node->condition];
      made.of.conditional.kind = conditional_kinds[node->kind];
      made.of.conditional.body_count = node->body_count;
      made.of.conditional.context = p->context;
  }
  TG_CALL_FOR(p, p->text + node->label, cuGraphAddNode_v2,
              (&p->added[i], p->graphs[node->graph], before, ports, node->edge_count, &made));
  if (node->kind == TG_NODE_ALLOCATE) p->arena = made.of.allocation.pointer;
  if (node->body_count) {
    memcpy(&p->graphs[graphs], made.of.conditional.bodies, node->body_count * sizeof(tg_cu));
  }
  return node->kind == TG_NODE_KERNEL ? tg_kernel_attributes(p, i) : TG_OK;
}

static tg_status tg_build(tg_program *p) {
  const uint64_t *counts = p->counts;
  uint64_t most = 0, arrays = counts[TG_SECTION_INPUT] + counts[TG_SECTION_OUTPUT];
  for (uint64_t i = 0; i < counts[TG_SECTION_NODE]; ++i) {
    if (p->nodes[i].edge_count > most) most = p->nodes[i].edge_count;
  }
  p->graphs = calloc(p->program->graph_count, sizeof *p->graphs);
  p->added = calloc(counts[TG_SECTION_NODE] + 1, sizeof *p->added);
  p->kernel_nodes = calloc(counts[TG_SECTION_NODE] + 1, sizeof *p->kernel_nodes);
  p->handles = calloc(counts[TG_SECTION_CONDITION] + 1, sizeof *p->handles);
  p->cells = calloc(counts[TG_SECTION_PARAMETER] + TG_PARAMETERS, sizeof *p->cells);
  p->addresses = calloc(counts[TG_SECTION_PARAMETER] + TG_PARAMETERS, sizeof *p->addresses);
  p->uses = calloc(counts[TG_SECTION_PARAMETER] + 1, sizeof *p->uses);
  p->bound = calloc(arrays + 1, sizeof *p->bound);
  p->wanted = calloc(arrays + 1, sizeof *p->wanted);
  tg_cu *before = calloc(most + 1, sizeof *before);
  tg_cu_edge *ports = calloc(most + 1, sizeof *ports);
  tg_status status = TG_OK;
  if (!p->graphs || !p->added || !p->kernel_nodes || !p->handles || !p->cells || !p->addresses ||
      !p->uses || !p->bound || !p->wanted || !before || !ports) {
    status = tg_no_memory();
  } else {
    uint64_t words = counts[TG_SECTION_PARAMETER];
    for (uint64_t i = 0; i < words + TG_PARAMETERS; ++i) {
      p->addresses[i] = &p->cells[i < words ? i : words];
    }
    int code = p->cuda.cuGraphCreate(&p->graph, 0);
    if (code) status = tg_cuda_error(p, code, "cuGraphCreate", "");
    p->graphs[0] = p->graph;
    uint32_t graphs = 1;
    for (uint32_t i = 0; !status && i < counts[TG_SECTION_NODE]; ++i) {
      status = tg_add_node(p, i, graphs, before, ports);
      graphs += p->nodes[i].body_count;
    }
  }
  free(before);
  free(ports);
  if (status) return status;
  for (uint32_t i = 0; i < arrays; ++i) p->bound[i] = tg_first_address(p, i);
  TG_CALL_FOR(p, tg_name(p), cuGraphInstantiateWithFlags, (&p->executable, p->graph, 0));
  TG_CALL(p, cuGraphUpload, (p->executable, NULL));
  TG_CALL(p, cuCtxSynchronize, ());
  return TG_OK;
}

/* Open and close */

static tg_status tg_opened(tg_program *p, int device) {
  TG_TRY(tg_check_header(p));
  TG_TRY(tg_check_records(p));
  TG_TRY(tg_check_nodes(p));
  TG_TRY(tg_describe(p));
  TG_TRY(tg_find_driver(p));
  TG_TRY(tg_find_device(p, device));
  TG_CALL(p, cuCtxPushCurrent_v2, (p->context));
  tg_status status = tg_load_code(p);
  if (!status) status = tg_place_memory(p);
  if (!status) status = tg_build(p);
  tg_cu popped;
  p->cuda.cuCtxPopCurrent_v2(&popped);
  return status;
}

static tg_status tg_open_file(const void *file, size_t nbytes, int is_mapped, int device,
                              tg_program **program) {
  tg_program *p = calloc(1, sizeof *p);
  *program = NULL;
  if (!p) {
    if (is_mapped) munmap((void *)(uintptr_t)file, nbytes);
    return tg_no_memory();
  }
  p->file = file;
  p->nbytes = nbytes;
  p->is_mapped = is_mapped;
  tg_status status = tg_opened(p, device);
  if (status) {
    tg_close(p);
  } else {
    *program = p;
  }
  return status;
}

tg_status tg_open_bytes(const void *file, size_t nbytes, int device, tg_program **program) {
  return tg_open_file(file, nbytes, 0, device, program);
}

tg_status tg_open(const char *path, int device, tg_program **program) {
  struct stat found;
  *program = NULL;
  int number = open(path, O_RDONLY | O_CLOEXEC);
  if (number < 0 || fstat(number, &found)) {
    tg_status status = tg_fail(TG_ERROR_FILE, "%s cannot be read: %s", path, strerror(errno));
    if (number >= 0) close(number);
    return status;
  }
  size_t nbytes = (size_t)found.st_size;
  void *mapped = nbytes ? mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE, number, 0) : MAP_FAILED;
  const char *why = nbytes ? strerror(errno) : "it is empty";
  close(number);
  if (mapped == MAP_FAILED) {
    return tg_fail(TG_ERROR_FILE, "%s cannot be read: %s", path, why);
  }
  return tg_open_file(mapped, nbytes, 1, device, program);
}

static void tg_release(tg_program *p) {
  tg_driver *cuda = &p->cuda;
  tg_cu popped;
  cuda->cuCtxPushCurrent_v2(p->context);
  cuda->cuCtxSynchronize();
  if (p->executable) cuda->cuGraphExecDestroy(p->executable);
  if (p->graph) cuda->cuGraphDestroy(p->graph);
  if (p->arena && !p->program->per_launch) cuda->cuMemFree_v2(p->arena);
  if (p->fixed) cuda->cuMemFree_v2(p->fixed);
  if (p->constant_memory) cuda->cuMemFree_v2(p->constant_memory);
  if (p->stop_flag) cuda->cuMemFree_v2(p->stop_flag);
  if (p->mailbox) cuda->cuMemFreeHost((void *)(uintptr_t)p->mailbox);
  if (p->stop_stream) cuda->cuStreamDestroy_v2(p->stop_stream);
  if (p->over) cuda->cuEventDestroy_v2(p->over);
  for (uint64_t i = 0; p->libraries && i < p->counts[TG_SECTION_CODE]; ++i) {
    if (p->libraries[i]) cuda->cuLibraryUnload(p->libraries[i]);
  }
  cuda->cuCtxPopCurrent_v2(&popped);
  cuda->cuDevicePrimaryCtxRelease_v2(p->device);
}

void tg_close(tg_program *p) {
  if (!p) return;
  if (p->context) tg_release(p);
  if (p->cuda.library) dlclose(p->cuda.library);
  void *owned[] = {p->arrays, p->libraries, p->kernels, p->shared_bytes, p->graphs,
                   p->added,  p->handles,   p->cells,   p->addresses,    p->kernel_nodes,
                   p->uses,   p->bound,     p->wanted};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; ++i) free(owned[i]);
  if (p->is_mapped) munmap((void *)(uintptr_t)p->file, p->nbytes);
  free(p);
}

/* Calls */

tg_status tg_set(tg_program *p, uint32_t number, const void *value) {
  const tg_array *array = tg_input(p, number);
  if (!array || !array->by_value) {
    return tg_fail(TG_ERROR_ARGUMENT, "argument %u of %s cannot be set: %s", number, tg_name(p),
                   array ? "it is in device memory, whose address tg_run takes" : "there is none");
  }
  const struct tg_input_record *in = &p->inputs[number];
  uint64_t *words = &p->cells[p->nodes[p->program->load].first_parameter + in->slot_parameter];
  memcpy(words, value, in->nbytes);
  p->values_are_stale = 1;
  return TG_OK;
}

static tg_status tg_failed_check(tg_program *p) {
  uint64_t number = p->mailbox[0];
  if (!number) return TG_OK;
  p->mailbox[0] = 0;
  if (number > p->counts[TG_SECTION_FAILURE]) {
    return tg_fail(TG_ERROR_CHECK, "check %llu of %s has failed", (unsigned long long)number,
                   tg_name(p));
  }
  const struct tg_failure_record *failure = &p->failures[number - 1];
  return tg_fail(TG_ERROR_CHECK, "%s: %s", p->text + failure->error, p->text + failure->message);
}

/* The addresses that the graph is to have; arguments that are written over are copied here. */
static tg_status tg_want(tg_program *p, const tg_address *inputs, const tg_address *outputs,
                         tg_cu stream) {
  uint32_t input_count = tg_input_count(p), output_count = tg_output_count(p);
  for (uint32_t i = 0; i < input_count + output_count; ++i) {
    int is_input = i < input_count;
    uint32_t number = is_input ? i : i - input_count;
    tg_address address = is_input ? inputs[number] : outputs[number];
    const tg_array *array = &p->arrays[i];
    if (!address && array->by_value) address = tg_first_address(p, i);
    if ((!address && array->nbytes) || address % array->alignment) {
      return tg_fail(TG_ERROR_ARGUMENT,
                     "%s %u of %s (%s) is at %#llx: it must be device memory at a multiple of %u",
                     is_input ? "argument" : "result", number, tg_name(p), array->name, address,
                     array->alignment);
    }
    p->wanted[i] = address;
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    int64_t over = p->arrays[input_count + i].over;
    if (over < 0) continue;
    tg_address target = p->wanted[input_count + i], source = p->wanted[over];
    if (target != source && p->arrays[over].nbytes) {
      TG_CALL(p, cuMemcpyDtoDAsync_v2, (target, source, p->arrays[over].nbytes, stream));
    }
    p->wanted[over] = target;
  }
  return TG_OK;
}

static tg_status tg_update_node(tg_program *p, uint32_t node) {
  TG_CALL_FOR(p, p->text + p->nodes[node].label, cuGraphExecKernelNodeSetParams_v2,
              (p->executable, p->added[node], &p->kernel_nodes[node]));
  return TG_OK;
}

/* Give nodes the addresses that have moved. After a failure, the next call gives all. */
static tg_status tg_update(tg_program *p) {
  size_t arrays = (size_t)tg_input_count(p) + tg_output_count(p);
  size_t nbytes = arrays * sizeof *p->bound;
  if (p->values_are_stale) TG_TRY(tg_update_node(p, p->program->load));
  p->values_are_stale = 0;
  if (!memcmp(p->wanted, p->bound, nbytes)) return TG_OK;
  for (size_t i = 0; i < p->use_count;) { /* those of a node are one behind the other */
    uint32_t node = p->uses[i].node;
    int moved = 0;
    for (; i < p->use_count && p->uses[i].node == node; ++i) {
      const tg_use *use = &p->uses[i];
      if (p->wanted[use->array] == p->bound[use->array]) continue;
      p->cells[use->cell] = p->wanted[use->array] + p->parameters[use->cell].offset;
      moved = 1;
    }
    tg_status status = moved ? tg_update_node(p, node) : TG_OK;
    if (status) {
      memset(p->bound, 0xff, nbytes);
      return status;
    }
  }
  memcpy(p->bound, p->wanted, nbytes);
  return TG_OK;
}

/* Clear the stop flag behind earlier launches, which it ends, and before those on the stream. A stop
   that comes later is written behind that. */
static tg_status tg_clear_flag(tg_program *p, tg_cu stream) {
  TG_CALL(p, cuStreamWaitEvent, (p->stop_stream, p->over, 0));
  TG_CALL(p, cuMemsetD32Async, (p->stop_flag, 0, 1, p->stop_stream));
  TG_CALL(p, cuEventRecord, (p->over, p->stop_stream));
  TG_CALL(p, cuStreamWaitEvent, (stream, p->over, 0));
  return TG_OK;
}

static tg_status tg_launch(tg_program *p, const tg_address *inputs, const tg_address *outputs,
                           tg_cu stream) {
  TG_TRY(tg_failed_check(p));
  TG_TRY(tg_want(p, inputs, outputs, stream));
  TG_TRY(tg_update(p));
  if (p->said) atomic_store(&p->unsaid, 0);
  p->said = 0;
  if (atomic_exchange(&p->stopped, 0)) {
    tg_status status = tg_clear_flag(p, stream);
    if (status) {
      atomic_store(&p->stopped, 1); /* for the next call */
      return status;
    }
  }
  TG_CALL_FOR(p, tg_name(p), cuGraphLaunch, (p->executable, stream));
  if (p->reads_flag) TG_CALL(p, cuEventRecord, (p->over, stream));
  return TG_OK;
}

tg_status tg_run(tg_program *p, const tg_address *inputs, const tg_address *outputs, void *stream) {
  tg_cu popped;
  TG_CALL(p, cuCtxPushCurrent_v2, (p->context));
  tg_status status = tg_launch(p, inputs, outputs, stream);
  p->cuda.cuCtxPopCurrent_v2(&popped);
  return status;
}

tg_status tg_wait(tg_program *p, void *stream) {
  tg_cu popped;
  TG_CALL(p, cuCtxPushCurrent_v2, (p->context));
  int code = p->cuda.cuStreamSynchronize(stream);
  p->cuda.cuCtxPopCurrent_v2(&popped);
  if (code) return tg_cuda_error(p, code, "cuStreamSynchronize", tg_name(p));
  if (atomic_load(&p->stopping) || atomic_load(&p->unsaid)) {
    p->said = 1;
    p->mailbox[0] = 0;
    return tg_fail(TG_ERROR_STOPPED, "%s was stopped; its results are not whole", tg_name(p));
  }
  return tg_failed_check(p);
}

/* Others see that it goes on, or that it is over, whenever the flag may be set. */
tg_status tg_stop(tg_program *p) {
  tg_cu popped;
  TG_CALL(p, cuCtxPushCurrent_v2, (p->context));
  atomic_fetch_add(&p->stopping, 1);
  int code = p->cuda.cuMemsetD32Async(p->stop_flag, 1, 1, p->stop_stream);
  if (!code) code = p->cuda.cuStreamSynchronize(p->stop_stream);
  atomic_store(&p->stopped, 1);
  atomic_store(&p->unsaid, 1);
  atomic_fetch_sub(&p->stopping, 1);
  p->cuda.cuCtxPopCurrent_v2(&popped);
  return code ? tg_cuda_error(p, code, "cuMemsetD32Async", tg_name(p)) : TG_OK;
}

#endif
