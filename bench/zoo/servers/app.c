/* An HTTP server in C with one planted limit, chosen by $ZOO_C: `threads backlog hold_us cpu_us locked files
   accept_us`. Each thread accepts a connection, which takes accept_us for all of them, answers on it until it ends, and accepts
   the next. It prints its address.

   Not here: which limit is the truth of which case (../truth.json). */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int listener, threads = 4, backlog = 1024, hold_us, cpu_us, locked, files, accept_us;
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, door = PTHREAD_MUTEX_INITIALIZER;

/* Work, not time: who has to wait for a core needs as much of it afterwards. */
static void burn(int us) {
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static void work(void) {
    if (locked) pthread_mutex_lock(&shared);
    if (cpu_us) burn(cpu_us);
    if (hold_us) usleep(hold_us);
    if (locked) pthread_mutex_unlock(&shared);
}

static void *serve(void *none) {
    static const char found[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    static const char missing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
    char text[8192];
    for (;;) {
        /* One at a time: each thread that waits in accept has a file of its own already. */
        pthread_mutex_lock(&door);
        if (accept_us) usleep(accept_us);
        int at = accept(listener, NULL, NULL), one = 1;
        pthread_mutex_unlock(&door);
        if (at < 0) { usleep(100000); continue; }
        setsockopt(at, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        size_t have = 0;
        for (;;) {
            ssize_t got = read(at, text + have, sizeof text - 1 - have);
            if (got <= 0) break;
            have += got;
            text[have] = 0;
            if (!strstr(text, "\r\n\r\n")) { if (have > sizeof text - 2) break; continue; }
            int item = strstr(text, " /items") != NULL, closes = strstr(text, "onnection: close") != NULL;
            if (item) work();
            const char *answer = item ? found : missing;
            if (write(at, answer, strlen(answer)) < 0 || closes) break;
            have = 0;
        }
        close(at);
    }
    return none;
}

int main(void) {
    const char *set = getenv("ZOO_C");
    if (set) sscanf(set, "%d %d %d %d %d %d %d", &threads, &backlog, &hold_us, &cpu_us, &locked, &files, &accept_us);
    if (files) {
        struct rlimit most = {files, files};
        setrlimit(RLIMIT_NOFILE, &most);
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, backlog)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    pthread_t thread;
    for (int i = 1; i < threads; i++) pthread_create(&thread, NULL, serve, NULL);
    serve(NULL);
}
