#include "host/channel/verbs.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace ina::host::verbs {
namespace {

constexpr const char *kSoname = "libibverbs.so.1";
constexpr std::uint8_t kMostPorts = 8;
// Of a device. The kernel's call takes 64 KiB of them.
constexpr std::size_t kMostGids = 2000;

template <typename Function>
void find(void *handle, const char *name, Function *function) {
    *function = reinterpret_cast<Function>(::dlsym(handle, name));
    if (*function != nullptr) return;
    throw std::runtime_error(std::string(kSoname) + " has no " + name +
                             ": version 32 of rdma-core is wanted, or a newer one");
}

Library load() {
    // Never closed: its providers have threads and handlers of their own.
    void *const handle = ::dlopen(kSoname, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char *const why = ::dlerror();
        throw std::runtime_error("no libibverbs: " + std::string(why == nullptr ? kSoname : why));
    }
    Library it{};
    find(handle, "ibv_fork_init", &it.fork_init);
    find(handle, "ibv_get_device_list", &it.get_device_list);
    find(handle, "ibv_free_device_list", &it.free_device_list);
    find(handle, "ibv_get_device_name", &it.get_device_name);
    find(handle, "ibv_open_device", &it.open_device);
    find(handle, "ibv_close_device", &it.close_device);
    find(handle, "ibv_query_port", &it.query_port);
    find(handle, "_ibv_query_gid_table", &it.query_gid_table);
    find(handle, "ibv_alloc_pd", &it.alloc_pd);
    find(handle, "ibv_dealloc_pd", &it.dealloc_pd);
    find(handle, "ibv_reg_mr", &it.reg_mr);
    find(handle, "ibv_dereg_mr", &it.dereg_mr);
    find(handle, "ibv_create_comp_channel", &it.create_comp_channel);
    find(handle, "ibv_destroy_comp_channel", &it.destroy_comp_channel);
    find(handle, "ibv_create_cq", &it.create_cq);
    find(handle, "ibv_destroy_cq", &it.destroy_cq);
    find(handle, "ibv_get_cq_event", &it.get_cq_event);
    find(handle, "ibv_ack_cq_events", &it.ack_cq_events);
    find(handle, "ibv_create_qp", &it.create_qp);
    find(handle, "ibv_modify_qp", &it.modify_qp);
    find(handle, "ibv_destroy_qp", &it.destroy_qp);
    (void)it.fork_init();  // where it fails, children may not touch what they share: they do not
    return it;
}

// The devices' handles, of which open ones stay valid without the list.
class Handles {
  public:
    explicit Handles(const Library &its) : its_(its), list_(its.get_device_list(&count_)) {}
    ~Handles() {
        if (list_ != nullptr) its_.free_device_list(list_);
    }
    Handles(const Handles &) = delete;
    Handles &operator=(const Handles &) = delete;

    Device *const *begin() const { return list_; }
    Device *const *end() const { return list_ == nullptr ? list_ : list_ + count_; }

  private:
    const Library &its_;
    int count_ = 0;
    Device **list_;  // null: a kernel without RDMA
};

std::string text_of(int error) { return std::generic_category().message(error); }

GidInfo info_of(const GidEntry &entry) {
    static constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    GidInfo gid{entry.gid_index, entry.gid_type, "", 0, entry.ndev_ifindex};
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET6, entry.gid.raw, text.data(), text.size());
    gid.address = text.data();
    if (std::equal(kMapped.begin(), kMapped.end(), entry.gid.raw)) {
        std::uint32_t address = 0;
        std::memcpy(&address, entry.gid.raw + kMapped.size(), sizeof address);
        gid.ipv4 = ntohl(address);
    }
    return gid;
}

std::vector<PortInfo> ports_of(const Library &its, Context *context) {
    std::vector<PortInfo> ports;
    for (std::uint8_t number = 1; number <= kMostPorts; ++number) {
        PortAttr said{};
        if (its.query_port(context, number, &said) != 0) break;
        ports.push_back({number,
                         said.state == kPortActive,
                         said.link_layer == kEthernet,
                         mtu_bytes_of(said.active_mtu),
                         mtu_bytes_of(said.max_mtu),
                         {}});
    }
    std::vector<GidEntry> entries(kMostGids);
    const ssize_t count =
        its.query_gid_table(context, entries.data(), entries.size(), 0, sizeof(GidEntry));
    for (ssize_t i = 0; i < count; ++i) {
        const GidEntry &entry = entries[static_cast<std::size_t>(i)];
        if (entry.port_num == 0 || entry.port_num > ports.size()) continue;
        ports[entry.port_num - 1].gids.push_back(info_of(entry));
    }
    return ports;
}

}  // namespace

const Library &library() {
    static const Library loaded = load();  // again, where it throws
    return loaded;
}

std::vector<DeviceInfo> devices() {
    const Library &its = library();
    std::vector<DeviceInfo> all;
    for (Device *const handle : Handles(its)) {
        DeviceInfo device{its.get_device_name(handle), "", {}};
        errno = 0;
        Context *const context = its.open_device(handle);
        if (context == nullptr) {
            device.trouble = "it cannot be opened: " + text_of(errno);
        } else {
            device.ports = ports_of(its, context);
            its.close_device(context);
        }
        all.push_back(std::move(device));
    }
    return all;
}

Context *open(const std::string &name) {
    const Library &its = library();
    for (Device *const handle : Handles(its)) {
        if (name != its.get_device_name(handle)) continue;
        errno = 0;
        Context *const context = its.open_device(handle);
        if (context != nullptr) return context;
        throw std::runtime_error("RDMA device " + name + " cannot be opened: " + text_of(errno));
    }
    throw std::runtime_error("no RDMA device " + name);
}

std::uint32_t mtu_bytes_of(int said) {
    return said >= 1 && said <= 5 ? std::uint32_t{128} << said : 0;
}

}  // namespace ina::host::verbs
