// How packets get from a worker to the switch and back: what a Transport needs of a UDP socket or
// of shared memory. One thread at a time uses a channel; only close(), owes() and
// take_own_results() may come from others. It is for the first that does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/core/tree.hpp"
#include "host/core/worker_types.hpp"
#include "host/endpoint/arrival.hpp"

namespace ina::host {

struct ChannelCounters {
    std::uint64_t send_calls = 0;  // system calls
    std::uint64_t receive_calls = 0;
    std::uint64_t refused = 0;         // times that it was plain that no switch is there any more
    std::uint64_t unreachable = 0;     // UDP: other ICMP errors
    std::uint64_t send_drops = 0;      // packets that were not taken; retransmission repairs it
    std::uint64_t shared_packets = 0;  // that came for several workers at once
    std::uint64_t damaged = 0;         // RoCEv2: not as its ICRC says, or for another queue pair
    // Reliable connections that have ended: what they sent was not acknowledged for so long that
    // they try no more, whoever is to blame. The rest of them is of no use then, either.
    std::uint64_t spent = 0;
};

class Channel {
  public:
    Channel() = default;
    virtual ~Channel() = default;
    Channel(const Channel &) = delete;
    Channel &operator=(const Channel &) = delete;

    // Channels for the threads from 1 on, over the same ways; this one becomes thread 0's. None:
    // there can be just one. `ways`: one, which the channel leads to anyway, or several. To be
    // called before anything is sent, if there is one thread and one way not at all. Throws
    // std::system_error, std::runtime_error: it leads to one node only.
    virtual std::vector<std::unique_ptr<Channel>> divide(const LaneParts & /*parts*/,
                                                         const std::vector<Way> &ways) {
        if (ways.size() > 1) {
            throw std::runtime_error(std::string(kind()) + " leads to one switch, not to " +
                                     std::to_string(ways.size()));
        }
        return {};
    }
    // Once packets are under way, in the thread that uses it, which is this one of the threads:
    // leads also to ways that were added, where each way takes just the jobs that it has now; and
    // gets the packets of its lanes by these parts, or else by those before. What comes meanwhile
    // may be lost. Throws std::runtime_error, std::system_error: it leads where it led before.
    virtual void redirect(const LaneParts & /*parts*/, std::size_t /*thread*/,
                          const std::vector<Way> &ways) {
        if (ways.size() > 1) {
            throw std::runtime_error(std::string(kind()) + " leads to one switch, not to " +
                                     std::to_string(ways.size()));
        }
    }
    // Why what comes after divide() comes to any one of the channels. Empty: each packet comes to
    // that of its lane's thread, but for some that came together with others.
    virtual const std::string &one_queue_why() const { return none_; }

    // So many packets at a time are best handed to send().
    virtual std::size_t burst_packets() const { return 256; }

    // Where packets are to be built, if it matters; nothing: anywhere. Packets built elsewhere are
    // dropped.
    virtual PacketMemory packet_memory() { return {}; }

    // Sends all, in order, in trains of at most `longest_train` packets where it makes trains, to
    // the node of this way. What cannot be taken is dropped and counted.
    virtual void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
                      std::size_t way) = 0;

    // Replaces `arrivals` by what has come, a bounded number of packets; never blocks. They stay
    // valid until release(). True when more may be waiting.
    virtual bool receive(std::vector<Arrival> *arrivals) = 0;
    virtual void release() {}

    // From now on takes no results that are for several workers. Throws std::system_error.
    virtual void take_own_results() {}

    // Readable when packets come after prepare_sleep() returned true. That says false when packets
    // are here already; `in_flight` are the packets that wait for their result.
    virtual int fd() const = 0;
    virtual bool prepare_sleep(std::uint32_t /*in_flight*/) { return true; }
    // Whether each packet, or train of packets, wakes who sleeps: then it pays to let some gather.
    virtual bool is_woken_often() const { return false; }

    // Whether another worker may lack something that nobody else will send it, as long as this
    // channel lives. Any thread may ask.
    virtual bool owes() const { return false; }

    // Packets with so many values that may be on their way without being lost for want of room.
    virtual std::uint32_t room_packets(std::uint32_t values_per_packet) const = 0;
    virtual int receive_buffer_bytes() const = 0;
    virtual const char *kind() const = 0;  // "udp", "shm"
    virtual bool uses_gso() const { return false; }
    virtual bool uses_gro() const { return false; }

    // Lets go of descriptors. Idempotent; nothing else may be called afterwards.
    virtual void close() = 0;

    const ChannelCounters &counters() const { return counters_; }

  protected:
    ChannelCounters counters_;

  private:
    const std::string none_;
};

}  // namespace ina::host
