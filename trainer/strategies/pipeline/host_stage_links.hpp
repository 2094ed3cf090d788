// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between stages in host memory, carried by the ranks' communicator.
#pragma once

#include "trainer/strategies/pipeline/stage_links.hpp"

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

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
  struct Letter {
    std::vector<float> values;
    std::unique_ptr<PendingCollective> pending;
  };

  void send(int from, int to, std::span<const float> values) override;
  void receive(int from, int to, std::span<float> values) override;
  std::vector<float> take_buffer();

  bool of_gpus_;
  std::deque<Letter> under_way_;
  std::map<int, std::deque<std::vector<float>>> own_;  ///< from this rank to itself, by tag
  std::vector<std::vector<float>> free_;
};

}  // namespace lockstep
