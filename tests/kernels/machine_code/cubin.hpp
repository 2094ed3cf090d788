// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kernels of a cubin: their instructions as they lie there, and what each needs of a multiprocessor.
#pragma once

#include "sass.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::machine_code {

/// A function that ptxas put behind a kernel: "$__cuda_sm20_div_rn_f32_slowpath".
struct Routine {
  std::string name;
  std::size_t begin = 0, end = 0;  ///< indices of instructions
};

struct CubinKernel {
  std::string symbol;  ///< mangled
  int capability = 0;
  int registers = 0;     ///< of a thread
  int stack_bytes = 0;   ///< of a thread: spilled registers, and arrays with indices that vary
  int shared_bytes = 0;  ///< static, of a block
  int most_threads = 0;  ///< of a block, as __launch_bounds__ says; 0: it does not
  std::vector<Instruction> instructions;
  std::vector<Routine> routines;

  /// The routine that an instruction belongs to; nullptr: it is the kernel's own.
  const Routine* routine_of(std::size_t instruction) const;
};

/// @throws std::runtime_error if it is damaged
std::vector<CubinKernel> kernels_of_cubin(std::string_view cubin, int capability);

}  // namespace lockstep::machine_code
