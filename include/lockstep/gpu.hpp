// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// GPUs for a Trainer. In the target lockstep::gpu, which brings lockstep::lockstep along.
#pragma once

#include <lockstep/communicator.hpp>
#include <lockstep/device.hpp>
#include <lockstep/version.hpp>

#include <string>

/// The folder with lockstep_nccl.so; "": it is looked for beside the program. CMake's target defines it.
#ifndef LOCKSTEP_PLUGIN_FOLDER
#define LOCKSTEP_PLUGIN_FOLDER ""
#endif

LOCKSTEP_BEGIN_NAMESPACE

/// This rank's GPU, and a path for its gradients: NCCL where each rank has a GPU to itself, otherwise MPI. Collective:
/// all ranks ask for the same. The communicator must outlive the device.
/// @param name  "auto": GPUs where every rank can use one, otherwise CPU cores; "cuda": the one of the rank's place on its
///              host; "cuda:N"; "emulated": a GPU in host code, slow, with the same bits; "cpu"
/// @throws ConfigError  another name; DeviceError  a rank cannot use that: says why, and what to do
Device gpu(Communicator& comm, const std::string& name = "auto",
           const std::string& plugins = LOCKSTEP_PLUGIN_FOLDER);

LOCKSTEP_END_NAMESPACE
