// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The last rank to arrive at a collective carries it out for all, in rank order.
#include "comm/thread/thread_group.hpp"

#include "comm/communicator.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/buffers.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep {

namespace {

using Operation = CollectiveKind::Operation;

template <typename T>
std::span<T> as(auto bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

/// Adds in rank order into rank 0's buffer, and gives that to all.
template <typename T>
void sum(const std::vector<Contribution>& ranks) {
  const std::span<T> total = as<T>(ranks[0].out);
  if (ranks.size() == 1 && ranks[0].in.data() != ranks[0].out.data()) copy(ranks[0].in, ranks[0].out);
  for (std::size_t i = 1; i < ranks.size(); ++i)
    add_up(i == 1 ? as<const T>(ranks[0].in) : total, as<const T>(ranks[i].in), total);
  for (std::size_t i = 1; i < ranks.size(); ++i) copy(ranks[0].out, ranks[i].out);
}

void broadcast(const std::vector<Contribution>& ranks, std::size_t root) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (i != root) copy(ranks[root].out, ranks[i].out);
}

void all_gather(const std::vector<Contribution>& ranks, std::size_t bytes) {
  for (const Contribution& to : ranks)
    for (std::size_t i = 0; i < ranks.size(); ++i) copy(ranks[i].in, to.out.subspan(i * bytes, bytes));
}

void perform(const ThreadCollective& collective) {
  switch (collective.kind.operation) {
    case Operation::kSumInt64:
      return sum<std::int64_t>(collective.contributions);
    case Operation::kSumFp32:
      return sum<float>(collective.contributions);
    case Operation::kBroadcast:
      return broadcast(collective.contributions, static_cast<std::size_t>(collective.kind.root));
    case Operation::kAllGather:
      return all_gather(collective.contributions, collective.kind.bytes);
    case Operation::kBarrier:
      return;
  }
}

/// By Operation.
constexpr std::array kOperationNames = {"an int64 all-reduce", "an fp32 all-reduce", "a broadcast",
                                        "an all-gather", "a barrier"};

}  // namespace

std::string CollectiveKind::describe() const {
  return fmt::format("{} of {} bytes (root {})", kOperationNames[static_cast<std::size_t>(operation)], bytes,
                     root);
}

std::shared_ptr<ThreadCollective> ThreadGroup::arrive(int rank, std::uint64_t sequence,
                                                      const CollectiveKind& kind,
                                                      const Contribution& contribution) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ThreadCollective>& entry = open_[sequence];
  if (entry == nullptr) {
    entry = std::make_shared<ThreadCollective>();
    entry->kind = kind;
    entry->contributions.resize(static_cast<std::size_t>(size_));
  }
  std::shared_ptr<ThreadCollective> collective = entry;
  if (collective->kind != kind)
    throw InternalError(
        fmt::format("rank {} starts {} where another rank started {}: ranks must call the same "
                    "collectives in the same order; please report this",
                    rank, kind.describe(), collective->kind.describe()));
  at(collective->contributions, rank) = contribution;
  if (++collective->arrived < size_) return collective;
  open_.erase(sequence);
  if (collective->abandoned) return collective;
  perform(*collective);
  collective->complete.store(true, std::memory_order_release);
  return collective;
}

void ThreadGroup::abandon(ThreadCollective& collective) {
  const std::lock_guard lock(mutex_);
  collective.abandoned = true;
}

void ThreadGroup::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  reason_ = reason;
  failed_.store(true, std::memory_order_release);
}

std::string ThreadGroup::reason() const {
  if (whole_ != nullptr && !failed_.load(std::memory_order_acquire)) return whole_->reason();
  const std::lock_guard lock(mutex_);
  return reason_;
}

// A lane holds waiting senders or waiting receivers, never both.

namespace {

/// The oldest of the other ends that wait on this lane. If there is none, `mine` waits, and there is no partner.
std::shared_ptr<MailEnd> partner_of(const std::shared_ptr<MailEnd>& mine, const ThreadMail::Lane& lane,
                                    auto& waiting, auto& others) {
  const auto found = others.find(lane);
  if (found == others.end()) {
    waiting[lane].push_back(mine);
    return nullptr;
  }
  std::shared_ptr<MailEnd> oldest = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) others.erase(found);
  return oldest;
}

}  // namespace

std::shared_ptr<MailEnd> ThreadMail::send(const Lane& lane, std::span<const std::byte> data) {
  auto end = std::make_shared<MailEnd>();
  end->from = data;
  const std::lock_guard lock(mutex_);
  if (const auto receiver = partner_of(end, lane, senders_, receivers_)) deliver(*end, *receiver);
  return end;
}

std::shared_ptr<MailEnd> ThreadMail::receive(const Lane& lane, std::span<std::byte> data) {
  auto end = std::make_shared<MailEnd>();
  end->to = data;
  const std::lock_guard lock(mutex_);
  if (const auto sender = partner_of(end, lane, receivers_, senders_)) deliver(*sender, *end);
  return end;
}

/// Copies the message. If one end was abandoned the other waits on: for its deadline, or until the group says what
/// failed.
void ThreadMail::deliver(MailEnd& sender, MailEnd& receiver) {
  if (sender.abandoned || receiver.abandoned) return;
  sender.other_bytes = receiver.to.size();
  receiver.other_bytes = sender.from.size();
  const bool fits = sender.from.size() == receiver.to.size();
  if (fits) std::copy(sender.from.begin(), sender.from.end(), receiver.to.begin());
  const auto state = fits ? MailEnd::State::kDone : MailEnd::State::kOtherLength;
  sender.state.store(state, std::memory_order_release);
  receiver.state.store(state, std::memory_order_release);
}

void ThreadMail::abandon(MailEnd& end) {
  const std::lock_guard lock(mutex_);
  end.abandoned = true;
}

// Rank 0 makes it and tells the others where it is. The last one to let go of it frees it.

SharedMemory share_thread_memory(Communicator& comm, std::size_t bytes) {
  using Block = AlignedBuffer<std::byte>;
  std::shared_ptr<Block> block;
  if (comm.rank() == 0) block = std::make_shared<Block>(bytes);
  const std::shared_ptr<Block>* owner = &block;
  broadcast(comm, owner);
  std::shared_ptr<Block> mine = *owner;
  comm.barrier();  // rank 0's bytes stay where they are until all have theirs
  return {mine, mine->data()};
}

}  // namespace lockstep
