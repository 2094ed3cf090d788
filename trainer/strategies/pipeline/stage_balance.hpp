// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cuts a network into stages of about equal work.
#pragma once

#include "models/network.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Operations of each layer to train on one sample; those without weights count their numbers once per
/// direction.
std::vector<double> layer_work(const Network& network);

/// A residual connection from a layer in front of a cut to one behind it.
struct Connection {
  std::string from, to;
};
/// @param layer  the first one behind the cut
std::optional<Connection> connection_across(const Network& network, std::size_t layer);

/// How many stages there can be: no connection is cut.
std::size_t most_stages(const Network& network);

/// The first layer of each stage: the cut whose largest stage is smallest, and among those the one whose
/// stages are most alike. Nothing if there are fewer places to cut.
std::optional<std::vector<std::size_t>> balance_stages(const Network& network, std::size_t count);

}  // namespace lockstep
