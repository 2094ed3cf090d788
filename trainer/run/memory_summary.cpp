// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Asks the kernel and the device, and picks from what the ranks say.
#include "trainer/run/memory_summary.hpp"

#include "comm/gather.hpp"
#include "common/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

std::string resident_line(Communicator& comm) {
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

/// Of the rank that had most: "device memory: 12 MiB allocated, at most 12 MiB, 14 MiB reserved".
std::string device_line(Communicator& comm, const Device& device) {
  const DeviceMemoryUse use = device.memory_use();
  const auto allocated = gather(comm, std::uint64_t{use.allocated});
  const auto most = gather(comm, std::uint64_t{use.most_allocated});
  const auto reserved = gather(comm, std::uint64_t{use.reserved});
  const auto largest = std::max_element(most.begin(), most.end()) - most.begin();
  const auto at = static_cast<std::size_t>(largest);
  std::string line =
      fmt::format("device memory: {} allocated, at most {}, {} reserved", format_memory(allocated[at]),
                  format_memory(most[at]), format_memory(reserved[at]));
  if (comm.size() > 1) {
    line += fmt::format(", on rank {}; {} allocated on all {} ranks", largest,
                        format_memory(std::accumulate(allocated.begin(), allocated.end(), std::uint64_t{0})),
                        comm.size());
  }
  return line;
}

}  // namespace

std::vector<std::string> memory_summary(Communicator& comm, const DeviceChoice& device) {
  std::vector<std::string> lines{resident_line(comm)};
  if (device.gpu != nullptr) lines.push_back(device_line(comm, *device.gpu->device));
  return lines;
}

}  // namespace lockstep
