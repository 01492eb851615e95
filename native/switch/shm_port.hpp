// A port for workers on the same host: packets in shared memory instead of datagrams. A worker
// connects to an abstract Unix address (which belongs to the network namespace, as a UDP port
// does), and gets two rings (common/shm_ring.hpp) and an address of its own. The P4 program sees
// frames from that address, which nobody else gets as long as this port lives, and sends results to
// it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "switch/port.hpp"
#include "switch/shm_peer.hpp"

namespace ina::sw {

class ShmPort final : public Port {
  public:
    // name: of the abstract address, without the leading zero byte. frame_udp_port: as UdpPort's.
    // Only processes of this one's user are let in. Throws std::system_error.
    ShmPort(uint32_t number, const std::string &name, uint16_t frame_udp_port,
            double loss_probability, uint64_t loss_seed);
    ~ShmPort() override;

    int fd() const override { return epoll_fd_; }
    bool prepare_sleep() override;
    void receive(FrameBatch *batch) override;
    bool takes_tails() const override { return true; }
    // Of the frames that workers' packets become: theirs is in no header. From any thread.
    void set_dscp(uint8_t dscp) { dscp_.store(dscp, std::memory_order_relaxed); }
    void extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const override;
    void close() override;

  protected:
    void transmit(const std::vector<ina_packet_out> &packets) override;

  private:
    void handle_events();
    void accept_all();
    void admit(ShmPeer *peer);
    void drop(ShmPeer *peer);
    bool has_packets() const;
    void ask_for_core();
    ShmPeer *find(Peer destination);

    int listener_ = -1, epoll_fd_ = -1;
    const Peer switch_end_;
    const size_t cores_;  // on which whoever makes the port may run
    uint64_t next_source_ = 0;
    ShmResults results_;  // the peers hold parts of it
    std::vector<std::unique_ptr<ShmPeer>> attached_;
    std::vector<std::unique_ptr<ShmPeer>> silent_;   // connected, no whole Hello yet; oldest first
    std::vector<std::unique_ptr<ShmPeer>> dropped_;  // the batch may hold packets of theirs
    size_t first_ = 0;                               // of attached_, to be served next
    size_t last_ = 0;                                // of attached_, that the last packet went to
    bool is_asleep_ = false;
    std::atomic<uint8_t> dscp_ = 0;
    bool was_busy_ = false;  // since it last slept
    uint32_t busy_rounds_ = 0;
    Counter attachments_, refused_, broken_, detached_;
};

}  // namespace ina::sw
