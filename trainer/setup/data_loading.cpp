// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loads data while the rest is set up, and hands it from a host's first rank to the others.
#include "trainer/setup/data_loading.hpp"

#include "comm/agreement.hpp"
#include "comm/launcher.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/sets/leave_out.hpp"
#include "data/shared_set.hpp"
#include "trainer/setup/job_setup.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

DatasetOptions dataset_options(const Job& job) {
  DatasetOptions options = job.data;
  options.seed = job.train.seed;
  // Jobs that were not read from a file have not read the list either.
  if (options.leave_out == nullptr && !job.data.leave_out_file.empty())
    options.leave_out = std::make_shared<const LeaveOutList>(read_leave_out(job.data.leave_out_file));
  options.cache = user_cache();
  return options;
}

namespace {

TrainTestData load_for(const Job& job, const DatasetOptions& options) {
  return with_places(job, [&] { return load_dataset(options); });
}

/// A future of the exception that is being caught.
DatasetFuture failure() {
  std::promise<LoadedData> failed;
  failed.set_exception(std::current_exception());
  return failed.get_future().share();
}

}  // namespace

PartSizes parts_of(const Job& job, PartSizes files) {
  return with_places(job, [&] {
    const DatasetOptions options = dataset_options(job);
    if (options.leave_out) {
      check_left_out(*options.leave_out, files.train);
      files.train -= std::ssize(options.leave_out->entries);
    }
    return part_sizes(options, files);
  });
}

DatasetFuture load_in_advance(const Job& job, DataCopy copy, const std::string& remembered) {
  // All three read the environment, so not on the other thread: MPI_Init may be changing it meanwhile.
  DatasetOptions options = dataset_options(job);
  const Launch launch = this_launch();
  try {
    options.directory =
        resolve_data_root(options.set, options.root, options.root == "auto" ? remembered : "");
  } catch (const Error&) {
    return failure();
  }
  const bool compared_soon = !remembered.empty() && launch.rank == 0;
  const bool shares = copy == DataCopy::kOfHost && launch.world_size > 1 && launch.local_size > 1 &&
                      !job.inject.is_given();  // a fault in the data is one rank's
  return start_async([=] {
           LoadedData loaded{.sets = std::make_shared<TrainTestData>(), .options = options};
           loaded.fingerprints = std::make_shared<LazyFingerprints>(loaded.sets);
           if (shares && launch.local_rank > 0 && loads_into_memory(options)) return loaded;
           *loaded.sets = load_for(job, options);
           if (shares && launch.local_rank == 0) loaded.of_host = move_to_memory_file(*loaded.sets);
           if (compared_soon) loaded.fingerprints->start();
           return loaded;
         })
      .share();
}

// Ranks hear from each other while they wait. A first pass over millions of pictures takes longer than they wait for
// each other.

bool has_ended(const DatasetFuture& data, std::chrono::duration<double> within) {
  return data.wait_for(within) == std::future_status::ready;
}

namespace {

/// Until it is so on all ranks, or one has failed. @returns whether none has
bool await_all(Communicator& comm, const DatasetFuture& data) {
  const auto pulse = std::min<std::chrono::duration<double>>(std::chrono::seconds(1), comm.timeout() / 4);
  for (std::array<std::int64_t, 2> waiting_and_failed{1, 0}; waiting_and_failed[0] > 0;) {
    const bool there = has_ended(data, pulse);
    waiting_and_failed = {there ? 0 : 1, 0};
    if (there) {
      try {
        static_cast<void>(data.get());
      } catch (...) {  // thrown again, once all know
        waiting_and_failed[1] = 1;
      }
    }
    comm.all_reduce(std::span<std::int64_t>(waiting_and_failed));
    if (waiting_and_failed[1] > 0) return false;
  }
  return true;
}

bool all_have(Communicator& comm, const LoadedData& loaded) {
  std::int64_t without = loaded.is_here() ? 0 : 1;
  comm.all_reduce(std::span(&without, 1));
  return without == 0;
}

/// That of the lowest rank of this host that has made some, mapped in this process. Collective.
/// @returns null: there is none to be had
std::shared_ptr<MemoryFile> memory_of_host(Communicator& comm, const std::shared_ptr<MemoryFile>& mine) {
  const auto offers = gather(comm, mine != nullptr ? mine->offer() : MemoryFileOffer{});
  const auto hosts = gather_hosts(comm);
  std::size_t rank = 0;
  while (rank < hosts.size() && (hosts[rank] != comm.host() || offers[rank].pid == 0)) ++rank;
  std::shared_ptr<MemoryFile> found;
  if (rank < hosts.size())
    found = static_cast<int>(rank) == comm.rank() ? mine : MemoryFile::open(offers[rank]);
  comm.barrier();  // until then the makers hold it
  return found;
}

void take_from_host(Communicator& comm, const LoadedData& loaded) {
  const auto memory = memory_of_host(comm, loaded.of_host);
  if (loaded.is_here() || memory == nullptr) return;
  TrainTestData sets = set_in(memory);
  if (sets.directory == loaded.options.directory) *loaded.sets = std::move(sets);
}

DatasetFuture load_now(const Job& job, const LoadedData& loaded) {
  try {
    return start_async([=] {
             *loaded.sets = load_for(job, loaded.options);
             return loaded;
           })
        .share();
  } catch (const Error&) {
    return failure();
  }
}

}  // namespace

DatasetFuture await_data(const Job& job, Communicator& comm, const DatasetFuture& in_advance) {
  if (!await_all(comm, in_advance) || all_have(comm, in_advance.get())) return in_advance;
  const LoadedData& loaded = in_advance.get();
  take_from_host(comm, loaded);
  if (all_have(comm, loaded)) return in_advance;
  DatasetFuture own = loaded.is_here() ? in_advance : load_now(job, loaded);
  await_all(comm, own);
  return own;
}

// The checks of sets on disk.

void share_checks(Communicator& comm, const TrainTestData& sets) {
  std::vector<const SampleStore*> stores;
  for (const Dataset* set : {&sets.train, &sets.test, &sets.validation})
    for (const auto& store : {set->store, set->rows})
      if (store != nullptr && std::ranges::count(stores, store.get()) == 0) stores.push_back(store.get());
  if (stores.empty()) return;
  const auto processes = gather(comm, ::getpid());
  if (std::ranges::count(processes, ::getpid()) == comm.size()) return;
  for (const SampleStore* store : stores)
    if (const auto memory = memory_of_host(comm, store->make_shared_checks())) store->share_checks(memory);
}

}  // namespace lockstep
