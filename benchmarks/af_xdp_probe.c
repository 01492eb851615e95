/* Frames over one virtual cable, without ina: AF_XDP sockets beside UDP sockets with GSO and GRO.
 *
 *   af_xdp_probe xdp-receive IF SECONDS      counts frames that come to queue 0 of IF
 *   af_xdp_probe xdp-send IF SECONDS         sends UDP frames of FRAME_BYTES there
 *   af_xdp_probe udp-receive PORT SECONDS    counts bytes and segments, in super-packets (UDP_GRO)
 *   af_xdp_probe udp-send ADDRESS PORT SECONDS
 *
 * Each prints one JSON line, frames and seconds; who receives says before that it is ready. Copy
 * mode, one queue: what every driver has. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAME_BYTES = 1498, /* Ethernet to the last of 1456 payload bytes: a packet of 360 values */
    PAYLOAD_BYTES = 1456,
    SLOT_BYTES = 2048,
    RING = 2048,
    BATCH = 64,
    SEGMENTS = 44, /* of a super-packet: at most 64 KiB */
    MESSAGES = 16,
};

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static void fail(const char *what) {
    fprintf(stderr, "af_xdp_probe: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void report(const char *what, uint64_t frames, double seconds) {
    printf("{\"way\": \"%s\", \"frames\": %llu, \"seconds\": %.6f}\n", what,
           (unsigned long long)frames, seconds);
}

/* Whoever reads our output may begin to send. */
static void say_ready(void) {
    printf("ready\n");
    fflush(stdout);
}

/* -- AF_XDP -- */

struct ring {
    uint32_t *producer, *consumer;
    void *entries;
    uint32_t at; /* our end of it */
};

struct xsk {
    int fd;
    uint8_t *umem;
    struct ring fill, done, rx, tx;
};

static void map_ring(struct ring *ring, int fd, const struct xdp_ring_offset *at, size_t entry,
                     uint64_t page) {
    const size_t size = at->desc + RING * entry;
    uint8_t *const base =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)page);
    if (base == MAP_FAILED) fail("mmap of a ring");
    ring->producer = (uint32_t *)(base + at->producer);
    ring->consumer = (uint32_t *)(base + at->consumer);
    ring->entries = base + at->desc;
    ring->at = 0;
}

static struct xsk open_xsk(const char *interface) {
    struct xsk x = {.fd = socket(AF_XDP, SOCK_RAW, 0)};
    if (x.fd < 0) fail("socket(AF_XDP)");
    const size_t bytes = (size_t)2 * RING * SLOT_BYTES; /* half to send from, half to receive in */
    x.umem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                  -1, 0);
    if (x.umem == MAP_FAILED) fail("mmap of the UMEM");
    const struct xdp_umem_reg region = {
        .addr = (uint64_t)(uintptr_t)x.umem, .len = bytes, .chunk_size = SLOT_BYTES};
    if (setsockopt(x.fd, SOL_XDP, XDP_UMEM_REG, &region, sizeof region)) fail("XDP_UMEM_REG");
    const int entries = RING;
    const int rings[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING};
    for (size_t i = 0; i < 4; i++)
        if (setsockopt(x.fd, SOL_XDP, rings[i], &entries, sizeof entries)) fail("a ring");
    struct xdp_mmap_offsets at;
    socklen_t size = sizeof at;
    if (getsockopt(x.fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size)) fail("XDP_MMAP_OFFSETS");
    map_ring(&x.fill, x.fd, &at.fr, sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING);
    map_ring(&x.done, x.fd, &at.cr, sizeof(uint64_t), XDP_UMEM_PGOFF_COMPLETION_RING);
    map_ring(&x.rx, x.fd, &at.rx, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
    map_ring(&x.tx, x.fd, &at.tx, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING);
    struct sockaddr_xdp address = {
        .sxdp_family = AF_XDP, .sxdp_ifindex = if_nametoindex(interface), .sxdp_flags = XDP_COPY};
    if (bind(x.fd, (struct sockaddr *)&address, sizeof address)) fail("bind to queue 0");
    return x;
}

static int bpf(int command, union bpf_attr *attributes) {
    return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

/* return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS); */
static void receive_there(const char *interface, int xsk) {
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_XSKMAP};
    map.key_size = map.value_size = 4, map.max_entries = 1;
    const int sockets = bpf(BPF_MAP_CREATE, &map);
    if (sockets < 0) fail("XSKMAP");
    const uint32_t zero = 0;
    union bpf_attr put = {.map_fd = (uint32_t)sockets};
    put.key = (uint64_t)(uintptr_t)&zero, put.value = (uint64_t)(uintptr_t)&xsk;
    if (bpf(BPF_MAP_UPDATE_ELEM, &put)) fail("the socket into its map");
    const struct bpf_insn code[] = {
        {BPF_LDX | BPF_W | BPF_MEM, 2, 1, 16, 0}, /* r2 = ctx->rx_queue_index */
        {BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, sockets},
        {0, 0, 0, 0, 0},
        {BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS},
        {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map},
        {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
    };
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_XDP};
    load.insn_cnt = sizeof code / sizeof code[0], load.insns = (uint64_t)(uintptr_t)code;
    load.license = (uint64_t)(uintptr_t)"Apache-2.0", load.expected_attach_type = BPF_XDP;
    const int program = bpf(BPF_PROG_LOAD, &load);
    if (program < 0) fail("the XDP program");
    union bpf_attr link = {0};
    link.link_create.prog_fd = (uint32_t)program;
    link.link_create.target_ifindex = if_nametoindex(interface);
    link.link_create.attach_type = BPF_XDP;
    link.link_create.flags = XDP_FLAGS_DRV_MODE; /* native, or not at all */
    if (bpf(BPF_LINK_CREATE, &link) < 0) fail("native XDP at the interface");
}

static void xdp_receive(const char *interface, double seconds) {
    struct xsk x = open_xsk(interface);
    for (uint32_t i = 0; i < RING; i++) ((uint64_t *)x.fill.entries)[i] = (uint64_t)i * SLOT_BYTES;
    x.fill.at = RING;
    __atomic_store_n(x.fill.producer, x.fill.at, __ATOMIC_RELEASE);
    receive_there(interface, x.fd);
    say_ready();
    uint64_t frames = 0;
    double first = 0, last = 0;
    const double end = now_s() + seconds + 5;
    while (now_s() < end && (!frames || now_s() - last < 1)) {
        const uint32_t there = __atomic_load_n(x.rx.producer, __ATOMIC_ACQUIRE) - x.rx.at;
        if (!there) {
            struct pollfd wait = {x.fd, POLLIN, 0};
            poll(&wait, 1, 100);
            continue;
        }
        for (uint32_t i = 0; i < there; i++) {
            const struct xdp_desc one = ((struct xdp_desc *)x.rx.entries)[x.rx.at++ % RING];
            const uint64_t slot = one.addr & ~(uint64_t)(SLOT_BYTES - 1);
            ((uint64_t *)x.fill.entries)[x.fill.at++ % RING] = slot;
            frames += one.len == FRAME_BYTES; /* and no neighbour that is looked for */
        }
        __atomic_store_n(x.rx.consumer, x.rx.at, __ATOMIC_RELEASE);
        __atomic_store_n(x.fill.producer, x.fill.at, __ATOMIC_RELEASE);
        if (frames) last = now_s();
        if (frames && !first) first = last;
    }
    report("xdp-receive", frames, last - first);
}

static void fill_frame(uint8_t *frame) {
    memset(frame, 0, FRAME_BYTES);
    memset(frame, 0xff, 6); /* to all: nobody has to be looked for */
    frame[6] = 2, frame[12] = 8;
    frame[14] = 0x45, frame[16] = (FRAME_BYTES - 14) >> 8, frame[17] = (FRAME_BYTES - 14) & 0xff;
    frame[22] = 64, frame[23] = 17;
    frame[38] = (FRAME_BYTES - 34) >> 8, frame[39] = (FRAME_BYTES - 34) & 0xff;
}

static void xdp_send(const char *interface, double seconds) {
    struct xsk x = open_xsk(interface);
    for (uint32_t i = 0; i < RING; i++) fill_frame(x.umem + (size_t)(RING + i) * SLOT_BYTES);
    const double begin = now_s();
    uint32_t sent = 0, done = 0;
    while (now_s() - begin < seconds) {
        for (int i = 0; i < BATCH && sent - done < RING; i++, sent++) {
            const uint64_t at = (uint64_t)(RING + sent % RING) * SLOT_BYTES;
            /* as a host does, that writes its values into the frame */
            memset(x.umem + at + 42, (int)sent, PAYLOAD_BYTES);
            ((struct xdp_desc *)x.tx.entries)[sent % RING] = (struct xdp_desc){at, FRAME_BYTES, 0};
        }
        __atomic_store_n(x.tx.producer, sent, __ATOMIC_RELEASE);
        sendto(x.fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
        done = __atomic_load_n(x.done.producer, __ATOMIC_ACQUIRE);
        __atomic_store_n(x.done.consumer, done, __ATOMIC_RELEASE);
    }
    report("xdp-send", done, now_s() - begin);
}

/* -- UDP -- */

static void udp_receive(int port, double seconds) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1, room = 32 << 20;
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (bind(fd, (struct sockaddr *)&own, sizeof own)) fail("bind");
    struct timeval wait = {0, 100000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    static uint8_t buffers[MESSAGES][65536];
    struct iovec parts[MESSAGES];
    struct mmsghdr messages[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        parts[i] = (struct iovec){buffers[i], sizeof buffers[i]};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
    }
    say_ready();
    uint64_t frames = 0;
    double first = 0, last = 0;
    const double end = now_s() + seconds + 5;
    while (now_s() < end && (!frames || now_s() - last < 1)) {
        const int count = recvmmsg(fd, messages, MESSAGES, MSG_WAITFORONE, NULL);
        for (int i = 0; i < count; i++) frames += messages[i].msg_len / PAYLOAD_BYTES;
        if (count > 0) last = now_s();
        if (count > 0 && !first) first = last;
    }
    report("udp-receive", frames, last - first);
}

static void udp_send(const char *to, int port, double seconds) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0), segment = PAYLOAD_BYTES, room = 4 << 20;
    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment)) fail("UDP_SEGMENT");
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, to, &peer.sin_addr);
    if (connect(fd, (struct sockaddr *)&peer, sizeof peer)) fail("connect");
    static uint8_t buffer[SEGMENTS * PAYLOAD_BYTES];
    uint64_t frames = 0;
    const double begin = now_s();
    while (now_s() - begin < seconds) {
        memset(buffer, (int)frames, sizeof buffer);
        if (send(fd, buffer, sizeof buffer, 0) > 0) frames += SEGMENTS;
    }
    report("udp-send", frames, now_s() - begin);
}

int main(int count, char **words) {
    if (count == 4 && !strcmp(words[1], "xdp-receive"))
        xdp_receive(words[2], atof(words[3]));
    else if (count == 4 && !strcmp(words[1], "xdp-send"))
        xdp_send(words[2], atof(words[3]));
    else if (count == 4 && !strcmp(words[1], "udp-receive"))
        udp_receive(atoi(words[2]), atof(words[3]));
    else if (count == 5 && !strcmp(words[1], "udp-send"))
        udp_send(words[2], atoi(words[3]), atof(words[4]));
    else
        return fputs("want xdp-receive, xdp-send, udp-receive or udp-send\n", stderr), 2;
    return 0;
}
