// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// While steps are replayed: the line that is drawn, and the meetings of all ranks.
#include "common/text_layout.hpp"
#include "trainer/tools/prove_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace lockstep {

// The line that is drawn: steps done, how fast, how long still.

void ProofProgress::add(std::int64_t steps) {
  done_ += steps;
  if (!bar_.is_due()) return;
  const double seconds = std::max(bar_.seconds(), 1e-9), done = static_cast<double>(done_);
  const double left = static_cast<double>(std::max<std::int64_t>(steps_ - done_, 0));
  bar_.draw({{what_, 5},
             {fmt::format("{}/{}", with_thousands(done_), counted(steps_, "step")), 4},
             {fmt::format("{} steps/s", with_thousands(static_cast<std::int64_t>(done / seconds))), 1},
             {fmt::format("ETA {}", format_duration(seconds / std::max(done, 1.0) * left)), 3}},
            std::min(done / std::max(done + left, 1.0), 1.0));
}

bool ProofMeetings::someone_works(bool self) {
  std::int64_t working = self ? 1 : 0;
  if (comm_.size() > 1) comm_.all_reduce(std::span(&working, 1));
  last_ = Clock::now();
  return working > 0;
}

}  // namespace lockstep
