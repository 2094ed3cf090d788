// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The errors of Lockstep (include/lockstep/error.hpp, which programs that link it have, too), and their advice.
#pragma once

#include "include/lockstep/error.hpp"

#include <exception>
#include <string>
#include <string_view>

namespace lockstep {

/// There is no GPU, and nothing is wrong: the machine has none, the build is without, or they were hidden.
class NoGpuError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// An unexpected exception in words for the person who started the program.
struct Explanation {
  ExitCode code;
  std::string text;  ///< one line
};

/// Explains an exception. Ours keep their words; memory or threads that ran out become a sentence with advice; all
/// others are an internal error.
Explanation explain(const std::exception& error);

/// Throws InternalError with the text and place of the condition.
[[noreturn]] void throw_check_failure(const char* condition, const char* file, int line);

}  // namespace lockstep

/// States what must hold here. Stays on in release builds; not for loops that must be fast.
#define LOCKSTEP_CHECK(condition)                                                      \
  do {                                                                                 \
    if (!(condition)) ::lockstep::throw_check_failure(#condition, __FILE__, __LINE__); \
  } while (false)

// Advice in error messages that names what a user can set. The rooms below the program know what helps; how
// a user spells it, in a job file or as an option, only the program does, and says so once.

namespace lockstep {

/// How the things that advice is about are spelt; here in words, for programs without a job file.
struct Spelling {
  const char* global_batch = "global batch";
  const char* per_rank_batch = "batch of each rank";
  const char* grain = "grain";
  const char* sample_counts = "numbers of samples";
  const char* device = "device ";  ///< a value follows, as with the next two
  const char* backend = "backend ";
  const char* kernels = "kernels ";
  const char* timeout = "the timeout";
  const char* run_directory = "run directory";
  const char* learning_rate = "the learning rate";
  const char* mean = "the samples' mean";
  const char* deviation = "std";
  const char* initial_weights = "the initial weights";
};

/// From now on advice in this program, and in plugins that it loads, is spelt so. To be called before there
/// are threads; the texts are borrowed for ever.
void spell_advice_as(const Spelling& spelling);

/// The spelling in use.
const Spelling& spelling();

/// "use a smaller {global_batch} or {device}cpu" with the names of Spelling's members in braces spelt out.
std::string advice(std::string_view text);

}  // namespace lockstep

/// Put into one source of each plugin, which has a copy of this room. It lets the program tell it the
/// spelling.
#define LOCKSTEP_PLUGIN_TAKES_SPELLING                                           \
  extern "C" void lockstep_spell_advice_as(const lockstep::Spelling& spelling) { \
    lockstep::spell_advice_as(spelling);                                         \
  }
