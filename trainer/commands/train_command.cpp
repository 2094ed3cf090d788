// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep train JOB.yaml [key=value ...]
#include "trainer/commands/command.hpp"
#include "trainer/config/job.hpp"
#include "trainer/training_run.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep {

void add_train_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("train", "Train as a job file says, alone or under mpirun or srun");
  auto job = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  command->add_option("job", *job, "Job file, e.g. launch/jobs/mnist.yaml")->required();
  command->add_option("overrides", *overrides,
                      "key=value, in place of what the file says, e.g. train.epochs=2");
  command->footer(
      "Examples:\n"
      "  lockstep train launch/jobs/mnist.yaml train.epochs=2 run.dir=runs/short\n"
      "  mpirun -np 2 lockstep train launch/jobs/mnist.yaml\n"
      "  lockstep train launch/jobs/mnist.yaml parallel.backend=thread parallel.ranks=3\n\n"
      "Run again with the same run.dir, it goes on from the last checkpoint, on any number of ranks, with\n"
      "the data that it was trained on; a run with nothing left to do says so and touches nothing.\n"
      "Ranks that differ in program, libraries, job, network or data are refused before the first step.\n"
      "SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 save and stop all ranks at the same step (exit code 75).\n\n"
      "Keys of a job file:\n" +
      schema_help());
  command->callback([=, &action] { action = [=] { return train(load_job(*job, *overrides)); }; });
}

}  // namespace lockstep
