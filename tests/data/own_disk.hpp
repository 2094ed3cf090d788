// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A disk in memory, for sets that are written.
#pragma once

#include "tests/common/memory_env.hpp"

namespace lockstep::test {

/// A disk that no other process writes to.
class OwnDisk : public MemoryEnv {
 public:
  std::unique_ptr<FileClaim> claim(const std::string& /*path*/) override { return std::make_unique<Claim>(); }

 private:
  struct Claim : FileClaim {
    void write(const std::string& /*text*/) override {}
    bool has_its_name() override { return true; }
  };
};

}  // namespace lockstep::test
