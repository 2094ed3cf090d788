// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A set in memory, once for all processes of a host. One loads it and moves it into memory that the others map.
///
/// That memory holds, from multiples of MemoryFile::kPartAlignment on:
///
///   the head              every field of the set in the order of SetFields, of images and features only their number
///   images and features   of train, test and validation, those that there are
///
/// It is read by the program that wrote it: by ranks that have compared their programs. Its contents were
/// checked when it was loaded, and is not checked again.
#pragma once

#include "common/memory_file.hpp"
#include "data/dataset.hpp"

#include <memory>

namespace lockstep {

/// Moves a set into such memory. Samples are only read from then on: a write is a SIGSEGV.
/// @param data  as load_dataset returned it; its images or features lie in that memory then, and for a moment twice
/// @returns null: parts of it stay on disk, or the host has no such memory. The set is as it was then
std::shared_ptr<MemoryFile> move_to_memory_file(TrainTestData& data);

/// The set that another process moved there. Opens no file; copies all but images and features, which keep the memory.
/// @throws InternalError  there is no whole set in it
TrainTestData set_in(const std::shared_ptr<MemoryFile>& memory);

}  // namespace lockstep
