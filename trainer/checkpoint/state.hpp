// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Content of a checkpoint: a position in a deterministic run, and the numbers at that position.
#pragma once

#include "common/safetensors.hpp"
#include "kernels/numerics/sums.hpp"
#include "kernels/sum_cuts.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Name and shape of one tensor, in the order of the weights.
struct CheckpointParameter {
  std::string name;
  std::vector<std::size_t> shape;
  std::size_t elements() const;
  friend bool operator==(const CheckpointParameter&, const CheckpointParameter&) = default;
};

/// The units of the gradients' exact sums (comm/reduce/gradient_units.hpp), which decide the bits of what follows.
struct CheckpointUnits {
  std::vector<std::int16_t> exponents;  ///< one a tensor, in arena order
  std::int64_t changed_at = 0;          ///< the step at which one of them last changed
  friend bool operator==(const CheckpointUnits&, const CheckpointUnits&) = default;
};

/// Sums of training since the last report: exact, so that neither ranks nor a resume change a digit.
struct LossWindow {
  std::int64_t steps = 0, samples = 0;
  std::int64_t correct = 0;  ///< samples whose answer was right, as they were trained on
  WideSum loss_units;        ///< sum over samples, in units of 2^-32 nats

  void add(const LossWindow& more) {
    steps += more.steps;
    samples += more.samples;
    correct += more.correct;
    loss_units += more.loss_units;
  }
  double mean() const { return loss_units.value() / kLossScale / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
  friend bool operator==(const LossWindow&, const LossWindow&) = default;
};

/// Composition of the sums in the steps before a checkpoint (kernels/sum_cuts.hpp). A replay with the same
/// composition gets the same bits from `since` on.
struct CheckpointArithmetic {
  std::int64_t version = kArithmeticVersion;  ///< the writing program's
  std::int64_t since = 0;                     ///< the step from which on all were computed by that version
  friend bool operator==(const CheckpointArithmetic&, const CheckpointArithmetic&) = default;
};

/// Position of the run's trail (trail.hpp): records, and what the last of them ends with.
struct CheckpointTrail {
  std::int64_t records = 0;
  std::string sha256;  ///< 64 hexadecimal digits
  friend bool operator==(const CheckpointTrail&, const CheckpointTrail&) = default;
};

/// Position in the run's metrics.jsonl: its lines, and the SHA-256 of their bytes.
struct CheckpointMetrics {
  std::int64_t lines = 0;
  std::string sha256;  ///< 64 hexadecimal digits
  friend bool operator==(const CheckpointMetrics&, const CheckpointMetrics&) = default;
};

/// Record for train.patience: evaluations after epochs and within them.
struct CheckpointPatience {
  double best = -1;                 ///< the highest accuracy; -1: none was measured yet
  std::int64_t without_better = 0;  ///< evaluations since then
  std::int64_t counted_from = 0;    ///< those after this step: train.patience was given there

  void count(double accuracy) {
    without_better = accuracy > best ? 0 : without_better + 1;
    best = accuracy > best ? accuracy : best;
  }
  friend bool operator==(const CheckpointPatience&, const CheckpointPatience&) = default;
};

/// The part of a run that changes from step to step, beside weights and what the optimiser remembers. Plain numbers,
/// so that it can be broadcast. What is added here is added to the list in manifest.cpp, and no resume loses it.
struct RunState {
  std::int64_t step = 0;           ///< optimiser steps taken in all
  std::int64_t epoch = 0;          ///< epochs completed, their evaluation included
  std::int64_t step_in_epoch = 0;  ///< steps taken in the epoch under way

  /// Sums over the steps of the epoch under way.
  std::int64_t epoch_samples = 0, epoch_correct = 0;
  WideSum epoch_loss_units;  ///< in units of 2^-32 nats: neither ranks nor pauses leave a trace
  /// Steps of this epoch since run.print_loss_every_steps last printed. A checkpoint has them without the
  /// answers; nothing where its run prints none.
  std::optional<LossWindow> unprinted = LossWindow();
  LossWindow unlogged;  ///< since the last event "step": in a checkpoint without their loss
  CheckpointArithmetic arithmetic;
  std::int64_t replayed = 0;  ///< the last step whose shares other ranks computed again, all right; 0: none
  std::optional<double> test_accuracy;        ///< of these very weights; nothing if they were not evaluated
  std::optional<double> validation_accuracy;  ///< the same on what data.validation holds out
  /// Counted whether the job asks for it or not; in a checkpoint where train.patience is given.
  std::optional<CheckpointPatience> patience = CheckpointPatience();

  /// By which the checkpoints of a run are compared.
  std::optional<double> accuracy() const { return validation_accuracy ? validation_accuracy : test_accuracy; }
  double epoch_loss() const { return epoch_loss_units.value() / kLossScale; }  ///< sum over samples, in nats
  LossWindow epoch_so_far() const { return {step_in_epoch, epoch_samples, epoch_correct, epoch_loss_units}; }
  /// Steps that moved the weights.
  void add(const LossWindow& series) {
    step += series.steps;
    step_in_epoch += series.steps;
    epoch_samples += series.samples;
    epoch_correct += series.correct;
    epoch_loss_units += series.loss_units;
    unprinted->add(series);
    unlogged.add(series);
    if (series.steps > 0) test_accuracy = validation_accuracy = std::nullopt;
  }
  void start_next_epoch() {
    ++epoch;
    step_in_epoch = epoch_samples = epoch_correct = 0;
    epoch_loss_units = {};
    unprinted.emplace();
    unlogged = {};
  }
  friend bool operator==(const RunState&, const RunState&) = default;
};

/// Everything but the tensors. Valid for any number of ranks.
struct CheckpointFacts : RunState {
  std::uint64_t seed = 0;
  double epoch_loss_sum = 0;  ///< epoch_loss() as a number, for people
  CheckpointUnits gradient_units;
  std::optional<CheckpointTrail> trail;      ///< nothing where the run leaves none
  std::optional<CheckpointMetrics> metrics;  ///< nothing where no run wrote it

  std::map<std::string, std::string> job;  ///< the job's keys that determine the weights, with their values
  std::map<std::string, std::string>
      model;  ///< what it takes to build the network again: YAML, input, classes
  std::map<std::string, std::string> data;   ///< the set that the run is trained on
  std::map<std::string, std::string> world;  ///< ranks, device, backend, ...: for people, never compared
  /// Name of the average these weights are ("ema", "swa"); empty for trained weights. Not stored.
  std::string average;
  std::string bucket_plan;  ///< for people
  /// Parameters in each bucket of that plan, in the order in which they leave; empty: not known.
  std::vector<std::size_t> bucket_sizes;
  std::vector<CheckpointParameter> parameters;
  /// Further tensors of the model, such as running statistics; the optimiser does not change them.
  std::vector<CheckpointParameter> kept;

  /// All tensors of the model file: parameters, then the kept ones.
  std::vector<CheckpointParameter> tensors() const;
  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

/// One of the things that the optimiser remembers of each parameter, in arena order. What it means is the
/// optimiser's own.
struct OptimizerBuffer {
  std::string name;
  std::vector<float> values;
  friend bool operator==(const OptimizerBuffer&, const OptimizerBuffer&) = default;
};

/// A complete checkpoint. Weights are in arena order, too, kept tensors after the parameters.
struct CheckpointState {
  CheckpointFacts facts;
  std::vector<float> weights;
  std::vector<OptimizerBuffer> optimizer = {};
};

/// Elements of all parameters.
std::size_t arena_size(const std::vector<CheckpointParameter>& parameters);

/// The arena cut into its tensors, `prefix` before each name. Bytes are borrowed from the arena.
std::vector<TensorView> tensors_of(const std::vector<CheckpointParameter>& parameters,
                                   std::span<const float> arena, const std::string& prefix);

/// The tensors of one of the optimiser's buffers: "momentum.conv1.weight".
std::vector<TensorView> tensors_of(const std::vector<CheckpointParameter>& parameters,
                                   const OptimizerBuffer& buffer);
/// Prefix of the names of a buffer's tensors: "momentum.".
std::string tensor_prefix(const std::string& buffer);

/// Describes numbers that no network can compute with: NaN, infinite, or a negative running variance. "3 of
/// 250 numbers of conv1.weight are NaN or infinite"; "" if there are none.
std::string unusable_numbers(const std::string& tensor, std::span<const float> numbers);
/// As unusable_numbers for all tensors of the weights, for a message.
std::string unusable_weights(const std::vector<CheckpointParameter>& tensors, std::span<const float> weights);

/// Weights accepted from a file: those without unusable numbers, or any, to be looked at.
enum class Weights { kUsable, kAny };

/// SHA-256 of the weights in arena order as little-endian fp32: the last line of a training run.
std::string weights_sha256(std::span<const float> weights);

// Record of a file in a manifest: size, SHA-256, and a CRC-32 for every 64 KiB of every tensor. The CRCs
// locate damage.

inline constexpr std::size_t kChecksumBlockBytes = 65536;

/// A part of a file. Its blocks start at `begin`; the last may be shorter.
struct SectionRecord {
  std::string name;                   ///< of the tensor; empty for the file's header
  std::size_t begin = 0, end = 0;     ///< in bytes from the start of the file
  std::vector<std::uint32_t> crc32s;  ///< one a block
  friend bool operator==(const SectionRecord&, const SectionRecord&) = default;
};

/// Sections in the order of the file, without gaps; the first is the header.
struct FileRecord {
  std::string name;  ///< inside the checkpoint's directory
  std::size_t bytes = 0;
  std::string sha256;
  std::vector<SectionRecord> sections;
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

/// One place where a checkpoint is not what its manifest says.
struct Damage {
  std::string path;    ///< of the file
  std::string tensor;  ///< empty if no tensor is hit
  std::string cause;
};

/// "runs/a/checkpoints/step-00000100/model.safetensors: tensor 'conv1.weight': ..."
std::string to_string(const Damage& damage);

/// Blocks that a section of so many bytes has.
std::size_t checksum_blocks(std::size_t bytes);

/// The record of a safetensors file with these bytes.
FileRecord record_of(const std::string& name, std::span<const std::byte> safetensors);

/// Describes a file of another size than recorded: names the first tensor that is not whole.
Damage size_damage(const FileRecord& record, std::uint64_t size, const std::string& path);

/// Compares; empty if every byte is as recorded.
std::vector<Damage> check_against(const FileRecord& record, std::span<const std::byte> bytes,
                                  const std::string& path);

}  // namespace lockstep
