// What a packet socket delivers: a virtio_net_hdr, and a frame whose checksum is missing, or which
// is many in one.
#include "switch/offload.hpp"

#include <cstring>

#include "switch/frame.hpp"
#include "testing/doors.hpp"

namespace ina::testing {

void enter_offload(Input input) {
    sw::VnetHeader header{};
    const Bytes said = input.take(sizeof header);
    if (said.size() < sizeof header) return;
    std::memcpy(&header, said.data(), sizeof header);
    const Bytes frame = input.rest();

    Bytes completed = frame;
    sw::complete_checksum(header, completed.data(), completed.size());
    sw::has_wrong_checksum(completed.data(), completed.size());

    sw::FrameBatch batch;
    const std::size_t count =
        sw::split_segments(header, frame.data(), frame.size(), 1, &batch, [] { return true; });
    promise(batch.packets().size() == count, "each segment is a frame");
    sw::SegmentLayout layout;
    if (count == 0) return;
    promise(sw::find_layout(header, frame.data(), frame.size(), &layout),
            "what is cut has a layout");
    std::size_t payload_bytes = 0;
    for (const ina_packet_in &packet : batch.packets()) {
        promise(packet.length > layout.payload_offset, "a segment has a payload");
        promise(packet.length <= layout.payload_offset + header.gso_size, "and no longer a one");
        payload_bytes += packet.length - layout.payload_offset;
        touch(packet.data, packet.length);
    }
    promise(layout.payload_offset + payload_bytes <= frame.size(), "segments are of the frame");
}

}  // namespace ina::testing
