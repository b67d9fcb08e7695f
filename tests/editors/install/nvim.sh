#!/usr/bin/env bash
# Neovim of Debian forky, unpacked: nvim.sh FOLDER
set -euo pipefail
folder=$1 prefix=$1/prefix
"$(dirname "$0")/suite.sh" "$folder/apt" forky whole "$prefix" usr/bin/nvim neovim neovim-runtime libc6
printf '#!/bin/sh\nexport VIMRUNTIME=%s/usr/share/nvim/runtime\nexec %s/usr/bin/nvim "$@"\n' "$prefix" "$prefix" > "$folder/nvim"
chmod +x "$folder/nvim"
"$folder/nvim" --version | head -1
