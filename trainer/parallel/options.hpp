// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job's options for a pipeline: its stages, their ranks, the order of their passes.
#pragma once

#include "common/spelling.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// How a pipeline's network is cut.
struct StagesSection {
  std::int64_t count = 0;                        ///< 0: as many as there are ranks
  std::vector<std::vector<std::string>> layers;  ///< or the names of the layers of each stage
  bool operator==(const StagesSection&) const = default;
};

/// The passes of a pipeline's stages.
enum class PipelineOrder {
  k1F1B,   ///< backward as soon as there is one to run: few micro-batches in flight
  kGPipe,  ///< all forward passes first
};

struct PipelineOptions {
  StagesSection stages = {};
  std::vector<std::int64_t> placement = {};  ///< the rank of each stage; empty: auto
  PipelineOrder schedule = PipelineOrder::k1F1B;
};

template <>
inline constexpr Spellings<PipelineOrder> kSpellings<PipelineOrder>{
    {{"1f1b", PipelineOrder::k1F1B}, {"gpipe", PipelineOrder::kGPipe}}};

}  // namespace lockstep
