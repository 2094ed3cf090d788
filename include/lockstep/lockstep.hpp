// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All of the library but lockstep/gpu.hpp. Begin with Trainer (lockstep/trainer.hpp); with gradients of your own, with GradientReducer.
#pragma once

#include <lockstep/checkpoint.hpp>
#include <lockstep/communicator.hpp>
#include <lockstep/dataset.hpp>
#include <lockstep/device.hpp>
#include <lockstep/error.hpp>
#include <lockstep/gradient_reducer.hpp>
#include <lockstep/layer.hpp>
#include <lockstep/loss.hpp>
#include <lockstep/network.hpp>
#include <lockstep/optimizer.hpp>
#include <lockstep/shape.hpp>
#include <lockstep/trainer.hpp>
#include <lockstep/version.hpp>
