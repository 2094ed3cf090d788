// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads the samples of a batch from a data set on the device, in the layout that an op wants.
///
/// Versions: (1) a thread for each x[f][n], lane = sample. Stores coalesce, but each lane reads a byte of
/// another image, 32 sectors for 32 bytes. (2) A block has a tile of 32 samples by 32 features: read four
/// features a lane, eight lanes a sample, turned over in shared memory (rows of 33, no bank conflicts) and
/// written with lane = sample. (3) Labels go along with the first tiles: one launch. Small tiles, because
/// their limit is the chain state -> order -> image, three trips to memory, and enough blocks for all SMs.
/// (4) Augmented images have a special kernel: 32 threads of a block draw for its 32 samples, and each thread then
/// looks up the places of its four pixels. If images are mixed, 64 threads draw, and a thread looks up the pixels of
/// both images that count.
///
/// Limit: Net, batch 64: 50 KB in, 200 KB out, 50 blocks. LeNet, batch 256: 0.2 MB in, 0.8 MB out, 200
/// blocks. 0.05 and 0.2 us of bandwidth, but about 1.5 us for the three trips. MNIST as bytes (47 MB) stays
/// in L2.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/mix.hpp"
#include "kernels/numerics/augment.hpp"
#include "kernels/numerics/augment_draws.hpp"
#include "kernels/numerics/augment_pixels.hpp"
#include "kernels/sum_cuts.hpp"

#include <cmath>

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kTile = 32;                   ///< samples and features of a block
constexpr int kRun = 4;                     ///< features that a thread reads
constexpr int kReaders = kTile / kRun;      ///< threads that read a sample together
constexpr int kThreads = kTile * kReaders;  ///< each reads one run
constexpr int kWriters = kThreads / kTile;  ///< features that are written at a time
constexpr int kRow = kTile + 1;             ///< row of the tile in shared memory

/// Everything but the type of the data set's numbers.
struct GatherPlan {
  int batch, features;
  float scale, shift;
  int channel_features;  ///< for each of several channels; 0: there is one
  const float *channel_scale, *channel_shift;
  bool by_runs;  ///< runs of kRun features are aligned
  TensorLayout layout;
};

__device__ float value_of(std::uint8_t byte, int feature, const GatherPlan& plan) {
  const auto pixel = static_cast<float>(byte);
  if (plan.channel_features == 0) return fmaf(pixel, plan.scale, plan.shift);
  const int channel = min(feature, plan.features - 1) / plan.channel_features;
  return fmaf(pixel, plan.channel_scale[channel], plan.channel_shift[channel]);
}

__device__ float value_of(float value, int /*feature*/, const GatherPlan& /*plan*/) {
  return value;
}

/// Position of column n of the batch, in the order.
__device__ std::int64_t position_of(const SampleSelection& selection, int n) {
  const std::int64_t step = selection.state == nullptr ? 0 : selection.state->step_in_epoch;
  return (step + selection.ahead) * selection.stride + selection.first + n;
}

/// The sample that column n of the batch holds.
__device__ std::int64_t sample_at(const SampleSelection& selection, int n) {
  const std::int64_t position = position_of(selection, n);
  return selection.order == nullptr ? position : selection.order[position];
}

/// Row of the image of column n in the set, or in the ring with the rows of some steps.
__device__ std::int64_t row_of(const SampleSelection& selection, int n, std::int64_t sample) {
  const StreamedRows& rows = selection.rows;
  if (rows.steps == 0) return sample;
  const std::int64_t step = selection.state == nullptr ? 0 : selection.state->step;
  return rows.first + (step + selection.ahead) % rows.steps * rows.step_rows + n;
}

__device__ std::int64_t epoch_of(const SampleSelection& selection) {
  return selection.state == nullptr ? 0 : selection.state->epoch;
}

/// Up to kRun features of a sample, from `first` on.
template <typename T>
__device__ Pack<float, kRun> read_run(const T* sample, int first, const GatherPlan& plan) {
  Pack<T, kRun> run = {};
  if (plan.by_runs && first + kRun <= plan.features) {
    run = load_pack<kRun>(sample + first);
  } else {
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      if (first + i < plan.features) run.at[i] = sample[first + i];
    }
  }
  Pack<float, kRun> values;
#pragma unroll
  for (int i = 0; i < kRun; ++i) values.at[i] = value_of(run.at[i], first + i, plan);
  return values;
}

/// Writes a tile of x: lane = sample where samples are neighbours, otherwise lane = feature.
__device__ void write_tile(const float* tile, int first_feature, int first_sample, const GatherPlan& plan,
                           float* x) {
  const int lane = static_cast<int>(threadIdx.x) % kTile, row = static_cast<int>(threadIdx.x) / kTile;
  const bool by_sample = plan.layout.sample_stride == 1;
#pragma unroll
  for (int i = row; i < kTile; i += kWriters) {
    const int f = by_sample ? i : lane, n = by_sample ? lane : i;
    const int feature = first_feature + f, sample = first_sample + n;
    if (feature >= plan.features || sample >= plan.batch) continue;
    x[feature * plan.layout.feature_stride + sample * plan.layout.sample_stride] = tile[f * kRow + n];
  }
}

/// Block (i, j) has the i-th tile of features of the j-th tile of samples.
template <typename T>
__global__ void gather_tile(GatherPlan plan, const T* set, const std::int32_t* set_labels,
                            SampleSelection selection, float* x, std::int32_t* labels) {
  LOCKSTEP_SHARED(float, tile, kTile* kRow);
  const int first_feature = static_cast<int>(blockIdx.x) * kTile;
  const int first_sample = static_cast<int>(blockIdx.y) * kTile;
  const int n = static_cast<int>(threadIdx.x) / kReaders, run = static_cast<int>(threadIdx.x) % kReaders;
  if (first_sample + n < plan.batch) {
    const std::int64_t sample = sample_at(selection, first_sample + n);
    const std::int64_t row = row_of(selection, first_sample + n, sample);
    const Pack<float, kRun> values = read_run(set + row * plan.features, first_feature + run * kRun, plan);
#pragma unroll
    for (int i = 0; i < kRun; ++i) tile[(run * kRun + i) * kRow + n] = values.at[i];
    if (blockIdx.x == 0 && run == 0) labels[first_sample + n] = set_labels[sample];
  }
  __syncthreads();
  write_tile(tile, first_feature, first_sample, plan, x);
}

/// gather_tile() for augmented images, which may be mixed, too.
template <bool kMixed>
__global__ void gather_augmented_tile(GatherPlan plan, const AugmentPlan* augment, const std::uint8_t* set,
                                      const std::int32_t* set_labels, SampleSelection selection, float* x,
                                      std::int32_t* labels) {
  constexpr int kDrawn = kMixed ? 2 * kTile : kTile;  // samples', then partners'
  LOCKSTEP_SHARED(float, tile, kTile* kRow);
  LOCKSTEP_SHARED(SampleAugment, drawn, kDrawn);
  const int first_feature = static_cast<int>(blockIdx.x) * kTile;
  const int first_sample = static_cast<int>(blockIdx.y) * kTile;
  const int drawer = static_cast<int>(threadIdx.x), column = first_sample + drawer % kTile;
  if (drawer < kDrawn && column < plan.batch) {
    const std::int64_t sample = sample_at(selection, column);
    const bool labels_it = blockIdx.x == 0 && drawer < kTile;
    std::int64_t shown = sample;
    if constexpr (kMixed) {
      const SampleMix mix = selection.mixes[position_of(selection, column)];
      if (drawer >= kTile) shown = mix.partner;
      if (labels_it) {
        const LabelPair pair = mixed_labels(mix, set_labels[sample], set_labels[mix.partner]);
        labels[column] = pair.first;
        selection.second_labels[column] = pair.second;
      }
    } else if (labels_it) {
      labels[column] = set_labels[sample];
    }
    draw_augment(*augment, epoch_of(selection), static_cast<std::uint32_t>(shown), drawn[drawer]);
  }
  __syncthreads();
  const int n = static_cast<int>(threadIdx.x) / kReaders, run = static_cast<int>(threadIdx.x) % kReaders;
  if (first_sample + n < plan.batch) {
    const int shown = first_sample + n;
    const std::uint8_t* image = set + row_of(selection, shown, sample_at(selection, shown)) * plan.features;
    const std::uint8_t* partner = image;
    SampleMix mix;
    if constexpr (kMixed) {
      mix = selection.mixes[position_of(selection, shown)];
      const std::int64_t behind = selection.rows.partners;
      partner =
          behind == 0 ? set + std::int64_t{mix.partner} * plan.features : image + behind * plan.features;
    }
    for (int i = run * kRun; i < (run + 1) * kRun && first_feature + i < plan.features; ++i) {
      const int feature = first_feature + i;
      std::uint8_t byte = augmented_byte(*augment, drawn[n], image, feature);
      if constexpr (kMixed) {
        const int pixel = feature % static_cast<int>(augment->plane());
        if (mix.touches(pixel % augment->width, pixel / augment->width))
          byte = mixed_byte(mix, byte, augmented_byte(*augment, drawn[kTile + n], partner, feature));
      }
      tile[i * kRow + n] = value_of(byte, feature, plan);
    }
  }
  __syncthreads();
  write_tile(tile, first_feature, first_sample, plan, x);
}

dim3 tiles_of(const GatherPlan& plan) {
  return {static_cast<unsigned>(pieces(plan.features, kTile)),
          static_cast<unsigned>(pieces(plan.batch, kTile))};
}

template <typename T>
void launch_gather(cudaStream_t stream, GatherPlan plan, const T* set, const std::int32_t* set_labels,
                   const SampleSelection& selection, float* x, std::int32_t* labels) {
  plan.by_runs = is_packable<kRun>(set, static_cast<std::size_t>(plan.features));
  launch(stream, {tiles_of(plan), dim3(kThreads)}, gather_tile<T>, plan, set, set_labels, selection, x,
         labels);
}

}  // namespace

void NativeOps::gather(Stream& stream, int batch, const DeviceDataset& set, const SampleSelection& selection,
                       float* x, std::int32_t* labels) {
  const int channel_features = set.channels > 1 ? set.features / set.channels : 0;
  const GatherPlan plan = {batch,
                           set.features,
                           set.scale,
                           set.shift,
                           channel_features,
                           set.channel_scale,
                           set.channel_shift,
                           false,
                           layout(batch, set.features)};
  if (set.augment != nullptr) {
    launch(on(stream), {tiles_of(plan), dim3(kThreads)},
           selection.mixes == nullptr ? gather_augmented_tile<false> : gather_augmented_tile<true>, plan,
           set.augment, set.images, set.labels, selection, x, labels);
  } else if (set.images != nullptr) {
    launch_gather(on(stream), plan, set.images, set.labels, selection, x, labels);
  } else {
    launch_gather(on(stream), plan, set.features_fp32, set.labels, selection, x, labels);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
