/* A driver of CUDA without a device, for tests of the C loader: it logs what builds and updates
   graphs, and refuses what the real one would refuse or crash at. Kernels do not run.

   Code is text with a line "name parameters" for each kernel, or a cubin.

       FAKE_CUDA_LOG      the file that the log is written to
       FAKE_CUDA_ARCH     90 for a device of sm_90, the default
       FAKE_CUDA_VERSION  13000 for a driver of CUDA 13.0, the default
       FAKE_CUDA_FAILURE  what launches write to the first word of pinned memory */

#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long word;
enum { INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500 };
enum { KERNEL = 0, ALLOCATE = 10, FREE = 11, CONDITIONAL = 13 };
#define MOST_KERNELS 4096
#define MOST_ALLOCATIONS 64
#define FIRST_CONDITION 0xc0de000000000000ull

typedef struct kernel {
  char name[128];
  int parameters;
  struct library *library;
} kernel;

typedef struct library {
  char *copy; /* of text, which a damaged file does not end */
  const char *code;
  kernel *kernels;
  int count;
} library;

typedef struct graph {
  int number;
  struct node *first;
} graph;

typedef struct node {
  int number, kind, parameters;
  graph *graph, **bodies;
  unsigned body_count;
  struct node *next;
} node;

typedef struct kernel_params {
  void *func;
  unsigned grid[3], block[3], shared_bytes;
  word **values;
  void **extra;
  kernel *kernel;
  void *context;
} kernel_params;

typedef struct node_params {
  int kind, reserved[3];
  union {
    long long padding[29];
    kernel_params kernel;
    struct {
      char properties[88];
      const void *access;
      size_t access_count, nbytes;
      word pointer;
    } allocation;
    struct {
      word handle;
      int kind;
      unsigned body_count;
      graph **bodies;
      void *context;
    } conditional;
    word free;
  } of;
  long long end;
} node_params;

static struct {
  char *start;
  size_t nbytes;
  enum { ON_DEVICE, ON_HOST, OF_GRAPH } kind;
} memory[MOST_ALLOCATIONS];
static const char *code_end;
static int allocations, live, calls, fail_at, nodes, graphs, conditions;
static graph *condition_graphs[1 << 16];
static char condition_used[1 << 16];
static FILE *logged;
static void *own_stream;

/* For tests: how many objects are alive, how many calls there were since one was told to fail, and
   where the file ends that code is in, which may be damaged. */
int fake_cuda_live(void) { return live; }
int fake_cuda_calls(void) { return calls; }
void fake_cuda_fail_at(int call) { calls = 0, fail_at = call; }
void fake_cuda_code_end(const char *end) { code_end = end; }

#define LOG(...) (logged ? fprintf(logged, __VA_ARGS__) : 0)
#define CALL if (++calls == fail_at) return NO_MEMORY

static int setting(const char *name, int otherwise) {
  const char *value = getenv(name);
  return value ? atoi(value) : otherwise;
}

static void *object(size_t nbytes) {
  ++live;
  return calloc(1, nbytes);
}

static void drop(void *made) {
  --live;
  free(made);
}

static void log_word(word value) {
  if (value >= FIRST_CONDITION && value < FIRST_CONDITION + (word)conditions) {
    LOG(" condition:%llu", value - FIRST_CONDITION);
    return;
  }
  for (int i = 0; i < allocations; ++i) {
    word start = (word)(size_t)memory[i].start;
    if (memory[i].start && value >= start && value <= start + memory[i].nbytes) {
      LOG(" memory%d:%llu", i, value - start);
      return;
    }
  }
  LOG(" %llu", value);
}

int cuInit(unsigned flags) {
  CALL;
  const char *path = getenv("FAKE_CUDA_LOG");
  if (path && !logged) logged = fopen(path, "w");
  return flags ? INVALID : 0;
}

int cuDriverGetVersion(int *version) {
  CALL;
  *version = setting("FAKE_CUDA_VERSION", 13000);
  return 0;
}

int cuGetErrorName(int code, const char **name) {
  *name = code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}

int cuGetErrorString(int code, const char **text) {
  *text = code == NO_MEMORY ? "out of memory" : "invalid argument";
  return 0;
}

int cuDeviceGetCount(int *count) {
  CALL;
  *count = 1;
  return 0;
}

int cuDeviceGet(int *device, int number) {
  CALL;
  *device = number;
  return number ? INVALID : 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  CALL;
  int arch = setting("FAKE_CUDA_ARCH", 90);
  *value = attribute == 16 ? 132 : attribute == 75 ? arch / 10 : attribute == 76 ? arch % 10 : 0;
  return device ? INVALID : 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  CALL;
  *context = object(1);
  return device;
}

static void *current;

int cuDevicePrimaryCtxRelease_v2(int device) {
  drop(current); /* the last one that was popped */
  fflush(logged);
  return device;
}

int cuCtxPushCurrent_v2(void *context) {
  CALL;
  current = context;
  return context ? 0 : INVALID;
}

int cuCtxPopCurrent_v2(void **context) {
  *context = current;
  return 0;
}

int cuCtxSynchronize(void) {
  CALL;
  return 0;
}

int cuStreamCreate(void **stream, unsigned flags) {
  CALL;
  *stream = object(1);
  if (!own_stream) own_stream = *stream;
  return flags > 1;
}

/* The number that a test gives for a stream; that of the first one that was created is -1. */
static long stream_number(void *stream) { return stream == own_stream ? -1 : (long)stream; }

int cuStreamDestroy_v2(void *stream) {
  if (stream == own_stream) own_stream = NULL;
  drop(stream);
  return 0;
}

int cuStreamSynchronize(void *stream) {
  CALL;
  (void)stream;
  return 0;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  CALL;
  LOG("wait stream %ld\n", stream_number(stream));
  return !event || flags;
}

int cuEventCreate(void **event, unsigned flags) {
  CALL;
  *event = object(1);
  return flags != 2;
}

int cuEventDestroy_v2(void *event) {
  drop(event);
  return 0;
}

int cuEventRecord(void *event, void *stream) {
  CALL;
  LOG("record stream %ld\n", stream_number(stream));
  if (logged) fflush(logged);
  return !event;
}

static int allocate(size_t nbytes, int kind, word *pointer) {
  if (!nbytes) return INVALID;
  if (nbytes > 1u << 28 || allocations == MOST_ALLOCATIONS) return NO_MEMORY;
  char *start = aligned_alloc(256, (nbytes + 255) / 256 * 256);
  ++live;
  LOG("%s memory%d %zu\n", kind == ON_HOST ? "pin" : "allocate", allocations, nbytes);
  memory[allocations].start = start;
  memory[allocations].nbytes = nbytes;
  memory[allocations++].kind = kind;
  *pointer = (word)(size_t)start;
  return 0;
}

static int give_back(word pointer, int kind) {
  for (int i = 0; i < allocations; ++i) {
    if (pointer && (word)(size_t)memory[i].start == pointer && (int)memory[i].kind == kind) {
      drop(memory[i].start);
      memory[i].start = NULL;
      while (allocations && !memory[allocations - 1].start) --allocations;
      return 0;
    }
  }
  abort();
}

int cuMemAlloc_v2(word *pointer, size_t nbytes) {
  CALL;
  return allocate(nbytes, ON_DEVICE, pointer);
}

int cuMemFree_v2(word pointer) { return give_back(pointer, ON_DEVICE); }

int cuMemHostAlloc(void **pointer, size_t nbytes, unsigned flags) {
  CALL;
  word found = 0;
  int code = allocate(nbytes, ON_HOST, &found);
  *pointer = (void *)(size_t)found;
  return flags == 3 ? code : INVALID;
}

int cuMemFreeHost(void *pointer) { return give_back((word)(size_t)pointer, ON_HOST); }

int cuMemsetD8_v2(word pointer, unsigned char value, size_t count) {
  CALL;
  memset((void *)(size_t)pointer, value, count);
  LOG("clear");
  log_word(pointer);
  LOG(" %zu\n", count);
  return 0;
}

int cuMemsetD32Async(word pointer, unsigned value, size_t count, void *stream) {
  CALL;
  for (size_t i = 0; i < count; ++i) ((unsigned *)(size_t)pointer)[i] = value;
  LOG("flag %u stream %ld\n", value, stream_number(stream));
  return 0;
}

int cuMemcpyHtoD_v2(word target, const void *source, size_t nbytes) {
  CALL;
  memcpy((void *)(size_t)target, source, nbytes);
  LOG("upload");
  log_word(target);
  LOG(" %zu\n", nbytes);
  return 0;
}

int cuMemcpyDtoH_v2(void *target, word source, size_t nbytes) {
  memcpy(target, (const void *)(size_t)source, nbytes);
  return 0;
}

int cuMemcpyDtoDAsync_v2(word target, word source, size_t nbytes, void *stream) {
  CALL;
  LOG("copy %llu %llu %zu stream %zu\n", target, source, nbytes, (size_t)stream);
  return 0;
}

/* The kernels of a cubin, with the parameters that it describes. */
static void read_cubin(library *made) {
  Elf64_Ehdr head;
  memcpy(&head, made->code, sizeof head);
  const char *table = made->code + head.e_shoff;
  Elf64_Shdr section;
  memcpy(&section, table + head.e_shstrndx * sizeof section, sizeof section);
  const char *names = made->code + section.sh_offset;
  for (int i = 0; i < head.e_shnum; ++i) {
    memcpy(&section, table + (size_t)i * sizeof section, sizeof section);
    const char *name = names + section.sh_name;
    if (strncmp(name, ".nv.info.", 9)) continue;
    kernel *found = &made->kernels[made->count++];
    snprintf(found->name, sizeof found->name, "%s", name + 9);
    const unsigned char *at = (const void *)(made->code + section.sh_offset);
    const unsigned char *end = at + section.sh_size;
    while (at < end) { /* a format, an attribute, and for the format 4 so many bytes behind */
      found->parameters += at[0] == 4 && (at[1] == 0x17 || at[1] == 0x45);
      at += 4 + (at[0] == 4 ? at[2] | at[3] << 8 : 0);
    }
  }
}

int cuLibraryLoadData(library **made, const char *code, void *a, void *b, unsigned c, void *d,
                      void *e, unsigned f) {
  CALL;
  if (a || b || c || d || e || f) return INVALID;
  library *found = *made = object(sizeof *found);
  if (code_end) code = found->copy = strndup(code, (size_t)(code_end - code));
  found->code = code;
  found->kernels = calloc(MOST_KERNELS, sizeof(kernel));
  if (!strncmp(code, ELFMAG, SELFMAG)) {
    read_cubin(found);
  } else {
    int used = 0;
    for (; found->count < MOST_KERNELS &&
           sscanf(code, "%127s %d\n%n", found->kernels[found->count].name,
                  &found->kernels[found->count].parameters, &used) == 2; code += used) {
      ++found->count;
    }
  }
  LOG("code %d\n", found->count);
  return 0;
}

int cuLibraryUnload(library *made) {
  free(made->kernels);
  free(made->copy);
  drop(made);
  return 0;
}

int cuLibraryGetKernel(kernel **made, library *from, const char *name) {
  CALL;
  for (int i = 0; i < from->count; ++i) {
    if (!strcmp(from->kernels[i].name, name)) {
      *made = &from->kernels[i];
      return 0;
    }
  }
  return NOT_FOUND;
}

int cuKernelGetParamInfo(kernel *of, size_t number, size_t *offset, size_t *size) {
  *offset = 8 * number, *size = 8;
  return number < (size_t)of->parameters ? 0 : INVALID;
}

int cuKernelSetAttribute(int attribute, int value, kernel *of, int device) {
  CALL;
  LOG("allow %s %d\n", of->name, value);
  return attribute != 8 || device;
}

static graph *new_graph(void) {
  graph *made = object(sizeof *made);
  made->number = graphs++;
  return made;
}

int cuGraphCreate(graph **made, unsigned flags) {
  CALL;
  nodes = graphs = conditions = 0;
  *made = new_graph();
  return flags ? INVALID : 0;
}

int cuGraphDestroy(graph *made) {
  for (int i = 0; i < allocations && !made->number; ++i) {
    if (memory[i].start && memory[i].kind == OF_GRAPH) {
      drop(memory[i].start);
      memory[i].start = NULL;
    }
  }
  for (node *at = made->first; at;) {
    node *next = at->next;
    for (unsigned i = 0; i < at->body_count; ++i) cuGraphDestroy(at->bodies[i]);
    free(at->bodies);
    drop(at);
    at = next;
  }
  drop(made);
  return 0;
}

int cuGraphConditionalHandleCreate(word *handle, graph *of, void *context, unsigned value,
                                   unsigned flags) {
  CALL;
  if (conditions == 1 << 16 || !context || value || flags) return INVALID;
  condition_graphs[conditions] = of;
  condition_used[conditions] = 0;
  *handle = FIRST_CONDITION + (word)conditions++;
  return 0;
}

static int valid_launch(const kernel_params *p) {
  word threads = (word)p->block[0] * p->block[1] * p->block[2];
  return !p->func && !p->extra && p->kernel && p->grid[0] && p->grid[1] && p->grid[2] && threads &&
         threads <= 1024 && p->block[0] <= 1024 && p->shared_bytes <= 227 * 1024;
}

static void log_values(const kernel_params *p) {
  for (int i = 0; i < p->kernel->parameters; ++i) log_word(*p->values[i]);
  LOG("\n");
}

int cuGraphAddNode_v2(node **made, graph *to, node *const *before, const unsigned char (*ports)[8],
                      size_t count, node_params *params) {
  CALL;
  for (size_t i = 0; i < count; ++i) {
    if (before[i]->graph != to || ports[i][1] || ports[i][0] != ports[i][2]) return INVALID;
    if (ports[i][0] && (before[i]->kind != KERNEL || params->kind != KERNEL)) return INVALID;
    for (size_t k = 0; k < i; ++k) {
      if (before[k] == before[i]) return INVALID; /* an edge twice */
    }
  }
  word handle = params->of.conditional.handle - FIRST_CONDITION;
  if (params->kind == CONDITIONAL &&
      (handle >= (word)conditions || condition_graphs[handle] != to || condition_used[handle])) {
    return INVALID;
  }
  if (params->kind == KERNEL && !valid_launch(&params->of.kernel)) return INVALID;
  if ((params->kind == ALLOCATE || params->kind == FREE) && to->number) return INVALID;
  if (params->kind == ALLOCATE) {
    int properties[4]; /* the kinds of allocation and handles; the kind of place, and its number */
    memcpy(properties, params->of.allocation.properties, sizeof properties);
    if (properties[0] != 1 || properties[1] || properties[2] != 1 || properties[3]) return INVALID;
    int code = allocate(params->of.allocation.nbytes, OF_GRAPH, &params->of.allocation.pointer);
    if (code) return code;
  }
  node *found = *made = object(sizeof *found);
  found->number = nodes++, found->kind = params->kind, found->graph = to;
  found->next = to->first, to->first = found;
  LOG("node %d graph %d behind", found->number, to->number);
  for (size_t i = 0; i < count; ++i) LOG(" %d%s", before[i]->number, ports[i][0] ? "p" : "");
  if (params->kind == CONDITIONAL) {
    condition_used[handle] = 1;
    found->body_count = params->of.conditional.body_count;
    found->bodies = params->of.conditional.bodies = calloc(found->body_count, sizeof(graph *));
    LOG(" conditional %d %llu bodies", params->of.conditional.kind, handle);
    for (unsigned i = 0; i < found->body_count; ++i) {
      found->bodies[i] = new_graph();
      LOG(" %d", found->bodies[i]->number);
    }
    LOG("\n");
  } else if (params->kind == KERNEL) {
    const kernel_params *p = &params->of.kernel;
    LOG(" kernel %s grid %u %u %u block %u %u %u shared %u passes", p->kernel->name, p->grid[0],
        p->grid[1], p->grid[2], p->block[0], p->block[1], p->block[2], p->shared_bytes);
    log_values(p);
  } else if (params->kind == ALLOCATE) {
    LOG(" allocates %zu\n", params->of.allocation.nbytes);
  } else {
    LOG(" frees");
    log_word(params->of.free);
    LOG("\n");
  }
  return 0;
}

int cuGraphKernelNodeSetAttribute(node *of, int attribute, const void *value) {
  CALL;
  const unsigned *words = value;
  if (attribute == 2) LOG("cooperative %d %u\n", of->number, words[0]);
  if (attribute == 4) LOG("cluster %d %u %u %u\n", of->number, words[0], words[1], words[2]);
  return of->kind == KERNEL && (attribute == 2 || attribute == 4) ? 0 : INVALID;
}

int cuGraphInstantiateWithFlags(void **made, graph *of, word flags) {
  CALL;
  if (flags || of->number) return INVALID;
  *made = object(1);
  LOG("instantiate\n");
  return 0;
}

int cuGraphExecDestroy(void *made) {
  drop(made);
  return 0;
}

int cuGraphExecKernelNodeSetParams_v2(void *executable, node *of, const kernel_params *params) {
  CALL;
  if (!executable || of->kind != KERNEL || !valid_launch(params)) return INVALID;
  LOG("update %d passes", of->number);
  log_values(params);
  return 0;
}

int cuGraphUpload(void *executable, void *stream) {
  CALL;
  return !executable || stream;
}

int cuGraphLaunch(void *executable, void *stream) {
  CALL;
  LOG("launch stream %zu\n", (size_t)stream);
  if (logged) fflush(logged);
  for (int i = 0; i < allocations; ++i) {
    if (memory[i].start && memory[i].kind == ON_HOST) {
      *(word *)(void *)memory[i].start = (word)setting("FAKE_CUDA_FAILURE", 0);
    }
  }
  return !executable;
}
