// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep train JOB.yaml [key=value ...]
#include "trainer/commands/command.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/train.hpp"

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
                      "key=value, in place of what the file says, e.g. train.epochs=2; the value is taken as "
                      "it is, unless it begins "
                      "with a quote or bracket: then it is YAML");
  command->footer(
      "Examples:\n"
      "  lockstep train launch/jobs/mnist.yaml train.epochs=2 run.dir=runs/short\n"
      "  mpirun -np 2 lockstep train launch/jobs/mnist.yaml\n"
      "  lockstep train JOB.yaml parallel.backend=thread parallel.ranks=3\n\n"
      "Without run.dir it trains in runs/JOB. Run again, it goes on from the last\n"
      "checkpoint, on any number of ranks; where that run is finished, or this one\n"
      "would have other weights, a new one starts in runs/JOB-2. The first line says\n"
      "which and why. With run.dir=DIR it goes on in DIR, on the data that it was\n"
      "trained on; a run with nothing left to do says so and touches nothing. A\n"
      "directory that holds other files and no run is refused.\n\n"
      "Ranks that differ in program, libraries, job, network or data are refused\n"
      "before the first step.\n\n"
      "SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU (ulimit -S -t) save and\n"
      "stop all ranks at the same step (exit code 75, once that step is on disk). What\n"
      "comes within a second counts once; the third request, or one after five\n"
      "seconds, leaves unsaved (128 + signal).\n\n"
      "On a terminal lines are as wide as that is: in ASCII unless LC_ALL, LC_CTYPE\n"
      "or LANG is UTF-8, without escape sequences where NO_COLOR is set, plain where\n"
      "TERM is dumb.\n\n"
      "Keys of a job file, with their defaults (in brackets: which optimisers, schedules or rules have a "
      "key, and their own defaults):\n" +
      schema_help());
  command->callback([=, &action] { action = [=] { return train(load_job(*job, *overrides)); }; });
}

}  // namespace lockstep
