// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A bucket leaves once every range of it is queued; the one that carries the counters leaves last.
#include "comm/device/device_gradient_reducer.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace lockstep {

// The sums of a step in device memory, and what is known of them.

namespace {

/// Sums of a part: enough that a block's threads are worth their start.
constexpr std::size_t kPartSums = 1024;

/// All sums by tensor, and the counters.
std::vector<SumPart> parts_of(const GradientUnits& units) {
  std::vector<SumPart> parts;
  for (std::size_t tensor = 0; tensor < units.tensors(); ++tensor) {
    for (std::size_t at = units.begin(tensor); at < units.end(tensor); at += kPartSums)
      parts.push_back({kCounterSlots + at, at, std::min(kPartSums, units.end(tensor) - at), tensor});
  }
  parts.push_back({0, units.parameters(), kStepCounters, units.tensors()});
  return parts;
}

}  // namespace

/// Keeps this rank's own sums beside the result until they are compared.
class DeviceGradientReducer::Check {
 public:
  Check(Device& device, DeviceOps& ops, DeviceAllReduce& all_reduce, const GradientUnits& units,
        std::int64_t* sums)
      : ops_(ops),
        all_reduce_(all_reduce),
        sums_(sums),
        size_(kCounterSlots + units.parameters()),
        tensors_(units.tensors() + 1),
        reduced_(device, size_),
        taken_(device, kKinds * (tensors_ + 1)),
        host_(device, taken_.size()),
        differences_(device, 1) {
    const auto stream = device.make_stream();
    const std::vector<SumPart> parts = parts_of(units);
    parts_ = upload(device, *stream, parts);
    stream->synchronize();
  }

  std::int64_t* result() { return reduced_.data(); }
  void show_to(SumObserver& observer) { observer_ = &observer; }

  /// This rank's own sums are complete.
  void seal(Stream& stream) {
    stream.fill_zero(taken_.data(), taken_.bytes());
    take(stream, kLeft, sums_, sums_ + kFingerprintSlot);
    if (!is_seen()) return;
    const std::vector<std::int64_t> before = fetch(stream, result());
    change(stream, sums_, [&](auto sums) { observer_->sums_leave({0, sums.size(), sums, before}); });
  }

  /// The sums become the result, by way of the host. @throws SumsDifferError
  void compare(Stream& stream) {
    const std::int64_t mine = differences(stream);
    stream.copy_to_device(differences_.data(), &mine, sizeof mine);
    all_reduce_.all_reduce(stream, differences_.data(), differences_.size());
    conclude(stream, download(stream, differences_.data(), differences_.size()).front());
  }
  /// Compares sums that are all-reduced on streams; the counts of differences go through `comm`. @throws
  /// SumsDifferError
  void compare(Stream& stream, Communicator& comm) {
    std::int64_t found = differences(stream);
    comm.all_reduce(std::span(&found, 1));
    conclude(stream, found);
  }

  std::vector<std::uint64_t> take_left() { return std::exchange(left_, {}); }

  SumFingerprints own() const { return fetched(kLeft, tensors_ - 1); }
  SumFingerprints take_replayed(Stream& stream) {
    const SumFingerprints of_step = own();
    stream.fill_zero(taken_.data(), taken_.bytes());
    take(stream, kLeft, sums_, whole_of(kLeft));
    fetch(stream);
    const SumFingerprints replayed = own();
    std::ranges::copy(of_step, host_.span().begin());
    take_result(stream);
    return replayed;
  }

 private:
  /// 1: what arrived at this rank is not what all have sent.
  std::int64_t differences(Stream& stream) {
    if (is_seen())
      change(stream, result(), [&](auto sums) { observer_->sums_arrived({0, sums.size(), sums}); });
    take(stream, kArrived, result(), whole_of(kArrived));
    std::int64_t expected = 0;
    stream.copy_to_host(&expected, result() + kFingerprintSlot, sizeof expected);
    fetch(stream);
    return host_[kArrived * (tensors_ + 1) + tensors_] == expected ? 0 : 1;
  }
  /// @param found  differences() of all ranks
  void conclude(Stream& stream, std::int64_t found) {
    if (found > 0) throw SumsDifferError(record(stream));
    left_.push_back(whole(own()));
    take_result(stream);
  }
  void take_result(Stream& stream) {
    stream.copy_on_device(sums_, result(), size_ * sizeof(std::int64_t));
    stream.fill_zero(sums_ + kFingerprintSlot, sizeof(std::int64_t));
  }

  enum Kind : std::size_t { kLeft, kKept, kArrived, kKinds };

  std::int64_t* row(Kind kind) { return taken_.data() + kind * (tensors_ + 1); }
  std::int64_t* whole_of(Kind kind) { return row(kind) + tensors_; }
  void take(Stream& stream, Kind kind, const std::int64_t* sums, std::int64_t* whole) {
    ops_.fingerprint_sums(stream, {.sums = sums,
                                   .parts = parts_.data(),
                                   .count = static_cast<int>(parts_.size()),
                                   .fingerprints = row(kind),
                                   .whole = whole});
  }
  void fetch(Stream& stream) {
    stream.copy_to_host(host_.data(), taken_.data(), taken_.bytes());
    stream.synchronize();
  }
  /// Those of the first tensors.
  SumFingerprints fetched(Kind kind, std::size_t tensors) const {
    const auto words = host_.span().subspan(kind * (tensors_ + 1), tensors);
    return {words.begin(), words.end()};
  }
  SumRecord record(Stream& stream) {
    take(stream, kKept, sums_, whole_of(kKept));
    fetch(stream);
    return {.left = fetched(kLeft, tensors_),
            .kept = fetched(kKept, tensors_),
            .arrived = fetched(kArrived, tensors_)};
  }
  // For the observer, by way of the host; the counters are not shown.
  bool is_seen() const { return observer_ != nullptr && observer_->sees_sums(); }
  std::vector<std::int64_t> fetch(Stream& stream, const std::int64_t* sums) const {
    return download(stream, sums + kCounterSlots, size_ - kCounterSlots);
  }
  template <typename F>
  void change(Stream& stream, std::int64_t* sums, const F& f) const {
    std::vector<std::int64_t> on_host = fetch(stream, sums);
    f(std::span(on_host));
    stream.copy_to_device(sums + kCounterSlots, on_host.data(), on_host.size() * sizeof(std::int64_t));
    stream.synchronize();
  }

  DeviceOps& ops_;
  DeviceAllReduce& all_reduce_;
  std::int64_t* sums_;
  std::size_t size_, tensors_;  ///< with the counters
  DeviceBuffer<std::int64_t> reduced_;
  DeviceBuffer<SumPart> parts_;
  DeviceBuffer<std::int64_t> taken_;  ///< [kind][tensor], and of each kind the whole
  PinnedBuffer<std::int64_t> host_;
  DeviceBuffer<std::int64_t> differences_;
  std::vector<std::uint64_t> left_;  ///< fingerprints, one a step since take_left()
  SumObserver* observer_ = nullptr;
};

DeviceGradientReducer::~DeviceGradientReducer() = default;

DeviceGradientReducer::DeviceGradientReducer(Device& device, DeviceOps& ops, DeviceAllReduce* all_reduce,
                                             const BucketPlan& plan, const GradientUnits& units,
                                             Determinism determinism, std::int64_t* sums, bool compares)
    : ops_(ops), all_reduce_(all_reduce), sums_(sums) {
  if (all_reduce_ == nullptr) return;
  if (determinism == Determinism::kOff) fp32_ = DeviceBuffer<float>(device, units.parameters());
  if (determinism == Determinism::kWorld && (on_host() || compares))
    check_ = std::make_unique<Check>(device, ops, *all_reduce, units, sums);
  if (all_reduce_->on_stream()) stream_ = device.make_stream(Device::Priority::kHigh);
  asked_ = device.make_event();
  done_ = device.make_event();
  for (const Bucket& bucket : plan.buckets) {
    pieces_.push_back({.bucket = bucket, .events = {}});
    pieces_.back().name = fmt::format("bucket {}", pieces_.size() - 1);
    for (std::size_t range = bucket.first_range; range <= bucket.last_range; ++range) {
      pieces_.back().events.push_back(device.make_event());
    }
  }
}

void DeviceGradientReducer::record_into(DeviceTimeline* timeline) {
  timeline_ = timeline;
  if (timeline_ != nullptr && stream_ != nullptr) timeline_->name(*stream_, "device: buckets");
}

void DeviceGradientReducer::begin() {
  for (Piece& piece : pieces_) {
    piece.missing = piece.bucket.size;
    piece.events_used = 0;
  }
}

DeviceGradientReducer::Piece& DeviceGradientReducer::piece_of(std::size_t offset) {
  for (Piece& piece : pieces_)
    if (offset >= piece.bucket.offset && offset < piece.bucket.offset + piece.bucket.size) return piece;
  throw InternalError("no bucket holds this gradient");
}

void DeviceGradientReducer::hold_buckets(bool held) {
  LOCKSTEP_CHECK(check_ != nullptr && stream_ != nullptr);
  held_ = held;
}

void DeviceGradientReducer::ready(Stream& stream, std::size_t offset, std::size_t size) {
  if (stream_ == nullptr || held_) return;
  Piece& piece = piece_of(offset);
  LOCKSTEP_CHECK(size <= piece.missing && piece.events_used < piece.events.size());
  Event& event = *piece.events[piece.events_used++];
  stream.record(event);
  stream_->wait(event);
  piece.missing -= size;
  if (piece.missing == 0) launch(*stream_, piece);
}

void DeviceGradientReducer::finish(Stream& main) {
  if (stream_ != nullptr && !held_) launch_missing(main);
}

void DeviceGradientReducer::reduce_watched(Stream& main, Communicator& comm,
                                           const std::function<void()>& wait) {
  if (on_host()) return reduce(main);
  if (!held_) return finish(main);
  check_->seal(main);
  launch_missing(main);
  wait();
  check_->compare(main, comm);
}

void DeviceGradientReducer::launch_missing(Stream& main) {
  for (Piece& piece : pieces_) {
    if (piece.missing == 0) continue;
    main.record(*piece.events.front());
    stream_->wait(*piece.events.front());
    launch(*stream_, piece);
  }
  stream_->record(*done_);
  main.wait(*done_);
}

void DeviceGradientReducer::sum(Stream& stream, std::int64_t* words, std::size_t count) {
  if (all_reduce_ == nullptr) return;
  if (stream_ == nullptr) return all_reduce_->all_reduce(stream, words, count);
  stream.record(*asked_);
  stream_->wait(*asked_);
  all_reduce_->all_reduce(*stream_, words, count);
  stream_->record(*done_);
  stream.wait(*done_);
}

void DeviceGradientReducer::reduce(Stream& main) {
  LOCKSTEP_CHECK(on_host());
  if (check_) check_->seal(main);
  for (const Piece& piece : pieces_) launch(main, piece);
  if (check_) check_->compare(main);
}

std::vector<std::uint64_t> DeviceGradientReducer::take_fingerprints_that_left() {
  return check_ ? check_->take_left() : std::vector<std::uint64_t>();
}

SumFingerprints DeviceGradientReducer::own_fingerprints() const {
  return check_->own();
}

SumFingerprints DeviceGradientReducer::take_replayed(Stream& main) {
  return check_->take_replayed(main);
}

void DeviceGradientReducer::require_compared_sums() const {
  if (!check_)
    throw ConfigError(
        advice("inject.what: sums that do not go by way of the host cannot be reached; use {backend}mpi, or "
               "parallel.replay_every_steps=1"));
}

void DeviceGradientReducer::show_to(SumObserver& observer) {
  if (check_) check_->show_to(observer);
}

/// Queues the all-reduce of a bucket after what is queued on the stream; on the host, waits for it.
void DeviceGradientReducer::launch(Stream& stream, const Piece& piece) {
  const DeviceSpan span(timeline_, stream, Work::kAllReduce, piece.name);
  const bool carries_counters = piece.bucket.offset == 0;
  const std::size_t behind_counters = kCounterSlots + piece.bucket.offset;
  if (fp32_.size() == 0) {
    const std::size_t begin = carries_counters ? 0 : behind_counters;
    const std::size_t count = behind_counters + piece.bucket.size - begin;
    if (check_ && (held_ || on_host()))
      return all_reduce_->all_reduce_into(stream, sums_ + begin, check_->result() + begin, count);
    return all_reduce_->all_reduce(stream, sums_ + begin, count);
  }
  float* fp32 = fp32_.data() + piece.bucket.offset;
  const std::int16_t* exponents = exponents_ == nullptr ? nullptr : exponents_ + piece.bucket.offset;
  ops_.exact_to_fp32(stream, piece.bucket.size, sums_ + behind_counters, exponents, fp32);
  all_reduce_->all_reduce(stream, fp32, piece.bucket.size);
  if (carries_counters) all_reduce_->all_reduce(stream, sums_, kCounterSlots);
}

}  // namespace lockstep
