// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The trail of a run that is under way, in the hands of rank 0.
#pragma once

#include "common/files/append_file.hpp"
#include "common/files/env.hpp"
#include "trainer/trail/trail_format.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Where a run goes on without a trail: cuts off what the one that is there says of later steps, which will be taken
/// anew. Leaves alone what is no trail.
void cut_trail(Env& env, const std::string& run_dir, std::int64_t step);

class TrailFile {
 public:
  /// Goes on with RUN/trail.bin behind `step`, or begins one. What stands there of later steps is cut off. A trail
  /// that is damaged up to there, or that is not this run's, is kept aside as trail.bin.damaged, and a new one
  /// begins.
  /// @param expected  where the checkpoint of that step says that the trail stood; nothing: it does not say
  /// @param say       is told what was kept aside, and why
  /// @throws IoError
  TrailFile(Env& env, const std::string& run_dir, TrailHead head, std::int64_t step,
            const std::optional<TrailPosition>& expected, const std::function<void(const std::string&)>& say);

  /// @throws IoError if they are not in the file yet; they are kept for the next time
  void append(std::span<const TrailRecord> records);
  /// As AppendFile::sync.
  void sync() { file_->sync(); }
  bool is_complete() const { return file_->is_complete(); }
  /// Behind all that was appended.
  const TrailPosition& position() const { return position_; }

 private:
  TrailHead head_;
  TrailPosition position_;
  std::unique_ptr<AppendFile> file_;
};

}  // namespace lockstep
