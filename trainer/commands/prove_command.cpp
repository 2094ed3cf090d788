// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep prove RUN
#include "trainer/commands/command.hpp"
#include "trainer/commands/parallel_options.hpp"
#include "trainer/prove/prove.hpp"

#include <fmt/format.h>

#include <memory>
#include <random>
#include <string>

namespace lockstep {

void add_prove_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("prove", "Replay steps of a run and say whether it was computed as it says");
  auto options = std::make_shared<ProveOptions>();
  auto steps = std::make_shared<std::string>();
  auto ranks = std::make_shared<int>(0);
  command->add_option("run", options->run, "A run directory, with its trail.bin")->required();
  auto* range =
      command->add_option("--steps", *steps, "7, 1..100, 400.. or ..100, counted from 1; default all");
  command
      ->add_option("--sample", options->question.sample,
                   "So many of those steps, at random, always the last one and that of the last checkpoint; "
                   "each is replayed "
                   "from the nearest checkpoint before it")
      ->check(CLI::Range(1, 1000000000));
  auto* seed =
      command->add_option("--seed", options->question.seed, "Of the sample; default another each time");
  command->add_option(
      "--data", options->data,
      "The directory that holds its data; default where the run had them, then as data.root=auto");
  command->add_flag("--json", options->json, "One JSON object in place of lines");
  add_parallel_options(*command, options->parallel);
  auto kernels = std::make_shared<std::string>(spelt(Kernels::kNative));
  command->add_option("--kernels", *kernels, "On a GPU: native or vendor, as parallel.kernels")
      ->check(CLI::IsMember({spelt(Kernels::kNative), spelt(Kernels::kVendor)}))
      ->capture_default_str();
  command
      ->add_option("--timeout", options->parallel.timeout_seconds,
                   "Seconds that a rank waits for others before it gives up, as parallel.timeout_seconds")
      ->check(CLI::Range(1e-3, 1e9))
      ->capture_default_str();
  command->add_option("--ranks", *ranks, "As threads of this process, without mpirun")
      ->check(CLI::Range(1, 1024));
  command->footer(
      "Ranks take the intervals between checkpoints in turns, or share one where there are\n"
      "more ranks than intervals; any number of them, on any machine, comes to the same.\n\n"
      "Losses, accuracies and the hash of metrics.jsonl, and the labels and sums of manifests, are\n"
      "compared with what the replayed steps come to.\n\n"
      "Exit codes: 0 all steps asked for are proved, 1 the run is refuted: the first step that\n"
      "differs is named, with what differs in it and the likely cause; 2 usage, 65 the data found\n"
      "are not those of the run, or its trail cannot be read, 66 there is no trail, or nothing to\n"
      "start from, for some of the steps, 69 some were computed with another arithmetic, 71 a rank\n"
      "was lost.\n"
      "Examples:\n"
      "  lockstep prove runs/mnist\n"
      "  lockstep prove runs/mnist --steps 400..800\n"
      "  mpirun -np 8 lockstep prove runs/mnist --sample 100");
  command->callback([=, &action] {
    action = [=] {
      ProveOptions chosen = *options;
      if (*kernels == spelt(Kernels::kVendor)) chosen.parallel.kernels = Kernels::kVendor;
      chosen.question.steps = range->count() > 0 ? parse_steps(*steps) : StepRange{0, 0};
      if (seed->count() == 0) chosen.question.seed = std::random_device()();
      if (*ranks > 0) {
        chosen.parallel.backend = "thread";
        chosen.parallel.ranks = *ranks;
      }
      return prove(chosen);
    };
  });
}

}  // namespace lockstep
