/* An NVTX tool that writes down what it is told: the place of nsys in tests, which needs neither GPU nor nsys.

   cc -shared -fPIC -o listener.so nvtx_listener.c
   NVTX_INJECTION64_PATH=listener.so NVTX_LISTENER_LOG=told.txt python train.py

   One line for each event: what, domain, thread, range number, message, separated by tabs. "push" and "pop"
   nest by thread and domain, "start" and "end" belong together by the number. The types are those of
   NVTX 3's nvtxTypes.h, which every NVTX client is compiled with. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void (*function)(void);

struct callbacks {
  size_t struct_size;
  int (*module_functions)(int module, function ***table, unsigned *size);
};

struct attributes { /* nvtxEventAttributes_t */
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void *message;
};

enum { CALLBACKS = 1, CORE = 1, CORE2 = 5 };
enum { ASCII = 1, REGISTERED = 3 };
enum { START_EX = 4, START_A = 5, END = 7, PUSH_EX = 8, PUSH_A = 9, POP = 11 };
enum { DOMAIN_START = 2, DOMAIN_END = 3, DOMAIN_PUSH = 4, DOMAIN_POP = 5, REGISTER = 10, CREATE = 12 };

static FILE *out;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static uint64_t ranges;

/* Handles of domains and of registered strings are copies of their names. */
static void tell(const char *what, const char *domain, uint64_t range, const char *message) {
  pthread_mutex_lock(&writing);
  fprintf(out, "%s\t%s\t%ld\t%llu\t%s\n", what, domain ? domain : "", syscall(SYS_gettid),
          (unsigned long long)range, message ? message : "");
  fflush(out); /* the script may end by a signal */
  pthread_mutex_unlock(&writing);
}

static const char *words(const struct attributes *event) {
  int known = event->message_type == ASCII || event->message_type == REGISTERED;
  return known ? event->message : "(not understood)";
}

static uint64_t start(const char *domain, const char *message) {
  uint64_t range = __atomic_add_fetch(&ranges, 1, __ATOMIC_RELAXED);
  tell("start", domain, range, message);
  return range;
}

static uint64_t on_start_a(const char *message) { return start("", message); }
static uint64_t on_start(const struct attributes *event) { return start("", words(event)); }
static void on_end(uint64_t range) { tell("end", "", range, ""); }
static int on_push_a(const char *message) { return tell("push", "", 0, message), 0; }
static int on_push(const struct attributes *event) { return tell("push", "", 0, words(event)), 0; }
static int on_pop(void) { return tell("pop", "", 0, ""), 0; }
static uint64_t on_domain_start(const char *domain, const struct attributes *event) {
  return start(domain, words(event));
}
static void on_domain_end(const char *domain, uint64_t range) { tell("end", domain, range, ""); }
static int on_domain_push(const char *domain, const struct attributes *event) {
  return tell("push", domain, 0, words(event)), 0;
}
static int on_domain_pop(const char *domain) { return tell("pop", domain, 0, ""), 0; }
static char *on_register(const char *domain, const char *text) { return (void)domain, strdup(text); }
static char *on_create(const char *name) { return strdup(name); }

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
  const struct callbacks *callbacks = export_table(CALLBACKS);
  const char *path = getenv("NVTX_LISTENER_LOG");
  function **table;
  unsigned size;

  out = path ? fopen(path, "a") : NULL;
  if (!out || !callbacks) return 0;
  if (!callbacks->module_functions(CORE, &table, &size) || size <= POP) return 0;
  *table[START_EX] = (function)on_start;
  *table[START_A] = (function)on_start_a;
  *table[END] = (function)on_end;
  *table[PUSH_EX] = (function)on_push;
  *table[PUSH_A] = (function)on_push_a;
  *table[POP] = (function)on_pop;
  if (!callbacks->module_functions(CORE2, &table, &size) || size <= CREATE) return 0;
  *table[DOMAIN_START] = (function)on_domain_start;
  *table[DOMAIN_END] = (function)on_domain_end;
  *table[DOMAIN_PUSH] = (function)on_domain_push;
  *table[DOMAIN_POP] = (function)on_domain_pop;
  *table[REGISTER] = (function)on_register;
  *table[CREATE] = (function)on_create;
  return 1;
}
