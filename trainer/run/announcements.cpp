// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages that a run prints once: at its start, about batches and memory, and when nothing is left to do.
#include "comm/agreement.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/sets/class_names.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/device.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/run_reporter.hpp"
#include "trainer/training/training_loss.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

namespace lockstep {

// The lines before the first step, and the event `start`.

namespace {

std::string device_text(const Job& job, const JobSetup& setup, const Communicator& comm, bool has_graphs) {
  const DeviceChoice& device = setup.device;
  if (device.gpu == nullptr) {
    const std::string engine = job.train.precision == Precision::kInt16
                                   ? fmt::format(", int16 by {}", cpu::int16::engine_name())
                                   : "";
    return fmt::format("{}{}, {} each, backend {}", device.description, engine,
                       counted(job.parallel.threads, "thread"), comm.backend());
  }
  return fmt::format("{}, {} kernels, graph {}; {}", device.description, device.gpu->ops->name(),
                     spelt(has_graphs ? job.parallel.graph : GraphUse::kOff), device.communication);
}

std::string balance_text(const Dataset& train) {
  std::map<std::int32_t, std::int64_t> sizes;
  for (const std::int32_t label : train.labels) ++sizes[label];
  const auto smaller = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::ranges::minmax_element(sizes, smaller);
  const std::int64_t turns = std::ssize(sizes), draws = train.size() / turns;
  const bool even = train.size() % turns == 0;
  return fmt::format("{} balanced, of {} to {}: each is drawn {}{} an epoch", counted(turns, "class"),
                     with_thousands(least->second), counted(most->second, "sample"),
                     even ? "" : with_thousands(draws) + " or ", counted(even ? draws : draws + 1, "time"));
}

/// "60,000", or "100 of 60,000"
std::string share_text(std::int64_t samples, std::int64_t all) {
  return samples == all ? with_thousands(all)
                        : fmt::format("{} of {}", with_thousands(samples), with_thousands(all));
}

/// Empty: each class has a sample.
std::string unseen_classes_text(const Dataset& train, const std::vector<std::string>& names) {
  std::vector<bool> is_seen(names.size());
  const std::size_t classes = names.size();
  if (train.has_label_sets()) {
    std::vector<bool> is_used(train.label_sets.size() / classes);
    for (const std::int32_t row : train.labels) at(is_used, row) = true;
    for (std::size_t i = 0; i < train.label_sets.size(); ++i)
      if (is_used[i / classes] && train.label_sets[i] != 0) is_seen[i % classes] = true;
  } else {
    for (const std::int32_t label : train.labels) at(is_seen, label) = true;
  }
  std::vector<std::string> unseen;
  for (std::size_t c = 0; c < classes; ++c)
    if (!is_seen[c]) unseen.push_back(names[c]);
  if (unseen.empty()) return "";
  return fmt::format("note: no training sample is of {} of the {} classes, which will not be learnt: {}",
                     unseen.size(), classes, first_names(unseen));
}

}  // namespace

void RunReporter::announce(const RunStart& start, int hosts) {
  const Job& job = run_.job;
  const auto& network = run_.setup.network;
  const DistributedSampler& sampler = run_.strategy->sampler();
  const StrategyDescription description = run_.strategy->describe();
  const TrainTestData& data = *run_.setup.data;
  const std::int64_t validation = data.validation.size();
  std::string others = data.left_out == 0 ? "" : fmt::format("{} left out, ", with_thousands(data.left_out));
  if (validation > 0) others += fmt::format("{} validation, ", with_thousands(validation));
  say(start.chosen);
  say(fmt::format("Lockstep {}: {}, {}, on {} ({} train, {}{} test; {})", LOCKSTEP_VERSION, network.name(),
                  counted(network.parameters().size, "parameter"), job.data.set,
                  share_text(data.train.size(), data.train_in_file() - std::ssize(data.validation.places)),
                  others, share_text(data.test.size(), data.test_in_file()), data.origin));
  say(fmt::format("{} on {}, {}", counted(run_.comm.size(), "rank"), counted(hosts, "host"),
                  device_text(job, run_.setup, run_.comm, description.has_graphs)));
  say(fmt::format("global batch {} = {} of {}, {} an epoch; determinism: {}; {}",
                  with_thousands(sampler.batch_samples(0)), counted(sampler.batch_grains(0), "grain"),
                  job.parallel.grain, counted(sampler.steps_per_epoch(), "step"),
                  spelt(job.parallel.determinism), description.sums));
  for (const std::string& line : description.lines) say(line);
  if (job.data.per_rank_batch > 0)
    say(fmt::format(
        "global batch {} = {} x data.per_rank_batch {}: another number of ranks trains other weights",
        with_thousands(job.data.global_batch), counted(run_.comm.size(), "rank"), job.data.per_rank_batch));
  if (run_.setup.streams)
    say("the set streams past the device: the samples of the coming steps lie there (data.on_device)");
  if (job.data.balance_classes) say(balance_text(data.train));
  for (const std::string& remark : data.remarks) say("note: " + remark);
  for (const std::string& remark : batch_remarks(job, data.train.size(), run_.setup.device.gpu != nullptr))
    say("note: " + remark);
  say(unseen_classes_text(data.train, data.class_names));
  if (data.has_validation_half && validation == 0)
    say("note: the set has a validation half, which is not used: epochs are judged by the test half; "
        "data.validation=files takes it");
  else if (job.train.patience > 0 && validation == 0)
    say("note: train.patience goes by the test set, so its accuracy will look better than it is; "
        "data.validation holds training samples out for that");
  say(run_.strategy->weight_update().describe());
  say(TrainingLoss(run_.setup.options, data.train).describe());
  say(run_.setup.device.remark);
  if (!description.for_log.empty()) run_.files->log(description.for_log);
  if (run_.state.step > 0)
    say(fmt::format("going on from step {} in {}", with_thousands(run_.state.step), job.run.dir));
  say(start.names_taken);
  if (run_.state.arithmetic.since > 0)
    say(fmt::format(
        "its steps up to {} were computed by a version of this program that rounded gradients elsewhere: it "
        "goes on from there, with other last digits than either version alone",
        with_thousands(run_.state.arithmetic.since)));
  for (const std::string& line : start.initial_weights.lines) say(line);
  if (job.run.trail && !keeps_trail(job))
    say("trail: none, since sums are not exact (parallel.determinism: off)");
}

// Restart of a job that has nothing left to do.

namespace {

/// The keys that end the job no later than the run's present step, and the command to type. A schedule that is as long as
/// the run leaves nothing to raise: another run begins with these weights.
std::string how_to_train_on(const RunContext& run) {
  const std::int64_t taken = run.state.step;
  std::vector<std::string> keys, values;
  Job longer = run.job;
  const auto raise = [&](std::string key, const std::string& value, const char* behind) {
    keys.push_back(fmt::format("{}={} or more{}", key, value, behind));
    values.push_back(fmt::format("{}={}", key, value));
  };
  if (run.job.train.epochs * run.steps_per_epoch <= taken) {
    longer.train.epochs = taken / run.steps_per_epoch + 1;
    raise("train.epochs", std::to_string(longer.train.epochs), "");
  }
  if (run.job.train.max_steps > 0 && run.job.train.max_steps <= taken)
    raise("train.max_steps", std::to_string(taken + 1), " (0: no limit)");
  if (run.out_of_patience())
    raise("train.patience", std::to_string(run.state.patience->without_better + 1), " (0: never)");
  const std::string& directory = run.job.run.dir;
  if (determining_keys(longer) != determining_keys(run.job))
    return fmt::format(
        "its schedule ends with train.epochs: to train on, begin another run with its weights, "
        "{} {} {}",
        train_command(directory), shell_word("train.initial_weights=" + directory),
        shell_word("run.dir=" + directory + "-further"));
  return fmt::format("to train on, set {}: {} {}", fmt::join(keys, " and "), train_command(directory),
                     fmt::join(values, " "));
}

}  // namespace

void RunReporter::nothing_left(const RunStart& start) {
  const std::string taken = counted(run_.state.step, "step");
  const std::string state =
      run_.state.step == run_.steps() ? fmt::format("holds all {}", taken)
      : run_.state.step < run_.steps()
          ? fmt::format("holds {}, after which its patience (train.patience) was at its end", taken)
          : fmt::format("holds {}, more than the {} asked for", taken, with_thousands(run_.steps()));
  const std::string sha256 = weights_sha256(run_.strategy->whole_state().weights);
  const PublishedComparison published = run_.compare_with_published(sha256);
  progress_.say(
      fmt::format("already finished: {} {}; nothing was trained{}; {}; to start afresh, "
                  "run.resume=never or another run.dir",
                  run_.job.run.dir, state,
                  start.lacks_page ? ", its missing page (report.html) is written" : " or written",
                  how_to_train_on(run_)));
  say_weights(sha256, published);
}

// How much memory a run took: from what the kernel and the device of each rank say.

namespace {

/// Formats memory: "at most 61 MiB resident, on rank 1; 97 MiB on all 2 ranks". Memory that ranks of a host
/// share counts once. Ranks that are threads share a process and its memory.
std::string host_memory(Communicator& comm) {
  const auto ranks = gather(comm, RankMemory{peak_resident_bytes(), shared_resident_bytes()});
  const auto hosts = gather_hosts(comm);
  const auto most = std::ranges::max_element(ranks, {}, &RankMemory::peak);
  if (comm.size() == 1) return fmt::format("memory: at most {} resident", format_memory(most->peak));
  if (comm.backend() == "thread")
    return fmt::format("memory: at most {} resident, for all {} ranks", format_memory(most->peak),
                       comm.size());
  std::map<std::string, std::vector<RankMemory>> on_host;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) on_host[hosts[rank]].push_back(ranks[rank]);
  std::uint64_t together = 0;
  for (const auto& [host, its_ranks] : on_host) together += resident_together(its_ranks);
  return fmt::format("memory: at most {} resident, on rank {}; {} on all {} ranks", format_memory(most->peak),
                     most - ranks.begin(), format_memory(together), comm.size());
}

/// Formats the device memory of the rank that had most: "12 MiB allocated, at most 12 MiB, 14 MiB reserved".
/// See DeviceMemoryUse.
std::string device_memory(const DeviceMemoryUse& use, Communicator& comm) {
  const auto uses = gather(comm, use);
  const auto most = std::ranges::max_element(uses, {}, &DeviceMemoryUse::most_allocated);
  std::string line =
      fmt::format("device memory: {} allocated, at most {}, {} reserved", format_memory(most->allocated),
                  format_memory(most->most_allocated), format_memory(most->reserved));
  if (comm.size() == 1) return line;
  std::uint64_t allocated = 0;
  for (const DeviceMemoryUse& one : uses) allocated += one.allocated;
  return line + fmt::format(", on rank {}; {} allocated on all {} ranks", most - uses.begin(),
                            format_memory(allocated), comm.size());
}

}  // namespace

void RunReporter::memory() {
  say(host_memory(run_.comm));
  if (run_.setup.device.gpu != nullptr)
    say(device_memory(run_.setup.device.gpu->device->memory_use(), run_.comm));
}

// The sizes of each batch, on the ranks and as a whole, in the words of PyTorch's DataParallel tutorial.

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
  return fmt::format("[{}, {}]", samples, fmt::join(dimensions_of(shape), ", "));
}

}  // namespace

void RunReporter::devices() {
  devices_ = gather_text(run_.comm, device_name(run_.setup.device));
  if (run_.comm.size() == 1) return;
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < devices_.size(); ++rank)
    ranks.push_back(fmt::format("{}: {}", rank, devices_[rank]));
  say(fmt::format("Let's use {} {}! {}", run_.comm.size(), things(run_.setup.device.kind),
                  fmt::join(ranks, ", ")));
}

/// Prints for each step one line per rank with samples: their shape and device. One more line has their total.
void RunReporter::batch_shapes(const StepSeries& series) {
  const DistributedSampler& sampler = run_.strategy->sampler();
  const ImageShape& shape = run_.setup.network.input_shape();
  const int classes = run_.setup.network.classes();
  const std::int64_t end = run_.state.step_in_epoch;
  for (std::int64_t step = end - series.steps; step < end; ++step) {
    std::int64_t mine = 0;
    for (const Grain& grain : sampler.local_grains(step)) mine += grain.samples;
    const auto samples = gather(run_.comm, mine);
    for (std::size_t rank = 0; rank < samples.size(); ++rank)
      if (samples[rank] > 0)
        say(fmt::format("    In Model: input size {} output size [{}, {}]  (rank {}, {})",
                        input_size(samples[rank], shape), samples[rank], classes, rank, devices_[rank]));
    const std::int64_t whole = sampler.batch_samples(step);
    say(fmt::format("Outside: input size {} output_size [{}, {}]", input_size(whole, shape), whole, classes));
  }
}

}  // namespace lockstep
