// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers of a random network as YAML.
#pragma once

#include "kernels/shapes.hpp"
#include "tests/models/random_networks/random_case.hpp"

#include <string>

namespace lockstep::test {

/// "layers: ...", valid for this input and number of classes. Every kind of layer, with options that fit the
/// image it meets. Little enough work that the emulator takes milliseconds a sample.
std::string random_layers(Dice& dice, const ImageShape& input, int classes);

}  // namespace lockstep::test
