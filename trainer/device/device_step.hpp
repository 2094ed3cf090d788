// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One training step on a GPU as work queued on streams: captured in a graph or not, the same calls.
#pragma once

#include "comm/reduce/sum_check.hpp"
#include "kernels/device_timeline.hpp"
#include "models/device/device_execution.hpp"
#include "trainer/device/device_arena.hpp"
#include "trainer/device/device_data.hpp"
#include "trainer/device/device_loss.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/training_loss.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// A rank's share of a global batch: neighbouring grains.
struct BatchShare {
  int columns = 0;         ///< samples; 0: this rank has no grain in this batch
  std::int64_t first = 0;  ///< position of column 0 in the global batch
  /// Samples of the global batch. A rank can have the same columns in a full batch and in an epoch's last one
  /// while others have not; with this, all ranks agree on which shares are alike.
  std::int64_t batch = 0;
  friend bool operator==(const BatchShare&, const BatchShare&) = default;
};

struct StepSizes {
  int max_columns = 0;  ///< computed at a time: whole grains, or the largest share
  /// Some rank computes its share of a full batch in several micro-batches. All ranks say the same.
  bool long_steps = false;
  std::int64_t global_batch = 0;   ///< samples of a full batch, all ranks together
  std::int64_t global_grains = 0;  ///< grains of it
  std::int64_t steps_per_epoch = 0;
  std::int64_t longest_series =
      0;  ///< steps whose losses are added up before the host writes the state again
  std::optional<Streaming> streaming = std::nullopt;  ///< for the training set
};

/// A step among others of the same share that are queued as a series.
struct SeriesPlace {
  bool has_samples = false;   ///< the one before has gathered them
  bool gathers_next = false;  ///< this one gathers those of the next one, beside its gradients
};

/// Device memory into which a step gathers the samples of the next one, beside its own gradients. 0: it does not.
/// @param samples  computed at a time
std::uint64_t bytes_gathered_ahead(GraphUse graph, const Network& network, std::int64_t samples,
                                   bool long_steps);

/// Holds data, activations and what is trained in device memory. What changes from step
/// to step (position, learning rate, stop request) is read from the StepState there, so a queued step has the
/// same arguments each time.
class DeviceStep {
 public:
  DeviceStep(const TrainingSetup& setup, const Gpu& gpu, GraphUse graph, const StepSizes& sizes);

  /// Gathers the batch, runs forward and backward; with a reduction on streams, that too. Where the host takes
  /// part in the reduction, sums that a network needs on the way (models/batch_layer.hpp) cut this into pieces,
  /// to be queued in turn, with reduce(cut()) after each but the last; otherwise there is one piece.
  void queue_gradients(const BatchShare& share, std::size_t piece);
  std::size_t pieces() const;
  /// End of the piece that was queued last.
  const CutSums& cut() const { return cut_; }
  void reduce(const CutSums& cut);
  /// Source of sums at cuts.
  enum class CutSumsFrom {
    kRanks,
    kRanksNoted,  ///< and this rank keeps them
    kNotes,       ///< the last ones that were kept, whatever the share: none is summed over ranks
  };
  /// All pieces.
  void queue_gradients(const BatchShare& share, CutSumsFrom from = CutSumsFrom::kRanks,
                       const SeriesPlace& place = {});
  /// Gradients and updates of so many steps of the same share.
  void queue_series(const BatchShare& share, int count);
  /// Fingerprints of what this rank added at each cut, the last time that they were not kRanks. Waits for the stream.
  SumFingerprints own_cut_sums();
  /// Moves the weights and advances the state.
  void queue_update();
  /// All pieces of samples that are no part of this rank's share of the step, which streams come without. They are
  /// fetched. Sums at cuts are kNotes.
  /// @param rows_of  of a part of that share, as SampleRing::RowsOf
  using RowsOfPart = std::function<std::vector<std::int32_t>(const BatchShare& part)>;
  void queue_gradients_of_others(const BatchShare& share, const RowsOfPart& rows_of);
  /// Returns when the samples of the steps before `end` are on their way to the device, where they stream. Counted over
  /// all epochs. Before these steps are queued, at most kStreamedAtOnce at a time.
  void await_samples(Communicator& comm, std::int64_t end) {
    if (data_.ring() != nullptr) data_.ring()->await(comm, *main_, end);
  }
  static constexpr std::int64_t kStreamedAtOnce = 8;
  /// The next step that is queued is refused by all ranks, unless sums are zeroed before.
  void queue_refusal() {
    host_counters_[kRefused] = 1;
    main_->copy_to_device(arena_.counters() + kRefused, &host_counters_[kRefused], sizeof(std::int64_t));
  }
  /// Samples that are computed at a time.
  int at_a_time() const { return execution_.max_batch(); }
  /// Weights, sums and their units.
  DeviceArena& arena() { return arena_; }
  /// So many kernels that a graph of several steps gains nothing, and takes memory.
  bool is_long() const { return long_; }
  Stream& stream() { return *main_; }
  /// Parts of steps become slices of it, if it is open when begin_trace() is called. Borrows it.
  void record_into(Timeline* timeline);
  /// Before a step that is not captured; waits for the stream. And when all of it is done.
  void begin_trace() { timeline_.begin_step(*main_); }
  void end_trace() { timeline_.end_step(); }

  const TrainingLoss& loss() const { return loss_; }
  /// The order of the training samples in the epoch under way, and what they are mixed with. Waits until it is there.
  void set_order(std::span<const std::int32_t> order, std::span<const SampleMix> mixes = {});
  /// Once all that was queued is done: steps follow.
  void queue_state_to_device(const StepState& state);
  /// After the stream has come this far, state() is what the device had. The arena has the rows of the steps done
  /// since queue_state_to_device().
  void queue_state_to_host();
  const StepState& state() const { return state_.host(); }
  /// Between gradients and update. After the stream has come this far, counters() is what the step counted,
  /// over all ranks once it is reduced.
  void queue_counters_to_host();
  std::span<const std::int64_t> counters() const { return host_counters_.span().first(kStepCounters); }

 private:
  /// How many parts a share is computed in, one after the other; at least 1, which may be empty.
  int micro_batches(const BatchShare& share) const;
  /// Part i of a share, of which each but the last fills the execution.
  BatchShare micro_batch(const BatchShare& share, int i) const;
  /// @param column  of the rank's share, at which the part begins
  void begin_pass(const BatchShare& part, int column);
  StreamedRows rows_of(const BatchShare& part, int column);
  enum class Batch { kThis, kNext };
  void queue_gather(Stream& stream, const BatchShare& part, int column, Batch which);
  std::optional<DeviceLoss> loss_of(const BatchShare& part);
  enum class Gradients { kMoreToCome, kComplete };
  /// Goes on with the pass: to the next cut, or to its end.
  /// @param gradients  of this rank, once it ends; those that are complete go to the reducer, layer by layer
  CutSums queue_to_cut(const BatchShare& part, Gradients gradients);

  const Gpu& gpu_;
  int grain_;
  std::uint64_t seed_;
  int classes_;
  std::int64_t global_batch_;
  bool long_, gathers_ahead_;
  double narrow_limit_;
  std::unique_ptr<Stream> main_, side_;
  DeviceData data_;
  TrainingLoss loss_;
  DeviceLossRule loss_rule_;
  DeviceExecution execution_;
  DeviceBuffer<std::int32_t> order_;
  DeviceMixes mixes_;  ///< for the order
  DeviceState state_;
  PinnedBuffer<std::int64_t> host_counters_;
  DeviceArena arena_;
  DeviceTimeline timeline_;
  bool in_backward_ = false;               ///< in the pass that is being queued
  const RowsOfPart* of_others_ = nullptr;  ///< in that pass; null: the samples are the rank's own
  CutSums cut_;                            ///< the cut that it is at
  CutSumsFrom from_ = CutSumsFrom::kRanks;
  SeriesPlace place_;
  std::unique_ptr<Event> next_may_come_, next_is_there_;
  std::size_t cuts_passed_ = 0;
  std::vector<DeviceBuffer<std::int64_t>> own_at_cuts_, summed_at_cuts_;  ///< by cut
};

// Whole steps as CUDA graphs: one for each shape of a batch (an epoch's full ones and its last one).

/// Queues steps through graphs where it may, and directly otherwise: the same operations either way. The
/// first step of each shape runs directly, which loads kernels and lets libraries allocate; the next one is
/// captured. All ranks see the same shapes in the same order, so all capture at the same step.
class StepGraphs {
 public:
  /// @param comm  all ranks that queue the same steps; capturing is collective
  StepGraphs(DeviceStep& step, GraphUse use, Communicator& comm) : step_(step), use_(use), comm_(comm) {}

  /// Queues `count` steps of the same share of the batch.
  void queue(const BatchShare& share, std::int64_t count);
  /// After the step's units have changed: captured work has the old ones. Nothing may be queued any more.
  void forget() { captured_.clear(); }

 private:
  /// Graphs captured for one shape. With a reduction by the host a step is a graph for each piece of the
  /// gradients and one for the update, with the host in between; otherwise it is one, of which a series of
  /// several steps is also kept. All ranks have the same number of steps in it.
  struct Captured {
    BatchShare share;
    std::vector<std::unique_ptr<Graph>> gradients;  ///< one for each piece
    std::vector<CutSums> cuts;                      ///< sums to reduce at the end of each
    std::unique_ptr<Graph> update;
    std::unique_ptr<Graph> step, series;  ///< no series of long ones
    int steps_of_series = 0;
  };

  void queue_directly(const BatchShare& share);
  void capture(Captured& captured);
  template <typename Queue>
  std::unique_ptr<Graph> record(const Queue& queue);
  void launch(Captured& captured, std::int64_t count);

  DeviceStep& step_;
  GraphUse use_;
  Communicator& comm_;
  std::vector<Captured> captured_;
};

}  // namespace lockstep
