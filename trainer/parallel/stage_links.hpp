// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between stages: activations one way, their gradients the other. Messages lie where the engine's do:
/// in host memory or on the device.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/parallel/stage_plan.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lockstep {

/// One rank's end of the links of its pipeline. Sending never waits: what is sent is copied, and looked after
/// until it has left. Stages on one rank hand over without a message.
class StageLinks {
 public:
  virtual ~StageLinks() = default;

  /// Between two neighbours there is one link in each direction: of activations, and of gradients.
  static int tag_of(int from, int to) { return 2 * (from < to ? from : to) + (from < to ? 0 : 1); }
  /// Above those of links: of the weights on their way to their ranks and back, and of signs of life.
  static constexpr int kStateTag = 32000, kLifeTag = kStateTag + 1;

  /// "NCCL 2.28.9, from GPU to GPU", "through pinned host memory"; for people. Empty: nothing is worth a word.
  virtual std::string name() const = 0;

  /// To a neighbour of a stage of this rank. The next one takes its output, the one before the gradient of its input.
  void send(int from, int to, std::span<const float> values) {
    if (!on_one_rank(from, to)) bytes_sent_ += static_cast<std::int64_t>(values.size_bytes());
    copy_and_send(from, to, values);
  }
  /// Waits until it is there. @throws PeerLostError  names the stage and the rank that did not send it
  virtual void receive(int from, int to, std::span<float> values) = 0;
  /// Lets messages progress, without blocking: for a rank that waits for something else.
  virtual void look_after() = 0;
  /// Everything sent has left.
  virtual void flush() = 0;

  /// To other ranks.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  StageLinks(const StagePlan& plan, Communicator& comm)
      : plan_(plan), comm_(comm), first_rank_(comm.rank() / plan.width * plan.width) {}

  bool on_one_rank(int from, int to) const { return plan_.rank_of(from) == plan_.rank_of(to); }
  int world_rank(int stage) const { return first_rank_ + plan_.rank_of(stage); }
  /// "stage 1 (conv2 to relu2), which takes activations from stage 0 (conv1) on rank 0"
  std::string describe_receive(int from, int to) const;
  virtual void copy_and_send(int from, int to, std::span<const float> values) = 0;

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

}  // namespace lockstep
