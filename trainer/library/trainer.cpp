// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trainer: options become those of the core, and steps are those of its strategy for CPUs.
#include "comm/agreement.hpp"
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/yaml.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/library/saved_state.hpp"
#include "trainer/training/cut_step.hpp"
#include "trainer/training/data_parallel.hpp"
#include "trainer/training/training_loss.hpp"
#include "trainer/verify/rank_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <lockstep/trainer.hpp>

#include <algorithm>
#include <optional>

namespace lockstep::v0 {

namespace {

LossKind kind_of(Loss::Kind kind) {
  if (kind == Loss::Kind::kMeanSquares) return LossKind::kMeanSquares;
  return kind == Loss::Kind::kBinaryCrossEntropy ? LossKind::kBinaryCrossEntropy : LossKind::kCrossEntropy;
}

/// Options that the core's tables take as a job's reader has checked them, by its bounds.
void check(const TrainerOptions& options) {
  const Optimizer& optimizer = options.optimizer;
  const Schedule& schedule = options.schedule;
  const auto require = [](bool holds, const char* option, const auto& given, const std::string& expected) {
    if (holds) return;
    const std::string text = fmt::format("{}", given);
    throw OptionError(option, fmt::format("{}{}; expected {}", text, fp32_hint(text), expected));
  };
  const auto whole = [&](const char* option, std::int64_t given, std::int64_t most) {
    require(given >= 1 && given <= most, option, given, fmt::format("a whole number from 1 to {}", most));
  };
  const auto number = [&](const char* option, double given, const RealRange& range) {
    require(range.holds(given), option, given, range.describe());
  };
  const auto word = [](const char* option, const auto& kinds, const std::string& name) {
    auto names = names_of(kinds, [](const auto& kind) { return kind.name; });
    std::erase(names, "multistep");  // its milestones are no option here
    if (std::ranges::find(names, name) == names.end())
      throw OptionError(option, fmt::format("'{}' is none; there are {}", name, fmt::join(names, ", ")));
  };
  const auto has = [](const auto& kind, std::string_view name) {
    return std::ranges::find(kind.keys, name, &MemberKey::name) != kind.keys.end();
  };
  require(options.global_batch >= 1, "global_batch", options.global_batch, "1 or more");
  whole("grain", options.grain, StepOptions::kLargestGrain);
  whole("threads", options.threads, StepOptions::kMostThreads);
  whole("epochs", options.epochs, UpdateOptions::kMostEpochs);
  number("clip_norm", options.clip_norm, kNorms);
  number("loss.label_smoothing", options.loss.label_smoothing, kShares);
  word("optimizer", optimizer_kinds(), optimizer.kind);
  const OptimizerKind& rule = find_optimizer({.kind = optimizer.kind});
  number("optimizer.lr", optimizer.lr, kRates);
  number("optimizer.weight_decay", optimizer.weight_decay, kDecays);
  if (has(rule, "momentum")) number("optimizer.momentum", optimizer.momentum, kShares);
  if (has(rule, "betas")) {
    number("optimizer.beta1", optimizer.beta1, kShares);
    number("optimizer.beta2", optimizer.beta2, kShares);
  }
  if (has(rule, "eps")) number("optimizer.eps", optimizer.eps, kEpsilons);
  word("schedule", schedule_kinds(), schedule.kind);
  const ScheduleKind& rates = find_schedule({.kind = schedule.kind});
  require(schedule.kind != "step" || schedule.every >= 1, "schedule.every",
          fmt::format("{} epochs", schedule.every), "1 or more");
  if (has(rates, "gamma")) number("schedule.gamma", schedule.gamma, kRates);
  if (has(rates, "min_lr")) number("schedule.min_lr", schedule.min_lr, kDecays);
  require(schedule.warmup_epochs >= 0 && schedule.warmup_epochs < options.epochs, "schedule.warmup_epochs",
          schedule.warmup_epochs, "0 or more, fewer than epochs");
}

/// As a job's sections have them.
TrainingOptions core_options(const TrainerOptions& options, const HostLoss* own) {
  const Optimizer& optimizer = options.optimizer;
  const Schedule& schedule = options.schedule;
  return {.batch = {.global_batch = options.global_batch, .shuffle = options.shuffle},
          .loss = {.loss = kind_of(options.loss.kind),
                   .label_smoothing = options.loss.label_smoothing,
                   .own = own},
          .update = {.epochs = options.epochs,
                     .clip_norm = options.clip_norm,
                     .optimizer = {.kind = optimizer.kind,
                                   .lr = optimizer.lr,
                                   .momentum = optimizer.momentum,
                                   .weight_decay = optimizer.weight_decay,
                                   .nesterov = optimizer.nesterov,
                                   .betas = {optimizer.beta1, optimizer.beta2},
                                   .eps = optimizer.eps},
                     .schedule = {.kind = schedule.kind,
                                  .by = schedule.kind == "one_cycle" ? "step" : "epoch",
                                  .step_size = schedule.every,
                                  .gamma = schedule.gamma,
                                  .min_lr = schedule.min_lr,
                                  .warmup_epochs = schedule.warmup_epochs}},
          .step = {.threads = options.threads, .grain = options.grain},
          .seed = options.seed};
}

void require_keys_that_fit(const UpdateOptions& update) {
  const OptimizerKind& optimizer = find_optimizer(update.optimizer);
  const ScheduleKind& schedule = find_schedule(update.schedule);
  auto complaint = optimizer.check != nullptr ? optimizer.check(update.optimizer) : std::nullopt;
  if (!complaint && schedule.check != nullptr)
    complaint = schedule.check(update.schedule, update.optimizer.lr);
  if (complaint) throw ConfigError(complaint->message);
}

void require_network_for(const lockstep::Network& network, const lockstep::Dataset& data) {
  if (network.input_shape() == data.shape && network.classes() == data.classes) return;
  throw ShapeError(
      fmt::format("network {} is for samples of {} in {} classes, and the data have {} in {}; load it "
                  "with the data's shape() and classes()",
                  network.name(), channels_rows_columns(network.input_shape()), network.classes(),
                  channels_rows_columns(data.shape), data.classes));
}

/// Facts that are the same on all ranks, in short. Of samples that a function makes there are the labels alone.
std::string facts_of(const lockstep::Dataset& data) {
  const Fingerprint contents = quick_fingerprint_of(data);
  return fmt::format("data of {} samples, {} {} [{}] [{}]", data.size(), contents.samples, contents.labels,
                     fmt::join(data.scales.scale, " "), fmt::join(data.scales.shift, " "));
}

/// Adds the network and the options.
std::string facts_of(const TrainerOptions& given, const TrainingSetup& setup) {
  const Optimizer& optimizer = given.optimizer;
  const Schedule& schedule = given.schedule;
  std::string facts =
      fmt::format("network {} | {} | options", quick_digest(std::as_bytes(std::span(setup.network.yaml()))),
                  facts_of(setup.data->train));
  const auto add = [&facts](const auto&... options) { ((facts += fmt::format(" {}", options)), ...); };
  add(given.global_batch, given.seed, given.epochs, given.clip_norm, given.shuffle, given.grain,
      given.device.is_gpu());
  add(static_cast<int>(given.loss.kind), given.loss.label_smoothing, given.loss.own != nullptr);
  add(optimizer.kind, optimizer.lr, optimizer.momentum, optimizer.nesterov, optimizer.weight_decay,
      optimizer.beta1, optimizer.beta2, optimizer.eps);
  add(schedule.kind, schedule.every, schedule.gamma, schedule.min_lr, schedule.warmup_epochs);
  return facts;
}

/// @param wanted  "evaluate the same data"
void expect_equal_ranks(lockstep::Communicator& comm, const std::string& mine, const char* wanted) {
  const std::vector<std::string> all = gather_text(comm, mine);
  const auto other =
      std::ranges::find_if(all, [&](const std::string& facts) { return facts != all.front(); });
  if (other == all.end()) return;
  const auto differs = std::ranges::mismatch(all.front(), *other).in1;
  const std::string same(all.front().begin(), differs);
  const char* what = same.find("options") != same.npos ? "other options"
                     : same.find("data") != same.npos  ? "other data"
                                                       : "another network";
  throw AgreedError(ExitCode::kUsage, fmt::format("rank {} has {} than rank 0; all ranks {}",
                                                  other - all.begin(), what, wanted));
}

double mean_of(const WideSum& loss_units, std::int64_t samples) {
  return loss_units.value() / kLossScale / static_cast<double>(std::max<std::int64_t>(samples, 1));
}

}  // namespace

struct Trainer::Inside {
  Inside(const Network& network, const Dataset& train_set, lockstep::Communicator& all,
         const TrainerOptions& given)
      : comm(all), train(train_set.inside()) {
    agree_in_words(comm, [&] { prepare(network, given); });
    expect_equal_ranks(comm, facts_of(given, *setup),
                       "train the same network on the same data with the same options");
    const Device::Inside* const gpu = given.device.inside();
    setup->plan = gpu != nullptr
                      ? plan_buckets_of_size(setup->network, setup->options.step, gpu->bucket_bytes)
                      : plan_buckets_by_latency(setup->network, setup->options.step, comm);
    strategy = gpu != nullptr ? gpu->make(*setup, comm) : make_cpu_data_parallel(*setup, comm);
    setup->network.initialise(given.seed, strategy->whole_state().weights);
    strategy->distribute();
    strategy->observe(std::make_shared<RankChecks>(*strategy, *setup, comm, gpu != nullptr));
  }

  void prepare(const Network& network, const TrainerOptions& given) {
    check(given);
    require_network_for(network.inside().network, *train.set);
    if (given.loss.own != nullptr) {
      if (given.device.is_gpu())
        throw OptionError("loss", "the program's own, and no GPU has it; leave out device");
      loss = adapt(given.loss.own);
    }
    data->train = borrow(train.set);
    setup.emplace(TrainingSetup{.options = core_options(given, loss.get()),
                                .data = data,
                                .network = network.inside().network,
                                .plan = {},
                                .processor = given.device.name()});
    require_keys_that_fit(setup->options.update);
    const TrainingLoss fits(setup->options, data->train);
    const auto sampling = sampler_options(*setup, comm);
    DistributedSampler::check(sampling);
    require_samples_for_cuts(setup->network, sampling);
  }

  std::int64_t steps_per_epoch() const { return strategy->sampler().steps_per_epoch(); }

  std::span<const float> weights() const {
    std::span<const float> weights;
    strategy->visit_own_state([&weights](const TrainedState& own) {
      weights = own.weights;
      return false;  // they are as they were
    });
    return weights;
  }

  /// Steps of one epoch, so many at most.
  StepSeries take(std::int64_t most) {
    if (at.step_in_epoch == steps_per_epoch()) at.start_next_epoch();
    const StepPosition position{at.epoch, at.step_in_epoch, at.step};
    StepSeries series = strategy->run(position, std::min(most, steps_per_epoch() - at.step_in_epoch), false);
    at.add({series.steps, series.samples, series.correct, series.loss_units});
    if (series.failure)
      throw AgreedError(ExitCode::kInternal,
                        describe_failure(*series.failure, series.last.samples, at.step + 1,
                                         setup->network.parameters(), weights()));
    return series;
  }

  lockstep::Communicator& comm;
  Dataset::Inside train;
  std::unique_ptr<const HostLoss> loss;
  std::shared_ptr<TrainTestData> data = std::make_shared<TrainTestData>();
  std::shared_ptr<const lockstep::Dataset> evaluated;  ///< data->test is its view
  std::string evaluated_facts;                         ///< its facts, which ranks compare
  std::optional<TrainingSetup> setup;
  std::unique_ptr<ParallelStrategy> strategy;
  RunState at;
  std::vector<StepObserver> observers;
};

std::string Device::name() const {
  return inside_ != nullptr ? inside_->name : fmt::format("cpu ({})", cpu::simd_name());
}

Trainer::Trainer(const Network& network, const Dataset& train, Communicator& comm,
                 const TrainerOptions& options)
    : inside_(std::make_unique<Inside>(network, train, comm.inside().comm, options)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;

StepReport Trainer::step() {
  const auto start = Clock::now();
  const StepSeries series = inside_->take(1);
  const Inside& in = *inside_;
  const StepReport report{.step = in.at.step,
                          .epoch = in.at.epoch + 1,
                          .samples = series.samples,
                          .correct = series.correct,
                          .loss = mean_of(series.loss_units, series.samples),
                          .gradient_norm = in.strategy->measures().gradient_norm.value_or(0),
                          .learning_rate = in.strategy->weight_update().learning_rate(in.at.step - 1),
                          .seconds = seconds_since(start)};
  for (const StepObserver& observer : in.observers) observer(report);
  return report;
}

EpochReport Trainer::epoch() {
  const auto start = Clock::now();
  const RunState& at = inside_->at;
  std::int64_t observers = std::ssize(inside_->observers);
  inside_->comm.all_reduce(std::span(&observers, 1));  // steps of one series have no pauses, on any rank
  do {
    if (observers == 0)
      inside_->take(inside_->strategy->longest_series());
    else
      step();
  } while (at.step_in_epoch < steps_per_epoch());
  return {.epoch = at.epoch + 1,
          .steps = at.step_in_epoch,
          .samples = at.epoch_samples,
          .correct = at.epoch_correct,
          .loss = mean_of(at.epoch_loss_units, at.epoch_samples),
          .seconds = seconds_since(start)};
}

Evaluation Trainer::evaluate(const Dataset& data) {
  Inside& in = *inside_;
  const auto& set = data.inside().set;
  agree_in_words(in.comm, [&] {
    require_network_for(in.setup->network, *set);
    if (in.evaluated == set) return;
    lockstep::Dataset test = borrow(set);
    in.evaluated_facts = facts_of(test);  // may throw: then the set before stays
    in.data->test = std::move(test);
    in.evaluated = set;
    ++in.setup->test_sets;
  });
  expect_equal_ranks(in.comm, in.evaluated_facts, "evaluate the same data");
  const lockstep::Evaluation found = in.strategy->evaluate(EvaluatedPart::kTest, never_leave);
  return {found.samples, found.correct, found.loss, found.accuracy()};
}

void Trainer::observe(StepObserver observer) {
  inside_->observers.push_back(std::move(observer));
}

std::int64_t Trainer::steps_per_epoch() const {
  return inside_->steps_per_epoch();
}

std::int64_t Trainer::steps() const {
  return inside_->at.step;
}

std::int64_t Trainer::epochs() const {
  return inside_->at.epoch + (inside_->at.step_in_epoch == steps_per_epoch() ? 1 : 0);
}

std::span<const float> Trainer::weights() const {
  return inside_->weights();
}

std::string Trainer::weights_sha256() const {
  return lockstep::weights_sha256(weights());
}

std::string Trainer::save(const std::string& folder) {
  inside_->strategy->collect();
  std::string directory;
  agree_in_words(inside_->comm, [&] {
    if (inside_->comm.rank() != 0) return;
    directory = save_below(folder, state_to_save(inside_->at, *inside_->setup, inside_->train,
                                                 inside_->comm.size(), inside_->strategy->whole_state()));
  });
  return gather_text(inside_->comm, directory).front();
}

void Trainer::load(const std::string& checkpoint) {
  RunState at = inside_->at;
  agree_in_words(inside_->comm, [&] {
    if (inside_->comm.rank() == 0)
      at = restore_state(checkpoint, *inside_->setup, steps_per_epoch(), inside_->strategy->whole_state());
  });
  broadcast(inside_->comm, at);
  inside_->at = at;
  inside_->strategy->distribute();
}

}  // namespace lockstep::v0
