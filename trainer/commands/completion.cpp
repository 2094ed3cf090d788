// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What may come next in a command line: commands, options, keys and their values, jobs, runs.
#include "common/error.hpp"
#include "common/yaml.hpp"
#include "data/sets/catalogue.hpp"
#include "models/network.hpp"
#include "trainer/commands/command_text.hpp"
#include "trainer/commands/reference.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/reports/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The answer as it grows: words that go on from what was typed.
struct Completion {
  std::string typed;
  std::vector<std::string> lines = {};

  void add(const std::string& word, std::string_view meaning = "") {
    if (word.starts_with(typed)) lines.push_back(fmt::format("{}\t{}", word, meaning));
  }
  void ask_for(std::string_view kind) { lines.push_back(fmt::format(":{}", kind)); }
};

bool is_run(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path / "checkpoints", ignored) || fs::is_regular_file(path / "job.yaml", ignored);
}

/// The runs whose names may go on from what was typed: in its folder, and where there is none in runs/, too.
std::vector<std::string> runs_from(const std::string& typed) {
  const std::size_t slash = typed.rfind('/');
  std::vector<std::string> folders = {slash == typed.npos ? "" : typed.substr(0, slash + 1)};
  if (folders.front().empty()) folders.emplace_back("runs/");
  std::vector<std::string> runs;
  for (const std::string& folder : folders) {
    std::error_code error;
    fs::directory_iterator entries(folder.empty() ? "." : folder, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error))
      if (is_run(entries->path())) runs.push_back(folder + entries->path().filename().string());
  }
  std::ranges::sort(runs);
  return runs;
}

void add_runs(Completion& answer) {
  for (const std::string& run : runs_from(answer.typed)) answer.add(run, "a run");
  answer.ask_for("folders");
}

/// RUN@ema and RUN@swa, of a run whose job asks for them.
void add_averages(Completion& answer, const std::string& front, const std::string& run) {
  try {
    const auto job = flat_job(read_yaml_file(run + "/job.yaml"), run);
    for (const auto& [name, key] : {std::pair{"ema", "train.ema"}, {"swa", "train.swa.from_epoch"}})
      if (const auto asked = job.find(key); asked != job.end() && asked->second != "0")
        answer.add(front + run + "@" + name, "an average of its weights");
  } catch (const Error&) {
    return;
  }
}

/// RUN, RUN@best, and once the @ is typed every checkpoint by its step.
/// @param front  the key whose value it is, with its =; no run goes on from an average
void add_checkpoints(Completion& answer, const std::string& front = "") {
  const std::string typed = answer.typed.substr(front.size());
  const std::size_t at = typed.find('@');
  for (const std::string& run : runs_from(typed.substr(0, at))) {
    answer.add(front + run, "a run: its newest checkpoint");
    answer.add(front + run + "@best", "its checkpoint of the highest accuracy");
    answer.add(front + run + "@last", "its newest checkpoint");
    if (at != typed.npos && !front.starts_with("run.resume")) add_averages(answer, front, run);
    std::error_code error;
    fs::directory_iterator entries(at == typed.npos ? "" : run + "/checkpoints", error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      const std::size_t digit = name.find_first_of("123456789");
      if (name.starts_with("step-") && digit != name.npos && name.find('.') == name.npos)
        answer.add(fmt::format("{}{}@step:{}", front, run, name.substr(digit)),
                   "its checkpoint of this step");
    }
  }
  answer.ask_for("folders");
}

/// Job files of the folder that is typed, and jobs that come with the program by name; any file where neither goes on
/// from what was typed.
void add_jobs(Completion& answer) {
  const std::size_t slash = answer.typed.rfind('/');
  const std::string folder = slash == answer.typed.npos ? "" : answer.typed.substr(0, slash + 1);
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path name = entries->path().filename();
    const bool is_yaml = name.extension() == ".yaml" || name.extension() == ".yml";
    if (is_yaml && !find_unprintable(name.string())) files.push_back(folder + name.string());
  }
  std::ranges::sort(files);
  if (folder.empty())
    for (const std::string& job : shipped_jobs())
      if (const std::string name = fs::path(job).stem();
          std::ranges::find(files, name + ".yaml") == files.end())
        answer.add(name, "a job of Lockstep's own");
  for (const std::string& file : files) answer.add(file, "a file");
  answer.ask_for(answer.lines.empty() ? "files" : "folders");
}

void add_values_of_key(Completion& answer, const JobKey& key) {
  const std::string front = key.path + "=";
  for (const std::string& word : value_words(key)) answer.add(front + word);
  if (key.path == "model")
    for (const std::string& model : known_models()) answer.add(front + model, "a network of Lockstep's own");
  if (key.path == "train.initial_weights" || key.path == "run.resume") add_checkpoints(answer, front);
  if (takes_path(key)) answer.ask_for("files");
}

void add_keys(Completion& answer, std::string_view behind = "=") {
  const std::size_t equals = answer.typed.find('=');
  if (equals != answer.typed.npos) {
    if (const JobKey* key = find_job_key(answer.typed.substr(0, equals))) add_values_of_key(answer, *key);
    return;
  }
  for (const JobKey& key : job_schema()) answer.add(fmt::format("{}{}", key.path, behind), key.meaning);
}

void add_topics(Completion& answer, const CLI::App& app) {
  for (const NamedCommand& command : commands_of(app))
    if (command.name.find(' ') == command.name.npos)
      answer.add(command.name, command.command->get_description());
  add_keys(answer, "");
}

void add_sets(Completion& answer) {
  for (const std::string_view name : set_names()) answer.add(std::string(name), "a data set");
}

void add_devices(Completion& answer) {
  for (const std::string& word : value_words(*find_job_key("parallel.device"))) answer.add(word);
}

/// What options and arguments of some names take. Others take files.
using AddValues = void (*)(Completion&);
constexpr auto kValues = std::to_array<std::pair<std::string_view, AddValues>>({
    {"job", add_jobs},
    {"overrides", [](Completion& answer) { add_keys(answer); }},
    {"checkpoint", [](Completion& answer) { add_checkpoints(answer); }},
    {"a", [](Completion& answer) { add_checkpoints(answer); }},
    {"b", [](Completion& answer) { add_checkpoints(answer); }},
    {"run", add_runs},
    {"runs", add_runs},
    {"--take-over", add_runs},
    {"--where", [](Completion& answer) { add_keys(answer); }},
    {"--set", add_sets},
    {"--device", add_devices},
    {"directory", [](Completion& answer) { answer.ask_for("folders"); }},
    {"--data,--root", [](Completion& answer) { answer.ask_for("folders"); }},
    {"--data", [](Completion& answer) { answer.ask_for("folders"); }},
});

void add_values(Completion& answer, const CommandOption& option) {
  for (const std::string& choice : option.choices) answer.add(choice);
  if (!option.choices.empty()) return;
  const auto* values = std::ranges::find(kValues, option.name, [](const auto& entry) { return entry.first; });
  if (values != kValues.end()) return values->second(answer);
  if (!option.takes_more_than_text()) answer.ask_for("files");
}

/// The option of this name, or null.
const CommandOption* option_called(const std::vector<CommandOption>& options, const std::string& word) {
  for (const CommandOption& option : options)
    if (word.size() > 1 && ("," + option.name + ",").find("," + word + ",") != std::string::npos)
      return &option;
  return nullptr;
}

void add_options(Completion& answer, const std::vector<CommandOption>& options) {
  for (const CommandOption& option : options) {
    if (option.is_argument) continue;
    const std::size_t longest = option.name.find("--");
    answer.add(option.name.substr(longest, option.name.find(',', longest) - longest), option.meaning);
  }
  answer.add("--help", "what this command does, and its options");
}

/// The command that the words begin with, and how many of them name it.
std::pair<const CLI::App*, std::size_t> command_in(const CLI::App& app,
                                                   const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::size_t count = 0;
  for (; count + 1 < words.size(); ++count) {
    const auto below = command->get_subcommands(nullptr);
    const auto next = std::ranges::find(below, words[count], [](const CLI::App* a) { return a->get_name(); });
    if (next == below.end()) break;
    command = *next;
  }
  return {command, count};
}

/// The argument that stands at the end of these words, or null: none is expected there.
const CommandOption* argument_at_end(const std::vector<CommandOption>& options,
                                     const std::vector<std::string>& words, std::size_t first) {
  std::size_t number = 0;
  for (std::size_t i = first; i + 1 < words.size(); ++i) {
    const CommandOption* option = option_called(options, words[i]);
    if (option != nullptr && option->takes_value()) ++i;
    if (option == nullptr && !words[i].starts_with("-")) ++number;
  }
  const CommandOption* last = nullptr;
  for (const CommandOption& option : options) {
    if (!option.is_argument) break;
    last = &option;
    if (option.many || number-- == 0) return last;
  }
  return nullptr;
}

}  // namespace

std::string completions(const CLI::App& app, const std::vector<std::string>& words) {
  Completion answer{words.empty() ? "" : words.back()};
  const auto [command, first] = command_in(app, words);
  const auto options = options_of(*command);
  const CommandOption* before =
      words.size() < first + 2 ? nullptr : option_called(options, words[words.size() - 2]);
  const CommandOption* argument = argument_at_end(options, words, first);
  for (const CLI::App* next : command->get_subcommands(nullptr))
    if (!next->get_group().empty()) answer.add(next->get_name(), next->get_description());
  if (before != nullptr && before->takes_value()) {
    add_values(answer, *before);
  } else if (answer.typed.starts_with("-")) {
    add_options(answer, options);
  } else if (argument != nullptr && argument->name == "about") {
    add_topics(answer, app);
  } else if (argument != nullptr) {
    add_values(answer, *argument);
  }
  std::string text;
  for (const std::string& line : answer.lines) text += line + "\n";
  return text;
}

// The scripts of bash, zsh and fish: each hands the words to the program, and shows its answer as the shell does.

namespace {

constexpr std::string_view kBashScript = R"SCRIPT(# shellcheck shell=bash
# Completion of lockstep in bash. Made by: lockstep reference completion bash
_lockstep() {
  local line=${COMP_LINE:0:COMP_POINT} words=() found=() ask='' word program typed last breaks
  [ -n "${COMP_LINE-}" ] || line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=('')
  program=${words[0]/#\~/$HOME}
  type -P "$program" >/dev/null || program=lockstep
  typed=${words[${#words[@]}-1]}
  while IFS=$'\t' read -r word _; do
    case $word in
      :*) ask=${word#:} ;;
      *) printf -v word %q "$word" && found+=("$word") ;;
    esac
  done < <(command "$program" complete -- "${words[@]:1}" 2>/dev/null)
  if [ -n "$ask" ]; then
    last=${typed##*=}
    while read -r word; do
      if [ -d "${word/#\~/$HOME}" ]; then word=$word/; elif [ "$ask" = folders ]; then continue; fi
      printf -v word %q "$word"
      found+=("${typed%"$last"}${word/#\\~/\~}")
    done < <(compgen -f -- "$last")
  fi
  # bash replaces only what stands behind the last = or :, and from the last @ on.
  breaks=${COMP_WORDBREAKS//[!=:]/}
  last=$typed
  [ -z "$breaks" ] || last=${typed##*["$breaks"]}
  [[ $COMP_WORDBREAKS != *@* || $last != *@* ]] || last=@${last##*@}
  COMPREPLY=("${found[@]#"${typed%"$last"}"}")
  if [ "${#COMPREPLY[@]}" -eq 1 ] && [[ ${COMPREPLY[0]} == *[=/] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _lockstep lockstep
)SCRIPT";

constexpr std::string_view kZshScript = R"SCRIPT(#compdef lockstep
# Completion of lockstep in zsh. Made by: lockstep reference completion zsh
local word meaning ask='' program=${(Q)words[1]}
local -a whole whole_shown begun begun_shown
program=${program/#\~/$HOME}
whence -p -- "$program" >/dev/null || program=lockstep
while IFS=$'\t' read -r word meaning; do
  case $word in
    :*) ask=${word#:} ;;
    *[=/]) begun+=("$word") begun_shown+=("$word  $meaning") ;;
    *) whole+=("$word") whole_shown+=("$word  $meaning") ;;
  esac
done < <(command "$program" complete -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)
(( ! $#whole )) || compadd -l -d whole_shown -- "${whole[@]}"
(( ! $#begun )) || compadd -l -d begun_shown -S '' -- "${begun[@]}"
if [[ -n $ask ]]; then
  compset -P '*='
  if [[ $ask == folders ]]; then _files -/; else _files; fi
fi
)SCRIPT";

constexpr std::string_view kFishScript =
    R"SCRIPT(# Completion of lockstep in fish. Made by: lockstep reference completion fish
function __lockstep_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    command -q -- $program; or set program lockstep
    set -l last (string replace -r '^[^=]*=' '' -- $typed)
    set -l front (string sub -l (math (string length -- "$typed") - (string length -- "$last")) -- "$typed")
    for line in (command $program complete -- $words "$typed" 2>/dev/null)
        switch $line
            case ':files'
                printf "$front%s\n" (__fish_complete_path "$last")
            case ':folders'
                printf "$front%s\n" (__fish_complete_directories "$last" '')
            case '*'
                echo $line
        end
    end
end
complete -c lockstep -f -a '(__lockstep_complete)'
)SCRIPT";

}  // namespace

const std::vector<CompletionScript>& completion_scripts() {
  static const std::vector<CompletionScript> scripts = {
      {"bash", "bash-completion/completions/lockstep", kBashScript},
      {"zsh", "zsh/site-functions/_lockstep", kZshScript},
      {"fish", "fish/vendor_completions.d/lockstep.fish", kFishScript}};
  return scripts;
}

}  // namespace lockstep
