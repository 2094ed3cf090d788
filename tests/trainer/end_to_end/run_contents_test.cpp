// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs write what the tables of docs/reference say: nothing else, and all of it.
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "trainer/run/run_events.hpp"

#include <regex>

namespace lockstep::testing {
namespace {

/// A row of a page's tables: what stands between its bars, and the last heading above.
struct Row {
  std::string heading;
  std::vector<std::string> cells;
};

/// The rows whose first cell is code, without its quotes: neither heads nor lines below them.
std::vector<Row> rows_of_page(const std::string& page) {
  std::ifstream lines(test::source_path("docs/reference/" + page));
  std::vector<Row> rows;
  std::string heading;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 2, end = line.find(" |", at); end != line.npos;
         at = end + 3, end = line.find(" |", at))
      cells.push_back(line.substr(at, end - at));
    cells[0] = cells[0].substr(1, cells[0].size() - 2);
    rows.push_back({heading, cells});
  }
  return rows;
}

/// A name as the tables have it: stage_0_in_flight is stage_N_in_flight.
std::string with_n(const std::string& name) {
  return std::regex_replace(name, std::regex("_[0-9]+_"), "_N_");
}

/// "whole number" and so on of a value, as the tables may call it.
bool is_of_type(const nlohmann::json& value, const std::string& type) {
  if (type == "whole number") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "number or null") return value.is_number() || value.is_null();
  if (type == "text") return value.is_string();
  if (type == "list of numbers") return value.is_array() && value.at(0).is_number();
  if (type == "list of texts") return value.is_array() && value.at(0).is_string();
  return type == "true or false" && value.is_boolean();
}

/// The fields of events that were seen, "end.pipeline.bubble", each with a value.
class SeenFields {
 public:
  void add(const nlohmann::json& event) {
    const std::string name = event.at("event");
    for (const auto& [field, value] : event.items()) {
      if (field == "event") continue;
      if (!value.is_object()) seen_[with_n(name + "." + field)] = value;
      if (!value.is_object()) continue;
      for (const auto& [inner, number] : value.items())
        seen_[with_n(name + "." + field + "." + inner)] = number;
    }
  }
  std::map<std::string, nlohmann::json> take() { return std::move(seen_); }

 private:
  std::map<std::string, nlohmann::json> seen_;
};

void train(const std::string& arguments) {
  succeed("train " + arguments);
}

const std::string kThreads = "parallel.device=cpu parallel.backend=thread parallel.ranks=2 train.epochs=1";

/// The events that the machine or the weights decide on are made here by the functions that runs call.
void add_rare_events(SeenFields& seen) {
  const RunState state;
  const Evaluations evaluations;
  seen.add(end_event(
      {.state = state, .evaluations = evaluations, .sha256 = "00", .published = {.same = true, .line = ""}}));
}

TEST(RunContentsTest, TheTableOfEventsHasWhatRunsWriteAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string job = write_small_job(directory);
  SeenFields seen;
  const auto see_run = [&](const std::string& name, const std::string& keys) {
    const std::string run = directory.path(name);
    train(job + " run.dir=" + run + " " + keys);
    for (const auto& event : read_metrics(run)) seen.add(event);
  };
  see_run("run", kThreads + " run.log_every_steps=1 run.print_loss_every_steps=1");
  write_text(directory.path("run/metrics.jsonl"), "");  // so that lines are lost
  see_run("run", kThreads + " train.epochs=2");
  see_run("pipeline", kThreads + " parallel.strategy=pipeline train.evaluate_every_steps=1");
  see_run("hogwild", kThreads + " parallel.strategy=hogwild parallel.determinism=off");
  see_run("patience",
          "train.epochs=3 train.patience=1 train.evaluate_every_steps=1 train.optimizer.lr=1e-9 "
          "data.validation=0.2");
  see_run("emulated", "parallel.device=emulated train.epochs=1");
  for (const std::string held_out : {"0", "0.2"})
    see_run("averages-" + held_out,
            "train.evaluate_every_steps=1 train.ema=0.9 train.swa.from_epoch=1 data.validation=" + held_out);
  write_text(
      directory.path("head.yaml"),
      "layers:\n  - conv2d: {name: conv1, out: 10, kernel: 5}\n  - linear: {name: head, out: classes}\n");
  see_run("further", kThreads + " train.partial=true train.initial_weights=" + directory.path("run") +
                         " model=" + directory.path("head.yaml"));
  see_run("int16", kThreads + " train.precision=int16");
  add_rare_events(seen);

  auto written = seen.take();
  for (const Row& row : rows_of_page("metrics.md")) {
    const std::string field = row.heading + "." + row.cells.at(0), type = row.cells.at(1);
    const auto found = written.extract(field);
    if (found.empty()) {
      ADD_FAILURE() << "no run writes " << field
                    << ": take it out of docs/reference/metrics.md, or write it here";
    } else {
      EXPECT_TRUE(is_of_type(found.mapped(), type))
          << field << " is " << found.mapped() << ", not a " << type;
    }
  }
  for (const auto& [field, value] : written)
    ADD_FAILURE() << "runs write " << field << ", which docs/reference/metrics.md does not have";
}

/// The names in a run directory, "checkpoints/step-N/manifest.json"; folders that hold anything end in a slash.
std::set<std::string> contents_of(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = std::filesystem::relative(entry.path(), directory).string();
    const std::string as_in_table =
        std::regex_replace(name, std::regex("(step-|previous-|verdict-|rank-|tfevents.)([0-9]+)"), "$1N");
    names.insert(as_in_table == "log/rank-N.log" ? "log/rank-0.log"
                                                 : as_in_table + (entry.is_directory() ? "/" : ""));
  }
  return names;
}

/// True if a file or its folder is a row of the table; `used` gets the row.
bool is_in_table(const std::vector<Row>& rows, const std::string& name, std::set<std::string>& used) {
  for (const Row& row : rows) {
    const std::string& path = row.cells.at(0);
    if (name != path && !(path.ends_with('/') && name.starts_with(path))) continue;
    used.insert(path);
    return true;
  }
  const auto leads_to = [&](const Row& row) {
    return name.ends_with('/') && row.cells.at(0).starts_with(name);
  };
  return std::ranges::any_of(rows, leads_to);
}

TEST(RunContentsTest, TheTableOfFilesHasWhatARunLeavesAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string job = write_small_job(directory), run = directory.path("run");
  const std::string on_two =
      " parallel.device=cpu train.epochs=1 run.curve=true run.tensorboard=true run.trace=1..2 run.dir=" + run;
  expect_says(lockstep_on_ranks(2, "train " + job + on_two), 0);
  train(job + on_two + " run.resume=never");  // previous-1
  const std::string last = run_shell("ls -d " + run + "/checkpoints/step-* | tail -n 1 | tr -d '\\n'").out;
  write_text(last + "/model.safetensors", "damaged");
  train(job + on_two + " train.epochs=2");
  // Left behind by a crash, a loss or a wrong rank alone.
  write_text(run + "/doubt.json", "");
  std::filesystem::create_directory(run + "/checkpoints/.tmp-step-00000099");
  for (const char* verdict : {"verdict.txt", "verdict-1.txt"}) write_text(run + "/log/" + verdict, "");

  const std::vector<Row> rows = rows_of_page("run-folder.md");
  std::set<std::string> used;
  for (const std::string& name : contents_of(run))
    EXPECT_TRUE(is_in_table(rows, name, used))
        << "a run leaves " << name << ", which docs/reference/run-folder.md does not have";
  for (const Row& row : rows)
    EXPECT_TRUE(used.contains(row.cells.at(0))) << "no run leaves " << row.cells.at(0);
}

}  // namespace
}  // namespace lockstep::testing
