// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Chooses the samples of a step's global batch, and those of them that this rank computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// A fixed slice of a global batch, the unit of work: whole grains go to ranks and threads.
struct Grain {
  std::int64_t first = 0;  ///< position of its first sample in the global batch
  int samples = 0;         ///< the job's grain, or fewer at the end of a batch
};

/// 0, 1, 2 ... `samples` fits 31 bits.
std::vector<std::int32_t> file_order(std::int64_t samples);

/// The order of one epoch. It is a permutation of [0, samples) made from (seed, epoch) alone by Fisher-Yates with
/// Philox: exactly uniform draws, the same on every machine. `samples` fits 31 bits.
std::vector<std::int32_t> epoch_permutation(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

/// The order of one epoch for disks that are slow to seek, from (seed, epoch) alone: neighbours stay close.
/// [0, samples) is cut at o, o + window, o + 2 window ..., with o drawn from [0, window); the pieces are shuffled, and
/// the samples of each piece among each other. A window that has all samples: epoch_permutation.
std::vector<std::int32_t> windowed_order(std::int64_t samples, std::int64_t window, std::uint64_t seed,
                                         std::int64_t epoch);

/// The order of one epoch that has each class equally often, made from (seed, epoch) alone in whole numbers.
///
/// Balanced order: the K classes that have samples take turns in an endless row of draws. Draw d is of class
/// d mod K (in label order), and is its draw d / K. A class draws all its samples in a random order, then all
/// of them in another, and so on. Epoch e has the draws from e * samples on, as many as there are samples, in
/// the order of epoch_permutation. So two classes differ by one draw at most, in an epoch as in all up to it;
/// two samples of a class by one in all epochs up to one, and by two within it.
/// @param labels  of all samples, each from 0 on
std::vector<std::int32_t> balanced_order(std::span<const std::int32_t> labels, std::uint64_t seed,
                                         std::int64_t epoch);

/// Shards each global batch over ranks. The global batch of a step is the next `global_batch` entries of the epoch's
/// permutation, for any number of ranks; the last batch of an epoch may be smaller. No sample is dropped or
/// repeated in an epoch, but to balance classes. The batch is cut into grains of `grain` samples; rank r of W
/// computes the consecutive grains [G*r/W, G*(r+1)/W), which may be none in the last batch; or with Split::kChunk
/// those of a piece of ceil(G/W) grains, as torch.chunk and DataParallel cut: the last pieces are smaller, or empty.
class DistributedSampler {
 public:
  enum class Split { kEven, kChunk };
  struct Options {
    std::int64_t samples = 0;
    std::int64_t global_batch = 0;
    int grain = 64;
    std::uint64_t seed = 0;
    bool shuffle = true;      ///< false: file order (evaluation)
    std::int64_t window = 0;  ///< for windowed_order(); 0: epoch_permutation()
    int rank = 0;
    int world_size = 1;
    Split split = Split::kEven;
    std::int64_t per_rank_batch = 0;  ///< for advice: global_batch is this times the ranks; 0: it is not
    /// Labels of all samples, borrowed: an epoch is their balanced_order(). Empty: it has each sample once.
    std::span<const std::int32_t> balanced_labels = {};
  };

  /// @throws ConfigError if a size is not positive, or if there are more ranks than grains in a full batch
  /// (the message gives the largest usable number of ranks).
  explicit DistributedSampler(const Options& options);
  /// Throws what the constructor would.
  static void check(const Options& options);
  static std::int64_t steps_per_epoch(const Options& options);

  std::int64_t steps_per_epoch() const;
  /// Samples in the global batch of this step: global_batch, or fewer in the epoch's last step.
  std::int64_t batch_samples(std::int64_t step_in_epoch) const;
  /// Grains in the global batch of this step, over all ranks.
  std::int64_t batch_grains(std::int64_t step_in_epoch) const;
  /// The grains of this rank in this step, in order; those of another.
  std::vector<Grain> local_grains(std::int64_t step_in_epoch) const;
  std::vector<Grain> grains_of(int rank, std::int64_t step_in_epoch) const;
  /// Most grains of a rank in any step. It is that of a full batch or of an epoch's last one, whose grains are dealt
  /// anew. Now and then that gives a rank more.
  int most_grains_of(int rank) const {
    return static_cast<int>(
        std::max(grains_of(rank, 0).size(), grains_of(rank, steps_per_epoch() - 1).size()));
  }
  int most_local_grains() const { return most_grains_of(options_.rank); }

  /// Moves to an epoch (counted from 0): makes its permutation. Cheap if already there.
  void set_epoch(std::int64_t epoch);
  /// Data set indices of a grain's samples, valid until set_epoch.
  std::span<const std::int32_t> indices(std::int64_t step_in_epoch, const Grain& grain) const;
  /// Place in order() where they begin.
  std::int64_t place(std::int64_t step_in_epoch, const Grain& grain) const {
    return step_in_epoch * options_.global_batch + grain.first;
  }
  /// Data set indices of the whole epoch: global batch after global batch. Valid until set_epoch.
  std::span<const std::int32_t> order() const { return order_; }

 private:
  std::int64_t begin_of(int rank, std::int64_t grains) const;

  Options options_;
  std::int64_t epoch_ = -1;
  std::vector<std::int32_t> order_;
};

}  // namespace lockstep
