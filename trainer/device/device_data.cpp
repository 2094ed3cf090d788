// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The copy to the device; or a ring, the thread that fills it, and the host's waits for it.
#include "trainer/device/device_data.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/batch_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

/// Enough steps ahead for a disk that is late now and then, and little beside what a GPU has.
constexpr std::uint64_t kRingBytes = std::uint64_t{128} << 20;
constexpr std::int64_t kMostRingSteps = 32;
/// Share of the ranks' deadline. A rank that waits for the disk says so before the others say that it is lost.
constexpr double kShareOfDeadline = 0.9;

[[noreturn]] void throw_late(const std::string& set, const Communicator& comm) {
  throw IoError(
      fmt::format("{}: no samples came for {:g} s; check the disk, or the network that it is on, or raise {}",
                  set, kShareOfDeadline * comm.timeout().count(), spelling().timeout));
}

}  // namespace

std::int64_t training_ring_steps(std::uint64_t step_bytes) {
  const std::uint64_t fit = kRingBytes / std::max<std::uint64_t>(step_bytes, 1);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(fit), 2, kMostRingSteps);
}

SampleRing::SampleRing(Device& device, const Dataset& data, const RingSizes& sizes, RowsOf rows_of)
    : data_(data),
      sizes_(sizes),
      row_bytes_(row_bytes_of(data)),
      rows_of_(std::move(rows_of)),
      device_rows_(device, static_cast<std::size_t>(sizes.all_rows()) * row_bytes_),
      host_rows_(device, device_rows_.size()),
      stream_(device.make_stream()) {
  LOCKSTEP_CHECK(sizes.columns > 0 && sizes.steps > 1);
  for (std::int64_t i = 0; i < sizes.steps; ++i) sent_.push_back(device.make_event());
  thread_ = start_thread([this] { fill(); });
}

SampleRing::~SampleRing() {
  end_threads(std::span(&thread_, 1), mutex_, changed_, ends_);
}

StreamedRows SampleRing::rows_by_state(std::int64_t column) const {
  return {.first = column, .partners = sizes_.columns, .step_rows = sizes_.rows(), .steps = sizes_.steps};
}

StreamedRows SampleRing::rows_of_step(std::int64_t step, std::int64_t column) const {
  return {.first = step % sizes_.steps * sizes_.rows() + column, .partners = sizes_.columns, .steps = 1};
}

void SampleRing::begin(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  const bool goes_on = first_ >= 0 && first_ <= step && step <= next_ && !error_;
  first_ = step;
  if (!goes_on) {
    next_ = step;
    ++beginning_;
    at_end_ = false;
    error_ = nullptr;
  }
  changed_.notify_one();
}

/// @throws what the thread met on its way there
bool SampleRing::is_sent(std::int64_t end) {
  const std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(first_ >= 0 && end <= first_ + sizes_.steps && !(at_end_ && next_ < end));
  if (error_ && next_ < end) std::rethrow_exception(error_);
  return next_ >= end;
}

void SampleRing::await(Communicator& comm, Stream& stream, std::int64_t end) {
  const auto start = Clock::now();
  const double most = kShareOfDeadline * comm.timeout().count();
  PendingWork sending(
      [&] {
        if (is_sent(end)) return true;
        if (seconds_since(start) < most) return false;
        throw_late(data_.name, comm);
      },
      true);
  try {
    if (!sending.test()) comm.wait(sending, fmt::format("samples of {}, which are read", data_.name));
  } catch (const PeerLostError&) {
    if (comm.watch() != nullptr && comm.watch()->is_over()) throw;
    throw_late(data_.name, comm);
  }
  stream.wait(*at(sent_, (end - 1) % sizes_.steps));  // those before it are on their way, too
}

StreamedRows SampleRing::load_now(Stream& stream, std::span<const std::int32_t> rows) {
  LOCKSTEP_CHECK(std::ssize(rows) <= sizes_.spare_rows());
  stream.synchronize();
  const std::int64_t first = sizes_.steps * sizes_.rows();
  put(rows, first, stream);
  return {.first = first, .partners = sizes_.spare_columns, .steps = 1};
}

void SampleRing::put(std::span<const std::int32_t> samples, std::int64_t first, Stream& stream) {
  const std::size_t offset = static_cast<std::size_t>(first) * row_bytes_,
                    bytes = samples.size() * row_bytes_;
  read_samples(data_, samples, host_rows_.span().subspan(offset, bytes));
  stream.copy_to_device(device_rows_.data() + offset, host_rows_.data() + offset, bytes);
}

// On the ring's thread.

void SampleRing::fill() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return ends_ || (first_ >= 0 && !at_end_ && !error_ && next_ < first_ + sizes_.steps);
    });
    if (ends_) return;
    const std::int64_t step = next_;
    const std::uint64_t beginning = beginning_;
    lock.unlock();
    bool sent = false;
    std::exception_ptr error;
    try {
      sent = send(step);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (beginning != beginning_) continue;
    error_ = error;
    at_end_ = !sent && !error;
    if (sent) ++next_;
  }
}

/// The store makes the samples of the step after it ready meanwhile. False: there is no such step.
bool SampleRing::send(std::int64_t step) {
  const Rows rows = rows_ahead_of_ == step ? std::exchange(rows_ahead_, std::nullopt) : rows_of_(step);
  if (!rows) return false;
  LOCKSTEP_CHECK(std::ssize(*rows) <= sizes_.rows());
  rows_ahead_ = rows_of_(step + 1);
  rows_ahead_of_ = step + 1;
  if (rows_ahead_ && data_.stays_on_disk()) BatchLoader(data_).prefetch(*rows_ahead_);
  const std::int64_t slot = step % sizes_.steps;
  put(*rows, slot * sizes_.rows(), *stream_);
  stream_->record(*at(sent_, slot));
  return true;
}

// Rows of samples: those that a kernel would look up in the order.

std::vector<std::int32_t> rows_of_samples(std::span<const std::int32_t> samples,
                                          std::span<const SampleMix> mixes, int columns) {
  std::vector<std::int32_t> rows(samples.begin(), samples.end());
  if (mixes.empty()) return rows;
  rows.resize(static_cast<std::size_t>(columns), rows.back());
  for (std::size_t i = 0; i < mixes.size(); ++i)
    rows.push_back(mixes[i].is_mixed() ? mixes[i].partner : samples[i]);
  return rows;
}

std::vector<std::int32_t> rows_of_places(const SampleMixer& mixer, std::int64_t epoch,
                                         std::span<const std::int32_t> order, std::int64_t first,
                                         std::int64_t count, int columns) {
  return rows_of_samples(order.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                         mixer.draw(epoch, order, first, count), columns);
}

SampleRing::RowsOf evaluated_rows(std::int64_t first, std::int64_t last, std::int64_t most) {
  return [first, last, most](std::int64_t batch) -> std::optional<std::vector<std::int32_t>> {
    const std::int64_t begin = first + batch * most;
    if (begin >= last) return std::nullopt;
    std::vector<std::int32_t> rows(static_cast<std::size_t>(std::min(most, last - begin)));
    std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(begin));
    return rows;
  };
}

SampleRing::RowsOf training_rows(DistributedSampler sampler, SampleMixer mixer, int columns) {
  return [sampler = std::move(sampler), mixer = std::move(mixer), columns](std::int64_t step) mutable {
    const std::int64_t epoch = step / sampler.steps_per_epoch(), in_epoch = step % sampler.steps_per_epoch();
    const std::vector<Grain> grains = sampler.local_grains(in_epoch);
    if (grains.empty()) return std::vector<std::int32_t>();
    sampler.set_epoch(epoch);
    const std::int64_t samples = grains.back().first + grains.back().samples - grains.front().first;
    return rows_of_places(mixer, epoch, sampler.order(), sampler.place(in_epoch, grains.front()), samples,
                          columns);
  };
}

// DeviceData: the copy to the device, and the gather of a batch.

DeviceData::DeviceData(Device& device, Stream& stream, const Dataset& data, const AugmentPlan* augment,
                       const std::optional<Streaming>& streaming)
    : rows_(device, streaming ? 0 : data.labels.size() * row_bytes_of(data)),
      labels_(upload(device, stream, data.labels)),
      scales_(device, data.scales.scale.size() > 1 ? 2 * data.scales.scale.size() : 0),
      augment_(device, augment == nullptr ? 0 : 1),
      view_{.labels = labels_.data(), .features = data.shape.features(), .augment = augment_.data()} {
  if (streaming) ring_.emplace(device, data, streaming->sizes, streaming->rows_of);
  const std::uint8_t* rows = ring_ ? ring_->data() : rows_.data();
  if (data.has_images()) {
    view_.images = rows;
  } else {
    view_.features_fp32 = reinterpret_cast<const float*>(rows);
  }
  normalise(stream, data.scales);
  if (!streaming) copy_samples(stream, data);
  stream.copy_to_device(augment_.data(), augment, augment_.bytes());
  stream.synchronize();
}

/// Those that lie on disk, a part after the other.
void DeviceData::copy_samples(Stream& stream, const Dataset& data) {
  if (!data.stays_on_disk()) {
    const void* samples = data.images.data();
    if (!data.has_images()) samples = data.features.data();
    return stream.copy_to_device(rows_.data(), samples, rows_.bytes());
  }
  constexpr std::size_t kPartBytes = std::size_t{64} << 20;
  const std::size_t row_bytes = row_bytes_of(data);
  std::vector<std::uint8_t> part;
  std::uint8_t* to = rows_.data();
  for_each_batch(data.size(), kPartBytes / row_bytes, [&](const std::vector<std::int32_t>& indices) {
    part.resize(indices.size() * row_bytes);
    read_samples(data, indices, part);
    stream.copy_to_device(to, part.data(), part.size());
    stream.synchronize();
    to += part.size();
  });
}

void DeviceData::normalise(Stream& stream, const ChannelScales& scales) {
  if (scales.scale.empty()) return;
  view_.scale = scales.scale.front();
  view_.shift = scales.shift.front();
  const std::size_t channels = scales.scale.size();
  if (channels == 1) return;
  view_.channels = static_cast<int>(channels);
  view_.channel_scale = scales_.data();
  view_.channel_shift = scales_.data() + channels;
  stream.copy_to_device(scales_.data(), scales.scale.data(), channels * sizeof(float));
  stream.copy_to_device(scales_.data() + channels, scales.shift.data(), channels * sizeof(float));
}

std::int64_t streamed_at_once(std::int64_t most, std::uint64_t row_bytes) {
  constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20;
  const auto fit = static_cast<std::int64_t>(kBatchBytes / std::max<std::uint64_t>(row_bytes, 1));
  return std::clamp<std::int64_t>(fit, 1, std::max<std::int64_t>(most, 1));
}

}  // namespace lockstep
