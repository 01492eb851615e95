// What becomes of a row by its summed gradient. Each row is updated once a step, where it lies.
//
// Source: Duchi, Hazan and Singer, JMLR 12 (2011), for Adagrad; row-wise, one mean of squares a
// row, as in FBGEMM and TorchRec. Rows of which no gradient came stay as they are, which for these
// rules is what a gradient of zeros does, too.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace ina::embed {

enum class Rule : std::uint8_t { kNone, kSgd, kAdagrad, kRowwiseAdagrad };

struct Optimizer {
    Rule rule = Rule::kNone;
    float epsilon = 1e-10F;
    float first_accumulator = 0.0F;

    std::size_t state_values(std::size_t dim) const {  // float32, a row
        return rule == Rule::kAdagrad ? dim : rule == Rule::kRowwiseAdagrad ? 1 : 0;
    }

    void apply(float *row, float *state, const float *gradient, std::size_t dim, float rate) const {
        switch (rule) {
            case Rule::kNone: return;
            case Rule::kSgd:
                for (std::size_t i = 0; i < dim; ++i) row[i] -= rate * gradient[i];
                return;
            case Rule::kAdagrad:
                for (std::size_t i = 0; i < dim; ++i) {
                    state[i] += gradient[i] * gradient[i];
                    row[i] -= rate * (gradient[i] / (std::sqrt(state[i]) + epsilon));
                }
                return;
            case Rule::kRowwiseAdagrad: {
                float squares = 0.0F;
                for (std::size_t i = 0; i < dim; ++i) squares += gradient[i] * gradient[i];
                *state += squares / static_cast<float>(dim);
                const float factor = rate / (std::sqrt(*state) + epsilon);
                for (std::size_t i = 0; i < dim; ++i) row[i] -= factor * gradient[i];
            }
        }
    }
};

}  // namespace ina::embed
