/* Play the claude CLI's part in next to no time: wait for a prompt that holds a script, then do what the script says.
 *
 * The script begins behind "bench:" and ends with "end"; a space stands behind every word of it:
 *
 *   send FILE        write a file as it is
 *   repeat N FILE    write it N times
 *   paced N FILE     write it N times, 50 times a second, its "00000000" replaced by the monotonic clock's microseconds
 *   rest N           be silent for N milliseconds
 *   ignore-term      survive SIGTERM
 *   hold             open the FIFO "alive", say so in it, and stay for ever
 *
 * Files lie beside the program. Its input may be the lines of --input-format stream-json, or any other text.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL 20000000L /* nanoseconds between two paced deltas */

static char input[1 << 17];
static char path[4096];

static char *beside(const char *program, const char *name) {
    const char *slash = strrchr(program, '/');
    int length = slash ? (int)(slash - program) : 1;
    snprintf(path, sizeof path, "%.*s/%s", length, slash ? program : ".", name);
    return path;
}

static void put(const char *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(1, data, size);
        if (written <= 0) exit(1);
        data += written;
        size -= written;
    }
}

/* Private and writable: a stamp is put into it. */
static char *map(const char *program, const char *name, size_t *size) {
    struct stat status;
    int file = open(beside(program, name), O_RDONLY);
    if (file < 0 || fstat(file, &status) < 0) exit(2);
    *size = status.st_size;
    char *data = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) exit(2);
    close(file);
    return data;
}

static void pace(long count, char *data, size_t size) {
    struct timespec next, now;
    char digits[9];
    char *stamp = memmem(data, size, "00000000\"", 9);
    if (!stamp) exit(2);
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (count-- > 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(digits, sizeof digits, "%08ld", (now.tv_sec % 100) * 1000000L + now.tv_nsec / 1000);
        memcpy(stamp, digits, 8);
        put(data, size);
        next.tv_nsec += INTERVAL;
        if (next.tv_nsec >= 1000000000L) next.tv_sec++, next.tv_nsec -= 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}

static void hold(const char *program) {
    int alive = open(beside(program, "alive"), O_WRONLY);
    if (alive < 0 || write(alive, "!", 1) != 1) exit(2);
    for (;;) pause();
}

static void play(const char *program, char *script) {
    char *word = strtok(script, " ");
    for (; word && strcmp(word, "end"); word = strtok(NULL, " ")) {
        long count = 1;
        size_t size;
        if (!strcmp(word, "ignore-term")) {
            signal(SIGTERM, SIG_IGN);
        } else if (!strcmp(word, "hold")) {
            hold(program);
        } else if (!strcmp(word, "rest")) {
            usleep(atol(strtok(NULL, " ")) * 1000);
        } else {
            if (strcmp(word, "send")) count = atol(strtok(NULL, " "));
            char *data = map(program, strtok(NULL, " "), &size);
            if (!strcmp(word, "paced")) pace(count, data, size);
            else while (count-- > 0) put(data, size);
            munmap(data, size);
        }
    }
}

/* Return the script once its line is whole; history, which asks for no answer, holds none. */
static char *find_script(char *from) {
    char *newline;
    for (; (newline = strchr(from, '\n')); from = newline + 1) {
        *newline = 0;
        char *script = strstr(from, "bench: ");
        int asks = !strstr(from, "\"shouldQuery\":false");
        if (script && asks) return script + strlen("bench: ");
        *newline = '\n';
    }
    return NULL;
}

/* Return the next script, or NULL when there is no more input. */
static char *read_script(void) {
    size_t filled = 0;
    ssize_t got;
    char *script = NULL;
    memset(input, 0, sizeof input);
    while (!script && (got = read(0, input + filled, sizeof input - filled - 2)) > 0) {
        filled += got;
        script = find_script(input);
    }
    if (!script && filled > 0) {
        input[filled] = '\n';
        script = find_script(input);
    }
    return script;
}

int main(int argc, char **argv) {
    int turns = 1;
    char *script;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--version")) return puts("2.1.332 (Claude Code)") < 0;
        /* Like the CLI: with a conversation on its input it stays until that ends. */
        if (!strcmp(argv[i], "--input-format")) turns = 1000000;
    }
    while (turns-- > 0 && (script = read_script())) play(argv[0], script);
    return 0;
}
