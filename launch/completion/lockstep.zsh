#compdef lockstep
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Completion of lockstep in zsh, as lockstep.bash.
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
