/* Opens a flat file after changes at random, and runs what still opens: only errors may come of it.

       mutate_flat FILE SEED COUNT

   Cubins and constants stay as they are: what is in them is the driver's and the kernels' business.
   Prints how often each status came. Then each call of the driver fails once. */

#define TG_IMPLEMENTATION
#include "tracegraph_load.h"

static int (*live)(void), (*calls)(void);
static void (*fail_at)(int), (*code_end)(const char *);
static int calls_before_close;
static uint64_t state;

static uint64_t draw(uint64_t below) { /* xorshift64* */
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return (state * 0x2545f4914f6cdd1dull >> 11) % below;
}

static tg_status tried(const unsigned char *file, size_t nbytes) {
  tg_program *program;
  code_end((const char *)file + nbytes);
  tg_status status = tg_open_bytes(file, nbytes, 0, &program);
  if (status) return status;
  size_t inputs = tg_input_count(program), outputs = tg_output_count(program);
  tg_address *given = calloc(inputs + 1, sizeof *given), *made = calloc(outputs + 1, sizeof *made);
  void *value = calloc(1, 4096);
  for (int launch = 1; launch < 3 && !status; ++launch) {
    for (size_t i = 0; i < inputs; ++i) {
      const tg_array *array = tg_input(program, (uint32_t)i);
      if (!array->by_value) given[i] = (tg_address)launch << 40;
      else if (array->nbytes <= 4096) status = tg_set(program, (uint32_t)i, value);
    }
    for (size_t i = 0; i < outputs; ++i) made[i] = (tg_address)launch << 41;
    if (!status) status = tg_run(program, given, made, NULL);
    if (!status) status = tg_wait(program, NULL);
  }
  calls_before_close = calls();
  tg_close(program);
  free(given);
  free(made);
  free(value);
  return status;
}

static void change(unsigned char *file, size_t nbytes) {
  static const uint32_t words[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 64};
  if (draw(4)) { /* a number */
    uint32_t word = draw(2) ? words[draw(8)] : (uint32_t)draw(1024);
    memcpy(file + 4 * draw(nbytes / 4), &word, 4);
  } else { /* a bit */
    file[draw(nbytes)] ^= (unsigned char)(1 << draw(8));
  }
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 1 << 12);
  if (argc < 4) return 2;
  FILE *source = fopen(argv[1], "rb");
  if (!source || fseek(source, 0, SEEK_END)) return 2;
  size_t nbytes = (size_t)ftell(source);
  unsigned char *file = malloc(nbytes), *copy = malloc(nbytes);
  rewind(source);
  if (fread(file, 1, nbytes, source) != nbytes) return 2;
  fclose(source);
  void *fake = dlopen(TG_LIBCUDA, RTLD_NOW);
  void *found[] = {dlsym(fake, "fake_cuda_live"), dlsym(fake, "fake_cuda_calls"),
                   dlsym(fake, "fake_cuda_fail_at"), dlsym(fake, "fake_cuda_code_end")};
  memcpy(&live, &found[0], 8), memcpy(&calls, &found[1], 8);
  memcpy(&fail_at, &found[2], 8), memcpy(&code_end, &found[3], 8);

  struct tg_header_record head;
  memcpy(&head, file, sizeof head);
  struct tg_section_record data;
  memcpy(&data, file + head.sections + TG_SECTION_DATA * sizeof data, sizeof data);
  int counts[TG_ERROR_CUDA + 1] = {0}, count = atoi(argv[3]);
  state = 0x9e3779b97f4a7c15ull * (uint64_t)(atoi(argv[2]) + 1);
  for (int i = 0; i < count; ++i) {
    size_t left = draw(8) ? nbytes : draw(nbytes);
    copy = realloc(copy, left + !left); /* a read behind its end is seen */
    memcpy(copy, file, left);
    size_t changed = left < data.offset ? left : data.offset;
    for (uint64_t k = draw(3) + 1; k && changed >= 4; --k) change(copy, changed);
    if (left > sizeof head && draw(16)) { /* as if it had been written so */
      uint64_t size = left;
      uint32_t sum = tg_crc(copy + sizeof head, left - sizeof head);
      memcpy(copy, &head, offsetof(struct tg_header_record, nbytes));
      memcpy(copy + offsetof(struct tg_header_record, nbytes), &size, 8);
      memcpy(copy + offsetof(struct tg_header_record, checksum), &sum, 4);
    }
    ++counts[tried(copy, left)];
    if (live()) return printf("%d objects are left of mutation %d\n", live(), i), 1;
  }
  printf("statuses");
  for (int i = 0; i <= TG_ERROR_CUDA; ++i) printf(" %d", counts[i]);
  fail_at(0);
  tg_status status = tried(file, nbytes);
  int most = calls_before_close;
  for (int i = 1; i <= most; ++i) {
    fail_at(i);
    if (!tried(file, nbytes)) return printf("\ncall %d failed, and no error was told\n", i), 1;
    if (live()) return printf("\n%d objects are left when call %d fails\n", live(), i), 1;
  }
  printf("\ncalls %d\n", most);
  free(file);
  free(copy);
  return status;
}
