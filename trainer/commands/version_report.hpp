// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep --version --verbose: what a bug report should say of the program and where it runs.
#pragma once

#include <string>

namespace lockstep {

/// Known when the program is built.
struct BuildFacts {
  std::string commit;    ///< of its sources, "... and changes" if they had any; or "not known"
  std::string compiler;  ///< "GNU 12.2.0"
  std::string flags;
  std::string gpu;  ///< "with CUDA 13.0 (/usr/local/cuda/bin/nvcc)", or why not
};
BuildFacts build_facts();

/// "lockstep 0.1.0".
std::string version_line();

/// That line, and one for each fact: build, MPI, instruction sets, GPUs and their libraries, places of files. Loads the
/// plugins that are there.
std::string version_report();
/// The same for programs, on one line.
std::string version_json();

}  // namespace lockstep
