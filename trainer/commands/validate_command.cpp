// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep validate JOB.yaml [key=value ...]
#include "data/set_facts.hpp"
#include "kernels/runtime/output.hpp"
#include "models/network.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/config/job.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

int validate(const std::string& path, const std::vector<std::string>& overrides) {
  const Job job = load_job(path, overrides);
  const SetFacts data = set_facts(job.data.set);
  const auto network = Network::load(job.model, data.shape, data.classes());
  print("{}\n{}\n{}: ok\n", to_yaml(job), network.summary(), path);
  return 0;
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("validate", "Check a job file and its model without data; print both in full");
  auto job = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  command->add_option("job", *job, "Job file")->required();
  command->add_option("overrides", *overrides, "key=value, in place of what the file says");
  command->footer("Keys of a job file:\n" + schema_help());
  command->callback([=, &action] { action = [=] { return validate(*job, *overrides); }; });
}

}  // namespace lockstep
