// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training steps of many ranks in one process, under SimGrid's MPI. The trainer's own MpiPendingSum sends,
/// and time passes where the trainer would compute. Reads a StepPlan, prints a SimulatedStep.
#include "comm/communicator.hpp"
#include "comm/mpi/mpi_all_reduce.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "tests/scaling/step_plan.hpp"
#include "tests/support/prelude.hpp"

#include <simgrid/s4u.hpp>
#include <unistd.h>

#include <iostream>

namespace lockstep {

// The cluster as SimGrid has it.

/// Makes the platform. @returns the nodes in order
std::vector<simgrid::s4u::Host*> make_fat_tree(const Cluster& cluster);

namespace {

namespace s4u = simgrid::s4u;

constexpr const char* kInstance = "step";
/// Limit on the buckets of all ranks together. Above it all ranks share the same ones, and only time is added
/// up.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

/// Ranks that wait for each other in a circle would wait for ever.
constexpr unsigned kMostSeconds = 600;

double sum_bandwidth = 0;  // bytes a second, in this process's one simulation
bool adds_numbers = true;

/// The buckets of a rank, as many bytes as the trainer's.
using Buckets = std::vector<std::vector<std::int64_t>>;

Buckets make_buckets(const StepPlan& plan) {
  Buckets buckets;
  for (const PlannedBucket& bucket : plan.buckets) buckets.emplace_back(bucket.elements);
  return buckets;
}

/// One rank's program.
class SimulatedRank {
 public:
  SimulatedRank(const StepPlan& plan, int rank, Buckets& buckets)
      : plan_(plan), rank_(rank), buckets_(buckets) {
    std::mt19937_64 dice(static_cast<std::uint64_t>(rank));
    if (plan.spread > 0) factor_ = std::max(0.0, std::normal_distribution<double>(1, plan.spread)(dice));
  }

  void run() {
    for (auto& bucket : buckets_) std::ranges::fill(bucket, rank_ + 1);
    for (const Stretch& stretch : plan_.stretches) {
      s4u::this_actor::sleep_for(stretch.seconds * factor_);
      if (stretch.done) start_done(*stretch.done);
      poll();
    }
    while (!poll()) wait_for_any();
    check();
  }

  /// Seconds of a step.
  double computing() const {
    double seconds = 0;
    for (const Stretch& stretch : plan_.stretches) seconds += stretch.seconds * factor_;
    return seconds;
  }

 private:
  void start_done(std::size_t range) {
    for (std::size_t i = 0; i < plan_.buckets.size(); ++i) {
      if (plan_.buckets[i].last_range == range) start(i);
    }
  }
  void start(std::size_t i) {
    auto rounds = reduce_rounds(plan_.kind, plan_.cluster, rank_, buckets_[i].size(), sizeof(std::int64_t));
    pending_.push_back(std::make_unique<MpiPendingSum<std::int64_t>>(
        MPI_COMM_WORLD, static_cast<int>(i), std::move(rounds), std::span<const std::int64_t>(buckets_[i]),
        std::span(buckets_[i]), receive_buffers_));
  }
  /// @returns whether nothing is under way
  bool poll() {
    std::erase_if(pending_, [](const auto& sum) { return sum->test(); });
    return pending_.empty();
  }
  /// As the trainer, which tests again and again, but without the simulator's time for each of those.
  void wait_for_any() {
    std::vector<MPI_Request*> places;
    std::vector<MPI_Request> requests;
    for (const auto& sum : pending_) {
      for (MPI_Request& request : sum->requests()) {
        if (request == MPI_REQUEST_NULL) continue;
        places.push_back(&request);
        requests.push_back(request);
      }
    }
    int done = 0;
    LOCKSTEP_MPI(MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUS_IGNORE));
    *places[static_cast<std::size_t>(done)] = MPI_REQUEST_NULL;
  }
  void check() const {
    const std::int64_t ranks = plan_.cluster.ranks, sum = ranks * (ranks + 1) / 2;
    for (const auto& bucket : buckets_) {
      if (adds_numbers && std::ranges::count(bucket, sum) != static_cast<std::ptrdiff_t>(bucket.size()))
        throw InternalError(fmt::format("rank {}: a simulated all-reduce has a wrong sum", rank_));
    }
  }

  const StepPlan& plan_;
  int rank_;
  double factor_ = 1;  ///< scales the plan's times for this rank
  Buckets& buckets_;
  ReceiveBuffers receive_buffers_;
  std::vector<std::unique_ptr<MpiPendingSum<std::int64_t>>> pending_;
};

/// No factors that SimGrid would put on latency and bandwidth, and no time but what the plan says. What happens
/// within 50 ns happens at once: that changes what is exposed by half a percent and takes a third of the time.
void configure() {
  xbt_log_control_set("root.thres:error");
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:no", "network/TCP-gamma:0",
        "smpi/simulate-computation:no", "smpi/test:0", "surf/precision:5e-8", "contexts/stack-size:256"})
    s4u::Engine::set_config(setting);
}

SimulatedStep simulate(const StepPlan& plan) {
  const int ranks = plan.cluster.ranks;
  sum_bandwidth = plan.cluster.network.sum_bandwidth;
  std::size_t bytes = 0;
  for (const PlannedBucket& bucket : plan.buckets) bytes += bucket.elements * sizeof(std::int64_t);
  adds_numbers = bytes * static_cast<std::size_t>(ranks) <= kMostBytes;
  std::vector<Buckets> buckets(adds_numbers ? static_cast<std::size_t>(ranks) : 1, make_buckets(plan));

  SimulatedStep result;
  double slowest = 0;
  const auto nodes = make_fat_tree(plan.cluster);
  SMPI_app_instance_register(kInstance, nullptr, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    auto actor = s4u::Actor::init(fmt::format("rank{}", rank),
                                  nodes[static_cast<std::size_t>(plan.cluster.node_of(rank))]);
    actor->set_property("instance_id", kInstance);
    actor->set_property("rank", std::to_string(rank));
    actor->start([&, rank] {
      LOCKSTEP_MPI(MPI_Init(nullptr, nullptr));
      LOCKSTEP_MPI(MPI_Barrier(MPI_COMM_WORLD));
      const double start = s4u::Engine::get_clock();
      SimulatedRank program(plan, rank, buckets[adds_numbers ? static_cast<std::size_t>(rank) : 0]);
      program.run();
      result.total = std::max(result.total, s4u::Engine::get_clock() - start);
      slowest = std::max(slowest, program.computing());
      LOCKSTEP_MPI(MPI_Finalize());
    });
  }
  s4u::Engine::get_instance()->run();
  result.exposed = result.total - slowest;
  return result;
}

}  // namespace

/// In place of comm/sum_into.cpp's.
void add_up(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::span<std::int64_t> sum) {
  simgrid::s4u::this_actor::sleep_for(static_cast<double>(b.size_bytes()) / sum_bandwidth);
  if (!adds_numbers) return;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
}
void add_up(std::span<const float> a, std::span<const float> b, std::span<float> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
}

}  // namespace lockstep

int main(int argc, char** argv) {
  alarm(lockstep::kMostSeconds);
  try {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    const auto plan = lockstep::step_plan_from(text);
    simgrid::s4u::Engine engine(&argc, argv);
    lockstep::configure();
    SMPI_init();
    const auto step = lockstep::simulate(plan);
    SMPI_finalize();
    std::printf("{\"total\": %.9e, \"exposed\": %.9e}\n", step.total, step.exposed);
    return std::fflush(stdout) == 0 ? 0 : 74;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep_simulated_step: %s\n", error.what());
    return 70;
  }
}

namespace lockstep {

// A link of a node has the network's bandwidth and each link a share of the latency. What the ends cost
// stands before and behind them as links that are never full.

namespace {

namespace s4u = simgrid::s4u;

constexpr double kNeverFull = 1e15;  // bytes a second
constexpr double kNodeSpeed = 1e9;   // never used: computing is a matter of seconds here

s4u::FatTreeParams shape(const Cluster& cluster) {
  const auto leaf = static_cast<unsigned>(cluster.leaf_size()),
             leaves = static_cast<unsigned>(cluster.leaves());
  if (leaves == 1) return {1, {leaf}, {1}, {1}};
  return {2, {leaf, leaves}, {1, leaf}, {1, 1}};
}

}  // namespace

std::vector<s4u::Host*> make_fat_tree(const Cluster& cluster) {
  const NetworkConstants& network = cluster.network;
  std::vector<s4u::Host*> nodes;
  const auto add_node = [&nodes](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    nodes.push_back(zone->create_host("node" + std::to_string(id), kNodeSpeed)->seal());
    return std::make_pair(nodes.back()->get_netpoint(),
                          static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  const auto add_link = [](const char* name, double bandwidth, double latency) {
    return [=](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
      s4u::Link* link = zone->create_link(name + std::to_string(id), bandwidth);
      return link->set_latency(latency)->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)->seal();
    };
  };
  s4u::create_fatTree_zone("cluster", nullptr, shape(cluster),
                           {add_node, add_link("inside", network.local_bandwidth, network.local_latency),
                            add_link("end", kNeverFull, network.latency / 2)},
                           network.bandwidth, network.link_latency, s4u::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  return nodes;
}

}  // namespace lockstep
