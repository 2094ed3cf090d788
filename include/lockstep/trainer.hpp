// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training: epochs or single steps over all ranks. The weights are the same bits on any number of them.
#pragma once

#include <lockstep/communicator.hpp>
#include <lockstep/dataset.hpp>
#include <lockstep/device.hpp>
#include <lockstep/loss.hpp>
#include <lockstep/network.hpp>
#include <lockstep/optimizer.hpp>
#include <lockstep/version.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

LOCKSTEP_BEGIN_NAMESPACE

/// Names and meaning as in a job file (docs/training.md). All ranks give equal ones. What decides the bits: all but
/// `threads` and `device`.
struct TrainerOptions {
  std::int64_t global_batch = 128;  ///< samples of a step, all ranks together
  std::uint64_t seed = 1234;        ///< for initial weights, order, dropout
  Optimizer optimizer = {};
  Schedule schedule = {};
  std::int64_t epochs = 10;  ///< how long the schedule is; epoch() may be called more often
  Loss loss = {};
  double clip_norm = 0;  ///< the largest norm of the mean gradient; 0: any
  bool shuffle = true;
  int grain = 64;   ///< samples computed together, 4096 at most; global_batch / grain ranks at most have work
  int threads = 1;  ///< in each rank, on CPU cores
  /// lockstep::gpu(comm), or CPU cores. A layer or a loss of your own is for CPU cores alone.
  Device device = {};
};

/// Result of one step, over all ranks, and so the same on each.
struct StepReport {
  std::int64_t step = 0;   ///< from 1, over all epochs
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t samples = 0, correct = 0;
  double loss = 0;           ///< mean over the samples
  double gradient_norm = 0;  ///< L2 norm of the mean gradient, before clipping; 0 on a GPU
  double learning_rate = 0;
  double seconds = 0;  ///< this rank's time
};

/// Over the steps of an epoch.
struct EpochReport {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t steps = 0, samples = 0, correct = 0;
  double loss = 0;  ///< mean over the samples
  double seconds = 0;
};

struct Evaluation {
  std::int64_t samples = 0, correct = 0;
  double loss = 0;      ///< mean over the samples; NaN if one of them is not finite
  double accuracy = 0;  ///< correct / samples
};

/// Sees each step after it was taken, on the rank that observes.
using StepObserver = std::function<void(const StepReport&)>;

/// One rank's end of a training. Calls are collective, unless it says otherwise: every rank makes them.
/// @throws PeerLostError  another rank is gone; InternalError  sums have changed on their way, and nothing was kept
class Trainer {
 public:
  /// Makes the initial weights. The communicator must outlive it.
  /// @throws ConfigError  naming the option that does not fit the data, the network or the number of ranks
  /// @throws ShapeError   the network is for other samples; MemoryError, DeviceError  no room
  Trainer(const Network& network, const Dataset& train, Communicator& comm,
          const TrainerOptions& options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  /// Takes one step, and begins the next epoch where one has ended.
  /// @throws InternalError  a loss or a gradient is NaN or infinite: nothing of that step was kept
  StepReport step();
  /// Takes the steps that are left of the epoch under way. On a GPU without a pause between them, unless a rank observes
  /// them.
  EpochReport epoch();
  /// Loss and accuracy over all samples, each counted once.
  /// @throws ConfigError  ranks have other data; ShapeError  the network is for other samples
  Evaluation evaluate(const Dataset& data);
  /// From now on sees each step on this rank; several are called in turn. Not collective.
  void observe(StepObserver observer);

  std::int64_t steps_per_epoch() const;
  std::int64_t steps() const;   ///< taken so far
  std::int64_t epochs() const;  ///< completed

  /// In the order of Network::tensors(), on every rank. Valid until the next step. Not collective. Fetched from a GPU.
  std::span<const float> weights() const;
  /// SHA-256 of the weights as little-endian floats, 64 hexadecimal digits: what `lockstep train` prints last. Not
  /// collective.
  std::string weights_sha256() const;

  /// Writes FOLDER/checkpoints/step-NNNNNNNN, which `lockstep inspect`, `verify`, `hash`, `diff` and `export --npz`
  /// read. When it returns it survives a power loss.
  /// @returns the directory. @throws IoError; InternalError  weights are NaN or infinite
  std::string save(const std::string& folder);
  /// Goes on from a checkpoint's directory, at its step, with the same bits as without a pause. On any number of
  /// ranks. One that `lockstep train` wrote will do, where network, data and options are its job's.
  /// @throws DataError, MissingDataError, IoError  it cannot be read; ConfigError  it is of another network, by its
  /// yaml(), input or classes, or of another optimizer
  void load(const std::string& checkpoint);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

LOCKSTEP_END_NAMESPACE
