// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From data set indices to the input of a network: normalised, batch innermost.
#pragma once

#include "data/dataset.hpp"
#include "kernels/ops.hpp"

#include <cstdint>
#include <span>

namespace lockstep {

/// Gathers samples of a data set straight into the layout that the kernels read. Holds no state: one loader
/// serves all threads of a rank, each with its own Ops.
class BatchLoader {
 public:
  /// Borrows the set, which must outlive the loader.
  explicit BatchLoader(const Dataset& dataset) : dataset_(dataset) {}

  /// Column n of x becomes sample indices[n]; columns beyond them become 0. labels[n] becomes its label.
  ///
  /// @param indices        each in [0, dataset.size()), not more than batch_columns
  /// @param batch_columns  a multiple of ops.batch_multiple()
  /// @param x              [features, batch_columns], overwritten, memory of the Ops' device
  /// @param labels         [indices.size()], overwritten
  void load(Ops& ops, std::span<const std::int32_t> indices, int batch_columns, float* x,
            std::int32_t* labels) const;

  /// Asks the processor to have these samples in its cache soon; returns at once. Worth it while computing on
  /// the batch before: random samples come from main memory, which a gather would wait for.
  void prefetch(std::span<const std::int32_t> indices) const;

 private:
  const Dataset& dataset_;
};

}  // namespace lockstep
