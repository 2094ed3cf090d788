// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A loss of a program's own, sample by sample, as the core takes it: for the columns of a grain.
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/sums.hpp"
#include "trainer/library/inside.hpp"

#include <lockstep/loss.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::v0 {

bool OwnLoss::is_right(std::span<const float> outputs, std::int32_t label) const {
  return std::ranges::max_element(outputs) - outputs.begin() == label;
}

namespace {

class AdaptedLoss final : public HostLoss {
 public:
  explicit AdaptedLoss(std::shared_ptr<const OwnLoss> own) : own_(std::move(own)) {}

  void compute(const LossShape& shape, const float* logits, const std::int32_t* labels, float* dlogits,
               LossSums* sums) const override {
    const auto classes = static_cast<std::size_t>(shape.classes),
               columns = static_cast<std::size_t>(shape.batch);
    std::vector<float> outputs(classes), gradient(dlogits == nullptr ? 0 : classes);
    constexpr double kMost = std::numeric_limits<float>::max();  // sums have room for floats
    *sums = {};
    for (std::size_t n = 0; n < columns; ++n) {
      const bool is_sample = n < static_cast<std::size_t>(shape.samples);
      std::ranges::fill(gradient, 0.0F);
      if (is_sample) {
        for (std::size_t c = 0; c < classes; ++c) outputs[c] = logits[c * columns + n];
        const double loss = own_->compute(outputs, labels[n], gradient);
        if (std::abs(loss) <= kMost)
          sums->loss += std::nearbyint(loss * kLossScale) / kLossScale;
        else
          ++sums->not_finite;
        if (own_->is_right(outputs, labels[n])) ++sums->correct;
      }
      if (dlogits == nullptr) continue;
      for (std::size_t c = 0; c < classes; ++c) dlogits[c * columns + n] = gradient[c];
    }
  }

 private:
  std::shared_ptr<const OwnLoss> own_;
};

}  // namespace

std::unique_ptr<const HostLoss> adapt(std::shared_ptr<const OwnLoss> loss) {
  return std::make_unique<AdaptedLoss>(std::move(loss));
}

}  // namespace lockstep::v0
