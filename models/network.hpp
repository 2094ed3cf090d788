// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network built from its YAML description, and its execution for one grain at a time.
#pragma once

#include "common/buffers.hpp"
#include "kernels/ops.hpp"
#include "models/arena.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class BatchStatistics;
class Layer;

/// Layers whose output nothing reads: a mistake in a model file; but a checkpoint that has some is read as it was written.
enum class UnreadLayers { kRefused, kAllowed };

/// The layers, their shapes and the parameter layout. Immutable; holds no weights and no activations, so that
/// many threads can execute one network.
class Network {
 public:
  /// `source`: a name ("net" means net.yaml among the models that ship with Lockstep) or a path to a YAML
  /// file.
  /// @throws ConfigError, ShapeError  naming file, line, layer, and the shapes that do not fit; or the models
  /// there are
  /// @throws MissingDataError         the path is not there
  static Network load(const std::string& source, const ImageShape& input, int classes);
  /// The same from YAML text; `file` is for messages.
  static Network parse(const std::string& yaml, const std::string& file, const ImageShape& input, int classes,
                       UnreadLayers unread = UnreadLayers::kRefused);

  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const std::string& name() const { return name_; }
  const ImageShape& input_shape() const { return input_; }
  int classes() const { return classes_; }
  const ParameterLayout& parameters() const { return parameters_; }
  const std::vector<std::shared_ptr<const Layer>>& layers() const { return layers_; }
  /// Multiplications and additions to train on one sample: forward, weight gradients, data gradients (not of
  /// the first parameterised layer), without padding.
  double training_flops_per_sample() const;
  /// The YAML text that this network was built from: Network::parse of it gives the same network.
  const std::string& yaml() const { return yaml_; }
  /// Layer, output shape and parameters of each layer as a table for people.
  std::string summary() const;

  /// Fills the arena from (seed, parameter index, element): PyTorch's default (uniform in ±1/sqrt(fan_in))
  /// or, where the YAML says `init: {normal: 0.01}`, N(0, 0.01) weights and zero biases; ones and zeros where
  /// a layer begins with those.
  /// @param normal_std  in place of what the YAML says; 0: that
  /// @param weights  [parameters().weights_size()]
  void initialise(std::uint64_t seed, std::span<float> weights, double normal_std = 0) const;

 private:
  Network() = default;
  friend class NetworkBuilder;

  std::string name_;
  std::string yaml_;
  ImageShape input_;
  int classes_ = 0;
  ParameterLayout parameters_;
  std::vector<std::shared_ptr<const Layer>> layers_;  ///< stages keep them too
  double normal_std_ = 0;                             ///< of the initial weights; 0: PyTorch's default
};

/// Called during backward when the gradients in [offset, offset + size) of the arena are final for this
/// grain. The ranges arrive in backward order, each once, and together cover the arena. What is rounded to fixed point
/// are the terms, which are there during the call; the arena has their sum.
using GradientReady = std::function<void(std::size_t offset, std::size_t size, const GradientTerms& terms)>;

/// Called during backward after each layer: the moments to look after something else, such as messages under
/// way.
using BetweenLayers = std::function<void()>;

/// A grain on its way through a training step.
struct TrainingGrain {
  const float* weights = nullptr;
  int batch = 0;    ///< columns
  int samples = 0;  ///< columns that are samples
  PassKey key;
  BatchStatistics* statistics = nullptr;  ///< of the step; needed by networks with cuts
};

/// Where backward puts gradients, and whom it tells.
struct BackwardTarget {
  float* gradients = nullptr;  ///< arena order; overwritten with the sums over the grain
  const GradientReady& on_ready;
  const BetweenLayers& between_layers;
};

/// The activations of one network for one grain: what one thread needs to run forward and backward. Not
/// thread-safe. Borrows the network and the ops.
///
/// A layer with sums over the global batch cuts the passes (models/batch_layer.hpp): they stop there, so that
/// others come as far, and go on.
class Execution {
 public:
  /// @param max_batch  columns to make room for, those of a full grain: sums are cut by them; a multiple of
  ///                   ops.batch_multiple()
  /// @throws MemoryError  this machine has too little for them
  Execution(const Network& network, Ops& ops, int max_batch);
  Execution(Execution&&) noexcept;
  ~Execution();

  /// Where the loader puts the input, [features, batch].
  float* input();
  /// Runs the layers; dropout is active only in training. Returns the logits [classes, batch], valid until
  /// the next call.
  /// The whole pass, of a network without cuts.
  float* forward_training(const float* weights, int batch, const PassKey& key);
  float* forward_evaluation(const float* weights, int batch);
  /// After forward_training: overwrites `gradients` (arena order) with the sums over this grain.
  /// @param dlogits  [classes, batch]; may be the buffer that forward_training returned. Destroyed.
  void backward(const float* weights, float* dlogits, float* gradients, const GradientReady& on_ready,
                const BetweenLayers& between_layers = {});

  // The same from cut to cut, for any network:

  void begin_training(const TrainingGrain& grain);
  /// Runs on to the next cut, adds this grain's terms to its sums and returns true; false at the end of the
  /// network. Before it is called again, the cut's statistics must be there.
  bool forward_to_cut(std::int64_t* words);
  /// [classes, batch]
  float* logits();
  /// @param dlogits  may be logits(). Destroyed
  void begin_backward(float* dlogits);
  bool backward_to_cut(const BackwardTarget& target, std::int64_t* words);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The random numbers that training starts from: the same bits on every machine.

/// Initial values of one parameter tensor. Element e is made from word e % 4 of
/// philox(seed, {e / 4, 0, random_stream(kInitialise, parameter), 0}), by arithmetic that IEEE 754 rounds the
/// same everywhere: no function of the C library but the square root.
class InitialWeights {
 public:
  /// @param parameter  index of the tensor in the parameter layout
  InitialWeights(std::uint64_t seed, std::uint32_t parameter) : seed_(seed), parameter_(parameter) {}

  /// PyTorch's default for convolutions and linear layers: uniform in [-1/sqrt(fan_in), 1/sqrt(fan_in)).
  void fill_uniform(int fan_in, std::span<float> weights) const;
  /// N(0, std).
  void fill_normal(double std, std::span<float> weights) const;

 private:
  /// Calls make(word) for each element.
  template <typename Make>
  void fill(std::span<float> weights, Make make) const;

  std::uint64_t seed_;
  std::uint32_t parameter_;
};

// Where the network files that ship with Lockstep are.

/// Whether a job's `model` is a path rather than the name of a model that ships with Lockstep.
inline bool is_model_path(std::string_view source) {
  return source.find('/') != source.npos || source.ends_with(".yaml") || source.ends_with(".yml");
}

/// The file of a model. A source with a '/' or ending in .yaml or .yml is a path and returned as it is; a
/// name is looked for in $LOCKSTEP_MODELS, in the source tree that this program was built from, and in
/// ../share/lockstep/models beside the program.
/// @throws ConfigError  no model has this name; says which there are and where they were looked for
std::string find_model(const std::string& source);

// In which order backward finishes the gradients, and how much work lies between: what bucket planning needs
// to know.

/// The weight and bias of one layer, as Execution::backward reports them.
struct BackwardRange {
  std::size_t offset = 0;  ///< in the arena, in elements
  std::size_t size = 0;    ///< in elements
  /// Work of backward, per sample, from this range's completion to the next one's: the data gradient of this
  /// layer and the weight gradient of the next; 0 for the last range. Convolutions and linear layers only.
  double flops = 0;
  friend bool operator==(const BackwardRange&, const BackwardRange&) = default;
};

/// In backward order; together they cover the arena.
std::vector<BackwardRange> backward_ranges(const Network& network);

}  // namespace lockstep
