#!/usr/bin/env bash
# Gets the editors that tests/editors drives, and Python 3.14, into .cache/editors (Chromium and libraries by apt).
# What is already there is left alone, so it may be run as often as one likes.
#
#   tests/editors/install.sh             all of them
#   tests/editors/install.sh emacs …     only these: vscode-new vscode-old nvim emacs helix python3.14
#   tests/editors/install.sh --check     installs nothing; status 1 and the reason when something is missing
set -euo pipefail
cd "$(dirname "$0")/../.."
parts=tests/editors/install
cache=${WARPLINE_EDITORS:-$PWD/.cache/editors}
mkdir -p "$cache"

declare -A wanted=(
  [vscode-new]="code-server 4.139.1, Node 24"
  [vscode-old]="code-server 4.100.3, Node 20"
  [nvim]="Neovim, Debian forky"
  [emacs]="Emacs 30.1, Debian bookworm-backports"
  [helix]="Helix 25.07, Debian forky"
  [python3.14]="Python 3.14, Debian forky"
)
order=(vscode-new vscode-old nvim emacs helix python3.14)
packages=(chromium fonts-dejavu-core tmux patchelf ripgrep build-essential python3
          libkrb5-dev libsecret-1-dev iproute2 emacs-nox libtree-sitter0)

have() { [ "$(cat "$cache/$1/installed" 2>/dev/null)" = "${wanted[$1]}" ]; }

lacking_packages() {
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

if [ "${1:-}" = --check ]; then
  missing=()
  for editor in "${order[@]}"; do have "$editor" || missing+=("$editor"); done
  mapfile -t lacking < <(lacking_packages)
  [ ${#missing[@]} -eq 0 ] && [ ${#lacking[@]} -eq 0 ] && exit 0
  echo "editors not installed: ${missing[*]} ${lacking[*]}; get them with: make editors" >&2
  exit 1
fi

mapfile -t lacking < <(lacking_packages)
if [ ${#lacking[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] || { echo "needs root once: sudo apt-get install -y --no-install-recommends ${lacking[*]}" >&2; exit 1; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${lacking[@]}" >"$cache/apt.log" 2>&1 ||
    { tail -30 "$cache/apt.log" >&2; exit 1; }
fi

for editor in "${@:-${order[@]}}"; do
  have "$editor" && continue
  echo "installing $editor (${wanted[$editor]})"
  log=$cache/$editor.log
  rm -rf "${cache:?}/$editor"
  mkdir -p "$cache/$editor"
  case $editor in
    vscode-new) "$parts/code-server.sh" 4.139.1 24 "$cache/$editor" ;;
    vscode-old) "$parts/code-server.sh" 4.100.3 20 "$cache/$editor" ;;
    *) "$parts/$editor.sh" "$cache/$editor" ;;
  esac >"$log" 2>&1 || { echo "failed; the end of $log:" >&2; tail -40 "$log" >&2; exit 1; }
  tail -1 "$log"
  echo "${wanted[$editor]}" >"$cache/$editor/installed"
done
