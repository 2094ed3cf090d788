// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between stages from GPU to GPU, without a way through the hosts; these say when.
#pragma once

#include "trainer/strategies/pipeline/stage_links.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// A message over NCCL blocks its stream, and takes room on its GPU, until the other end has come. So none is started
/// before the other end is there: a rank that waits for a message says so to its sender, over the ranks' communicator, and
/// starts to receive; whoever is told so starts to send, once he has what is asked for. Why ranks cannot wait in a circle:
///
/// - A rank only ever waits for the message of its next pass. While it does, it sends what others ask it for, so a pass
///   that has ended can be read by whoever wants it, in any order.
/// - Two ranks have a link for each direction, each with a communicator and a stream of its own. The receiver takes one message
///   at a time and says which, so both ends start the same ones in the same order; and what a rank receives never stands
///   in front of what it sends.
/// - A send that is started has its receive at the other end, and ends without help from any pass: whatever streams share
///   a queue of the hardware, and whoever allocates memory or loads a kernel meanwhile, which may wait for all that runs on
///   the GPU. A receive may last until its message is made; its rank runs nothing meanwhile but sends.
/// - So the first pass, in the order in which the schedule was played through (schedule.hpp), that has not run has its
///   input made, asked for and sent.
class DeviceStageLinks final : public StageLinks {
 public:
  /// Makes the links of this rank. Collective. Borrows all.
  DeviceStageLinks(const StagePlan& plan, Communicator& comm, Gpu& gpu, Stream& passes);

  std::string name() const override;
  void look_after() override;
  void flush() override;

 private:
  class Receiving;
  class Flushing;

  using Pair = std::pair<int, int>;  ///< ranks of the pipeline: from, to
  struct Link {
    std::unique_ptr<Communicator> ranks;  ///< the two
    std::unique_ptr<DeviceLink> device;
    bool busy = false;  ///< sending
  };
  /// What a stage said, so that it can go on.
  struct Copy {
    DeviceBuffer<float> values;
    std::unique_ptr<Event> made;
  };
  struct Letter {
    int from = 0, to = 0;  ///< stages
    Copy copy;
    std::size_t count = 0;                       ///< of numbers
    std::unique_ptr<PendingCollective> wanted;   ///< the receiver waits for it
    std::unique_ptr<PendingCollective> leaving;  ///< null: not started
  };

  void make_links();
  Pair pair_of(int from, int to) const { return {plan_.rank_of(from), plan_.rank_of(to)}; }
  void send(int from, int to, std::span<const float> values) override;
  void receive(int from, int to, std::span<float> values) override;
  void take_own(int tag, std::span<float> values);
  Copy copy_of(int tag, std::span<const float> values);
  /// True once it has left.
  bool progress(Letter& letter);

  Gpu& gpu_;
  Stream& passes_;
  std::unique_ptr<Event> passed_;                         ///< the passes before the one that receives
  std::map<Pair, Link> links_;                            ///< of this rank
  std::deque<Letter> letters_;                            ///< in the order in which they were written
  std::map<int, std::deque<Letter>> own_;                 ///< from this rank to itself, by tag
  std::map<int, std::vector<Copy>> free_;                 ///< by tag
  std::deque<std::unique_ptr<PendingCollective>> calls_;  ///< that say what this rank waits for
};

}  // namespace lockstep
