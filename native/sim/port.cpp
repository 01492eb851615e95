#include "sim/port.hpp"

#include <algorithm>
#include <utility>

namespace ina::sim {

Port::Port(Engine *engine, std::string name, std::uint64_t seed, const QueueConfig &queue,
           const LinkConfig &link, Node *node, std::uint32_t node_port)
    : engine_(engine), node_(node), node_port_(node_port),
      queue_(queue, Stream(seed, name + "/queue")), link_(link, Stream(seed, name + "/link")),
      name_(std::move(name)) {}

void Port::send(Frame frame) {
    catch_up();
    frame.set_wire_gap_bytes(link_.config().wire_gap_bytes);
    if (link_.is_bucket()) {
        put_whole(&frame, 1);
    } else {
        put(std::move(frame));
    }
    wake();
}

void Port::send_train(std::vector<Frame> *frames) {
    catch_up();
    std::int64_t bytes = 0;
    for (Frame &frame : *frames) {
        frame.set_wire_gap_bytes(link_.config().wire_gap_bytes);
        bytes += frame.wire_bytes();
    }
    if (link_.is_bucket()) {
        put_whole(frames->data(), frames->size());
        return wake();
    }
    const bool fits = queue_.bytes() + bytes <= queue_.config().limit_bytes;
    for (Frame &frame : *frames) {
        if (fits) {
            put(std::move(frame));
        } else {
            ++counters_.offered_packets;
            drop_full(frame);
        }
    }
    wake();
}

// At the end of a bucket's queue, as one; what waits for its tokens is in the queue, too.
void Port::put_whole(Frame *frames, std::size_t count) {
    const std::int64_t now_ns = engine_->now_ns();
    const std::int64_t sending_bytes = is_sending() ? sending_bytes_ : 0;
    std::int64_t bytes = sending_bytes + queue_.bytes();
    for (std::size_t i = 0; i < count; ++i) bytes += frames[i].wire_bytes();
    const bool fits = bytes <= queue_.config().limit_bytes;
    counters_.offered_packets += count;
    for (std::size_t i = 0; i < count; ++i) {
        frames[i].set_follows(i > 0);
        if (!fits || !queue_.put(frames[i], now_ns, &counters_.marked_packets)) {
            drop_full(frames[i]);
        }
    }
    counters_.longest_bytes = std::max(counters_.longest_bytes, sending_bytes + queue_.bytes());
    catch_up();
}

void Port::drop_full(const Frame &frame) {
    ++counters_.full_packets;
    note(frame, Fate::kQueueFull, engine_->now_ns());
}

void Port::put(Frame frame) {
    const std::int64_t now_ns = engine_->now_ns();
    ++counters_.offered_packets;
    frame.set_follows(false);
    if (!is_sending()) {  // then nothing waits
        queue_.pass(frame, &counters_.marked_packets);
        transmit(std::move(frame), now_ns);
    } else if (queue_.put(frame, now_ns, &counters_.marked_packets)) {
        counters_.longest_bytes = std::max(counters_.longest_bytes, queue_.bytes());
    } else {
        drop_full(frame);
    }
}

// What has begun to be sent by now.
void Port::catch_up() {
    while (!is_sending() && !queue_.empty()) {
        const std::int64_t from_ns = busy_until_ns_;
        Queue::Waiting next = queue_.take();
        if (link_.is_bucket()) {
            transmit_whole(std::move(next));
            continue;
        }
        counters_.waited_ns += from_ns - next.since_ns;
        transmit(std::move(next.frame), from_ns);
    }
}

void Port::transmit(Frame frame, std::int64_t from_ns) {
    busy_until_ns_ = from_ns + link_.busy_ns(frame.wire_bytes(), from_ns == busy_until_ns_);
    sending_packets_ = 1;
    sending_bytes_ = 0;
    carry(std::move(frame), busy_until_ns_);
}

// From a bucket, with what follows it. Its tokens are those since the bucket was empty: since what
// was sent before had the last of its own, or since the bucket, had it been empty then, is full.
void Port::transmit_whole(Queue::Waiting first) {
    std::vector<Frame> frames;
    frames.push_back(std::move(first.frame));
    while (!queue_.empty() && queue_.next().frame.follows()) {
        frames.push_back(std::move(queue_.take().frame));
    }
    sending_bytes_ = 0;
    sending_packets_ = static_cast<std::uint32_t>(frames.size());
    for (const Frame &frame : frames) sending_bytes_ += frame.wire_bytes();
    const std::int64_t from_ns = std::max(busy_until_ns_, first.since_ns - link_.burst_ns());
    busy_until_ns_ = from_ns + link_.busy_ns(sending_bytes_, from_ns == busy_until_ns_);
    const std::int64_t left_ns = std::max(busy_until_ns_, first.since_ns);
    counters_.waited_ns += (left_ns - first.since_ns) * static_cast<std::int64_t>(sending_packets_);
    for (Frame &frame : frames) carry(std::move(frame), left_ns);
}

void Port::carry(Frame frame, std::int64_t left_ns) {
    ++counters_.sent_packets;
    counters_.sent_bytes += static_cast<std::uint64_t>(frame.wire_bytes());
    std::int64_t late_ns = 0;
    bool overtaken = false;
    bool twice = false;
    Fate fate = link_.carry(frame, &late_ns, &overtaken, &twice);
    if (tap_ != nullptr && fate == Fate::kArrives && !(*tap_)(&frame)) fate = Fate::kLost;
    if (fate != Fate::kArrives) {
        ++counters_.lost_packets;
        counters_.corrupted_packets += fate == Fate::kCorrupted;
        note(frame, fate, left_ns);
        return;
    }
    const std::int64_t at_ns = left_ns + link_.config().delay_ns + late_ns;
    note(frame, fate, left_ns, at_ns);
    if (twice) {
        ++counters_.duplicated_packets;
        Frame copy = frame.copy();
        arrives(std::move(frame), at_ns, overtaken);
        arrives(std::move(copy), at_ns, overtaken);
    } else {
        arrives(std::move(frame), at_ns, overtaken);
    }
}

void Port::arrives(Frame frame, std::int64_t at_ns, bool overtaken) {
    if (overtaken) {
        overtaking_.push_back({at_ns, next_number_++, std::move(frame)});
        std::push_heap(overtaking_.begin(), overtaking_.end());
    } else {
        last_arrival_ns_ = std::max(last_arrival_ns_, at_ns);
        in_order_.push_back({last_arrival_ns_, next_number_++, std::move(frame)});
    }
}

std::int64_t Port::next_arrival_ns() const {
    const std::int64_t first_ns = in_order_.empty() ? kNever : in_order_.front().at_ns;
    return overtaking_.empty() ? first_ns : std::min(first_ns, overtaking_.front().at_ns);
}

void Port::on_event(std::uint64_t what) {
    if (what != wake_number_) return;
    wake_ns_ = kNever;
    catch_up();
    const std::int64_t now_ns = engine_->now_ns();
    while (next_arrival_ns() <= now_ns) {
        const bool is_late =
            in_order_.empty() || (!overtaking_.empty() && in_order_.front() < overtaking_.front());
        Frame frame;
        if (is_late) {
            std::pop_heap(overtaking_.begin(), overtaking_.end());
            frame = std::move(overtaking_.back().frame);
            overtaking_.pop_back();
        } else {
            frame = std::move(in_order_.front().frame);
            in_order_.pop_front();
        }
        ++counters_.arrived_packets;
        node_->receive(std::move(frame), node_port_);
    }
    wake();
}

// Sees to it that an event comes for the next arrival. Of what waits, none comes before the link is
// free and its delay has passed.
void Port::wake() {
    std::int64_t at_ns = next_arrival_ns();
    if (!queue_.empty()) at_ns = std::min(at_ns, busy_until_ns_ + link_.config().delay_ns);
    if (at_ns >= wake_ns_) return;
    wake_ns_ = at_ns;
    engine_->at(at_ns, this, ++wake_number_);
    if (!in_order_.empty()) in_order_.front().frame.prefetch();
}

std::uint32_t Port::waiting_packets() {
    catch_up();
    return queue_.packets() + (is_sending() ? sending_packets_ : 0);
}

std::int64_t Port::waiting_bytes() {
    catch_up();
    return queue_.bytes();
}

void Port::set_up(bool up) {
    catch_up();
    link_.set_up(up);
    if (up) return;
    counters_.lost_packets += in_order_.size() + overtaking_.size();
    in_order_.clear();
    overtaking_.clear();
}

void Port::clear() {
    catch_up();
    counters_.lost_packets += queue_.packets();
    queue_.clear();
}

void Port::set_link(const LinkConfig &config) {
    catch_up();
    link_.set_config(config);
    wake();
}

void Port::set_queue(const QueueConfig &config) {
    catch_up();
    queue_.set_config(config);
}

}  // namespace ina::sim
