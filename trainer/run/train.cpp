// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Start of a run on every rank: in which directory it begins, from which checkpoint or weights.
#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/run_context.hpp"
#include "trainer/setup/strategies.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

RunContext::RunContext(Job asked, Communicator& ranks, const DatasetFuture& data)
    : job(std::move(asked)),
      comm(ranks),
      setup(set_up(job, comm, data, find_strategy(job).setup)),
      trace(job, comm),
      strategy(find_strategy(job).make(setup, comm)),
      checks(check_ranks(*strategy, setup, comm)),
      steps_per_epoch(strategy->sampler().steps_per_epoch()),
      judge(judging_part(job)) {
  strategy->unread().keep();
}

namespace {

/// Opens one of several possible directories: whether the job can go on there must be known first.
void open_chosen(RunContext& run, std::unique_ptr<RunDirectory>& directory, const std::string& path,
                 bool wait) {
  directory.reset();
  run.job.run.dir = path;
  directory = std::make_unique<RunDirectory>(Env::posix(), run.job, wait);
  const auto checkpoint = directory->resume_point();
  if (!checkpoint) return;
  // Copies: it is only looked at.
  const ParameterLayout& layout = run.setup.network.parameters();
  std::vector<float> weights(layout.weights_size());
  OptimizerBuffers buffers(run.strategy->weight_update().buffer_names(), layout.size);
  GradientUnits units = run.strategy->whole_state().units;
  const auto state = restore(checkpoint->state, run.job, run.setup, run.strategy->sampler(),
                             {weights, buffers.views(), units});
  if (state.step > run.steps())
    throw ConfigError(fmt::format("it is at step {}, beyond the {} that are asked for",
                                  with_thousands(state.step), with_thousands(run.steps())));
}

/// Places of all ranks, and the share of a batch that each has. Collective.
RankStretch ranks_here(const RunContext& run) {
  const auto grains = run.strategy->sampler().local_grains(0);
  const Teams& teams = run.strategy->teams();
  std::optional<std::vector<std::int64_t>> tensors;  // nothing: all
  if (!teams.holders.empty()) {
    tensors.emplace();
    for (const HeldTensor& tensor : teams.held) tensors->push_back(static_cast<std::int64_t>(tensor.number));
  }
  const DeviceChoice& device = run.setup.device;
  const RankPlace here{.host = run.comm.host(),
                       .device = device.description,
                       .uuid = device.gpu ? device.gpu->device->properties().uuid : "",
                       .first_grain = grains.empty() ? 0 : grains.front().first / run.job.parallel.grain,
                       .grains = std::ssize(grains),
                       .tensors = tensors};
  RankStretch stretch{.strategy = run.job.parallel.strategy,
                      .split = std::string(spelt(run.job.parallel.split)),
                      .ranks = {}};
  for (const std::string& place : gather_text(run.comm, json_text(nlohmann::json(here))))
    stretch.ranks.push_back(parse_json(place).get<RankPlace>());
  return stretch;
}

/// True if more steps were taken than the job asks for. With exactly as many, or with its patience over, the
/// end of the run must be on disk with these weights. (A run that was killed between its last checkpoint and
/// its end is still brought to its end.)
bool nothing_left(const RunContext& run) {
  const std::int64_t taken = run.state.step;
  if (taken > run.steps()) return true;
  if (!run.at_end()) return false;
  const auto end = recorded_end(Env::posix(), run.job.run.dir + "/metrics.jsonl");
  return end && end->step == taken &&
         end->weights_sha256 == weights_sha256(run.strategy->whole_state().weights);
}

}  // namespace

RunStart begin_run(RunContext& run) {
  RunStart start;
  agree(run.comm, [&] {
    require_traced_steps(run.job, run.steps());
    if (run.comm.rank() != 0) return;
    if (run.job.run.dir != kChosenDirectory) {
      start.directory = std::make_unique<RunDirectory>(Env::posix(), run.job);
      return;
    }
    const Job asked = run.job;
    start.chosen = choose_run_directory(Env::posix(), asked, [&](const std::string& path, bool wait) {
      open_chosen(run, start.directory, path, wait);
    });
  });
  RankStretch ranks = ranks_here(run);
  for (const RankPlace& place : ranks.ranks) start.hosts.push_back(place.host);
  agree(run.comm, [&] {
    if (!start.directory) return;
    const TrainedState trained = run.strategy->whole_state();
    CheckpointFacts facts;
    if (const auto checkpoint = start.directory->resume_point()) {
      start.resumed = !start.directory->goes_on_from_another();
      run.state = restore(checkpoint->state, run.job, run.setup, run.strategy->sampler(), trained);
      facts = checkpoint->state.facts;
      restart_patience(run.state, facts, run.job, run.setup);
      start.names_taken = names_taken(facts, *run.setup.data);
      start.nothing_left = nothing_left(run);
      if (run.state.step > run.steps() && start.directory->goes_on_from_another())
        throw ConfigError(
            fmt::format("run.resume: {} is at step {}, and this job ends with step {}: let it end later "
                        "(train.epochs, train.max_steps), or name an earlier checkpoint",
                        checkpoint->path, with_thousands(run.state.step), with_thousands(run.steps())));
      start.lacks_page = start.nothing_left && lacks_page(Env::posix(), run.job.run.dir, run.job);
    } else {
      start.initial_weights =
          initialise_weights(run.job, run.setup.network, trained.weights, *run.setup.data);
    }
    if (start.nothing_left) return;
    const RunState& state = run.state;
    const bool evaluated =
        state.step_in_epoch == 0 || (!run.epoch_finished() && accuracy_on(run.judge, state));
    run.files = std::move(*start.directory).open(state.step, evaluated, facts);
    start.directory.reset();
    ranks.from = state.step + 1;
    run.files->open_trail(trail_head(run.job, run.setup, run.strategy->weight_update().buffer_names()), ranks,
                          facts.trail);
  });
  broadcast(run.comm, start.resumed);
  broadcast(run.comm, start.nothing_left);
  broadcast(run.comm, run.state);
  run.first_step = run.state.step;
  run.strategy->distribute();
  return start;
}

std::string shell_command(std::istream& words) {
  constexpr std::string_view kMore = " ...";  // refused where it is typed: a part is not taken for the whole
  constexpr std::size_t kLongest = 4096 - kMore.size();
  std::string command;
  for (std::string word; std::getline(words, word, '\0');) {
    word = shell_word(word);
    if (command.size() + 1 + word.size() > kLongest) return command.append(kMore);
    command += (command.empty() ? "" : " ") + word;
  }
  return command;
}

nlohmann::ordered_json first_event(const RunContext& run, const RunStart& start, int hosts,
                                   double setup_seconds) {
  auto event = start_event(run.job, run.setup, *run.strategy, run.comm, hosts);
  add_initial_weights(event, start.initial_weights);
  event["setup_seconds"] = setup_seconds;
  event["host"] = host_name();
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  event["command"] = shell_command(words);  // "" where the system does not tell
  return event;
}

}  // namespace lockstep
