// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starts the threads, joins them, and rethrows the error that came first, not its echoes.
#include "comm/thread/thread_ranks.hpp"

#include "comm/agreement.hpp"
#include "comm/thread/thread_group.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

/// One thread's end of a group. Every collective is one that the group performs when its last thread arrives; sums are
/// added in rank order.
class ThreadCommunicator final : public Communicator, private AllReduce, private PointToPoint {
 public:
  /// @param whole  null, or that of which the group is a part
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, std::chrono::duration<double> timeout,
                     ThreadCommunicator* whole = nullptr)
      : group_(std::move(group)),
        rank_(rank),
        timeout_(timeout),
        whole_(whole),
        cores_(whole != nullptr ? whole->cores_ : available_cores()) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  int local_rank() const override { return rank_in_whole(); }
  int local_size() const override { return size_of_whole(); }
  const std::string& host() const override { return host_; }
  std::string_view backend() const override { return size_of_whole() == 1 ? "none" : "thread"; }
  std::chrono::duration<double> timeout() const override { return timeout_; }
  int local_cores() const override { return cores_; }

  AllReduce& host_all_reduce() override { return *this; }
  std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                           std::span<std::int64_t> sum) override {
    LOCKSTEP_CHECK(mine.size() == sum.size());
    return arrive({CollectiveKind::Operation::kSumInt64, sum.size_bytes()},
                  {std::as_bytes(mine), std::as_writable_bytes(sum)});
  }
  std::unique_ptr<PendingCollective> start(std::span<float> data) override {
    return arrive({CollectiveKind::Operation::kSumFp32, data.size_bytes()},
                  {std::as_bytes(data), std::as_writable_bytes(data)});
  }

  PointToPoint& point_to_point() override { return *this; }
  std::unique_ptr<PendingCollective> start_send(std::span<const std::byte> data, int to, int tag) override {
    const ThreadMail::Lane lane = checked_lane(rank_, to, tag);
    return std::make_unique<PendingMail>(*this, group_->mail().send(lane, data), lane);
  }
  std::unique_ptr<PendingCollective> start_receive(std::span<std::byte> data, int from, int tag) override {
    const ThreadMail::Lane lane = checked_lane(from, rank_, tag);
    return std::make_unique<PendingMail>(*this, group_->mail().receive(lane, data), lane);
  }

  void broadcast(std::span<std::byte> data, int root) override {
    LOCKSTEP_CHECK(root >= 0 && root < size());
    wait(*arrive({CollectiveKind::Operation::kBroadcast, data.size(), root}, {{}, data}),
         fmt::format("a broadcast from rank {}", root), Waiting::kForAll);
  }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override {
    std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(size()));
    wait(*arrive({CollectiveKind::Operation::kAllGather, mine.size()}, {mine, all}), "an all-gather",
         Waiting::kForAll);
    return all;
  }
  void barrier() override { wait(*arrive({}, {}), "a barrier", Waiting::kForAll); }

  void abort(int exit_code) noexcept override {
    try {
      if (whole_ != nullptr) return whole_->abort(exit_code);
      group_->fail(fmt::format("rank {} aborted the job with exit code {}", rank_, exit_code));
    } catch (const std::exception& error) {
      print_error(fmt::format("rank {}: abort failed: {}", rank_, error.what()));
    }
  }

  /// The first rank of a part makes its group; the others, in the same process, take it from there.
  std::unique_ptr<Communicator> make_part(int colour) override {
    const std::vector<int> colours = gather(*this, colour);
    const auto first = std::ranges::find(colours, colour) - colours.begin();
    const auto before = std::count(colours.begin(), colours.begin() + rank_, colour);
    const auto members = static_cast<int>(std::ranges::count(colours, colour));
    std::shared_ptr<ThreadGroup> part;
    if (first == rank_) part = std::make_shared<ThreadGroup>(members, group_.get());
    const auto makers = gather(*this, &part);
    std::shared_ptr<ThreadGroup> mine = *at(makers, first);
    barrier();  // until then the makers' variables must stay
    return std::make_unique<ThreadCommunicator>(std::move(mine), static_cast<int>(before), timeout_, this);
  }

  /// True once a wait of this rank was ended because another rank had failed.
  bool was_released() const { return was_released_; }

 private:
  class Pending final : public PendingCollective {
   public:
    Pending(ThreadCommunicator& owner, std::shared_ptr<ThreadCollective> collective)
        : owner_(owner), collective_(std::move(collective)) {}
    ~Pending() override {
      if (!collective_->complete.load(std::memory_order_acquire)) owner_.group_->abandon(*collective_);
    }

    bool test() override {
      if (collective_->complete.load(std::memory_order_acquire)) return true;
      owner_.throw_if_released();
      return false;
    }

   private:
    ThreadCommunicator& owner_;
    std::shared_ptr<ThreadCollective> collective_;
  };

  class PendingMail final : public PendingCollective {
   public:
    PendingMail(ThreadCommunicator& owner, std::shared_ptr<MailEnd> end, const ThreadMail::Lane& lane)
        : owner_(owner), end_(std::move(end)), lane_(lane) {}
    ~PendingMail() override {
      if (state() == MailEnd::State::kWaiting) owner_.group_->mail().abandon(*end_);
    }

    bool test() override {
      if (state() == MailEnd::State::kDone) return true;
      if (state() == MailEnd::State::kOtherLength)
        throw InternalError(fmt::format(
            "a message from rank {} to rank {} (tag {}) has {} bytes at one end and {} at the other; "
            "please report this",
            lane_.from, lane_.to, lane_.tag, end_->from.size() + end_->to.size(), end_->other_bytes));
      owner_.throw_if_released();
      return false;
    }

   private:
    MailEnd::State state() const { return end_->state.load(std::memory_order_acquire); }

    ThreadCommunicator& owner_;
    std::shared_ptr<MailEnd> end_;
    ThreadMail::Lane lane_;
  };

  std::unique_ptr<Pending> arrive(const CollectiveKind& kind, const Contribution& contribution) {
    throw_if_released();
    return std::make_unique<Pending>(*this, group_->arrive(rank_, next_sequence_++, kind, contribution));
  }

  ThreadMail::Lane checked_lane(int from, int to, int tag) {
    throw_if_released();
    LOCKSTEP_CHECK(from >= 0 && from < size() && to >= 0 && to < size() && tag >= 0 && tag < kTags);
    return {from, to, tag};
  }

  void throw_if_released() {
    if (!group_->failed()) return;
    for (ThreadCommunicator* end = this; end != nullptr; end = end->whole_) end->was_released_ = true;
    throw PeerLostError(fmt::format("rank {} of {} on {} stops because {}", rank_in_whole(), size_of_whole(),
                                    host_, group_->reason()));
  }

  std::shared_ptr<ThreadGroup> group_;
  int rank_;
  std::chrono::duration<double> timeout_;
  ThreadCommunicator* whole_;
  std::string host_ = host_name();
  int cores_;
  std::uint64_t next_sequence_ = 0;
  bool was_released_ = false;
};

/// End of a rank: `error` is its error, or null.
struct RankOutcome {
  std::exception_ptr error;
  bool released = false;  ///< it failed only because another rank had
};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return explain(exception).text;
  } catch (...) {
    return "an unknown error";
  }
}

/// Ends the waits of all ranks. The sentence takes memory, which may be what the rank has failed for.
void fail_group(ThreadGroup& group, int rank, const std::exception_ptr& error) noexcept {
  try {
    group.fail(fmt::format("rank {} failed: {}", rank, text_of(error)));
  } catch (...) {
    group.fail("a rank failed");  // so short that it takes none
  }
}

RankOutcome run_rank(const std::shared_ptr<ThreadGroup>& group, int rank,
                     const std::function<void(Communicator&)>& body,
                     std::chrono::duration<double> timeout) noexcept {
  std::optional<ThreadCommunicator> comm;
  try {
    comm.emplace(group, rank, timeout);
    body(*comm);
    return {};
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    fail_group(*group, rank, error);
    return {error, comm && comm->was_released()};
  }
}

/// A rank's first error; what the others report is only its echo.
void rethrow_first(const std::vector<RankOutcome>& outcomes) {
  for (const bool released : {false, true})
    for (const RankOutcome& outcome : outcomes)
      if (outcome.error && outcome.released == released) std::rethrow_exception(outcome.error);
}

}  // namespace

void run_thread_ranks(int ranks, const std::function<void(Communicator&)>& body,
                      std::chrono::duration<double> timeout) {
  LOCKSTEP_CHECK(ranks >= 1);
  const auto group = std::make_shared<ThreadGroup>(ranks);
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(ranks));
  const auto run = [&](int rank) { at(outcomes, rank) = run_rank(group, rank, body, timeout); };
  std::vector<std::thread> threads;
  threads.reserve(outcomes.size());
  std::exception_ptr not_started;
  for (int rank = 1; rank < ranks && !not_started; ++rank) {
    try {
      threads.push_back(start_thread([&, rank] { run(rank); }));
    } catch (...) {  // the ranks that have started wait for this one
      not_started = std::current_exception();
      fail_group(*group, rank, not_started);
    }
  }
  if (!not_started) run(0);
  for (std::thread& thread : threads) thread.join();
  if (not_started) std::rethrow_exception(not_started);
  rethrow_first(outcomes);
}

std::shared_ptr<Communicator> make_lone_rank(std::chrono::duration<double> timeout) {
  return std::make_shared<ThreadCommunicator>(std::make_shared<ThreadGroup>(1), 0, timeout);
}

}  // namespace lockstep
