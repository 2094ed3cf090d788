# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Completion of lockstep in bash: the program that stands in the command line is asked at each Tab.
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
