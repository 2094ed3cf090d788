// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RUN/status.json: how the last start of a run stands, for programs that start runs and for those that list them.
#pragma once

#include "common/env.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr const char* kStatusFile = "status.json";

/// Fields of the file, beside "version": 1.
struct RunStatusNote {
  std::string state;      ///< "running", "saved" (stopped on request), "ended", "failed"
  std::int64_t step = 0;  ///< the last that was taken
  std::vector<std::string> exclude_hosts = {};  ///< hosts of ranks named for wrong numbers
};

/// Replaces the file in one step. @throws IoError
void write_status(Env& env, const std::string& run_dir, const RunStatusNote& note);
/// Nothing: there is none, as of older runs, or none that this program reads.
std::optional<RunStatusNote> read_status(Env& env, const std::string& run_dir);

}  // namespace lockstep
