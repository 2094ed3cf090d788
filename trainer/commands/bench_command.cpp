// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep bench allreduce|step
#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/tools/allreduce_bench.hpp"
#include "trainer/tools/step_bench.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

/// "4K", "16MiB" or a plain number.
CLI::Option* add_bytes(CLI::App& command, const std::string& names, std::size_t& bytes,
                       const std::string& what) {
  constexpr std::size_t kLeast = 8, kMost = std::size_t{1} << 40;
  return command.add_option(names, bytes, what)
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(kLeast, kMost, "8 bytes to 1 TiB"))
      ->type_name("BYTES")
      ->capture_default_str();
}

void add_allreduce(CLI::App& bench, Action& action) {
  auto* command = bench.add_subcommand(
      "allreduce", "The communicator alone, as nccl-tests measures it: latency, bandwidth, errors");
  auto options = std::make_shared<bench::AllreduceOptions>();
  auto parallel = std::make_shared<ParallelSection>();
  add_bytes(*command, "-b,--min-bytes", options->min_bytes, "Smallest buffer; 4K, 16MiB are understood");
  add_bytes(*command, "-e,--max-bytes", options->max_bytes, "Largest buffer");
  limit(command->add_option("-f,--factor", options->factor, "From one size to the next"), 2, 1024);
  limit(command->add_option("-n,--iterations,--repetitions", options->iterations,
                            "Repetitions of each size and type; medians are printed"),
        1, 100000);
  limit(command->add_option("-w,--warmup", options->warmup, "All-reduces before those, not timed"), 0,
        100000);
  add_backend_option(*command, options->backend);
  command
      ->add_option("--device", options->device, "Place of the buffers; auto: cuda with nccl, otherwise cpu")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "emulated"}))
      ->capture_default_str();
  command->add_option("--ranks", parallel->ranks, "With --backend thread, or nccl between threads: how many")
      ->check(CLI::Range(1, 1024));
  auto* json = command->add_flag("--json", options->json, kJsonHelp);
  const auto* demo = command->add_flag("--demo")
                         ->description(
                             "Show replicate, all-reduce, scatter, parallel_apply and gather on a handful of "
                             "numbers, and measure nothing")
                         ->excludes(json);
  command->footer(
      "Prints the ranks, then a line for each size and type, and the average bus bandwidth. algbw is bytes / "
      "time; busbw is algbw * 2 (n - 1) / n, what each of n ranks' links carries in an optimal all-reduce. "
      "out-of-place sums from one buffer into another (over MPI a copy comes first), in-place within one; "
      "#err counts wrong elements over all ranks. Exit code 70 if there were any.");
  on_choice(*command, action, [=] {
    if (options->min_bytes > options->max_bytes)
      throw UsageError(
          fmt::format("--min-bytes {} is more than --max-bytes {}", options->min_bytes, options->max_bytes));
    parallel->backend = options->backend;
    return run_on_ranks(*parallel, [&](Communicator& comm) {
      expect_equal_ranks(comm, program_facts("bench allreduce", comm) + option_facts(*command));
      if (demo->count() == 0) return bench::bench_allreduce(comm, *options);
      bench::show_allreduce(comm, *options);
      return 0;
    });
  });
}

void add_step(CLI::App& bench, Action& action) {
  auto* command = bench.add_subcommand(
      "step", "Whole training steps of a job: samples/s, fraction of peak, communication");
  auto options = std::make_shared<bench::StepBenchOptions>();
  auto job_path = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  command->add_option("job", *job_path, "Job file, e.g. launch/jobs/mnist.yaml")->required();
  command->add_option("overrides", *overrides, "key=value, e.g. model=lenet");
  limit(command->add_option("--rounds", options->rounds, "Repetitions; the median counts"), 1, 10000);
  limit(command->add_option("--steps", options->steps_per_round, "Steps a turn"), 1, 100000);
  command->add_flag("--explain", options->explain,
                    "Say where a step goes, and what would help most; on a CPU");
  command->add_option("--trace", options->trace,
                      "Write what all ranks did in the explained steps to this file, for ui.perfetto.dev");
  command->add_flag("--force", options->force, "Replace that file if it is there already");
  command->add_flag("--json", options->json, kJsonHelp);
  on_choice(*command, action, [=] {
    const Job job = load_job(*job_path, *overrides);
    const auto data = load_in_advance(job, DataCopy::kOfHost);
    return run_on_ranks(job.parallel, [&](Communicator& comm) {
      expect_equal_ranks(comm, program_facts("bench step", comm) + job_facts(job) + option_facts(*command));
      Job on_ranks;
      agree(comm, [&] { on_ranks = for_ranks(job, comm.size()); });
      bench::bench_step(comm, on_ranks, data, *options);
      return 0;
    });
  });
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("bench", "Measure communication, or whole training steps");
  command->require_subcommand(1);
  add_allreduce(*command, action);
  add_step(*command, action);
}

}  // namespace lockstep
