// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The batch loader.
#include "data/batch.hpp"

#include "common/error.hpp"

namespace lockstep {

void BatchLoader::load(Ops& ops, std::span<const std::int32_t> indices, int batch_columns, float* x,
                       std::int32_t* labels) const {
  const GatherShape shape{batch_columns, static_cast<int>(indices.size()), dataset_.shape.features(),
                          dataset_.shape.channels};
  LOCKSTEP_CHECK(shape.samples <= batch_columns && batch_columns % ops.batch_multiple() == 0);
  for (std::size_t n = 0; n < indices.size(); ++n) {
    LOCKSTEP_CHECK(indices[n] >= 0 && indices[n] < dataset_.size());
    labels[n] = dataset_.labels[static_cast<std::size_t>(indices[n])];
  }
  if (dataset_.images.size() > 0)
    ops.gather_images(shape, dataset_.images.data(), indices.data(), dataset_.scales.scale.data(),
                      dataset_.scales.shift.data(), x);
  else
    ops.gather_features(shape, dataset_.features.data(), indices.data(), x);
}

void BatchLoader::prefetch(std::span<const std::int32_t> indices) const {
  constexpr std::size_t kLineBytes = 64;
  if (dataset_.images.size() == 0) return;
  const auto bytes = static_cast<std::size_t>(dataset_.shape.features());
  for (const std::int32_t index : indices) {
    const std::uint8_t* image = dataset_.images.data() + static_cast<std::size_t>(index) * bytes;
    for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(image + at);
  }
}

}  // namespace lockstep
