// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The job's data set on every rank: loaded in the background, and where it lies in memory, once a host.
#pragma once

#include "comm/communicator.hpp"
#include "common/memory_file.hpp"
#include "data/dataset.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/set_loading.hpp"
#include "trainer/config/job.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <string>

namespace lockstep {

/// A job's options for load_dataset.
DatasetOptions dataset_options(const Job& job);
/// Parts that the job takes of halves of so many samples, of which it leaves some out.
/// @throws ConfigError  as part_sizes and check_left_out
PartSizes parts_of(const Job& job, PartSizes files);

struct LoadedData {
  std::shared_ptr<TrainTestData> sets;  ///< constant for all but faults on purpose
  std::shared_ptr<LazyFingerprints> fingerprints = {};
  DatasetOptions options = {};               ///< with which `sets` are loaded
  std::shared_ptr<MemoryFile> of_host = {};  ///< holds the samples for the other ranks of this host; or null

  /// False: they come from the host's first rank, with await_data.
  bool is_here() const { return sets->train.size() > 0; }
};

/// A data set on its way into memory; the ranks of one process share it.
using DatasetFuture = std::shared_future<LoadedData>;

/// The memory in which the sets of a process lie.
enum class DataCopy {
  kOwn,
  kOfHost,  ///< its first rank loads what fits into memory, as far as the launcher says which that is; then await_data
};

/// Starts loading the job's data set on a thread of its own. So it is there when MPI is up.
/// @param remembered  where data.root=auto looks first, because the run had its data there; or empty. If not,
///                    rank 0 will compare them, and its fingerprints are begun, too
DatasetFuture load_in_advance(const Job& job, DataCopy copy = DataCopy::kOwn,
                              const std::string& remembered = "");

/// True once it has come, or has failed to.
bool has_ended(const DatasetFuture& data, std::chrono::duration<double> within = {});

/// Waits until every rank has its data, or one has failed to get it. A rank whose host's first one has no memory to give
/// loads its own now. Collective.
/// @returns what to get() now: of a rank that failed an exception, of others it may not be there yet or not be here
DatasetFuture await_data(const Job& job, Communicator& comm, const DatasetFuture& in_advance);

/// Sets on disk compare their blocks as they are read: the processes of a host do so once between them. Collective: all
/// ranks have the same sets.
void share_checks(Communicator& comm, const TrainTestData& sets);

}  // namespace lockstep
