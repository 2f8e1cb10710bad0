// A pool of threads that share the chunks of a nest. `pool.py` has its other half.
//
// A caller opens a job, takes chunks itself, closes the job, and waits for the workers that are inside
// of it. It never waits for a worker that did not come: one that sleeps, or that was given no processor.
// So workers may start and leave at any time. A second caller, while one has the pool, runs alone.

struct tgp_pool {
  // what the system has, set once; all of the system's own types are behind pointers
  void (*lock)(void* mutex);
  void (*unlock)(void* mutex);
  // Windows needs the last two; elsewhere two arguments are taken, and registers hold the others
  int (*wait)(void* condition, void* mutex, tgm_u32 milliseconds, tgm_u32 flags);
  void (*wake)(void* condition);
  int (*give_way)();
  void (*pause)();
  void* mutex;
  void* condition;

  // of the open job, written before it is opened
  alignas(64) void (*task)(void* table, void* arena, void* frame, tgm_i64 chunk);
  void *table, *arena, *frame;
  tgm_i64 end, last;

  // a line of the cache for each word that several threads change
  alignas(64) tgm_i64 wanted;    // workers; those with higher numbers leave
  alignas(64) tgm_i64 owned;     // whether a caller has the pool
  alignas(64) tgm_i64 job;       // the number of the open job, or 0
  alignas(64) tgm_i64 inside;    // workers that take chunks, or look whether they may
  alignas(64) tgm_i64 next;      // the first chunk that nobody took
  alignas(64) tgm_i64 sleeping;  // workers that wait for the condition
};

constexpr tgm_i64 tgp_spins = 2000;  // pauses before a thread sleeps or gives way: about 50 µs

TG_INLINE tgm_i64 tgp_read(tgm_i64* word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
TG_INLINE void tgp_write(tgm_i64* word, tgm_i64 value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }
TG_INLINE tgm_i64 tgp_add(tgm_i64* word, tgm_i64 value) { return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); }

TG_INLINE void tgp_take_chunks(tgp_pool* pool) {
  for (;;) {
    const tgm_i64 chunk = tgp_add(&pool->next, 1);
    if (chunk >= pool->end) return;
    pool->task(pool->table, pool->arena, pool->frame, chunk);
  }
}

// Whether a worker has something to do: a job that it was not in, or to leave.
TG_INLINE bool tgp_is_due(tgp_pool* pool, tgm_i64 number, tgm_i64 done) {
  const tgm_i64 job = tgp_read(&pool->job);
  return (job != 0 && job != done) || number >= tgp_read(&pool->wanted);
}

TG_INLINE void tgp_sleep(tgp_pool* pool, tgm_i64 number, tgm_i64 done) {
  for (tgm_i64 spin = 0; spin < tgp_spins; ++spin) {
    if (tgp_is_due(pool, number, done)) return;
    pool->pause();
  }
  pool->lock(pool->mutex);
  // It counts itself before it looks again, and a caller opens its job before it looks at the count.
  tgp_add(&pool->sleeping, 1);
  while (!tgp_is_due(pool, number, done)) pool->wait(pool->condition, pool->mutex, ~0u, 0u);
  tgp_add(&pool->sleeping, -1);
  pool->unlock(pool->mutex);
}

// Wakes up to so many workers.
TG_INLINE void tgp_wake(tgp_pool* pool, tgm_i64 most) {
  if (tgp_read(&pool->sleeping) == 0) return;
  pool->lock(pool->mutex);
  const tgm_i64 sleeping = tgp_read(&pool->sleeping);
  for (tgm_i64 n = 0; n < sleeping && n < most; ++n) pool->wake(pool->condition);
  pool->unlock(pool->mutex);
}

// A worker's whole life. It returns when fewer workers are wanted.
extern "C" void tgp_work(tgp_pool* pool, tgm_i64 number) {
  tgm_i64 done = 0;
  for (;;) {
    tgp_sleep(pool, number, done);
    if (number >= tgp_read(&pool->wanted)) return;
    const tgm_i64 job = tgp_read(&pool->job);
    if (job == 0 || job == done) continue;
    // It counts itself before it looks whether the job is open still: a caller closes, then counts.
    tgp_add(&pool->inside, 1);
    if (tgp_read(&pool->job) == job) {
      tgp_take_chunks(pool);
      done = job;
    }
    tgp_add(&pool->inside, -1);
  }
}

// How many workers there may be from now on.
extern "C" void tgp_want(tgp_pool* pool, tgm_i64 workers) {
  tgp_write(&pool->wanted, workers);
  tgp_wake(pool, tgp_read(&pool->sleeping));
}

// Runs the chunks from `first` to below `end`, and returns when they are done.
extern "C" void tgp_run(tgp_pool* pool, void (*task)(void*, void*, void*, tgm_i64), void* table,
                        void* arena, void* frame, tgm_i64 first, tgm_i64 end) {
  tgm_i64 free = 0;
  if (end - first < 2 || tgp_read(&pool->wanted) == 0 ||
      !__atomic_compare_exchange_n(&pool->owned, &free, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    for (tgm_i64 chunk = first; chunk < end; ++chunk) task(table, arena, frame, chunk);
    return;
  }
  pool->task = task, pool->table = table, pool->arena = arena, pool->frame = frame, pool->end = end;
  tgp_write(&pool->next, first);
  tgp_write(&pool->job, ++pool->last);
  tgp_wake(pool, end - first - 1);
  tgp_take_chunks(pool);
  tgp_write(&pool->job, 0);
  for (tgm_i64 spin = 0; tgp_read(&pool->inside) != 0; ++spin) {
    if (spin < tgp_spins) pool->pause();
    else pool->give_way();  // a worker that has a chunk may wait for this processor
  }
  tgp_write(&pool->owned, 0);
}
