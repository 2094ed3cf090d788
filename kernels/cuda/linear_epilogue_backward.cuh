// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the gradient of neighbouring features is spread through the epilogue that made them: feature
/// (channel * pooled height + row) * pooled width + column is the window of that place.
#pragma once

#include "kernels/cuda/epilogue.cuh"

namespace lockstep::LOCKSTEP_GPU {

/// The windows of one sample in the order of features: divides once, then only adds.
template <int kPool>
class WindowWalk {
 public:
  /// Starts at the window of `feature` (of any number: those beyond the last one are not stored).
  __device__ WindowWalk(const EpilogueBackward& expand, int batch, int feature, int sample, float* dx)
      : width_(expand.width / kPool), height_(expand.height / kPool), batch_(batch) {
    const int line = feature / width_;
    place_ = {expand.height, expand.width, line / height_, line % height_, feature % width_, sample};
    const int pixel =
        (place_.channel * expand.height + place_.row * kPool) * expand.width + place_.column * kPool;
    corner_ = dx + pixel * batch_ + static_cast<std::size_t>(sample);
  }

  __device__ void store(const EpilogueBackward& expand, unsigned mask, float dy) const {
    store_window<kPool>(expand, place_, mask, expand.factors.times(dy), batch_, corner_);
  }

  __device__ void advance(const EpilogueBackward& expand) {
    int pixels = kPool;
    if (++place_.column == width_) {
      place_.column = 0;
      pixels = expand.width * kPool - (width_ - 1) * kPool;  // to the start of the next line of windows
      if (++place_.row == height_) {
        place_.row = 0;
        ++place_.channel;
        pixels += (expand.height - height_ * kPool) * expand.width;
      }
    }
    corner_ += pixels * batch_;
  }

 private:
  int width_, height_;  ///< of the pooled image
  std::size_t batch_;
  WindowPlace place_;
  float* corner_;
};

}  // namespace lockstep::LOCKSTEP_GPU
