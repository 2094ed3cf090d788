// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A search over the places where the network may be cut: stages so far, and where the last of them ends.
#include "trainer/strategies/pipeline/stage_balance.hpp"

#include "models/layer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep {
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
  for (std::size_t i = 1; i < network.layers().size(); ++i) {
    if (!connection_across(network, i)) places.push_back(i);
  }
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

std::optional<Connection> connection_across(const Network& network, std::size_t layer) {
  const auto& layers = network.layers();
  for (std::size_t i = layer; i < layers.size(); ++i) {
    const auto from = layers[i]->branch();
    if (from && *from < layer) return Connection{layers[*from]->name(), layers[i]->name()};
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
