// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Completion in bash, zsh and fish: each script hands the words to the program, and shows its answer as the shell
/// does.
#include "trainer/commands/reference.hpp"

namespace lockstep {

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
