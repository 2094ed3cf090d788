// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Published hashes: the results of known computations, equal on every machine, so that a user can check his
/// own. The table is launch/jobs/hashes.txt, four columns a row:
///
///   COMPUTATION STEP WEIGHTS what it is: anything up to the end of the line
///
/// COMPUTATION is computation_digest(), STEP the number of optimiser steps, WEIGHTS the SHA-256 over all
/// parameters. Lines that begin with # are comments.
#pragma once

#include "trainer/checkpoint/state.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct PublishedHash {
  std::string computation;  ///< 64 hexadecimal digits
  std::int64_t step = 0;
  std::string weights;  ///< 64 hexadecimal digits
  std::string what;
};

/// SHA-256 over everything that decides the weights at a step: the keys of the job, the network, the training data.
/// Not over ranks, threads, device and places, which leave no trace. Empty where nothing is promised
/// (parallel.determinism: off, parallel.kernels: vendor, steps by a version that rounded elsewhere), and where not
/// all is known (initial weights from a file, checkpoints that do not say what they were trained on).
std::string computation_digest(const CheckpointFacts& facts);

/// @throws DataError  names `file` and the line that is no row
std::vector<PublishedHash> read_published_hashes(std::string_view text, const std::string& file);

/// The table that comes with this program; empty where there is none.
/// @throws DataError  it is damaged
std::vector<PublishedHash> published_hashes();

/// The row for the very computation and step, or none.
std::optional<PublishedHash> find_published(const std::vector<PublishedHash>& table,
                                            const CheckpointFacts& facts);

/// Weights beside what was published of the same computation and step.
struct PublishedComparison {
  std::optional<bool> same;  ///< nothing: nothing was published of it, or the table cannot be read
  std::string line;          ///< to be told: "the published hash: yes (...)"; empty: nothing to tell
};

/// Never throws for the table's sake.
PublishedComparison compare_with_published(const CheckpointFacts& facts, const std::string& weights_sha256);

}  // namespace lockstep
