// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Errors that may strike one rank and must end all of them: ranks agree before anybody goes on.
#pragma once

#include "comm/communicator.hpp"
#include "common/error.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace lockstep {

/// An error that every rank of the job knows of and throws at the same point, so that all can end in good
/// order.
class AgreedError : public Error {
 public:
  AgreedError(ExitCode code, const std::string& message, int speaker)
      : Error(code, message), speaker_(speaker) {}
  /// The rank that prints the message.
  int speaker() const noexcept { return speaker_; }

 private:
  int speaker_;
};

/// Runs `action` on this rank, then asks all others how theirs ended (one collective). If any failed, every
/// rank throws AgreedError with the code of the lowest failing rank, which is the speaker; if that is not
/// rank 0, the message begins with its number and host.
void agree(Communicator& comm, const std::function<void()>& action);

}  // namespace lockstep
