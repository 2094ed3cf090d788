// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Slices as packets of Perfetto's format: each track's in order, with a begin and an end for each slice.
#include "trace_schema.pb.h"
#include "trainer/run/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
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

/// By begin, the outer ones first.
std::vector<TimeSlice> slices_of(const Timeline& timeline, std::size_t track) {
  std::vector<TimeSlice> slices;
  for (const TimeSlice& slice : timeline.slices()) {
    if (slice.track == track) slices.push_back(slice);
  }
  std::ranges::stable_sort(slices, [](const TimeSlice& a, const TimeSlice& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  return slices;
}

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
