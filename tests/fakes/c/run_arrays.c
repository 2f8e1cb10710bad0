/* Runs a flat file on a GPU: arrays in files in0, in1, … of a folder, results to out0, out1, …

       run_arrays FOLDER [stop]

   The program runs with its arguments in device memory, at other addresses, and with small ones by
   value; results must not differ. With `stop`, its loops are ended. */

#define TG_IMPLEMENTATION
#include "tracegraph_load.h"

#define MOST 64

static int (*download)(void *, tg_address, size_t);

static int failed(tg_status status) {
  if (status) printf("error %d: %s\n", status, tg_error());
  return status != TG_OK;
}

static void *content(const char *folder, uint32_t number, size_t nbytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/in%u", folder, number);
  FILE *file = fopen(path, "rb");
  char *found = malloc(nbytes + 1);
  if (!file || fread(found, 1, nbytes, file) != nbytes) exit(printf("%s is too short\n", path));
  fclose(file);
  return found;
}

static tg_address allocated(tg_program *p, size_t nbytes) {
  tg_address address = 0;
  if (p->cuda.cuMemAlloc_v2(&address, nbytes + !nbytes)) exit(printf("no memory\n"));
  return address;
}

int main(int argc, char **argv) {
  char path[4096];
  tg_program *p;
  if (argc < 2) return 2;
  snprintf(path, sizeof path, "%s/program.tgf", argv[1]);
  if (failed(tg_open(path, 0, &p))) return 1;
  void *symbol = dlsym(p->cuda.library, "cuMemcpyDtoH_v2");
  memcpy(&download, &symbol, sizeof symbol);
  p->cuda.cuCtxPushCurrent_v2(p->context);
  uint32_t inputs = tg_input_count(p), outputs = tg_output_count(p);
  tg_address given[3][MOST], made[2][MOST]; /* the third are those by value */
  void *results[MOST];
  for (uint32_t i = 0; i < inputs; ++i) {
    const tg_array *array = tg_input(p, i);
    void *values = content(argv[1], i, array->nbytes);
    for (int set = 0; set < 2; ++set) {
      given[set][i] = allocated(p, array->nbytes);
      if (array->nbytes) p->cuda.cuMemcpyHtoD_v2(given[set][i], values, array->nbytes);
    }
    given[2][i] = array->by_value ? 0 : given[0][i];
    if (array->by_value && failed(tg_set(p, i, values))) return 1;
    free(values);
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    size_t nbytes = tg_output(p, i)->nbytes;
    for (int set = 0; set < 2; ++set) made[set][i] = allocated(p, nbytes);
    results[i] = malloc(2 * nbytes + 1);
  }
  if (argc > 2) {
    tg_cu streams[2]; /* the second launch comes right behind the stop of the first */
    for (int i = 0; i < 2; ++i) {
      if (p->cuda.cuStreamCreate(&streams[i], TG_CU_NON_BLOCKING)) return 2;
      if (failed(tg_run(p, given[0], made[0], streams[i])) || failed(tg_stop(p))) return 2;
    }
    int stopped = tg_wait(p, streams[0]) == TG_ERROR_STOPPED;
    return failed(tg_wait(p, streams[1])) && stopped;
  }
  for (int launch = 0; launch < 4; ++launch) {
    int set = launch & 1;
    for (uint32_t i = 0; i < outputs; ++i) {
      if (tg_output(p, i)->nbytes) p->cuda.cuMemsetD8_v2(made[set][i], 99, tg_output(p, i)->nbytes);
    }
    if (failed(tg_run(p, given[launch % 3], made[set], NULL)) || failed(tg_wait(p, NULL))) return 1;
    for (uint32_t i = 0; i < outputs; ++i) {
      size_t nbytes = tg_output(p, i)->nbytes;
      char *first = results[i], *now = first + (launch ? nbytes : 0);
      if (nbytes) download(now, made[set][i], nbytes);
      if (memcmp(first, now, nbytes)) {
        printf("result %u of launch %d differs\n", i, launch);
        return 1;
      }
    }
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    snprintf(path, sizeof path, "%s/out%u", argv[1], i);
    FILE *file = fopen(path, "wb");
    fwrite(results[i], 1, tg_output(p, i)->nbytes, file);
    fclose(file);
  }
  tg_close(p);
  return 0;
}
