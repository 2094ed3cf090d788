// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A data set on a device: whole, or its samples a few steps ahead of their use.
#pragma once

#include "comm/communicator.hpp"
#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "data/sampler.hpp"
#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_samples.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace lockstep {

// Samples on their way to a device that has no room for their set. A thread reads those of the coming steps into
// pinned memory, and they go to the device ahead of the step, on a stream of their own. On the device lies a ring of
// a few steps, each with as many rows as a step has samples at most. A kernel finds its rows by the number of the
// step (StreamedRows), so that a captured graph has the same arguments each time.

/// How large a ring is.
struct RingSizes {
  int columns = 1;         ///< samples of a step, at most
  bool has_pairs = false;  ///< after those lie as many that they are mixed with
  std::int64_t steps = 2;
  int spare_columns = 0;  ///< for what load_now() takes

  std::int64_t rows() const { return std::int64_t{has_pairs ? 2 : 1} * columns; }
  std::int64_t spare_rows() const { return std::int64_t{has_pairs ? 2 : 1} * spare_columns; }
  std::int64_t all_rows() const { return steps * rows() + spare_rows(); }
};

/// Steps of a training ring: half of them are computed while the other half comes.
/// @param step_bytes  of the largest share of a step that any rank has, so that all ranks say the same
std::int64_t training_ring_steps(std::uint64_t step_bytes);
/// Batches of an evaluation: two that are computed, and two that come.
inline constexpr std::int64_t kEvaluationRingSteps = 4;

class SampleRing {
 public:
  /// The samples of a step, row by row, those that they are mixed with from row `columns` on. Nothing: there is no such
  /// step. Called by the ring's thread, in ascending order but after begin().
  using RowsOf = std::function<std::optional<std::vector<std::int32_t>>(std::int64_t step)>;

  /// Borrows device and set. @throws DeviceError  no room, or no thread
  SampleRing(Device& device, const Dataset& data, const RingSizes& sizes, RowsOf rows_of);
  ~SampleRing();
  SampleRing(const SampleRing&) = delete;
  SampleRing& operator=(const SampleRing&) = delete;

  /// Device memory [all_rows][bytes of a sample].
  const std::uint8_t* data() const { return device_rows_.data(); }
  const RingSizes& sizes() const { return sizes_; }
  /// The rows of the step that the device's state says, from a column of it on.
  StreamedRows rows_by_state(std::int64_t column) const;
  /// Those of a step that the host knows.
  StreamedRows rows_of_step(std::int64_t step, std::int64_t column = 0) const;

  /// Steps come from this one on, one after the other; the device is done with those before it. What has come of them
  /// already stays.
  void begin(std::int64_t step);
  /// Waits until the samples of all steps before `end` are on their way. `end` is at most sizes().steps after that of
  /// begin(). Work that is queued on the stream from now on finds them. Not while the stream captures.
  /// @throws DataError, IoError  as SampleStore::read; IoError  nothing came within the deadline of the ranks
  void await(Communicator& comm, Stream& stream, std::int64_t end);
  /// Samples that no step of the ring has, in its spare rows. Waits for the stream, and reads.
  /// @param rows  as RowsOf
  StreamedRows load_now(Stream& stream, std::span<const std::int32_t> rows);

 private:
  using Rows = std::optional<std::vector<std::int32_t>>;

  void fill();
  bool send(std::int64_t step);
  /// Reads samples into the rows from `first` on, and queues the copy to the device.
  void put(std::span<const std::int32_t> samples, std::int64_t first, Stream& stream);
  bool is_sent(std::int64_t end);

  const Dataset& data_;
  const RingSizes sizes_;
  const std::size_t row_bytes_;
  RowsOf rows_of_;
  DeviceBuffer<std::uint8_t> device_rows_;
  PinnedBuffer<std::uint8_t> host_rows_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Event>> sent_;  ///< one for each step of the ring
  std::int64_t rows_ahead_of_ = -1;           ///< the step that rows_ahead_ are of
  Rows rows_ahead_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t first_ = -1,
               next_ = 0;  ///< the ring may hold first_, ... first_ + steps - 1; those before next_ are sent
  std::uint64_t beginning_ = 0;  ///< counts those that dropped what was there
  bool at_end_ = false, ends_ = false;
  std::exception_ptr error_;  ///< in step next_
  std::thread thread_;        ///< the last member: it uses the others
};

/// A share's rows as SampleRing::RowsOf. @param mixes  one a sample; empty: none is mixed
std::vector<std::int32_t> rows_of_samples(std::span<const std::int32_t> samples,
                                          std::span<const SampleMix> mixes, int columns);
/// Those of `count` neighbouring places of an epoch's order.
std::vector<std::int32_t> rows_of_places(const SampleMixer& mixer, std::int64_t epoch,
                                         std::span<const std::int32_t> order, std::int64_t first,
                                         std::int64_t count, int columns);
/// Batches of an evaluation, each of `most` samples, from `first` on and before `last`.
SampleRing::RowsOf evaluated_rows(std::int64_t first, std::int64_t last, std::int64_t most);
/// A rank's shares of training steps, counted over epochs.
SampleRing::RowsOf training_rows(DistributedSampler sampler, SampleMixer mixer, int columns);

// Batches are gathered on the device: uint8 images stay uint8 there.

/// How a set streams.
struct Streaming {
  RingSizes sizes;
  SampleRing::RowsOf rows_of;
};

class DeviceData {
 public:
  /// Copies the whole set, or its labels where it streams; waits until it is there. Borrows device and set.
  /// @param augment  what happens to images on their way into a batch; null: nothing
  /// @throws DeviceError  the device has no room for it
  DeviceData(Device& device, Stream& stream, const Dataset& data, const AugmentPlan* augment = nullptr,
             const std::optional<Streaming>& streaming = std::nullopt);

  const DeviceDataset& view() const { return view_; }
  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  /// Null: the set is there whole.
  SampleRing* ring() { return ring_ ? &*ring_ : nullptr; }

 private:
  void copy_samples(Stream& stream, const Dataset& data);
  void normalise(Stream& stream, const ChannelScales& scales);

  std::optional<SampleRing> ring_;
  DeviceBuffer<std::uint8_t> rows_;  ///< [sample][bytes of a sample]; empty where the set streams
  DeviceBuffer<std::int32_t> labels_;
  DeviceBuffer<float> scales_;  ///< scale and then shift of each channel, where there are several
  DeviceBuffer<AugmentPlan> augment_;
  DeviceDataset view_;
};

/// Samples of a batch of an evaluation whose set streams, at most `most`. Batches of 32 MiB leave no trace in its
/// sums.
std::int64_t streamed_at_once(std::int64_t most, std::uint64_t row_bytes);
}  // namespace lockstep
