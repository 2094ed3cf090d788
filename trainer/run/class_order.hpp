// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Matching of a model's classes with those of a set that it was not trained on: by name.
#pragma once

#include "data/dataset.hpp"
#include "models/network.hpp"

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Gives the set's labels the numbers that the model has for them.
/// @param classes  the model's, by number
/// @returns what there is to say of it: "classes matched by name, no samples of bird". Empty: nothing
/// @throws UsageError  a class that the model does not know, or samples with several labels that lack one it knows
std::string number_as(const std::vector<std::string>& classes, TrainTestData& data);

/// Puts the rows of the last layer in the order of a set's classes.
/// @param weights  [network.parameters().weights_size()], answering for `known`
/// @returns what there is to say of it, also where the classes are others. Empty: nothing
/// @throws DataError  the classes have another order, and the last layer has no row for each
std::string order_last_layer(const Network& network, std::span<float> weights,
                             const std::vector<std::string>& known, const std::vector<std::string>& classes);

}  // namespace lockstep
