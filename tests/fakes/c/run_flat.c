/* Runs a flat file: what it takes and gives, then launches with addresses that move.

       run_flat FILE [LAUNCHES [0 if addresses move, 1 if they stay, 2 if launches are stopped]]

   If they are stopped, each runs on a stream of its own, is stopped at once, and the next one is
   launched before all are waited for. */

#define TG_IMPLEMENTATION
#include "tracegraph_load.h"

static int failed(tg_status status) {
  if (status) printf("error %d: %s\n", status, tg_error());
  return status != TG_OK;
}

static void show(const char *what, const tg_array *array) {
  printf("%s %s %s[", what, array->name, array->dtype);
  for (uint32_t i = 0; i < array->axis_count; ++i) {
    printf("%s%llu", i ? "," : "", (unsigned long long)array->shape[i]);
  }
  printf("] %llu bytes%s\n", (unsigned long long)array->nbytes, array->by_value ? " by value" : "");
}

int main(int argc, char **argv) {
  tg_program *program;
  if (argc < 2) return 2;
  if (failed(tg_open(argv[1], 0, &program))) return 1;
  printf("program %s\n", tg_name(program));
  uint32_t inputs = tg_input_count(program), outputs = tg_output_count(program);
  tg_address *given = calloc(inputs + 1, sizeof *given), *made = calloc(outputs + 1, sizeof *made);
  for (uint32_t i = 0; i < inputs; ++i) show("argument", tg_input(program, i));
  for (uint32_t i = 0; i < outputs; ++i) show("result", tg_output(program, i));
  int launches = argc > 2 ? atoi(argv[2]) : 1, stay = argc > 3 ? atoi(argv[3]) : 0, code = 0;
  for (int launch = 1; launch <= launches && !code; ++launch) {
    tg_address start = (tg_address)(stay ? 1 : launch) << 48;
    for (uint32_t i = 0; i < inputs; ++i) given[i] = start + (i + 1) * 0x1000000ull;
    for (uint32_t i = 0; i < outputs; ++i) made[i] = start + (i + 1) * 0x1000ull;
    void *stream = stay == 2 ? (void *)(size_t)launch : NULL;
    code = failed(tg_run(program, given, made, stream));
    if (stay == 2) code |= failed(tg_stop(program));
    else code |= failed(tg_wait(program, NULL));
  }
  if (stay == 2) {
    for (int i = 1; i <= launches; ++i) code |= failed(tg_wait(program, (void *)(size_t)i));
    code |= failed(tg_run(program, given, made, NULL)) || failed(tg_wait(program, NULL));
  }
  tg_close(program);
  free(given);
  free(made);
  return code;
}
