// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The errors that Lockstep throws, and the exit code that each one stands for. Every what() is one sentence: the place,
/// the cause and the cure.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

/// Exit codes of the program `lockstep`, and of any program that leaves an error uncaught while a lockstep::Mpi lives.
enum class ExitCode : int {
  kOk = 0,
  kUsage = 2,               ///< command line, options, job file or model file
  kDataDamaged = 65,        ///< a file is there, and its contents are wrong
  kDataMissing = 66,        ///< a file is not there
  kDeviceUnavailable = 69,  ///< the device, backend, memory or threads asked for are not to be had here
  kInternal = 70,           ///< a bug; NaN or infinity in losses or gradients
  kPeerLost = 71,           ///< another rank died, hangs or cannot be reached
  kWrongRank = 72,          ///< numbers of a rank are wrong: its memory, its processor or a link
  kIo = 74,                 ///< reading or writing failed
  kSavedOnRequest = 75,     ///< stopped by a signal or a time limit; run the same command again to go on
};

/// The base of all errors that Lockstep throws on purpose.
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
LOCKSTEP_DEFINE_ERROR(ConfigError, ExitCode::kUsage);             ///< wrong options, job file or model file
LOCKSTEP_DEFINE_ERROR(ShapeError, ExitCode::kUsage);              ///< layers or data that do not fit together
LOCKSTEP_DEFINE_ERROR(DataError, ExitCode::kDataDamaged);         ///< damaged data set, image or checkpoint
LOCKSTEP_DEFINE_ERROR(MissingDataError, ExitCode::kDataMissing);  ///< a file that is not there
LOCKSTEP_DEFINE_ERROR(DeviceError, ExitCode::kDeviceUnavailable);
LOCKSTEP_DEFINE_ERROR(MemoryError, ExitCode::kDeviceUnavailable);  ///< this machine has too little
LOCKSTEP_DEFINE_ERROR(InternalError, ExitCode::kInternal);
LOCKSTEP_DEFINE_ERROR(PeerLostError, ExitCode::kPeerLost);
LOCKSTEP_DEFINE_ERROR(IoError, ExitCode::kIo);

#undef LOCKSTEP_DEFINE_ERROR

/// An option that does not fit the data, the network or the ranks. The reader of a job file adds the place.
class OptionError : public ConfigError {
 public:
  /// @param option  as a job file names it: "train.class_weights"
  OptionError(std::string option, std::string cause)
      : ConfigError(option + ": " + cause), option_(std::move(option)), cause_(std::move(cause)) {}
  const std::string& option() const noexcept { return option_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  std::string option_, cause_;
};

}  // namespace lockstep
