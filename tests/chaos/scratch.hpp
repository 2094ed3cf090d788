// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Directories of a whole test: removed at its end, or kept where something went wrong.
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/support/prelude.hpp"

#include <sys/types.h>

namespace lockstep::chaos {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// New directories called `name`.
  LifeDirectories make(const std::string& name) const;
  /// Removes them. Call when nothing uses them any more.
  void remove(const LifeDirectories& directories) const;

  const std::string& path() const { return files_; }
  /// From now on the files stay, to be looked at.
  void keep();

 private:
  std::string files_, shared_memory_;
};

/// Scratch of a process that cannot remove it itself; without the kept folders.
std::vector<std::string> scratch_of(pid_t process);

}  // namespace lockstep::chaos
