#include "switch/shm_results.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "common/shm_ring.hpp"

#ifndef F_SEAL_FUTURE_WRITE  // older headers; the kernel decides
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace ina::sw {

ShmResults::~ShmResults() { close(); }

void ShmResults::open() {
    fd_ = memfd_create("ina-shm-results", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(kBytes)) < 0)
        throw std::system_error(errno, std::generic_category(), "shared memory for results");
    segment_ = shm::Segment(fd_, kBytes, shm::Access::kWrite, shm::Fill::kLater);
    // This mapping stays writable, no other can be made so.
    if (fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) <
        0)
        throw std::system_error(errno, std::generic_category(),
                                "shared memory for results that workers cannot write to");
}

void ShmResults::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    segment_ = {};
}

ShmResults::Location ShmResults::put(const uint8_t *values, size_t bytes) {
    if (values == last_values_ && bytes == last_bytes_) return last_;
    if (!make_room(bytes)) return {};
    last_values_ = values;
    last_bytes_ = bytes;
    last_ = {static_cast<uint32_t>(block_ * kBlockBytes + used_), block_};
    std::memcpy(static_cast<uint8_t *>(segment_.data()) + last_.at, values, bytes);
    // The next begin on a line, too.
    used_ += (bytes + shm::kLineBytes - 1) / shm::kLineBytes * shm::kLineBytes;
    return last_;
}

bool ShmResults::make_room(size_t bytes) {
    if (bytes > kBlockBytes) return false;
    if (used_ + bytes <= kBlockBytes) return true;
    const auto free = std::find(held_.begin(), held_.end(), 0u);
    if (free == held_.end()) return false;
    block_ = static_cast<uint32_t>(free - held_.begin());
    used_ = 0;
    return true;
}

}  // namespace ina::sw
