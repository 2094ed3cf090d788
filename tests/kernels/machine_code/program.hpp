// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A program's kernels, as PTX and for each compute capability as machine code.
#pragma once

#include "cubin.hpp"
#include "fat_binary.hpp"
#include "ptx.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::machine_code {

struct Program {
  std::vector<int> ptx_for;              ///< compute capabilities, each once
  std::vector<std::string> ptx_options;  ///< of each PTX image, for the driver's compiler
  std::vector<PtxKernel> ptx;
  std::vector<CubinKernel> cubins;

  /// The PTX of a kernel; nullptr if there is none.
  const PtxKernel* ptx_of(const std::string& symbol) const;
};

/// @throws what images_of() and kernels_of_cubin() throw
Program read_program(const std::filesystem::path& file);

}  // namespace lockstep::machine_code
