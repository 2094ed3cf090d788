// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Clocks are compared when the window opens and when it closes; then every rank's packets come to rank 0.
#include "trainer/run/step_trace.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/output_file.hpp"
#include "common/text_layout.hpp"
#include "trace_schema.pb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace lockstep {
namespace {

/// Tag of clock requests and of packets; different from that of collectives.
constexpr int kTraceTag = PointToPoint::kTags - 2;
constexpr int kClockRounds = 16;

std::span<std::byte> bytes_of(std::int64_t& number) {
  return std::as_writable_bytes(std::span(&number, 1));
}

/// On the rank that is compared: the middle of a round trip is when rank 0 looked at its clock.
ClockReading ask_rank_0(Communicator& comm, const std::function<std::int64_t()>& now) {
  ClockReading best;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < kClockRounds; ++round) {
    std::int64_t time = now();
    const std::int64_t asked = time;
    comm.send(bytes_of(time), 0, kTraceTag);
    comm.receive(bytes_of(time), 0, kTraceTag);
    const std::int64_t took = now() - asked;
    if (took >= shortest) continue;
    shortest = took;
    best = {.at_ns = asked + took / 2, .ahead_ns = asked + took / 2 - time};
  }
  return best;
}

void answer(Communicator& comm, int rank, const std::function<std::int64_t()>& now) {
  for (int round = 0; round < kClockRounds; ++round) {
    std::int64_t time = 0;
    comm.receive(bytes_of(time), rank, kTraceTag);
    time = now();
    comm.send(bytes_of(time), rank, kTraceTag);
  }
}

}  // namespace

std::vector<std::string> machines_of(Communicator& comm) {
  const std::string boot = host_boot_id();
  return gather_text(comm, boot.empty() ? comm.host() : boot);
}

ClockReading compare_clocks(Communicator& comm, const std::vector<std::string>& machines,
                            const std::function<std::int64_t()>& now) {
  ClockReading own{.at_ns = now(), .ahead_ns = 0};
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (at(machines, rank) == machines.front()) continue;
    if (comm.rank() == 0) answer(comm, rank, now);
    if (comm.rank() == rank) own = ask_rank_0(comm, now);
  }
  return own;
}

std::int64_t ClockLine::of_rank_0(std::int64_t ns) const {
  const std::int64_t between = end.at_ns - begin.at_ns;
  const double drift =
      between <= 0 ? 0 : static_cast<double>(end.ahead_ns - begin.ahead_ns) / static_cast<double>(between);
  return ns - begin.ahead_ns - static_cast<std::int64_t>(drift * static_cast<double>(ns - begin.at_ns));
}

WrittenTrace write_trace(Communicator& comm, const Timeline& timeline, const ClockLine& clock,
                         const std::string& path, bool replace) {
  std::string packets = trace_packets(timeline, comm.rank(), comm.host(), clock);
  const std::array<std::int64_t, 3> mine = {static_cast<std::int64_t>(packets.size()),
                                            static_cast<std::int64_t>(timeline.slices().size()),
                                            timeline.lost()};
  const auto sizes = gather(comm, std::span<const std::int64_t>(mine));
  if (comm.rank() != 0) {
    comm.send(std::as_bytes(std::span(packets)), 0, kTraceTag);
    return {};
  }
  WrittenTrace written;
  std::optional<OutputFile> file;
  const auto attempt = [&](const auto& action) {  // after the first error packets are only taken
    if (!written.error.empty()) return;
    try {
      action();
    } catch (const Error& error) {
      written.error = error.what();
      file.reset();
    }
  };
  attempt([&] { file.emplace(Env::posix(), path, replace); });
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto& of_rank = at(sizes, rank);
    if (rank > 0) {
      packets.resize(static_cast<std::size_t>(of_rank[0]));
      comm.receive(std::as_writable_bytes(std::span(packets)), rank, kTraceTag);
    }
    attempt([&] { file->write(std::as_bytes(std::span(packets))); });
    written.slices += of_rank[1];
    written.lost += of_rank[2];
  }
  attempt([&] { file->publish(); });
  return written;
}

// The window.

namespace {

/// Null, unless the job traces steps.
Timeline* make_timeline(const Job& job, Communicator& comm) {
  if (!job.run.trace.is_given()) return nullptr;
  comm.activity().trace_with(std::make_unique<Timeline>());
  comm.activity().timeline()->thread_track();
  return comm.activity().timeline();
}

}  // namespace

void require_traced_steps(const Job& job, std::int64_t steps) {
  if (job.run.trace.first > steps)
    throw key_error(job, "run.trace",
                    fmt::format("{}..{}: the run has {}; name some of them", job.run.trace.first,
                                job.run.trace.last, counted(steps, "step")));
}

StepTrace::StepTrace(const Job& job, Communicator& comm)
    : steps_(job.run.trace), comm_(comm), timeline_(make_timeline(job, comm)) {}

std::int64_t StepTrace::series_from(std::int64_t taken, std::int64_t count) const {
  if (timeline_ == nullptr || taken >= steps_.last) return count;
  const std::int64_t end = taken + 1 < steps_.first ? steps_.first - 1 : steps_.last;
  return std::min(count, end - taken);
}

std::string StepTrace::before_step(std::int64_t step, const std::string& directory) {
  if (timeline_ == nullptr) return "";
  if (timeline_->is_open()) return step > steps_.last ? write(steps_.last, directory) : "";
  if (!steps_.holds(step)) return "";
  clock_.begin = compare_clocks(comm_, machines_of(comm_));
  first_ = step;
  timeline_->open();
  return "";
}

std::string StepTrace::end(std::int64_t steps_taken, const std::string& directory) {
  if (timeline_ == nullptr) return "";
  if (timeline_->is_open()) return write(std::clamp(steps_taken, first_, steps_.last), directory);
  if (first_ > 0) return "";
  return fmt::format("trace: none, since this start took no step of {}..{}", steps_.first, steps_.last);
}

std::string StepTrace::write(std::int64_t last_step, const std::string& directory) {
  timeline_->close();
  clock_.end = compare_clocks(comm_, machines_of(comm_));
  const std::string path = directory + "/" + kTraceFile;
  const WrittenTrace trace = write_trace(comm_, *timeline_, clock_, path, true);
  if (comm_.rank() == 0 && !trace.error.empty()) {
    print_error(
        fmt::format("warning: the trace is not written, the run goes on without it: {}", trace.error));
    return "";
  }
  const std::string lost = trace.lost == 0 ? ""
                                           : fmt::format(", and {} more were beyond the memory for them",
                                                         with_thousands(trace.lost));
  return fmt::format("trace: steps {}..{} of {} in {} ({}{}); open it in ui.perfetto.dev", first_, last_step,
                     counted(comm_.size(), "rank"), path, counted(trace.slices, "slice"), lost);
}

// Slices as packets of Perfetto's format: each track's in order, with a begin and an end for each slice.

namespace {

/// Packets are made so many at a time: as objects they take several times what they take as bytes.
constexpr int kPacketsAtOnce = 4096;
constexpr std::uint64_t kTracksOfRank = std::uint64_t{1} << 20;
constexpr std::uint32_t kIncrementalStateCleared = 1;

class PacketWriter {
 public:
  PacketWriter(int rank, const ClockLine& clock)
      : clock_(clock), pid_(rank + 1), first_track_(static_cast<std::uint64_t>(pid_) * kTracksOfRank) {}

  void process(const std::string& name) {
    perfetto::TracePacket& packet = add();
    packet.set_sequence_flags(kIncrementalStateCleared);
    perfetto::TrackDescriptor& track = *packet.mutable_track_descriptor();
    track.set_uuid(first_track_);
    track.mutable_process()->set_pid(pid_);
    track.mutable_process()->set_process_name(name);
  }

  void track(std::size_t number, const TimeTrack& described) {
    perfetto::TrackDescriptor& track = *add().mutable_track_descriptor();
    track.set_uuid(uuid(number));
    track.set_parent_uuid(first_track_);
    if (!described.is_thread()) return track.set_name(described.name);
    track.mutable_thread()->set_pid(pid_);
    track.mutable_thread()->set_tid(pid_ * 10000 + static_cast<int>(number));
    track.mutable_thread()->set_thread_name(described.name);
  }

  void begin(const TimeSlice& slice) {
    perfetto::TrackEvent& event = add_event(slice.begin_ns, slice.track);
    event.set_type(perfetto::TrackEvent::TYPE_SLICE_BEGIN);
    event.add_categories(std::string(work_name(slice.work)));
    event.set_name(describe(slice));
  }

  void end(std::int64_t ns, std::size_t track) {
    add_event(ns, track).set_type(perfetto::TrackEvent::TYPE_SLICE_END);
  }

  std::string take() {
    flush();
    return std::move(bytes_);
  }

 private:
  std::uint64_t uuid(std::size_t track) const { return first_track_ + 1 + track; }

  perfetto::TracePacket& add() {
    if (trace_.packet_size() == kPacketsAtOnce) flush();
    perfetto::TracePacket& packet = *trace_.add_packet();
    packet.set_trusted_packet_sequence_id(static_cast<std::uint32_t>(pid_));
    return packet;
  }

  perfetto::TrackEvent& add_event(std::int64_t ns, std::size_t track) {
    perfetto::TracePacket& packet = add();
    packet.set_timestamp(static_cast<std::uint64_t>(std::max<std::int64_t>(0, clock_.of_rank_0(ns))));
    packet.mutable_track_event()->set_track_uuid(uuid(track));
    return *packet.mutable_track_event();
  }

  void flush() {
    trace_.AppendToString(&bytes_);
    trace_.Clear();
  }

  ClockLine clock_;
  int pid_;
  std::uint64_t first_track_;
  perfetto::Trace trace_;
  std::string bytes_;
};

void write_track(PacketWriter& writer, const Timeline& timeline, std::size_t track) {
  std::vector<std::int64_t> ends;
  const auto close_until = [&](std::int64_t ns) {
    for (; !ends.empty() && ends.back() <= ns; ends.pop_back()) writer.end(ends.back(), track);
  };
  for (const TimeSlice& slice : slices_of(timeline, track)) {
    close_until(slice.begin_ns);
    writer.begin(slice);
    ends.push_back(ends.empty() ? slice.end_ns : std::min(slice.end_ns, ends.back()));
  }
  close_until(std::numeric_limits<std::int64_t>::max());
}

}  // namespace

std::vector<TimeSlice> slices_of(const Timeline& timeline, std::size_t track) {
  std::vector<TimeSlice> slices;
  for (const TimeSlice& slice : timeline.slices())
    if (slice.track == track) slices.push_back(slice);
  std::ranges::stable_sort(slices, [](const TimeSlice& a, const TimeSlice& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  return slices;
}

std::string trace_packets(const Timeline& timeline, int rank, const std::string& host,
                          const ClockLine& clock) {
  PacketWriter writer(rank, clock);
  writer.process(fmt::format("rank {} ({})", rank, host));
  for (std::size_t track = 0; track < timeline.tracks().size(); ++track) {
    writer.track(track, timeline.tracks()[track]);
    write_track(writer, timeline, track);
  }
  return writer.take();
}

}  // namespace lockstep
