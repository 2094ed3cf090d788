// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the ranks of a job can say to each other. Control planes: comm/mpi, comm/thread. (Gradients have ways
/// of their own: comm/all_reduce.hpp, comm/device_all_reduce.hpp.)
#pragma once

#include "comm/activity/rank_activity.hpp"
#include "comm/all_reduce.hpp"
#include "comm/peer_watch.hpp"
#include "comm/pending_collective.hpp"
#include "comm/point_to_point.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

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
  virtual std::string_view backend() const = 0;  ///< of this control plane: "mpi", "thread"
  /// What carries the messages, with its version: "Open MPI v4.1.4, ..."; empty if it is part of the program.
  virtual std::string library() const { return ""; }
  virtual std::chrono::duration<double> timeout() const = 0;
  /// More ranks than cores on this host: then a waiting rank gives up its core at once, otherwise it first
  /// spins.
  virtual bool oversubscribed() const { return false; }

  /// This control plane's own way to sum host memory, which it has for as long as it lives. Sums under way
  /// end before it does.
  virtual AllReduce& host_all_reduce() = 0;
  /// Its messages between two ranks, which it has for as long as it lives.
  virtual PointToPoint& point_to_point() = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  /// Every rank contributes `mine` (same size everywhere) and receives all, [rank][bytes].
  virtual std::vector<std::byte> all_gather(std::span<const std::byte> mine) = 0;
  virtual void barrier() = 0;
  /// Ends every rank of the job at once with this exit code, as far as the backend can; may not return.
  virtual void abort(int exit_code) noexcept = 0;

  /// A group of the ranks that give the same colour, in the order of their ranks here. Collective. The part's
  /// operations and those of this communicator know nothing of each other; this one must outlive it.
  std::unique_ptr<Communicator> split(int colour);
  /// For messages: rank and size of what was split; of a group that is no part, its own.
  virtual int rank_in_whole() const { return rank(); }
  virtual int size_of_whole() const { return size(); }

  /// What this rank is doing, for those who watch; of a part, the whole's.
  RankActivity& activity() { return whole_ != nullptr ? whole_->activity() : activity_; }
  /// From now on waits also end, with PeerLostError, when `watch` says that a rank is lost, and last longer
  /// than timeout() while it says so. Borrows it; null: no watch. Not while a wait is under way. It watches the communicator's parts, too.
  void be_watched(PeerWatch* watch) { watch_ = watch; }
  PeerWatch* watch() const { return whole_ != nullptr ? whole_->watch() : watch_; }

  /// A few numbers: starts host_all_reduce(), then waits.
  void all_reduce(std::span<std::int64_t> data);
  void all_reduce(std::span<float> data);
  /// One message: starts it, then waits. send() may return before it is received, or not.
  void send(std::span<const std::byte> data, int to, int tag = 0);
  void receive(std::span<std::byte> data, int from, int tag = 0);
  /// Tests until complete. @throws PeerLostError after timeout(): names this rank, its host and `what` was
  /// waited for.
  /// @param whom  kForAll: all ranks of this group take part. Who is behind is judged by it
  void wait(PendingCollective& pending, std::string_view what, Waiting whom = Waiting::kForSome);

 protected:
  /// What split() does; the part need know nothing of activity and watch.
  virtual std::unique_ptr<Communicator> make_part(int colour) = 0;

 private:
  Communicator* whole_ = nullptr;  ///< null: this is no part
  RankActivity activity_;
  PeerWatch* watch_ = nullptr;
};

}  // namespace lockstep
