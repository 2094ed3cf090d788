// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A bucket leaves once every range of it is queued; the one that carries the counters leaves last.
#include "comm/reduce/device_gradient_reducer.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

namespace lockstep {

DeviceGradientReducer::DeviceGradientReducer(Device& device, DeviceOps& ops, DeviceAllReduce* all_reduce,
                                             const BucketPlan& plan, std::size_t parameters,
                                             Determinism determinism, std::int64_t* sums)
    : ops_(ops), all_reduce_(all_reduce), sums_(sums) {
  if (all_reduce_ == nullptr) return;
  if (determinism == Determinism::kOff) fp32_ = DeviceBuffer<float>(device, parameters);
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
  for (Piece& piece : pieces_) {
    if (offset >= piece.bucket.offset && offset < piece.bucket.offset + piece.bucket.size) return piece;
  }
  throw InternalError("no bucket holds this gradient");
}

void DeviceGradientReducer::ready(Stream& stream, std::size_t offset, std::size_t size) {
  if (stream_ == nullptr) return;
  Piece& piece = piece_of(offset);
  LOCKSTEP_CHECK(size <= piece.missing && piece.events_used < piece.events.size());
  Event& event = *piece.events[piece.events_used++];
  stream.record(event);
  stream_->wait(event);
  piece.missing -= size;
  if (piece.missing == 0) launch(*stream_, piece);
}

void DeviceGradientReducer::finish(Stream& main) {
  if (stream_ == nullptr) return;
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
  for (const Piece& piece : pieces_) launch(main, piece);
}

/// Queues the all-reduce of a bucket behind what is queued on the stream; on the host, waits for it.
void DeviceGradientReducer::launch(Stream& stream, const Piece& piece) {
  const DeviceSpan span(timeline_, stream, Work::kAllReduce, piece.name);
  const bool carries_counters = piece.bucket.offset == 0;
  const std::size_t behind_counters = kCounterSlots + piece.bucket.offset;
  if (fp32_.size() == 0) {
    const std::size_t begin = carries_counters ? 0 : behind_counters;
    all_reduce_->all_reduce(stream, sums_ + begin, behind_counters + piece.bucket.size - begin);
    return;
  }
  float* fp32 = fp32_.data() + piece.bucket.offset;
  const std::int16_t* exponents = exponents_ == nullptr ? nullptr : exponents_ + piece.bucket.offset;
  ops_.exact_to_fp32(stream, piece.bucket.size, sums_ + behind_counters, exponents, fp32);
  all_reduce_->all_reduce(stream, fp32, piece.bucket.size);
  if (carries_counters) all_reduce_->all_reduce(stream, sums_, kCounterSlots);
}

}  // namespace lockstep
