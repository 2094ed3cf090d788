// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Views are exchanged as text; what ranks must have in common is compared as before a run.
#include "trainer/run/rank_diagnosis.hpp"

#include "comm/agreement.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/setup/job_setup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <system_error>

namespace lockstep {

namespace {

constexpr std::size_t kProbeBytes = 4 << 20;
constexpr std::chrono::milliseconds kProbeBudget{200};

namespace fs = std::filesystem;

/// Names the folder of all of them for a job whose directory is yet to be chosen.
std::string run_directory(const Job& job) {
  return job.run.dir == kChosenDirectory ? "runs" : job.run.dir;
}

/// Creates a file in a directory, or in its nearest existing parent. @returns its path; empty: it cannot be written
std::string make_mark(const std::string& directory) {
  auto path = existing_directory(directory) / fmt::format(".lockstep-doctor-{}-{}", host_name(), ::getpid());
  try {
    Env::posix().create(path);
    return path;
  } catch (const IoError&) {
    return "";
  }
}

/// Rank 0 puts a mark where its run directory is or will be; do the others see it?
bool sees_run_directory(Communicator& comm, const std::string& directory) {
  std::error_code ignored;
  const std::string mark = comm.rank() == 0 ? make_mark(directory) : "";
  const std::shared_ptr<void> at_the_end(nullptr, [&](void*) {
    if (!mark.empty()) fs::remove(mark, ignored);
  });
  const std::string path = gather_text(comm, mark).front();
  const bool seen = path.empty() || fs::exists(path, ignored);
  comm.barrier();
  return seen;
}

RankDevice device_of(const DeviceChoice& choice) {
  RankDevice device{choice.kind, choice.description, "", ""};
  if (choice.gpu == nullptr) return device;
  const auto& gpu = choice.gpu->device->properties();
  device.uuid = gpu.uuid;
  device.pci_bus = gpu.pci_bus;
  if (choice.kind == "cuda") device.driver = cuda::platform().versions();
  return device;
}

void add_launch(RankView& view, const Communicator& comm, const Job& job) {
  view.rank = comm.rank();
  view.local_rank = comm.local_rank();
  view.local_size = comm.local_size();
  view.world_size = comm.size();
  view.threads = job.parallel.threads;
  if (comm.backend() != "mpi") view.launcher.clear();  // its ranks are threads, whatever started the process
  view.versions["lockstep"] = LOCKSTEP_VERSION;
  if (const std::string mpi = comm.library(); !mpi.empty())
    view.versions["MPI"] = mpi.substr(0, mpi.find(','));
}

/// Every rank's view, on every rank. Collective.
/// @param thoroughly  also what writes to the disk: whether all hosts see the run directory
std::vector<RankView> exchange_views(Communicator& comm, const Job& job, const DeviceChoice& device,
                                     bool thoroughly) {
  RankView view = look_around(Surroundings::real());
  add_launch(view, comm, job);
  view.device = device_of(device);
  view.disk_free_bytes = disk_free(run_directory(job));
  if (thoroughly) view.sees_run_directory = sees_run_directory(comm, run_directory(job));
  comm.barrier();
  view.clock_seconds = now_seconds();
  std::vector<RankView> views;
  for (const std::string& message : gather_text(comm, json_text(view)))
    views.push_back(parse_json(message).get<RankView>());
  return views;
}

CheckResult attempt(const char* id, const char* healthy, const std::string& fix,
                    const std::function<void()>& action) {
  try {
    action();
    return {id, healthy, {}};
  } catch (const AgreedError& error) {
    return {id, healthy, {{error.what(), fix}}};
  }
}

/// Network and data of the job, as a run would load them.
void compare_setup(Communicator& comm, const Job& job, const DeviceChoice& device) {
  const DatasetFuture data = load_in_advance(job);
  RankFacts facts;
  agree(comm, [&] {
    const TrainTestData& sets = *data.get().sets;
    const Network network =
        Network::load(job.model, sets.train.shape, sets.train.classes, job.train.precision);
    facts = setup_facts(job, network, sets, device);
  });
  expect_equal_ranks(comm, facts);
}

}  // namespace

bool Diagnosis::healthy() const {
  return std::ranges::all_of(results, [](const CheckResult& r) { return r.findings.empty(); });
}

std::vector<CheckResult> run_checks(Views ranks, bool all) {
  std::vector<CheckResult> results;
  for (const Check& check : checks())
    if (all || check.before_every_run)
      results.push_back({check.id, check.healthy, check.find(ranks), missing(check.needs, ranks)});
  return results;
}

Diagnosis diagnose(Communicator& comm, const Job& job, bool data_too) {
  Diagnosis diagnosis;
  DeviceChoice device;
  auto& results = diagnosis.results;
  results.push_back(attempt("equal-ranks", "all ranks have the same program, libraries and job",
                            "install the same build on all hosts, and give all ranks one command line", [&] {
                              expect_equal_ranks(comm, program_facts("doctor", comm) + job_facts(job));
                            }));
  results.push_back(attempt("device", "every rank has its device",
                            "see 'lockstep devices' on that host, or set parallel.device=cpu", [&] {
                              device = choose_device(for_precision(job.parallel, job.train.precision), comm);
                            }));
  if (data_too && results.back().findings.empty())
    results.push_back(
        attempt("equal-data", "all ranks have the same network and data",
                script_command("get-data") + " on every host, or one LOCKSTEP_DATA that all share",
                [&] { compare_setup(comm, job, device); }));
  diagnosis.ranks = exchange_views(comm, job, device, true);
  std::ranges::move(run_checks(diagnosis.ranks, true), std::back_inserter(results));
  diagnosis.all_reduce = measure_latency(comm, kProbeBytes, kProbeBudget);
  return diagnosis;
}

void warn_before_run(Communicator& comm, const Job& job, const DeviceChoice& device) {
  const auto views = exchange_views(comm, job, device, false);
  if (comm.rank() != 0) return;
  for (const CheckResult& result : run_checks(views, false))
    for (const Finding& finding : result.findings)
      print_error(fmt::format("{}; {} ('lockstep doctor' has more)", finding.what, finding.fix));
}

}  // namespace lockstep
