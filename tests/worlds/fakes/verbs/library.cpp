// A libibverbs with one device that is UDP sockets of this process: queue pair n is at port
// 0xC000 + n, and its datagrams are RoCEv2's payload, BTH to ICRC, as the soft switch's UDP port
// takes them (frame_udp_port). What a test wants of it is in the environment:
//
//   FAKE_VERBS_IPV4      of the device, 127.0.0.1; empty: it has a GID of RoCEv1 alone
//   FAKE_VERBS_MTU       active, as the library says it: 1 (256) to 5 (4096); 3
//   FAKE_VERBS_SWITCH    UDP port that other addresses are reached at; 4791
//   FAKE_VERBS_FAILS     name of a call that fails with ENOMEM, or "modify_qp" with ETIMEDOUT;
//                        "acknowledge": reliable connections give up at once
//   FAKE_VERBS_ACKS      reliable connections say what has come at each so-manieth message; 1
//   FAKE_VERBS_LATE      1: a message is read out of memory when the next one is posted
//   FAKE_VERBS_STATE     of the port; 4: active
//   FAKE_VERBS_DEVICES   0: there is none
//
// Reliable connections are between its own queue pairs alone, and nothing is lost there.
//
// A test compiles it (tests/worlds/fakes/verbs/__init__.py), by verbs_abi.hpp, whose agreement with
// the library's own header is another test's.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "host/channel/verbs_abi.hpp"

using namespace ina::host::verbs;

namespace {

constexpr std::size_t kBthBytes = 12;
constexpr std::uint16_t kRocePort = 4791;
constexpr int kFirstPort = 0xC000;
constexpr std::uint32_t kFirstSwitchQp = 0x800000;
constexpr std::uint8_t kUcSendOnly = 0x24;
constexpr std::uint8_t kRcSendOnly = 0x04;
constexpr std::uint8_t kAcknowledge = 0x11;
// What the kernel wants to be told of a reliable connection, beside what it wants of all.
constexpr int kRcReady = kAttrMaxDestRdAtomic | kAttrMinRnrTimer | kAttrRqPsn;
constexpr int kRcSends =
    kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxRdAtomic;

std::string told(const char *name, const char *usual) {
    const char *const value = std::getenv(name);
    return value == nullptr ? usual : value;
}

bool fails(const char *call) {
    if (told("FAKE_VERBS_FAILS", "") != call) return false;
    errno = ENOMEM;
    return true;
}

std::uint32_t own_ipv4() {  // network byte order; 0: none
    in_addr address{};
    ::inet_pton(AF_INET, told("FAKE_VERBS_IPV4", "127.0.0.1").c_str(), &address);
    return address.s_addr;
}

struct FakeCq : Cq {
    std::mutex mutex;
    std::deque<Wc> ended;
    int event_fd = -1;
    bool is_armed = false;

    void put(const Wc &it) {
        const std::lock_guard lock(mutex);
        ended.push_back(it);
        const std::uint64_t one = 1;
        if (is_armed) (void)!::write(event_fd, &one, sizeof one);
        is_armed = false;
    }
};

struct FakeChannel : CompChannel {
    Cq *cq = nullptr;
};

struct FakeQp : Qp {
    int socket = -1;
    int stop_fd = -1;
    std::thread thread;
    std::mutex mutex;
    std::deque<RecvWr> posted;
    std::deque<Sge> pieces;
    sockaddr_in to{};
    std::uint32_t dest_ipv4 = 0;
    std::uint32_t dest_qp = 0;
    std::uint32_t psn = 0;
    bool is_ready = false;
    bool is_reliable = false;
    std::uint32_t most_sends = 0;
    std::uint32_t expected = 0;        // reliable: the next one's number
    std::uint32_t unsaid = 0;          // reliable: messages that came since it said so last
    std::deque<std::uint64_t> sent{};  // reliable: not acknowledged, the last one has psn - 1
};

void put_datagram(FakeQp &qp, std::uint8_t opcode, std::uint32_t psn,
                  const std::vector<std::uint8_t> &inner);
void acknowledged(FakeQp &qp, std::uint32_t psn);

// The invariant CRC of a datagram from a UDP socket: identification 0, don't fragment.
std::uint32_t icrc(std::uint32_t from, std::uint16_t src_port, std::uint32_t to,
                   const std::uint8_t *payload, std::size_t bytes) {
    std::uint8_t head[36] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x45, 0xFF};
    const auto put = [&head](std::size_t at, std::size_t value) {
        head[at] = static_cast<std::uint8_t>(value >> 8);
        head[at + 1] = static_cast<std::uint8_t>(value);
    };
    put(10, 20 + 8 + bytes + 4);
    head[14] = 0x40;
    head[16] = 0xFF;
    head[17] = 17;
    head[18] = head[19] = 0xFF;
    std::memcpy(head + 20, &from, 4);
    std::memcpy(head + 24, &to, 4);
    put(28, src_port);
    put(30, kRocePort);
    put(32, 8 + bytes + 4);
    head[34] = head[35] = 0xFF;
    std::uint32_t crc = ~0U;
    const auto add = [&crc](std::uint8_t byte) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
    };
    for (const std::uint8_t byte : head) add(byte);
    for (std::size_t i = 0; i < bytes; ++i) add(i == 4 ? 0xFF : payload[i]);
    return ~crc;
}

void deliver(FakeQp &qp, const std::uint8_t *data, std::size_t bytes, const sockaddr_in &from) {
    if (bytes < kBthBytes + 4) return;
    const std::size_t inner = bytes - 4;
    // The switch says the worker's own flow as its port, a queue pair of this device its own.
    const bool is_own = qp.dest_qp < kFirstSwitchQp;
    const auto flow = static_cast<std::uint16_t>(kFirstPort | (qp.qp_num & 0x3FFF));
    const std::uint16_t port = is_own ? ntohs(from.sin_port) : flow;
    std::uint32_t said = 0;
    std::memcpy(&said, data + inner, sizeof said);
    if (said != icrc(qp.dest_ipv4, port, own_ipv4(), data, inner)) return;
    const std::uint32_t number = std::uint32_t{data[5]} << 16 | data[6] << 8 | data[7];
    const std::uint32_t psn = std::uint32_t{data[9]} << 16 | data[10] << 8 | data[11];
    const std::lock_guard lock(qp.mutex);
    if (!qp.is_ready || number != qp.qp_num) return;
    if (qp.is_reliable && data[0] == kAcknowledge) return acknowledged(qp, psn);
    if (data[0] != (qp.is_reliable ? kRcSendOnly : kUcSendOnly) || qp.posted.empty()) return;
    if (qp.is_reliable && psn != qp.expected) std::abort();  // nothing is lost
    const RecvWr wanted = qp.posted.front();
    const Sge piece = qp.pieces.front();
    if (inner - kBthBytes > piece.length) return;
    qp.posted.pop_front();
    qp.pieces.pop_front();
    std::memcpy(reinterpret_cast<void *>(piece.addr), data + kBthBytes, inner - kBthBytes);
    Wc it{};
    it.wr_id = wanted.wr_id;
    it.byte_len = static_cast<std::uint32_t>(inner - kBthBytes);
    it.qp_num = qp.qp_num;
    static_cast<FakeCq *>(qp.recv_cq)->put(it);
    if (!qp.is_reliable) return;
    qp.expected = (psn + 1) & 0xFFFFFF;
    if (++qp.unsaid < std::stoul(told("FAKE_VERBS_ACKS", "1"))) return;
    qp.unsaid = 0;
    put_datagram(qp, kAcknowledge, psn, {0x1F, 0, 0, 1});
}

void acknowledged(FakeQp &qp, std::uint32_t psn) {
    while (!qp.sent.empty() && ((qp.psn - qp.sent.size() - psn - 1) & 0x800000) != 0) {
        Wc it{};
        it.wr_id = qp.sent.front();
        qp.sent.pop_front();
        static_cast<FakeCq *>(qp.send_cq)->put(it);
    }
}

void run(FakeQp &qp) {
    std::vector<std::uint8_t> data(65536);
    while (true) {
        pollfd entries[2] = {{qp.socket, POLLIN, 0}, {qp.stop_fd, POLLIN, 0}};
        (void)::poll(entries, 2, -1);
        if (entries[1].revents != 0) return;
        sockaddr_in from{};
        socklen_t length = sizeof from;
        const ssize_t bytes = ::recvfrom(qp.socket, data.data(), data.size(), MSG_DONTWAIT,
                                         reinterpret_cast<sockaddr *>(&from), &length);
        if (bytes > 0) deliver(qp, data.data(), static_cast<std::size_t>(bytes), from);
    }
}

struct Waiting {
    std::uint64_t wr_id;
    bool is_signaled;
    std::vector<Sge> pieces;
};

void put(FakeQp &qp, const Waiting &it) {
    std::vector<std::uint8_t> inner;
    for (const Sge &piece : it.pieces) {
        const auto *const from = reinterpret_cast<const std::uint8_t *>(piece.addr);
        inner.insert(inner.end(), from, from + piece.length);
    }
    const std::lock_guard lock(qp.mutex);
    Wc ended{};
    ended.wr_id = it.wr_id;
    if (qp.is_reliable && fails("acknowledge")) {
        ended.status = kWcRetriesSpent;
        return static_cast<FakeCq *>(qp.send_cq)->put(ended);
    }
    if (qp.is_reliable) qp.sent.push_back(it.wr_id);
    put_datagram(qp, qp.is_reliable ? kRcSendOnly : kUcSendOnly, qp.psn++ & 0xFFFFFF, inner);
    if (!it.is_signaled || qp.is_reliable) return;
    static_cast<FakeCq *>(qp.send_cq)->put(ended);
}

void put_datagram(FakeQp &qp, std::uint8_t opcode, std::uint32_t psn,
                  const std::vector<std::uint8_t> &inner) {
    const std::uint32_t qp_word = htonl(qp.dest_qp);
    const std::uint32_t psn_word = htonl(psn);
    std::vector<std::uint8_t> out{opcode, 0x40, 0xFF, 0xFF};
    for (const std::uint32_t *word : {&qp_word, &psn_word}) {
        const auto *const from = reinterpret_cast<const std::uint8_t *>(word);
        out.insert(out.end(), from, from + sizeof *word);
    }
    out.insert(out.end(), inner.begin(), inner.end());
    const auto flow = static_cast<std::uint16_t>(kFirstPort | (qp.qp_num & 0x3FFF));
    const std::uint32_t crc = icrc(own_ipv4(), flow, qp.dest_ipv4, out.data(), out.size());
    const auto *const tail = reinterpret_cast<const std::uint8_t *>(&crc);
    out.insert(out.end(), tail, tail + sizeof crc);
    (void)::sendto(qp.socket, out.data(), out.size(), 0, reinterpret_cast<const sockaddr *>(&qp.to),
                   sizeof qp.to);
}

bool is_full(FakeQp &qp) {
    const std::lock_guard lock(qp.mutex);
    return qp.is_reliable && qp.sent.size() == qp.most_sends;
}

int post_send(Qp *base, SendWr *first, SendWr **bad) {
    static std::deque<Waiting> late;
    FakeQp &qp = *static_cast<FakeQp *>(base);
    for (SendWr *it = first; it != nullptr; it = it->next) {
        if (is_full(qp)) {
            *bad = it;
            return ENOMEM;
        }
        if (fails("post_send")) {
            *bad = it;
            return ENOMEM;
        }
        const Waiting next{it->wr_id,
                           (it->send_flags & kSendSignaled) != 0,
                           {it->sg_list, it->sg_list + it->num_sge}};
        while (!late.empty()) {
            put(qp, late.front());
            late.pop_front();
        }
        if (told("FAKE_VERBS_LATE", "0") == "1") {
            late.push_back(next);
        } else {
            put(qp, next);
        }
    }
    return 0;
}

int post_recv(Qp *base, RecvWr *first, RecvWr **bad) {
    FakeQp &qp = *static_cast<FakeQp *>(base);
    const std::lock_guard lock(qp.mutex);
    for (RecvWr *it = first; it != nullptr; it = it->next) {
        if (it->num_sge != 1) {
            *bad = it;
            return EINVAL;
        }
        qp.posted.push_back(*it);
        qp.pieces.push_back(*it->sg_list);
    }
    return 0;
}

int poll_cq(Cq *base, int most, Wc *ended) {
    if (fails("poll_cq")) return -1;
    FakeCq &cq = *static_cast<FakeCq *>(base);
    const std::lock_guard lock(cq.mutex);
    int count = 0;
    for (; count < most && !cq.ended.empty(); ++count) {
        ended[count] = cq.ended.front();
        cq.ended.pop_front();
    }
    return count;
}

int req_notify_cq(Cq *base, int) {
    FakeCq &cq = *static_cast<FakeCq *>(base);
    const std::lock_guard lock(cq.mutex);
    cq.is_armed = true;
    return 0;
}

}  // namespace

struct ina::host::verbs::Device {};
struct ina::host::verbs::Pd {};

static Device the_device;

extern "C" {

int ibv_fork_init() { return 0; }
const char *ibv_get_device_name(Device *) { return "fake0"; }

Device **ibv_get_device_list(int *count) {
    *count = told("FAKE_VERBS_DEVICES", "1") == "0" ? 0 : 1;
    auto *const list = new Device *[2]();
    if (*count == 1) list[0] = &the_device;
    return list;
}
void ibv_free_device_list(Device **list) { delete[] list; }

Context *ibv_open_device(Device *device) {
    if (fails("open_device")) return nullptr;
    auto *const context = new Context{device, {}};
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    return context;
}
int ibv_close_device(Context *context) {
    delete context;
    return 0;
}

int ibv_query_port(Context *, std::uint8_t port, PortAttr *said) {
    if (port != 1) return EINVAL;
    said->state = std::stoi(told("FAKE_VERBS_STATE", "4"));
    said->max_mtu = 5;
    said->active_mtu = std::stoi(told("FAKE_VERBS_MTU", "3"));
    said->link_layer = kEthernet;
    return 0;
}

ssize_t _ibv_query_gid_table(Context *, GidEntry *entries, std::size_t, std::uint32_t,
                             std::size_t bytes) {
    if (bytes != sizeof(GidEntry)) return -EINVAL;
    GidEntry v1{};
    v1.gid.raw[10] = v1.gid.raw[11] = 0xFF;
    const std::uint32_t address = own_ipv4() != 0 ? own_ipv4() : htonl(INADDR_LOOPBACK);
    std::memcpy(v1.gid.raw + 12, &address, 4);
    v1.port_num = 1;
    v1.gid_type = kGidRoceV1;
    entries[0] = v1;
    entries[1] = v1;
    entries[1].gid_index = 1;
    entries[1].gid_type = kGidRoceV2;
    return own_ipv4() == 0 ? 1 : 2;
}

Pd *ibv_alloc_pd(Context *) { return new Pd; }
int ibv_dealloc_pd(Pd *pd) {
    delete pd;
    return 0;
}
Mr *ibv_reg_mr(Pd *pd, void *memory, std::size_t bytes, int) {
    if (fails("reg_mr")) return nullptr;
    return new Mr{nullptr, pd, memory, bytes, 0, 0x1234};
}
int ibv_dereg_mr(Mr *mr) {
    delete mr;
    return 0;
}

CompChannel *ibv_create_comp_channel(Context *context) {
    auto *const channel = new FakeChannel;
    channel->context = context;
    channel->fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    return channel;
}
int ibv_destroy_comp_channel(CompChannel *channel) {
    ::close(channel->fd);
    delete static_cast<FakeChannel *>(channel);
    return 0;
}
Cq *ibv_create_cq(Context *context, int, void *, CompChannel *channel, int) {
    auto *const cq = new FakeCq;
    cq->context = context;
    if (channel != nullptr) {
        cq->event_fd = channel->fd;
        static_cast<FakeChannel *>(channel)->cq = cq;
    }
    return cq;
}
int ibv_destroy_cq(Cq *cq) {
    delete static_cast<FakeCq *>(cq);
    return 0;
}
int ibv_get_cq_event(CompChannel *channel, Cq **cq, void **) {
    std::uint64_t one = 0;
    if (::read(channel->fd, &one, sizeof one) < 0) return -1;
    *cq = static_cast<FakeChannel *>(channel)->cq;
    return 0;
}
void ibv_ack_cq_events(Cq *, unsigned) {}

Qp *ibv_create_qp(Pd *pd, QpInitAttr *wanted) {
    if (wanted->qp_type != kQpUc && wanted->qp_type != kQpRc) return nullptr;
    if (fails("create_qp")) return nullptr;
    auto *const qp = new FakeQp;
    qp->is_reliable = wanted->qp_type == kQpRc;
    qp->most_sends = wanted->cap.max_send_wr;
    qp->context = wanted->send_cq->context;
    qp->pd = pd;
    qp->send_cq = wanted->send_cq;
    qp->recv_cq = wanted->recv_cq;
    qp->socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int most_bytes = 4 << 20;
    (void)::setsockopt(qp->socket, SOL_SOCKET, SO_RCVBUF, &most_bytes, sizeof most_bytes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = own_ipv4();
    // Anywhere from a place of its own process on, so that few look for one at the same place.
    for (int i = 0; i < 0x4000; ++i) {
        const int place = (static_cast<int>(::getpid()) * 61 + i) & 0x3FFF;
        at.sin_port = htons(static_cast<std::uint16_t>(kFirstPort | place));
        if (::bind(qp->socket, reinterpret_cast<sockaddr *>(&at), sizeof at) != 0) continue;
        qp->qp_num = 0x10000U | static_cast<std::uint32_t>(place);
        break;
    }
    qp->stop_fd = ::eventfd(0, EFD_CLOEXEC);
    qp->thread = std::thread([qp] { run(*qp); });
    return qp;
}

int ibv_modify_qp(Qp *base, QpAttr *wanted, int mask) {
    FakeQp &qp = *static_cast<FakeQp *>(base);
    if (qp.is_reliable) {
        const int all = wanted->qp_state == kStateRtr   ? kRcReady
                        : wanted->qp_state == kStateRts ? kRcSends
                                                        : 0;
        if ((mask & all) != all) return EINVAL;
    }
    if ((mask & kAttrSqPsn) != 0) qp.psn = wanted->sq_psn;
    if ((mask & kAttrRqPsn) != 0) qp.expected = wanted->rq_psn;
    if ((mask & kAttrAv) == 0) return 0;
    if (fails("modify_qp")) return ETIMEDOUT;
    if (wanted->ah_attr.grh.sgid_index != 1 || wanted->ah_attr.is_global != 1) return EINVAL;
    const std::lock_guard lock(qp.mutex);
    std::memcpy(&qp.dest_ipv4, wanted->ah_attr.grh.dgid.raw + 12, 4);
    qp.dest_qp = wanted->dest_qp_num;
    const bool is_own = qp.dest_ipv4 == own_ipv4() && qp.dest_qp < kFirstSwitchQp;
    const int port = is_own ? kFirstPort | static_cast<int>(qp.dest_qp & 0x3FFF)
                            : std::stoi(told("FAKE_VERBS_SWITCH", "4791"));
    qp.to.sin_family = AF_INET;
    qp.to.sin_addr.s_addr = qp.dest_ipv4;
    qp.to.sin_port = htons(static_cast<std::uint16_t>(port));
    qp.is_ready = true;
    return 0;
}

int ibv_destroy_qp(Qp *base) {
    auto *const qp = static_cast<FakeQp *>(base);
    const std::uint64_t one = 1;
    (void)!::write(qp->stop_fd, &one, sizeof one);
    qp->thread.join();
    ::close(qp->socket);
    ::close(qp->stop_fd);
    delete qp;
    return 0;
}

}  // extern "C"
