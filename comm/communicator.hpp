// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Collectives and messages among the ranks of a job. Control planes: comm/mpi, comm/thread. (Gradients have other
/// ways: AllReduce below, and comm/device/device_all_reduce.hpp.)
#pragma once

#include "comm/rank_status.hpp"
#include "common/buffers.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

// Something that the ranks do together and that a rank waits for (Communicator::wait()).

/// A collective under way. Destroying one that is not complete abandons it: only right when the job is
/// ending.
class PendingCollective {
 public:
  PendingCollective() = default;
  PendingCollective(const PendingCollective&) = delete;
  PendingCollective& operator=(const PendingCollective&) = delete;
  virtual ~PendingCollective() = default;
  /// Lets the collective progress, without blocking. True when its result is in place.
  virtual bool test() = 0;
  /// Threads of this process carry it out, and a launcher may have bound the process to one core. A thread that
  /// waits gives that up between two tests.
  virtual bool needs_this_core() const { return false; }
};

/// Something under way that a function tests.
class PendingWork final : public PendingCollective {
 public:
  explicit PendingWork(std::function<bool()> test, bool needs_this_core = false)
      : test_(std::move(test)), needs_this_core_(needs_this_core) {}
  bool test() override { return test_(); }
  bool needs_this_core() const override { return needs_this_core_; }

 private:
  std::function<bool()> test_;
  bool needs_this_core_;
};

// How sums in host memory are added up over all ranks: the way of a CPU's gradients. (For device memory see
// comm/device/device_all_reduce.hpp.)

/// One rank's end. Every rank starts the same sums in the same order, and its communicator's collectives in
/// between where the others do. One thread at a time per rank.
class AllReduce {
 public:
  virtual ~AllReduce() = default;

  /// Starts a sum over all ranks; the buffers must stay untouched until test() is true. int64: exact, wraps around,
  /// the same bits everywhere. fp32, in place: the same bits on every rank; which, is the implementation's.
  /// @param mine  stays as it is: what this rank sent can be looked at again
  /// @param sum   overwritten; as long as `mine`, and the same memory or not overlapping it
  virtual std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                                   std::span<std::int64_t> sum) = 0;
  virtual std::unique_ptr<PendingCollective> start(std::span<float> data) = 0;
  /// In place.
  std::unique_ptr<PendingCollective> start(std::span<std::int64_t> data) { return start(data, data); }
};

// Messages in host memory from one rank to another, without the others. (Everything that all ranks do
// together is above and in comm/collectives.hpp.)

/// One rank's end. Messages of one sender, one receiver and one tag arrive in the order in which they were
/// sent; those of different tags do not wait for each other. A rank may send to itself. One thread at a time
/// per rank; independent of sums and collectives, which may be under way.
class PointToPoint {
 public:
  static constexpr int kTags = 32768;  ///< a tag is from 0 to kTags - 1

  virtual ~PointToPoint() = default;

  /// Starts one; the buffer must stay untouched until test() is true. A send may be complete before it is
  /// received, or not: a rank that waits for it before it receives what the receiver sends first may wait for
  /// ever.
  virtual std::unique_ptr<PendingCollective> start_send(std::span<const std::byte> data, int to, int tag) = 0;
  /// `data` is as long as what is sent. test() and wait() throw InternalError if it is not, here or at the
  /// sender.
  virtual std::unique_ptr<PendingCollective> start_receive(std::span<std::byte> data, int from, int tag) = 0;
};

// Knows whether the other ranks are alive while this one waits for them.

/// Asked by Communicator::wait, from any thread; all answers cost a load of an atomic.
class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// A rank is lost for good: all waits end.
  virtual bool is_over() const noexcept = 0;
  /// There is a reason to wait on, though the time is up: a debugger holds a rank.
  virtual bool has_patience() const noexcept = 0;
  /// For faults on purpose: from now on it neither hears nor says anything.
  virtual void drop_network() noexcept = 0;
};

/// One rank's end of a group. All collectives must be called in the same order with the same sizes on every
/// rank. Every wait ends after timeout() with PeerLostError; time in which this process was stopped does not
/// count. Calls are not thread-safe: one thread at a time
/// per rank.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  ///< among the ranks of this host
  virtual int local_size() const = 0;  ///< how many those are
  virtual const std::string& host() const = 0;
  /// The control plane: "mpi", "thread"; "none": one rank alone, without MPI.
  virtual std::string_view backend() const = 0;
  /// The library that carries the messages, with its version: "Open MPI v4.1.4, ...". Empty if it is part of the
  /// program.
  virtual std::string library() const { return ""; }
  virtual std::chrono::duration<double> timeout() const = 0;
  /// Cores that the ranks of this host may use together, at least 1. It counts what each is bound to, and quotas.
  virtual int local_cores() const = 0;
  /// A waiting rank then gives up its core at once, otherwise it first spins.
  bool oversubscribed() const { return local_size() > local_cores(); }

  /// This control plane's way to sum host memory, which it has for as long as it lives. Sums under way
  /// end before it does.
  virtual AllReduce& host_all_reduce() = 0;
  /// Its messages between two ranks, which it has for as long as it lives.
  virtual PointToPoint& point_to_point() = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  /// Every rank contributes `mine` (same size everywhere) and receives all, [rank][bytes].
  virtual std::vector<std::byte> all_gather(std::span<const std::byte> mine) = 0;
  virtual void barrier() = 0;
  /// Ends every rank of the job at once with this exit code, as far as the backend can. May not return.
  virtual void abort(int exit_code) noexcept = 0;

  /// A group of the ranks that give the same colour, in the order of their ranks here. Collective. The part's
  /// operations and those of this communicator know nothing of each other; this one must outlive it.
  std::unique_ptr<Communicator> split(int colour);
  /// For messages: rank and size in what was split; in a group that is no part, its rank and size.
  int rank_in_whole() const { return whole_ != nullptr ? whole_->rank_in_whole() : rank(); }
  int size_of_whole() const { return whole_ != nullptr ? whole_->size_of_whole() : size(); }

  /// Activity of this rank, for the watchdog; a part has that of the whole.
  RankActivity& activity() { return whole_ != nullptr ? whole_->activity() : activity_; }
  /// From now on waits also end, with PeerLostError, when `watch` says that a rank is lost. They last longer than
  /// timeout() while it says so. Borrows it; null: no watch. Not while a wait is under way. It watches the
  /// communicator's parts, too.
  void be_watched(PeerWatch* watch) { watch_ = watch; }
  PeerWatch* watch() const { return whole_ != nullptr ? whole_->watch() : watch_; }

  /// A few numbers, int64 or fp32: starts host_all_reduce(), then waits.
  template <typename T>
  void all_reduce(std::span<T> data) {
    wait(*host_all_reduce().start(data), "an all-reduce", Waiting::kForAll);
  }
  /// One message: starts it, then waits. send() may return before it is received, or not.
  void send(std::span<const std::byte> data, int to, int tag = 0);
  void receive(std::span<std::byte> data, int from, int tag = 0);
  /// Tests until complete. @throws PeerLostError after timeout(): names this rank, its host and `what` was
  /// waited for.
  /// @param whom  kForAll: all ranks of this group take part. It decides which ranks are late
  void wait(PendingCollective& pending, std::string_view what, Waiting whom = Waiting::kForSome);

 protected:
  /// Makes the part for split(); it need know nothing of activity and watch.
  virtual std::unique_ptr<Communicator> make_part(int colour) = 0;

 private:
  Communicator* whole_ = nullptr;  ///< null: this is no part
  RankActivity activity_;
  PeerWatch* watch_ = nullptr;
};

/// Every rank has the value that rank 0 had. Collective.
template <typename T>
void broadcast(Communicator& comm, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  comm.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0);
}
template <typename T>
void broadcast(Communicator& comm, std::span<T> values) {
  comm.broadcast(std::as_writable_bytes(values), 0);
}

// The addition of an all-reduce: integers wrap around instead of overflowing, as they do in hardware and in
// MPI.

/// Overwrites: sum[i] = a[i] + b[i]. Same sizes; `sum` may be `a`.
void add_up(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::span<std::int64_t> sum);
void add_up(std::span<const float> a, std::span<const float> b, std::span<float> sum);

/// Memory that all ranks of a host read and write, aligned to 64 bytes, zero at first. Bytes that one rank wrote before a
/// collective, the others see after it; in between, only atomic accesses are no data race. Destroying it is collective,
/// too, unless an exception is on its way.
using SharedMemory = std::shared_ptr<std::byte[]>;

/// Collective over all ranks, with the same size everywhere. Processes share a window of MPI-3, threads plain
/// memory. The communicator must outlive it.
/// @throws ConfigError  the ranks are on several hosts
SharedMemory share_memory(Communicator& comm, std::size_t bytes);

}  // namespace lockstep
