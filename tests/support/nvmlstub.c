/* A libnvidia-ml.so.1 without a GPU, for testing the true pynvml and everything above it.
 *
 * Build  gcc -shared -fPIC -O2 -Wall -Wextra -Werror -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvmlstub.c
 *        with -DOLD_DRIVER the functions that came after R470 are left out.
 *
 * What it plays is a list of words, read at every call from the file $NVMLSTUB_FILE, else from
 * $NVMLSTUB (default "ok"). A word may be bound to one GPU: "lost@3"; without that, words marked *
 * mean GPU 0 only.
 *   busy_tiny    one thread on one multiprocessor       uma          no memory of its own (GB10)
 *   mig          three instances on every GPU           mig_two_ci   ... the first with two compute instances
 *   garbage      numbers no signal can have             no_fields    no field values
 *   lost*        GPU_IS_LOST from every call            refuse*      UNKNOWN from every call
 *   hang*        reading power sleeps $NVMLSTUB_HANG_S seconds (60)
 *   stuck*       every call sleeps so long
 *   slow*        reading power sleeps 2 s
 *   slow_pcie    the direct PCIe call takes 200 ms instead of 20
 *   idle         no process: NOT_FOUND, and success where a size is asked
 *   swapped      process records with pid and memory swapped
 *   no_permission   processes, profiling and placements are refused
 *   vgpu         a guest's part of a GPU
 *   pcie32       PCIe counters of 32 bits               no_gpm       not a Hopper
 *   fabric       part of an NVLink domain
 *   unloaded     the library does not start: DRIVER_NOT_LOADED
 *   mismatch     the library does not start: LIB_RM_VERSION_MISMATCH
 *   reload=N     a driver loaded for the Nth time: calls fail until the library is started again
 *   xid=G:X:N    event N: XID X on GPU G; each N is told once
 *   gpus=N       so many GPUs, instead of $NVMLSTUB_GPUS (2)
 *   hang_s=N     how long a hang lasts, instead of $NVMLSTUB_HANG_S (60)
 * $NVMLSTUB_WAIT_MS bounds one wait for events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
       INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15,
       LIB_RM_VERSION_MISMATCH = 18, UNKNOWN = 999 };
enum { GPUS = 16, SLOTS = 7, NONE = -1 };
typedef unsigned long long u64;
typedef struct { int gpu, gi, ci; } handle;                     /* gi NONE: the board */

static handle boards[GPUS], instances[GPUS][SLOTS];
static int inited, reload_at_start;
static u64 started_us;

/* --- the scenario --- */
static void words(char *text, size_t size) {
  const char *path = getenv("NVMLSTUB_FILE"), *fixed = getenv("NVMLSTUB");
  FILE *file = path ? fopen(path, "r") : NULL;
  size_t n = 0;
  if (file) { n = fread(text, 1, size - 1, file); fclose(file); text[n] = 0; return; }
  snprintf(text, size, "%s", fixed ? fixed : "ok");
}
/* Return where the word stands ("" after its name), or NULL. */
static const char *find(char *text, const char *word) {
  for (char *save, *each = strtok_r(text, " ,\n", &save); each; each = strtok_r(NULL, " ,\n", &save)) {
    size_t n = strlen(word);
    if (strncmp(each, word, n) == 0 && (each[n] == 0 || each[n] == '=' || each[n] == '@')) return each + n;
  }
  return NULL;
}
static int is(const char *word) { char text[512]; words(text, sizeof text); return find(text, word) != NULL; }
static int on(const char *word, int gpu) {
  char text[512]; words(text, sizeof text);
  const char *rest = find(text, word);
  return rest && (*rest == '@' ? atoi(rest + 1) : 0) == gpu;
}
static int value(const char *word) {
  char text[512]; words(text, sizeof text);
  const char *rest = find(text, word);
  return rest && *rest == '=' ? atoi(rest + 1) : 0;
}
static unsigned gpu_count(void) {
  const char *s = getenv("NVMLSTUB_GPUS");
  int said = value("gpus");
  return said ? (unsigned)said : s ? (unsigned)atoi(s) : 2;
}
static u64 now_us(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); return t.tv_sec * 1000000ULL + t.tv_nsec / 1000; }
static void pause_s(double seconds) { usleep((useconds_t)(seconds * 1e6)); }

static void hang(void) {
  const char *s = getenv("NVMLSTUB_HANG_S");
  int said = value("hang_s");
  sleep(said ? (unsigned)said : s ? (unsigned)atoi(s) : 60);
}

#define H ((handle *)device)
#define DRIVER do { if (!inited || reload_at_start != value("reload")) return UNINITIALIZED; } while (0)
#define READY do { DRIVER; if (on("stuck", H->gpu)) hang(); if (on("lost", H->gpu)) return GPU_IS_LOST; if (on("refuse", H->gpu)) return UNKNOWN; } while (0)
#define BOARD do { READY; if (H->gi != NONE) return NOT_SUPPORTED; } while (0)
#define GIVE(place, number) do { *(place) = (number); return OK; } while (0)

/* --- the library --- */
int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  if (is("unloaded")) return DRIVER_NOT_LOADED;
  if (is("mismatch")) return LIB_RM_VERSION_MISMATCH;
  inited = 1; reload_at_start = value("reload"); started_us = now_us();
  for (int gpu = 0; gpu < GPUS; gpu++) {
    boards[gpu] = (handle){gpu, NONE, NONE};
    for (int j = 0; j < SLOTS; j++) instances[gpu][j] = (handle){gpu, 7 + j, 0};
  }
  return OK;
}
int nvmlShutdown(void) { inited = 0; return OK; }
const char *nvmlErrorString(int code) { return code == UNKNOWN ? "Unknown Error" : "stub error"; }
int nvmlSystemGetDriverVersion(char *b, unsigned n) { DRIVER; snprintf(b, n, "580.95.%02d", 5 + value("reload")); return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { DRIVER; GIVE(count, gpu_count()); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) {
  DRIVER;
  if (i >= gpu_count()) return INVALID;
  if (on("stuck", (int)i)) hang();
  if (on("lost", (int)i)) return GPU_IS_LOST;
  GIVE(device, &boards[i]);
}

/* --- identity --- */
int nvmlDeviceGetName(void *device, char *b, unsigned n) {
  READY;
  const char *model = is("uma") ? "NVIDIA GB10" : "NVIDIA H100 80GB HBM3";
  if (H->gi == NONE) snprintf(b, n, "%s", model);
  else snprintf(b, n, "%s MIG %s", model, H->gi == 7 ? "3g.40gb" : "1g.10gb");
  return OK;
}
int nvmlDeviceGetUUID(void *device, char *b, unsigned n) {
  READY;
  if (H->gi == NONE) snprintf(b, n, "GPU-5e700000-0000-0000-0000-%012d", H->gpu);
  else snprintf(b, n, "MIG-5e7%05d-0000-0000-%04d-%012d", H->gpu, H->ci, H->gi);
  return OK;
}
int nvmlDeviceGetSerial(void *device, char *b, unsigned n) { BOARD; snprintf(b, n, "165042%06d", H->gpu); return OK; }
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor) { BOARD; GIVE(minor, gpu_count() - 1 - H->gpu); }  /* never the index */
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *p) {
  BOARD; memset(p, 0, sizeof *p);
  snprintf(p->bus_id, sizeof p->bus_id, "00000000:%02X:00.0", 0x1b + H->gpu);
  return OK;
}
int nvmlDeviceGetVirtualizationMode(void *device, unsigned *mode) { BOARD; GIVE(mode, is("vgpu") ? 2 : 0); }
struct fabric { unsigned version; unsigned char cluster[16]; int status; unsigned clique, state, health; };

/* --- gauges --- */
int nvmlDeviceGetUtilizationRates(void *device, unsigned *u) {
  BOARD; if (is("mig")) return NOT_SUPPORTED;
  u[0] = is("garbage") ? 4294967295u : is("busy_tiny") ? 100 : 73;
  u[1] = is("garbage") ? 65535 : is("busy_tiny") ? 0 : 41;
  return OK;
}
static u64 total_bytes(handle *h) { return h->gi == NONE ? 85899345920ULL : h->gi == 7 ? 42949672960ULL : 10737418240ULL; }
int nvmlDeviceGetMemoryInfo(void *device, u64 *m) {               /* the old call: used includes reserved */
  READY; if (is("uma")) return NOT_SUPPORTED;
  m[0] = total_bytes(H); m[2] = 5368709120ULL + 1073741824ULL; m[1] = m[0] - m[2]; return OK;
}
static int power(handle *h, unsigned *milliwatts) {
  if (on("hang", h->gpu)) hang();
  if (on("slow", h->gpu)) sleep(2);
  if (is("vgpu")) return NOT_SUPPORTED;
  GIVE(milliwatts, is("garbage") ? 4294967295u : 412345);
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { BOARD; return power(H, milliwatts); }
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) { BOARD; if (is("vgpu")) return NOT_SUPPORTED; GIVE(milliwatts, 700000); }
int nvmlDeviceGetTotalEnergyConsumption(void *device, u64 *millijoules) {
  BOARD; if (is("vgpu")) return NOT_SUPPORTED;
  GIVE(millijoules, is("garbage") ? ~0ULL : 600000 + (now_us() - started_us) * 412 / 1000000);
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *t) { (void)sensor; BOARD; GIVE(t, is("garbage") ? 255 : 54); }
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) { BOARD; GIVE(mhz, type == 2 ? 2619 : type == 3 ? 1545 : 1980); }
int nvmlDeviceGetFanSpeed(void *device, unsigned *percent) { BOARD; if (H->gpu == 0) return NOT_SUPPORTED; GIVE(percent, 42); }
int nvmlDeviceGetEncoderUtilization(void *device, unsigned *u, unsigned *period) { BOARD; if (is("mig")) return NOT_SUPPORTED; *period = 1000000; GIVE(u, 3); }
int nvmlDeviceGetDecoderUtilization(void *device, unsigned *u, unsigned *period) { BOARD; if (is("mig")) return NOT_SUPPORTED; *period = 1000000; GIVE(u, 7); }
int nvmlDeviceGetPcieReplayCounter(void *device, unsigned *n) { BOARD; GIVE(n, 12); }
int nvmlDeviceGetPcieThroughput(void *device, int direction, unsigned *kb_per_s) { BOARD; pause_s(is("slow_pcie") ? 0.2 : 0.02); GIVE(kb_per_s, direction ? 2048 : 4096); }
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, u64 *n) { BOARD; GIVE(n, (kind ? 1 : 40) + (counter ? 0 : 100)); }
int nvmlDeviceGetRemappedRows(void *device, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed) { BOARD; *c = 2; *u = 1; *pending = 1; GIVE(failed, 0); }

/* --- field values: a return code for each --- */
struct field { unsigned id, scope; long long ts, lat; int type, ret; union { double d; unsigned ui; u64 ull; } v; };
static void fill(struct field *f, handle *h) {
  u64 us = now_us() - started_us;
  f->ts = (long long)now_us(); f->ret = OK; f->type = 1;
  switch (f->id) {
    case 29: f->v.ui = 3; return;
    case 30: f->v.ui = 4; return;
    case 82: f->v.ui = 61; return;
    case 185: f->v.ui = 433000; return;
    case 186: f->v.ui = 455000; return;
    case 74: f->type = 3; f->v.ull = 2500000000ULL; return;
    case 75: f->type = 3; f->v.ull = 1500000000ULL; return;
    case 138: case 139: f->type = 3; f->v.ull = f->scope == 0xffffffff ? 1000000 + us / 1000 * (f->id == 138 ? 3 : 1) : 0; return;
    case 197: case 198: f->type = is("pcie32") ? 1 : 3; f->v.ull = us * (f->id == 197 ? 2 : 1); if (f->type == 1) f->v.ui = (unsigned)f->v.ull; return;
    default: f->ret = NOT_SUPPORTED;
  }
  (void)h;
}
int nvmlDeviceGetFieldValues(void *device, int n, struct field *f) {
  BOARD; if (is("no_fields") || is("vgpu")) return NOT_SUPPORTED;
  for (int i = 0; i < n; i++) fill(&f[i], H);
  return OK;
}

/* --- processes: 24-byte records --- */
struct process { unsigned pid; u64 used; unsigned gi, ci; };
static int list(struct process *to, unsigned *n, const struct process *from, unsigned count) {
  unsigned room = *n; *n = count;
  if (count == 0) return OK;
  if (!to || room < count) return INSUFFICIENT_SIZE;
  memcpy(to, from, count * sizeof *from);
  return OK;
}
static int compute(void *device, unsigned *n, struct process *p) {
  READY; if (is("no_permission")) return NO_PERMISSION;
  if (is("idle")) return NOT_FOUND;
  const char *own = getenv("NVMLSTUB_PID");
  unsigned pid = own ? (unsigned)atoi(own) : 4242;
  struct process usual[] = {{1234, 2147483648ULL, ~0u, ~0u}, {pid, ~0ULL, ~0u, ~0u}};
  struct process swapped[] = {{2147483648u, 1234, ~0u, ~0u}, {pid, ~0ULL >> 1, ~0u, ~0u}};
  return is("swapped") ? list(p, n, swapped, 2) : list(p, n, usual, H->gi > 7 ? 1 : 2);
}
int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *n, struct process *p) { return compute(device, n, p); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *n, struct process *p) { READY; return list(p, n, NULL, 0); }
struct usage { unsigned pid; u64 ts; unsigned sm, mem, enc, dec; };
int nvmlDeviceGetProcessUtilization(void *device, struct usage *p, unsigned *n, u64 last) {
  (void)last; BOARD; if (is("idle")) return NOT_FOUND;
  if (is("no_permission")) return NO_PERMISSION;
  if (is("no_samples")) { *n = 0; return OK; }
  unsigned room = *n; *n = 3;
  if (!p || room < 3) return INSUFFICIENT_SIZE;
  const char *own = getenv("NVMLSTUB_PID");
  unsigned pid = own ? (unsigned)atoi(own) : 4242;
  p[0] = (struct usage){pid, now_us(), is("garbage") ? 1213 : 37, 12, 0, 0};
  p[1] = (struct usage){pid, now_us() - 500000, 99, 12, 0, 0};          /* an older sample of the same */
  p[2] = (struct usage){999, now_us(), 55, 0, 0, 0};                    /* a process that has ended */
  return OK;
}

/* --- MIG --- */
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) { BOARD; if (is("uma")) return NOT_SUPPORTED; *pending = is("mig"); GIVE(current, is("mig")); }
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { BOARD; GIVE(count, SLOTS); }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned i, void **m) {
  BOARD; unsigned shown = is("mig_two_ci") ? 4 : 3;
  if (!is("mig") || i >= shown) return NOT_FOUND;
  handle *found = &instances[H->gpu][i];
  if (i == 3) *found = (handle){H->gpu, 7, 1};                          /* the second compute instance of 7 */
  GIVE(m, found);
}
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *gi) { READY; if (H->gi == NONE) return NOT_SUPPORTED; GIVE(gi, (unsigned)H->gi); }
struct attributes { unsigned sm, copy, dec, enc, jpeg, ofa, gi_slices, ci_slices; u64 memory_mb; };
int nvmlDeviceGetAttributes_v2(void *device, struct attributes *a) {
  READY; if (H->gi == NONE) return NOT_SUPPORTED;
  *a = H->gi == 7 ? (struct attributes){60, 3, 3, 0, 3, 0, 3, 3, 40448} : (struct attributes){16, 1, 1, 0, 1, 0, 1, 1, 9984};
  if (is("mig_two_ci") && H->gi == 7) { a->sm = 16; a->ci_slices = 1; }
  return OK;
}
struct profile { unsigned version, id, p2p, slices, count, sm, copy, dec, enc, jpeg, ofa; u64 memory_mb; char name[96]; };
int nvmlDeviceGetGpuInstanceProfileInfoV(void *device, unsigned profile, struct profile *p) {
  BOARD; if (!is("mig") || profile != 4) return NOT_SUPPORTED;
  p->slices = 7; p->sm = 132; p->memory_mb = 81152; return OK;
}
struct placement { unsigned start, size; };
struct instance_info { void *device; unsigned id, profile; struct placement placement; };
int nvmlDeviceGetGpuInstanceById(void *device, unsigned id, void **gi) {
  BOARD; if (is("no_permission")) return NO_PERMISSION;
  if (id < 7 || id >= 7 + SLOTS) return NOT_FOUND;
  GIVE(gi, &instances[H->gpu][id - 7]);
}
int nvmlGpuInstanceGetInfo(void *device, struct instance_info *info) {
  DRIVER;
  *info = (struct instance_info){&boards[H->gpu], (unsigned)H->gi, H->gi == 7 ? 9 : 19, {H->gi == 7 ? 0 : (unsigned)H->gi - 4, H->gi == 7 ? 4 : 1}};
  return OK;
}

/* --- events --- */
struct event { void *device; u64 type, data; unsigned gi, ci; };
int nvmlEventSetCreate(void **set) { DRIVER; GIVE(set, calloc(1, 8)); }
int nvmlEventSetFree(void *set) { free(set); return OK; }
int nvmlDeviceRegisterEvents(void *device, u64 types, void *set) { (void)types; (void)set; BOARD; return is("vgpu") ? NOT_SUPPORTED : OK; }
int nvmlEventSetWait_v2(void *set, struct event *e, unsigned wait_ms) {
  static int told;
  (void)set;
  const char *bound = getenv("NVMLSTUB_WAIT_MS");
  if (bound && (unsigned)atoi(bound) < wait_ms) wait_ms = (unsigned)atoi(bound);
  for (unsigned waited = 0;; waited += 20) {
    DRIVER;
    char text[512]; words(text, sizeof text);
    const char *rest = find(text, "xid");
    int gpu, xid, number;
    if (rest && sscanf(rest, "=%d:%d:%d", &gpu, &xid, &number) == 3 && number > told) {
      told = number;
      *e = (struct event){&boards[gpu], 8, (u64)xid, is("mig") ? 7u : ~0u, ~0u};
      return OK;
    }
    if (waited >= wait_ms) return TIMEOUT;
    pause_s(0.02);
  }
}

#ifndef OLD_DRIVER
struct temperature { unsigned version; int sensor, t; };
int nvmlDeviceGetTemperatureV(void *device, struct temperature *t) { BOARD; t->t = is("garbage") ? 255 : 54; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(void *device, u64 *bits) { BOARD; GIVE(bits, 0x4 | 0x20); }  /* power cap, software thermal */
int nvmlDeviceGetJpgUtilization(void *device, unsigned *u, unsigned *period) { BOARD; *period = 0; GIVE(u, 5); }
int nvmlDeviceGetOfaUtilization(void *device, unsigned *u, unsigned *period) { BOARD; *period = 0; GIVE(u, 6); }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process *p) { return compute(device, n, p); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *n, struct process *p) { READY; return list(p, n, NULL, 0); }
struct memory { unsigned version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *m) {
  READY; if (is("uma")) return NOT_SUPPORTED;
  m->total = total_bytes(H); m->reserved = 1073741824ULL; m->used = is("garbage") ? ~0ULL : 5368709120ULL;
  m->free = m->total - m->reserved - 5368709120ULL; return OK;
}
int nvmlDeviceGetGpuFabricInfoV(void *device, struct fabric *f) {
  BOARD; if (!is("fabric")) return NOT_SUPPORTED;
  memset(f->cluster, 0xab, sizeof f->cluster); f->state = 3; f->clique = 32766; return OK;
}

/* --- GPM: two samples at least 100 ms apart; percent, or MiB/s --- */
struct sample { u64 ts; int gi; };
struct metric { unsigned id; int ret; double value; const char *s, *l, *u; };
struct query { unsigned version, count; struct sample *a, *b; struct metric m[1]; };
int nvmlGpmQueryDeviceSupport(void *device, unsigned *s) { BOARD; s[1] = !is("uma") && !is("no_gpm"); return OK; }
int nvmlGpmSampleAlloc(struct sample **s) { GIVE(s, calloc(1, sizeof **s)); }
int nvmlGpmSampleFree(struct sample *s) { free(s); return OK; }
int nvmlGpmSampleGet(void *device, struct sample *s) { BOARD; if (is("no_permission")) return NO_PERMISSION; s->ts = now_us(); s->gi = NONE; return OK; }
int nvmlGpmMigSampleGet(void *device, unsigned gi, struct sample *s) { BOARD; if (is("no_permission")) return NO_PERMISSION; s->ts = now_us(); s->gi = (int)gi; return OK; }
static double percent(unsigned id, int gi) {
  int tiny = is("busy_tiny");
  if (is("garbage")) return id == 2 ? 129.4 : id == 3 ? 4294967295.0 : -1;
  if (gi == 8 && id == 10) return 64.8;
  switch (id) {
    case 1: return tiny ? 99.8 : 71;  case 2: return tiny ? 0.76 : 64; case 3: return tiny ? 0.1 : 38;
    case 4: return tiny ? 0 : 11;     case 5: return tiny ? 0 : 29;    case 10: return tiny ? 0.2 : 44;
    case 20: return 1024;             case 21: return 512;             default: return 0;
  }
}
int nvmlGpmMetricsGet(struct query *q) {
  for (unsigned i = 0; i < q->count; i++) {
    struct metric *m = &q->m[i];
    m->ret = q->b->ts - q->a->ts < 100000 ? NOT_FOUND : q->b->gi != NONE && m->id >= 20 ? NOT_SUPPORTED : OK;
    m->value = percent(m->id, q->b->gi);
  }
  return OK;
}
#else
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *bits) { BOARD; GIVE(bits, 0x4); }
#endif
