// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cost of the look before every run: mpirun -np N doctor_cost [TIMES]
///
/// Prints the median over TIMES (20) looks of the wall-clock time, and of the slowest rank's processor
/// time.
#include "comm/agreement.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/rank_diagnosis.hpp"

namespace {

using namespace lockstep;

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int measure(Communicator& comm, const Job& job, int times) {
  const DeviceChoice device = choose_device(job.parallel, comm);
  std::vector<double> wall, processor;
  for (int i = 0; i < times; ++i) {
    comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    const double before = process_seconds();
    warn_before_run(comm, job, device);
    wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    processor.push_back(process_seconds() - before);
  }
  const auto walls = gather(comm, median(wall)), processors = gather(comm, median(processor));
  if (comm.rank() == 0)
    fmt::print(
        "the look before a run, {} ranks, median of {}: {:.2f} ms wall clock, {:.2f} ms of a processor\n",
        comm.size(), times, 1e3 * *std::ranges::max_element(walls),
        1e3 * *std::ranges::max_element(processors));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Job job;
  job.parallel.device = "cpu";
  job.run.dir = "runs/doctor_cost";
  const int times = argc > 1 ? std::max(1, static_cast<int>(std::strtol(argv[1], nullptr, 10))) : 20;
  return run_on_ranks(job.parallel, [&](Communicator& comm) { return measure(comm, job, times); });
}
