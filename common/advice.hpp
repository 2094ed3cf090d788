// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Advice in error messages that names what a user can set. The rooms below the program know what helps; how
/// a user spells it, in a job file or as an option, only the program does, and says so once.
#pragma once

#include <string>
#include <string_view>

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
};

/// From now on advice in this program, and in plugins that it loads, is spelt so. To be called before there
/// are threads; the texts are borrowed for ever.
void spell_advice_as(const Spelling& spelling);

/// The spelling in use.
const Spelling& spelling();

/// "use a smaller {global_batch} or {device}cpu" with the names of Spelling's members in braces spelt out.
std::string advice(std::string_view text);

}  // namespace lockstep

/// In one source of each plugin, which has a copy of this room to itself: lets the program tell it the
/// spelling.
#define LOCKSTEP_PLUGIN_TAKES_SPELLING                                           \
  extern "C" void lockstep_spell_advice_as(const lockstep::Spelling& spelling) { \
    lockstep::spell_advice_as(spelling);                                         \
  }
