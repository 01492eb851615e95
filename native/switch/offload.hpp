// Completes what a sending kernel left to its network card, and veth never did: checksums, and the
// cutting of a super-frame into segments. Described by the virtio_net_hdr of a packet socket.
// (linux/virtio_net.h is not C++: it has a member called class.)
#pragma once

#include "switch/frame_batch.hpp"

namespace ina::sw {

struct VnetHeader {  // virtio_net_hdr, host byte order
    uint8_t flags, gso_type;
    uint16_t header_bytes;  // a hint
    uint16_t gso_size;      // payload bytes of a segment
    uint16_t csum_start, csum_offset;
};
static_assert(sizeof(VnetHeader) == 10);
constexpr uint8_t kNeedsChecksum = 1, kChecksumValid = 2;  // of flags
constexpr uint8_t kGsoNone = 0, kGsoTcpV4 = 1, kGsoTcpV6 = 4, kGsoEcn = 0x80;
constexpr uint8_t kGsoUdpL4 =
    5;  // told since Linux 6.2; before, such frames are lost in the kernel

// Fills in the checksum that `header` says is missing; false: it points outside of the frame.
bool complete_checksum(const VnetHeader &header, uint8_t *frame, size_t bytes);

// Where a super-frame's headers end; false: malformed or unknown.
struct SegmentLayout {
    size_t network_offset, transport_offset, payload_offset;
    bool ipv4, tcp;
};
bool find_layout(const VnetHeader &header, const uint8_t *frame, size_t bytes,
                 SegmentLayout *layout);
// Makes `segment` (headers and payload copied from the super-frame) a frame of its own.
void finish_segment(const SegmentLayout &layout, uint8_t *segment, size_t bytes, size_t index,
                    size_t payload_before, bool last);

// Cuts a UDP or TCP super-frame into frames of header.gso_size payload bytes. admit() says of each
// whether it enters the batch (injected loss). Returns how many segments there were; 0: malformed,
// or of a kind that is not known.
template <typename Admit>
size_t split_segments(const VnetHeader &header, const uint8_t *frame, size_t bytes, uint32_t port,
                      FrameBatch *batch, Admit admit) {
    SegmentLayout layout;
    if (!find_layout(header, frame, bytes, &layout)) return 0;
    const size_t headers = layout.payload_offset;
    size_t count = 0;
    for (size_t offset = headers; offset < bytes; offset += header.gso_size, ++count) {
        const size_t left = bytes - offset;
        const size_t payload = left < header.gso_size ? left : header.gso_size;
        if (!admit()) continue;
        uint8_t *segment = batch->reserve(headers + payload);
        if (!segment) return count;
        __builtin_memcpy(segment, frame, headers);
        __builtin_memcpy(segment + headers, frame + offset, payload);
        finish_segment(layout, segment, headers + payload, count, offset - headers,
                       payload == left);
        batch->commit(headers + payload, port, batch->now_ns);
    }
    return count;
}

}  // namespace ina::sw
