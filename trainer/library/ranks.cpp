// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Communicator, Mpi and run_on_threads: ranks as processes or threads, and the end of all when one of them fails.
#include "comm/agreement.hpp"
#include "comm/launcher.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/mpi/rank_watch.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/output.hpp"
#include "trainer/library/inside.hpp"

#include <fmt/format.h>
#include <lockstep/communicator.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <system_error>

namespace lockstep::v0 {

namespace {

/// Advice is spelt as TrainerOptions has it: set before main(), so before there are threads.
[[maybe_unused]] const bool advice_is_spelt = [] {
  spell_advice_as({.global_batch = "global_batch",
                   .grain = "grain",
                   .sample_counts = "train_samples and test_samples",
                   .timeout = "the time limit"});
  return true;
}();

}  // namespace

const char* version() {
  return LOCKSTEP_VERSION;
}

Communicator::Communicator(std::shared_ptr<Inside> inside) : inside_(std::move(inside)) {}

int Communicator::rank() const {
  return inside_->comm.rank();
}

int Communicator::size() const {
  return inside_->comm.size();
}

const std::string& Communicator::host() const {
  return inside_->comm.host();
}

void Communicator::barrier() {
  inside_->comm.barrier();
}

void Communicator::broadcast(std::span<std::byte> data, int root) {
  if (root < 0 || root >= size())
    throw UsageError(fmt::format("broadcast: rank {} is none of the {} there are", root, size()));
  inside_->comm.broadcast(data, root);
}

void Communicator::all_reduce(std::span<std::int64_t> data) {
  inside_->comm.all_reduce(data);
}

// Mpi, and the handler of uncaught exceptions.

struct Mpi::Inside {
  std::optional<RankWatch> watch;     ///< names ranks that do not come
  std::optional<MpiRuntime> runtime;  ///< nothing: a rank alone
  std::shared_ptr<lockstep::Communicator> comm;
  std::optional<Communicator> world;
  std::chrono::duration<double> time_limit{};

  void finalize() {
    if (watch) watch->expect("MPI_Finalize", time_limit);
    comm.reset();
    runtime.reset();
  }
};

namespace {

/// The Mpi that lives, for the handler: a plain pointer, for it runs when all may be broken.
Mpi::Inside* inside_of_process = nullptr;
std::terminate_handler handler_before = nullptr;

/// The sentence of what a program threw itself is its own.
Explanation explain_to_program(const std::exception& error) {
  const bool is_known = dynamic_cast<const Error*>(&error) != nullptr ||
                        dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                        dynamic_cast<const std::system_error*>(&error) != nullptr;
  return is_known ? explain(error) : Explanation{ExitCode::kInternal, error.what()};
}

/// Ends all ranks. May not be called on one alone, where others have the same error.
[[noreturn]] void end_all(lockstep::Communicator& comm, int exit_code) {
  std::fflush(nullptr);
  if (comm.size() > 1) comm.abort(exit_code);
  std::_Exit(exit_code);
}

/// All ranks have this error: they leave MPI in good order, and rank 0 has the exit code.
[[noreturn]] void end_together(Mpi::Inside& inside, const AgreedError& error) {
  const bool is_first = inside.comm->rank() == 0;
  if (inside.comm->rank() == error.speaker()) print_error(error.what());
  inside.finalize();
  std::fflush(nullptr);
  std::_Exit(is_first ? static_cast<int>(error.code()) : 0);
}

[[noreturn]] void tell_uncaught() {
  if (inside_of_process != nullptr && std::current_exception() != nullptr) {
    lockstep::Communicator& comm = *inside_of_process->comm;
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const AgreedError& error) {
      end_together(*inside_of_process, error);
    } catch (const std::exception& error) {
      const auto [code, text] = explain_to_program(error);
      print_error(comm.size() > 1 ? fmt::format("rank {} on {}: {}", comm.rank(), comm.host(), text) : text);
      end_all(comm, static_cast<int>(code));
    } catch (...) {  // NOLINT(bugprone-empty-catch): of a type that says nothing
    }
  }
  if (handler_before != nullptr) handler_before();
  std::abort();
}

}  // namespace

Mpi::Mpi(int& argc, char**& argv, std::chrono::duration<double> time_limit)
    : inside_(std::make_unique<Inside>()) {
  if (inside_of_process != nullptr)
    throw UsageError("a process has one lockstep::Mpi, and there is one already");
  if (!(time_limit.count() > 0))  // NaN, too: a wait for it has no end
    throw UsageError(
        fmt::format("lockstep::Mpi: a time limit of {:g} s; expected more than 0", time_limit.count()));
  inside_->time_limit = time_limit;
  if (this_launch().is_alone()) {
    inside_->comm = make_lone_rank(time_limit);
  } else {
    inside_->watch.emplace(this_launch().world_size);
    inside_->watch->expect("MPI_Init", std::max<std::chrono::duration<double>>(time_limit, kLeastForStart));
    inside_->runtime.emplace(&argc, &argv);
    inside_->comm = make_mpi_communicator(*inside_->runtime, time_limit);
    inside_->watch->met();
  }
  inside_->world.emplace(std::make_shared<Communicator::Inside>(Communicator::Inside{*inside_->comm}));
  inside_of_process = inside_.get();
  handler_before = std::set_terminate(tell_uncaught);
}

Mpi::~Mpi() {
  std::set_terminate(handler_before);
  inside_of_process = nullptr;
  inside_->finalize();
}

Communicator& Mpi::world() {
  return *inside_->world;
}

void Mpi::abort(int exit_code) {
  end_all(*inside_->comm, exit_code);
}

void run_on_threads(int ranks, const std::function<void(Communicator&)>& body) {
  if (ranks < 1) throw UsageError(fmt::format("run_on_threads: {} ranks; expected 1 or more", ranks));
  run_thread_ranks(ranks, [&](lockstep::Communicator& comm) {
    Communicator mine(std::make_shared<Communicator::Inside>(Communicator::Inside{comm}));
    body(mine);
  });
}

}  // namespace lockstep::v0
