// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between stages: activations one way, their gradients the other. Messages lie where the engine's do:
/// in host memory (HostStageLinks) or on the device (DeviceStageLinks).
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device_buffer.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/parallel/stage_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// One rank's end of the links of its pipeline. Sending never waits: what is sent is copied, and looked after
/// until it has left. Stages on one rank hand over without a message.
class StageLinks {
 public:
  virtual ~StageLinks() = default;

  /// Between two neighbours there is one link in each direction: of activations, and of gradients.
  static int tag_of(int from, int to) { return 2 * (from < to ? from : to) + (from < to ? 0 : 1); }

  /// "NCCL 2.28.9, from GPU to GPU", "through pinned host memory"; for people. Empty: nothing is worth a word.
  virtual std::string name() const = 0;

  /// The output of `stage`, to the next one.
  void send_forward(int stage, std::span<const float> values) { send(stage, stage + 1, values); }
  /// The gradient of the input of `stage`, to the one before.
  void send_backward(int stage, std::span<const float> values) { send(stage, stage - 1, values); }
  /// The input of `stage`; the gradient of its output. Wait until it is there.
  /// @throws PeerLostError  names the stage and the rank that did not send it
  void receive_forward(int stage, std::span<float> values) { receive(stage - 1, stage, values); }
  void receive_backward(int stage, std::span<float> values) { receive(stage + 1, stage, values); }
  /// Lets messages progress, without blocking: for a rank that waits for something else.
  virtual void look_after() = 0;
  /// Everything sent has left.
  virtual void flush() = 0;

  /// To other ranks.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  StageLinks(const StagePlan& plan, Communicator& comm)
      : plan_(plan), comm_(comm), first_rank_(comm.rank() / plan.width * plan.width) {}

  virtual void send(int from, int to, std::span<const float> values) = 0;
  virtual void receive(int from, int to, std::span<float> values) = 0;

  bool on_one_rank(int from, int to) const { return plan_.rank_of(from) == plan_.rank_of(to); }
  int world_rank(int stage) const { return first_rank_ + plan_.rank_of(stage); }
  /// "stage 1 (conv2 to relu2), which takes activations from stage 0 (conv1) on rank 0"
  std::string describe_receive(int from, int to) const;
  void count_sent(std::span<const float> values) {
    bytes_sent_ += static_cast<std::int64_t>(values.size_bytes());
  }

  const StagePlan& plan_;
  Communicator& comm_;
  int first_rank_;  ///< first in this rank's pipeline

 private:
  std::int64_t bytes_sent_ = 0;
};

/// True if messages of this plan stay on the rank's device. Either the rank has all stages, or the GPUs have a way of
/// their own.
bool messages_stay_on_device(const StagePlan& plan, const Gpu* gpu);

/// As messages_stay_on_device() says. Collective. Borrows all.
/// @param passes  of an engine whose messages are on the device: the stream that makes and reads them; else null
std::unique_ptr<StageLinks> make_stage_links(const StagePlan& plan, Communicator& comm, Gpu* gpu,
                                             Stream* passes);

// Messages between stages in host memory, carried by the ranks' communicator.

class HostStageLinks final : public StageLinks {
 public:
  /// Borrows both.
  /// @param of_gpus  what the messages are copied to and from
  HostStageLinks(const StagePlan& plan, Communicator& comm, bool of_gpus)
      : StageLinks(plan, comm), of_gpus_(of_gpus) {}

  std::string name() const override { return of_gpus_ ? "through pinned host memory" : ""; }
  void look_after() override;
  void flush() override;

 private:
  struct PendingSend {
    std::vector<float> values;
    std::unique_ptr<PendingCollective> pending;
  };

  void send(int from, int to, std::span<const float> values) override;
  void receive(int from, int to, std::span<float> values) override;

  bool of_gpus_;
  std::deque<PendingSend> under_way_;
  std::map<int, std::deque<std::vector<float>>> own_;  ///< from this rank to itself, by tag
  std::vector<std::vector<float>> free_;
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

  std::string name() const override;
  void look_after() override;
  void flush() override;

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
  void send(int from, int to, std::span<const float> values) override;
  void receive(int from, int to, std::span<float> values) override;
  void take_own(int tag, std::span<float> values);
  Copy copy_of(int tag, std::span<const float> values);
  End end_with(int peer, int tag);
  /// Advances an end that is there: `start` is called when its turn has come. True once the message is over.
  template <typename Start>
  bool progress(End& end, const Start& start);
  void tell(End& end);
  /// True once it has left.
  bool progress(PendingSend& message);

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

}  // namespace lockstep
