// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// main() of tests that run under mpirun. Rank 0 reports as usual, the others only their failures, and all
/// ranks return the same exit code: 0, 1 if any rank failed, 77 if every test was skipped.
#include "comm/mpi/mpi_runtime.hpp"
#include "tests/support/leak_check.hpp"
#include "tests/support/mpi_test.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/watchdog.hpp"

#include <mpi.h>

namespace lockstep::testing {
namespace {

constexpr int kSkippedExitCode = 77;
const MpiRuntime* the_runtime = nullptr;

/// Printer of ranks other than 0.
class FailurePrinter final : public ::testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

 private:
  void OnTestStart(const ::testing::TestInfo& test) override {
    test_ = fmt::format("{}.{}", test.test_suite_name(), test.name());
  }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* file = result.file_name() == nullptr ? "unknown file" : result.file_name();
    fmt::print(stderr, "[rank {}] {} failed at {}:{}: {}\n", rank_, test_, file, result.line_number(),
               result.message());
  }

  int rank_;
  std::string test_;
};

void silence_unless_first(int rank) {
  if (rank == 0) return;
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());  // NOLINT: GoogleTest hands over ownership
  listeners.Append(new FailurePrinter(rank));                    // NOLINT: and takes it
}

int own_exit_code() {
  if (RUN_ALL_TESTS() != 0) return 1;
  const auto& tests = *::testing::UnitTest::GetInstance();
  const bool all_skipped =
      tests.test_to_run_count() > 0 && tests.skipped_test_count() == tests.test_to_run_count();
  return all_skipped ? kSkippedExitCode : 0;
}

/// Any failure first, then any skip, which is one only if all ranks skipped.
int common_exit_code(int own) {
  std::vector<int> codes(static_cast<std::size_t>(the_runtime->size()));
  LOCKSTEP_MPI(MPI_Allgather(&own, 1, MPI_INT, codes.data(), 1, MPI_INT, MPI_COMM_WORLD));
  std::string failed;
  bool all_skipped = true;
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] == 1) failed += fmt::format(" {}", rank);
    all_skipped = all_skipped && codes[rank] == kSkippedExitCode;
  }
  if (failed.empty()) return all_skipped ? kSkippedExitCode : 0;
  if (the_runtime->rank() == 0) fmt::print(stderr, "failed on ranks:{} of {}\n", failed, codes.size());
  return 1;
}

std::chrono::seconds time_limit() {
  const char* text = std::getenv("LOCKSTEP_TEST_SECONDS");
  return std::chrono::seconds(text == nullptr ? 240 : std::strtol(text, nullptr, 10));
}

/// With the leaks of MPI_Init itself left out of account.
std::unique_ptr<MpiRuntime> start_mpi(int argc, char** argv) {
  const LeaksAllowed leaks_allowed;
  return std::make_unique<MpiRuntime>(&argc, &argv);
}

int run(int argc, char** argv) {
  const auto runtime = start_mpi(argc, argv);
  the_runtime = runtime.get();
  const Watchdog watchdog(runtime->rank(), time_limit());
  silence_unless_first(runtime->rank());
  const int own = own_exit_code();
  return common_exit_code(leaks_found() ? 1 : own);
}

}  // namespace

const MpiRuntime& mpi_runtime() {
  return *the_runtime;
}

}  // namespace lockstep::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  return lockstep::testing::run(argc, argv);
}

namespace lockstep::testing {

constexpr int kHangExitCode = 124;

Watchdog::Watchdog(int rank, std::chrono::seconds limit)
    : thread_([this, rank, limit] { watch(rank, limit); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch(int rank, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
  fmt::print(stderr, "[rank {}] the test hangs: not done after {} s\n", rank, limit.count());
  std::_Exit(kHangExitCode);  // mpirun ends the other ranks
}

}  // namespace lockstep::testing
