// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The lines before the first step, and the event `start`.
#include "trainer/run/run_announcement.hpp"

#include "common/text/text_layout.hpp"
#include "trainer/config/world_batch.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

std::string device_text(const Job& job, const JobSetup& setup, const Communicator& comm, bool has_graphs) {
  const DeviceChoice& device = setup.device;
  if (device.gpu == nullptr) {
    return fmt::format("{}, {} each, backend {}", device.description, counted(job.parallel.threads, "thread"),
                       comm.backend());
  }
  return fmt::format("{}, {} kernels, graph {}; {}", device.description, device.gpu->ops->name(),
                     spelt(has_graphs ? job.parallel.graph : GraphUse::kOff), device.communication);
}

}  // namespace

std::vector<std::string> announcement(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                      const Communicator& comm, int hosts) {
  const auto& network = setup.network;
  const DistributedSampler& sampler = strategy.sampler();
  const StrategyDescription description = strategy.describe();
  std::vector<std::string> lines = {
      fmt::format("Lockstep {}: {}, {}, on {} ({} train, {} test; {})", LOCKSTEP_VERSION, network.name(),
                  counted(network.parameters().size, "parameter"), job.data.set,
                  with_thousands(setup.data->train.size()), with_thousands(setup.data->test.size()),
                  setup.data->origin),
      fmt::format("{} on {}, {}", counted(comm.size(), "rank"), counted(hosts, "host"),
                  device_text(job, setup, comm, description.has_graphs)),
      fmt::format("global batch {} = {} of {}, {} an epoch; determinism: {}; {}",
                  with_thousands(sampler.batch_samples(0)), counted(sampler.batch_grains(0), "grain"),
                  job.parallel.grain, counted(sampler.steps_per_epoch(), "step"),
                  spelt(job.parallel.determinism), description.sums),
  };
  lines.insert(lines.end(), description.lines.begin(), description.lines.end());
  if (job.data.per_rank_batch > 0) {
    lines.push_back(fmt::format(
        "global batch {} = {} x data.per_rank_batch {}: another number of ranks trains other weights",
        with_thousands(job.data.global_batch), counted(comm.size(), "rank"), job.data.per_rank_batch));
  }
  for (const std::string& remark : batch_remarks(job, setup.data->train.size(), setup.device.gpu != nullptr))
    lines.push_back("note: " + remark);
  lines.push_back(strategy.weight_update().describe());
  if (!setup.device.remark.empty()) lines.push_back(setup.device.remark);
  return lines;
}

nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                   const Communicator& comm, int hosts) {
  nlohmann::ordered_json event = {{"event", "start"},
                                  {"version", LOCKSTEP_VERSION},
                                  {"world", comm.size()},
                                  {"hosts", hosts},
                                  {"threads", job.parallel.threads},
                                  {"device", setup.device.kind},
                                  {"backend", setup.device.backend},
                                  {"strategy", job.parallel.strategy}};
  for (const auto& [name, value] : strategy.describe().facts) event[name] = value;
  event.update({{"model", setup.network.name()},
                {"parameters", setup.network.parameters().size},
                {"data", job.data.set},
                {"data_origin", setup.data->origin},
                {"train_samples", setup.data->train.size()},
                {"test_samples", setup.data->test.size()},
                {"global_batch", job.data.global_batch},
                {"grain", job.parallel.grain},
                {"determinism", spelt(job.parallel.determinism)},
                {"seed", job.train.seed},
                {"optimizer", job.train.optimizer.kind},
                {"schedule", job.train.schedule.kind},
                {"learning_rate", strategy.weight_update().learning_rate(0)}});
  return event;
}

}  // namespace lockstep
