// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The activations and gradients of a network on a GPU, or of a part, for all grains of a rank. It is
/// what models' Execution is on a CPU.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/device_sums.hpp"
#include "kernels/device_timeline.hpp"
#include "models/batch_layer.hpp"
#include "models/network.hpp"
#include "models/stages.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

/// Inputs of a pass on a device besides the weights.
struct DevicePass {
  int batch = 0;
  std::uint64_t seed = 0;
  std::uint32_t first_sample = 0;    ///< position of column 0 in the global batch
  const StepState* state = nullptr;  ///< device memory
  // For layers that look at the global batch:
  int grain = 0;                   ///< columns of a grain
  std::int64_t batch_samples = 0;  ///< in the global batch
  /// Loss of the output, in training. The forward pass ends with it, and the gradient of the logits takes their
  /// place. None: that is the caller's business.
  std::optional<DeviceLoss> loss = std::nullopt;
};

/// Target of the gradients of all parameters: arena order, as exact sums.
struct DeviceGradient {
  int grain = 0;                         ///< columns of a grain
  std::int64_t* arena = nullptr;         ///< [parameters]
  std::int64_t* refused = nullptr;       ///< Refusals::all
  std::span<const ExactFormat> formats;  ///< for each tensor, in arena order; the host's
  std::int64_t* refusals = nullptr;      ///< [tensors][kRefusalKinds], Refusals::of_tensor; may be null
};

/// Called in backward when this rank's additions to [offset, offset + size) of the arena are queued on
/// `stream`. In backward order.
using DeviceGradientReady = std::function<void(Stream& stream, std::size_t offset, std::size_t size)>;

/// Sums of a cut (models/batch_layer.hpp) that are to become those over all ranks; device memory.
struct CutSums {
  std::int64_t* words = nullptr;
  std::size_t count = 0;  ///< 0: there was no cut any more
};

/// Queues passes on streams; waits for nothing. Borrows network, device and ops. Tensors are never shared
/// between stages: weight gradients run beside data gradients, and all of it fits the GPU's cache for the
/// networks this is made for.
class DeviceExecution {
 public:
  enum class Purpose { kTraining, kEvaluation };
  /// @param part  runs these layers alone, exactly as among the others: the bits are the same. No layer of it may need
  ///              sums over the global batch, and weights, gradients and what DeviceGradientReady is told are
  ///              those of the part: its first parameter comes first
  /// @throws ShapeError   see check_device_limits
  /// @throws DeviceError  the device has no room
  DeviceExecution(const Network& network, Device& device, DeviceOps& ops, int max_batch, Purpose purpose,
                  const NetworkPart& part = {});

  /// Stages in training are marked in this timeline. Borrows it; null: in none.
  void record_into(DeviceTimeline* timeline) { timeline_ = timeline; }

  /// Memory for the input, [features, batch]; gather puts the labels, [batch], into the other.
  float* input() { return input_.y.data(); }
  std::int32_t* labels() { return labels_.data(); }
  int max_batch() const { return max_batch_; }

  // Input and labels of the next pass, which may come while this one runs.

  /// @throws DeviceError  the device has no room
  void make_room_for_next_input(Device& device);
  /// Null without such room.
  float* next_input() { return next_input_.data(); }
  std::int32_t* next_labels() { return next_labels_.data(); }
  /// After all that this pass reads: they replace this one's.
  void take_next_input();

  /// Returns the output, which is the logits [classes, batch], or their gradient if the pass has a loss. Valid until
  /// the next pass.
  float* forward_training(Stream& stream, const float* weights, const DevicePass& pass);
  float* forward_evaluation(Stream& stream, const float* weights, int batch);

  /// After forward_training of the same pass, and the loss if the pass has none. Data gradients on `main`, weight
  /// gradients on `side` and the last one on `main`. Afterwards `main` waits for `side`.
  /// @param dlogits  gradient of the output, [classes, batch]; may be the buffer that forward_training returned
  void backward(Stream& main, Stream& side, float* dlogits, const DeviceGradient& gradient,
                const DeviceGradientReady& on_ready);
  /// Memory for the gradient of the output, if a part takes it from others; in another part, its output.
  float* output_gradient() { return output_gradient_.size() > 0 ? output_gradient_.data() : logits(); }
  /// Gradient of the input [features, batch], after backward until the next pass, in a part that gives it; otherwise
  /// null.
  const float* input_gradient() const { return gives_input_gradient_ ? input_.gradient : nullptr; }

  // Passes from cut to cut, for any network. The last two return what must be summed over all ranks, after
  // what is queued on the stream, before they are called again. A rank without samples (batch 0) has part in
  // the sums and in nothing else.

  void begin_training(float* weights, const DevicePass& pass);
  CutSums forward_to_cut(Stream& stream);
  float* logits() { return unit_before(units_.size()).y.data(); }
  void begin_backward(Stream& main, float* dlogits);
  /// At the end `main` waits for `side`.
  CutSums backward_to_cut(Stream& main, Stream& side, const DeviceGradient& gradient,
                          const DeviceGradientReady& on_ready);
  /// At a cut that the host sums. `main` waits for what is queued on `side`, which a graph must not leave open.
  void join_side(Stream& main, Stream& side);
  /// Behind the update of the step.
  void queue_move_kept(Stream& stream);
  /// How often a step stops.
  std::size_t cuts() const { return cuts_.size() + backward_cuts_.size(); }

 private:
  /// A stage with its memory.
  struct Unit {
    Stage stage;
    DeviceBuffer<float> y;            ///< [output, batch]
    DeviceBuffer<std::uint8_t> mask;  ///< the epilogue's, or what its head saved
    DeviceBuffer<float> gradient_memory;
    /// Gradient of y, where the stage after it cannot store through the epilogue.
    DeviceBuffer<float> detour;
    DeviceBuffer<float> from_branches;  ///< gradient that branches of y bring, to be added to dy
    /// Another head with this branch, after this one, has written its gradient.
    bool adds_to_dbranch = false;
    float* dy = nullptr;  ///< gradient of y; null: stored_through
    /// [before_epilogue, batch]: separate memory, or another's with equal numbers
    float* gradient = nullptr;
    std::unique_ptr<Event> ready;  ///< its gradient is there
    EpilogueBackward way_back;    ///< through its epilogue; in the shape that the unit after it sees, if that
    bool stored_through = false;  ///< stores through it
    std::size_t first_tensor = 0;        ///< the number of its first parameter in arena order
    DeviceBuffer<std::byte> statistics;  ///< for a head that is a BatchLayer

    const BatchLayer* over_batch() const;
    bool has_epilogue() const { return stage.epilogue.count > 0; }
  };

  /// The one whose output unit i reads.
  Unit& unit_before(std::size_t i) { return i == 0 ? input_ : units_[i - 1]; }
  void make_units(Device& device, const Network& network, const NetworkPart& part, bool training);
  /// Plans the place of each gradient, and the way back through each epilogue.
  void plan_gradients();
  void plan_gradient(Unit& unit, const Unit* next);
  const float* input_of(std::size_t i) const { return i == 0 ? input_.y.data() : units_[i - 1].y.data(); }
  DeviceLayerPass layer_pass(Stream& stream) const;
  const float* weights_of(const Unit& unit) const {
    return weights_ + (unit.stage.parameter_offset() - first_parameter_);
  }
  float* kept_of(const Unit& unit) const;
  /// Adds this rank's terms to zeroed sums.
  CutSums queue_sums(Stream& stream, std::size_t i, bool forward);
  void forward_stage(Stream& stream, std::size_t i);
  /// Runs the last stage with the loss and the gradient of its input, if it has a launch for them.
  bool forward_with_loss(Stream& stream, DeviceLayerTensors tensors);
  /// True if the gradient of the input of a unit is wanted.
  bool gives_gradient(std::size_t i) const { return i > first_trained_ || gives_input_gradient_; }
  const float* branch_of(const Unit& unit) const;
  /// From dy to the gradient of a unit.
  void through_epilogue(Stream& stream, Unit& unit);
  /// On `side`, but for the last one.
  void backward_unit_weights(Stream& main, Stream& side, std::size_t i, const DeviceGradient& gradient,
                             const DeviceGradientReady& on_ready);
  void backward_weights(Stream& stream, std::size_t i, const DeviceGradient& gradient);
  /// From the gradient of unit i to that of the one before, to which what branches bring is added.
  void backward_data(Stream& stream, std::size_t i);

  DeviceOps& ops_;
  int max_batch_;
  bool gives_input_gradient_;
  std::size_t first_parameter_;  ///< the part's, in the arena
  Unit input_;                   ///< represents all that is before the first unit; its y is the input
  DeviceBuffer<std::int32_t> labels_;
  DeviceBuffer<float> next_input_;
  DeviceBuffer<std::int32_t> next_labels_;
  std::vector<Unit> units_;
  DeviceBuffer<float> output_gradient_;
  std::size_t first_trained_ = 0;  ///< layer at which backward ends
  std::unique_ptr<Event> side_done_;
  std::vector<Cut> cuts_, backward_cuts_;
  std::size_t parameters_;            ///< elements
  DeviceBuffer<std::int64_t> words_;  ///< for the cut at hand
  // Stand-ins for biases that layers do not have; as long as the longest of them.
  DeviceBuffer<float> zero_bias_;
  DeviceBuffer<std::int64_t> unread_sums_;  ///< and a place to count refusals

  // The pass at hand and how far it is queued.
  float* weights_ = nullptr;
  DevicePass pass_;
  bool training_ = false;
  bool loss_is_queued_ = false, last_dx_is_queued_ = false;
  std::size_t next_ = 0;      ///< in forward: the unit to run; in backward: the one after it
  bool terms_added_ = false;  ///< by that unit, if it is a cut
  DeviceTimeline* timeline_ = nullptr;
  bool forked_ = false;  ///< there is work on `side` that main has not waited for
};

// Memory of a network on a GPU, before anything is allocated there.

/// Bytes of activations, masks and gradients for that many samples at a time, and of replacements of missing biases.
std::uint64_t device_execution_bytes(const Network& network, std::int64_t samples, bool training,
                                     const NetworkPart& part = {});

/// Bytes that make_room_for_next_input() takes.
std::uint64_t next_input_bytes(const Network& network, std::int64_t samples);

/// @throws ShapeError  for so many samples of one rank at a time, a tensor or a convolution of this network is larger
/// than GPU kernels can number. It names the layer, the limit, and what helps
/// @param fewer  advice to make them fewer: "lower the batch"; empty: a smaller global batch
void check_device_limits(const Network& network, std::int64_t samples, std::string_view fewer = {});

}  // namespace lockstep
