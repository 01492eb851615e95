// A queue in one block of memory, which doubles when it is full and never shrinks: a std::deque
// asks for memory and gives it back as it moves along.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace ina::sim {

template <typename T>
class Ring {
  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    T &front() { return items_[first_]; }
    const T &front() const { return items_[first_]; }
    T &operator[](std::size_t i) { return items_[at(i)]; }
    const T &operator[](std::size_t i) const { return items_[at(i)]; }

    void push_back(T item) {
        if (size_ == items_.size()) grow();
        items_[at(size_++)] = std::move(item);
    }
    void pop_front() {
        items_[first_] = T{};
        first_ = at(1);
        --size_;
    }
    void clear() {
        while (!empty()) pop_front();
    }

  private:
    std::size_t at(std::size_t i) const { return (first_ + i) & (items_.size() - 1); }
    void grow() {
        std::vector<T> more(items_.empty() ? 8 : 2 * items_.size());
        for (std::size_t i = 0; i < size_; ++i) more[i] = std::move(items_[at(i)]);
        items_ = std::move(more);
        first_ = 0;
    }

    std::vector<T> items_;  // a power of two
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

}  // namespace ina::sim
