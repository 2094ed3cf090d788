// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From what the options say to parts of the network.
#include "trainer/parallel/stage_plan.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace lockstep {

namespace {

constexpr const char* kStages = "parallel.stages";
constexpr const char* kPlacement = "parallel.placement";

std::vector<std::string_view> names_of(const Network& network) {
  std::vector<std::string_view> names;
  for (const auto& layer : network.layers()) names.push_back(layer->name());
  return names;
}

std::string cut_list(const Network& network, const std::vector<std::size_t>& begins) {
  std::vector<std::string> stages;
  const auto names = names_of(network);
  for (std::size_t s = 0; s < begins.size(); ++s) {
    const std::size_t end = s + 1 < begins.size() ? begins[s + 1] : names.size();
    const auto stage = std::span(names).subspan(begins[s], end - begins[s]);
    stages.push_back(fmt::format("[{}]", fmt::join(stage, ", ")));
  }
  return fmt::format("[{}]", fmt::join(stages, ", "));
}

std::vector<std::size_t> balanced(const Network& network, std::size_t count) {
  const auto begins = balance_stages(network, count);
  if (begins) return *begins;
  const std::size_t layers = network.layers().size(), most = most_stages(network);
  if (count > layers)
    throw OptionError(kStages,
                      fmt::format("{}, but {} has only {}; ask for {} or fewer", counted(count, "stage"),
                                  network.name(), counted(layers, "layer"), most));
  throw OptionError(
      kStages,
      fmt::format("{} stages, but between its residual connections {} can be cut into {} at most; ask for "
                  "{} or fewer",
                  count, network.name(), most, most));
}

/// Walks over the names, which must be those of the network, in its order.
std::vector<std::size_t> as_listed(const PipelineOptions& options, const Network& network) {
  const auto names = names_of(network);
  const auto& stages = options.stages.layers;
  std::vector<std::size_t> begins;
  std::size_t next = 0;
  const auto missing = [&](const std::string& where) {
    return OptionError(
        kStages, fmt::format("the stages do not cover {}: layer {} is missing {}; list every layer in order, "
                             "or give a number of stages, such as {}",
                             network.name(), names[next], where, stages.size()));
  };
  for (const auto& stage : stages) {
    begins.push_back(next);
    for (const std::string& name : stage) {
      const auto found = std::ranges::find(names, std::string_view(name));
      if (found == names.end())
        throw OptionError(kStages, fmt::format("{} has no layer '{}'{}; its layers are {}", network.name(),
                                               name, did_you_mean(name, names), fmt::join(names, ", ")));
      const auto place = static_cast<std::size_t>(found - names.begin());
      if (place < next)
        throw OptionError(
            kStages,
            fmt::format("layer {} is listed twice, or after a later one; the layers of {} are, in order, {}",
                        name, network.name(), fmt::join(names, ", ")));
      if (place > next) throw missing("before " + name);
      ++next;
    }
  }
  if (next < names.size()) throw missing("at the end");
  return begins;
}

void require_whole_connections(const Network& network, const std::vector<std::size_t>& begins) {
  for (std::size_t s = 1; s < begins.size(); ++s) {
    const auto crossing = connection_across(network, begins[s]);
    if (!crossing) continue;
    std::string advice = "put both into one stage";
    if (const auto other = balance_stages(network, begins.size()))
      advice += ", such as " + cut_list(network, *other);
    throw OptionError(kStages, fmt::format("stage {} begins between {} and {}, which adds its output; {}", s,
                                           crossing->from, crossing->to, advice));
  }
}

std::vector<std::size_t> begins_of_stages(const PipelineOptions& options, const Network& network, int world) {
  const StagesSection& asked = options.stages;
  if (asked.layers.empty())
    return balanced(network, static_cast<std::size_t>(asked.count > 0 ? asked.count : world));
  auto begins = as_listed(options, network);
  require_whole_connections(network, begins);
  return begins;
}

/// Deals stages to the ranks of a pipeline, where the options do not say.
std::vector<int> dealt(int stages, int world) {
  if (world % stages != 0 && stages % world != 0) {
    std::vector<int> possible;
    for (int ranks = 1; ranks <= world + stages && possible.size() < 6; ++ranks)
      if (ranks % stages == 0 || stages % ranks == 0) possible.push_back(ranks);
    throw OptionError(
        kStages,
        fmt::format("{} do not come out on {}; start {} (a multiple of {}, or a divisor), or ask for "
                    "another number of stages",
                    counted(stages, "stage"), counted(world, "rank"), fmt::join(possible, ", "), stages));
  }
  const int width = std::min(stages, world);
  std::vector<int> ranks;
  for (int stage = 0; stage < stages; ++stage) ranks.push_back(stage % width);
  return ranks;
}

std::vector<int> placed(const PipelineOptions& options, int stages, int world) {
  const auto& asked = options.placement;
  if (asked.empty()) return dealt(stages, world);
  if (std::ssize(asked) != stages)
    throw OptionError(kPlacement, fmt::format("{} for {}; give one for each", counted(asked.size(), "rank"),
                                              counted(stages, "stage")));
  const std::set<std::int64_t> used(asked.begin(), asked.end());
  const auto width = static_cast<int>(*used.rbegin()) + 1;
  for (int rank = 0; rank < width; ++rank)
    if (!used.contains(rank))
      throw OptionError(kPlacement,
                        fmt::format("rank {} has no stage; number the ranks of a pipeline from 0 on", rank));
  if (world % width != 0)
    throw OptionError(kPlacement,
                      fmt::format("a pipeline of {}, and {} {} started; start {} or another multiple of it",
                                  counted(width, "rank"), world, world == 1 ? "was" : "were",
                                  width * std::max(1, world / width)));
  return {asked.begin(), asked.end()};
}

std::string layer_text(const Network& network, std::size_t first, std::size_t last) {
  const std::string& from = network.layers()[first]->name();
  return last - first == 1 ? from : fmt::format("{} to {}", from, network.layers()[last - 1]->name());
}

}  // namespace

std::vector<int> StagePlan::ranks() const {
  std::vector<int> ranks;
  for (const PipelineStage& stage : stages) ranks.push_back(stage.rank);
  return ranks;
}

std::vector<int> StagePlan::stages_of(int rank) const {
  std::vector<int> own;
  for (int stage = 0; stage < count(); ++stage)
    if (rank_of(stage) == rank) own.push_back(stage);
  return own;
}

std::string StagePlan::describe(int stage) const {
  return fmt::format("stage {} ({})", stage, at(stages, stage).layers);
}

StagePlan plan_stages(const PipelineOptions& options, const Network& network, int world) {
  const auto begins = begins_of_stages(options, network, world);
  const auto ranks = placed(options, static_cast<int>(begins.size()), world);
  const auto work = layer_work(network);
  StagePlan plan;
  plan.width = *std::ranges::max_element(ranks) + 1;
  plan.replicas = world / plan.width;
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  for (std::size_t s = 0; s < begins.size(); ++s) {
    const bool is_last = s + 1 == begins.size();
    PipelineStage stage;
    stage.part = {.first = begins[s], .last = is_last ? network.layers().size() : begins[s + 1]};
    stage.rank = ranks[s];
    stage.layers = layer_text(network, stage.part.first, stage.part.last);
    stage.arena = parameters_of(network, stage.part);
    stage.part.gives_input_gradient = stage.arena.offset > 0;
    stage.part.takes_output_gradient = !is_last && stage.goes_back();
    for (std::size_t i = stage.part.first; i < stage.part.last; ++i) stage.work += work[i] / all;
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

// A search over the places where the network may be cut. A state is the stages so far, and where the last of them
// ends.

namespace {

/// How good some first stages are: smaller is better, the largest stage first.
struct Cost {
  double largest = std::numeric_limits<double>::infinity(), squares = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 is the compiler's, in what it makes of this line
  auto operator<=>(const Cost&) const = default;
  Cost with(double stage) const { return {std::max(largest, stage), squares + stage * stage}; }
};

/// The layers before which a stage may begin, and the network's end.
std::vector<std::size_t> places_to_cut(const Network& network) {
  std::vector<std::size_t> places{0};
  for (std::size_t i = 1; i < network.layers().size(); ++i)
    if (!connection_across(network, i)) places.push_back(i);
  places.push_back(network.layers().size());
  return places;
}

}  // namespace

std::vector<double> layer_work(const Network& network) {
  std::vector<double> work;
  bool is_first = true;
  for (const auto& layer : network.layers()) {
    if (layer->parameters().empty()) {
      work.push_back(2.0 * layer->output().features());
      continue;
    }
    work.push_back((is_first ? 2 : 3) * layer->flops_per_sample());
    is_first = false;
  }
  return work;
}

std::optional<ResidualConnection> connection_across(const Network& network, std::size_t layer) {
  const auto& layers = network.layers();
  for (std::size_t i = layer; i < layers.size(); ++i) {
    const auto from = layers[i]->branch();
    if (from && *from < layer) return ResidualConnection{layers[*from]->name(), layers[i]->name()};
  }
  return std::nullopt;
}

std::size_t most_stages(const Network& network) {
  return places_to_cut(network).size() - 1;
}

std::optional<std::vector<std::size_t>> balance_stages(const Network& network, std::size_t count) {
  const auto places = places_to_cut(network);
  if (count == 0 || count >= places.size()) return std::nullopt;
  const auto work = layer_work(network);
  const auto between = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = places[a]; i < places[b]; ++i) sum += work[i];
    return sum;
  };
  // best[s][p]: s stages that end at place p; begin[s][p]: where the last of them begins.
  std::vector best(count + 1, std::vector<Cost>(places.size()));
  std::vector begin(count + 1, std::vector<std::size_t>(places.size()));
  best[0][0] = {0, 0};
  for (std::size_t s = 1; s <= count; ++s) {
    for (std::size_t p = s; p < places.size(); ++p) {
      for (std::size_t from = s - 1; from < p; ++from) {
        const Cost cost = best[s - 1][from].with(between(from, p));
        if (cost < best[s][p]) {
          best[s][p] = cost;
          begin[s][p] = from;
        }
      }
    }
  }
  std::vector<std::size_t> begins(count);
  for (std::size_t s = count, p = places.size() - 1; s > 0; --s) {
    p = begin[s][p];
    begins[s - 1] = places[p];
  }
  return begins;
}

}  // namespace lockstep
