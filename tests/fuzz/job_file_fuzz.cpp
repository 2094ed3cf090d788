// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Job files and overrides from strangers: any bytes give a job that reads back unchanged, or one line of
/// complaint.
#include "common/error.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/expand.hpp"
#include "trainer/config/job.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using lockstep::fuzz::require;

/// The file up to the first byte 0x01, then overrides, each up to the next.
std::vector<std::string> split(const std::string& input) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = input.find('\x01'); end != input.npos; end = input.find('\x01', begin)) {
    parts.push_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(input.substr(begin));
  return parts;
}

/// Ends the process if the job does not survive being written and read; no ConfigError may leave here.
void require_round_trip(const lockstep::Job& job) noexcept {
  const std::string yaml = to_yaml(job);
  require(to_yaml(lockstep::parse_job(yaml, "again.yaml")) == yaml);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> overrides = split(lockstep::fuzz::expand(data, size));
  const std::string file = overrides.front();
  overrides.erase(overrides.begin());
  try {
    require_round_trip(lockstep::parse_job(file, "job.yaml", overrides));
  } catch (const lockstep::ConfigError& error) {
    const std::string message = error.what();
    require(message.find('\n') == message.npos && message.size() < 2000);
  }
  return 0;
}
