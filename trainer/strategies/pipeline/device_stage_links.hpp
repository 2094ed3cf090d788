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

/// Send and receive over NCCL keep their GPU busy until the other end has started, too, and CUDA promises no other stream
/// progress meanwhile: what a GPU was given may run in the order in which it was given. So a GPU takes part in one message at a
/// time, and only when both ends are there. They agree on it over the ranks' communicator:
///
/// - The higher rank of the two says that its end is there: the message is made, or its pass waits for it.
/// - The lower rank, once it has heard that, has its own end there and is in no other message, starts and says so.
/// - The higher rank, once it has heard that and is in no other message, starts.
///
/// Why ranks cannot wait in a circle, whatever the placement and the order of passes:
///
/// - A rank only ever waits for the message of its next pass, and takes part in messages to others meanwhile. So the first
///   pass, in the order in which the schedule was played through (schedule.hpp), that has not run has its input made.
/// - An end that is there stays there; no pass of either rank is needed any more.
/// - A rank that has started waits for a higher one only, and that one for a still higher one. The highest waits for none.
/// - All messages have left before gradients are summed: those sums wait for other ranks, too.
///
/// A receiver takes one message at a time, so both ends of a link start the same ones in the same order.
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
  };
  /// This rank's end of a message.
  struct End {
    int peer = 0;  ///< rank in the world
    int tag = 0;
    bool told = false;                           ///< this rank has said its word
    std::unique_ptr<PendingCollective> word;     ///< the other rank's
    std::unique_ptr<PendingCollective> message;  ///< null: not started
  };
  /// What a stage said, so that it can go on.
  struct Copy {
    DeviceBuffer<float> values;
    std::unique_ptr<Event> made;
  };
  struct Letter {
    int from = 0, to = 0;  ///< stages
    Copy copy;
    std::size_t count = 0;  ///< of numbers
    End end;
  };

  void make_links();
  Pair pair_of(int from, int to) const { return {plan_.rank_of(from), plan_.rank_of(to)}; }
  void send(int from, int to, std::span<const float> values) override;
  void receive(int from, int to, std::span<float> values) override;
  void take_own(int tag, std::span<float> values);
  Copy copy_of(int tag, std::span<const float> values);
  End end_with(int peer, int tag);
  /// Of an end that is there: `start` is called when its turn has come. True once the message is over.
  template <typename Start>
  bool progress(End& end, const Start& start);
  void tell(End& end);
  /// True once it has left.
  bool progress(Letter& letter);

  Gpu& gpu_;
  Stream& passes_;
  std::unique_ptr<Event> passed_;                        ///< the passes before the one that receives
  std::map<Pair, Link> links_;                           ///< of this rank
  std::deque<Letter> letters_;                           ///< in the order in which they were written
  std::map<int, std::deque<Letter>> own_;                ///< from this rank to itself, by tag
  std::map<int, std::vector<Copy>> free_;                ///< by tag
  std::deque<std::unique_ptr<PendingCollective>> told_;  ///< words that are on their way
  bool busy_ = false;                                    ///< the GPU takes part in a message
};

}  // namespace lockstep
