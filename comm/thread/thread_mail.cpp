// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A lane holds waiting senders or waiting receivers, never both.
#include "comm/thread/thread_mail.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

template <typename Lanes>
std::shared_ptr<MailEnd> take_oldest(Lanes& lanes, const ThreadMail::Lane& lane) {
  const auto found = lanes.find(lane);
  if (found == lanes.end()) return nullptr;
  std::shared_ptr<MailEnd> oldest = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) lanes.erase(found);
  return oldest;
}

}  // namespace

std::shared_ptr<MailEnd> ThreadMail::send(const Lane& lane, std::span<const std::byte> data) {
  auto end = std::make_shared<MailEnd>();
  end->from = data;
  const std::lock_guard lock(mutex_);
  if (const auto receiver = take_oldest(receivers_, lane)) {
    deliver(*end, *receiver);
  } else {
    senders_[lane].push_back(end);
  }
  return end;
}

std::shared_ptr<MailEnd> ThreadMail::receive(const Lane& lane, std::span<std::byte> data) {
  auto end = std::make_shared<MailEnd>();
  end->to = data;
  const std::lock_guard lock(mutex_);
  if (const auto sender = take_oldest(senders_, lane)) {
    deliver(*sender, *end);
  } else {
    receivers_[lane].push_back(end);
  }
  return end;
}

/// Where one end was abandoned the other waits on: for its deadline, or until the group says what failed.
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

}  // namespace lockstep
