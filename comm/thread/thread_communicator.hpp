// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One thread's end of a ThreadGroup.
#pragma once

#include "comm/communicator.hpp"
#include "comm/thread/thread_group.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace lockstep {

/// Its sums are added in rank order.
class ThreadCommunicator final : public Communicator, private AllReduce, private PointToPoint {
 public:
  /// `group` outlives it.
  ThreadCommunicator(ThreadGroup& group, int rank, std::chrono::duration<double> timeout);
  /// An end of a part of `whole`, which it shares with the other ends.
  ThreadCommunicator(std::shared_ptr<ThreadGroup> part, int rank, ThreadCommunicator& whole);

  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  int local_rank() const override { return rank_in_whole(); }
  int local_size() const override { return size_of_whole(); }
  const std::string& host() const override { return host_; }
  std::string_view backend() const override { return "thread"; }
  std::chrono::duration<double> timeout() const override { return timeout_; }
  bool oversubscribed() const override { return oversubscribed_; }

  AllReduce& host_all_reduce() override { return *this; }
  std::unique_ptr<PendingCollective> start(std::span<std::int64_t> data) override;
  std::unique_ptr<PendingCollective> start(std::span<float> data) override;
  PointToPoint& point_to_point() override { return *this; }
  std::unique_ptr<PendingCollective> start_send(std::span<const std::byte> data, int to, int tag) override;
  std::unique_ptr<PendingCollective> start_receive(std::span<std::byte> data, int from, int tag) override;
  void broadcast(std::span<std::byte> data, int root) override;
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override;
  void barrier() override;
  void abort(int exit_code) noexcept override;
  std::unique_ptr<Communicator> make_part(int colour) override;
  int rank_in_whole() const override { return whole_ == nullptr ? rank_ : whole_->rank_in_whole(); }
  int size_of_whole() const override { return whole_ == nullptr ? size() : whole_->size_of_whole(); }

  /// True once a wait of this rank was ended because another rank had failed.
  bool was_released() const { return was_released_; }

 private:
  class Pending;
  class PendingMail;

  std::unique_ptr<Pending> arrive(const CollectiveKind& kind, const Contribution& contribution);
  ThreadMail::Lane lane(int from, int to, int tag) const;
  [[noreturn]] void throw_released();

  std::shared_ptr<ThreadGroup> part_;  ///< kept for the ends of a part
  ThreadCommunicator* whole_ = nullptr;
  ThreadGroup& group_;
  int rank_;
  std::chrono::duration<double> timeout_;
  std::string host_;
  bool oversubscribed_;
  std::uint64_t next_sequence_ = 0;
  bool was_released_ = false;
};

}  // namespace lockstep
