// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums the gradient buckets of a GPU over all ranks. While backward runs, if the all-reduce is work on a
/// stream (NCCL); after it, if the host takes part (MPI).
#pragma once

#include "comm/communicator.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "comm/reduce/bucket_plan.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/sum_check.hpp"
#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/device_timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

/// The buffer to be summed is int64 [kCounterSlots + parameters]. The counters travel with the bucket at the
/// start of the arena, which leaves last. With determinism `off` the gradients are summed as fp32, the
/// counters still as integers.
class DeviceGradientReducer {
 public:
  /// Borrows everything but the plan and the units, of which it takes the tensors. Does nothing at all where all_reduce
  /// is null: one rank trains alone.
  /// @param compares  exact sums on streams, too, which takes memory for the result
  DeviceGradientReducer(Device& device, DeviceOps& ops, DeviceAllReduce* all_reduce, const BucketPlan& plan,
                        const GradientUnits& units, Determinism determinism, std::int64_t* sums,
                        bool compares);
  ~DeviceGradientReducer();

  /// True if reduce() must be called between backward and update; then it cannot be part of a graph.
  bool on_host() const { return all_reduce_ != nullptr && !all_reduce_->on_stream(); }
  /// All-reduces are marked in this timeline. Borrows it; null: in none.
  void record_into(DeviceTimeline* timeline);
  /// Sets the exponents of the sums, as UpdateArgs has them; borrowed, from now on.
  void set_exponents(const std::int16_t* exponents) { exponents_ = exponents; }
  /// fp32 sums, or null: see UpdateArgs.
  const float* fp32_sums() const { return fp32_.data(); }

  /// On streams: a new step begins, all of its work is queued after `main`.
  void begin();
  /// On streams: everything this rank adds to [offset, offset + size) of the arena is queued on `stream`.
  /// A bucket that is complete leaves after it.
  void ready(Stream& stream, std::size_t offset, std::size_t size);
  /// On streams: buckets that have not left (a rank without grains) leave; `main` waits for all of them.
  void finish(Stream& main);

  /// Other sums that a step needs on its way, in place. They follow what is queued on the stream, which waits for
  /// them; on the host with a wait. On streams they run on the buckets' own, in one order with those: what is on one
  /// NCCL communicator must not depend on how streams run beside each other.
  void sum(Stream& stream, std::int64_t* words, std::size_t count);

  /// On the host: sums all buckets. Blocks, with the communicator's deadline.
  /// @throws PeerLostError
  /// @throws SumsDifferError  on all ranks: on one of them exact sums have changed on their way
  void reduce(Stream& main);
  /// True where reduce() compares, and on streams under `world`, where reduce_watched() does.
  bool compares_sums() const { return check_ != nullptr; }

  // On streams. Sums are compared in the steps that the host looks at, between two calls of hold_buckets(). Buckets
  // then leave after backward.

  /// From now on no bucket leaves before reduce_watched(), or they leave by themselves again.
  void hold_buckets(bool held);
  /// On the host, too: sums what has not left, and compares where compares_sums() says so. Collective.
  /// @param wait  returns once `main` has come so far
  /// @throws SumsDifferError  as reduce()
  void reduce_watched(Stream& main, Communicator& comm, const std::function<void()>& wait);

  /// As GradientReducer::Sums::fingerprint_that_left(), of each reduce() since the last call; empty where none is compared.
  std::vector<std::uint64_t> take_fingerprints_that_left();
  // For replays, where sums are compared; they wait for the stream.
  /// As GradientReducer::Sums::own_fingerprints(), of the step that was compared last.
  SumFingerprints own_fingerprints() const;
  /// Fingerprints of the sums that are in the buffer now; then puts the result of that step back.
  SumFingerprints take_replayed(Stream& main);
  /// @throws ConfigError  sums are not compared, so no observer sees them
  void require_compared_sums() const;
  /// As GradientReducer::show_to(), where sums are compared.
  void show_to(SumObserver& observer);

 private:
  class Check;
  struct Piece {
    Bucket bucket;
    std::size_t missing = 0;                     ///< elements
    std::vector<std::unique_ptr<Event>> events;  ///< one for each of its ranges
    std::size_t events_used = 0;
    std::string name = {};  ///< "bucket 0"
  };

  Piece& piece_of(std::size_t offset);
  void launch(Stream& stream, const Piece& piece);
  void launch_missing(Stream& main);

  DeviceOps& ops_;
  DeviceAllReduce* all_reduce_;
  std::int64_t* sums_;
  const std::int16_t* exponents_ = nullptr;
  DeviceBuffer<float> fp32_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> asked_, done_;
  std::vector<Piece> pieces_;
  bool held_ = false;
  std::unique_ptr<Check> check_;  ///< compares exact sums; null: they are not compared
  DeviceTimeline* timeline_ = nullptr;
};

}  // namespace lockstep
