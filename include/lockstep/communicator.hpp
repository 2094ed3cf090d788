// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ranks that train together, and what they tell each other: processes over MPI, or threads of one process.
#pragma once

#include <lockstep/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

LOCKSTEP_BEGIN_NAMESPACE

/// One rank's end of a group. A reference to it is all that the rest of the library asks for.
///
/// All calls but the first three are collective. Every rank makes the same ones in the same order, with buffers of the
/// same size. One thread of a rank at a time.
/// @throws PeerLostError  another rank is gone, or did not come within the time limit
class Communicator {
 public:
  struct Inside;  ///< Lockstep's own
  explicit Communicator(std::shared_ptr<Inside> inside);

  int rank() const;  ///< from 0
  int size() const;  ///< number of ranks
  const std::string& host() const;

  void barrier();
  /// data of `root` becomes that of all ranks.
  void broadcast(std::span<std::byte> data, int root = 0);
  template <typename T>
  void broadcast(T& value, int root = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast(std::as_writable_bytes(std::span(&value, 1)), root);
  }
  /// data becomes the sum over all ranks: exact, and it wraps around. For floats: GradientReducer.
  void all_reduce(std::span<std::int64_t> data);

  Inside& inside() const { return *inside_; }

 private:
  std::shared_ptr<Inside> inside_;
};

/// MPI, from MPI_Init to MPI_Finalize: one per process, at the beginning of main(). A program that no launcher started is a
/// rank alone, and leaves MPI untouched.
///
/// An uncaught exception is printed as one line, with its rank, while this object lives. It ends all ranks with its exit
/// code (lockstep::ExitCode; 70 if it is not Lockstep's). A rank that catches one and gives up calls abort(): the others
/// would wait for it.
class Mpi {
 public:
  /// @param time_limit  of each wait for other ranks, more than 0; infinity: none
  /// @throws DeviceError  the launcher does not fit this MPI; says what to start instead
  Mpi(int& argc, char**& argv, std::chrono::duration<double> time_limit = std::chrono::minutes(5));
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  /// All ranks. Lives as long as this.
  Communicator& world();
  /// Ends all ranks now. Not collective.
  [[noreturn]] void abort(int exit_code);

  struct Inside;  ///< Lockstep's own

 private:
  std::unique_ptr<Inside> inside_;
};

/// Calls `body` on so many threads, each with its end of one group, and returns when all have ended. No MPI.
/// @throws what the first rank threw that failed by itself; the others' waits end with PeerLostError
void run_on_threads(int ranks, const std::function<void(Communicator&)>& body);

LOCKSTEP_END_NAMESPACE
