// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Links through the hosts' memory, and from GPU to GPU.
#include "trainer/parallel/stage_links.hpp"

#include "common/error.hpp"
#include "kernels/device_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace lockstep {

std::string StageLinks::describe_receive(int from, int to) const {
  return fmt::format("{}, which takes {} from {} on rank {}", plan_.describe(to),
                     from < to ? "activations" : "gradients", plan_.describe(from), world_rank(from));
}

namespace {

/// Messages in host memory, carried by the ranks' communicator. Copies are sent.
class HostStageLinks final : public StageLinks {
 public:
  /// Borrows both.
  /// @param of_gpus  what the messages are copied to and from
  HostStageLinks(const StagePlan& plan, Communicator& comm, bool of_gpus)
      : StageLinks(plan, comm), of_gpus_(of_gpus) {}

  std::string name() const override { return of_gpus_ ? "through pinned host memory" : ""; }

  void copy_and_send(int from, int to, std::span<const float> values) override {
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
    auto pending =
        comm_.point_to_point().start_send(std::as_bytes(std::span(copy)), world_rank(to), tag_of(from, to));
    under_way_.push_back({std::move(copy), std::move(pending)});
  }

  void receive(int from, int to, std::span<float> values) override {
    if (on_one_rank(from, to)) {
      auto& waiting = own_[tag_of(from, to)];
      LOCKSTEP_CHECK(!waiting.empty() && waiting.front().size() == values.size());
      std::ranges::copy(waiting.front(), values.begin());
      free_.push_back(std::move(waiting.front()));
      waiting.pop_front();
      return;
    }
    const auto pending = comm_.point_to_point().start_receive(std::as_writable_bytes(values),
                                                              world_rank(from), tag_of(from, to));
    comm_.wait(*pending, describe_receive(from, to));
  }

  void look_after() override {
    while (!under_way_.empty() && under_way_.front().pending->test()) {
      free_.push_back(std::move(under_way_.front().values));
      under_way_.pop_front();
    }
  }

  void flush() override {
    for (PendingSend& message : under_way_) comm_.wait(*message.pending, "messages between stages");
    look_after();
  }

 private:
  struct PendingSend {
    std::vector<float> values;
    std::unique_ptr<PendingCollective> pending;
  };

  bool of_gpus_;
  std::deque<PendingSend> under_way_;
  std::map<int, std::deque<std::vector<float>>> own_;  ///< from this rank to itself, by tag
  std::vector<std::vector<float>> free_;               ///< memory for the next copies
};

// Messages between stages from GPU to GPU, without a way through the hosts; these say when.

/// Send and receive over NCCL keep their GPU busy until the other end has started, too. CUDA promises no other
/// stream progress meanwhile: what a GPU was given may run in the order in which it was given. So a GPU takes part in
/// one message at a time, and only when both ends are there. They agree on it over the ranks' communicator:
///
/// - The higher rank of the two says that its end is there: the message is made, or its pass waits for it.
/// - The lower rank, once it has heard that, has its own end there and is in no other message, starts and says so.
/// - The higher rank, once it has heard that and is in no other message, starts.
///
/// Why ranks cannot wait in a circle, whatever the placement and the order of passes:
///
/// - A rank only ever waits for the message of its next pass, and takes part in messages to others meanwhile. So the
///   first pass, in the order in which the schedule was played through (stage_plan.hpp), that has not run has its input
///   made.
/// - An end that is there stays there; no pass of either rank is needed any more.
/// - A rank that has started waits for a higher one only, and that one for a still higher one. The highest waits for
///   none.
/// - All messages have left before gradients are summed: those sums wait for other ranks, too.
///
/// Receivers take one message at a time, so both ends of a link start them in the same order.
class DeviceStageLinks final : public StageLinks {
 public:
  /// Makes the links of this rank. Collective. Borrows all.
  DeviceStageLinks(const StagePlan& plan, Communicator& comm, Gpu& gpu, Stream& passes);

  std::string name() const override {
    if (links_.empty()) return "on the device";
    return fmt::format("{}, from GPU to GPU", links_.begin()->second.device->name());
  }

  void copy_and_send(int from, int to, std::span<const float> values) override {
    look_after();
    const int tag = tag_of(from, to);
    PendingSend message{
        .from = from, .to = to, .copy = copy_of(tag, values), .count = values.size(), .end = {}};
    if (on_one_rank(from, to)) {
      own_[tag].push_back(std::move(message));
      return;
    }
    message.end = end_with(world_rank(to), tag);
    pending_sends_.push_back(std::move(message));
    look_after();
  }

  void receive(int from, int to, std::span<float> values) override;
  void look_after() override;

  void flush() override {
    const auto all_left = [this] {
      look_after();
      return pending_sends_.empty() && told_.empty();
    };
    PendingWork flushing(all_left, true);
    comm_.wait(flushing, "messages between stages");
  }

 private:
  using Pair = std::pair<int, int>;  ///< ranks of the pipeline: from, to
  struct Link {
    std::unique_ptr<Communicator> ranks;  ///< the two
    std::unique_ptr<DeviceLink> device;
  };
  /// This rank's end of a message.
  struct End {
    int peer = 0;  ///< rank in the world
    int tag = 0;
    bool told = false;                           ///< this rank has said its word
    std::unique_ptr<PendingCollective> word;     ///< the other rank's
    std::unique_ptr<PendingCollective> message;  ///< null: not started
  };
  /// Copy of a stage's message, so that the stage can go on.
  struct Copy {
    DeviceBuffer<float> values;
    std::unique_ptr<Event> made;
  };
  struct PendingSend {
    int from = 0, to = 0;  ///< stages
    Copy copy;
    std::size_t count = 0;  ///< numbers
    End end;
  };

  Pair pair_of(int from, int to) const { return {plan_.rank_of(from), plan_.rank_of(to)}; }
  Copy copy_of(int tag, std::span<const float> values);
  End end_with(int peer, int tag) {
    return {.peer = peer,
            .tag = tag,
            .word = comm_.point_to_point().start_receive({}, peer, tag),
            .message = nullptr};
  }
  void tell(End& end) {
    told_.push_back(comm_.point_to_point().start_send({}, end.peer, end.tag));
    end.told = true;
  }
  /// Advances an end that is there: `start` is called when its turn has come. True once the message is over.
  template <typename Start>
  bool progress(End& end, const Start& start);
  /// True once it has left.
  bool progress(PendingSend& message) {
    if (!message.copy.made->done()) return false;
    return progress(message.end, [&] {
      const std::span<const float> values(message.copy.values.data(), message.count);
      return links_.at(pair_of(message.from, message.to))
          .device->start_send(*message.copy.made, std::as_bytes(values));
    });
  }

  Gpu& gpu_;
  Stream& passes_;
  std::unique_ptr<Event> passed_;                        ///< the passes before the one that receives
  std::map<Pair, Link> links_;                           ///< this rank's
  std::deque<PendingSend> pending_sends_;                ///< in the order in which they were written
  std::map<int, std::deque<PendingSend>> own_;           ///< from this rank to itself, by tag
  std::map<int, std::vector<Copy>> free_;                ///< by tag
  std::deque<std::unique_ptr<PendingCollective>> told_;  ///< words that are on their way
  bool busy_ = false;                                    ///< the GPU takes part in a message
};

DeviceStageLinks::DeviceStageLinks(const StagePlan& plan, Communicator& comm, Gpu& gpu, Stream& passes)
    : StageLinks(plan, comm), gpu_(gpu), passes_(passes), passed_(gpu.device->make_event()) {
  // All pipelines make theirs at the same time, in the same order.
  std::set<Pair> pairs;
  for (int stage = 0; stage < plan_.last(); ++stage) {
    if (on_one_rank(stage, stage + 1)) continue;
    pairs.insert(pair_of(stage, stage + 1));
    if (at(plan_.stages, stage + 1).part.gives_input_gradient) pairs.insert(pair_of(stage + 1, stage));
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

void DeviceStageLinks::receive(int from, int to, std::span<float> values) {
  const int tag = tag_of(from, to);
  if (on_one_rank(from, to)) {
    auto& waiting = own_[tag];
    LOCKSTEP_CHECK(!waiting.empty() && waiting.front().count == values.size());
    passes_.copy_on_device(values.data(), waiting.front().copy.values.data(), values.size_bytes());
    free_[tag].push_back(
        std::move(waiting.front().copy));  // its later contents come after this on the stream
    waiting.pop_front();
    return;
  }
  passes_.record(*passed_);
  End end = end_with(world_rank(from), tag);
  DeviceLink& link = *links_.at(pair_of(from, to)).device;
  const auto has_arrived = [&] {
    look_after();  // sends go on meanwhile
    return progress(end, [&] { return link.start_receive(*passed_, std::as_writable_bytes(values)); });
  };
  PendingWork receiving(has_arrived, true);
  comm_.wait(receiving, describe_receive(from, to));
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

}  // namespace

bool messages_stay_on_device(const StagePlan& plan, const Gpu* gpu) {
  return gpu != nullptr && (plan.width == 1 || gpu->make_link != nullptr);
}

std::unique_ptr<StageLinks> make_stage_links(const StagePlan& plan, Communicator& comm, Gpu* gpu,
                                             Stream* passes) {
  if (passes != nullptr) return std::make_unique<DeviceStageLinks>(plan, comm, *gpu, *passes);
  return std::make_unique<HostStageLinks>(plan, comm, gpu != nullptr);
}

}  // namespace lockstep
