// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages from one thread of a group to another: the second thread at a message copies it.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace lockstep {

/// One end of a message: of its sender or of its receiver.
struct MailEnd {
  enum class State { kWaiting, kDone, kOtherLength };
  std::span<const std::byte> from;  ///< of a sender
  std::span<std::byte> to;          ///< of a receiver
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

  /// The oldest end of the other kind that waits on this lane becomes its partner; if there is none, it
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

}  // namespace lockstep
