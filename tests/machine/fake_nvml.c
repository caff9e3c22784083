/* NVML without a card: the answers are lines "NAME NUMBER..." of the file $NVML_FAKE, read anew at
   each call, so that a test changes them while a session runs. Names and signatures are NVML's.

   status N   what every function of a card returns    init N   what nvmlInitWithFlags returns
   reasons N  clocks' event reasons                     mig N    1: the card is split
   pid N...   compute processes
   near N...  the mask of the cores on the card's node  lost 1   the card is off the bus
   With OLD_DRIVER defined it is one before 535: event reasons have their older name. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };
enum { MOST = 16 };

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} process;

static const char card_uuid[] = "GPU-11111111-2222-3333-4444-555555555555";
static int card;

/* Put the numbers after NAME into `found`; return how many there are, -1 without such a line. */
static int answer(const char *name, unsigned long long found[MOST])
{
    char line[512];
    int count = -1;
    FILE *file = fopen(getenv("NVML_FAKE"), "r");
    while (file && fgets(line, sizeof line, file)) {
        char *word = strtok(line, " \n");
        if (!word || strcmp(word, name))
            continue;
        for (count = 0; count < MOST && (word = strtok(NULL, " \n")); count++)
            found[count] = strtoull(word, NULL, 0);
    }
    if (file)
        fclose(file);
    return count;
}

static unsigned long long number(const char *name, unsigned long long otherwise)
{
    unsigned long long found[MOST];
    return answer(name, found) > 0 ? found[0] : otherwise;
}

static int status(void) { return (int)number("status", SUCCESS); }

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return (int)number("init", SUCCESS); }

int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 1; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    *device = &card;
    return number("lost", 0) ? GPU_IS_LOST : index ? NOT_FOUND : SUCCESS;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length)
{
    (void)device;
    snprintf(uuid, length, "%s", card_uuid);
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = &card;
    return strcmp(uuid, card_uuid) ? NOT_FOUND : SUCCESS;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending)
{
    (void)device;
    *current = *pending = (unsigned int)number("mig", 0);
    return SUCCESS;
}

#ifdef OLD_DRIVER
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
#else
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
#endif
{
    (void)device;
    *reasons = number("reasons", 0);
    return status();
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, process *found)
{
    unsigned long long pids[MOST];
    int known = answer("pid", pids);
    unsigned int room = *count;
    (void)device;
    if (status())
        return status();
    *count = known < 0 ? 0 : (unsigned int)known;
    if (*count > room)
        return INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++)
        found[i] = (process){(unsigned int)pids[i], 1 << 30, ~0u, ~0u};
    return SUCCESS;
}

int nvmlDeviceGetCpuAffinity(void *device, unsigned int words, unsigned long *cores)
{
    unsigned long long found[MOST];
    int known = answer("near", found);
    (void)device;
    for (unsigned int i = 0; i < words; i++)
        cores[i] = (int)i < known ? found[i] : 0;
    return known < 1 ? NOT_SUPPORTED : status();
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius)
{
    (void)device, (void)sensor;
    *celsius = 34;
    return status();
}

int nvmlDeviceGetClockInfo(void *device, int clock, unsigned int *megahertz)
{
    (void)device, (void)clock;
    *megahertz = 1980;
    return status();
}
