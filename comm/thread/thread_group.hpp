// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// State that the threads of one group share: collectives and messages under way, and whether the group has failed.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Messages from one thread of a group to another: the second thread at a message copies it.

/// One end of a message: of its sender or of its receiver.
struct MailEnd {
  enum class State { kWaiting, kDone, kOtherLength };
  std::span<const std::byte> from;  ///< the sender's
  std::span<std::byte> to;          ///< the receiver's
  bool abandoned = false;           ///< its buffer is gone: must never be copied
  std::size_t other_bytes = 0;      ///< how long the other end's buffer is
  std::atomic<State> state{State::kWaiting};
};

/// Thread-safe.
class ThreadMail {
 public:
  struct Lane {
    int from = 0, to = 0, tag = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the 0 is the compiler's, in what it makes of this line
    friend auto operator<=>(const Lane&, const Lane&) = default;
  };

  /// The oldest end of the other kind that waits on this lane becomes its partner. If there is none, it
  /// waits.
  std::shared_ptr<MailEnd> send(const Lane& lane, std::span<const std::byte> data);
  std::shared_ptr<MailEnd> receive(const Lane& lane, std::span<std::byte> data);
  /// Its buffer goes away before it is done.
  void abandon(MailEnd& end);

 private:
  using Queue = std::deque<std::shared_ptr<MailEnd>>;

  static void deliver(MailEnd& sender, MailEnd& receiver);

  std::mutex mutex_;
  std::map<Lane, Queue> senders_, receivers_;  ///< the waiting threads; an empty lane is removed
};

/// Properties that must be the same on every rank for the n-th collective of each to be one operation.
struct CollectiveKind {
  enum class Operation { kSumInt64, kSumFp32, kBroadcast, kAllGather, kBarrier };
  Operation operation = Operation::kBarrier;
  std::size_t bytes = 0;  ///< that each rank contributes
  int root = 0;
  friend bool operator==(const CollectiveKind&, const CollectiveKind&) = default;
  std::string describe() const;
};

/// One rank's buffers. In-place operations use `out` for both.
struct Contribution {
  std::span<const std::byte> in;
  std::span<std::byte> out;
};

/// One collective under way: fills up as ranks arrive; the last one to come does the work for all.
struct ThreadCollective {
  CollectiveKind kind;
  std::vector<Contribution> contributions;  ///< by rank
  int arrived = 0;
  bool abandoned = false;  ///< a rank took its buffers back: must never complete
  std::atomic<bool> complete{false};
};

/// Thread-safe.
class ThreadGroup {
 public:
  /// @param whole  the group that this one is a part of: if that fails, so does this. Outlives it
  explicit ThreadGroup(int size, const ThreadGroup* whole = nullptr) : size_(size), whole_(whole) {}

  int size() const { return size_; }
  /// Rank `rank` reaches its collective number `sequence`. @throws InternalError if its kind is not the
  /// others'
  std::shared_ptr<ThreadCollective> arrive(int rank, std::uint64_t sequence, const CollectiveKind& kind,
                                           const Contribution& contribution);
  /// The buffers of a rank go away before the collective is complete.
  void abandon(ThreadCollective& collective);

  /// Messages from one rank to another.
  ThreadMail& mail() { return mail_; }

  /// Releases all waiting ranks. The first reason stays.
  void fail(const std::string& reason);
  bool failed() const {
    return failed_.load(std::memory_order_acquire) || (whole_ != nullptr && whole_->failed());
  }
  std::string reason() const;

 private:
  int size_;
  const ThreadGroup* whole_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<ThreadCollective>> open_;  ///< by sequence; not all ranks there yet
  ThreadMail mail_;
  std::atomic<bool> failed_{false};
  std::string reason_;
};

}  // namespace lockstep
