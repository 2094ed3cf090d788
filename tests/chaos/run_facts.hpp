// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a run directory shows to somebody who comes by, at any moment.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::chaos {

struct RunFacts {
  std::int64_t newest_checkpoint = 0;  ///< the highest step that has its final name; 0: none
  std::int64_t last_logged = 0;        ///< the last step in metrics.jsonl; 0: none
  bool saving = false;                 ///< a half-written checkpoint lies there
  bool pruning = false;                ///< a half-removed one
  std::string metrics;                 ///< the bytes of metrics.jsonl
};

/// Looks at files only; the run may go on meanwhile.
RunFacts look_at(const std::string& run_dir);

/// The last step in metrics.jsonl, from its last lines only: cheap enough to ask a thousand times a second.
std::int64_t last_logged_step(const std::string& run_dir);

/// Whether a checkpoint is being written at this moment.
bool is_saving(const std::string& run_dir);

}  // namespace lockstep::chaos
