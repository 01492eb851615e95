// CUBIC (RFC 9438). Left out, as the RFC allows: HyStart++, and undoing what was spurious.
#pragma once

#include "sim/flows/tcp_window.hpp"

namespace ina::sim {

// The largest number whose cube is not above, for less than 2^126.
inline std::uint64_t cube_root(unsigned __int128 of) {
    std::uint64_t root = 0;
    for (std::uint64_t bit = std::uint64_t{1} << 41; bit != 0; bit >>= 1) {
        const unsigned __int128 more = root | bit;
        if (more * more * more <= of) root |= bit;
    }
    return root;
}

class Cubic final : public TcpWindow {
  public:
    using TcpWindow::TcpWindow;

    // W_cubic, in segments, so long after the start of an epoch whose K and W_max these are.
    static double curve(double since_s, double k_s, double most) {
        const double t = since_s - k_s;
        return kC * t * t * t + most;
    }
    // K: after how long the curve that begins at `window` is back at `most`; to a microsecond.
    static double back_s(double most, double window) {
        if (window >= most) return 0;
        constexpr double kCubicMicroseconds = 1e18;
        const double cube = (most - window) / kC * kCubicMicroseconds;
        return static_cast<double>(cube_root(static_cast<unsigned __int128>(cube))) / 1e6;
    }

  protected:
    void avoid(const TcpAck &ack) override {
        const double window = window_ / mss_;
        if (epoch_ns_ < 0) {
            epoch_ns_ = ack.now_ns;
            // After slow start, or a timeout, the curve begins at its plateau.
            if (most_ < window) most_ = window;
            k_s_ = back_s(most_, window);
            reno_ = window;
        }
        const double acked = static_cast<double>(ack.bytes) / mss_;
        const double since_s = static_cast<double>(ack.now_ns - epoch_ns_) / 1e9;
        // As Reno would have it with these reductions; past the former window, as Reno does.
        const double alpha = reno_ >= before_ ? 1.0 : 3 * (1 - kBeta) / (1 + kBeta);
        reno_ += alpha * acked / window;
        if (curve(since_s, k_s_, most_) < reno_) {
            window_ = std::max(window_, reno_ * mss_);
            return;
        }
        const double ahead_s = since_s + static_cast<double>(ack.srtt_ns) / 1e9;
        const double target = std::clamp(curve(ahead_s, k_s_, most_), window, 1.5 * window);
        window_ += (target - window) / window * acked * mss_;
    }
    double lowered(bool) override {
        const double window = window_ / mss_;
        // Fast convergence: a window that is below the last one leaves room for newcomers.
        most_ = window < most_ ? window * (1 + kBeta) / 2 : window;
        before_ = window;
        epoch_ns_ = -1;
        return std::max(window_ * kBeta, least());
    }
    void timed_out() override {
        epoch_ns_ = -1;
        most_ = 0;
    }

  private:
    static constexpr double kC = 0.4;
    static constexpr double kBeta = 0.7;

    std::int64_t epoch_ns_ = -1;  // when this stage of congestion avoidance began; -1: it has not
    double most_ = 0;             // W_max, segments, as the next two
    double before_ = 0;           // the window before the last reduction
    double reno_ = 0;             // W_est
    double k_s_ = 0;
};

}  // namespace ina::sim
