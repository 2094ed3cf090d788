// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/parallel/stage_links.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace lockstep {

std::string StageLinks::describe_receive(int from, int to) const {
  return fmt::format("{}, which takes {} from {} on rank {}", plan_.describe(to),
                     from < to ? "activations" : "gradients", plan_.describe(from), world_rank(from));
}

bool messages_stay_on_device(const StagePlan& plan, const Gpu* gpu) {
  return gpu != nullptr && (plan.width == 1 || gpu->make_link != nullptr);
}

std::unique_ptr<StageLinks> make_stage_links(const StagePlan& plan, Communicator& comm, Gpu* gpu,
                                             Stream* passes) {
  if (passes != nullptr) return std::make_unique<DeviceStageLinks>(plan, comm, *gpu, *passes);
  return std::make_unique<HostStageLinks>(plan, comm, gpu != nullptr);
}

// Copies that are sent, and kept for the next ones.

void HostStageLinks::send(int from, int to, std::span<const float> values) {
  look_after();
  std::vector<float> copy;
  if (!free_.empty()) {
    copy = std::move(free_.back());
    free_.pop_back();
  }
  copy.assign(values.begin(), values.end());
  if (on_one_rank(from, to)) {
    own_[tag_of(from, to)].push_back(std::move(copy));
    return;
  }
  count_sent(values);
  under_way_.push_back({std::move(copy), nullptr});
  PendingSend& message = under_way_.back();
  message.pending = comm_.point_to_point().start_send(std::as_bytes(std::span(message.values)),
                                                      world_rank(to), tag_of(from, to));
}

void HostStageLinks::receive(int from, int to, std::span<float> values) {
  if (on_one_rank(from, to)) {
    auto& waiting = own_[tag_of(from, to)];
    LOCKSTEP_CHECK(!waiting.empty() && waiting.front().size() == values.size());
    std::ranges::copy(waiting.front(), values.begin());
    free_.push_back(std::move(waiting.front()));
    waiting.pop_front();
    return;
  }
  const auto pending = comm_.point_to_point().start_receive(std::as_writable_bytes(values), world_rank(from),
                                                            tag_of(from, to));
  comm_.wait(*pending, describe_receive(from, to));
}

void HostStageLinks::look_after() {
  while (!under_way_.empty() && under_way_.front().pending->test()) {
    free_.push_back(std::move(under_way_.front().values));
    under_way_.pop_front();
  }
}

void HostStageLinks::flush() {
  for (PendingSend& message : under_way_) comm_.wait(*message.pending, "messages between stages");
  look_after();
}

// Messages on the device, and the hosts' words about them.

DeviceStageLinks::DeviceStageLinks(const StagePlan& plan, Communicator& comm, Gpu& gpu, Stream& passes)
    : StageLinks(plan, comm), gpu_(gpu), passes_(passes), passed_(gpu.device->make_event()) {
  // All pipelines make theirs at the same time, in the same order.
  std::set<Pair> pairs;
  for (int stage = 0; stage < plan_.last(); ++stage) {
    if (on_one_rank(stage, stage + 1)) continue;
    pairs.insert(pair_of(stage, stage + 1));
    if (plan_.stages[static_cast<std::size_t>(stage) + 1].part.gives_input_gradient)
      pairs.insert(pair_of(stage + 1, stage));
  }
  const int mine = comm_.rank() - first_rank_, pipeline = comm_.rank() / plan_.width;
  for (const Pair& pair : pairs) {
    const bool sends = pair.first == mine, receives = pair.second == mine;
    auto ranks = comm_.split(sends || receives ? pipeline : plan_.replicas + comm_.rank());
    if (!sends && !receives) continue;
    auto device = gpu_.make_link(*ranks, *gpu_.device, sends ? LinkEnd::kSender : LinkEnd::kReceiver);
    links_.emplace(pair, Link{std::move(ranks), std::move(device)});
  }
}

std::string DeviceStageLinks::name() const {
  if (links_.empty()) return "on the device";
  return fmt::format("{}, from GPU to GPU", links_.begin()->second.device->name());
}

/// Those of a link differ only where a batch has a shorter grain.
DeviceStageLinks::Copy DeviceStageLinks::copy_of(int tag, std::span<const float> values) {
  auto& free = free_[tag];
  Copy copy;
  while (!free.empty() && copy.values.size() < values.size()) {
    copy = std::move(free.back());
    free.pop_back();
  }
  if (copy.values.size() < values.size())
    copy = {DeviceBuffer<float>(*gpu_.device, values.size()), gpu_.device->make_event()};
  passes_.copy_on_device(copy.values.data(), values.data(), values.size_bytes());
  passes_.record(*copy.made);
  return copy;
}

DeviceStageLinks::End DeviceStageLinks::end_with(int peer, int tag) {
  return {.peer = peer,
          .tag = tag,
          .word = comm_.point_to_point().start_receive({}, peer, tag),
          .message = nullptr};
}

void DeviceStageLinks::tell(End& end) {
  told_.push_back(comm_.point_to_point().start_send({}, end.peer, end.tag));
  end.told = true;
}

template <typename Start>
bool DeviceStageLinks::progress(End& end, const Start& start) {
  if (end.message == nullptr) {
    const bool higher = comm_.rank() > end.peer;
    if (higher && !end.told) tell(end);
    if (busy_ || !end.word->test()) return false;
    if (!higher) tell(end);
    end.message = start();
    busy_ = true;
  }
  if (!end.message->test()) return false;
  busy_ = false;
  return true;
}

void DeviceStageLinks::send(int from, int to, std::span<const float> values) {
  look_after();
  const int tag = tag_of(from, to);
  PendingSend message{
      .from = from, .to = to, .copy = copy_of(tag, values), .count = values.size(), .end = {}};
  if (on_one_rank(from, to)) {
    own_[tag].push_back(std::move(message));
    return;
  }
  count_sent(values);
  message.end = end_with(world_rank(to), tag);
  pending_sends_.push_back(std::move(message));
  look_after();
}

void DeviceStageLinks::receive(int from, int to, std::span<float> values) {
  const int tag = tag_of(from, to);
  if (on_one_rank(from, to)) {
    take_own(tag, values);
    return;
  }
  passes_.record(*passed_);
  End end = end_with(world_rank(from), tag);
  DeviceLink& link = *links_.at(pair_of(from, to)).device;
  PendingWork receiving(
      [&] {
        look_after();  // sends go on meanwhile
        return progress(end, [&] { return link.start_receive(*passed_, std::as_writable_bytes(values)); });
      },
      true);
  comm_.wait(receiving, describe_receive(from, to));
}

/// Takes a message of this rank to itself. Later contents of the copy's memory come after this on the stream.
void DeviceStageLinks::take_own(int tag, std::span<float> values) {
  auto& waiting = own_[tag];
  LOCKSTEP_CHECK(!waiting.empty() && waiting.front().count == values.size());
  passes_.copy_on_device(values.data(), waiting.front().copy.values.data(), values.size_bytes());
  free_[tag].push_back(std::move(waiting.front().copy));
  waiting.pop_front();
}

bool DeviceStageLinks::progress(PendingSend& message) {
  if (!message.copy.made->done()) return false;
  return progress(message.end, [&] {
    const std::span<const float> values(message.copy.values.data(), message.count);
    return links_.at(pair_of(message.from, message.to))
        .device->start_send(*message.copy.made, std::as_bytes(values));
  });
}

void DeviceStageLinks::look_after() {
  std::erase_if(told_, [](const auto& word) { return word->test(); });
  for (auto message = pending_sends_.begin(); message != pending_sends_.end();) {
    if (!progress(*message)) {
      ++message;
      continue;
    }
    free_[tag_of(message->from, message->to)].push_back(std::move(message->copy));
    message = pending_sends_.erase(message);
  }
}

void DeviceStageLinks::flush() {
  PendingWork flushing(
      [this] {
        look_after();
        return pending_sends_.empty() && told_.empty();
      },
      true);
  comm_.wait(flushing, "messages between stages");
}

}  // namespace lockstep
