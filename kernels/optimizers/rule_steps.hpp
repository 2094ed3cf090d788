// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What rules_inl.hpp needs.
#pragma once

#include "kernels/optimizers/adam.hpp"
#include "kernels/optimizers/lars.hpp"
#include "kernels/optimizers/rmsprop.hpp"
#include "kernels/optimizers/sgd.hpp"
#include "kernels/optimizers/update_rule.hpp"

#include <cmath>
