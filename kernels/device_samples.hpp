// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data sets in device memory, and the samples of one that form a batch.
#pragma once

#include "kernels/shapes.hpp"
#include "kernels/step_state.hpp"

#include <cstdint>

namespace lockstep {

struct AugmentPlan;  // kernels/numerics/augment.hpp
struct SampleMix;    // kernels/mix.hpp

/// Rows of the images of a batch whose set streams past the device (trainer/device/device_data.hpp). Column n is
/// in row first + step_rows * (number of the step modulo steps) + n.
struct StreamedRows {
  std::int64_t first = 0;
  std::int64_t partners = 0;   ///< rows from an image to the one that it is mixed with
  std::int64_t step_rows = 0;  ///< from a step to the next one
  std::int64_t steps =
      0;  ///< steps of the ring; 0: the set is on the device whole, and an image is where its sample is
};

/// The samples of a data set that form the batch. Column n is sample order[step_in_epoch * stride + first + n],
/// or that number itself where order is null.
struct SampleSelection {
  const std::int32_t* order = nullptr;  ///< a permutation of the data set, or null
  const StepState* state = nullptr;     ///< null: step_in_epoch and epoch are 0
  std::int64_t stride = 0;              ///< samples of a global batch
  std::int64_t first = 0;               ///< position of column 0 in the global batch
  /// The partners of the samples of `order`, of augmented images that are mixed; null: nothing is mixed.
  const SampleMix* mixes = nullptr;
  MixedLabel* second_labels = nullptr;  ///< [batch], overwritten by gather where there are mixes
  StreamedRows rows = {};
  std::int64_t ahead = 0;  ///< so many steps after the state's, in the same epoch
};

/// A data set on the device, or its labels and the rows of a ring. Either images or features are there.
struct DeviceDataset {
  const std::uint8_t* images =
      nullptr;  ///< [sample or row][features]; value = byte * scale + shift (one fused
                ///< multiply-add), with the numbers of the feature's channel
  const float* features_fp32 = nullptr;  ///< [sample or row][features]
  const std::int32_t* labels = nullptr;  ///< [sample]
  int features = 0;
  float scale = 1, shift = 0;            ///< used where there is one channel
  int channels = 1;                      ///< each is features / channels features in a row
  const float* channel_scale = nullptr;  ///< [channels], on the device, where there are several
  const float* channel_shift = nullptr;
  /// On the device: images are what augmented_byte() makes of them in the epoch of the selection's state. Null: they
  /// are as they are.
  const AugmentPlan* augment = nullptr;
};

}  // namespace lockstep
