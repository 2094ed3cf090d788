// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The errors of Lockstep and the exit code each one ends the program with.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

/// Values that the process returns to the shell; part of the command-line contract (README, "Exit codes").
enum class ExitCode : int {
  kOk = 0,
  kUsage = 2,               ///< command line, job file or model file
  kDataDamaged = 65,        ///< a file is there, and its contents are wrong
  kDataMissing = 66,        ///< a file is not there
  kDeviceUnavailable = 69,  ///< the device, backend, memory or threads asked for are not to be had here
  kInternal = 70,           ///< a bug; NaN or infinity in losses or gradients
  kPeerLost = 71,           ///< another rank died, hangs or cannot be reached
  kWrongRank = 72,          ///< numbers of a rank are wrong: its memory, its processor or a link
  kIo = 74,                 ///< reading or writing failed
  kSavedOnRequest = 75,     ///< stopped by a signal or a time limit; run the same command again to go on
};

/// The base of all errors that Lockstep throws on purpose. what() is one line: file, place, cause, and
/// advice.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Defines `class NAME : public Error` that carries one exit code; the message is the only argument.
#define LOCKSTEP_DEFINE_ERROR(NAME, CODE)                               \
  class NAME : public Error {                                           \
   public:                                                              \
    explicit NAME(const std::string& message) : Error(CODE, message) {} \
  }

LOCKSTEP_DEFINE_ERROR(UsageError, ExitCode::kUsage);              ///< wrong command line
LOCKSTEP_DEFINE_ERROR(ConfigError, ExitCode::kUsage);             ///< wrong job file or model file
LOCKSTEP_DEFINE_ERROR(ShapeError, ExitCode::kUsage);              ///< layers or data that do not fit together
LOCKSTEP_DEFINE_ERROR(DataError, ExitCode::kDataDamaged);         ///< damaged data set, image or checkpoint
LOCKSTEP_DEFINE_ERROR(MissingDataError, ExitCode::kDataMissing);  ///< a file that is not there
LOCKSTEP_DEFINE_ERROR(DeviceError, ExitCode::kDeviceUnavailable);
LOCKSTEP_DEFINE_ERROR(MemoryError, ExitCode::kDeviceUnavailable);  ///< this machine has too little
LOCKSTEP_DEFINE_ERROR(InternalError, ExitCode::kInternal);
LOCKSTEP_DEFINE_ERROR(PeerLostError, ExitCode::kPeerLost);
LOCKSTEP_DEFINE_ERROR(IoError, ExitCode::kIo);

#undef LOCKSTEP_DEFINE_ERROR

/// There is no GPU, and nothing is wrong: the machine has none, the build is without, or they were hidden.
class NoGpuError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// An option that does not fit the data, the network or the ranks. The reader of a job file adds the place.
class OptionError : public ConfigError {
 public:
  /// @param option  its name in a job file: "train.class_weights"
  OptionError(std::string option, std::string cause)
      : ConfigError(option + ": " + cause), option_(std::move(option)), cause_(std::move(cause)) {}
  const std::string& option() const noexcept { return option_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  std::string option_, cause_;
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
