// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep flight: what the ranks of a run did last.
#include "common/console/output.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/run/flight_directory.hpp"

#include <memory>
#include <string>

namespace lockstep {

void add_flight_command(CLI::App& app, Action& action) {
  struct Options {
    std::string run;
    int start = 0, events = 40;
  };
  auto* command =
      app.add_subcommand("flight", "What the ranks of a run did last: the verdict, and all records as one");
  auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "A run directory")->required();
  command->add_option("--start", options->start, "Which start of the run; default the last")
      ->check(CLI::Range(1, 1000000000));
  command->add_option("--events", options->events, "How many events to show; default 40")
      ->check(CLI::Range(1, 10000000));
  command->callback([=, &action] {
    action = [=] {
      print("{}", flight_report(options->run, options->start, options->events));
      return 0;
    };
  });
}

}  // namespace lockstep
