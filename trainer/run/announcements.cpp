// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a run says once: at its start, of its batches, of its memory, and where it has nothing left to do.
#include "trainer/run/announcements.hpp"

#include "comm/agreement.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "kernels/device.hpp"
#include "trainer/config/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

namespace lockstep {

// The lines before the first step, and the event `start`.

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

// Compares the steps that were asked for with those taken, and with the last line of metrics.jsonl.

namespace {

/// The keys that end the job no later than where its run stands.
std::string what_to_raise(const Job& job, const RunLength& length) {
  std::vector<std::string> keys;
  if (job.train.epochs * length.steps_per_epoch <= length.taken)
    keys.push_back(fmt::format("train.epochs={} or more", length.taken / length.steps_per_epoch + 1));
  if (job.train.max_steps > 0 && job.train.max_steps <= length.taken)
    keys.push_back(fmt::format("train.max_steps={} or more (0: no limit)", length.taken + 1));
  return fmt::format("{}", fmt::join(keys, " and "));
}

}  // namespace

std::int64_t steps_asked(const Job& job, std::int64_t steps_per_epoch) {
  const std::int64_t all = job.train.epochs * steps_per_epoch;
  return job.train.max_steps > 0 ? std::min(all, job.train.max_steps) : all;
}

std::optional<std::string> recorded_end(Env& env, const std::string& run_dir, std::int64_t steps) {
  const std::string path = run_dir + "/metrics.jsonl";
  if (!env.exists(path)) return std::nullopt;
  const auto bytes = env.read(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.ends_with('\n')) return std::nullopt;  // torn
  text.remove_suffix(1);
  const auto line = text.substr(text.rfind('\n') + 1);
  const auto event = parse_json_or_discard(line);
  if (!event.is_object() || event.value("event", nlohmann::json()) != "end") return std::nullopt;
  if (event.value("step", nlohmann::json()) != steps) return std::nullopt;
  const auto digest = event.value("weights_sha256", nlohmann::json());
  return digest.is_string() ? std::optional(digest.get<std::string>()) : std::nullopt;
}

bool nothing_left(Env& env, const std::string& run_dir, const RunLength& length, const std::string& digest) {
  if (length.taken != length.asked) return length.taken > length.asked;
  return recorded_end(env, run_dir, length.taken) == digest;
}

std::string nothing_left_text(const Job& job, const RunLength& length) {
  const std::string taken = counted(length.taken, "step");
  const std::string state = length.taken == length.asked ? fmt::format("holds all {}", taken)
                                                         : fmt::format("holds {}, more than the {} asked for",
                                                                       taken, with_thousands(length.asked));
  return fmt::format(
      "already finished: {} {}; nothing was trained or written. To train on, set {}; to start afresh, "
      "run.resume=never or another run.dir",
      job.run.dir, state, what_to_raise(job, length));
}

// Asks the kernel and the device, and picks from what the ranks say.

namespace {

std::string resident_line(Communicator& comm) {
  const auto peaks = gather(comm, peak_resident_bytes());
  const auto most = std::max_element(peaks.begin(), peaks.end());
  if (comm.size() == 1) return fmt::format("memory: at most {} resident", format_memory(*most));
  if (comm.backend() == "thread")
    return fmt::format("memory: at most {} resident, for all {} ranks", format_memory(*most), comm.size());
  return fmt::format("memory: at most {} resident, on rank {}; {} on all {} ranks", format_memory(*most),
                     most - peaks.begin(),
                     format_memory(std::accumulate(peaks.begin(), peaks.end(), std::uint64_t{0})),
                     comm.size());
}

/// Of the rank that had most: "device memory: 12 MiB allocated, at most 12 MiB, 14 MiB reserved".
std::string device_line(Communicator& comm, const Device& device) {
  const DeviceMemoryUse use = device.memory_use();
  const auto allocated = gather(comm, std::uint64_t{use.allocated});
  const auto most = gather(comm, std::uint64_t{use.most_allocated});
  const auto reserved = gather(comm, std::uint64_t{use.reserved});
  const auto largest = std::max_element(most.begin(), most.end()) - most.begin();
  const auto at = static_cast<std::size_t>(largest);
  std::string line =
      fmt::format("device memory: {} allocated, at most {}, {} reserved", format_memory(allocated[at]),
                  format_memory(most[at]), format_memory(reserved[at]));
  if (comm.size() > 1) {
    line += fmt::format(", on rank {}; {} allocated on all {} ranks", largest,
                        format_memory(std::accumulate(allocated.begin(), allocated.end(), std::uint64_t{0})),
                        comm.size());
  }
  return line;
}

}  // namespace

std::vector<std::string> memory_summary(Communicator& comm, const DeviceChoice& device) {
  std::vector<std::string> lines{resident_line(comm)};
  if (device.gpu != nullptr) lines.push_back(device_line(comm, *device.gpu->device));
  return lines;
}

// The tutorial's lines, from what each rank has of a batch.

namespace {

std::string device_name(const DeviceChoice& device) {
  if (device.gpu == nullptr) return device.description;
  return fmt::format("{}:{} {}", device.kind, device.gpu->device->properties().index, device.description);
}

std::string things(const std::string& kind) {
  if (kind == "cuda") return "GPUs";
  return kind == "emulated" ? "emulated GPUs" : "ranks";
}

/// Features have no rows and columns, images have both: [30, 5], [64, 1, 28, 28].
std::string input_size(std::int64_t samples, const ImageShape& shape) {
  if (shape.height == 1 && shape.width == 1) return fmt::format("[{}, {}]", samples, shape.channels);
  return fmt::format("[{}, {}, {}, {}]", samples, shape.channels, shape.height, shape.width);
}

std::string output_size(std::int64_t samples, int classes) {
  return fmt::format("[{}, {}]", samples, classes);
}

}  // namespace

BatchShapes::BatchShapes(const Network& network, const DeviceChoice& device, Communicator& comm)
    : network_(network), comm_(comm), kind_(device.kind), devices_(gather_text(comm, device_name(device))) {}

std::string BatchShapes::devices_line() const {
  if (comm_.size() == 1) return "";
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < devices_.size(); ++rank)
    ranks.push_back(fmt::format("{}: {}", rank, devices_[rank]));
  return fmt::format("Let's use {} {}! {}", comm_.size(), things(kind_), fmt::join(ranks, ", "));
}

std::vector<std::string> BatchShapes::lines(const DistributedSampler& sampler,
                                            std::int64_t step_in_epoch) const {
  std::int64_t mine = 0;
  for (const Grain& grain : sampler.local_grains(step_in_epoch)) mine += grain.samples;
  const auto samples = gather(comm_, mine);
  std::vector<std::string> lines;
  if (comm_.rank() != 0) return lines;
  for (std::size_t rank = 0; rank < samples.size(); ++rank) {
    if (samples[rank] == 0) continue;
    lines.push_back(fmt::format("    In Model: input size {} output size {}  (rank {}, {})",
                                input_size(samples[rank], network_.input_shape()),
                                output_size(samples[rank], network_.classes()), rank, devices_[rank]));
  }
  const std::int64_t whole = sampler.batch_samples(step_in_epoch);
  lines.push_back(fmt::format("Outside: input size {} output_size {}",
                              input_size(whole, network_.input_shape()),
                              output_size(whole, network_.classes())));
  return lines;
}

}  // namespace lockstep
