// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep validate JOB.yaml [key=value ...]
#include "common/checked_size.hpp"
#include "common/console/output.hpp"
#include "common/memory.hpp"
#include "data/set_outline.hpp"
#include "models/network.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/config/device_name.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/world_batch.hpp"
#include "trainer/engine/memory_need.hpp"
#include "trainer/ranks/launched_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

DataSizes sizes_of(const Job& job, const SetOutline& data) {
  const auto chosen = [](std::int64_t samples, std::int64_t usual) { return samples > 0 ? samples : usual; };
  const std::size_t element = data.is_fp32 ? sizeof(float) : sizeof(std::uint8_t);
  return {chosen(job.data.train_samples, data.train_samples),
          chosen(job.data.test_samples, data.test_samples),
          checked_sum(checked_product(data.shape.features(), element), sizeof(std::int32_t))};
}

bool is_on_gpu(const Job& job) {
  const auto device = parse_device_name(job.parallel.device);
  return device && (device->kind == DeviceKind::kCuda || device->kind == DeviceKind::kEmulated);
}

std::string memory_text(const Job& job, const Network& network, const SetOutline& data) {
  const bool on_gpu = is_on_gpu(job);
  const TrainingMemory memory = training_memory(job, network, sizes_of(job, data), on_gpu, /*ranks=*/1);
  std::string text = fmt::format("memory of one rank: {}", to_string(memory.host));
  if (on_gpu) text += fmt::format("; on its GPU: {}", to_string(memory.device));
  if (const FreeMemory free = free_memory(); memory.host.total() > free.bytes) {
    text += fmt::format("\n{} leaves {}: training would be refused here", free.limited_by,
                        format_memory(free.bytes));
  }
  return text;
}

/// For scripts: a line each, words that stay.
std::string launch_text(const Job& job) {
  const RestartRule rule = restart_rule(job);
  return fmt::format("threads={}\nranks={}\nhosts={}\ntimeout={:.0f}\n", job.parallel.threads,
                     rule.any_ranks && !rule.one_host ? "any" : "same", rule.one_host ? "one" : "any",
                     std::ceil(job.parallel.timeout_seconds));
}

int validate(const std::string& path, const std::vector<std::string>& overrides, bool for_launch) {
  const Job asked = load_job(path, overrides);
  if (for_launch) print("{}", launch_text(asked));
  const Job job = for_launch ? asked : for_ranks(asked, std::max(asked.parallel.ranks, launched_ranks()));
  const SetOutline data = outline_of(job.data.set, job.data.root);
  const auto network = Network::load(job.model, data.shape, data.classes);
  if (for_launch) return 0;
  std::string remarks;
  for (const std::string& line : batch_remarks(job, sizes_of(job, data).train_samples, is_on_gpu(job)))
    remarks += "note: " + line + "\n";
  print("{}\n{}\n{}\n{}{}: ok\n", to_yaml(job), network.summary(), memory_text(job, network, data), remarks,
        path);
  return 0;
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("validate",
                                     "Check a job file and its model, with the shapes of the set as it is "
                                     "published (of your own: as the files "
                                     "say); print both in full, and the memory that training takes");
  auto job = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  command->add_option("job", *job, "Job file")->required();
  command->add_option("overrides", *overrides, "key=value, in place of what the file says");
  auto for_launch = std::make_shared<bool>(false);
  command->add_flag(
      "--launch", *for_launch,
      "Print for scripts how a launcher may start it: threads=N of a rank; ranks=any or same, on which it "
      "may go on after a loss; hosts=any or one; timeout=SECONDS of every wait");
  command->footer(
      "Keys of a job file, with their defaults (in brackets: which optimisers, schedules or rules have a "
      "key, and their own defaults):\n" +
      schema_help());
  command->callback([=, &action] { action = [=] { return validate(*job, *overrides, *for_launch); }; });
}

}  // namespace lockstep
