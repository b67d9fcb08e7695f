/* The events of a Chrome trace -> columns of 64-bit numbers, without an object per event.
 *
 * Runs as WebAssembly (rows.wasm, made by tools/rows_wasm.py), since traces come from anywhere: nothing that
 * is wrong in here can reach the process that reads. It is strict: at whatever it does not expect, it gives up,
 * and msgspec decodes the text (decode.py). So what it accepts must mean to msgspec exactly what it means here.
 * rows.py reads what it leaves; both know the categories, their columns and the parts of a text.
 */
#include <wasm_simd128.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define EXPORT(name) __attribute__((export_name(#name))) name
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum {
  TEXT = 4 << 20,   /* bytes of text at most */
  PAD = 64,         /* zeros behind it: no value goes on there */
  ROWS = 1 << 16,   /* of a category, until they are fetched */
  COLUMNS = 10,     /* of a category at most */
  FIRST = 64,       /* events whose process is told */
  STRINGS = 1 << 17,
  ARENA = 48 << 20, /* bytes of all strings */
  TABLE = 1 << 18,
  DEEPEST = 32,
  KEYS = 64,       /* names of fields that are known again */
  LISTS = 1 << 11, /* that are known again */
  LONGEST = 240    /* bytes of one of them */
};

/* As in CATEGORIES of rows.py. ODD: a category of old versions of torch, or another phase of an arrow. */
enum {
  NONE, OP, RUNTIME, DRIVER, PRIVATE, XPU, KERNEL, COPY, SET, MEMORY, BEGUN, ENDED, MARK, FRAME, KINDS, ODD = KINDS
};

typedef struct { u32 at, length; u64 hash; } String;
typedef struct { const u8 *at; u32 n; } Slice;

static u8 text[TEXT + PAD];
static i64 columns[KINDS][COLUMNS][ROWS];
static u32 processes[FIRST];
static u8 arena[ARENA + PAD];
static String strings[STRINGS];
static u8 with_values[STRINGS]; /* by the name of an operator: whether scalar arguments are in its signature */
static u32 table[TABLE];
static u32 counts[2 + KINDS], used;
static const u8 *p, *end;
#define n_events counts[0]
#define n_strings counts[1]
#define n_rows (counts + 2) /* by category */

/* Where things are, and how large some are. */
u32 EXPORT(layout)(u32 what) {
  switch (what) {
    case 0: return (u32)text;
    case 1: return TEXT;
    case 2: return (u32)columns;
    case 3: return COLUMNS;
    case 4: return ROWS;
    case 5: return (u32)processes;
    case 6: return FIRST;
    case 7: return (u32)strings;
    case 8: return (u32)arena;
    default: return (u32)counts;
  }
}

/* ---- texts, each stored once ---- */

static inline u64 word(const u8 *a) {
  u64 x;
  __builtin_memcpy(&x, a, 8);
  return x;
}

/* Which of the next 16 bytes are equal, the first one in the lowest bit. */
static inline u32 equal(const u8 *a, const u8 *b) {
  return wasm_i8x16_bitmask(wasm_i8x16_eq(wasm_v128_load(a), wasm_v128_load(b)));
}

/* Whether ``n`` bytes are equal; a few behind them are read, too. */
static inline int same(const u8 *a, const u8 *b, u32 n) {
  for (; n >= 16; a += 16, b += 16, n -= 16)
    if (equal(a, b) != 0xFFFF) return 0;
  return !n || !(~equal(a, b) & ((1u << n) - 1));
}

static inline u64 mixed(u64 h, u64 x) {
  h = (h ^ x) * 0x9E3779B97F4A7C15ull;
  return h ^ h >> 29;
}

static inline u64 hashed(u64 h, const u8 *a, u32 n) {
  u32 i = 0;
  for (; i + 8 <= n; i += 8) h = mixed(h, word(a + i));
  if (n & 7) h = mixed(h, word(a + i) & ((1ull << 8 * (n & 7)) - 1));
  return mixed(h, n);
}

/* The number of the text that these slices make, with a NUL between them; -1 if there is no room for it. */
static int interned(const Slice *slices, int n) {
  u64 h = 1;
  u32 length = n - 1;
  for (int i = 0; i < n; i++) {
    h = hashed(h, slices[i].at, slices[i].n);
    length += slices[i].n;
  }
  h ^= h >> 32;
  u32 slot = (u32)h & (TABLE - 1);
  for (; table[slot]; slot = (slot + 1) & (TABLE - 1)) {
    const String *known = &strings[table[slot] - 1];
    if (known->hash != h || known->length != length) continue;
    const u8 *a = arena + known->at;
    int alike = 1;
    for (int i = 0; alike && i < n; i++) {
      alike = same(a, slices[i].at, slices[i].n) && (i == n - 1 || a[slices[i].n] == 0);
      a += slices[i].n + 1;
    }
    if (likely(alike)) return table[slot] - 1;
  }
  if (n_strings == STRINGS || length > ARENA - used) return -1;
  u8 *a = arena + used;
  for (int i = 0; i < n; i++) {
    for (u32 j = 0; j < slices[i].n; j++) *a++ = slices[i].at[j];
    if (i < n - 1) *a++ = 0;
  }
  strings[n_strings] = (String){used, length, h};
  used += length;
  table[slot] = ++n_strings;
  return n_strings - 1;
}

/* ---- JSON; each function returns 0 at what is none, or is none that is expected ---- */

static inline void space(void) {
  for (u32 n = 16; n == 16 && *p <= ' '; p += n) {
    v128_t v = wasm_v128_load(p);
    v128_t blank = wasm_v128_or(wasm_i8x16_eq(v, wasm_i8x16_splat(' ')), wasm_i8x16_eq(v, wasm_i8x16_splat('\t')));
    v128_t line = wasm_v128_or(wasm_i8x16_eq(v, wasm_i8x16_splat('\n')), wasm_i8x16_eq(v, wasm_i8x16_splat('\r')));
    n = __builtin_ctz(~wasm_i8x16_bitmask(wasm_v128_or(blank, line)));
  }
}

static inline int digit(u8 c) { return (u8)(c - '0') < 10; }

static inline int hexadecimal(u8 c) {
  return digit(c) || (u8)((c | 0x20) - 'a') < 6;
}

enum { ESCAPES = 1, NOT_ASCII = 2 }; /* what a string has */

/* ``p`` is behind the opening quote, and then behind the closing one. Whether what is not ASCII is valid UTF-8,
 * and what escapes mean, is seen where the string is decoded. */
static inline int string(Slice *found, int *has) {
  const u8 *begin = p;
  for (;;) {
    v128_t v = wasm_v128_load(p);
    u32 high = wasm_i8x16_bitmask(v);
    v128_t quote = wasm_i8x16_eq(v, wasm_i8x16_splat('"'));
    v128_t slash = wasm_i8x16_eq(v, wasm_i8x16_splat('\\'));
    v128_t control = wasm_u8x16_lt(v, wasm_u8x16_splat(0x20));
    u32 mask = wasm_i8x16_bitmask(wasm_v128_or(wasm_v128_or(quote, slash), control));
    if (!mask) {
      if (unlikely(high)) *has |= NOT_ASCII;
      p += 16;
      if (unlikely(p > end)) return 0;
      continue;
    }
    if (unlikely(high & (mask ^ (mask - 1)))) *has |= NOT_ASCII;
    p += __builtin_ctz(mask);
    if (likely(*p == '"')) {
      *found = (Slice){begin, (u32)(p - begin)};
      p++;
      return p <= end;
    }
    if (*p != '\\') return 0;
    *has |= ESCAPES;
    switch (p[1]) {
      case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        p += 2;
        break;
      case 'u':
        for (int i = 2; i < 6; i++)
          if (!hexadecimal(p[i])) return 0;
        if ((p[2] | 0x20) == 'd' && p[3] > '7') return 0; /* half of a pair of UTF-16 */
        p += 6;
        break;
      default:
        return 0;
    }
  }
}

static inline int plain_string(Slice *found) {
  int has = 0;
  return *p++ == '"' && string(found, &has) && !has;
}

/* As many digits as an int64 certainly holds. */
static inline int integer(i64 *out) {
  int minus = *p == '-';
  p += minus;
  if (!digit(*p) || (*p == '0' && digit(p[1]))) return 0;
  u64 v = 0;
  const u8 *begin = p;
  while (digit(*p)) v = v * 10 + (*p++ - '0');
  if (p - begin > 18 || *p == '.' || *p == 'e' || *p == 'E') return 0;
  *out = minus ? -(i64)v : (i64)v;
  return 1;
}

static const double TENS[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                              1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};

/* The nearest double: one division of exact numbers; or an integer and a fraction of at most three digits. That
 * sum is rounded right, too: where two doubles are equally near, the fraction is a multiple of a power of two,
 * which the quotient is exactly or lies clearly off. */
static inline int number(double *out) {
  int minus = *p == '-';
  p += minus;
  if (!digit(*p) || (*p == '0' && digit(p[1]))) return 0;
  u64 v = 0;
  int digits, after = 0;
  const u8 *begin = p;
  while (digit(*p)) v = v * 10 + (*p++ - '0');
  digits = (int)(p - begin);
  if (*p == '.') {
    begin = ++p;
    while (digit(*p)) v = v * 10 + (*p++ - '0');
    after = (int)(p - begin);
    if (!after) return 0;
    digits += after;
  }
  if (*p == 'e' || *p == 'E' || digits > 19 || (minus && !v)) return 0; /* "-0" is an integer to msgspec */
  double d;
  if (v <= 1ull << 53) {
    d = (double)v / TENS[after];
  } else {
    static const u64 UNITS[] = {1, 10, 100, 1000};
    if (after < 1 || after > 3) return 0;
    u64 whole = v / UNITS[after];
    if (whole > 1ull << 53) return 0;
    d = (double)whole + (double)(v % UNITS[after]) / TENS[after];
  }
  *out = minus ? -d : d;
  return 1;
}

static int skipped_number(void) {
  p += *p == '-';
  if (!digit(*p) || (*p == '0' && digit(p[1]))) return 0;
  while (digit(*p)) p++;
  if (*p == '.') {
    p++;
    if (!digit(*p)) return 0;
    while (digit(*p)) p++;
  }
  if (*p == 'e' || *p == 'E') {
    p++;
    p += *p == '-' || *p == '+';
    if (!digit(*p)) return 0;
    while (digit(*p)) p++;
  }
  return 1;
}

static inline int letters(const char *expected) {
  for (; *expected; p++, expected++)
    if (*p != (u8)*expected) return 0;
  return 1;
}

static inline int colon(void) {
  if (likely(p[0] == ':' && p[1] == ' ')) {
    p += 2;
  } else {
    space();
    if (*p++ != ':') return 0;
  }
  space();
  return 1;
}

/* Behind a value: 1 if another one follows, 2 at the closing bracket. */
static inline int next(u8 closing) {
  if (likely(p[0] == ',' && p[1] == ' ')) {
    p += 2;
  } else {
    space();
    if (*p == closing) {
      p++;
      return 2;
    }
    if (*p++ != ',') return 0;
  }
  space();
  return 1;
}

static int skipped(int depth) {
  Slice ignored;
  int has, more;
  switch (*p) {
    case '"':
      p++;
      return string(&ignored, &has);
    case '[':
      if (depth > DEEPEST) return 0;
      p++;
      space();
      if (*p == ']') {
        p++;
        return 1;
      }
      do {
        if (!skipped(depth + 1)) return 0;
        more = next(']');
      } while (more == 1);
      return more;
    case '{':
      if (depth > DEEPEST) return 0;
      p++;
      space();
      if (*p == '}') {
        p++;
        return 1;
      }
      do {
        if (*p++ != '"' || !string(&ignored, &has) || !colon() || !skipped(depth + 1)) return 0;
        more = next('}');
      } while (more == 1);
      return more;
    case 't': return letters("true");
    case 'f': return letters("false");
    case 'n': return letters("null");
    default: return skipped_number();
  }
}

/* Lists that were read before, by how they begin: most operators have the same few lists of shapes. What begins
 * with the text of a list is this list. */
static struct { u32 n; u8 text[LONGEST + PAD]; } lists[LISTS][2];

static inline int raw(Slice *found) {
  found->at = p;
  u64 h = mixed(mixed(mixed(1, word(p)), word(p + 8)), word(p + 16));
  u32 slot = (u32)(h ^ h >> 32) & (LISTS - 1);
  for (int i = 0; i < 2; i++)
    if (lists[slot][i].n && same(p, lists[slot][i].text, lists[slot][i].n)) {
      found->n = lists[slot][i].n;
      p += found->n;
      return 1;
    }
  if (!skipped(0)) return 0;
  found->n = (u32)(p - found->at);
  if (*found->at == '[' && found->n <= LONGEST) {
    lists[slot][1] = lists[slot][0];
    lists[slot][0].n = found->n;
    __builtin_memcpy(lists[slot][0].text, found->at, found->n);
  }
  return 1;
}

static inline int raw_integer_or_null(Slice *found) {
  i64 ignored;
  found->at = p;
  if (!(*p == 'n' ? letters("null") : integer(&ignored))) return 0;
  found->n = (u32)(p - found->at);
  return 1;
}

/* The text of a string, an integer or null. */
static inline int raw_name(Slice *found) {
  if (*p != '"') return raw_integer_or_null(found);
  found->at = p++;
  Slice inside;
  int has = 0;
  if (!string(&inside, &has) || has) return 0;
  found->n = (u32)(p - found->at);
  return 1;
}

/* ---- events ---- */

/* What the compiler makes of a comparison with a word that has an odd length. */
int memcmp(const void *a, const void *b, unsigned long n) {
  const u8 *x = a, *y = b;
  for (; n; n--, x++, y++)
    if (*x != *y) return *x - *y;
  return 0;
}

#define IS(slice, literal) ((slice).n == sizeof(literal) - 1 && BEGINS(slice, literal))
#define BEGINS(slice, literal) \
  ((slice).n >= sizeof(literal) - 1 && !__builtin_memcmp((slice).at, literal, sizeof(literal) - 1))

typedef struct {
  i64 sequence, forward, device, stream, correlation, copied, node;
  i64 total, allocated, device_id, device_type, address;
  Slice values, types, strides, dims, grid, block, registers, shared, occupancy, stack;
  int stack_has;
} Arguments;

static const Arguments NO_ARGUMENTS = {.sequence = -1, .correlation = -1};

/* What is behind a name: the end of the object, a field that is passed over, or one of Arguments. */
enum {
  END = 1, OTHER,
  SEQUENCE, FORWARD, DEVICE, STREAM, CORRELATION, COPIED, NODE, TOTAL, ALLOCATED, DEVICE_ID, DEVICE_TYPE, ADDRESS,
  VALUES, TYPES, STRIDES, DIMS, GRID, BLOCK, REGISTERS, SHARED, OCCUPANCY, STACK
};

static int argument_named(Slice key) {
  switch (key.n) {
    case 4: return IS(key, "grid") ? GRID : IS(key, "Addr") ? ADDRESS : OTHER;
    case 5: return IS(key, "block") ? BLOCK : IS(key, "bytes") ? COPIED : IS(key, "Bytes") ? ALLOCATED : OTHER;
    case 6: return IS(key, "device") ? DEVICE : IS(key, "stream") ? STREAM : OTHER;
    case 9: return IS(key, "Device Id") ? DEVICE_ID : OTHER;
    case 10:
      return IS(key, "Input type")   ? TYPES
             : IS(key, "Input Dims") ? DIMS
             : IS(key, "Call stack") ? STACK
                                     : OTHER;
    case 11: return IS(key, "correlation") ? CORRELATION : IS(key, "Device Type") ? DEVICE_TYPE : OTHER;
    case 13:
      return IS(key, "Input Strides")   ? STRIDES
             : IS(key, "Fwd thread id") ? FORWARD
             : IS(key, "graph node id") ? NODE
             : IS(key, "shared memory") ? SHARED
                                        : OTHER;
    case 15:
      return IS(key, "Concrete Inputs")   ? VALUES
             : IS(key, "Sequence number") ? SEQUENCE
             : IS(key, "Total Allocated") ? TOTAL
                                          : OTHER;
    case 20: return IS(key, "registers per thread") ? REGISTERS : OTHER;
    case 25: return IS(key, "est. achieved occupancy %") ? OCCUPANCY : OTHER;
  }
  return OTHER;
}

static inline int argument(int which, Arguments *into) {
  Slice ignored;
  switch (which) {
    case SEQUENCE: return integer(&into->sequence);
    case FORWARD: return integer(&into->forward);
    case DEVICE: return integer(&into->device);
    case STREAM:
      if (*p != '"') return integer(&into->stream);
      into->stream = 0; /* ROCm's calls have an address */
      return plain_string(&ignored);
    case CORRELATION: return integer(&into->correlation);
    case COPIED: return integer(&into->copied);
    case NODE: return integer(&into->node);
    case TOTAL: return integer(&into->total);
    case ALLOCATED: return integer(&into->allocated);
    case DEVICE_ID: return integer(&into->device_id);
    case DEVICE_TYPE: return integer(&into->device_type);
    case ADDRESS: return integer(&into->address);
    case VALUES: return raw(&into->values);
    case TYPES: return raw(&into->types);
    case STRIDES: return raw(&into->strides);
    case DIMS: return raw(&into->dims);
    case GRID: return raw(&into->grid);
    case BLOCK: return raw(&into->block);
    case REGISTERS: return raw_integer_or_null(&into->registers);
    case SHARED: return raw_integer_or_null(&into->shared);
    case OCCUPANCY: return (digit(*p) || *p == '-' || *p == 'n') && raw(&into->occupancy);
    case STACK:
      into->stack_has = 0;
      return *p++ == '"' && string(&into->stack, &into->stack_has);
  }
  return skipped(0);
}

/* Names of fields that were read before: events of a kind have the same ones in the same order. */
typedef struct {
  u8 text[32]; /* from behind the value before it to its own value, or behind the object where it ends there */
  u32 n, mask; /* as many bits */
  int which;
  u32 next[2]; /* that came behind it the last times */
} Key;
typedef struct { u32 n; Key all[KEYS]; } Keys;
enum { BEGIN, UNKNOWN, LEARNT }; /* numbers in it: before the first field, behind one that is too long, all others */

static Keys of_events = {.n = LEARNT}, of_arguments = {.n = LEARNT};

/* ``following`` where it is none of the two that came there last: found by its name, and kept. */
static __attribute__((noinline)) u32 following_by_name(Keys *keys, u32 last, int (*named)(Slice)) {
  Key *before = &keys->all[last];
  const u8 *at = p;
  int which = END, has = 0;
  if (last == BEGIN) space();
  int more = last != BEGIN ? next('}') : *p != '}' ? 1 : (p++, 2);
  if (more != 2) {
    Slice name;
    if (!more || *p++ != '"' || !string(&name, &has) || has || !colon()) return 0;
    which = named(name);
  }
  u32 n = (u32)(p - at), found = LEARNT;
  keys->all[UNKNOWN].which = which;
  if (n > sizeof before->text) return UNKNOWN;
  while (found < keys->n && (keys->all[found].n != n || !same(at, keys->all[found].text, n))) found++;
  if (found == KEYS) return UNKNOWN;
  if (found == keys->n) {
    Key *key = &keys->all[keys->n++];
    *key = (Key){.n = n, .mask = (u32)((1ull << n) - 1), .which = which};
    __builtin_memcpy(key->text, at, n);
  }
  before->next[1] = before->next[0];
  return before->next[0] = found;
}

/* The number of the field that comes behind the field ``last``. 0: none that is expected. */
static inline u32 following(Keys *keys, u32 last, int (*named)(Slice)) {
  const Key *before = &keys->all[last];
  for (int i = 0; i < 2; i++) {
    const Key *key = &keys->all[before->next[i]];
    if (likely(key->n && !(~(equal(p, key->text) | equal(p + 16, key->text + 16) << 16) & key->mask))) {
      p += key->n;
      space();
      return before->next[i];
    }
  }
  return following_by_name(keys, last, named);
}

static int arguments(Arguments *into) {
  u32 at = BEGIN;
  *into = NO_ARGUMENTS;
  if (*p++ != '{') return 0;
  while ((at = following(&of_arguments, at, argument_named))) {
    int which = of_arguments.all[at].which;
    if (which == END) return 1;
    if (!argument(which, into)) return 0;
  }
  return 0;
}

static int category(Slice name, Slice phase) {
  int span = phase.n == 1 && *phase.at == 'X';
  switch (name.n) {
    case 6:
      if (IS(name, "cpu_op")) return span ? OP : NONE;
      if (IS(name, "kernel")) return span ? KERNEL : NONE;
      if (IS(name, "fwdbwd")) {
        if (phase.n != 1) return ODD;
        return *phase.at == 's' ? BEGUN : *phase.at == 'f' ? ENDED : ODD;
      }
      return IS(name, "Kernel") || IS(name, "Memcpy") || IS(name, "Memset") ? ODD : NONE;
    case 7: return IS(name, "Runtime") ? ODD : NONE;
    case 8: return IS(name, "Operator") ? ODD : NONE;
    case 10:
      if (IS(name, "gpu_memcpy")) return span ? COPY : NONE;
      return IS(name, "gpu_memset") && span ? SET : NONE;
    case 11:
      if (IS(name, "cuda_driver")) return span ? DRIVER : NONE;
      return IS(name, "xpu_runtime") && span ? XPU : NONE;
    case 12: return IS(name, "cuda_runtime") && span ? RUNTIME : NONE;
    case 15:
      if (IS(name, "user_annotation")) return span ? MARK : NONE;
      if (IS(name, "python_function")) return span ? FRAME : NONE;
      return IS(name, "Python function") ? ODD : NONE;
    case 17: return IS(name, "cpu_instant_event") ? MEMORY : NONE;
    case 19: return IS(name, "privateuse1_runtime") && span ? PRIVATE : NONE;
  }
  return NONE;
}

typedef struct {
  Slice phase, category, name, process, thread;
  double start, duration;
  i64 id;
  int name_has, odd_id;
  Arguments arguments;
} Event;

enum { PHASE = OTHER + 1, START, ID, CATEGORY, DURATION, THREAD, PROCESS, NAME, ARGUMENTS };

static int field_of_event(Slice key) {
  switch (key.n) {
    case 2: return IS(key, "ph") ? PHASE : IS(key, "ts") ? START : IS(key, "id") ? ID : OTHER;
    case 3:
      return IS(key, "cat")   ? CATEGORY
             : IS(key, "dur") ? DURATION
             : IS(key, "tid") ? THREAD
             : IS(key, "pid") ? PROCESS
                              : OTHER;
    case 4: return IS(key, "name") ? NAME : IS(key, "args") ? ARGUMENTS : OTHER;
  }
  return OTHER;
}

static inline int field(int which, Event *into) {
  Slice ignored;
  switch (which) {
    case PHASE: return plain_string(&into->phase);
    case START: return number(&into->start);
    case ID:
      into->odd_id = !digit(*p);
      return into->odd_id ? raw_name(&ignored) : integer(&into->id);
    case CATEGORY: return plain_string(&into->category);
    case DURATION: return number(&into->duration);
    case THREAD: return raw_name(&into->thread);
    case PROCESS: return raw_name(&into->process);
    case NAME:
      into->name_has = 0;
      return *p++ == '"' && string(&into->name, &into->name_has);
    case ARGUMENTS: return arguments(&into->arguments);
  }
  return skipped(0);
}

/* The columns: start, duration, thread, name, and what the category has (rows.py). */
static int row_of(const Event *one, int kind) {
  const Arguments *a = &one->arguments;
  u32 n = n_rows[kind];
  i64(*into)[ROWS] = columns[kind];
  i64 thread, name, last;
  if (n == ROWS) return 0;
  __builtin_memcpy(&into[0][n], &one->start, 8);
  __builtin_memcpy(&into[1][n], &one->duration, 8);
  if ((thread = interned(&one->thread, 1)) < 0) return 0;
  into[2][n] = thread;
  n_rows[kind]++;
  if (kind == BEGUN || kind == ENDED) {
    into[4][n] = one->id;
    return !one->odd_id;
  }
  if ((name = interned(&one->name, 1)) < 0) return 0;
  into[3][n] = name;
  switch (kind) {
    case OP: {
      if (one->name_has & ESCAPES) return 0; /* how it begins counts here */
      if (!with_values[name])
        with_values[name] = 1 + (BEGINS(one->name, "aten::convolution") || BEGINS(one->name, "aten::_convolution") ||
                                 BEGINS(one->name, "aten::conv") || BEGINS(one->name, "aten::_scaled_dot_product"));
      Slice signature[4] = {a->dims, a->types, a->strides, a->values};
      if (with_values[name] == 1) signature[3].n = 0;
      into[4][n] = a->sequence;
      into[5][n] = a->forward;
      if ((last = interned(&a->stack, 1)) < 0) return 0;
      into[6][n] = last;
      if ((last = interned(signature, 4)) < 0) return 0;
      into[7][n] = last;
      break;
    }
    case RUNTIME: case DRIVER: case PRIVATE: case XPU:
      into[4][n] = a->correlation;
      break;
    case KERNEL: case COPY: case SET: {
      Slice shape[5] = {a->grid, a->block, a->registers, a->shared, a->occupancy};
      into[4][n] = a->correlation;
      into[5][n] = a->device;
      into[6][n] = a->stream;
      into[7][n] = a->node;
      into[8][n] = a->copied;
      if ((last = interned(shape, 5)) < 0) return 0;
      into[9][n] = last;
      break;
    }
    case MEMORY:
      into[4][n] = a->allocated;
      into[5][n] = a->address;
      into[6][n] = a->device_type;
      into[7][n] = a->device_id;
      into[8][n] = a->total;
      break;
  }
  return 1;
}

static int event(void) {
  static const u8 ZERO[] = "0";
  Event one = {.process = {ZERO, 1}, .thread = {ZERO, 1}};
  u32 at = BEGIN;
  int which;
  one.arguments = NO_ARGUMENTS;
  if (*p++ != '{') return 0;
  do {
    if (!(at = following(&of_events, at, field_of_event))) return 0;
    which = of_events.all[at].which;
  } while (which != END && field(which, &one));
  if (which != END) return 0;
  if (n_events < FIRST) {
    int process = interned(&one.process, 1);
    if (process < 0) return 0;
    processes[n_events] = process;
  }
  n_events++;
  int kind = category(one.category, one.phase);
  if (kind != OP && one.arguments.stack_has & NOT_ASCII) return 0; /* nobody would look at it */
  if ((kind == NONE || kind == BEGUN || kind == ENDED) && one.name_has & NOT_ASCII) return 0;
  return kind == NONE || (kind != ODD && row_of(&one, kind));
}

static int events(void) {
  space();
  if (p == end) return 1;
  for (;;) {
    if (!event() || p > end) return 0;
    space();
    if (p == end) return 1;
    if (*p++ != ',') return 0;
    space();
  }
}

/* Reads the first ``n`` bytes of ``text``: events with commas between them. Returns 1 if that is what they are; their
 * rows are behind those of the texts before it. */
u32 EXPORT(read)(u32 n) {
  u32 before[KINDS];
  n_events = 0;
  if (n > TEXT) return 0;
  p = text;
  end = text + n;
  for (int i = 0; i < PAD; i++) text[n + i] = 0;
  __builtin_memcpy(before, n_rows, sizeof before);
  if (events()) return 1;
  __builtin_memcpy(n_rows, before, sizeof before);
  return 0;
}
