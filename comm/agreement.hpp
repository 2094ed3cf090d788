// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages of ranks beside gradients: values and texts of all, errors that end all.
#pragma once

#include "comm/communicator.hpp"
#include "common/error.hpp"

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

// Errors that may strike one rank and must end all of them: ranks agree before any of them goes on.

/// An error that all ranks know of and throw at one point, so that all end in good
/// order.
class AgreedError : public Error {
 public:
  AgreedError(ExitCode code, const std::string& message, int speaker = 0)
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

// Values of every rank, on all ranks: numbers, digests, texts, names of hosts. Each call is collective.

/// Every rank contributes as many values as all others and receives all: [rank][value].
template <typename T>
std::vector<std::vector<T>> gather(Communicator& comm, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = comm.all_gather(std::as_bytes(mine));
  std::vector<std::vector<T>> all(static_cast<std::size_t>(comm.size()), std::vector<T>(mine.size()));
  for (std::size_t rank = 0; rank < all.size() && !mine.empty(); ++rank)
    std::memcpy(all[rank].data(), &bytes[rank * mine.size_bytes()], mine.size_bytes());
  return all;
}

/// Every rank contributes one value and receives all, by rank.
template <typename T>
std::vector<T> gather(Communicator& comm, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = comm.all_gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// Every rank contributes a text of any length and receives all, by rank.
std::vector<std::string> gather_text(Communicator& comm, std::string_view mine);

/// The host of every rank, by rank.
std::vector<std::string> gather_hosts(Communicator& comm);

/// How many hosts those are.
int count_hosts(Communicator& comm);

}  // namespace lockstep
