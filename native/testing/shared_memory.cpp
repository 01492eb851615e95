#include "testing/shared_memory.hpp"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

namespace ina::testing {

Descriptor::~Descriptor() { close(); }

void Descriptor::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

int new_memory(std::size_t bytes) {
    const int fd = ::memfd_create("ina-door", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) < 0) {
        throw std::system_error(errno, std::generic_category(), "memory of a door");
    }
    return fd;
}

void connect_pair(int ends[2]) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair");
    }
}

void scribble(Input *input, std::uint8_t *memory, std::size_t bytes) {
    const std::size_t at = input->number(3) % bytes;
    const Bytes what = input->take(std::min<std::size_t>(input->byte(), bytes - at));
    std::copy(what.begin(), what.end(), memory + at);
}

void scribble(Input *input, shm::Control *control) {
    std::atomic<std::uint32_t> *const numbers[] = {&control->published, &control->leave_core,
                                                   &control->released, &control->wanted};
    std::atomic<std::uint32_t> &number = *numbers[input->byte() % 4];
    const std::uint8_t how = input->byte();
    number = how < 128 ? number + (how - 64u) : input->number(4);
}

void scribble(Input *input, const shm::Ring &ring) {
    shm::CellHead head{};
    const std::uint32_t position = input->byte();
    head.bytes = input->number(2);
    head.marked = input->byte() % 2;
    head.rest_at = input->byte() % 4 == 0 ? shm::kInOwnFrame : input->number(4);
    std::memcpy(ring.cell(position), &head, sizeof head);
}

KeptCores::KeptCores() : cores_(sizeof(cpu_set_t)) {
    if (::sched_getaffinity(0, cores_.size(), reinterpret_cast<cpu_set_t *>(cores_.data())) != 0) {
        cores_.clear();
    }
}

KeptCores::~KeptCores() {
    if (cores_.empty()) return;
    (void)::sched_setaffinity(0, cores_.size(), reinterpret_cast<cpu_set_t *>(cores_.data()));
}

}  // namespace ina::testing
