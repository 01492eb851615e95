// Frames as switch ports read them: the datagram in one, whole or in two parts, and its checksum.
#include "switch/frame.hpp"

#include <algorithm>

#include "testing/doors.hpp"

namespace ina::testing {

namespace {

void lies_within(const std::uint8_t *part, std::size_t bytes, const Bytes &whole) {
    promise(bytes == 0 || (part >= whole.data() && part + bytes <= whole.data() + whole.size()),
            "a datagram's payload lies in its frame");
    touch(part, bytes);
}

// What was read, written again, reads the same.
void comes_back(const sw::Datagram &datagram) {
    const std::size_t bytes = datagram.payload_bytes + datagram.tail_bytes;
    Bytes frame(sw::kFrameHeaderBytes + bytes);
    sw::write_frame_header(frame.data(), datagram.source, datagram.destination, datagram.tos,
                           bytes);
    sw::Datagram again;
    promise(sw::parse_udp_frame(frame.data(), frame.size(), &again), "a frame we write is one");
    promise(again.source == datagram.source && again.destination == datagram.destination &&
                again.tos == datagram.tos && again.payload_bytes == bytes,
            "a frame we write says what we wrote");
    promise(!sw::has_wrong_checksum(frame.data(), frame.size()), "no checksum is no wrong one");
}

}  // namespace

void enter_frame(Input input) {
    const std::size_t cut = input.number(2);
    const Bytes frame = input.rest();
    const std::size_t head_bytes = std::min(cut, frame.size());
    const Bytes head(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(head_bytes));
    const Bytes tail(frame.begin() + static_cast<std::ptrdiff_t>(head_bytes), frame.end());

    sw::Datagram whole;
    const bool is_datagram = sw::parse_udp_frame(frame.data(), frame.size(), &whole);
    if (is_datagram) {
        lies_within(whole.payload, whole.payload_bytes, frame);
        promise(whole.tail_bytes == 0, "a frame in one part has no tail");
        comes_back(whole);
    }
    sw::has_wrong_checksum(frame.data(), frame.size());

    sw::Datagram parts;
    if (!sw::parse_udp_frame(head.data(), head.size(), &parts, tail.data(), tail.size())) return;
    promise(is_datagram, "a frame in two parts is one in one");
    lies_within(parts.payload, parts.payload_bytes, head);
    lies_within(parts.tail, parts.tail_bytes, tail);
    promise(parts.source == whole.source && parts.destination == whole.destination &&
                parts.payload_bytes + parts.tail_bytes == whole.payload_bytes,
            "a frame in two parts says what it says in one");
}

}  // namespace ina::testing
