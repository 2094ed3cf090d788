// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a job to a run on every rank: in which directory it begins, from which checkpoint or weights.
#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/metrics.hpp"
#include "trainer/run/rank_diagnosis.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/run/step_trace.hpp"
#include "trainer/run/training_run.hpp"

#include <cctype>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <vector>

namespace lockstep {

int train(const Job& job, const WhenFinished& when_finished) {
  const auto process_start = Clock::now();
  refuse_faults_unless_allowed(job);
  catch_stop_signals();
  const TimeLimit time_limit(process_start, job.run.max_seconds, allocation_end_ahead());
  hash_program_in_advance();
  const auto data = load_in_advance(job, DataCopy::kOfHost, recorded_directory(job));
  std::string finished;  // as rank 0 has it
  const int code = run_on_ranks(job.parallel, [&](Communicator& comm) {
    expect_equal_ranks(comm, program_facts("train", comm) + job_facts(job));
    Job on_ranks;
    agree(comm, [&] { on_ranks = for_ranks(job, comm.size()); });
    return run_leaking_on_peer_loss(
        std::make_unique<TrainingRun>(on_ranks, comm, data, process_start, time_limit),
        [&](TrainingRun& run) {
          const int code_of_run = run.run();
          if (comm.rank() == 0 && code_of_run == 0) finished = run.finished_directory();
          return code_of_run;
        });
  });
  if (!finished.empty() && when_finished) when_finished(finished, *data.get().sets);
  return code;
}

void TrainingRun::open_directory() {
  agree(comm_, [&] {
    require_traced_steps(job_, steps_in_run());
    if (comm_.rank() != 0) return;
    if (job_.run.dir != kChosenDirectory) {
      directory_.emplace(Env::posix(), job_);
      return;
    }
    const Job asked = job_;
    first_line_ = choose_run_directory(
        Env::posix(), asked, [this](const std::string& path, bool wait) { open_chosen(path, wait); });
  });
}

/// Opens one of several possible directories: whether the job can go on there must be known first.
void TrainingRun::open_chosen(const std::string& path, bool wait) {
  directory_.reset();
  job_.run.dir = path;
  directory_.emplace(Env::posix(), job_, wait);
  const auto checkpoint = directory_->resume_point();
  if (!checkpoint) return;
  // Copies: it is only looked at.
  const ParameterLayout& layout = setup_.network.parameters();
  std::vector<float> weights(layout.weights_size());
  OptimizerBuffers buffers(strategy_->weight_update().buffer_names(), layout.size);
  GradientUnits units = strategy_->whole_state().units;
  const auto state =
      restore(checkpoint->state, job_, setup_, strategy_->sampler(), {weights, buffers.views(), units});
  if (state.step > steps_in_run()) {
    throw ConfigError(fmt::format("it is at step {}, beyond the {} that are asked for",
                                  with_thousands(state.step), with_thousands(steps_in_run())));
  }
}

void TrainingRun::restore_or_initialise() {
  std::optional<FoundCheckpoint> checkpoint;
  const RankStretch ranks = ranks_here();
  for (const RankPlace& place : ranks.ranks) hosts_.push_back(place.host);
  agree(comm_, [&] {
    if (directory_) checkpoint = directory_->resume_point();
    if (checkpoint) {
      state_ = restore(checkpoint->state, job_, setup_, strategy_->sampler(), strategy_->whole_state());
      nothing_left_ = nothing_left();
      names_taken_ = names_taken(checkpoint->state.facts, *setup_.data);
      lacks_page_ = nothing_left_ && lacks_page(Env::posix(), job_.run.dir, job_);
    } else if (comm_.rank() == 0) {
      initial_weights_ = initialise_weights(job_, setup_.network, strategy_->whole_state().weights,
                                            setup_.data->class_names);
    }
    if (directory_ && !nothing_left_) open_files(checkpoint, ranks);
  });
  bool resumed = checkpoint.has_value();
  broadcast(comm_, resumed);
  broadcast(comm_, nothing_left_);
  broadcast(comm_, state_);
  if (resumed) note_saved();
  first_step_ = state_.step;
  strategy_->distribute();
}

RankStretch TrainingRun::ranks_here() {
  const auto grains = strategy_->sampler().local_grains(0);
  const Teams teams = strategy_->teams();
  std::optional<std::vector<std::int64_t>> tensors;  // nothing: all
  if (!teams.holders.empty()) {
    tensors.emplace();
    for (const HeldTensor& tensor : teams.held) tensors->push_back(static_cast<std::int64_t>(tensor.number));
  }
  const RankPlace here{.host = comm_.host(),
                       .device = setup_.device.description,
                       .uuid = setup_.device.gpu ? setup_.device.gpu->device->properties().uuid : "",
                       .first_grain = grains.empty() ? 0 : grains.front().first / job_.parallel.grain,
                       .grains = std::ssize(grains),
                       .tensors = tensors};
  RankStretch stretch{
      .strategy = job_.parallel.strategy, .split = std::string(spelt(job_.parallel.split)), .ranks = {}};
  for (const std::string& place : gather_text(comm_, to_text(here)))
    stretch.ranks.push_back(place_from_text(place));
  return stretch;
}

void TrainingRun::open_files(const std::optional<FoundCheckpoint>& checkpoint, RankStretch ranks) {
  const CheckpointFacts none;
  const CheckpointFacts& facts = checkpoint ? checkpoint->state.facts : none;
  const bool between_epochs = state_.step_in_epoch == 0;
  const bool evaluated = between_epochs || (!epoch_finished() && accuracy_on(judge_, state_));
  directory_->open(state_.step, evaluated, facts);
  ranks.from = state_.step + 1;
  directory_->open_trail(trail_head(job_, setup_, strategy_->weight_update().buffer_names()), ranks,
                         facts.trail);
  directory_->open_tensorboard(state_.step);
}

/// True if more steps were taken than the job asks for. With exactly as many, or with its patience over, the
/// end of the run must be on disk with these weights. (A run that was killed between its last checkpoint and
/// its end is still brought to its end.)
bool TrainingRun::nothing_left() {
  const std::int64_t taken = state_.step;
  if (taken > steps_in_run()) return true;
  if (!at_end()) return false;
  return recorded_end(Env::posix(), job_.run.dir + "/metrics.jsonl", taken) ==
         weights_sha256(strategy_->whole_state().weights);
}

namespace {

/// The words that started this process, quoted where a shell needs it; "" where the system does not tell.
std::string command_of_this_process() {
  constexpr std::size_t kLongest = 4096;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command, word;
  while (std::getline(file, word, '\0') && command.size() < kLongest) {
    if (!command.empty()) command += ' ';
    const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("_@%+=:,./-").find(static_cast<char>(c)) != std::string_view::npos;
    });
    for (std::size_t at = 0; !is_plain && (at = word.find('\'', at)) != word.npos; at += 4)
      word.replace(at, 1, "'\\''");
    command += is_plain ? word : "'" + word + "'";
  }
  command.resize(std::min(command.size(), kLongest));
  return command;
}

}  // namespace

void TrainingRun::announce() {
  warn_before_run(comm_, job_, setup_.device);
  const int hosts = count_hosts(comm_);
  run_start_ = Clock::now();
  if (directory_) {
    if (!first_line_.empty()) say(first_line_);
    for (const std::string& line : announcement(hosts)) say(line);
    if (const std::string line = strategy_->describe().for_log; !line.empty()) directory_->log(line);
    if (state_.step > 0) {
      tell_resumed();
    } else {
      auto event = start_event(job_, setup_, *strategy_, comm_, hosts);
      add_initial_weights(event, initial_weights_);
      event["setup_seconds"] = seconds_since(process_start_);
      event["host"] = host_name();
      event["command"] = command_of_this_process();
      directory_->write(event);
    }
  }
  for (const std::string& line : initial_weights_.lines) say(line);
  if (job_.run.trail && !keeps_trail(job_))
    say("trail: none, since sums are not exact (parallel.determinism: off)");
  if (job_.run.print_shapes) tell_devices();
  if (!directory_) return;
  setup_.fingerprints->start();  // the first checkpoint wants them, and this
  setup_.light_background =
      start_async([this] { return has_light_background(job_, setup_.data->train); }).share();
}

}  // namespace lockstep
