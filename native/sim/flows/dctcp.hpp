// DCTCP (RFC 8257; Alizadeh et al., SIGCOMM 2010): gives way to marks by as much as there are.
#pragma once

#include "sim/flows/tcp_window.hpp"

namespace ina::sim {

class Dctcp final : public TcpWindow {
  public:
    using TcpWindow::TcpWindow;

    double alpha() const { return alpha_; }  // about the share of bytes that were marked

  protected:
    void observe(const TcpAck &ack) override {
        acknowledged_ += ack.bytes;
        if (ack.echo) marked_ += ack.bytes;
        if (ack.acknowledged <= window_end_) return;
        if (acknowledged_ > 0) {
            const double share = static_cast<double>(marked_) / static_cast<double>(acknowledged_);
            alpha_ += kWeight * (share - alpha_);
        }
        window_end_ = ack.next;
        acknowledged_ = marked_ = 0;
    }
    // As Reno: a segment a round trip.
    void avoid(const TcpAck &ack) override {
        window_ += mss_ * static_cast<double>(ack.bytes) / window_;
    }
    double lowered(bool is_mark) override {
        return std::max(window_ * (1 - (is_mark ? alpha_ : 1.0) / 2), least());
    }

  private:
    static constexpr double kWeight = 1.0 / 16;  // g, as recommended

    double alpha_ = 1;  // a first mark halves
    std::int64_t window_end_ = 0;
    std::int64_t acknowledged_ = 0;
    std::int64_t marked_ = 0;
};

}  // namespace ina::sim
