// A port of the switch: where frames come from and go to. One thread (PortLoop's) drives all ports;
// counters may be read from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "switch/delay_line.hpp"
#include "switch/frame_batch.hpp"
#include "switch/loss.hpp"
#include "switch/pipeline_abi.h"

namespace ina::sw {

// Written by one thread, read by others.
class Counter {
  public:
    void add(uint64_t n) {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t get() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> value_{0};
};

// Packets, and bytes of Ethernet frames without FCS. rx counts all that arrived, those dropped on
// the way in among them; every packet the pipeline emits is in tx or in one of the out-drops.
struct PortCounters {
    Counter rx_packets, rx_bytes, tx_packets, tx_bytes;
    Counter loss_in_packets, loss_out_packets;  // injected
    Counter no_pipeline_packets;                // in: no program was set
    Counter malformed_packets;                  // in: cut short or of a kind that cannot be read
    Counter wrong_checksum_packets;             // in: to the aggregation, UDP checksum wrong
    Counter undeliverable_packets;  // out: not what this port can carry, or addressed to itself
    Counter blocked_packets;        // out: the socket stayed full, or too many were held back
    Counter failed_packets;         // out: the kernel refused
};

class Port {
  public:
    Port(uint32_t number, double loss_probability, uint64_t loss_seed);
    virtual ~Port() = default;
    Port(const Port &) = delete;
    Port &operator=(const Port &) = delete;

    uint32_t number() const { return number_; }
    const PortCounters &counters() const { return counters_; }

    // To wait on for reading; -1 when the port is always ready until it is finished().
    virtual int fd() const = 0;
    virtual bool finished() const { return false; }
    // Called before the loop waits for fd(); false: receive() has something to do already.
    virtual bool prepare_sleep() { return true; }
    // Appends what is waiting and survives injected loss, until the batch is full; never blocks.
    virtual void receive(FrameBatch *batch) = 0;
    // Sends frames of the pipeline, in order for each destination, less injected loss; with a delay
    // keeps them until send_due() finds them due.
    void send(std::vector<ina_packet_out> *packets);
    // Before the loop starts.
    void set_delay(uint64_t delay_ns) { delay_.delay_ns = delay_ns; }
    uint64_t delay_ns() const { return delay_.delay_ns; }
    // When send_due() has something to send; kNeverNs: it has nothing.
    uint64_t due_ns() const { return delay_.due_ns(); }
    void send_due(uint64_t now_ns);
    // Whether frames may come in two parts (ina_packet_out.tail).
    virtual bool takes_tails() const { return false; }
    // Whether they may come in three (trailer_length).
    virtual bool takes_trailers() const { return false; }
    // Releases what the port holds open, once no loop uses it; may be called again.
    virtual void close() = 0;
    // What only this kind of port knows (socket buffers granted, kernel drops), appended by name.
    virtual void extra_stats(std::vector<std::pair<std::string, uint64_t>> *) const {}

    PortCounters &mutable_counters() { return counters_; }
    bool loses_arrival();  // injected loss: draws and counts

  protected:
    virtual void transmit(const std::vector<ina_packet_out> &packets) = 0;
    void count_sent(size_t packets, size_t bytes) {
        counters_.tx_packets.add(packets);
        counters_.tx_bytes.add(bytes);
    }

    PortCounters counters_;

  private:
    void leave(const std::vector<ina_packet_out> &packets);

    uint32_t number_;
    Loss loss_in_;
    Loss loss_out_;
    DelayLine delay_;
};

// Waits until fd takes data or deadline_ns (CLOCK_MONOTONIC) passes; false: it passed.
bool wait_writable(int fd, uint64_t deadline_ns);
uint64_t monotonic_ns();
// How long a full socket may hold up the loop before packets are dropped.
constexpr uint64_t kSendPatienceNs = 5'000'000;

}  // namespace ina::sw
