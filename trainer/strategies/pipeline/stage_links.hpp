// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What stages say to each other: activations one way, their gradients the other.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/strategies/pipeline/stage_plan.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

/// One rank's end of the links of its pipeline. Sending never waits: what is sent is copied, and looked after
/// until it has left. Stages on one rank hand over without a message.
class StageLinks {
 public:
  /// Borrows both.
  StageLinks(const StagePlan& plan, Communicator& comm);

  /// The output of `stage`, to the next one.
  void send_forward(int stage, std::span<const float> values) { send(stage, stage + 1, values); }
  /// The gradient of the input of `stage`, to the one before.
  void send_backward(int stage, std::span<const float> values) { send(stage, stage - 1, values); }
  /// The input of `stage`; the gradient of its output. Wait until it is there.
  /// @throws PeerLostError  names the stage and the rank that did not send it
  void receive_forward(int stage, std::span<float> values) { receive(stage - 1, stage, values); }
  void receive_backward(int stage, std::span<float> values) { receive(stage + 1, stage, values); }
  /// Everything sent has left.
  void flush();

  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Letter {
    std::vector<float> values;
    std::unique_ptr<PendingCollective> pending;
  };

  void send(int from, int to, std::span<const float> values);
  void receive(int from, int to, std::span<float> values);
  std::vector<float> take_buffer();
  void look_after();
  int world_rank(int stage) const { return first_rank_ + plan_.rank_of(stage); }

  const StagePlan& plan_;
  Communicator& comm_;
  int first_rank_;  ///< of this rank's pipeline
  std::deque<Letter> under_way_;
  std::map<int, std::deque<std::vector<float>>> own_;  ///< from this rank to itself, by tag
  std::vector<std::vector<float>> free_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace lockstep
