// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/run/memory_summary.hpp"

#include "comm/gather.hpp"
#include "common/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep {

std::string memory_summary(Communicator& comm) {
  const auto peaks = gather(comm, peak_resident_bytes());
  const auto most = std::max_element(peaks.begin(), peaks.end());
  if (comm.size() == 1) return fmt::format("memory: at most {} resident", format_memory(*most));
  if (comm.backend() == "thread")
    return fmt::format("memory: at most {} resident, for all {} ranks", format_memory(*most), comm.size());
  return fmt::format("memory: at most {} resident, on rank {}; {} on all {} ranks", format_memory(*most),
                     most - peaks.begin(),
                     format_memory(std::accumulate(peaks.begin(), peaks.end(), std::uint64_t{0})),
                     comm.size());
}

}  // namespace lockstep
