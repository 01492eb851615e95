// A host's part of a group of embeddings: the owner of its rows, and the asker for all of them.
// What it asks of itself goes no further than here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "embed/client.hpp"
#include "embed/owner.hpp"

namespace ina::embed {

class Node {
  public:
    // Throws std::invalid_argument: a number out of range.
    Node(const GroupConfig &config, const ClientConfig &own)
        : config_(config), owner_(config, &outbox_), client_(config, own, &outbox_),
          patience_ns_(own.patience_ns) {}

    Owner &owner() { return owner_; }
    const Owner &owner() const { return owner_; }
    Client &client() { return client_; }
    const Client &client() const { return client_; }
    const GroupConfig &config() const { return config_; }
    std::uint64_t damaged() const { return damaged_; }  // packets that are not whole, or not ours

    // Before any step has ended. Throws std::logic_error: one has.
    void set_optimizer(const Optimizer &optimizer) {
        owner_.set_optimizer(optimizer);
        client_.set_optimizer(optimizer);
    }

    // Writes hot rows that this host owns, as they are now, to where they are read once they are
    // hot no more.
    void settle_hot() {
        const HotRows &hot = client_.hot();
        for (std::size_t table = 0; table < config_.tables.size(); ++table) {
            const Placement &placement = owner_.placement(table);
            Shard &shard = owner_.shard(table);
            for (std::size_t i = 0; i < hot.rows(table).size(); ++i) {
                const std::uint32_t row = hot.rows(table)[i];
                if (placement.owner_of(row) != config_.host) continue;
                const std::uint32_t local = placement.local_of(row);
                std::copy_n(hot.values(table, i), shard.dim(), shard.row(local));
                std::copy_n(hot.state(table, i), shard.state_values(), shard.state(local));
            }
        }
    }

    // A datagram that has come from the host with this number; what is not its own is dropped.
    void receive(std::uint16_t from, const std::uint8_t *packet, std::size_t bytes,
                 std::int64_t now_ns) {
        Header header;
        if (!is_whole(packet, bytes, config_.key, config_.hosts, &header) ||
            header.sender != from) {
            ++damaged_;
            return;
        }
        hand_on(header, packet + kHeaderBytes, bytes - kHeaderBytes, now_ns);
    }
    void poll(std::int64_t now_ns) {
        look_at_versions(now_ns);
        client_.poll(now_ns);
        if (client_.failure() != nullptr && told_ < kTellings && now_ns >= tell_at_ns_) {
            ++told_;
            tell_at_ns_ = now_ns + kTellAgainNs;
            for (std::uint16_t host = 0; host < config_.hosts; ++host) tell(host);
        }
    }
    std::int64_t next_deadline_ns() const {
        if (client_.failure() != nullptr) return told_ < kTellings ? tell_at_ns_ : INT64_MAX;
        return std::min(client_.next_deadline_ns(), late_at_ns_);
    }
    // What is to be sent to other hosts. To be called after whatever else is.
    std::vector<Packet> take_packets(std::int64_t now_ns) {
        std::vector<Packet> leaving;
        while (!outbox_.is_empty()) {
            for (Packet &packet : outbox_.take()) {
                if (packet.to != config_.host) {
                    leaving.push_back(std::move(packet));
                } else {
                    hand_on(load_header(packet.bytes.data()), packet.bytes.data() + kHeaderBytes,
                            packet.bytes.size() - kHeaderBytes, now_ns);
                }
            }
            poll(now_ns);  // the client's window has room again
        }
        return leaving;
    }

  private:
    static constexpr int kTellings = 10;
    static constexpr std::int64_t kTellAgainNs = 200'000'000;

    // A step that this host has ended, and others have not: who asks for nothing hears of nobody's
    // silence otherwise.
    void look_at_versions(std::int64_t now_ns) {
        if (config_.host >= config_.asking()) return;  // it ends no step, and waits for nobody
        const std::uint32_t version = owner_.version();
        if (version == client_.ended_steps()) {
            late_at_ns_ = INT64_MAX;
        } else if (late_at_ns_ == INT64_MAX || version != late_version_) {
            late_version_ = version;
            late_at_ns_ = now_ns + 3 * patience_ns_;
        } else if (now_ns >= late_at_ns_ && owner_.missing() != 0) {
            std::uint16_t host = 0;
            while ((owner_.missing() >> host & 1) == 0) ++host;
            client_.fail(host, version, "has not ended this step");
        }
    }
    // Others may wait for this host, who waits for the one that is lost.
    void tell(std::uint16_t to) {
        const Failure &failure = *client_.failure();
        Header header;
        header.kind = Kind::kWait;
        header.flags = kFlagFault;
        header.sender = config_.host;
        header.key = config_.key;
        header.step = failure.step;
        header.parts = 1;
        if (to != config_.host && to != failure.host) {
            outbox_.put_mask(to, header, std::uint64_t{1} << failure.host);
        }
    }
    void hand_on(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                 std::int64_t now_ns) {
        if (header.kind == Kind::kLookup || header.kind == Kind::kGradient) {
            if (client_.failure() != nullptr) return tell(header.sender);
            owner_.on_packet(header, payload, bytes);
        } else {
            client_.on_packet(header, payload, bytes, now_ns);
        }
    }

    const GroupConfig config_;
    Outbox outbox_;
    Owner owner_;
    Client client_;
    std::uint64_t damaged_ = 0;
    const std::int64_t patience_ns_;
    std::uint32_t late_version_ = 0;
    std::int64_t late_at_ns_ = INT64_MAX;  // if the version is still this one then
    int told_ = 0;                         // so often of a failure
    std::int64_t tell_at_ns_ = 0;
};

}  // namespace ina::embed
